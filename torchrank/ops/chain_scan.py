"""The chain's recursions as an associative scan: few steps for long sequences.

One position of a chain maps the scores before it to the scores after it by a ``(q, q)`` matrix whose product is
(max, +), or (log-sum-exp, +), and that product is associative. The positions are cut into blocks of equal length. All
blocks multiply their matrices up at once, position by position; the scores at the start of every block follow from the
blocks' products by log₂(blocks) doublings; then all blocks run at once again, with vectors. That is 2 · block +
log₂(T / block) steps where the loop of :mod:`torchrank.ops.chain` takes T, for O(T q³) work where the loop does
O(T q²): worth it for few long sequences.

Every step is a plain tensor operation and no value is read, so ``torch.export`` takes these functions with a dynamic
number of positions.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.ops.chain import one_dtype, position_scores
from torchrank.ops.chain_checks import check_chain

_BLOCK = 32
# While compiling or exporting the length is a symbol: 2^14 blocks of 32 serve half a million positions.
_TRACED_DOUBLINGS = 14
# A product's (q, q, q, n) candidates are formed for so many numbers at a time, to stay in the processor's cache.
_CACHED = 1 << 18

Reduce = Callable[[Tensor, int], Tensor]


def viterbi_scan(
    emissions: Tensor, transitions: Tensor, mask: Tensor | None = None, *, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Find each chain's best label sequence and its score, as :func:`torchrank.ops.viterbi` does, by a scan.

    The same answers by the same tie rule, but for the rounding of sums taken in another order.

    Args:
        emissions: ``(B, T, q)``, as for :func:`torchrank.ops.viterbi`.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        mask: ``(B, T)`` boolean, True on the first positions of each sequence, or None.
        start: ``(q,)`` or None.

    Returns:
        ``(B, T)`` int64 labels, 0 under the mask, and ``(B,)`` scores, differentiable in all scores.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: as for :func:`torchrank.ops.viterbi`.

    Example:
        >>> emissions = torch.tensor([[[0.5, 0.0], [0.0, 0.5], [0.0, 2.0]]])
        >>> viterbi_scan(emissions, torch.eye(2))
        (tensor([[1, 1, 1]]), tensor([4.5000]))
    """
    check_chain(emissions, transitions, mask, start)
    emissions, transitions, start = one_dtype(emissions, transitions, start)
    with torch.no_grad():
        labels = _best(emissions, transitions, mask, start)
    return labels, position_scores(emissions, transitions, labels, mask, start=start).sum(-1)


def log_partition_scan(
    emissions: Tensor, transitions: Tensor, mask: Tensor | None = None, *, start: Tensor | None = None
) -> Tensor:
    """Logarithm of the sum over all label sequences, as :func:`torchrank.ops.log_partition` gives it, by a scan.

    Args:
        emissions: ``(B, T, q)``, as for :func:`torchrank.ops.viterbi`.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        mask: ``(B, T)`` boolean or None.
        start: ``(q,)`` or None.

    Returns:
        ``(B,)``; differentiable any number of times, for O(T q³) memory a sequence.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: as for :func:`torchrank.ops.viterbi`.

    Example:
        >>> log_partition_scan(torch.zeros(1, 3, 2), torch.zeros(2, 2)).exp()
        tensor([8.])
    """
    check_chain(emissions, transitions, mask, start)
    emissions, transitions, start = one_dtype(emissions, transitions, start)
    if emissions.shape[0] == 0:
        return emissions.sum((1, 2))
    blocks = _cut(emissions, transitions, mask, start)
    _, final = _starts(blocks, torch.logsumexp)
    return final.logsumexp(0)


class _Blocks(NamedTuple):
    """A batch cut into C blocks of S moves, one move into each position but the first.

    Attributes:
        first: ``(q, B)`` scores at the first position.
        scores: ``(S, q, C, B)`` emissions.
        moves: ``(from, to, 1, 1)`` or ``(S, from, to, C, B)`` transitions.
        real: ``(S, C, B)`` or ``(S, C, 1)``, False where a move leads under the mask or past the end
            and changes nothing.
    """

    first: Tensor
    scores: Tensor
    moves: Tensor
    real: Tensor

    def move(self, step: int) -> Tensor:
        return self.moves if self.moves.ndim == 4 else self.moves[step]


def _cut(emissions: Tensor, transitions: Tensor, mask: Tensor | None, start: Tensor | None) -> _Blocks:
    _, length, q = emissions.shape
    first = emissions[:, 0].T if start is None else emissions[:, 0].T + start[:, None]
    # A traced length must not decide whether there is one block or several: there, two more are always there.
    count = (length - 1) // _BLOCK + 3 if torch.compiler.is_compiling() else max(1, -(-(length - 1) // _BLOCK))
    place, block = (torch.arange(n, device=first.device) for n in (_BLOCK, count))
    position = 1 + place + _BLOCK * block[:, None]
    into = position.clamp(max=length - 1)
    scores = _in_blocks(emissions, into)
    real = (position < length).T[..., None]
    if mask is not None:
        real = real & _in_blocks(mask, into)
    # A NaN in what changes nothing would be dropped by a later where, but not from its gradient.
    scores = torch.where(real[:, None], scores, 0)
    if transitions.ndim == 2 or length == 1:
        moves = transitions.T if transitions.ndim == 2 else scores.new_zeros(q, q)
        return _Blocks(first, scores, moves[..., None, None], real)
    moves = _in_blocks(transitions.transpose(2, 3), into - 1)
    return _Blocks(first, scores, torch.where(real[:, None, None], moves, 0), real)


def _in_blocks(values: Tensor, index: Tensor) -> Tensor:
    """``(B, T, …)`` at positions ``(C, S)`` to ``(S, …, C, B)``."""
    cut = values[:, index]
    return cut.permute(2, *range(3, cut.ndim), 1, 0).contiguous()


def _product(left: Tensor, right: Tensor, reduce: Reduce) -> Tensor:
    """``(x, mid, C, B)`` times ``(mid, to, C, B)`` to ``(x, to, C, B)``: reduce over mid of the sums."""
    _, _, blocks, batch = left.shape
    one = right.shape[0] * right.shape[1] * batch
    if torch.compiler.is_compiling() or one * len(left) * blocks <= _CACHED:
        return reduce(left[:, :, None] + right, 1)
    if one * blocks > _CACHED and blocks > 1:
        size = max(1, _CACHED // one)
        rights = torch.split(right, size, 2) if right.shape[2] > 1 else [right] * blocks
        return torch.cat([_product(a, b, reduce) for a, b in zip(torch.split(left, size, 2), rights, strict=False)], 2)
    rows = max(1, _CACHED // (one * blocks))
    return torch.cat([reduce(part[:, :, None] + right, 1) for part in torch.split(left, rows)])


def _doublings(blocks: int) -> range:
    return range(_TRACED_DOUBLINGS if torch.compiler.is_compiling() else (blocks - 1).bit_length())


def _starts(blocks: _Blocks, reduce: Reduce) -> tuple[Tensor, Tensor]:
    """Scores ``(q, C, B)`` at the position before each block, and ``(q, B)`` after the last block."""
    q, count = blocks.scores.shape[1], blocks.scores.shape[2]
    label = torch.arange(q, device=blocks.scores.device)
    same = torch.zeros_like(blocks.scores[0]).masked_fill((label[:, None] != label)[..., None, None], -torch.inf)
    total = torch.where(blocks.real[0], blocks.move(0) + blocks.scores[0], same)
    for s in range(1, _BLOCK):
        moved = _product(total, blocks.move(s), reduce) + blocks.scores[s]
        total = torch.where(blocks.real[s], moved, total)
    block = torch.arange(count, device=total.device)
    for k in _doublings(count):
        before = block - (1 << k)
        joined = _product(total.index_select(2, before.clamp(min=0)), total, reduce)
        total = torch.where((before >= 0)[:, None], joined, total)
    after = reduce(blocks.first[:, None, None] + total, 0)
    return torch.cat([blocks.first[:, None], after[:, :-1]], 1), after[:, -1]


def _best(emissions: Tensor, transitions: Tensor, mask: Tensor | None, start: Tensor | None) -> Tensor:
    batch, length, q = emissions.shape
    if batch == 0:
        return torch.zeros(batch, length, dtype=torch.int64, device=emissions.device)
    blocks = _cut(emissions, transitions, mask, start)
    scores, _ = _starts(blocks, torch.amax)
    label = torch.arange(q, device=emissions.device)[:, None, None]
    pointers = []
    for s in range(_BLOCK):
        moved, pointer = (scores[:, None] + blocks.move(s)).max(0)
        scores = torch.where(blocks.real[s], moved + blocks.scores[s], scores)
        pointers.append(torch.where(blocks.real[s], pointer, label))
    final = scores[:, -1].max(0).indices
    # For every label a block could end with: the labels inside it, and the one before it.
    inside: list[Tensor] = []
    at = label.expand_as(pointers[0])
    for pointer in reversed(pointers):
        inside.append(at)
        at = pointer.gather(0, at)
    block = torch.arange(at.shape[1], device=at.device)
    for k in _doublings(at.shape[1]):
        after = block + (1 << k)
        joined = at.gather(0, at.index_select(1, after.clamp(max=at.shape[1] - 1)))
        at = torch.where((after < at.shape[1])[:, None], joined, at)
    begin = at.gather(0, final.expand(1, *at.shape[1:]))[0]
    end = torch.cat([begin[1:], final[None]])
    chosen = torch.stack(inside[::-1]).gather(1, end.expand(_BLOCK, 1, *end.shape))[:, 0]
    move = torch.arange(length, device=at.device) - 1
    labels = torch.where(move[:, None] < 0, begin[0], chosen[move % _BLOCK, move.clamp(min=0) // _BLOCK]).T
    return labels.contiguous() if mask is None else torch.where(mask, labels, 0)
