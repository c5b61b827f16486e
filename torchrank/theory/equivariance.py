"""The linear maps from lists of documents to scores that treat all documents alike."""

import torch
from torch import Tensor

from torchrank.errors import TorchRankError


def equivariant_linear_maps(length: int, num_features: int) -> Tensor:
    """Compute all linear f with f(P X) = P f(X) for every permutation P, as an orthonormal basis.

    A linear map from ``m × d`` matrices to m scores is ``f(X)_i = Σ_kc W_ikc X_kc``. Equivariance is linear in W, and
    two permutations generate all; the basis spans the null space of their equations, found by singular values. Its
    dimension is 2d (d for one document): the maps are ``f(X) = X a + 1 (1ᵀ X) b``. The paper finds d: its proof loses
    the second part, which adds one number to all scores of a list and so never changes a ranking.

    Args:
        length: m, number of documents, at least 1.
        num_features: d, at least 1. Time and memory grow as (m² d)³ and (m² d)²: this is for small cases.

    Returns:
        ``(dimension, m, m, d)`` float64.

    Raises:
        TorchRankError: a number below 1.

    Source:
        corrects arXiv 1405.0591, theorem 10.

    Example:
        >>> len(equivariant_linear_maps(4, 3))
        6
    """
    if length < 1 or num_features < 1:
        raise TorchRankError(f"length={length}, num_features={num_features} must be at least 1")
    size = length * length * num_features
    identity = torch.eye(size, dtype=torch.float64).reshape(size, length, length, num_features)
    cycle = torch.arange(length).roll(1)
    swap = torch.arange(length)
    swap[: min(2, length)] = swap[: min(2, length)].flip(0)
    equations = [identity[:, p][:, :, p] - identity for p in (cycle, swap)]
    matrix = torch.cat([e.reshape(size, size) for e in equations], dim=1)
    _, singular, right = torch.linalg.svd(matrix.T)
    null: Tensor = right[int((singular > 1e-9).sum()) :]
    return null.reshape(-1, length, length, num_features)


def split_equivariant_map(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Write an equivariant linear map as ``f(X) = X a + 1 (1ᵀ X) b``; its ranking depends on a alone.

    Args:
        weights: ``(m, m, d)`` of an equivariant map, m at least 2.

    Returns:
        a and b, both ``(d,)``.

    Raises:
        TorchRankError: another shape, or a map that is not equivariant.

    Example:
        >>> split_equivariant_map(torch.tensor([[[3.0], [1.0]], [[1.0], [3.0]]]))
        (tensor([2.]), tensor([1.]))
    """
    if weights.ndim != 3 or weights.shape[0] != weights.shape[1] or weights.shape[0] < 2:
        raise TorchRankError(f"weights have shape {tuple(weights.shape)}; a map is (m, m, d) with m of at least 2")
    b = weights[0, 1]
    a = weights[0, 0] - b
    same = torch.eye(len(weights), dtype=weights.dtype)[:, :, None]
    if not torch.allclose(weights, same * a + b, atol=1e-6):
        raise TorchRankError("these weights do not treat all documents alike: they are not an equivariant map")
    return a, b
