"""Logs split for training, validation and test, and the steps of an epoch."""

from itertools import pairwise

import polars as pl
import pytest

from torchrank.data import InteractionLog, make_interactions
from torchrank.errors import DataError, TorchRankError
from torchrank.training import InteractionDataModule, SAROSModule, fit_interactions
from torchrank.training.interaction_data import EpochParts

LOG, _ = make_interactions(num_users=20, num_items=60, num_interactions=500)


def test_parts_follow_each_other_in_every_users_time():
    data = InteractionDataModule(LOG, train=0.7, validation=0.2)
    data.setup("fit")
    parts = data.train_log, data.val_log, data.test_log
    for user in range(LOG.num_users):
        own = [part.items[part.offsets[user] : part.offsets[user + 1]].tolist() for part in parts]
        whole = [item for part in own for item in part]
        assert whole == LOG.items[LOG.offsets[user] : LOG.offsets[user + 1]].tolist()
        n = len(whole)
        assert len(own[2]) == n - int(0.7 * n)
        assert len(own[0]) == int((1 - 0.2) * int(0.7 * n))
    assert len(next(iter(data.val_dataloader()))) == len(next(iter(data.test_dataloader()))) == LOG.num_users


def test_files_are_read_by_their_name(tmp_path):
    frame = pl.DataFrame({"u": [1, 1, 2], "i": [5, 6, 5], "f": [1, 5, 4], "t": [3, 2, 1]})
    frame.write_csv(tmp_path / "log.csv")
    frame.write_parquet(tmp_path / "log.parquet")
    columns = {"user": "u", "item": "i", "feedback": "f", "time": "t", "positive_at": 4}
    for name in ("log.csv", "log.parquet"):
        data = InteractionDataModule(str(tmp_path / name), train=1, validation=0, **columns)
        assert data.train_log.preferred.tolist() == [True, False, True]
        assert data.val_log is None
        assert list(data.val_dataloader()) == []
        with pytest.raises(DataError, match="train=1"):
            data.test_dataloader()
    with pytest.raises(DataError, match="positive_at"):
        InteractionDataModule("log.csv")
    with pytest.raises(DataError, match="absent"):
        InteractionDataModule("absent.csv", positive_at=1).setup("fit")


def test_bad_shares_are_refused():
    for options in ({"validation": 1.0}, {"validation": -0.1}, {"steps_per_epoch": 0}):
        with pytest.raises(TorchRankError, match=next(iter(options))):
            InteractionDataModule(LOG, **options)
    with pytest.raises(TorchRankError, match="train=2"):
        InteractionDataModule(LOG, train=2).setup("fit")


def test_the_steps_of_an_epoch_go_on_where_another_run_stood():
    parts = EpochParts(4)
    assert [part.number for part in parts] == [0, 1, 2, 3]
    steps = iter(parts)
    assert [next(steps).number, next(steps).number] == [0, 1]
    again = EpochParts(4)
    again.load_state_dict(parts.state_dict())
    assert [part.number for part in again] == [2, 3]
    assert [part.number for part in again] == [0, 1, 2, 3]
    with pytest.raises(DataError, match="4 steps"):
        EpochParts(5).load_state_dict(parts.state_dict())


def test_a_watcher_sees_every_step_and_may_end_training():
    seen = []

    def watch(seconds, steps):
        seen.append((seconds, steps))
        return steps == 7

    spent = fit_interactions(SAROSModule(), LOG, epochs=5, steps_per_epoch=4, watch=watch)
    assert [steps for _, steps in seen] == list(range(1, 8))
    assert all(a < b for (a, _), (b, _) in pairwise(seen))
    assert spent >= seen[-1][0] > 0
    assert isinstance(InteractionDataModule(LOG, train=1, validation=0).train_log, InteractionLog)
