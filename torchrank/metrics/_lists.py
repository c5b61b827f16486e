"""What all measures share: the checks at the boundary, the policies for ties and empty lists, the ranking."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from torchrank.errors import DataError, check_option
from torchrank.ops.checks import check_lists, check_relevance, check_scores, values_can_be_read
from torchrank.ops.masked import fill_padding
from torchrank.ops.order import best_first, key_codes, key_flags, key_positions, ranked_keys

TIES = ("stable", "mean", "pessimistic", "optimistic")
EMPTIES = ("zero", "one", "skip")

#: documents measured at a time on a CPU, so that the sort keys stay in its cache
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Lists:
    """Ranked lists.

    Attributes:
        keys: ``(N, L)`` the ranking, or ``(N, depth)`` the ranks of it that are read, see :mod:`torchrank.ops.order`;
            the flag says that a document is relevant.
        relevance: ``(N, L)`` not in ranked order; floating point, 0 where there is no document.
        mask: ``(N, L)`` belongs to ``relevance``; None when all documents are real.
        mean: whether ties are to be averaged over.
    """

    keys: Tensor
    relevance: Tensor
    mask: Tensor | None
    mean: bool

    @property
    def length(self) -> int:
        """The number of places ``L``, padding included."""
        return self.relevance.shape[-1]

    @property
    def sizes(self) -> Tensor:
        """``(N,)`` the number of real documents, in the dtype of the relevance."""
        if self.mask is None:
            return self.relevance.new_full(self.relevance.shape[:-1], self.length)
        return self.mask.sum(-1).to(self.relevance.dtype)

    def cut(self, k: int | None) -> int:
        """The places that count at cut-off ``k``."""
        return self.length if k is None else min(k, self.length)

    def hits(self) -> Tensor:
        """``(N, depth)`` 1 where the document of that rank is relevant, else 0."""
        return key_flags(self.keys).to(self.relevance.dtype)

    def grades(self, depth: int) -> Tensor:
        """``(N, depth)`` the relevance of the documents ranked first."""
        return self.relevance.gather(-1, key_positions(self.keys[..., :depth]))

    def codes(self) -> Tensor:
        """``(N, L)`` integers by rank, equal where scores are."""
        return key_codes(self.keys)


#: values of N lists, and on which of them the measure is defined at all
Measured = tuple[Tensor, Tensor]


def per_list(
    measure: Callable[[Lists], Measured],
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None,
    *,
    ties: str,
    empty: str,
    most: float = torch.inf,
    depth: int | None = None,
) -> Tensor:
    """Check, rank and measure lists.

    Args:
        measure: the values ``(N,)`` of N ranked lists, and a boolean ``(N,)``: False where nothing can be measured.
        scores: ``(..., L)``.
        relevance: ``(..., L)``.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: ``"zero"``, ``"one"`` or ``"skip"``.
        most: the highest relevance there is.
        depth: ranks that the measure reads, when ties are not averaged over; None for all.

    Returns:
        ``(...)``: float64 if the scores or the relevance are, else float32.

    Raises:
        TorchRankError: a bad option.
        ShapeError: shapes that do not fit.
        DataError: NaN scores; relevance that is negative, not finite or above ``most`` (eager CPU tensors only).
    """
    check_option("ties", ties, TIES)
    check_option("empty", empty, EMPTIES)
    check_lists(scores, relevance, mask)
    lead, length = scores.shape[:-1], scores.shape[-1]
    scores, relevance = scores.detach(), relevance.detach().to(value_dtype(scores, relevance))
    if length == 0:  # one place without a document, for code that looks at the first
        length = 1
        scores, relevance = scores.new_zeros((*lead, 1)), relevance.new_zeros((*lead, 1))
        mask = torch.zeros_like(scores, dtype=torch.bool)
    table = (
        scores.reshape(-1, length),
        relevance.reshape(-1, length),
        None if mask is None else mask.reshape(-1, length),
    )
    rows = max(1, _CHUNK // length if values_can_be_read(scores) else len(table[0]))
    values, defined = [], []
    for start in range(0, max(1, len(table[0])), rows):
        part = slice(start, start + rows)
        part_mask = None if table[2] is None else table[2][part]
        part_scores = fill_padding(table[0][part], part_mask, 0)
        part_relevance = fill_padding(table[1][part], part_mask, 0)
        try:
            check_scores(part_scores, None)
        except DataError:
            check_scores(scores, mask)  # raises too, and counts the lists from the first
        check_relevance(part_relevance, None, most=most)
        value, some = measure(_ranked(part_scores, part_relevance, part_mask, ties, depth))
        values.append(value)
        defined.append(some)
    otherwise = {"zero": 0.0, "one": 1.0, "skip": float("nan")}[empty]
    return torch.where(torch.cat(defined), torch.cat(values), otherwise).reshape(lead)


def value_dtype(scores: Tensor, relevance: Tensor) -> torch.dtype:
    """Return the dtype that values are computed in: float64 if either tensor is, else float32."""
    return torch.float64 if torch.float64 in (scores.dtype, relevance.dtype) else torch.float32


def _ranked(scores: Tensor, relevance: Tensor, mask: Tensor | None, ties: str, depth: int | None) -> Lists:
    if ties in ("pessimistic", "optimistic"):  # among equals the input order counts: put it as the policy says
        order = best_first(relevance if ties == "optimistic" else -relevance, mask)
        scores, relevance = scores.gather(-1, order), relevance.gather(-1, order)
        mask = None if mask is None else mask.gather(-1, order)
    wanted = None if depth is None or ties == "mean" else min(depth, scores.shape[-1])
    keys = ranked_keys(scores, relevance, mask, depth=wanted)
    return Lists(keys, relevance, mask, mean=ties == "mean")
