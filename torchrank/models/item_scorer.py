"""What scorers of users and items share: the best items of a user, and tables of the items' vectors and offsets."""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchrank.errors import ShapeError, TorchRankError, check_count
from torchrank.ops.checks import check_indices
from torchrank.ops.rates import smoothed_log_odds
from torchrank.ops.sharded import look_up
from torchrank.ops.topk import top_k_of_chunks


class ItemScorer(nn.Module, ABC):
    """Score items for users, both by their numbers.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.

    Raises:
        TorchRankError: a size below 1.
    """

    def __init__(self, num_users: int, num_items: int) -> None:
        super().__init__()
        check_count("num_users", num_users)
        check_count("num_items", num_items)
        self.num_users = num_users
        self.num_items = num_items

    @abstractmethod
    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""

    def recommend(
        self, users: Tensor, k: int, *, exclude: tuple[Tensor, Tensor] | None = None, items: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Find the best items of users, a chunk of users at a time.

        Args:
            users: ``(B,)`` user indices.
            k: items a user, at least 1.
            exclude: places ``(P,)`` in ``users``, ascending, and item indices ``(P,)``: pairs to leave out.
            items: ``(C,)`` the items to choose from, each once; all by default.

        Returns:
            ``(B, k)`` item indices, best first, their scores, and a mask that is False where fewer than k exist.

        Raises:
            ShapeError: ``k`` below 1, or indices of another shape or type.
            DataError: an index that does not exist (eager CPU tensors only).
        """
        return top_k_of_chunks(
            self.score_all, users, k, num_users=self.num_users, num_items=self.num_items, exclude=exclude, items=items
        )

    def _check_pairs(self, users: Tensor, items: Tensor) -> None:
        """Refuse index tensors of unequal shapes, and (eager CPU tensors only) users or items that do not exist.

        Raises:
            ShapeError: the shapes differ.
            DataError: an index that does not exist.
        """
        check_indices("user", users, self.num_users)
        check_indices("item", items, self.num_items)
        if users.shape != items.shape:
            raise ShapeError(f"users have shape {tuple(users.shape)}, items {tuple(items.shape)}; they must be equal")


class VectorScorer(ItemScorer):
    """Score by ``U_u·V_i + b_i``, with a table of the items' vectors V and, where asked for, one of their offsets b.

    What derives from it makes the two tables and says by :meth:`_describe` what U is.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.
        dim: length d of the vectors.
        item_bias: give every item an offset b_i, 0 until :meth:`start_item_bias`.
        sparse: sparse gradients for tables too large for dense ones.

    Raises:
        TorchRankError: a size below 1.
    """

    item_vectors: nn.Parameter
    item_offsets: nn.Parameter | None

    def __init__(self, num_users: int, num_items: int, dim: int, *, item_bias: bool, sparse: bool) -> None:
        super().__init__(num_users, num_items)
        check_count("dim", dim)
        self.dim = dim
        self.item_bias = item_bias
        self.sparse = sparse

    @abstractmethod
    def _describe(self, users: Tensor) -> Tensor:
        """Return U_u of some users: ``(B,)`` to ``(B, d)``."""

    def _describe_each(self, users: Tensor) -> Tensor:
        """Return U_u of users who may come again and again, each described once: ``(...)`` to ``(..., d)``."""
        different, place = torch.unique(users, return_inverse=True)
        return self._describe(different)[place]

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score pairs.

        Args:
            users: ``(...)`` integer user indices.
            items: ``(...)`` integer item indices.

        Returns:
            ``(...)``.

        Raises:
            ShapeError: the two shapes differ.
            DataError: an index outside the tables (eager CPU tensors only).
        """
        self._check_pairs(users, items)
        return self._score_vectors(self._describe_each(users), items)

    def _score_vectors(self, vectors: Tensor, items: Tensor) -> Tensor:
        """Score vectors against an item each: ``(..., d)`` and ``(...)`` to ``(...)``."""
        scores = (vectors * look_up(self.item_vectors, items, sparse=self.sparse)).sum(-1)
        if self.item_offsets is None:
            return scores
        return scores + look_up(self.item_offsets, items, sparse=self.sparse).squeeze(-1)

    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""
        scores = self._describe(users) @ self.item_vectors.T
        return scores if self.item_offsets is None else scores + self.item_offsets.squeeze(-1)

    @torch.no_grad()
    def start_item_bias(self, positives: Tensor, shown: Tensor) -> None:
        """Set every offset to the smoothed log-odds of its item's positive feedback.

        Args:
            positives: ``(num_items,)`` how often an item was preferred.
            shown: ``(num_items,)`` how often it was shown.

        Raises:
            TorchRankError: the scorer was made without ``item_bias``.
        """
        if self.item_offsets is None:
            raise TorchRankError("this scorer has no item offsets; make it with item_bias=True")
        self.item_offsets.copy_(smoothed_log_odds(positives, shown)[:, None])


class EmbeddingScorer(VectorScorer):
    """A scorer that gives users and items vectors whose inner products are the scores, as a softmax over them needs."""

    def embed_users(self, users: Tensor) -> Tensor:
        """Return vectors whose inner products with :meth:`embed_items` are the scores: ``(B,)`` to ``(B, d)``.

        With ``item_bias`` they are one longer and end in 1.
        """
        check_indices("user", users, self.num_users)
        vectors = self._describe_each(users)
        return vectors if self.item_offsets is None else F.pad(vectors, (0, 1), value=1.0)

    def embed_items(self, items: Tensor) -> Tensor:
        """Return the items' vectors for :meth:`embed_users`, the offset last where there is one."""
        check_indices("item", items, self.num_items)
        vectors = look_up(self.item_vectors, items, sparse=self.sparse)
        if self.item_offsets is None:
            return vectors
        return torch.cat([vectors, look_up(self.item_offsets, items, sparse=self.sparse)], -1)
