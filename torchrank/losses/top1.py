"""TOP1 and TOP1-max: the wanted next item against sampled others, with the others' scores held near zero.

Source: Hidasi et al., "Session-based Recommendations with Recurrent Neural Networks" (arXiv 1511.06939);
Hidasi and Karatzoglou, "Recurrent Neural Networks with Top-k Gains for Session-based Recommendations" (arXiv
1706.03847).
"""

import torch
from torch import Tensor

from torchrank.losses._sampled import SampledLoss, prepare_samples, sample_log_weights
from torchrank.ops.masked import masked_mean


def top1_loss(positive: Tensor, negative: Tensor, mask: Tensor | None = None) -> Tensor:
    """Average σ(s_j − s_i) + σ(s_j²) over the sampled items j: the share of them above the wanted one, smoothed.

    The second term draws the samples' scores to 0; it is never below 1/2.

    Args:
        positive: ``(...)`` score s_i of the wanted item; half precision is computed and returned in float32.
        negative: ``(..., S)`` scores s_j of the sampled items.
        mask: ``(..., S)`` boolean, True where a sample counts; None where all do.

    Returns:
        ``(...)``, one value a row; 0 without a sample.

    Raises:
        ShapeError: tensors whose shapes do not fit.

    Source: arXiv 1511.06939, the loss TOP1.

    Example:
        >>> top1_loss(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))  # 1/2 + 1/2
        tensor([1.])
    """
    positive, negative, mask, counted = prepare_samples(positive, negative, mask)
    values = (negative - positive[..., None]).sigmoid() + negative.square().sigmoid()
    each = masked_mean(values, mask)
    return torch.where(counted, each, torch.zeros_like(each))


def top1_max_loss(positive: Tensor, negative: Tensor, mask: Tensor | None = None) -> Tensor:
    """Weigh TOP1's terms by the samples' softmax, Σ_j softmax_j(s) (σ(s_j − s_i) + σ(s_j²)).

    Samples far below the others no longer take part, so that more samples do not dilute the gradient.

    Args:
        positive: ``(...)`` score s_i of the wanted item; half precision is computed and returned in float32.
        negative: ``(..., S)`` scores s_j of the sampled items.
        mask: ``(..., S)`` boolean, True where a sample counts; None where all do.

    Returns:
        ``(...)``, one value a row; 0 without a sample.

    Raises:
        ShapeError: tensors whose shapes do not fit.

    Source: arXiv 1706.03847, the ranking-max losses.

    Example:
        >>> top1_max_loss(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))
        tensor([1.])
    """
    positive, negative, mask, counted = prepare_samples(positive, negative, mask)
    values = (negative - positive[..., None]).sigmoid() + negative.square().sigmoid()
    each = (sample_log_weights(negative, mask).exp() * values).sum(-1)
    return torch.where(counted, each, torch.zeros_like(each))


class TOP1Loss(SampledLoss):
    """The loss TOP1 of a batch, as :func:`top1_loss`: the one GRU4Rec was published with.

    Args:
        reduction: ``"mean"`` (over rows with a sample), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> TOP1Loss()(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))
        tensor(1.)
    """

    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        """Return :func:`top1_loss`."""
        return top1_loss(positive, negative, mask)


class TOP1MaxLoss(SampledLoss):
    """The loss TOP1-max of a batch, as :func:`top1_max_loss`.

    Args:
        reduction: ``"mean"`` (over rows with a sample), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> TOP1MaxLoss()(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))
        tensor(1.)
    """

    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        """Return :func:`top1_max_loss`."""
        return top1_max_loss(positive, negative, mask)
