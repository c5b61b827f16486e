"""The compiled loops run on a scorer's own tables."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torchrank.data.log import InteractionLog
from torchrank.data.pairs import PairLists
from torchrank.models import Factorization
from torchrank.ops.sequential.bpr import bpr_feedback_visits, bpr_visits
from torchrank.ops.sequential.feedback import saros_feedback_users
from torchrank.ops.sequential.full import full_gradient
from torchrank.ops.sequential.mf import mf_rows
from torchrank.ops.sequential.momentum import saros_momentum_users
from torchrank.ops.sequential.saros import saros_users
from torchrank.training.averaging import StartAverage
from torchrank.training.preference import compiled_scorer, views
from torchrank.training.saros_plan import EpochPlan

_NO_SUMS = np.zeros((0, 1)), np.zeros((0, 1)), np.zeros((0, 1))
_NO_COUNTS = np.zeros(0, np.int64), np.zeros(0, np.int64)


def saros_step(
    scorer: nn.Module,
    plan: EpochPlan,
    users: NDArray[np.int32],
    optimizer: Any,
    *,
    mu: float,
    momentum: float,
    average: StartAverage | None,
) -> float:
    """Step through the blocks of some users, in place.

    Args:
        scorer: a factorisation or a feedback factorisation.
        plan: the epoch.
        users: int32, in training order.
        optimizer: holds η, and the velocities where there is momentum.
        mu: μ of the L2 term.
        momentum: m, for a factorisation.
        average: sums over user starts, changed; None without averaging.

    Returns:
        the mean of the pair losses, each before its step.
    """
    known = compiled_scorer(scorer)
    eta = float(optimizer.param_groups[0]["lr"])
    item_vectors, item_offsets = views(known.item_vectors), views(known.item_offsets).reshape(-1)
    walk = users, plan.block_starts, plan.slices, plan.items
    if momentum > 0 and isinstance(known, Factorization):
        tables = known.user_vectors, known.item_vectors, known.item_offsets
        velocities = tuple(_velocity(optimizer, table) for table in tables)
        loss, pairs = saros_momentum_users(
            views(known.user_vectors), item_vectors, item_offsets, velocities, *walk, eta, mu, momentum
        )
        return float(loss / max(pairs, 1))
    sums, counts, starts = _NO_SUMS, _NO_COUNTS, 0
    if average is not None:
        held = {name: pair for (name, _), pair in zip(average.scorer.named_parameters(), average.sums(), strict=True)}
        first = held["user_vectors" if isinstance(known, Factorization) else "feedback_vectors"]
        offsets = held.get("item_offsets", (torch.zeros(0, 1, dtype=torch.float64), torch.zeros(0)))
        sums = first[0].numpy(), held["item_vectors"][0].numpy(), offsets[0].numpy()
        counts, starts = (first[1].numpy(), held["item_vectors"][1].numpy()), int(average.starts)
    if isinstance(known, Factorization):
        found = saros_users(views(known.user_vectors), item_vectors, item_offsets, *walk, eta, mu, sums, counts, starts)
    else:
        feedback = views(known.feedback_vectors), known.feedback_starts.numpy(), known.feedbacks.numpy()
        found = saros_feedback_users(*feedback, item_vectors, item_offsets, *walk, eta, mu, sums, counts, starts)
    loss, pairs, starts = found
    if average is not None:
        average.starts.fill_(starts)
        if "item_offsets" in held:
            held["item_offsets"][1].copy_(held["item_vectors"][1])  # offsets move when their vectors do
    return float(loss / max(pairs, 1))


def _velocity(optimizer: Any, parameter: Tensor | None) -> NDArray[np.float32]:
    """Return SGD's own momentum buffer of a table, made where there is none."""
    if parameter is None:
        return np.zeros((0, 1), np.float32)
    state = optimizer.state[parameter]
    if state.get("momentum_buffer") is None:
        state["momentum_buffer"] = torch.zeros_like(parameter)
    return views(state["momentum_buffer"])


def bpr_step(
    scorer: nn.Module,
    lists: PairLists,
    users: NDArray[np.int32],
    pairs: NDArray[np.int64],
    optimizer: Any,
    draws: int,
    mu: float,
    offset_mu: float,
    state: NDArray[np.uint64],
) -> tuple[float, float]:
    """Draw pairs for users and step on each, in place.

    Args:
        scorer: a factorisation or a feedback factorisation.
        lists: of the training log.
        users: ``(V,)`` int32, to draw for.
        pairs: ``(V,)`` how many for each.
        optimizer: holds η.
        draws: what is drawn, see :func:`~torchrank.ops.sequential.bpr.bpr_visits`.
        mu: μ of the L2 term.
        offset_mu: the same on offsets.
        state: of the draws, changed.

    Returns:
        the mean of the pair losses, each before its step, and of the rejected draws a pair.
    """
    known = compiled_scorer(scorer)
    tables = views(known.item_vectors), views(known.item_offsets).reshape(-1)
    places = lists.starts, lists.middles, lists.items, lists.seen_starts, lists.seen
    walk = users, pairs, *places, draws, float(optimizer.param_groups[0]["lr"]), mu, offset_mu, state
    if isinstance(known, Factorization):
        loss, drawn, rejected = bpr_visits(views(known.user_vectors), *tables, *walk)
    else:
        feedback = views(known.feedback_vectors), known.feedback_starts.numpy(), known.feedbacks.numpy()
        loss, drawn, rejected = bpr_feedback_visits(*feedback, *tables, *walk)
    return float(loss / max(drawn, 1)), float(rejected / max(drawn, 1))


def full_step(scorer: nn.Module, lists: PairLists, optimizer: Any, *, mu: float) -> float:
    """Step on the exact gradient of the mean over users, in place; return the loss before it, without the μ term."""
    known = compiled_scorer(scorer)
    assert isinstance(known, Factorization)  # noqa: S101 - for the type checker: refused in setup
    parameters = list(known.parameters())
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    gradients = [views(parameter.grad) for parameter in parameters]
    offsets = gradients[2].reshape(-1) if len(gradients) > 2 else np.zeros(0, np.float32)
    tables = views(known.user_vectors), views(known.item_vectors), views(known.item_offsets).reshape(-1)
    places = lists.starts, lists.middles, lists.items
    loss = full_gradient(*tables, *places, mu, (gradients[0], gradients[1], offsets))
    optimizer.step()
    return float(loss)


def mf_step(scorer: Factorization, log: InteractionLog, rows: NDArray[np.int64], optimizer: Any, *, mu: float) -> float:
    """Step on some interactions' squared errors, in place; return the mean of these before their steps."""
    tables = views(scorer.user_vectors), views(scorer.item_vectors), views(scorer.item_offsets).reshape(-1)
    eta = float(optimizer.param_groups[0]["lr"])
    return float(mf_rows(*tables, rows, log.users, log.items, log.preferred, eta, mu) / max(len(rows), 1))
