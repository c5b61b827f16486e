"""EASE^R: a linear autoencoder of what users preferred, in closed form."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.errors import check_number, room_for
from torchrank.models.item_scorer import ItemScorer
from torchrank.ops.ragged import ragged_take


class EASE(ItemScorer):
    """Score an item by the learned weights of the items a user preferred, Σ_j B_ji.

    B minimises ‖X − XB‖² + λ‖B‖² with a zero diagonal over the users × items matrix X of preferred items. It is dense:
    num_items² numbers.

    Make one with :meth:`from_log_arrays`.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.
        num_positives: different (user, item) pairs of positive feedback to remember.
        l2: λ.

    Raises:
        TorchRankError: a size below 1 or λ not above 0.

    Example:
        >>> import numpy as np
        >>> scorer = EASE.from_log_arrays(np.array([0, 0, 1]), np.array([0, 1, 0]), num_users=2, num_items=2, l2=1)
        >>> scorer.weights.tolist()  # with λ = 1: B_01 = (XᵀX)_01 / ((XᵀX)_00 + λ) = 1/3, B_10 = 1/2
        [[0.0, 0.3333333432674408], [0.5, 0.0]]

    Source: Steck, "Embarrassingly Shallow Autoencoders for Sparse Data" (arXiv 1905.03375), equation 8.
    """

    def __init__(self, num_users: int, num_items: int, *, num_positives: int, l2: float = 300.0) -> None:
        super().__init__(num_users, num_items)
        check_number("l2", l2, above=0)
        self.num_positives = num_positives
        self.l2 = l2
        with room_for(num_users=num_users, num_items=num_items):
            self.register_buffer("weights", torch.zeros(num_items, num_items))
            self.register_buffer("starts", torch.zeros(num_users + 1, dtype=torch.int64))
            self.register_buffer("positives", torch.zeros(num_positives, dtype=torch.int32))

    weights: Tensor
    starts: Tensor
    positives: Tensor

    @classmethod
    def from_log_arrays(
        cls,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        *,
        num_users: int,
        num_items: int,
        l2: float = 300.0,
    ) -> "EASE":
        """Fit the weights.

        Args:
            users: ``(N,)`` user of each positive feedback; repeated pairs count once.
            items: ``(N,)`` its item.
            num_users: users, numbered from 0.
            num_items: items, numbered from 0.
            l2: λ.

        Returns:
            the scorer.
        """
        from scipy.sparse import csr_matrix  # here, so that importing the models stays cheap

        keys = np.unique(users.astype(np.int64) * num_items + items)
        scorer = cls(num_users, num_items, num_positives=len(keys), l2=l2)
        rows, columns = keys // num_items, keys % num_items
        seen = csr_matrix((np.ones(len(keys), np.float32), (rows, columns)), (num_users, num_items))
        gram = torch.from_numpy((seen.T @ seen).toarray()).double()
        gram.diagonal().add_(l2)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram))
        weights = inverse.div_(-inverse.diagonal().clone())
        weights.fill_diagonal_(0)
        scorer.weights.copy_(weights)
        scorer.starts[1:] = torch.from_numpy(np.cumsum(np.bincount(rows, minlength=num_users)))
        scorer.positives.copy_(torch.from_numpy(columns))
        return scorer

    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""
        rows, starts = ragged_take(self.starts, users)
        chosen = torch.zeros(len(users), self.num_items, device=self.weights.device)
        owner = torch.repeat_interleave(torch.arange(len(users), device=starts.device), starts.diff())
        chosen[owner, self.positives[rows].long()] = 1
        return chosen @ self.weights

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score pairs: ``(...)`` users and items to ``(...)``."""
        self._check_pairs(users, items)
        shape, users, items = users.shape, users.flatten(), items.flatten()
        rows, starts = ragged_take(self.starts, users)
        owner = torch.repeat_interleave(torch.arange(len(users), device=starts.device), starts.diff())
        scores = torch.zeros(len(users), device=self.weights.device)
        return scores.index_add_(0, owner, self.weights[self.positives[rows].long(), items[owner]]).view(shape)
