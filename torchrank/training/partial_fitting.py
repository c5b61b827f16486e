"""A preference model in use: learn from what has happened since, and answer users whom training has not seen."""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import SGD

from torchrank.data.blocks import Blocks
from torchrank.data.log import InteractionLog
from torchrank.errors import DataError, TorchRankError, check_count, check_number, check_type
from torchrank.losses import BPRLoss
from torchrank.models import Factorization, FeedbackFactorization, fold_in_vectors
from torchrank.ops.wave_steps import take_wave, wave_loss
from torchrank.training.saros_plan import EpochPlan
from torchrank.training.sequential_steps import saros_step


def partial_fit(scorer: nn.Module, blocks: Blocks, *, eta: float = 0.01, mu: float = 0.01, lanes: int = 1) -> float:
    """Go on with SAROS: one step a block on new blocks, in place, each once.

    Parts one after the other take the same steps as all their blocks in that order. Users and items of the blocks'
    id space that the scorer lacks are added first (:meth:`~torchrank.models.Factorization.grow`).

    Args:
        scorer: a :class:`~torchrank.models.Factorization`, which may grow, or any scorer of users and items. A
            ``FeedbackFactorization`` goes on describing users by the feedback it was made with.
        blocks: of the later log, numbered by :meth:`~torchrank.data.InteractionLog.in_space_of` as the scorer is; such
            as ``build_blocks(log)``.
        eta: step size η; take the last one of a schedule that fell.
        mu: μ of the L2 term; a scorer of your own then needs ``squared_norms(users, items)``.
        lanes: of scorers that are stepped through by autograd, users who move side by side.

    Returns:
        the mean of the pair losses, each before its block's step; 0 without blocks. Watch it: it says how well the
        model foresaw what happened since. (Of scorers stepped through by autograd, the mean of the block losses.)

    Raises:
        DataError: the blocks are of more users or items than a scorer that cannot grow has.
        TorchRankError: an option that cannot be.

    Source: arXiv 1902.08495, Algorithm 1.

    Example:
        >>> from torchrank.data import build_blocks, make_interactions
        >>> log, _ = make_interactions(num_users=30, num_items=40, num_interactions=500)
        >>> early, late = log.split_per_user(train=0.5)
        >>> scorer = Factorization(log.num_users, log.num_items, 4)
        >>> losses = [partial_fit(scorer, build_blocks(part), eta=0.1) for part in (early, late)]
        >>> all(loss > 0 for loss in losses)
        True
    """
    check_number("eta", eta, least=0)
    check_number("mu", mu, least=0)
    check_count("lanes", lanes)
    check_type("blocks", blocks, Blocks, "Blocks, as build_blocks(log) makes them")
    _make_room(scorer, blocks)
    users = np.arange(blocks.num_users, dtype=np.int32)
    slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
    plan = EpochPlan(users, np.append(0, np.cumsum(blocks.counts)), slices, blocks.items)
    optimizer = SGD(scorer.parameters(), lr=eta)
    if not len(blocks):
        return 0.0
    if type(scorer) in (Factorization, FeedbackFactorization) and _on_cpu(scorer):
        lost, pairs = saros_step(scorer, plan, users, optimizer, mu=mu, momentum=0.0, average=None)
        return lost / max(pairs, 1)
    waves = plan.waves(lanes).to(next(scorer.parameters()).device)
    loss, total = BPRLoss(reduction="sum"), 0.0
    for number in range(len(waves)):
        value, objective = wave_loss(scorer, loss, take_wave(waves, number), mu=mu)
        optimizer.zero_grad(set_to_none=False)
        objective.backward()  # type: ignore[no-untyped-call] # of torch
        optimizer.step()
        total += float(value)
    return total / len(blocks)


def fold_in(
    scorer: Factorization | FeedbackFactorization, log: InteractionLog, *, against: str = "shown", mu: float = 0.01
) -> Any:
    """Describe new users by their first interactions; items, and the users the scorer knows, stay as they are.

    A factorisation's user gets the vector that training would have found with the items held, see
    :func:`~torchrank.models.fold_in_vectors`, from the mean of the known users' vectors: who gave no feedback to learn
    from is the mean user. A feedback factorisation describes anybody by their feedback: nothing is learned.

    Args:
        scorer: trained.
        log: what the new users were shown, with the items of the scorer:
            ``log.in_space_of(item_ids=catalogue.item_ids, unknown="drop")``.
        against: ``"shown"``, or ``"catalogue"`` for a scorer that was trained against items never shown.
        mu: μ of ‖u − mean user‖²; what training had, or more for users of whom little is known.

    Returns:
        a scorer of the log's users that shares the items' tables. Recommend by it with
        ``catalogue.with_users(log)``.

    Raises:
        DataError: the log has another number of items.
        TorchRankError: a scorer of another kind, an unknown word, or μ not above 0.

    Example:
        >>> from torchrank.data import Catalogue, make_interactions
        >>> from torchrank.training import recommend
        >>> log, _ = make_interactions(num_users=30, num_items=40, num_interactions=500)
        >>> old, new = log.where(log.users < 20), log.where(log.users >= 20)
        >>> scorer, catalogue = Factorization(log.num_users, log.num_items, 4), Catalogue.from_log(old)
        >>> folded = fold_in(scorer, new)
        >>> recommend(folded, catalogue.with_users(new), new.user_ids[[25]], k=3).shape
        (3, 5)
    """
    check_type("log", log, InteractionLog, "an InteractionLog")
    if not isinstance(scorer, Factorization | FeedbackFactorization):
        raise TorchRankError(
            f"{type(scorer).__name__} is no Factorization or FeedbackFactorization; a scorer of your own knows best how"
            " it describes a user"
        )
    check_number("mu", mu, above=0)
    if log.num_items != scorer.num_items:
        raise DataError(
            f"the log has {log.num_items} items, the scorer {scorer.num_items}; number it by log.in_space_of("
            'item_ids=catalogue.item_ids, unknown="drop")'
        )
    if isinstance(scorer, FeedbackFactorization):
        return _described(scorer, log)
    device = scorer.item_vectors.device
    vectors = fold_in_vectors(
        torch.from_numpy(log.items.astype(np.int64)).to(device),
        torch.from_numpy(log.preferred).to(device),
        torch.from_numpy(log.offsets).to(device),
        item_vectors=scorer.item_vectors,
        item_offsets=None if scorer.item_offsets is None else scorer.item_offsets.squeeze(1),
        centre=scorer.user_vectors.mean(0),
        against=against,
        mu=mu,
    )
    return Factorization.of_vectors(vectors, scorer.item_vectors, scorer.item_offsets)


def _described(scorer: FeedbackFactorization, log: InteractionLog) -> FeedbackFactorization:
    sizes = {"num_users": log.num_users, "num_items": log.num_items, "dim": scorer.dim}
    folded = FeedbackFactorization.from_log_arrays(
        log.users, log.items, log.preferred, kinds=scorer.kinds, item_bias=scorer.item_bias, init=scorer.init, **sizes
    )
    folded.item_vectors, folded.feedback_vectors = scorer.item_vectors, scorer.feedback_vectors
    folded.item_offsets = scorer.item_offsets
    return folded.to(scorer.item_vectors.device)


def _on_cpu(scorer: nn.Module) -> bool:
    return all(p.device.type == "cpu" and p.dtype == torch.float32 for p in scorer.parameters())


def _make_room(scorer: nn.Module, blocks: Blocks) -> None:
    """Add what the blocks have and the scorer lacks."""
    has = {name: getattr(scorer, name, None) for name in ("num_users", "num_items")}
    lacks = [name for name, known in has.items() if isinstance(known, int) and known < getattr(blocks, name)]
    if not lacks:
        return
    if isinstance(scorer, Factorization):
        scorer.grow(
            num_users=max(scorer.num_users, blocks.num_users), num_items=max(scorer.num_items, blocks.num_items)
        )
        return
    raise DataError(
        f"the blocks are of {lacks[0]}={getattr(blocks, lacks[0])}, this {type(scorer).__name__} has {has[lacks[0]]};"
        " Factorization grows, others are made anew"
    )
