"""Matrix factorisation: a vector for every user and every item, and an offset for every item."""

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from torchrank.errors import ShapeError, TorchRankError, check_option, room_for
from torchrank.models.item_scorer import EmbeddingScorer
from torchrank.ops.checks import check_tensors
from torchrank.ops.sharded import gather_columns, is_sharded, local_rows, look_up, top_k_of_shards

#: standard deviation of the ``"normal"`` start
NORMAL_START = 0.1


class Factorization(EmbeddingScorer):
    """Score a user and an item by the inner product of their vectors, ``U_u·V_i + b_i``.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.
        dim: length d of the vectors.
        init: how the vectors start: ``"uniform"`` on [0, 1), as published for SAROS, or ``"normal"`` with standard
            deviation 0.1. The all-positive start acts as an item offset; with ``item_bias`` take ``"normal"``.
        item_bias: give every item an offset b_i, 0 until :meth:`start_item_bias`.
        sparse: sparse gradients for tables too large for dense ones; take an optimiser that reads them.

    Raises:
        TorchRankError: a size below 1 or an unknown start.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> scorer = Factorization(3, 5, 4)
        >>> scorer(torch.tensor([0, 0, 2]), torch.tensor([1, 4, 1])).shape
        torch.Size([3])
        >>> items, scores, mask = scorer.recommend(torch.tensor([0, 2]), 2)
        >>> items.shape, bool(mask.all())
        (torch.Size([2, 2]), True)

    Source: the scorer of arXiv 1902.08495, section 3.1.
    """

    #: parameters with a row for every user, which no other user moves
    user_tables = ("user_vectors",)

    def __init__(
        self,
        num_users: int,
        num_items: int,
        dim: int,
        *,
        init: str = "uniform",
        item_bias: bool = False,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_users, num_items, dim, item_bias=item_bias, sparse=sparse)
        check_option("init", init, STARTS)
        self.init = init
        with room_for(num_users=num_users, num_items=num_items, dim=dim):
            self.user_vectors = nn.Parameter(STARTS[init](num_users, dim))
            self.item_vectors = nn.Parameter(STARTS[init](num_items, dim))
            self.item_offsets = nn.Parameter(torch.zeros(num_items, 1)) if item_bias else None

    def _describe(self, users: Tensor) -> Tensor:
        """Return U_u of some users: ``(...)`` to ``(..., d)``."""
        return look_up(self.user_vectors, users, sparse=self.sparse)

    _describe_each = _describe

    def squared_norms(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Return ‖U_u‖² and ‖V_i‖² of pairs, what an L2 penalty adds up: ``(...)`` each."""
        user = self._describe(users)
        item = look_up(self.item_vectors, items, sparse=self.sparse)
        return user.square().sum(-1), item.square().sum(-1)

    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""
        scores = self._score_own(users)
        return gather_columns(self.item_vectors, scores) if is_sharded(self.item_vectors) else scores

    def _score_own(self, users: Tensor) -> Tensor:
        """Score the items that this process holds: all, where tables are in one place."""
        vectors: Tensor = self.item_vectors
        offsets: Tensor | None = self.item_offsets
        if is_sharded(vectors):
            vectors, offsets = local_rows(vectors)[1], None if offsets is None else local_rows(offsets)[1]
        scores = self._describe(users) @ vectors.T
        return scores if offsets is None else scores + offsets.squeeze(-1)

    @classmethod
    def of_vectors(cls, user_vectors: Tensor, item_vectors: Tensor, item_offsets: Tensor | None = None) -> Self:
        """Make a scorer of given tables, whose memory it shares.

        Args:
            user_vectors: ``(U, d)``.
            item_vectors: ``(I, d)``.
            item_offsets: ``(I, 1)``, or None for a scorer without.

        Returns:
            the scorer.

        Raises:
            ShapeError: tables that do not fit each other.

        Example:
            >>> Factorization.of_vectors(torch.ones(1, 2), torch.eye(2)).score_all(torch.tensor([0])).tolist()
            [[1.0, 1.0]]
        """
        check_tensors({"user_vectors": user_vectors, "item_vectors": item_vectors}, item_offsets=item_offsets)
        shapes = [tuple(table.shape) for table in (user_vectors, item_vectors)]
        if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
            raise ShapeError(f"the tables have shapes {shapes[0]} and {shapes[1]}; give (U, d) and (I, d)")
        if item_offsets is not None and item_offsets.shape != (len(item_vectors), 1):
            raise ShapeError(f"item_offsets have shape {tuple(item_offsets.shape)}; give ({len(item_vectors)}, 1)")
        scorer = cls(len(user_vectors), len(item_vectors), shapes[0][1], item_bias=item_offsets is not None)
        scorer.user_vectors = _as_parameter(user_vectors)
        scorer.item_vectors = _as_parameter(item_vectors)
        scorer.item_offsets = None if item_offsets is None else _as_parameter(item_offsets)
        return scorer

    @torch.no_grad()
    def grow(self, *, num_users: int, num_items: int, seed: int = 0) -> None:
        """Make room for users and items that came later; the tables' other rows stay as they are.

        A new user starts at the mean of the users' vectors, a new item as ``init`` says, its offset at the mean of the
        others'. Make the optimiser anew afterwards: it holds the old tables.

        Args:
            num_users: users there are now, at least as many as before.
            num_items: items there are now, likewise.
            seed: of the start of the new items.

        Raises:
            TorchRankError: fewer than before.

        Example:
            >>> scorer = Factorization(3, 5, 4)
            >>> scorer.grow(num_users=4, num_items=5)
            >>> scorer.num_users, torch.equal(scorer.user_vectors[3], scorer.user_vectors[:3].mean(0))
            (4, True)
        """
        for name, now in (("num_users", num_users), ("num_items", num_items)):
            if now < getattr(self, name):
                raise TorchRankError(
                    f"{name}={now!r}; this scorer has {getattr(self, name)}, and rows are never dropped"
                )
        generator = torch.Generator().manual_seed(seed)
        users, items = num_users - self.num_users, num_items - self.num_items
        if users:
            mean = self.user_vectors.mean(0, keepdim=True)
            self.user_vectors = nn.Parameter(torch.cat([self.user_vectors, mean.expand(users, -1)]))
        if items:
            fresh = STARTS[self.init](items, self.dim, generator).to(self.item_vectors)
            self.item_vectors = nn.Parameter(torch.cat([self.item_vectors, fresh]))
            if self.item_offsets is not None:
                mean = self.item_offsets.mean(0, keepdim=True)
                self.item_offsets = nn.Parameter(torch.cat([self.item_offsets, mean.expand(items, -1)]))
        self.num_users, self.num_items = num_users, num_items

    def recommend(
        self, users: Tensor, k: int, *, exclude: tuple[Tensor, Tensor] | None = None, items: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Find the best items of users, as every scorer of items does; each process among its own where it has some."""
        if not is_sharded(self.item_vectors):
            return super().recommend(users, k, exclude=exclude, items=items)
        sizes = {"num_users": self.num_users, "num_items": self.num_items}
        return top_k_of_shards(self.item_vectors, self._score_own, users, k, exclude=exclude, items=items, **sizes)


STARTS: dict[str, Callable[..., Tensor]] = {
    "uniform": lambda rows, dim, generator=None: torch.rand(rows, dim, generator=generator),
    "normal": lambda rows, dim, generator=None: torch.randn(rows, dim, generator=generator) * NORMAL_START,
}


def _as_parameter(table: Tensor) -> nn.Parameter:
    return table if isinstance(table, nn.Parameter) else nn.Parameter(table.detach())
