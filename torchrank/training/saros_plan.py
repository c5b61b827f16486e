"""What a SAROS epoch steps through: its blocks, its users in order, and its waves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchrank.data.blocks import Blocks, build_blocks
from torchrank.data.log import InteractionLog
from torchrank.errors import DataError
from torchrank.ops.sequential.compiled import Slices
from torchrank.ops.waves import Waves, build_waves


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
    """An epoch, laid out.

    Attributes:
        users: int32, in training order; users without blocks among them.
        block_starts: ``(num_users + 1,)``, user u's blocks are ``block_starts[u]:block_starts[u + 1]``.
        slices: first row and row after the last, of the preferred and of the other part of each block.
        items: what the rows are of.
    """

    users: NDArray[np.int32]
    block_starts: NDArray[np.int64]
    slices: Slices
    items: NDArray[np.int32]

    def part(self, number: int, parts: int) -> NDArray[np.int32]:
        """Return the users of one of ``parts`` shares of the epoch, nearly equal in blocks."""
        done = np.append(0, np.cumsum(np.diff(self.block_starts)[self.users]))
        first, last = np.searchsorted(done, [done[-1] * number / parts, done[-1] * (number + 1) / parts])
        return self.users[first : len(self.users) if number == parts - 1 else last]

    def waves(self, lanes: int) -> Waves:
        """Schedule the users to lanes."""
        return build_waves(self.users, self.block_starts, self.slices, self.items, lanes=lanes)


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


def _blocks(log: InteractionLog, options: BlockOptions, epoch: int) -> Blocks:
    shuffle = np.random.default_rng([options.seed, epoch, 0]) if options.order == "shuffled" else None
    every = build_blocks(log, rule=options.rule, shuffle=shuffle)
    blocks = every.select(minimum=options.minimum, maximum=options.maximum, overflow=options.overflow)
    if not len(blocks):
        found = f"{len(every)} blocks, none within the limits" if len(every) else "no block"
        raise DataError(
            f"the training log has {found}; SAROS needs items shown but not preferred before preferred ones"
        )
    return blocks
