"""BPR-max: the wanted next item against the best of sampled others.

Source: Hidasi and Karatzoglou, "Recurrent Neural Networks with Top-k Gains for Session-based Recommendations" (arXiv
1706.03847).
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from torchrank.errors import check_number
from torchrank.losses._sampled import SampledLoss, prepare_samples, sample_log_weights


def bpr_max_loss(positive: Tensor, negative: Tensor, mask: Tensor | None = None, *, score_l2: float = 1.0) -> Tensor:
    """Compute −log Σ_j softmax_j(s) σ(s_i − s_j) + λ Σ_j softmax_j(s) s_j² over the sampled items j.

    The softmax is the probability that j is the best sample, so the first term is minus the logarithm of the
    probability that the wanted item is above the best sample.

    Args:
        positive: ``(...)`` score s_i of the wanted item; half precision is computed and returned in float32.
        negative: ``(..., S)`` scores s_j of the sampled items.
        mask: ``(..., S)`` boolean, True where a sample counts; None where all do.
        score_l2: λ, at least 0.

    Returns:
        ``(...)``, one value a row; 0 without a sample.

    Raises:
        ShapeError: tensors whose shapes do not fit.
        TorchRankError: λ below 0 or not finite.

    Source: arXiv 1706.03847, the ranking-max losses.

    Example:
        >>> bpr_max_loss(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))  # log 2
        tensor([0.6931])
    """
    check_number("score_l2", score_l2, least=0)
    positive, negative, mask, counted = prepare_samples(positive, negative, mask)
    if negative.shape[-1] == 0:
        return (positive[..., None] + negative).sum(-1)  # 0, and so are the gradients of both
    weights = sample_log_weights(negative, mask)
    above = weights + F.logsigmoid(positive[..., None] - negative)
    each = -above.logsumexp(-1) + score_l2 * (weights.exp() * negative.square()).sum(-1)
    return torch.where(counted, each, torch.zeros_like(each))


class BPRMaxLoss(SampledLoss):
    """The loss BPR-max of a batch, as :func:`bpr_max_loss`.

    Args:
        score_l2: λ, at least 0.
        reduction: ``"mean"`` (over rows with a sample), ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction, or λ below 0 or not finite.

    Example:
        >>> BPRMaxLoss()(torch.tensor([0.0]), torch.tensor([[0.0, 0.0]]))
        tensor(0.6931)
    """

    def __init__(self, *, score_l2: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        check_number("score_l2", score_l2, least=0)
        self.score_l2 = score_l2

    def each(self, positive: Tensor, negative: Tensor, mask: Tensor | None) -> Tensor:
        """Return :func:`bpr_max_loss`."""
        return bpr_max_loss(positive, negative, mask, score_l2=self.score_l2)
