"""What a step of session-parallel training reads: some rows of every lane, cut where a sequence ends."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.data.log import InteractionLog
from torchrank.errors import DataError
from torchrank.ops.lanes import session_lanes
from torchrank.ops.ragged import ragged_to_padded

Ints = NDArray[np.int64]


class SessionStep(NamedTuple):
    """Some steps of all lanes, as pieces of sequences.

    Attributes:
        pieces: ``(P, L)`` int64 items read, zeros as padding; lane by lane, in time.
        lengths: ``(P,)`` int64 on the CPU.
        mask: ``(P, L)`` boolean, True where a piece is real.
        lanes: ``(P,)`` int64, each piece's lane.
        resumed: ``(P,)`` boolean, True where the piece goes on with a sequence of the step before.
        last: ``(K,)`` int64, the last piece of each lane that has one.
        real: ``(lanes, T)`` boolean, True where a lane reads.
        rows: ``(N,)`` int64, rows of the items read, in the order of ``real``.
        targets: ``(N,)`` int64, the items that follow them.
    """

    pieces: Tensor
    lengths: Tensor
    mask: Tensor
    lanes: Tensor
    resumed: Tensor
    last: Tensor
    real: Tensor
    rows: Tensor
    targets: Tensor


@dataclass(frozen=True, eq=False)
class Sessions:
    """The preferred items of every user in time.

    Attributes:
        starts: ``(num_users + 1,)`` int64; user u's rows are ``starts[u]:starts[u + 1]``.
        items: ``(N,)`` int32.
        others: ``(M,)`` int32, the items shown to each user and not preferred, user by user.
        other_starts: ``(num_users + 1,)`` int64; where each user's begin in ``others``.

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, _ = make_interactions(num_users=20, num_items=30, num_interactions=200)
        >>> sessions = Sessions.from_log(log)
        >>> len(sessions.items) + len(sessions.others), len(sessions.starts)
        (200, 21)
    """

    starts: Ints
    items: NDArray[np.int32]
    others: NDArray[np.int32]
    other_starts: Ints

    def __repr__(self) -> str:
        return f"Sessions({len(self.items)} preferred and {len(self.others)} other items, {len(self.starts) - 1} users)"

    @classmethod
    def from_log(cls, log: InteractionLog) -> Self:
        """Take the sequences from a log.

        Raises:
            DataError: nobody preferred two items, so nothing follows anything.
        """
        starts = np.append(0, np.cumsum(log.preferred))[log.offsets]
        if not (np.diff(starts) > 1).any():
            raise DataError("no user of the training log has two preferred items, so no item follows another")
        return cls(starts, log.items[log.preferred], log.items[~log.preferred], log.offsets - starts)

    @cached_property
    def _owner(self) -> Ints:
        """User of each row: ``(N,)``."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def _is_first(self) -> NDArray[np.bool_]:
        """Whether a sequence begins at a row: ``(N,)``."""
        first = np.zeros(len(self.items), np.bool_)
        first[self.starts[:-1][np.diff(self.starts) > 0]] = True
        return first

    def lay_out(self, random: np.random.Generator, *, lanes: int) -> Ints:
        """Lay an epoch out in lanes, users in a random order: ``(steps, lanes)`` rows, −1 where a lane is done."""
        return session_lanes(random.permutation(len(self.starts) - 1), self.starts, lanes=lanes)

    def step(self, table: Ints) -> SessionStep:
        """Cut some steps into pieces.

        Args:
            table: ``(T, lanes)``, those rows of :meth:`lay_out`.

        Returns:
            the pieces, on the CPU.
        """
        rows = table.T
        real = rows >= 0
        flat = rows[real]
        begins = np.zeros(rows.shape, np.bool_)
        begins[real] = self._is_first[flat]
        heads = begins.copy()
        heads[:, 0] |= real[:, 0]
        lanes = np.nonzero(heads)[0]
        places = np.flatnonzero(heads[real])
        offsets = np.append(places, len(flat))
        pieces, mask = ragged_to_padded(torch.from_numpy(self.items[flat].astype(np.int64)), torch.from_numpy(offsets))
        return SessionStep(
            pieces,
            torch.from_numpy(np.diff(offsets)),
            mask,
            torch.from_numpy(lanes),
            torch.from_numpy(~begins[heads]),
            torch.from_numpy(np.flatnonzero(np.diff(np.append(lanes, -1)))),
            torch.from_numpy(real),
            torch.from_numpy(flat),
            torch.from_numpy(self.items[flat + 1].astype(np.int64)),
        )

    def draw_others(self, rows: Ints, count: int, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Draw, for the user of each row, items shown and not preferred.

        Args:
            rows: ``(N,)`` rows of ``items``.
            count: S, draws a row, with replacement.
            random: the generator.

        Returns:
            ``(N, S)`` int64 items, and ``(N, S)`` boolean, False for users who preferred all they were shown.
        """
        users = self._owner[rows]
        first, sizes = self.other_starts[users], self.other_starts[users + 1] - self.other_starts[users]
        places = first[:, None] + (random.random((len(rows), count)) * sizes[:, None]).astype(np.int64)
        some = np.broadcast_to(sizes[:, None] > 0, places.shape)
        drawn = self.others[np.where(some, places, 0)] if len(self.others) else np.zeros(places.shape, np.int32)
        return torch.from_numpy(drawn.astype(np.int64)), torch.from_numpy(some.copy())
