"""The compiled loops run on a scorer's own tables."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torchrank.models import Factorization
from torchrank.ops.sequential.feedback import saros_feedback_users
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
