"""The linear chain: best label sequence, cost-augmented best label sequence, and the score of a given one.

Source: Shalev-Shwartz & Ben-David, "Understanding Machine Learning", 17.3: ``M[s, t] = max over s' of M[s', t − 1] +
A[s, s']``, plus the emission of s at t. A step computes maxima only, ``(q, q)`` a sequence; which label they came from
is asked again on the way back, along the best sequence alone, ``(q,)`` a sequence, so no pointers are kept.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchrank.errors import DataError, ShapeError, check_number, check_option
from torchrank.ops.chain_checks import check_chain, check_labels
from torchrank.ops.chain_layout import Layout, Steps, at_last, batch_major, lay_out, time_major, upto
from torchrank.ops.checks import values_can_be_read


def viterbi(
    emissions: Tensor, transitions: Tensor, mask: Tensor | None = None, *, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Find each chain's best label sequence and its score.

    Ties: of all best sequences the one with the smallest last label, among those the one with the smallest label before
    it, and so on. O(T q²) time a sequence and O(T q) memory. For few long sequences, :func:`viterbi_scan` is faster.

    Args:
        emissions: ``(B, T, q)`` score of each label at each position; -inf forbids one. What lies under the mask has no
            meaning, NaN included. float16 and bfloat16 are computed in float32.
        transitions: ``(q, q)`` score of each label after each label, indexed [to, from], or ``(B, T − 1, q, q)`` where
            they depend on the position.
        mask: ``(B, T)`` boolean, True on the first positions of each sequence; None when all are real.
        start: ``(q,)`` score of each label at the first position.

    Returns:
        ``(B, T)`` int64 labels, 0 under the mask, and ``(B,)`` scores, differentiable in all scores (the gradient
        counts the features of the best sequence).

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: a sequence of length 0, a mask with holes, a real score that is NaN or +inf (eager, CPU).

    Source:
        Shalev-Shwartz & Ben-David, "Understanding Machine Learning", eq. 17.4 and 17.5.

    Example:
        >>> emissions = torch.tensor([[[0.5, 0.0], [0.0, 0.5], [0.0, 2.0]]])
        >>> stay = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> viterbi(emissions, stay)
        (tensor([[1, 1, 1]]), tensor([4.5000]))
    """
    check_chain(emissions, transitions, mask, start)
    emissions, transitions, start = one_dtype(emissions, transitions, start)
    with torch.no_grad():
        layout = lay_out(emissions, mask)
        labels = batch_major(
            _best(time_major(emissions, layout), transitions, layout, start), layout, emissions.shape[1]
        )
    return labels, position_scores(emissions, transitions, labels, mask, start=start).sum(-1)


def cost_augmented_viterbi(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    cost: float | Tensor = 1.0,
    start: Tensor | None = None,
) -> Tensor:
    """Find the sequence that maximises its cost against ``labels`` plus its score: what a margin must beat.

    The cost adds up over positions, so it joins the emissions in the recursion of :func:`viterbi`; same tie rule.

    Args:
        emissions: ``(B, T, q)``, as for :func:`viterbi`.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``.
        labels: ``(B, T)`` the right labels; what lies under the mask has no meaning.
        mask: ``(B, T)`` boolean or None.
        cost: a number, the cost of each wrong position (the Hamming cost, scaled); a ``(q, q)`` tensor indexed
            [right, chosen]; or a ``(B, T, q)`` tensor, the cost of choosing each label at each position.
        start: ``(q,)`` or None.

    Returns:
        ``(B, T)`` int64 labels, 0 under the mask.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: labels outside ``0 … q − 1``, and as for :func:`viterbi`.
        TorchRankError: a cost below 0 or not finite.

    Example:
        >>> emissions = torch.tensor([[[0.7, 0.0], [2.0, 0.0]]])
        >>> cost_augmented_viterbi(emissions, torch.zeros(2, 2), torch.tensor([[0, 0]]))
        tensor([[1, 0]])
    """
    check_chain(emissions, transitions, mask, start)
    check_labels(labels, emissions, mask)
    check_cost(cost, emissions, mask)
    emissions, transitions, start = one_dtype(emissions, transitions, start)
    return augmented_labels(emissions, transitions, labels, mask, cost, start)


@torch.no_grad()
def augmented_labels(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    mask: Tensor | None,
    cost: float | Tensor,
    start: Tensor | None,
) -> Tensor:
    """:func:`cost_augmented_viterbi` on arguments that were checked and are of one type."""
    layout = lay_out(emissions, mask)
    scores = time_major(emissions, layout)
    # Labels under the mask may be anything: they must index nothing.
    right = time_major(labels if mask is None else torch.where(mask, labels, 0), layout)
    if not isinstance(cost, Tensor):
        scores.scatter_add_(1, right[:, None], scores.new_full((1, 1, 1), -cost).expand(len(right), 1, len(labels)))
    elif cost.ndim == 2:
        scores += cost.to(scores.dtype)[right].transpose(1, 2)
    else:
        scores += time_major(cost.to(scores.dtype), layout)
    return batch_major(_best(scores, transitions, layout, start), layout, emissions.shape[1])


def position_scores(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    start: Tensor | None = None,
) -> Tensor:
    """Score of a given label sequence, position by position: emission plus the transition into it.

    Args:
        emissions: ``(B, T, q)``.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        labels: ``(B, T)`` labels in ``0 … q − 1``; what lies under the mask has no meaning.
        mask: ``(B, T)`` boolean or None.
        start: ``(q,)`` or None, added at the first position.

    Returns:
        ``(B, T)``, 0 under the mask; its sum over T is the score of the sequence. Differentiable in all scores.

    Example:
        >>> emissions = torch.tensor([[[1.0, 0.0], [0.0, 0.5]]])
        >>> position_scores(emissions, torch.tensor([[0.0, 0.0], [3.0, 0.0]]), torch.tensor([[0, 1]]))
        tensor([[1.0000, 3.5000]])
    """
    q = emissions.shape[-1]
    if mask is not None:
        labels = torch.where(mask, labels, 0)
    here = emissions.gather(-1, labels[..., None])[..., 0]
    if transitions.ndim == 2:
        pair = labels * q + labels.roll(1, 1)
        moved = transitions.reshape(-1).gather(0, pair.reshape(-1)).view_as(pair)
    else:
        pair = labels[:, 1:] * q + labels[:, :-1]
        moved = pad(transitions.flatten(2).gather(-1, pair[..., None])[..., 0], (1, 0))
    first = torch.zeros((), dtype=here.dtype, device=here.device)
    if start is not None:
        first = start.gather(0, labels[:, 0])[:, None]
    position = torch.arange(labels.shape[1], device=labels.device)
    total = here + torch.where(position == 0, first, moved)
    return total if mask is None else torch.where(mask, total, 0)


def one_dtype(emissions: Tensor, transitions: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Bring the scores to one floating-point type: the widest given, float32 at least."""
    dtype = torch.promote_types(torch.promote_types(emissions.dtype, transitions.dtype), torch.float32)
    return emissions.to(dtype), transitions.to(dtype), None if start is None else start.to(dtype)


def over_length(transitions: Tensor, emissions: Tensor, mask: Tensor | None, normalize: str | None) -> Tensor:
    """Divide transition scores by each sequence's length, as the book's features of transitions are.

    Args:
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``.
        emissions: ``(B, T, q)``, for the sizes.
        mask: ``(B, T)`` boolean or None.
        normalize: ``"length"``; None returns the scores as they are.

    Returns:
        ``(B, T − 1, q, q)``, a view that repeats one matrix a sequence where the scores were ``(q, q)``.

    Raises:
        TorchRankError: another value of ``normalize``.

    Example:
        >>> over_length(torch.ones(1, 1), torch.zeros(1, 2, 1), None, "length").tolist()
        [[[[0.5]]]]
    """
    if normalize is None:
        return transitions
    check_option("normalize", normalize, ("length",))
    batch, length, q = emissions.shape
    lengths = emissions.new_full((batch,), length) if mask is None else mask.sum(1).clamp(min=1).to(emissions.dtype)
    scaled = transitions / lengths.to(transitions.dtype)[:, None, None, None]
    return scaled.expand(batch, max(length - 1, 0), q, q)


def check_cost(cost: float | Tensor, emissions: Tensor, mask: Tensor | None) -> None:
    """Refuse a cost of another form than :func:`cost_augmented_viterbi` names, and costs below 0."""
    if not isinstance(cost, Tensor):
        check_number("cost", cost, least=0)
        return
    q = emissions.shape[-1]
    if tuple(cost.shape) not in ((q, q), tuple(emissions.shape)):
        raise ShapeError(
            f"cost has shape {tuple(cost.shape)}; give a number, {(q, q)} indexed [right, chosen],"
            f" or {tuple(emissions.shape)}"
        )
    if values_can_be_read(cost):
        bad = ~((cost >= 0) & (cost < torch.inf))
        if mask is not None and cost.ndim == 3:
            bad = bad & mask[..., None]
        if bool(bad.any()):
            raise DataError(f"a cost is {cost[bad][0].item()}; costs must be finite, at least 0")


def _best(scores: Tensor, transitions: Tensor, layout: Layout, start: Tensor | None) -> Tensor:
    """Best labels ``(T, B)`` of ``(T, q, B)`` scores, both time-major; the scores are overwritten."""
    labels = torch.zeros(len(scores), scores.shape[-1], dtype=torch.int64, device=scores.device)
    if scores.numel() == 0:
        return labels
    steps, best = Steps(transitions, layout), scores.unbind(0)
    if start is not None:
        best[0].add_(start[:, None])
    for t in range(1, len(best)):
        n = layout.active[t]
        reached = (upto(best[t - 1], n)[:, None] + steps.into(t, n)).amax(0)
        upto(best[t], n).add_(reached)
    final = at_last(scores, layout).max(0).indices
    label = final[: layout.active[-1]]
    labels[-1, : len(label)] = label
    for t in reversed(range(len(best) - 1)):
        # max and not argmax: the same first index of the largest, at a quarter of the time.
        before = (upto(best[t], len(label)) + steps.towards(label, t + 1)).max(0).indices
        if layout.mask is not None:
            label = torch.where(layout.last > t, before, final)
        elif len(before) < layout.active[t]:
            label = torch.cat([before, final[len(before) : layout.active[t]]])
        else:
            label = before
        labels[t, : len(label)] = label
    return labels if layout.mask is None else torch.where(layout.mask.T, labels, 0)
