"""Interactions for training, validation and test, from a file or from memory."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch

from torchrank.data.log import InteractionLog
from torchrank.data.log_reading import read_log
from torchrank.data.prepared import PreparedLog, is_prepared
from torchrank.errors import DataError, check_count, check_share
from torchrank.training.processes import Processes
from torchrank.training.shown_lists import ShownLists, join_lists

#: rows of a log on disk that are measured at once, at least
_ROWS = 1_000_000


class EpochPart(NamedTuple):
    """One training step's share of an epoch: part ``number`` of ``parts``."""

    number: int
    parts: int

    def share(self, length: int) -> range:
        """Return which of ``length`` things in a row are this part's.

        Example:
            >>> [list(EpochPart(number, 2).share(3)) for number in (0, 1)]
            [[0], [1, 2]]
        """
        return range(length * self.number // self.parts, length * (self.number + 1) // self.parts)


class EpochParts:
    """The steps of an epoch; its state lets Lightning resume inside one with exactly the next step."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self._next = 0

    def __len__(self) -> int:
        return self.parts

    def __iter__(self) -> Iterator[EpochPart]:
        if self._next >= self.parts:
            self._next = 0
        while self._next < self.parts:
            self._next += 1
            yield EpochPart(self._next - 1, self.parts)

    def state_dict(self) -> dict[str, int]:
        """Where the epoch stands."""
        return {"next": self._next, "parts": self.parts}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where another run stood.

        Raises:
            DataError: it cut its epochs into another number of steps.
        """
        if state["parts"] != self.parts:
            raise DataError(
                f"the checkpoint's epochs have {state['parts']} steps; set steps_per_epoch={state['parts']}"
            )
        self._next = state["next"]


class InteractionDataModule(pl.LightningDataModule):
    """A log of shown items, split in each user's time: the first interactions train, the next validate, the last test.

    Args:
        log: a file or folder that :func:`~torchrank.data.read_log` reads, or an
            :class:`~torchrank.data.InteractionLog`; the options of the columns are for files. Or a log on disk, a
            :class:`~torchrank.data.PreparedLog` or the folder of one, which has all these options from its preparation;
            :class:`~torchrank.training.SAROSModule`, ``BPRModule`` and ``MFModule`` read it partition by partition.
        positive_at: an item is preferred where its feedback is at least this; needed for files.
        user: column of user ids.
        item: column of item ids.
        feedback: column of numbers.
        time: column of numbers, dates or moments.
        duplicates: ``"keep"``, ``"last"`` or ``"error"`` for a user's further rows of one item.
        train: share of each user's interactions that is not test; 1 keeps none for the test.
        validation: share of each user's training interactions, the last of them, that is kept for validation; 0 trains
            on all and validates nothing.
        steps_per_epoch: steps an epoch is cut into, for progress bars and checkpoints; changes no result. Of a log on
            disk every partition is cut into as many, one at least.

    Raises:
        TorchRankError: a share or a number of steps that cannot be.
        DataError: a file without ``positive_at``.

    Example:
        >>> from torchrank.data import make_interactions
        >>> log, _ = make_interactions(num_users=20, num_items=50, num_interactions=400)
        >>> data = InteractionDataModule(log)
        >>> data.setup("fit")
        >>> len(data.train_log) + len(data.val_log) + len(data.test_log)
        400
    """

    def __init__(
        self,
        log: str | InteractionLog | PreparedLog,
        *,
        positive_at: float | None = None,
        user: str = "user",
        item: str = "item",
        feedback: str = "feedback",
        time: str = "time",
        duplicates: str = "keep",
        train: float = 0.8,
        validation: float = 0.1,
        steps_per_epoch: int = 20,
    ) -> None:
        super().__init__()
        check_share("validation", validation, zero=True)
        check_count("steps_per_epoch", steps_per_epoch)
        if isinstance(log, str) and is_prepared(log):
            log = PreparedLog(log)
        if isinstance(log, PreparedLog) and positive_at not in (None, log.positive_at):
            raise DataError(f"positive_at={positive_at}, but the log was prepared with positive_at={log.positive_at}")
        if positive_at is None and isinstance(log, str):
            raise DataError(f"say positive_at=…, the least feedback in {log} that counts as preferred")
        self.log = log
        self.positive_at = positive_at
        self.user, self.item, self.feedback, self.time = user, item, feedback, time
        self.duplicates = duplicates
        self.train = train
        self.validation = validation
        self.steps_per_epoch = steps_per_epoch
        self._parts: tuple[Any, Any, Any] | None = None

    def setup(self, stage: str) -> None:
        """Read and split the log, once."""
        if self._parts is None:
            log: Any = self._read(self.log) if isinstance(self.log, str) else self.log
            train, test = (log, None) if self.train == 1 else log.split_per_user(train=self.train)
            parts = (train, None) if self.validation == 0 else train.split_per_user(train=1 - self.validation)
            self._parts = (*parts, test)

    def _read(self, path: str) -> InteractionLog:
        columns = {"user": self.user, "item": self.item, "feedback": self.feedback, "time": self.time}
        assert self.positive_at is not None  # noqa: S101 - for the type checker: refused in __init__
        return read_log(path, positive_at=self.positive_at, duplicates=self.duplicates, **columns)

    def _part(self, number: int) -> Any:
        if self._parts is None:
            self.setup("fit")
        return self._parts[number]  # type: ignore[index] # set up above

    @property
    def train_log(self) -> InteractionLog | PreparedLog:
        """What is trained on."""
        log: InteractionLog | PreparedLog = self._part(0)
        return log

    @property
    def val_log(self) -> InteractionLog | PreparedLog | None:
        """What is validated on; None for ``validation=0``."""
        log: InteractionLog | PreparedLog | None = self._part(1)
        return log

    @property
    def test_log(self) -> InteractionLog | PreparedLog:
        """What is tested on.

        Raises:
            DataError: nothing was kept for the test.
        """
        log: InteractionLog | PreparedLog | None = self._part(2)
        if log is None:
            raise DataError("train=1 keeps nothing for the test; give a share below 1")
        return log

    def train_dataloader(self) -> EpochParts:
        """The steps of an epoch."""
        log = self.train_log
        if isinstance(log, PreparedLog):
            return EpochParts(log.num_partitions * max(1, round(self.steps_per_epoch / log.num_partitions)))
        return EpochParts(self.steps_per_epoch)

    def val_dataloader(self) -> Any:
        """One batch, all lists of the validation part, or several where it is on disk; nothing where there is none."""
        return OneBatch(None) if self.val_log is None else self._batches(self.val_log)

    def test_dataloader(self) -> Any:
        """One batch, all lists of the test part, or several where it is on disk."""
        return self._batches(self.test_log)

    def _batches(self, log: InteractionLog | PreparedLog) -> Any:
        """The lists of all users, or of those of this process."""
        processes = Processes.of(self.trainer)
        if isinstance(log, PreparedLog):
            return BatchesFromDisk(log, processes)
        lists = ShownLists.from_log(log)
        return OneBatch(lists if processes.size == 1 else lists.where(processes.own(log)[lists.users]))

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Leave batches where they are: they say what to work on and hold no tensors."""
        return batch


class OneBatch:
    """A loader of one batch or none; it does not tell its length, of which Lightning warns where it is 0."""

    def __init__(self, lists: ShownLists | None) -> None:
        self.lists = lists

    def __iter__(self) -> Iterator[ShownLists]:
        return iter(() if self.lists is None else (self.lists,))


class BatchesFromDisk:
    """All lists of a log on disk, some partitions at a time; of several processes each reads its own users' lists."""

    def __init__(self, log: PreparedLog, processes: Processes) -> None:
        self.log = log
        self.processes = processes

    def __iter__(self) -> Iterator[ShownLists]:
        held: list[ShownLists] = []
        own = self.processes.own(self.log)
        rows = 0  # of all processes, so that each has as many batches
        for numbers in self.processes.rounds(self.log):
            number = int(numbers[self.processes.rank])
            part = self.log.partition(number)
            users = np.flatnonzero(np.diff(part.offsets))
            offsets = np.append(part.offsets[users], len(part))
            everybody = self.log.user_starts[number] + users
            lists = ShownLists(part.user_ids[users], everybody, part.items, part.preferred, offsets)
            held.append(lists.where(own[everybody]))
            rows += self.log.rows[np.unique(numbers)].sum()
            if rows >= _ROWS:
                yield join_lists(held)
                held, rows = [], 0
        if rows:
            yield join_lists(held)
