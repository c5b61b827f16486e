"""The compiled loops run on a scorer's own tables, in one thread or in several that share them (Hogwild)."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torchrank.data.log import InteractionLog
from torchrank.data.pairs import PairLists
from torchrank.errors import TorchRankError, check_count, check_option
from torchrank.models import Factorization, FeedbackFactorization
from torchrank.ops.sequential.bpr import bpr_feedback_visits, bpr_visits
from torchrank.ops.sequential.compiled import random_state
from torchrank.ops.sequential.feedback import saros_feedback_users
from torchrank.ops.sequential.full import full_gradient
from torchrank.ops.sequential.mf import mf_rows
from torchrank.ops.sequential.momentum import saros_momentum_users
from torchrank.ops.sequential.saros import saros_users
from torchrank.training.averaging import StartAverage
from torchrank.training.log_scorer import compiled_scorer, views
from torchrank.training.saros_plan import EpochPlan

_NO_SUMS = np.zeros((0, 1)), np.zeros((0, 1)), np.zeros((0, 1))
_NO_COUNTS = np.zeros(0, np.int64), np.zeros(0, np.int64)


def check_sharing(threads: int, combine: str, *, alone: bool = False) -> None:
    """Refuse options of how steps are shared out that do not exist, or several threads where one has to do it all.

    Raises:
        TorchRankError: there is one.
    """
    check_option("combine", combine, ["mean", "sum"])
    check_count("threads", threads)
    if alone and threads > 1:
        raise TorchRankError(
            f'threads={threads} are for engine="sequential", without momentum, averaging and pairs="all"; set threads=1'
        )


def side_by_side(step: Callable[..., Any], shares: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Take a compiled step on several shares of the users at once, each in a thread; the tables have no locks.

    Source: Recht, Ré, Wright & Niu, "Hogwild!: a lock-free approach to parallelizing stochastic gradient descent"
    (NIPS 2011).
    """
    each = list(shares)
    if len(each) == 1:
        return [step(*each[0])]
    with ThreadPoolExecutor(len(each)) as pool:
        return list(pool.map(lambda share: step(*share), each))


def saros_step(
    scorer: nn.Module,
    plan: EpochPlan,
    users: NDArray[np.int32],
    optimizer: Any,
    *,
    mu: float,
    momentum: float,
    average: StartAverage | None,
    threads: int = 1,
) -> tuple[float, int]:
    """Step through the blocks of some users, in place.

    Args:
        scorer: a factorisation or a feedback factorisation.
        plan: the epoch.
        users: int32, in training order.
        optimizer: holds η, and the velocities where there is momentum.
        mu: μ of the L2 term.
        momentum: m, for a factorisation.
        average: sums over user starts, changed; None without averaging.
        threads: how many step through users side by side; 1 with momentum or averaging.

    Returns:
        the sum of the pair losses, each before its step, and the number of pairs.
    """
    known = compiled_scorer(scorer)
    eta = float(optimizer.param_groups[0]["lr"])
    item_vectors, item_offsets = views(known.item_vectors), views(known.item_offsets).reshape(-1)
    walk = users, plan.block_starts, plan.slices, plan.items
    own = slice(plan.first_user, plan.first_user + len(plan.users))  # the loops count users from 0
    if momentum > 0 and isinstance(known, Factorization):
        tables = known.user_vectors, known.item_vectors, known.item_offsets
        velocities = tuple(_velocity(optimizer, table) for table in tables)
        walk = users + np.int32(own.start), _all_starts(plan, known.num_users), plan.slices, plan.items
        loss, pairs = saros_momentum_users(
            views(known.user_vectors), item_vectors, item_offsets, velocities, *walk, eta, mu, momentum
        )
        return float(loss), int(pairs)
    sums, counts, starts = _NO_SUMS, _NO_COUNTS, 0
    if average is not None:
        held = {name: pair for (name, _), pair in zip(average.scorer.named_parameters(), average.sums(), strict=True)}
        first = held["user_vectors" if isinstance(known, Factorization) else "feedback_vectors"]
        offsets = held.get("item_offsets", (torch.zeros(0, 1, dtype=torch.float64), torch.zeros(0)))
        first_sums, first_counts = first[0].numpy(), first[1].numpy()
        if isinstance(known, Factorization):
            first_sums, first_counts = first_sums[own], first_counts[own]
        sums = first_sums, held["item_vectors"][0].numpy(), offsets[0].numpy()
        counts, starts = (first_counts, held["item_vectors"][1].numpy()), int(average.starts)
    step = saros_users if isinstance(known, Factorization) else saros_feedback_users
    described = *_described(known, own), item_vectors, item_offsets
    rest = plan.block_starts, plan.slices, plan.items, eta, mu, sums, counts, starts
    shares = ((*described, users[users % threads == n], *rest) for n in range(threads))
    losses, pairs_of, starts_of = zip(*side_by_side(step, shares), strict=True)
    loss, pairs, starts = sum(losses), sum(pairs_of), starts_of[0]
    if average is not None:
        average.starts.fill_(starts)
        if "item_offsets" in held:
            held["item_offsets"][1].copy_(held["item_vectors"][1])  # offsets move when their vectors do
    return float(loss), int(pairs)


def _described(scorer: Factorization | FeedbackFactorization, users: slice = slice(None)) -> tuple[NDArray[Any], ...]:
    """Return the arrays that describe some users, who follow each other, to a compiled loop."""
    if isinstance(scorer, Factorization):
        return (views(scorer.user_vectors)[users],)
    starts = scorer.feedback_starts.numpy()
    starts = starts if users == slice(None) else starts[users.start : users.stop + 1]
    return views(scorer.feedback_vectors), starts, scorer.feedbacks.numpy()


def _all_starts(plan: EpochPlan, num_users: int) -> NDArray[np.int64]:
    """The blocks of all users, those outside the plan's partition included: with momentum everybody moves."""
    after = num_users - plan.first_user - len(plan.users)
    return np.pad(plan.block_starts, (plan.first_user, after), "edge")


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
    threads: int = 1,
    first_user: int = 0,
) -> tuple[float, int, int]:
    """Draw pairs for users and step on each, in place.

    Args:
        scorer: a factorisation or a feedback factorisation.
        lists: of the training log, or of a partition of it, whose users count from 0.
        users: ``(V,)`` int32, to draw for.
        pairs: ``(V,)`` how many for each.
        optimizer: holds η.
        draws: what is drawn, see :func:`~torchrank.ops.sequential.bpr.bpr_visits`.
        mu: μ of the L2 term.
        offset_mu: the same on offsets.
        state: of the draws, changed.
        threads: how many draw and step side by side, for different users.
        first_user: internal index of the lists' first user.

    Returns:
        the sum of the pair losses, each before its step, the number of pairs, and of rejected draws.
    """
    known = compiled_scorer(scorer)
    own = slice(first_user, first_user + len(lists.middles))
    tables = *_described(known, own), views(known.item_vectors), views(known.item_offsets).reshape(-1)
    places = lists.starts, lists.middles, lists.items, lists.seen_starts, lists.seen
    options = draws, float(optimizer.param_groups[0]["lr"]), mu, offset_mu
    step = bpr_visits if isinstance(known, Factorization) else bpr_feedback_visits
    states = [state, *(random_state(int(state[0]), n) for n in range(1, threads))]
    marks = [users % threads == n for n in range(threads)]
    shares = (
        (*tables, users[mark], pairs[mark], *places, *options, own) for mark, own in zip(marks, states, strict=True)
    )
    loss, drawn, rejected = (sum(each) for each in zip(*side_by_side(step, shares), strict=True))
    return float(loss), int(drawn), int(rejected)


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


def mf_step(
    scorer: Factorization,
    log: InteractionLog,
    rows: NDArray[np.int64],
    optimizer: Any,
    *,
    mu: float,
    first_user: int = 0,
    threads: int = 1,
) -> float:
    """Step on the squared errors of some interactions of a log, in place.

    Args:
        scorer: without offsets.
        log: a log, or a partition of one, whose users count from 0.
        rows: of the log, in the order of the steps.
        optimizer: holds η.
        mu: μ of the L2 term.
        first_user: internal index of the log's first user.
        threads: how many step side by side, for different users.

    Returns:
        the sum of the squared errors, each before its step.
    """
    users = slice(first_user, first_user + log.num_users)
    tables = *_described(scorer, users), views(scorer.item_vectors), views(scorer.item_offsets).reshape(-1)
    rest = log.users, log.items, log.preferred, float(optimizer.param_groups[0]["lr"]), mu
    shares = ((*tables, rows[log.users[rows] % threads == n], *rest) for n in range(threads))
    return float(sum(side_by_side(mf_rows, shares)))
