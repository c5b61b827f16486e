"""Rankings that are the same for every user: the lines that a personal model has to beat."""

import torch
from torch import Tensor

from torchrank.errors import ShapeError, check_number
from torchrank.models.item_scorer import ItemScorer
from torchrank.ops.rates import smoothed_rate


class OneRanking(ItemScorer):
    """Score an item alike for every user."""

    def __init__(self, num_users: int, num_items: int) -> None:
        super().__init__(num_users, num_items)
        self.register_buffer("item_scores", torch.zeros(num_items))

    item_scores: Tensor

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score pairs: ``(...)`` users and items to ``(...)``."""
        self._check_pairs(users, items)
        return self.item_scores[items]

    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""
        return self.item_scores.expand(len(users), -1)


class MostPop(OneRanking):
    """Score an item by how often it was preferred.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.

    Example:
        >>> scorer = MostPop.from_counts(torch.tensor([3, 9]), num_users=1)
        >>> scorer(torch.tensor([0, 0]), torch.tensor([0, 1])).tolist()
        [3.0, 9.0]
    """

    @classmethod
    def from_counts(cls, positives: Tensor, *, num_users: int) -> "MostPop":
        """Make the ranking from ``(num_items,)`` counts of positive feedback."""
        scorer = cls(num_users, len(positives))
        scorer.item_scores.copy_(positives)
        return scorer


class ItemRate(OneRanking):
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
        super().__init__(num_users, num_items)
        check_number("strength", strength, least=0)
        self.strength = strength

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
