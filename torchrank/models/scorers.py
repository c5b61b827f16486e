"""Scorers of documents: a list's features to one score a document.

Every scorer takes ``(..., L, d)`` features and a ``(..., L)`` mask and returns ``(..., L)`` scores. All are
permutation-equivariant, and what lies under the mask changes nothing, NaN included, neither in the scores of the real
documents nor in the gradient; scores under the mask are finite and have no meaning.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchrank.errors import ShapeError, TorchRankError, check_count, check_number, check_type, room_for
from torchrank.ops.checks import check_tensors


def _real_features(features: Tensor, mask: Tensor | None, num_features: int, dtype: torch.dtype) -> Tensor:
    """Check the shapes and write zeros over padding, so that NaN there reaches no weight's gradient."""
    check_tensors({"features": features}, mask=mask)
    if features.ndim < 2 or features.shape[-1] != num_features:
        raise ShapeError(
            f"features have shape {tuple(features.shape)}, the scorer was made for (..., L, {num_features}); "
            f"give the scorer the data's num_features"
        )
    if not features.is_floating_point():
        raise ShapeError(f"features have dtype {features.dtype}; give floating point, such as features.float()")
    device = features.device.type
    mixed = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    if features.dtype != dtype and not mixed and not torch.compiler.is_compiling():
        raise ShapeError(f"features have dtype {features.dtype}, the scorer {dtype}; make both the same")
    if mask is None:
        return features
    if mask.shape != features.shape[:-1]:
        raise ShapeError(f"mask has shape {tuple(mask.shape)}, it must be {tuple(features.shape[:-1])}")
    if mask.dtype != torch.bool:
        raise ShapeError(f"mask has dtype {mask.dtype}; make it boolean, True where a document is real")
    return torch.where(mask[..., None], features, features.new_zeros(()))


def _positive(**values: int) -> None:
    for name, value in values.items():
        check_count(name, value)


def _probability(dropout: float) -> None:
    check_number("dropout", dropout, least=0)
    if not 0 <= dropout < 1:
        raise TorchRankError(f"dropout={dropout} must lie in [0, 1)")


class LinearScorer(nn.Module):
    """Score by one weight a feature, ``x·w``, starting at w = 0.

    The bias adds one number to every score of a list: no ranking depends on it, and no pairwise or listwise loss.

    Args:
        num_features: d.
        bias: add a bias, for pointwise losses.

    Example:
        >>> scorer = LinearScorer(3)
        >>> scorer(torch.ones(2, 4, 3)).shape
        torch.Size([2, 4])

    Source: Chaudhuri & Tewari (arXiv 1405.0591), §3: linear maps from lists to scores that commute with permutations.
    """

    def __init__(self, num_features: int, bias: bool = False) -> None:
        super().__init__()
        _positive(num_features=num_features)
        self.num_features = num_features
        with room_for(num_features=num_features):
            self.weight = nn.Parameter(torch.zeros(num_features))
        self.offset = nn.Parameter(torch.zeros(())) if bias else None
        self.bias = bias

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Score documents.

        Args:
            features: ``(..., L, d)``.
            mask: ``(..., L)`` boolean, True where a document is real.

        Returns:
            ``(..., L)``.

        Raises:
            ShapeError: shapes that do not fit.
        """
        scores = _real_features(features, mask, self.num_features, self.weight.dtype) @ self.weight
        return scores if self.offset is None else scores + self.offset


class MLPScorer(nn.Module):
    """Score each document by a multilayer perceptron of its own features.

    Args:
        num_features: d.
        hidden: widths of the hidden layers.
        dropout: probability that a hidden unit is dropped in training.

    Example:
        >>> MLPScorer(3, hidden=(8, 4))(torch.ones(2, 5, 3)).shape
        torch.Size([2, 5])
    """

    def __init__(self, num_features: int, hidden: Sequence[int] = (64, 32), *, dropout: float = 0.0) -> None:
        super().__init__()
        check_type("hidden", hidden, Sequence, "widths of layers, such as (64, 32)")
        sizes = {"num_features": num_features, **{f"hidden[{i}]": width for i, width in enumerate(hidden)}}
        _positive(**sizes)
        _probability(dropout)
        self.num_features = num_features
        self.hidden = tuple(hidden)
        self.dropout = dropout
        stack: list[nn.Module] = []
        widths = [num_features, *hidden]
        with room_for(**sizes):
            for inner, outer in pairwise(widths):
                stack += [nn.Linear(inner, outer), nn.ReLU(), nn.Dropout(dropout)]
            self.network = nn.Sequential(*stack, nn.Linear(widths[-1], 1))

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Score documents.

        Args:
            features: ``(..., L, d)``.
            mask: ``(..., L)`` boolean, True where a document is real.

        Returns:
            ``(..., L)``.

        Raises:
            ShapeError: shapes that do not fit.
        """
        scores: Tensor = self.network(_real_features(features, mask, self.num_features, next(self.parameters()).dtype))
        return scores.squeeze(-1)


class AttentionScorer(nn.Module):
    """Score each document in sight of the whole list, by masked self-attention without positions.

    Pre-norm transformer blocks over the list; the order of the input carries no information, so permuting the documents
    permutes the scores. Beside the blocks runs a linear path ``x·w``, and the blocks' output layer starts at zero: at
    the start every score is 0, as the linear scorer's are, and attention adds what the list's context explains.

    Args:
        num_features: d.
        dim: width of the blocks, divisible by ``heads``.
        heads: attention heads.
        layers: number of blocks.
        dropout: probability of dropping a unit of each block's two branches in training.

    Example:
        >>> AttentionScorer(3, dim=8, heads=2, layers=1)(torch.ones(2, 5, 3)).shape
        torch.Size([2, 5])

    Source: Pobrotyn et al., "Context-Aware Learning to Rank with Self-Attention" (arXiv 2005.10084), without positions.
    """

    def __init__(
        self, num_features: int, *, dim: int = 32, heads: int = 2, layers: int = 2, dropout: float = 0.1
    ) -> None:
        super().__init__()
        _positive(num_features=num_features, dim=dim, heads=heads, layers=layers)
        _probability(dropout)
        if dim % heads:
            raise TorchRankError(f"dim={dim} is not divisible by heads={heads}")
        self.num_features = num_features
        self.dim = dim
        self.heads = heads
        self.layers = layers
        self.dropout = dropout
        with room_for(num_features=num_features, dim=dim, layers=layers):
            self.linear = nn.Parameter(torch.zeros(num_features))
            self.enter = nn.Linear(num_features, dim)
            self.blocks = nn.ModuleList(_Block(dim, heads, dropout) for _ in range(layers))
            self.norm = nn.LayerNorm(dim)
            self.leave = nn.Linear(dim, 1, bias=False)
        nn.init.zeros_(self.leave.weight)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Score documents.

        Args:
            features: ``(..., L, d)``.
            mask: ``(..., L)`` boolean, True where a document is real.

        Returns:
            ``(..., L)``.

        Raises:
            ShapeError: shapes that do not fit.
        """
        real = _real_features(features, mask, self.num_features, self.linear.dtype)
        hidden = self.enter(real).flatten(0, -3) if real.ndim > 2 else self.enter(real)[None]
        keys = None
        if mask is not None:
            flat = mask.flatten(0, -2) if mask.ndim > 1 else mask[None]
            # a list without documents attends to its (zero) padding: a softmax over nothing would be NaN
            keys = (flat | ~flat.any(-1, keepdim=True))[:, None, None, :]
        for block in self.blocks:
            hidden = block(hidden, keys)
        context: Tensor = self.leave(self.norm(hidden))
        return real @ self.linear + context.reshape(real.shape[:-1])


class _Block(nn.Module):
    """One pre-norm transformer block without positions."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(dim)
        self.project = nn.Linear(dim, 3 * dim)
        self.merge = nn.Linear(dim, dim)
        self.feedforward = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.drop = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, keys: Tensor | None) -> Tensor:
        lists, length, dim = hidden.shape
        split = self.project(self.attention_norm(hidden)).reshape(lists, length, 3, self.heads, dim // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=keys)
        hidden = hidden + self.drop(self.merge(attended.transpose(1, 2).reshape(lists, length, dim)))
        forward: Tensor = self.drop(self.feedforward(hidden))
        return hidden + forward
