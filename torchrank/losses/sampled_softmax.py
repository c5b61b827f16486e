"""Cross-entropy of the wanted item among itself and sampled others.

Source: Hidasi and Karatzoglou, "Recurrent Neural Networks with Top-k Gains for Session-based Recommendations" (arXiv
1706.03847) for next items; Bengio and Senécal, "Adaptive Importance Sampling to
Accelerate Training of a Neural Probabilistic Language Model" (2008).
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from torchrank.losses._sampled import SampledLoss, prepare_samples
from torchrank.ops.masked import fill_padding


def sampled_softmax_loss(positive: Tensor, negative: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute −log(exp(s_i) / (exp(s_i) + Σ_j exp(s_j))) over the sampled items j.

    The best scores are log-probabilities of the next item less the log-probabilities of being sampled: samples drawn
    by popularity take popularity out of the scores, samples drawn alike leave it in.

    Args:
        positive: ``(...)`` score s_i of the wanted item; half precision is computed and returned in float32.
        negative: ``(..., S)`` scores s_j of the sampled items.
        mask: ``(..., S)`` boolean, True where a sample counts; None where all do.

    Returns:
        ``(...)``, one value a row; 0 without a sample.

    Raises:
        ShapeError: tensors whose shapes do not fit.

    Source: arXiv 1706.03847.

    Example:
        >>> sampled_softmax_loss(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))  # log 3
        tensor([1.0986])
    """
    positive, negative, mask, counted = prepare_samples(positive, negative, mask)
    if negative.shape[-1] == 0:
        return negative.sum(-1)
    others = fill_padding(negative, mask, -torch.inf).logsumexp(-1)
    each = F.softplus(others - positive, threshold=80)
    return torch.where(counted, each, torch.zeros_like(each))


class SampledSoftmaxLoss(SampledLoss):
    """The sampled cross-entropy of a batch, as :func:`sampled_softmax_loss`.

    Args:
        reduction: ``"mean"`` (over rows with a sample), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> SampledSoftmaxLoss()(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))
        tensor(1.0986)
    """

    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        """Return :func:`sampled_softmax_loss`."""
        return sampled_softmax_loss(positive, negative, mask)
