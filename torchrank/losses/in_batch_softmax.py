"""Softmax cross-entropy over a batch: each row's item against the other rows' items, corrected by how common they are.

An item that is expected c times in a batch stands there for 1 / c items of the catalogue, so its score loses log c, the
log-Q correction.

Source: Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations" (RecSys 2019), eq. 3
and 4.
"""

import math

import torch
from torch import Tensor

from torchrank.errors import ShapeError
from torchrank.losses._lists import ReducedLoss, reduce_lists
from torchrank.ops.checks import check_tensors
from torchrank.ops.precision import at_least_float32
from torchrank.types import ScoreLipschitz


def in_batch_softmax_loss(
    scores: Tensor, items: Tensor | None = None, log_q: Tensor | None = None, *, correct_positive: bool = True
) -> Tensor:
    """Cross-entropy of a softmax over the batch: each row's positive against the other rows' items.

    Args:
        scores: ``(B, B)``, row b of user b against every row's item, such as ``users @ items.T`` of their vectors; the
            row's own item is on the diagonal. Half precision is computed and returned in float32.
        items: ``(B,)`` integer ids; other rows' copies of a row's own item are left out of the row.
        log_q: ``(B,)`` log of how often each item is expected in a batch, or of its share in the data where
            ``correct_positive``, since a constant then cancels; None leaves popular items pushed down.
        correct_positive: correct the row's own score too, as published; False corrects the others alone, with which
            the sum under the logarithm estimates the catalogue's without bias.

    Returns:
        ``(B,)``, 0 for a row with nothing left to compare with.

    Raises:
        ShapeError: tensors whose shapes do not fit.

    Source: Yi et al. (RecSys 2019), eq. 3 and 4.

    Example:
        >>> in_batch_softmax_loss(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
        tensor([0.1269, 0.1269])
        >>> in_batch_softmax_loss(torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([7, 7]))
        tensor([0., 0.])
    """
    check_tensors({"scores": scores}, items=items, log_q=log_q)
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise ShapeError(f"scores have shape {tuple(scores.shape)}; give (B, B), row b's own item in column b")
    own = scores.diagonal()
    _check_rows("items", items, own)
    _check_rows("log_q", log_q, own)
    logits = at_least_float32(scores)
    own = logits.diagonal()
    diagonal = torch.eye(len(own), dtype=torch.bool, device=scores.device)
    if log_q is not None:
        log_q = log_q.to(logits.dtype)
        moved = logits - log_q
        logits = moved if correct_positive else torch.where(diagonal, logits, moved)
        own = logits.diagonal()
    if items is not None:
        logits = logits.masked_fill((items == items[:, None]) & ~diagonal, -torch.inf)
    return logits.logsumexp(1) - own


def _check_rows(name: str, values: Tensor | None, rows: Tensor) -> None:
    if values is not None and values.shape != rows.shape:
        raise ShapeError(f"{name} has shape {tuple(values.shape)}, there are {len(rows)} rows; give one a row")


class InBatchSoftmaxLoss(ReducedLoss):
    """The softmax cross-entropy over a batch, as :func:`in_batch_softmax_loss`.

    Args:
        correct_positive: correct the row's own score too.
        reduction: ``"mean"`` (Σ wℓ / Σ w over the rows), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> InBatchSoftmaxLoss()(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
        tensor(0.1269)
    """

    def __init__(self, *, correct_positive: bool = True, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.correct_positive = correct_positive

    def forward(
        self, scores: Tensor, items: Tensor | None = None, log_q: Tensor | None = None, weights: Tensor | None = None
    ) -> Tensor:
        """Reduce the loss of each row.

        Args:
            scores: ``(B, B)``.
            items: ``(B,)`` or None.
            log_q: ``(B,)`` or None.
            weights: ``(B,)`` of the rows, or None for ones.

        Returns:
            a scalar, or ``(B,)`` for ``reduction="none"``.
        """
        each = in_batch_softmax_loss(scores, items, log_q, correct_positive=self.correct_positive)
        return reduce_lists(each, None, weights, self.reduction)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in a row's ``length`` scores, as `torchrank.theory` asks."""
        return ScoreLipschitz(2.0, math.sqrt(2)) if length > 1 else ScoreLipschitz(0.0, 0.0)
