"""Whose turn it is in an epoch: a log in memory, or one partition after the other of a log on disk."""

from dataclasses import dataclass

import numpy as np

from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.training.processes import Processes

ALONE = Processes(0, 1)


@dataclass(frozen=True, eq=False)
class Turn:
    """What a stretch of an epoch's steps is taken on.

    Attributes:
        log: in memory the whole log; on disk a partition, whose users count from 0.
        first_user: internal index of its first user.
        seeds: what its draws are seeded with besides: nothing of a log in memory, the number of a partition.
    """

    log: InteractionLog
    first_user: int = 0
    seeds: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Turn({self.log} from user {self.first_user} on)"


def place_of(
    log: InteractionLog | PreparedLog, number: int, parts: int, processes: Processes = ALONE
) -> tuple[int, int, int]:
    """Find a step of an epoch: the place of its partition in the epoch, and its number among that partition's steps.

    Args:
        log: what is trained on; in memory it is one partition.
        number: of the step.
        parts: steps of the epoch, at least one for each partition.
        processes: that read partitions of their own side by side.

    Returns:
        the partition's place, the step's number in it, and how many steps it has.

    Example:
        >>> from torchrank.data import make_interactions
        >>> place_of(make_interactions(num_users=9, num_items=9, num_interactions=40)[0], 3, 20)
        (0, 3, 20)
    """
    rounds = len(processes.rounds(log)) if isinstance(log, PreparedLog) else 1
    place = number * rounds // parts
    first, last = (-(-each * parts // rounds) for each in (place, place + 1))
    return place, number - first, last - first


def partition_at(
    log: PreparedLog, place: int, *, epoch: int, seed: int, shuffled: bool, processes: Processes = ALONE
) -> int:
    """Return the partition that a process reads at a place of an epoch.

    Args:
        log: what is trained on.
        place: from 0.
        epoch: its number.
        seed: of the order.
        shuffled: whether the partitions come in a random order, or by number.
        processes: of which this one's partition is wanted.

    Returns:
        its number.
    """
    rounds = processes.rounds(log)
    if shuffled:
        rounds = np.random.default_rng([seed, epoch, 2]).permutation(rounds)
    return int(rounds[place, processes.rank])


def take_turn(
    log: InteractionLog | PreparedLog, place: int, *, epoch: int, seed: int, processes: Processes = ALONE
) -> Turn:
    """Open what is trained on at a place of an epoch, partitions in a random order.

    Args:
        log: what is trained on; in memory it is there whole at every place.
        place: from 0.
        epoch: its number.
        seed: of the order.
        processes: of which this one's partition is opened.

    Returns:
        the log or the partition.
    """
    if isinstance(log, InteractionLog):
        return Turn(log)
    number = partition_at(log, place, epoch=epoch, seed=seed, shuffled=True, processes=processes)
    return Turn(log.partition(number), int(log.user_starts[number]), (number,))
