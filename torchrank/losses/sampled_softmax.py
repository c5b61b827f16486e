"""Cross-entropy of the wanted item among itself and sampled others.

Source: Hidasi and Karatzoglou, "Recurrent Neural Networks with Top-k Gains for Session-based Recommendations" (arXiv
1706.03847) for next items; Bengio and Senécal, "Adaptive Importance Sampling to
Accelerate Training of a Neural Probabilistic Language Model" (2008).
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from torchrank.errors import ShapeError
from torchrank.losses._lists import ReducedLoss
from torchrank.losses._sampled import prepare_samples, reduce_rows
from torchrank.ops.checks import check_tensors
from torchrank.ops.masked import fill_padding


def sampled_softmax_loss(
    positive: Tensor,
    negative: Tensor,
    mask: Tensor | None = None,
    *,
    log_q: Tensor | None = None,
    negative_log_q: Tensor | None = None,
) -> Tensor:
    """Compute −log(exp(s_i) / (exp(s_i) + Σ_j exp(s_j))) over the sampled items j, each score less its log Q.

    Without a correction the best scores are log-probabilities of the next item less the log-probabilities of being
    sampled: samples drawn by popularity take popularity out of the scores, samples drawn alike leave it in. An item
    expected c times in the sample stands there for 1 / c items of the catalogue, and log Q = log c puts it back.

    Args:
        positive: ``(...)`` score s_i of the wanted item; half precision is computed and returned in float32.
        negative: ``(..., S)`` scores s_j of the sampled items.
        mask: ``(..., S)`` boolean, True where a sample counts; None where all do. Make it False where the sampled item
            is the row's own (an accidental hit): ``sampled != items[:, None]``.
        log_q: ``(...)`` log of the wanted items' expected counts, as published; None corrects the sample alone, with
            which exp(s_i) + Σ_j exp(s_j − log Q_j) estimates the catalogue's sum without bias.
        negative_log_q: ``(..., S)`` or ``(S,)`` log of the sampled items' expected counts. A constant cancels where
            both are given.

    Returns:
        ``(...)``, one value a row; 0 without a sample.

    Raises:
        ShapeError: tensors whose shapes do not fit.

    Source: arXiv 1706.03847; the correction: Bengio and Senécal (2008).

    Example:
        >>> sampled_softmax_loss(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))  # log 3
        tensor([1.0986])
    """
    positive, negative, mask, counted = prepare_samples(positive, negative, mask)
    positive, negative = _corrected("log_q", log_q, positive), _corrected("negative_log_q", negative_log_q, negative)
    if negative.shape[-1] == 0:
        return (positive[..., None] + negative).sum(-1)  # 0, and so are the gradients of both
    others = fill_padding(negative, mask, -torch.inf).logsumexp(-1)
    each = F.softplus(others - positive, threshold=80)
    return torch.where(counted, each, torch.zeros_like(each))


def _corrected(name: str, log_q: Tensor | None, scores: Tensor) -> Tensor:
    """Take log Q from scores of the same shape, or its last axis alone."""
    if log_q is None:
        return scores
    check_tensors({"scores": scores, name: log_q})
    if log_q.shape != scores.shape and not (name == "negative_log_q" and log_q.shape == scores.shape[-1:]):
        raise ShapeError(f"{name} has shape {tuple(log_q.shape)}, its scores {tuple(scores.shape)}; give one a score")
    return scores - log_q.to(scores.dtype)


class SampledSoftmaxLoss(ReducedLoss):
    """The sampled cross-entropy of a batch, as :func:`sampled_softmax_loss`.

    Args:
        reduction: ``"mean"`` (over rows with a sample), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> SampledSoftmaxLoss()(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))
        tensor(1.0986)
    """

    def forward(
        self,
        positive: Tensor,
        negative: Tensor,
        mask: Tensor | None = None,
        weights: Tensor | None = None,
        *,
        log_q: Tensor | None = None,
        negative_log_q: Tensor | None = None,
    ) -> Tensor:
        """Reduce the loss of each row.

        Args:
            positive: ``(...)`` score of the wanted item.
            negative: ``(..., S)`` scores of the sampled items.
            mask: ``(..., S)`` boolean, True where a sample counts; None where all do.
            weights: ``(...)`` at least 0, or None for ones.
            log_q: ``(...)``.
            negative_log_q: ``(..., S)`` or ``(S,)``.

        Returns:
            a scalar, or ``(...)`` for ``reduction="none"``.
        """
        each = sampled_softmax_loss(positive, negative, mask, log_q=log_q, negative_log_q=negative_log_q)
        return reduce_rows(each, negative, mask, weights, self.reduction)
