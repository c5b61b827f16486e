"""Rankings that are the same for every user: the lines that a personal model has to beat."""

import torch
from torch import Tensor, nn

from torchrank.errors import ShapeError, TorchRankError, check_count
from torchrank.models.factorization import check_pairs
from torchrank.ops.rates import smoothed_rate
from torchrank.ops.topk import top_k_of_chunks


class MostPop(nn.Module):
    """Score an item by how often it was preferred.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.

    Example:
        >>> scorer = MostPop.from_counts(torch.tensor([3, 9]), num_users=1)
        >>> scorer(torch.tensor([0, 0]), torch.tensor([0, 1])).tolist()
        [3.0, 9.0]
    """

    def __init__(self, num_users: int, num_items: int) -> None:
        super().__init__()
        check_sizes(num_users, num_items)
        self.num_users = num_users
        self.num_items = num_items
        self.register_buffer("item_scores", torch.zeros(num_items))

    item_scores: Tensor

    @classmethod
    def from_counts(cls, positives: Tensor, *, num_users: int) -> "MostPop":
        """Make the ranking from ``(num_items,)`` counts of positive feedback."""
        scorer = cls(num_users, len(positives))
        scorer.item_scores.copy_(positives)
        return scorer

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score pairs: ``(...)`` users and items to ``(...)``."""
        check_pairs(users, items, self.num_users, self.num_items)
        return self.item_scores[items]

    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""
        return self.item_scores.expand(len(users), -1)

    def recommend(
        self, users: Tensor, k: int, *, exclude: tuple[Tensor, Tensor] | None = None, items: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Find the best items of users, as :meth:`Factorization.recommend` does."""
        return top_k_of_chunks(
            self.score_all, users, k, num_users=self.num_users, num_items=self.num_items, exclude=exclude, items=items
        )


class ItemRate(nn.Module):
    """Score an item by its smoothed share of positive feedback, (positives + s·mean) / (shown + s).

    On logs of shown items this simple ranking is above many published models: show it beside yours.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.
        strength: s, how many showings at the overall share every item starts with.

    Raises:
        TorchRankError: a size below 1 or a negative strength.

    Example:
        >>> scorer = ItemRate.from_counts(torch.tensor([3, 9]), torch.tensor([3, 18]), num_users=1, strength=0)
        >>> scorer(torch.tensor([0, 0]), torch.tensor([0, 1])).tolist()
        [1.0, 0.5]
    """

    def __init__(self, num_users: int, num_items: int, *, strength: float = 5.0) -> None:
        super().__init__()
        check_sizes(num_users, num_items)
        if not 0 <= strength < float("inf"):
            raise TorchRankError(f"strength={strength!r}; give a finite number of showings, at least 0")
        self.num_users = num_users
        self.num_items = num_items
        self.strength = strength
        self.register_buffer("item_scores", torch.zeros(num_items))

    item_scores: Tensor

    @classmethod
    def from_counts(cls, positives: Tensor, shown: Tensor, *, num_users: int, strength: float = 5.0) -> "ItemRate":
        """Make the ranking from counts.

        Args:
            positives: ``(num_items,)`` how often an item was preferred.
            shown: ``(num_items,)`` how often it was shown.
            num_users: users, numbered from 0.
            strength: see the class.

        Returns:
            the scorer.

        Raises:
            ShapeError: counts of unequal lengths.
        """
        if positives.shape != shown.shape:
            raise ShapeError(f"positives have shape {tuple(positives.shape)}, shown {tuple(shown.shape)}")
        scorer = cls(num_users, len(positives), strength=strength)
        scorer.item_scores.copy_(smoothed_rate(positives, shown, strength=strength))
        return scorer

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score pairs: ``(...)`` users and items to ``(...)``."""
        check_pairs(users, items, self.num_users, self.num_items)
        return self.item_scores[items]

    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""
        return self.item_scores.expand(len(users), -1)

    def recommend(
        self, users: Tensor, k: int, *, exclude: tuple[Tensor, Tensor] | None = None, items: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Find the best items of users, as :meth:`Factorization.recommend` does."""
        return top_k_of_chunks(
            self.score_all, users, k, num_users=self.num_users, num_items=self.num_items, exclude=exclude, items=items
        )


def check_sizes(num_users: int, num_items: int) -> None:
    """Refuse a scorer of no users or no items."""
    for name, value in (("num_users", num_users), ("num_items", num_items)):
        check_count(name, value)
