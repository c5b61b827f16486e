"""Factorisation in which a user is described by feedback alone: no vector of one's own, so no retraining for it."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from torchrank.errors import DataError, check_count, check_option, room_for
from torchrank.models.factorization import STARTS
from torchrank.models.item_scorer import EmbeddingScorer
from torchrank.ops.ragged import ragged_take


class FeedbackFactorization(EmbeddingScorer):
    """Score by ``U_u·V_i + b_i`` with ``U_u`` the sum of one vector for every feedback of the user, over √n.

    Every item has a feedback vector for "preferred" and, with ``kinds="all"``, another for "shown but not preferred". A
    user's vector is the sum of those of the user's n different feedbacks, divided by √n: what one learns about a user's
    taste from one item holds for all users who gave that feedback. A user without feedback is scored by the offsets
    alone, the item's log-odds where :meth:`start_item_bias` set them.

    Make one with :meth:`from_log_arrays`, which also tells it everybody's feedback.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.
        dim: length d of the vectors.
        num_feedbacks: different (user, item, preferred or not) there are to remember.
        kinds: what describes a user: ``"all"`` feedback, or what one ``"preferred"`` alone, for ranking items that were
            never shown.
        init: how item vectors start: ``"normal"`` with standard deviation 0.1 or ``"uniform"`` on [0, 1). Feedback
            vectors start a fifth as large.
        item_bias: give every item an offset b_i, 0 until :meth:`start_item_bias`.
        sparse: sparse gradients for tables too large for dense ones.

    Raises:
        TorchRankError: a size that cannot be, or an unknown start.

    Example:
        >>> import numpy as np
        >>> users, items, preferred = np.array([0, 0, 2]), np.array([1, 0, 1]), np.array([True, False, True])
        >>> scorer = FeedbackFactorization.from_log_arrays(users, items, preferred, num_users=3, num_items=2, dim=4)
        >>> scorer.feedbacks.tolist(), scorer.feedback_starts.tolist()
        ([1, 2, 1], [0, 2, 2, 3])

    Source: asymmetric factorisation, Paterek, "Improving regularized singular value decomposition for collaborative
    filtering" (KDD Cup 2007), with a vector for each kind of feedback.
    """

    def __init__(
        self,
        num_users: int,
        num_items: int,
        dim: int,
        *,
        num_feedbacks: int,
        kinds: str = "all",
        init: str = "normal",
        item_bias: bool = True,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_users, num_items, dim, item_bias=item_bias, sparse=sparse)
        check_count("num_feedbacks", num_feedbacks, least=0)
        check_option("init", init, STARTS)
        check_option("kinds", kinds, ["all", "preferred"])
        self.num_feedbacks = num_feedbacks
        self.kinds = kinds
        self.init = init
        with room_for(num_users=num_users, num_items=num_items, dim=dim):
            self.item_vectors = nn.Parameter(STARTS[init](num_items, dim))
            self.feedback_vectors = nn.Parameter(STARTS[init]((2 if kinds == "all" else 1) * num_items, dim) / 5)
            self.item_offsets = nn.Parameter(torch.zeros(num_items, 1)) if item_bias else None
            self.register_buffer("feedback_starts", torch.zeros(num_users + 1, dtype=torch.int64))
            self.register_buffer("feedbacks", torch.zeros(num_feedbacks, dtype=torch.int32))

    feedback_starts: Tensor
    feedbacks: Tensor

    @classmethod
    def from_log_arrays(
        cls,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        preferred: NDArray[np.bool_],
        *,
        num_users: int,
        num_items: int,
        dim: int,
        kinds: str = "all",
        init: str = "normal",
        item_bias: bool = True,
        sparse: bool = False,
    ) -> "FeedbackFactorization":
        """Make a scorer that knows who gave what feedback.

        Args:
            users: ``(N,)`` user of each interaction of the training log.
            items: ``(N,)`` item.
            preferred: ``(N,)`` whether it was preferred.
            num_users: users, numbered from 0.
            num_items: items, numbered from 0.
            dim: length d of the vectors.
            kinds: see the class.
            init: see the class.
            item_bias: see the class; offsets start at the items' smoothed log-odds.
            sparse: see the class.

        Returns:
            the scorer.

        Raises:
            DataError: arrays of unequal lengths.
        """
        if not len(users) == len(items) == len(preferred):
            raise DataError(f"{len(users)} users, {len(items)} items and {len(preferred)} preferred; give one a row")
        # one key a feedback: item where preferred, num_items + item where not, inside the user
        told = np.ones(len(users), np.bool_) if kinds == "all" else preferred
        rows = items[told].astype(np.int64) + np.where(preferred[told], 0, num_items)
        keys = np.unique(users[told].astype(np.int64) * (2 * num_items) + rows)
        options = {"init": init, "item_bias": item_bias, "sparse": sparse}
        scorer = cls(num_users, num_items, dim, num_feedbacks=len(keys), kinds=kinds, **options)  # type: ignore[arg-type]
        sizes = np.bincount(keys // (2 * num_items), minlength=num_users)
        scorer.feedback_starts[1:] = torch.from_numpy(np.cumsum(sizes))
        scorer.feedbacks.copy_(torch.from_numpy(keys % (2 * num_items)))
        if item_bias:
            shown = np.bincount(items, minlength=num_items)
            positives = np.bincount(items[preferred], minlength=num_items)
            scorer.start_item_bias(torch.from_numpy(positives), torch.from_numpy(shown))
        return scorer

    def user_vectors(self, users: Tensor) -> Tensor:
        """Return U_u for some users: ``(B,)`` to ``(B, d)``; on a GPU this waits for the device."""
        rows, starts = ragged_take(self.feedback_starts, users)
        sums = F.embedding_bag(
            self.feedbacks[rows].long(),
            self.feedback_vectors,
            starts,
            mode="sum",
            include_last_offset=True,
            sparse=self.sparse,
        )
        return sums * starts.diff().clamp(min=1).to(sums.dtype).rsqrt()[:, None]

    def _describe(self, users: Tensor) -> Tensor:
        return self.user_vectors(users)

    def squared_norms(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Return what an L2 penalty adds up: the mean of a user's squared feedback norms, and ‖V_i‖²."""
        different, place = torch.unique(users, return_inverse=True)
        rows, starts = ragged_take(self.feedback_starts, different)
        squares = F.embedding(self.feedbacks[rows].long(), self.feedback_vectors, sparse=self.sparse).square().sum(-1)
        sizes = starts.diff()
        means = torch.zeros(len(different), dtype=squares.dtype, device=squares.device)
        owner = torch.repeat_interleave(torch.arange(len(different), device=sizes.device), sizes)
        means = means.index_add(0, owner, squares) / sizes.clamp(min=1)
        item = F.embedding(items, self.item_vectors, sparse=self.sparse)
        return means[place], item.square().sum(-1)
