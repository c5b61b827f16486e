"""GRU4Rec: a recurrent network reads what a user preferred, one item after the other, and scores what comes next."""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from torchrank.errors import DataError, TorchRankError, check_count, room_for
from torchrank.models.factorization import NORMAL_START, Factorization
from torchrank.models.item_scorer import VectorScorer
from torchrank.ops.ragged import ragged_index

#: items read at once where users are scored, padding included
_ITEMS = 2**17


class Read(NamedTuple):
    """What the network makes of pieces of sequences.

    Attributes:
        vectors: ``(P, L, d)`` after each item; zeros under the mask.
        state: ``(layers, P, d)`` after the last item of each piece.
    """

    vectors: Tensor
    state: Tensor


class GRU4Rec(VectorScorer):
    """Score by ``h_u·V_i + b_i`` with h_u the state of a GRU that has read the items the user preferred, in time.

    The published network has no offsets b. It is trained to score the next preferred item above others
    (:class:`~torchrank.training.GRU4RecModule`), so what users were shown and did not prefer plays no part. A user
    without a preferred item has the state 0 and is scored by the offsets alone. Each call reads the sequences of its
    users, so give many pairs at once.

    Make one with :meth:`from_log_arrays`, which also tells it everybody's sequence.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.
        dim: length d of the states and of the item vectors.
        num_positives: items of all sequences to remember.
        layers: GRUs on top of each other.
        dropout: share of the states' numbers dropped in training, after every layer.
        item_bias: give every item an offset b_i, 0 until :meth:`start_item_bias`.
        sparse: sparse gradients for tables too large for dense ones; take an optimiser that reads them.

    Raises:
        TorchRankError: a size below 1 or a share that cannot be.

    Example:
        >>> import numpy as np
        >>> _ = torch.manual_seed(0)
        >>> users, items = np.array([0, 0, 2]), np.array([1, 0, 1])
        >>> scorer = GRU4Rec.from_log_arrays(users, items, num_users=3, num_items=4, dim=5)
        >>> scorer(torch.tensor([0, 2]), torch.tensor([3, 3])).shape, scorer.score_all(torch.tensor([1])).tolist()
        (torch.Size([2]), [[0.0, 0.0, 0.0, 0.0]])

    Source: Hidasi et al., "Session-based Recommendations with Recurrent Neural Networks" (arXiv 1511.06939).
    """

    def __init__(
        self,
        num_users: int,
        num_items: int,
        dim: int,
        *,
        num_positives: int,
        layers: int = 1,
        dropout: float = 0.0,
        item_bias: bool = False,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_users, num_items, dim, item_bias=item_bias, sparse=sparse)
        check_count("layers", layers)
        if num_positives < 0 or not 0 <= dropout < 1:
            raise TorchRankError(
                f"num_positives={num_positives!r} must be at least 0 and dropout={dropout!r} lie in [0, 1)"
            )
        self.num_positives = num_positives
        self.layers = layers
        self.dropout = dropout
        with room_for(num_users=num_users, num_items=num_items, dim=dim):
            self.input_vectors = nn.Parameter(torch.randn(num_items, dim) * NORMAL_START)
            # between layers torch drops; after the last one, read() does
            self.gru = nn.GRU(dim, dim, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
            self.item_vectors = nn.Parameter(torch.randn(num_items, dim) * NORMAL_START)
            self.item_offsets = nn.Parameter(torch.zeros(num_items, 1)) if item_bias else None
            self.register_buffer("starts", torch.zeros(num_users + 1, dtype=torch.int64))
            self.register_buffer("sequence", torch.zeros(num_positives, dtype=torch.int32))

    starts: Tensor
    sequence: Tensor

    @classmethod
    def from_log_arrays(
        cls,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        *,
        num_users: int,
        num_items: int,
        dim: int,
        layers: int = 1,
        dropout: float = 0.0,
        item_bias: bool = False,
        sparse: bool = False,
    ) -> "GRU4Rec":
        """Make a scorer that knows everybody's sequence.

        Args:
            users: ``(N,)`` user of each positive feedback, ascending, each user's in time, as a log has them.
            items: ``(N,)`` its item.
            num_users: users, numbered from 0.
            num_items: items, numbered from 0.
            dim: see the class, like every other option.
            layers: see the class.
            dropout: see the class.
            item_bias: see the class.
            sparse: see the class.

        Returns:
            the scorer.

        Raises:
            DataError: users that are not ascending, or arrays of unequal lengths.
        """
        if len(users) != len(items) or bool((np.diff(users) < 0).any()):
            raise DataError(f"{len(users)} users and {len(items)} items; give one a row, users ascending")
        options = {"layers": layers, "dropout": dropout, "item_bias": item_bias, "sparse": sparse}
        scorer = cls(num_users, num_items, dim, num_positives=len(items), **options)  # type: ignore[arg-type]
        scorer.starts[1:] = torch.from_numpy(np.cumsum(np.bincount(users, minlength=num_users)))
        scorer.sequence.copy_(torch.from_numpy(items))
        return scorer

    def read(self, items: Tensor, lengths: Tensor, state: Tensor) -> Read:
        """Read pieces of sequences on from where others left off.

        Args:
            items: ``(P, L)`` item indices.
            lengths: ``(P,)`` int64 on the CPU, real items of each piece, at least 1.
            state: ``(layers, P, d)`` the network's state before each piece; zeros at the start of a sequence.

        Returns:
            the states.
        """
        packed = pack_padded_sequence(items, lengths, batch_first=True, enforce_sorted=False)
        told = F.embedding(packed.data, self.input_vectors, sparse=self.sparse)
        packed = PackedSequence(told, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        states, state = self.gru(packed, state)
        vectors, _ = pad_packed_sequence(states, batch_first=True, total_length=items.shape[1])
        return Read(F.dropout(vectors, self.dropout, self.training), state)

    def user_vectors(self, users: Tensor) -> Tensor:
        """Return h_u for some users, ``(B,)`` to ``(B, d)``, users of like length side by side."""
        lengths = self.starts.diff()[users]
        sizes, order = lengths.sort(descending=True, stable=True)
        widths = sizes.tolist()
        some = len(widths) - widths.count(0)
        parts, first = [], 0
        while first < some:
            last = min(some, first + max(1, _ITEMS // widths[first]))
            rows, _ = ragged_index(self.starts, users[order[first:last]], longest=widths[first])
            state = self.item_vectors.new_zeros(self.layers, last - first, self.dim)
            parts.append(self.read(self.sequence[rows].long(), sizes[first:last].cpu(), state).state[-1])
            first = last
        parts.append(self.item_vectors.new_zeros(len(widths) - some, self.dim))
        return torch.cat(parts)[order.argsort()]

    def _describe(self, users: Tensor) -> Tensor:
        return self.user_vectors(users)

    @torch.no_grad()
    def to_factorization(self) -> Factorization:
        """Read all sequences once and keep the states as user vectors: the same scores, without reading again.

        Returns:
            a :class:`Factorization` on the same device.
        """
        scorer = Factorization(self.num_users, self.num_items, self.dim, item_bias=self.item_bias).to(self.item_vectors)
        scorer.user_vectors.copy_(self.user_vectors(torch.arange(self.num_users, device=self.starts.device)))
        scorer.item_vectors.copy_(self.item_vectors)
        if scorer.item_offsets is not None and self.item_offsets is not None:
            scorer.item_offsets.copy_(self.item_offsets)
        return scorer.eval()

    def score_states(self, states: Tensor, items: Tensor) -> Tensor:
        """Score states and items: ``(..., d)`` and ``(...)`` to ``(...)``."""
        return self._score_vectors(states, items)

    def score_table(self, states: Tensor, items: Tensor) -> Tensor:
        """Score states against items that they share: ``(..., B, d)`` and ``(..., S)`` to ``(..., B, S)``."""
        scores = states @ F.embedding(items, self.item_vectors, sparse=self.sparse).mT
        if self.item_offsets is None:
            return scores
        return scores + F.embedding(items, self.item_offsets, sparse=self.sparse).mT
