"""SAROS blocks: preferred items of a user against the ones shown and not preferred around them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from torchrank.data.log import InteractionLog
from torchrank.errors import TorchRankError, check_option, check_type
from torchrank.ops.blocks import RULES, find_blocks
from torchrank.ops.logs import shuffle_within_users


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks in training order: user by user, in time inside a user.

    Both parts of a block are slices of one item array, so a block costs five numbers however long it is.

    Attributes:
        users: ``(K,)`` int32, the user of each block.
        preferred_start: ``(K,)`` int64, first place in ``items`` of the preferred part.
        preferred_stop: ``(K,)`` int64, the place after its last.
        other_start: ``(K,)`` int64, the same of the part that was shown and not preferred.
        other_stop: ``(K,)`` int64.
        items: ``(N,)`` int32 internal item indices.
        counts: ``(num_users,)`` int64, how many blocks each user has here.
        num_users: users of the log's id space.
        num_items: items of the log's id space.

    Example:
        >>> import polars as pl
        >>> from torchrank.data import InteractionLog, build_blocks
        >>> rows = {"user": [7] * 4, "item": list("pqrs"), "feedback": [0, 1, 0, 1], "time": range(4)}
        >>> blocks = build_blocks(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
        >>> len(blocks), blocks.counts.tolist(), blocks.other_start.tolist(), blocks.preferred_start.tolist()
        (2, [2], [0, 2], [1, 3])
    """

    users: NDArray[np.int32]
    preferred_start: NDArray[np.int64]
    preferred_stop: NDArray[np.int64]
    other_start: NDArray[np.int64]
    other_stop: NDArray[np.int64]
    items: NDArray[np.int32]
    counts: NDArray[np.int64]
    num_users: int
    num_items: int

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        having = np.count_nonzero(self.counts)
        return f"Blocks({len(self)} blocks of {having} of {self.num_users} users, {self.num_items} items)"

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int32]]]:
        slices = zip(self.preferred_start, self.preferred_stop, self.other_start, self.other_stop, strict=True)
        for user, (a, b, c, d) in zip(self.users, slices, strict=True):
            yield int(user), self.items[a:b], self.items[c:d]

    def select(
        self,
        *,
        minimum: float | str | None = "min",
        maximum: float | str | None = "mean",
        overflow: str = "discard",
    ) -> "Blocks":
        """Leave out users with too few or too many blocks: the thresholds b and B.

        Users without blocks take part in neither threshold.

        Args:
            minimum: b, the least number of blocks a user must have; ``"min"`` for the smallest count there is; None for
                no limit.
            maximum: B, the most a user may have; ``"mean"`` for the mean count; None for no limit.
            overflow: what becomes of a user above ``maximum``: ``"discard"`` leaves the user out, ``"truncate"`` keeps
                the first floor(B) blocks.

        Returns:
            the blocks left, in the same order.

        Raises:
            TorchRankError: a threshold is below 0 or an unknown word, or ``overflow`` is unknown.

        Source: arXiv 1902.08495, section 3.2 (discard) and Algorithm 1 (truncate).

        Example:
            >>> import polars as pl
            >>> rows = {"user": [7] * 4, "item": list("pqrs"), "feedback": [0, 1, 0, 1], "time": range(4)}
            >>> log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
            >>> blocks = build_blocks(log, rule="run")
            >>> len(blocks), len(blocks.select(maximum=1)), len(blocks.select(maximum=1, overflow="truncate"))
            (2, 0, 1)
        """
        check_option("overflow", overflow, ["discard", "truncate"])
        has = self.counts[self.counts > 0]
        low = threshold("minimum", minimum, "min", float(has.min()) if len(has) else 0.0, none=0.0)
        high = threshold("maximum", maximum, "mean", float(has.mean()) if len(has) else 0.0, none=math.inf)
        if low <= 1 and high == math.inf:
            return self
        limit = np.where(self.counts >= low, self.counts, 0)
        limit = np.where(limit > high, 0 if overflow == "discard" else math.floor(min(high, 2**62)), limit)
        first = np.cumsum(self.counts) - self.counts
        keep = np.arange(len(self)) - np.repeat(first, self.counts) < np.repeat(limit, self.counts)
        return replace(
            self,
            users=self.users[keep],
            preferred_start=self.preferred_start[keep],
            preferred_stop=self.preferred_stop[keep],
            other_start=self.other_start[keep],
            other_stop=self.other_stop[keep],
            counts=limit.astype(np.int64),
        )


def threshold(name: str, value: float | str | None, word: str, meaning: float, *, none: float) -> float:
    """Read a limit that may be a number, a word or absent.

    Args:
        name: the option's name as the caller wrote it.
        value: what the caller gave.
        word: the word there is.
        meaning: what the word stands for.
        none: what None stands for.

    Returns:
        the limit.

    Raises:
        TorchRankError: another word, or a number below 0.
    """
    if value is None:
        return none
    if value == word:
        return meaning
    if isinstance(value, str) or not hasattr(value, "__float__") or not value >= 0:
        raise TorchRankError(f"{name}={value!r}; give {word!r}, a number of blocks, or None for no limit")
    return float(value)


def build_blocks(log: InteractionLog, *, rule: str = "run", shuffle: np.random.Generator | None = None) -> Blocks:
    """Cut every user's interactions into blocks of preferred items and items shown but not preferred.

    Args:
        log: interactions, sorted by user and time as every log is.
        rule: which blocks are cut (``+`` preferred, ``-`` not):

            - ``"run"``: a maximal run of ``-`` and the run of ``+`` after it;
            - ``"single"``: a run of ``-`` and the first ``+`` after it;
            - ``"eager"``: closed as soon as both parts hold an item (the published pseudo-code);
            - ``"positive"``: every ``+`` alone, against the last run of ``-`` (the authors' program).
        shuffle: when given, each user's interactions are first put in a random order drawn from it.

    Returns:
        the blocks; items that occur twice in a log with ``duplicates="keep"`` occur twice in blocks too.

    Raises:
        TorchRankError: an unknown rule.

    Source: arXiv 1902.08495, section 3 and Algorithm 1.

    Example:
        >>> import polars as pl
        >>> rows = {"user": [7] * 6, "item": list("pqrstu"), "feedback": [0, 0, 1, 1, 0, 1], "time": range(6)}
        >>> log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
        >>> [(preferred.tolist(), other.tolist()) for user, preferred, other in build_blocks(log, rule="run")]
        [([2, 3], [0, 1]), ([5], [4])]
    """
    check_type("log", log, InteractionLog, "an InteractionLog")
    check_option("rule", rule, RULES)
    if shuffle is not None:
        check_type("shuffle", shuffle, np.random.Generator, "a numpy.random.Generator, or None")
    items, preferred = log.items, log.preferred
    if shuffle is not None:
        items, preferred = shuffle_within_users(items, preferred, log.offsets, shuffle)
    counts, (preferred_start, preferred_stop, other_start, other_stop) = find_blocks(preferred, log.offsets, rule)
    return Blocks(
        users=np.repeat(np.arange(log.num_users, dtype=np.int32), counts),
        preferred_start=preferred_start,
        preferred_stop=preferred_stop,
        other_start=other_start,
        other_stop=other_stop,
        items=items,
        counts=counts,
        num_users=log.num_users,
        num_items=log.num_items,
    )
