"""Logs from frames, Parquet and CSV: order, ids, duplicates, splits, and every kind of bad input."""

import datetime as dt
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.real_data import REAL_DATA, needs_real_data
from torchrank.data import InteractionLog, build_blocks
from torchrank.errors import DataError, TorchRankError

GOOD = {"user": ["b", "a", "b", "c"], "item": [9, 9, 7, 8], "feedback": [1.0, 0.0, 5.0, 3.0], "time": [4, 1, 2, 3]}


def rows_of(log):
    """(user id, item id, preferred, feedback, time) of every row."""
    columns = log.user_ids[log.users], log.item_ids[log.items], log.preferred, log.feedback, log.times
    return list(zip(*(column.tolist() for column in columns), strict=True))


def expected_rows(frame, positive_at):
    """The same by plain sorting: users by first appearance, then time, then row."""
    users = list(dict.fromkeys(frame["user"]))
    rows = list(zip(frame["user"], frame["item"], frame["feedback"], frame["time"], strict=True))
    order = sorted(range(len(rows)), key=lambda k: (users.index(rows[k][0]), rows[k][3]))
    return [(rows[k][0], rows[k][1], rows[k][2] >= positive_at, rows[k][2], rows[k][3]) for k in order]


frames = st.integers(1, 30).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "user": st.lists(st.sampled_from([5, -3, 2**40, 7, 0]), min_size=n, max_size=n),
            "item": st.lists(st.sampled_from(["x", "", "ü", "longer than twelve bytes"]), min_size=n, max_size=n),
            "feedback": st.lists(st.integers(1, 5), min_size=n, max_size=n),
            "time": st.lists(st.integers(0, 4) | st.integers(-(2**50), 2**50), min_size=n, max_size=n),
        }
    )
)


@given(frames)
def test_rows_lie_by_user_then_time_then_row(columns):
    log = InteractionLog.from_frame(pl.DataFrame(columns), positive_at=4)
    assert rows_of(log) == expected_rows(columns, 4)
    assert log.user_ids.tolist() == list(dict.fromkeys(columns["user"]))
    assert log.item_ids.tolist() == list(dict.fromkeys(columns["item"]))
    for user in range(log.num_users):
        assert (log.users[log.offsets[user] : log.offsets[user + 1]] == user).all()
    assert (log.users.dtype, log.items.dtype, log.preferred.dtype, log.offsets.dtype) == (
        np.int32,
        np.int32,
        np.bool_,
        np.int64,
    )


@given(frames)
def test_narrow_ids_and_hashed_ids_are_numbered_alike(columns):
    codes = {user: code for code, user in enumerate(sorted(set(columns["user"])))}
    narrow = pl.DataFrame({**columns, "user": [codes[user] for user in columns["user"]]})
    text = narrow.with_columns(pl.col("user").cast(pl.String))
    one, other = (InteractionLog.from_frame(frame, positive_at=4) for frame in (narrow, text))
    assert one.users.tolist() == other.users.tolist()
    assert [str(user) for user in one.user_ids] == other.user_ids.tolist()


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int16, pl.UInt16, pl.Int32, pl.UInt32, pl.Int64, pl.UInt64])
def test_integer_ids_keep_their_type(dtype):
    log = InteractionLog.from_frame(pl.DataFrame(GOOD).with_columns(pl.col("item").cast(dtype)), positive_at=1)
    assert log.item_ids.tolist() == [9, 7, 8]
    assert log.item_ids.dtype == np.dtype(dtype.__name__.lower())


@pytest.mark.parametrize(
    "ids",
    [
        [2**40, -(2**62), 2**40, 1],
        pl.Series([2**64 - 1, 0, 2**64 - 1, 3], dtype=pl.UInt64),
        [dt.date(2020, 1, 2), dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(1970, 1, 1)],
        [1.5, -0.5, 1.5, 2.0],
        [True, False, True, True],
        pl.Series(["b", "a", "b", "c"], dtype=pl.Categorical),
        [b"b", b"a", b"b", b"c"],
    ],
)
def test_ids_of_any_type_are_kept(ids):
    log = InteractionLog.from_frame(pl.DataFrame({**GOOD, "user": ids}), positive_at=1)
    assert log.user_ids.tolist() == list(dict.fromkeys(list(ids)))
    assert log.offsets[-1] == 4


def test_frames_of_every_library_give_one_log():
    frame = pl.DataFrame(GOOD)
    expected = rows_of(InteractionLog.from_frame(frame, positive_at=2))
    for other in (frame.lazy(), pd.DataFrame(GOOD), pa.table(GOOD), pl.concat([frame[:1], frame[1:]], rechunk=False)):
        assert rows_of(InteractionLog.from_frame(other, positive_at=2)) == expected


def test_columns_of_other_names():
    frame = pl.DataFrame(GOOD).rename({"user": "who", "item": "what", "feedback": "how", "time": "when"})
    log = InteractionLog.from_frame(frame, user="who", item="what", feedback="how", time="when", positive_at=2)
    assert rows_of(log) == expected_rows(GOOD, 2)


@pytest.mark.parametrize(
    "times",
    [
        [dt.datetime(2020, 1, day) for day in (4, 1, 2, 3)],
        [dt.date(2020, 1, day) for day in (4, 1, 2, 3)],
        [dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (4, 1, 2, 3)],
        pl.Series([4, 1, 2, 3], dtype=pl.Datetime("ns")),  # less than a microsecond apart
        pl.Series([4, 1, 2, 3], dtype=pl.Datetime("ms", "Asia/Tokyo")),
        [0.4, -1e300, 0.2, float("inf")],
        pl.Series([4, 1, 2, 3], dtype=pl.UInt8),
    ],
)
def test_times_of_every_kind_order_the_rows(times):
    log = InteractionLog.from_frame(pl.DataFrame({**GOOD, "time": times}), positive_at=1)
    assert log.item_ids[log.items].tolist() == [7, 9, 9, 8]
    assert log.times[0] < log.times[1]


@pytest.mark.parametrize("kind", [pl.Boolean, pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)])
def test_feedback_of_every_numeric_kind(kind):
    log = InteractionLog.from_frame(pl.DataFrame(GOOD).with_columns(pl.col("feedback").cast(kind)), positive_at=1)
    assert log.preferred[log.users == 1].tolist() == [False]
    assert log.preferred[log.users == 0].tolist() == [True, True]


def test_arrays_belong_to_the_log_and_go_to_torch():
    log = InteractionLog.from_frame(pl.DataFrame(GOOD).sort("user", "time"), positive_at=1)
    for name in ("users", "items", "preferred", "feedback", "times", "offsets"):
        torch.from_numpy(getattr(log, name))


def test_the_frame_is_left_as_it_was():
    frame = pl.DataFrame(GOOD)
    InteractionLog.from_frame(frame, positive_at=1).times[:] = 0
    assert frame.to_dict(as_series=False) == GOOD


# duplicates


@given(frames)
def test_last_keeps_each_pairs_last_row_in_time(columns):
    columns = {**columns, "time": [t % 5 for t in columns["time"]]}
    log = InteractionLog.from_frame(pl.DataFrame(columns), positive_at=4, duplicates="last")
    last = {(row[0], row[1]): place for place, row in enumerate(expected_rows(columns, 4))}
    assert rows_of(log) == [expected_rows(columns, 4)[place] for place in sorted(last.values())]


def test_duplicates_by_policy():
    rows = {"user": [1, 1, 2, 1], "item": ["p", "q", "p", "p"], "feedback": [1, 0, 1, 0], "time": [2, 3, 0, 1]}
    make = lambda policy: InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1, duplicates=policy)  # noqa: E731
    assert len(make("keep")) == 4
    assert rows_of(make("last")) == [(1, "p", True, 1, 2), (1, "q", False, 0, 3), (2, "p", True, 1, 0)]
    with pytest.raises(DataError, match="1 repeated pairs, the first user 1 with item 'p'"):
        make("error")
    with pytest.raises(TorchRankError, match=r"duplicates='lasst'.*did you mean 'last'"):
        make("lasst")


def test_no_duplicates_is_no_error():
    log = InteractionLog.from_frame(pl.DataFrame(GOOD), positive_at=1, duplicates="error")
    assert len(log) == 4


# splits


@given(frames, st.floats(0.01, 0.99))
def test_split_per_user_takes_the_first_rows_of_each(columns, share):
    log = InteractionLog.from_frame(pl.DataFrame(columns), positive_at=4)
    train, test = log.split_per_user(train=share)
    for user in range(log.num_users):
        own, first, second = (
            part.items[part.offsets[user] : part.offsets[user + 1]].tolist() for part in (log, train, test)
        )
        assert first + second == own
        assert len(first) == int(share * len(own))
    for part in (train, test):
        assert part.user_ids is log.user_ids
        assert part.num_items == log.num_items
        assert (part.users == np.repeat(np.arange(log.num_users), np.diff(part.offsets))).all()


@given(frames, st.integers(-1, 5))
def test_split_by_time_cuts_everyone_at_one_moment(columns, moment):
    log = InteractionLog.from_frame(pl.DataFrame(columns), positive_at=4)
    train, test = log.split_by_time(moment)
    assert rows_of(train) == [row for row in rows_of(log) if row[4] < moment]
    assert rows_of(test) == [row for row in rows_of(log) if row[4] >= moment]
    assert train.offsets[-1] == len(train)


def test_split_by_time_at_a_date():
    days = [dt.datetime(2020, 1, day) for day in (4, 1, 2, 3)]
    log = InteractionLog.from_frame(pl.DataFrame({**GOOD, "time": days}), positive_at=1)
    aware = dt.datetime(2020, 1, 3, 9, tzinfo=dt.timezone(dt.timedelta(hours=9)))
    for moment in (dt.datetime(2020, 1, 3), aware, "2020-01-03", np.datetime64("2020-01-03"), dt.date(2020, 1, 3)):
        assert [len(part) for part in log.split_by_time(moment)] == [2, 2]


@pytest.mark.parametrize("moment", ["3000-01-01", "soon", 5, "NaT", None])
def test_a_moment_that_nanoseconds_cannot_hold_is_refused(moment):
    times = pl.Series([4, 1, 2, 3], dtype=pl.Datetime("ns"))
    log = InteractionLog.from_frame(pl.DataFrame({**GOOD, "time": times}), positive_at=1)
    with pytest.raises(TorchRankError, match=r"times are dates or moments of datetime64\[ns\]"):
        log.split_by_time(moment)


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan")])
def test_a_share_outside_the_unit_interval_is_refused(share):
    with pytest.raises(TorchRankError, match="between 0 and 1"):
        InteractionLog.from_frame(pl.DataFrame(GOOD), positive_at=1).split_per_user(train=share)


@pytest.mark.parametrize("moment", ["soon", None, float("nan"), dt.datetime(2020, 1, 1)])
def test_a_moment_that_does_not_compare_is_refused(moment):
    with pytest.raises(TorchRankError, match="times are numbers"):
        InteractionLog.from_frame(pl.DataFrame(GOOD), positive_at=1).split_by_time(moment)


def test_where_wants_a_boolean_a_row():
    log = InteractionLog.from_frame(pl.DataFrame(GOOD), positive_at=1)
    for keep in (np.ones(3, bool), np.ones(4, int)):
        with pytest.raises(DataError, match="4 booleans"):
            log.where(keep)


# bad input


def broken(**columns):
    return pl.DataFrame({**GOOD, **columns}, strict=False)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame(GOOD).drop("time"), r"no column 'time'; its columns are 'user', 'item', 'feedback': .* time=…"),
        (pl.DataFrame({"who": [1]}), r"no column 'user'; its columns are 'who'"),
        (broken(user=["a", None, "b", None]), r"'user' .* 2 null values, the first in row 2"),
        (broken(item=[None, 1, 2, 3]), r"'item' .* 1 null values, the first in row 1"),
        (broken(feedback=[1.0, 2.0, None, 0.0]), r"'feedback' .* null values, the first in row 3"),
        (broken(time=[1, 2, 3, None]), r"'time' .* null values, the first in row 4"),
        (broken(user=[1.0, float("nan"), 2.0, 3.0]), r"'user' .* NaN in row 2"),
        (broken(feedback=[1.0, 2.0, float("nan"), 0.0]), r"'feedback' .* NaN in row 3"),
        (broken(time=[1.0, 2.0, 3.0, float("nan")]), r"'time' .* NaN in row 4"),
        (broken(feedback=["good", "bad", "good", "1"]), r"'feedback' .* text; feedback must be numbers"),
        (broken(time=["2020-01-04", "2020-01-01", "2020-01-02", "2020-01-03"]), r"'time' .* text; .*str.to_datetime"),
        (broken(time=[dt.time(1), dt.time(2), dt.time(3), dt.time(4)]), r"time must be numbers, dates or moments"),
        (broken(user=[[1], [2], [1], [3]]), r"'user' .* large_list.* cannot be an id"),
        (pl.DataFrame(GOOD)[:0], r"no rows"),
        (pl.DataFrame({"user": [], "item": [], "feedback": [], "time": []}), r"no rows"),
        (pd.DataFrame({**GOOD, "user": ["a", 1, 2.5, "b"]}), r"'user' .* mixes types"),
    ],
)
def test_broken_frames_are_refused(frame, message):
    with pytest.raises(DataError, match=message):
        InteractionLog.from_frame(frame, positive_at=1)


def test_what_is_no_frame_is_refused():
    with pytest.raises(DataError, match="not from a list"):
        InteractionLog.from_frame([1, 2], positive_at=1)


def test_a_threshold_that_is_no_number_is_refused():
    with pytest.raises(TorchRankError, match="positive_at=nan"):
        InteractionLog.from_frame(pl.DataFrame(GOOD), positive_at=float("nan"))


def test_one_user_only_is_a_log():
    log = InteractionLog.from_frame(pl.DataFrame({**GOOD, "user": ["a"] * 4}), positive_at=3)
    assert log.num_users == 1
    assert [len(part) for part in log.split_per_user(train=0.8)] == [3, 1]
    assert len(build_blocks(log)) == 1


def test_users_without_positives_have_no_blocks():
    log = InteractionLog.from_frame(pl.DataFrame(GOOD), positive_at=99)
    assert not log.preferred.any()
    assert build_blocks(log).counts.tolist() == [0, 0, 0]


# files


def test_parquet_file_and_folder(tmp_path):
    frame = pl.DataFrame(GOOD)
    frame.write_parquet(tmp_path / "log.parquet", row_group_size=1)
    log = InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=2)
    assert rows_of(log) == expected_rows(GOOD, 2)
    parts = tmp_path / "parts"
    parts.mkdir()
    frame[2:].write_parquet(parts / "b.parquet")
    frame[:2].write_parquet(parts / "a.parquet")
    assert rows_of(InteractionLog.from_parquet(parts, positive_at=2)) == expected_rows(GOOD, 2)


def test_a_partitioned_folder_gives_its_keys_as_columns(tmp_path):
    for user, part in pl.DataFrame(GOOD).partition_by("user", as_dict=True).items():
        folder = tmp_path / f"user={user[0]}"
        folder.mkdir()
        part.drop("user").write_parquet(folder / "part.parquet")
    log = InteractionLog.from_parquet(tmp_path, positive_at=2)
    by_name = {**GOOD, **pl.DataFrame(GOOD).sort("user").to_dict(as_series=False)}
    assert sorted(rows_of(log)) == sorted(expected_rows(by_name, 2))


def test_bad_parquet_is_named(tmp_path):
    (tmp_path / "log.parquet").write_text("user,item\n1,2\n")
    with pytest.raises(DataError, match=r"log\.parquet is not Parquet"):
        InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=1)
    with pytest.raises(DataError, match="there is no"):
        InteractionLog.from_parquet(tmp_path / "other.parquet", positive_at=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no Parquet"):
        InteractionLog.from_parquet(tmp_path / "empty", positive_at=1)
    pl.DataFrame(GOOD).drop("item").write_parquet(tmp_path / "log.parquet")
    with pytest.raises(
        DataError, match=r"log\.parquet has no column 'item'; its columns are 'user', 'feedback', 'time'"
    ):
        InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=1)


@pytest.mark.parametrize(("separator", "packed"), [(",", False), ("\t", False), (";", True)])
def test_csv_plain_and_compressed(tmp_path, separator, packed):
    text = pl.DataFrame(GOOD).write_csv(separator=separator).encode()
    path = tmp_path / "log.csv.gz" if packed else tmp_path / "log.csv"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert rows_of(InteractionLog.from_csv(path, positive_at=2, separator=separator)) == expected_rows(GOOD, 2)


def csv_log(tmp_path, text):
    (tmp_path / "log.csv").write_text(text)
    return InteractionLog.from_csv(tmp_path / "log.csv", positive_at=1)


def test_csv_ids_lose_nothing(tmp_path):
    log = csv_log(tmp_path, "user,item,feedback,time\n7,12,1,1\n07,13,0,2\n")
    assert log.user_ids.tolist() == ["7", "07"]
    assert log.item_ids.tolist() == [12, 13]


@pytest.mark.parametrize(
    ("first", "second"), [("2020-01-02", "2020-01-01"), ("2020-01-01T10:00:00", "2020-01-01T09:59:59"), ("2.5", "2.25")]
)
def test_csv_times_may_be_moments_or_numbers(tmp_path, first, second):
    log = csv_log(tmp_path, f"user,item,feedback,time\n1,a,1,{first}\n1,b,0,{second}\n")
    assert log.item_ids[log.items].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user,item,feedback,time\n1,a,1,1\n1,b,good,2\n", r"row 2 of .*log\.csv: feedback 'good' is not a number"),
        ("user,item,feedback,time\n1,a,1,soon\n1,b,1,later\n", r"row 1 .*: time 'soon' is not a number or a moment"),
        ("user,item,feedback,time\n1,a,1,2020-01-01\n1,b,1,later\n", r"row 2 .*: time 'later' is not"),
        ("user,item,feedback,time\n1,,1,1\n", r"'item' .* null values, the first in row 1"),
        ("user,item,feedback,time\n1,a,nan,1\n", r"'feedback' .* NaN in row 1"),
        ("user,item,feedback\n1,a,1\n", r"no column 'time'"),
        ("user,item,feedback,time\n", r"no rows"),
        ("", r"does not read as CSV"),
        ("user,item,feedback,time\n1,a,1,1,extra\n", r"does not read as CSV"),
    ],
)
def test_broken_csv_is_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        csv_log(tmp_path, text)


def test_a_missing_csv_file_is_named(tmp_path):
    with pytest.raises(DataError, match="there is no"):
        InteractionLog.from_csv(tmp_path / "none.csv", positive_at=1)


# the real log


@needs_real_data
def test_movielens_1m_has_the_published_split():
    file = REAL_DATA / "movielens-1m" / "interactions.parquet"
    log = InteractionLog.from_parquet(file, feedback="positive", time="order", positive_at=1, duplicates="error")
    train, test = log.split_per_user(train=0.8)
    assert (log.num_users, log.num_items, len(train), len(test)) == (6040, 3706, 797_758, 202_451)
    assert [int(part.preferred.sum()) for part in (train, test)] == [469_232, 106_049]  # published: 58.82 and 52.39 %


@pytest.mark.parametrize("value", ["1", None, [1], float("nan")], ids=str)
def test_limits_and_shares_that_are_no_numbers(value):
    frame = pl.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "feedback": [1, 0], "time": [1, 2]})
    with pytest.raises(TorchRankError, match="positive_at="):
        InteractionLog.from_frame(frame, positive_at=value)
    with pytest.raises(TorchRankError, match="train="):
        InteractionLog.from_frame(frame, positive_at=1).split_per_user(train=value)
