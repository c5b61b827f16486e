"""Which weights make the SLAM loss bound 1 − AP from above, and that v^MAP are the least of them."""

import torch
from torch import Tensor

from torchrank.errors import TorchRankError


def tight_map_weights(relevant: int, length: int) -> Tensor:
    """v^MAP of the relevant documents of a list: ``(m − r) / (r (m − r + i))``, i = 1 … r, falling.

    Args:
        relevant: r, number of relevant documents.
        length: m, number of documents.

    Returns:
        ``(r,)`` float64.

    Raises:
        TorchRankError: not ``0 ≤ r ≤ m``.

    Source:
        arXiv 1405.0591, eq. 6.

    Example:
        >>> tight_map_weights(2, 4)
        tensor([0.3333, 0.2500], dtype=torch.float64)
    """
    if not 0 <= relevant <= length:
        raise TorchRankError(f"relevant={relevant} must lie between 0 and length={length}")
    position = torch.arange(1, relevant + 1, dtype=torch.float64)
    others = length - relevant
    return others / (relevant * (others + position))


def bounds_average_precision(weights: Tensor, length: int) -> Tensor:
    """Say whether the SLAM loss with these weights is at least 1 − AP for all scores.

    It is exactly when every k of the relevant documents' weights sum to at least the k smallest of v^MAP, for every k.
    So v^MAP is minimal (none of its weights can fall alone) and no bounding vector sums to less; it does *not* lie
    below every bounding vector, as the paper has it: of four documents, two relevant, (1/3, 1/4) and (1/4, 1/3) both
    bound.

    Assumptions: binary relevance, Δ = 1, ties counted against the ranker; the irrelevant documents' weights have no
    effect.

    Args:
        weights: ``(..., r)`` weights of the relevant documents, in any order.
        length: m, number of documents of the list.

    Returns:
        ``(...)`` boolean.

    Raises:
        TorchRankError: more weights than documents.

    Source:
        corrects arXiv 1405.0591, eq. 8; proof in ``docs/theory-relevance.md``.

    Example:
        >>> bounds_average_precision(torch.tensor([[1 / 4, 1 / 3], [0.3, 0.28], [0.3, 0.24]], dtype=torch.float64), 4)
        tensor([ True, False, False])
    """
    least = tight_map_weights(weights.shape[-1], length).to(weights)
    # The k smallest of both sides: cumulative sums of the sorted weights, up to rounding.
    slack = weights.sort(-1).values.cumsum(-1) - least.flip(-1).cumsum(-1)
    return (slack >= -8 * torch.finfo(weights.dtype).eps).all(-1)
