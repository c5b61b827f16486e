"""BPR: the logistic loss of (preferred, other) pairs of scores.

Source: Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback" (arXiv 1205.2618); SAROS (arXiv
1902.08495) sums it over blocks with weights 1 / (|Π| |N|).
"""

import math

from torch import Tensor

from torchrank.errors import ShapeError
from torchrank.losses._lists import ReducedLoss, reduce_lists
from torchrank.ops.checks import check_tensors
from torchrank.ops.precision import at_least_float32, softplus
from torchrank.types import ScoreLipschitz


def bpr_loss(positive: Tensor, negative: Tensor, weights: Tensor | None = None) -> Tensor:
    """Pair loss log(1 + exp(s⁻ − s⁺)), times the pair's weight.

    Args:
        positive: ``(P,)`` score of the preferred item of each pair; half precision is computed and returned in float32.
        negative: ``(P,)`` score of the other item.
        weights: ``(P,)`` pair weights such as 1 / (|Π| |N|); None for ones.

    Returns:
        ``(P,)``, one value per pair.

    Raises:
        ShapeError: tensors whose shapes differ.

    Example:
        >>> import torch
        >>> bpr_loss(torch.tensor([0.0, -100.0]), torch.tensor([0.0, 100.0]))
        tensor([  0.6931, 200.0000])
    """
    check_tensors({"positive": positive, "negative": negative}, weights=weights)
    if positive.shape != negative.shape:
        raise ShapeError(f"positive has shape {tuple(positive.shape)}, negative {tuple(negative.shape)}; one a pair")
    each = softplus(at_least_float32(negative) - at_least_float32(positive))
    if weights is None:
        return each
    if weights.shape != each.shape:
        raise ShapeError(f"weights have shape {tuple(weights.shape)}, there are {tuple(each.shape)} pairs")
    return each * weights.to(each.dtype)


class BPRLoss(ReducedLoss):
    """The BPR loss of a batch of pairs, as :func:`bpr_loss`.

    Args:
        reduction: ``"mean"`` (Σ wℓ / Σ w, 0 for no pairs), ``"sum"`` (Σ wℓ; with weights 1 / (|Π| |N|) the sum over
            blocks of each block's mean) or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> import torch
        >>> BPRLoss()(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 0.0]))
        tensor(0.6931)
    """

    def forward(self, positive: Tensor, negative: Tensor, weights: Tensor | None = None) -> Tensor:
        """Reduce the loss of each pair.

        Args:
            positive: ``(P,)``.
            negative: ``(P,)``.
            weights: ``(P,)`` or None.

        Returns:
            a scalar, or ``(P,)`` for ``reduction="none"``.
        """
        each = bpr_loss(positive, negative)
        return reduce_lists(each, None, weights, self.reduction)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        Of pair losses whose weights sum to 1, in the scores of the ``length`` items they are between.
        """
        return ScoreLipschitz(2.0, math.sqrt(2)) if length > 1 else ScoreLipschitz(0.0, 0.0)
