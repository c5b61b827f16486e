"""What a SAROS epoch steps through: its blocks, its users in order, and its waves."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from torchrank.data.blocks import Blocks, build_blocks, threshold
from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import DataError
from torchrank.ops.sequential.compiled import Slices
from torchrank.ops.waves import Waves, build_waves
from torchrank.training.processes import Processes
from torchrank.training.turns import ALONE, partition_at


@dataclass(frozen=True)
class BlockOptions:
    """Which blocks an epoch has and how they are ordered; the options of ``SAROSModule`` of the same names."""

    rule: str
    order: str
    user_order: str
    minimum: float | str | None
    maximum: float | str | None
    overflow: str
    seed: int


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """An epoch, or one partition's share of it, laid out.

    Attributes:
        users: int32, in training order; users without blocks among them. Of a partition they count from 0.
        block_starts: ``(num_users + 1,)``, user u's blocks are ``block_starts[u]:block_starts[u + 1]``.
        slices: first row and row after the last, of the preferred and of the other part of each block.
        items: what the rows are of.
        first_user: internal index of the partition's first user.
    """

    users: NDArray[np.int32]
    block_starts: NDArray[np.int64]
    slices: Slices
    items: NDArray[np.int32]
    first_user: int = 0

    def __repr__(self) -> str:
        return f"EpochPlan({len(self.slices[0])} blocks, {len(self.users)} users from {self.first_user} on)"

    def part(self, number: int, parts: int) -> NDArray[np.int32]:
        """Return the users of one of ``parts`` shares of the epoch, nearly equal in blocks."""
        done = np.append(0, np.cumsum(np.diff(self.block_starts)[self.users]))
        first, last = np.searchsorted(done, [done[-1] * number / parts, done[-1] * (number + 1) / parts])
        return self.users[first : len(self.users) if number == parts - 1 else last]

    def waves(self, lanes: int) -> Waves:
        """Schedule the users to lanes; the waves' users are internal indices."""
        waves = build_waves(self.users, self.block_starts, self.slices, self.items, lanes=lanes)
        return replace(waves, users=waves.users + self.first_user) if self.first_user else waves


def plan_epoch(log: InteractionLog, options: BlockOptions, epoch: int, *, before: EpochPlan | None = None) -> EpochPlan:
    """Lay an epoch out: a function of the log, the options and the epoch's number.

    Args:
        log: what is trained on.
        options: of the blocks.
        epoch: its number.
        before: the plan of another epoch, whose blocks are taken where they do not change.

    Returns:
        the plan.

    Raises:
        DataError: no block is left.
        TorchRankError: an option has a bad value.
    """
    if options.order == "time" and before is not None:
        blocks_starts, slices, items = before.block_starts, before.slices, before.items
    else:
        blocks = _blocks(log, options, epoch)
        blocks_starts = np.append(0, np.cumsum(blocks.counts))
        slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
        items = blocks.items
    users = np.arange(log.num_users, dtype=np.int32)
    if options.user_order == "shuffled":
        users = np.random.default_rng([options.seed, epoch, 1]).permutation(users)
    return EpochPlan(users, blocks_starts, slices, items)


def plan_partition(
    log: PreparedLog, options: BlockOptions, epoch: int, place: int, processes: Processes = ALONE
) -> EpochPlan:
    """Lay out one partition's share of an epoch: a function of the log, the options, the epoch, and whose share.

    With ``user_order="shuffled"`` the partitions come in a random order and each one's users too.

    Args:
        log: what is trained on.
        options: of the blocks; a ``maximum`` in words is the whole log's, see :func:`whole_log_options`.
        epoch: its number.
        place: of the partition in the epoch's order.
        processes: of which this one's partition is laid out.

    Returns:
        the plan, without users where the partition has no blocks; all the partition's users, those that other
        processes step through among them.
    """
    shuffled = options.user_order == "shuffled"
    number = partition_at(log, place, epoch=epoch, seed=options.seed, shuffled=shuffled, processes=processes)
    part = log.partition(number)
    every = _cut(part, options, epoch, number)
    blocks = every.select(minimum=options.minimum, maximum=options.maximum, overflow=options.overflow)
    users = np.arange(part.num_users, dtype=np.int32)
    if shuffled:
        users = np.random.default_rng([options.seed, epoch, 1, number]).permutation(users)
    slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
    starts = np.append(0, np.cumsum(blocks.counts))
    return EpochPlan(users, starts, slices, blocks.items, int(log.user_starts[number]))


def whole_log_options(
    log: PreparedLog, options: BlockOptions, epoch: int, processes: Processes = ALONE
) -> BlockOptions:
    """Turn a maximum in words into a number by one pass over the partitions, and refuse a log without blocks.

    Args:
        log: what is trained on.
        options: of the blocks.
        epoch: its number, which a shuffled order depends on.
        processes: that call this together and share the pass.

    Returns:
        the options, which then mean the same in every partition.

    Raises:
        DataError: no block is left.
    """
    with_count = np.zeros(1, np.int64)  # how many users have 0, 1, 2, … blocks
    limits = options.minimum is not None or options.maximum is not None
    for number in range(processes.rank, log.num_partitions, processes.size):
        found = np.bincount(_cut(log.partition(number), options, epoch, number).counts)
        with_count = np.pad(with_count, (0, max(0, len(found) - len(with_count))))
        with_count[: len(found)] += found
        if len(found) > 1 and not limits:
            break  # there are blocks, which is all that is asked
    with_count = np.array(processes.totals(with_count.tolist(), processes.most(len(with_count))))
    if len(with_count) > 1 and not limits:
        return options
    total, users = int((with_count * np.arange(len(with_count))).sum()), int(with_count[1:].sum())
    if not total:
        raise no_block(0)
    least = float(np.flatnonzero(with_count[1:])[0] + 1)
    low = threshold("minimum", options.minimum, "min", least, none=0.0)
    high = threshold("maximum", options.maximum, "mean", total / users, none=float("inf"))
    kept = np.flatnonzero(with_count[1:]) + 1.0
    kept = kept[kept >= low]
    if not (high >= 1 if options.overflow == "truncate" and len(kept) else (kept <= high).any()):
        raise no_block(total)
    return replace(options, minimum=low, maximum=None if high == float("inf") else high)


def _cut(log: InteractionLog, options: BlockOptions, epoch: int, *partition: int) -> Blocks:
    seeds = [options.seed, epoch, 0, *partition]
    shuffle = np.random.default_rng(seeds) if options.order == "shuffled" else None
    return build_blocks(log, rule=options.rule, shuffle=shuffle)


def _blocks(log: InteractionLog, options: BlockOptions, epoch: int) -> Blocks:
    every = _cut(log, options, epoch)
    blocks = every.select(minimum=options.minimum, maximum=options.maximum, overflow=options.overflow)
    if not len(blocks):
        raise no_block(len(every))
    return blocks


def no_block(before: int) -> DataError:
    """Return the error of a log without blocks to step through, of ``before`` it has before the limits."""
    found = f"{before} blocks, none within the limits" if before else "no block"
    return DataError(f"the training log has {found}; SAROS needs items shown but not preferred before preferred ones")
