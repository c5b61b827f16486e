"""The log-partition function of linear chains and its gradient, the marginals.

The recursion is Viterbi's with log-sum-exp in place of the maximum. Its gradient runs once backwards: the probability
of each pair of neighbouring labels, from the probabilities at the later position and the forward values that are kept.

Two forms of one step give the same numbers. In log space a step takes the exponential of every (label, label, sequence)
triple and stands any scores. With one transition matrix whose entries lie within a bounded range, the step is a matrix
product of scaled probabilities: that form is taken where looking at the range costs nothing (eager, on the CPU).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchrank.ops.chain import one_dtype
from torchrank.ops.chain_checks import check_chain
from torchrank.ops.chain_layout import Layout, Steps, at_last, batch_major, given_order, lay_out, time_major
from torchrank.ops.checks import refuse_transforms, values_can_be_read
from torchrank.ops.once import once_only

# exp(-range) times the smallest normal number must still be far below the rounding error.
_RANGE = {torch.float32: 60.0, torch.float64: 600.0}


def log_partition(
    emissions: Tensor, transitions: Tensor, mask: Tensor | None = None, *, start: Tensor | None = None
) -> Tensor:
    """Logarithm of the sum, over all label sequences, of the exponential of their scores.

    Args:
        emissions: ``(B, T, q)``, as for :func:`torchrank.ops.viterbi`.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        mask: ``(B, T)`` boolean, True on the first positions of each sequence, or None.
        start: ``(q,)`` or None.

    Returns:
        ``(B,)``. The gradient is the marginals, by one hand-written backward pass; it cannot be differentiated again.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: a sequence of length 0, a mask with holes, a real score that is NaN or +inf (eager, CPU).

    Example:
        >>> log_partition(torch.zeros(1, 3, 2), torch.zeros(2, 2)).exp()  # 2³ sequences of score 0
        tensor([8.])
    """
    check_chain(emissions, transitions, mask, start)
    emissions, transitions, start = one_dtype(emissions, transitions, start)
    refuse_transforms("the chain's log-partition")
    value: Tensor = _LogPartition.apply(emissions, transitions, mask, start)  # type: ignore[no-untyped-call] # torch's
    return value


def chain_marginals(
    emissions: Tensor, transitions: Tensor, mask: Tensor | None = None, *, start: Tensor | None = None
) -> Tensor:
    """Probability of each label at each position, under the chain as a conditional random field.

    The expected number of each transition is the gradient of :func:`log_partition` in ``transitions``.

    Args:
        emissions: ``(B, T, q)``, as for :func:`torchrank.ops.viterbi`.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        mask: ``(B, T)`` boolean or None.
        start: ``(q,)`` or None.

    Returns:
        ``(B, T, q)``, rows that sum to 1, all 0 under the mask. No gradient flows through it.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: as for :func:`log_partition`.

    Example:
        >>> chain_marginals(torch.zeros(1, 2, 4), torch.zeros(4, 4))[0, 0]
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    check_chain(emissions, transitions, mask, start)
    with torch.no_grad():
        emissions, transitions, start = one_dtype(emissions, transitions, start)
        layout = lay_out(emissions, mask)
        forward = _forward(emissions, transitions, layout, start)
        probabilities, _ = _backward(forward, transitions, layout, emissions.new_ones(len(emissions)), False)
        return batch_major(probabilities, layout, emissions.shape[1])


class _Forward(NamedTuple):
    """What a forward pass keeps.

    Attributes:
        values: ``(T, q, B)`` log-sum of all sequences that end at a label; scaled form: its softmax over the labels.
        predicted: ``(T, q, B)`` the same before the position's emission was added; scaled form: not normalised.
        total: ``(B,)`` log-partition.
        scaled: which form.
    """

    values: Tensor
    predicted: Tensor
    total: Tensor
    scaled: bool


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, emissions: Tensor, transitions: Tensor, mask: Tensor | None, start: Tensor | None) -> Tensor:
        layout = lay_out(emissions, mask)
        forward = _forward(emissions, transitions, layout, start)
        ctx.save_for_backward(emissions, transitions, start, *forward[:3], layout.order, layout.last, layout.mask)
        ctx.active, ctx.scaled, ctx.length = layout.active, forward.scaled, emissions.shape[1]
        return given_order(forward.total, layout)

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        emissions, transitions, start, values, predicted, total, order, last, mask = ctx.saved_tensors
        layout = Layout(order, last, ctx.active, mask)
        forward = _Forward(values, predicted, total, ctx.scaled)
        with torch.no_grad():
            labels, pairs = _backward(forward, transitions, layout, weight, ctx.needs_input_grad[1])
            of_start = labels[0].sum(1) if ctx.needs_input_grad[3] else None
            of_emissions = batch_major(labels, layout, ctx.length)
        inputs = weight, emissions, transitions, start
        each = [None if g is None else once_only(g, *inputs) for g in (of_emissions, pairs, of_start)]
        return each[0], each[1], None, each[2]


def _forward(emissions: Tensor, transitions: Tensor, layout: Layout, start: Tensor | None) -> _Forward:
    scores = time_major(emissions, layout)
    if start is not None:
        scores[:1] += start[:, None]
    if transitions.ndim == 2 and scores.numel() and values_can_be_read(scores, transitions):
        top = torch.where(_real(layout), scores.amax(1), 0)
        low, high = (float(x) for x in transitions.aminmax())
        if high - low <= _RANGE[scores.dtype] and bool(top.isfinite().all()):
            return _forward_scaled(scores, transitions, layout, top, high)
    return _forward_log(scores, transitions, layout)


def _forward_log(scores: Tensor, transitions: Tensor, layout: Layout) -> _Forward:
    steps = Steps(transitions, layout)
    predicted = torch.zeros_like(scores)
    for t in range(1, len(layout.active)):
        n = layout.active[t]
        predicted[t, :, :n] = (scores[t - 1, :, None, :n] + steps.into(t, n)).logsumexp(0)
        scores[t, :, :n] += predicted[t, :, :n]
    return _Forward(scores, predicted, at_last(scores, layout).logsumexp(0), False)


def _forward_scaled(scores: Tensor, transitions: Tensor, layout: Layout, top: Tensor, high: float) -> _Forward:
    """Rabiner's scaling: a step is a matrix product; the scales taken out add up to the log-partition."""
    weights = (transitions - high).exp()
    values = scores.sub_(top[:, None]).exp_()
    predicted = torch.ones_like(values)
    scale = torch.ones_like(top)
    for t, n in enumerate(layout.active):
        here = values[t, :, :n]
        if t:
            here *= torch.mm(weights, values[t - 1, :, :n], out=predicted[t, :, :n])
        here /= torch.sum(here, 0, out=scale[t, :n])
        values[t, :, n:] = 0
    total = (scale.log() + top).sum(0) + layout.last.to(top.dtype) * high
    return _Forward(values, predicted, total, True)


def _backward(
    forward: _Forward, transitions: Tensor, layout: Layout, weight: Tensor, want_pairs: bool
) -> tuple[Tensor, Tensor | None]:
    """Marginals ``(T, q, B)`` times each sequence's weight, and the expected transitions so weighted.

    From the last position back: the probability of a pair is that of the later label times the share of the earlier
    one in what was predicted for it.
    """
    if layout.order is not None:
        weight = weight.index_select(0, layout.order)
    values, steps = forward.values, Steps(transitions, layout)
    marginals = torch.zeros_like(values)
    pairs = transitions.new_zeros(transitions.shape) if want_pairs else None
    if values.numel() == 0:
        return marginals, pairs
    final = at_last(values, layout)
    final = (final if forward.scaled else final.softmax(0)) * weight
    weights = (transitions - transitions.max()).exp() if forward.scaled else transitions
    shares = torch.zeros_like(values) if forward.scaled else None
    for t in reversed(range(len(layout.active))):
        n = layout.active[t + 1] if t + 1 < len(layout.active) else 0
        marginals[t] = torch.where(layout.last == t, final, 0)
        if not n:
            continue
        if shares is not None:
            torch.div(marginals[t + 1, :, :n], forward.predicted[t + 1, :, :n], out=shares[t + 1, :, :n])
            before = values[t, :, :n] * torch.mm(weights.T, shares[t + 1, :, :n])
        else:
            predicted = forward.predicted[t + 1, :, :n]
            # What nothing leads to has probability 0: any finite value in place of -inf says so without NaN.
            predicted = torch.where(predicted == -torch.inf, 0, predicted)
            pair = (values[t, :, None, :n] + steps.into(t + 1, n) - predicted).exp() * marginals[t + 1, :, :n]
            pair = torch.where(layout.last[:n] > t, pair, 0)
            before = pair.sum(1)
            if pairs is not None and transitions.ndim == 2:
                pairs += pair.sum(-1).T
            elif pairs is not None:
                pairs[:n, t] = pair.permute(2, 1, 0)
        marginals[t, :, :n] += before
    if pairs is not None and shares is not None:
        pairs = weights * torch.bmm(shares[1:], values[:-1].transpose(1, 2)).sum(0)
    elif pairs is not None and transitions.ndim == 4 and layout.order is not None:
        pairs = pairs.index_select(0, layout.order.argsort())
    return marginals, pairs


def _real(layout: Layout) -> Tensor:
    """Which positions are real: ``(T, B)``."""
    return torch.arange(len(layout.active), device=layout.last.device)[:, None] <= layout.last
