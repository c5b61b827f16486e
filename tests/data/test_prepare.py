"""Prepared logs equal the log read at once, whatever the format, the ids and the number of partitions."""

import datetime as dt
import errno
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchrank.data import InteractionLog, PreparedLog, build_blocks, prepare_log
from torchrank.data.files import whole_file
from torchrank.errors import DataError, TorchRankError

GOOD = {"user": ["b", "a", "b", "c"], "item": [9, 9, 7, 8], "feedback": [1.0, 0.0, 5.0, 3.0], "time": [4, 1, 2, 3]}


def random_frame(rows=3000, users=200, items=60, seed=0):
    generator = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user": generator.integers(0, users, rows) * 3,
            "item": [f"item {k}" for k in generator.integers(0, items, rows)],
            "feedback": generator.integers(1, 6, rows),
            "time": generator.integers(0, 500, rows),
        }
    )


def assert_same(prepared, log):
    """A prepared log holds the same rows in the same order of each user, and numbers items alike."""
    whole = prepared.to_log()
    assert whole.item_ids.dtype == log.item_ids.dtype
    assert whole.item_ids.tolist() == log.item_ids.tolist()
    assert whole.user_ids.dtype == log.user_ids.dtype
    assert (len(prepared), prepared.num_users, prepared.num_items) == (len(log), log.num_users, log.num_items)
    user = log.user_index(whole.user_ids)
    assert sorted(user.tolist()) == list(range(log.num_users))
    order = np.argsort(user[whole.users], kind="stable")
    for name in ("items", "preferred", "feedback", "times"):
        there, expected = getattr(whole, name), getattr(log, name)
        assert there.dtype == expected.dtype, name
        assert there[order].tolist() == expected.tolist(), name
    assert np.array_equal(np.diff(whole.offsets), np.diff(log.offsets)[user])
    for number, part in enumerate(prepared.partitions()):
        first = prepared.user_starts[number]
        assert np.array_equal(
            part.users + first, whole.users[(whole.users >= first) & (whole.users < first + part.num_users)]
        )
        assert (np.diff(user[first : first + part.num_users]) > 0).all()  # by first appearance


frames = st.integers(1, 40).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "user": st.lists(st.sampled_from([5, -3, 2**40, 7, 0]), min_size=n, max_size=n),
            "item": st.lists(st.sampled_from(["x", "ü", "longer than twelve bytes"]), min_size=n, max_size=n),
            "feedback": st.lists(st.integers(1, 5), min_size=n, max_size=n),
            "time": st.lists(st.integers(0, 4) | st.integers(-(2**50), 2**50), min_size=n, max_size=n),
        }
    )
)


@settings(max_examples=20)
@given(frames, st.sampled_from([1, 3, 8]), st.sampled_from(["keep", "last"]))
def test_a_prepared_log_is_the_log(tmp_path_factory, columns, partitions, duplicates):
    folder = tmp_path_factory.mktemp("log")
    for kind in ("parquet", "csv"):
        path = folder / f"log.{kind}"
        getattr(pl.DataFrame(columns), f"write_{kind}")(path)
        options = {"positive_at": 4, "duplicates": duplicates}
        prepared = prepare_log(path, folder / kind, partitions=partitions, **options)
        assert_same(prepared, getattr(InteractionLog, f"from_{kind}")(path, **options))
        prepared.verify()


@pytest.mark.parametrize(
    "ids",
    [
        [2**40, -(2**62), 2**40, 1],
        pl.Series([2**64 - 1, 0, 2**64 - 1, 3], dtype=pl.UInt64),
        pl.Series([3, 0, 3, 1], dtype=pl.Int8),
        [dt.date(2020, 1, 2), dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(1970, 1, 1)],
        [1.5, -0.5, 1.5, 2.0],
        [True, False, True, True],
        pl.Series(["b", "a", "b", "c"], dtype=pl.Categorical),
        [b"b", b"a", b"b", b"c"],
    ],
)
def test_ids_of_any_type(ids, tmp_path):
    for column in ("user", "item"):
        path = tmp_path / f"{column}.parquet"
        pl.DataFrame({**GOOD, column: ids}).write_parquet(path)
        prepared = prepare_log(path, tmp_path / column, positive_at=2, partitions=3)
        log = InteractionLog.from_parquet(path, positive_at=2)
        assert_same(prepared, log)
        assert prepared.user_ids[prepared.user_index(log.user_ids)].tolist() == log.user_ids.tolist()
        assert prepared.item_index(log.item_ids).tolist() == list(range(log.num_items))


@pytest.mark.parametrize(
    "times",
    [
        [dt.datetime(2020, 1, day) for day in (4, 1, 2, 3)],
        [dt.date(2020, 1, day) for day in (4, 1, 2, 3)],
        pl.Series([4, 1, 2, 3], dtype=pl.Datetime("ms", "Asia/Tokyo")),
        [0.4, -1e300, 0.2, float("inf")],
        pl.Series([4, 1, 2, 3], dtype=pl.UInt8),
    ],
)
def test_times_of_every_kind(times, tmp_path):
    path = tmp_path / "log.parquet"
    pl.DataFrame({**GOOD, "time": times}).write_parquet(path)
    assert_same(prepare_log(path, tmp_path / "p", positive_at=2), InteractionLog.from_parquet(path, positive_at=2))


@pytest.mark.parametrize("kind", [pl.Boolean, pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)])
def test_feedback_of_every_numeric_kind(kind, tmp_path):
    path = tmp_path / "log.parquet"
    pl.DataFrame(GOOD).with_columns(pl.col("feedback").cast(kind)).write_parquet(path)
    assert_same(prepare_log(path, tmp_path / "p", positive_at=1), InteractionLog.from_parquet(path, positive_at=1))


CSV = {
    "whole": "1,x,1,10\n2,y,0,9\n1,y,1,8\n",
    "leading zero": "1,7,1,10\n2,07,0,9\n1,7,1,8\n",
    "real": "a,x,1,1.5\na,y,0.5,1\nb,x,1,2\n",
    "moments": 'a,x,1,2020-01-02T10:00:00\n"a ""q""\n2",y,0,2020-01-01T00:00:00\na,"y,z",1,2019-01-01T00:00:00\n',
    "large": "1,1,1,9007199254740993\n1,2,1,9007199254740992\n",
}


@pytest.mark.parametrize("name", CSV)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_text_is_read_as_a_log_reads_it(name, suffix, tmp_path):
    text = "user,item,feedback,time\n" + CSV[name]
    text = text if "csv" in suffix else text.replace(",", "\t")
    path = tmp_path / f"log{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
    separator = "," if "csv" in suffix else "\t"
    expected = InteractionLog.from_csv(path, positive_at=1, separator=separator)
    assert_same(prepare_log(path, tmp_path / "p", positive_at=1), expected)


def test_files_follow_each_other(tmp_path):
    frame = random_frame()
    frame[:1000].write_parquet(tmp_path / "b.parquet", row_group_size=100)
    frame[1000:].with_columns(pl.col("user").cast(pl.Int32)).write_parquet(tmp_path / "a.parquet")
    frame.write_parquet(tmp_path / "whole.parquet")
    expected = InteractionLog.from_parquet(tmp_path / "whole.parquet", positive_at=4)
    paths = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    assert_same(prepare_log(paths, tmp_path / "p", positive_at=4), expected)
    for name, part in (("b", frame[:1000]), ("a", frame[1000:])):
        part.write_csv(tmp_path / f"{name}.csv")
    paths = [tmp_path / "b.csv", tmp_path / "a.csv"]
    assert_same(prepare_log(paths, tmp_path / "q", positive_at=4), expected)


def test_folders_with_hive_partitions(tmp_path):
    folder = tmp_path / "log"
    for item in (5, 7):
        (folder / f"item={item}").mkdir(parents=True)
        frame = pl.DataFrame({"user": [1, 2, item], "feedback": [1, 0, 1], "time": [item, 1, 2]})
        frame.write_parquet(folder / f"item={item}" / "part.parquet")
    expected = InteractionLog.from_parquet(folder, positive_at=1)
    assert_same(prepare_log(folder, tmp_path / "p", positive_at=1), expected)


def test_columns_of_other_names_and_the_options_of_small_batches(tmp_path, monkeypatch):
    names = {"user": "who", "item": "what", "feedback": "how", "time": "when"}
    random_frame().rename(names).write_parquet(tmp_path / "log.parquet", row_group_size=700)
    monkeypatch.setattr("torchrank.data.log_sources._PIECE_ROWS", 1000)
    monkeypatch.setattr("torchrank.data.prepare._BATCH_ROWS", 300)
    seen = []
    prepared = prepare_log(
        tmp_path / "log.parquet",
        tmp_path / "p",
        positive_at=4,
        partitions=7,
        progress=lambda *told: seen.append(told),
        **names,
    )
    assert_same(prepared, InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=4, **names))
    assert seen == [("deal", n, 4) for n in range(5)] + [("sort", n, 7) for n in range(8)]


def test_counts_stand_beside_the_rows(tmp_path):
    random_frame().write_parquet(tmp_path / "log.parquet")
    prepared = prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=4)
    log = prepared.to_log()
    assert prepared.counts("rows").tolist() == np.diff(log.offsets).tolist()
    assert prepared.counts("preferred").tolist() == np.bincount(log.users[log.preferred], minlength=200).tolist()
    for rule in ("run", "single", "eager", "positive"):
        counts = build_blocks(log, rule=rule).counts
        assert prepared.counts(f"blocks_{rule}").tolist() == counts.tolist()
        first, last = prepared.user_starts[3:5]
        assert prepared.counts(f"blocks_{rule}", 3).tolist() == counts[first:last].tolist()
    with pytest.raises(DataError, match="'blocks_run'"):
        prepared.counts("blocks")


def test_parts_split_every_partition_as_the_log_is_split(tmp_path):
    random_frame().write_parquet(tmp_path / "log.parquet")
    prepared = prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=4)
    for first, second in zip(
        prepared.split_per_user(train=0.7), prepared.to_log().split_per_user(train=0.7), strict=True
    ):
        assert len(first) == len(second) == first.rows.sum()
        for part, expected in ((first, second), *zip(first.split_per_user(), second.split_per_user(), strict=True)):
            whole = part.to_log()
            for name in ("users", "items", "preferred", "feedback", "times", "offsets"):
                assert getattr(whole, name).tolist() == getattr(expected, name).tolist()
    with pytest.raises(TorchRankError, match="train=1"):
        prepared.split_per_user(train=1)


def test_writing_to_a_partition_changes_no_file(tmp_path):
    pl.DataFrame(GOOD).write_csv(tmp_path / "log.csv")
    prepared = prepare_log(tmp_path / "log.csv", tmp_path / "p", positive_at=2)
    for name in ("users", "items", "preferred", "feedback", "times"):
        getattr(prepared.partition(0), name)[:] = 0
    prepared.verify()


# interruption and errors


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("step", ["deal", "sort"])
def test_a_run_goes_on_where_another_stood(step, tmp_path, monkeypatch):
    monkeypatch.setattr("torchrank.data.log_sources._PIECE_ROWS", 1000)
    random_frame().write_parquet(tmp_path / "log.parquet", row_group_size=500)
    options = {"positive_at": 4, "partitions": 4}

    def stop(name, done, there):
        if (name, done) == (step, 2):
            raise StoppedError

    with pytest.raises(StoppedError):
        prepare_log(tmp_path / "log.parquet", tmp_path / "p", progress=stop, **options)
    with pytest.raises(DataError, match="no prepared log"):
        PreparedLog(tmp_path / "p")
    (tmp_path / "p" / ".unfinished" / ".unfinished-killed").mkdir()
    seen = []
    prepared = prepare_log(
        tmp_path / "log.parquet", tmp_path / "p", progress=lambda *told: seen.append(told), memory="1GiB", **options
    )
    assert seen[0] == (("deal", 2, 3) if step == "deal" else ("deal", 3, 3))
    assert next(told for told in seen if told[0] == "sort") == ("sort", 2 if step == "sort" else 0, 4)
    assert_same(prepared, InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=4))
    names = {path.name for path in (tmp_path / "p").iterdir()}
    files = {f"{kind}-{n:05}.arrow" for kind in ("rows", "users") for n in range(4)}
    assert names == {"manifest.json", "items.arrow", *files}
    (tmp_path / "p" / ".unfinished").mkdir()  # a run was killed when all but this was done
    again = []
    assert (
        len(prepare_log(tmp_path / "log.parquet", tmp_path / "p", progress=lambda *t: again.append(t), **options))
        == 3000
    )
    assert again == []
    assert {path.name for path in (tmp_path / "p").iterdir()} == names


def test_another_plan_begins_anew(tmp_path):
    random_frame().write_parquet(tmp_path / "log.parquet")

    def stop(name, done, there):
        if name == "sort" and done == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=4, progress=stop)
    seen = []
    prepared = prepare_log(
        tmp_path / "log.parquet", tmp_path / "p", positive_at=2, partitions=2, progress=lambda *told: seen.append(told)
    )
    assert seen[0] == ("deal", 0, 1)
    assert_same(prepared, InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=2))
    assert len(list((tmp_path / "p").glob("rows-*"))) == 2
    for options in ({"positive_at": 3}, {"positive_at": 2, "partitions": 3}, {"positive_at": 2, "duplicates": "last"}):
        with pytest.raises(DataError, match="other options"):
            prepare_log(tmp_path / "log.parquet", tmp_path / "p", **options)
    random_frame(seed=1).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(DataError, match="other files"):
        prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=2)


def write_rows(path, rows, seed=0):
    """A log of many row groups, drawn a part at a time."""
    generator = np.random.default_rng(seed)
    writer = None
    for first in range(0, rows, 500_000):
        size = min(500_000, rows - first)
        columns = {
            "user": generator.integers(0, rows // 50, size),
            "item": generator.integers(0, 5000, size),
            "feedback": generator.integers(1, 6, size).astype(np.int8),
            "time": generator.integers(0, rows, size),
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def start(*words):
    command = [sys.executable, "-m", "tests.data.prepare_run", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_run_is_taken_up_and_ends_right(tmp_path):
    """Three kills; ``TORCHRANK_KILLS=100 pytest tests/data/test_prepare.py -k killed`` kills a hundred times."""
    write_rows(tmp_path / "log.parquet", 1_500_000)
    expected = prepare_log(tmp_path / "log.parquet", tmp_path / "undisturbed", positive_at=3, partitions=6)
    generator, kills, out = np.random.default_rng(0), 0, tmp_path / "killed"
    while kills < int(os.environ.get("TORCHRANK_KILLS", "3")):
        shutil.rmtree(out, ignore_errors=True)
        longest = 1.0
        while True:
            run = start(tmp_path / "log.parquet", out, "2GiB", 6)
            assert run.stdout.readline() == "begins\n"
            try:
                _, err = run.communicate(timeout=generator.uniform(0.0, longest))
            except subprocess.TimeoutExpired:
                run.kill()
                _, err = run.communicate()
            if run.returncode == -signal.SIGKILL:  # it may have ended just before
                kills, longest = kills + 1, longest + 0.5  # so that it ends, however slow the machine
                if (out / "manifest.json").exists():
                    PreparedLog(out).verify()
                else:
                    with pytest.raises(DataError, match="no prepared log"):
                        PreparedLog(out)
                continue
            assert run.returncode == 0, err
            break
        prepared = PreparedLog(out)
        prepared.verify()
        whole, undisturbed = prepared.to_log(), expected.to_log()
        for name in ("users", "items", "preferred", "feedback", "times", "user_ids", "item_ids"):
            assert np.array_equal(getattr(whole, name), getattr(undisturbed, name)), name
        assert {path.name for path in out.iterdir()} == {path.name for path in expected.folder.iterdir()}


def write_text(path, rows):
    """A log of long ids as text, larger than the bound it is prepared within."""
    generator = np.random.default_rng(0)
    names = [np.array([f"{what} {k:040}" for k in range(20_000)], object) for what in ("user", "item")]
    with path.open("wb") as file:
        for first in range(0, rows, 500_000):
            ids = {
                what: each[generator.integers(0, 20_000, 500_000)]
                for what, each in zip(("user", "item"), names, strict=True)
            }
            feedback, time = generator.integers(1, 6, 500_000), generator.integers(0, 10**9, 500_000)
            pl.DataFrame({**ids, "feedback": feedback, "time": time}).write_csv(file, include_header=first == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rows"), [("parquet", 12_000_000), ("csv", 3_000_000)])
def test_peak_memory_stays_within_the_bound(kind, rows, tmp_path):
    path = tmp_path / f"log.{kind}"
    write_rows(path, rows) if kind == "parquet" else write_text(path, rows)
    run = start(path, tmp_path / "p", "512MiB", 0)
    out, err = run.communicate()
    assert run.returncode == 0, err
    partitions, peak = map(float, out.split()[1:])
    assert partitions > 8  # more than there are without a bound
    assert peak < 512


def test_a_full_disk_is_said_and_does_no_harm(tmp_path):
    random_frame(rows=60_000).write_parquet(tmp_path / "log.parquet")
    out = tmp_path / "p"
    run = start(tmp_path / "log.parquet", out, "2GiB", 3, 500_000)  # no file may be larger
    _, err = run.communicate()
    assert run.returncode == 1
    assert "cannot be written" in err
    assert "the same call goes on from there" in err
    with pytest.raises(DataError, match="no prepared log"):
        PreparedLog(out)
    prepared = prepare_log(tmp_path / "log.parquet", out, positive_at=3, partitions=3)
    assert_same(prepared, InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=3))


def test_a_disk_that_is_full_at_any_file_is_said_and_taken_up_later(tmp_path, monkeypatch):
    monkeypatch.setattr("torchrank.data.log_sources._PIECE_ROWS", 1000)
    random_frame().write_parquet(tmp_path / "log.parquet", row_group_size=1000)
    expected, left = InteractionLog.from_parquet(tmp_path / "log.parquet", positive_at=4), [0]

    @contextmanager
    def small_disk(path):
        with whole_file(path) as place:
            yield place
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for module in ("prepare", "prepare_steps"):
        monkeypatch.setattr(f"torchrank.data.{module}.whole_file", small_disk)
    # a plan; of three pieces rows, items and a note; all items; of two partitions rows, users and a note; a manifest
    for file in range(1, 1 + 3 * 3 + 1 + 2 * 3 + 1 + 1):
        left[0], out = file, tmp_path / str(file)
        with pytest.raises(DataError, match="No space left on device; what is finished is kept"):
            prepare_log(tmp_path / "log.parquet", out, positive_at=4, partitions=2)
        with pytest.raises(DataError, match="no prepared log"):
            PreparedLog(out)
        prepared = prepare_log(tmp_path / "log.parquet", out, positive_at=4, partitions=2)
        prepared.verify()
        assert_same(prepared, expected)
        assert len(list(out.iterdir())) == 1 + 2 * 2 + 1
    left[0] = file + 1
    prepare_log(tmp_path / "log.parquet", tmp_path / "enough", positive_at=4, partitions=2)


def test_a_partition_too_large_is_refused(tmp_path, monkeypatch):
    random_frame().with_columns(user=pl.lit(7)).write_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr("torchrank.data.prepare._row_memory", lambda row_bytes: 200_000)
    with pytest.raises(DataError, match=r"largest of 8 partitions has 3000 rows.* memory='893MiB'"):
        prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=4, memory="512MiB", partitions=8)
    assert (
        len(prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=4, memory="893MiB", partitions=8)) == 3000
    )


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"user": [1, None, 2]}, "column 'user'.*null values, the first in row 2"),
        ({"item": [1.0, 2.0, float("nan")]}, "column 'item'.*NaN in row 3"),
        ({"feedback": ["a", "b", "c"]}, "column 'feedback'.*text"),
        ({"time": ["a", "b", "c"]}, "column 'time'.*text"),
        ({"item": [[1], [2], [3]]}, "item"),
        ({"user": [[1], [2], [3]]}, "user"),
    ],
)
def test_values_that_cannot_be_in_a_log(columns, match, tmp_path):
    good = {"user": [1, 1, 2], "item": [1, 2, 3], "feedback": [1, 0, 1], "time": [3, 2, 1]}
    pl.DataFrame({**good, **columns}).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(DataError, match=match):
        prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=1)
    with pytest.raises(DataError, match="no prepared log"):
        PreparedLog(tmp_path / "p")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("user,item,feedback,time\n1,2,1,3\n1,2,bad,3\n", "row 2 of .*feedback 'bad' is not a number"),
        ("user,item,feedback,time\n1,2,1,3\n1,,1,3\n", "column 'item'.*the first in row 2"),
        ("user,item,feedback,time\n1,2,1,3\n1,2,1,3,4\n", "does not read as CSV"),
        ("user,item,feedback,time\n", "no rows"),
        ("", "is empty"),
        ("user,item,feedback\n1,2,3\n", "no column 'time'"),
    ],
)
def test_text_that_is_no_log(text, match, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(DataError, match=match):
        prepare_log(tmp_path / "log.csv", tmp_path / "p", positive_at=1)


def test_times_that_are_numbers_here_and_moments_there(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,feedback,time\n1,2,1,3\n")
    (tmp_path / "b.csv").write_text("user,item,feedback,time\n1,2,1,2020-01-01\n")
    with pytest.raises(DataError, match="mixes numbers and moments"):
        prepare_log([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "p", positive_at=1)


def test_files_that_do_not_read(tmp_path):
    good = tmp_path / "log.parquet"
    random_frame().write_parquet(good)
    other = tmp_path / "other.parquet"
    random_frame().with_columns(pl.col("user").cast(pl.String)).write_parquet(other)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(good.read_bytes()[:-100])
    spoilt = tmp_path / "spoilt.parquet"
    spoilt.write_bytes(good.read_bytes()[:1000] + bytes(5000) + good.read_bytes()[6000:])
    (tmp_path / "empty").mkdir()
    for paths, match in (
        ([tmp_path / "absent.parquet"], "there is no"),
        ([tmp_path / "empty"], "no Parquet file"),
        ([cut], "cut.parquet is not Parquet"),
        ([spoilt], "spoilt.parquet"),
        ([good, other], "different types"),
        ([good, tmp_path / "x.csv"], "there is no"),
        ([__file__], "tells no format"),
        ([], "at least one file"),
    ):
        with pytest.raises(DataError, match=match):
            prepare_log(paths, tmp_path / "p", positive_at=4)
    (tmp_path / "x.csv").write_text("user,item,feedback,time\n1,2,1,3\n")
    with pytest.raises(DataError, match="different formats"):
        prepare_log([good, tmp_path / "x.csv"], tmp_path / "p", positive_at=4)
    with pytest.raises(DataError, match="is a file"):
        prepare_log(good, other, positive_at=4)


def test_bad_options(tmp_path):
    path = tmp_path / "log.parquet"
    random_frame().write_parquet(path)
    for options in ({"memory": "100MiB"}, {"memory": "much"}, {"partitions": 0}, {"duplicates": "first"}):
        with pytest.raises(TorchRankError, match=next(iter(options))):
            prepare_log(path, tmp_path / "p", positive_at=4, **options)
    with pytest.raises(TorchRankError, match="positive_at"):
        prepare_log(path, tmp_path / "p", positive_at=float("nan"))
    assert not (tmp_path / "p").exists()


def test_pairs_that_repeat_are_refused_when_asked(tmp_path):
    pl.DataFrame({"user": ["a", "a"], "item": [1, 1], "feedback": [1, 1], "time": [1, 2]}).write_csv(
        tmp_path / "log.csv"
    )
    with pytest.raises(DataError, match="1 repeated pairs, the first user 'a' with item 1"):
        prepare_log(tmp_path / "log.csv", tmp_path / "p", positive_at=1, duplicates="error")


def test_a_folder_that_has_changed_is_no_prepared_log(tmp_path):
    random_frame().write_parquet(tmp_path / "log.parquet")
    prepared = prepare_log(tmp_path / "log.parquet", tmp_path / "p", positive_at=4)
    manifest = (prepared.folder / "manifest.json").read_text()
    rows = prepared.folder / "rows-00002.arrow"
    content = rows.read_bytes()
    rows.write_bytes(content[:-200] + bytes(100) + content[-100:])
    with pytest.raises(DataError, match="arrow is not as it was written"):
        PreparedLog(prepared.folder).verify()
    rows.write_bytes(content[:-1])
    with pytest.raises(DataError, match=f"has {len(content) - 1} bytes, not the {len(content)}"):
        PreparedLog(prepared.folder)
    rows.unlink()
    with pytest.raises(DataError, match="is missing"):
        PreparedLog(prepared.folder)
    rows.write_bytes(content)
    for text, match in (("{", "does not read"), (json.dumps({**json.loads(manifest), "format": 9}), "format 9")):
        (prepared.folder / "manifest.json").write_text(text)
        with pytest.raises(DataError, match=match):
            PreparedLog(prepared.folder)
    with pytest.raises(DataError, match="no partition 8"):
        prepared.partition(8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::FutureWarning:ray")  # Ray 2.60 warns of itself
def test_two_workers_of_ray_prepare_the_same_files(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    random_frame(rows=20_000).write_parquet(tmp_path / "log.parquet", row_group_size=1000)
    monkeypatch.setattr("torchrank.data.log_sources._PIECE_ROWS", 4000)
    here = prepare_log(tmp_path / "log.parquet", tmp_path / "here", positive_at=4, partitions=5)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        there = prepare_log(tmp_path / "log.parquet", tmp_path / "there", positive_at=4, partitions=5, ray=True)
        with pytest.raises(DataError, match="repeated pairs"):
            prepare_log(tmp_path / "log.parquet", tmp_path / "x", positive_at=4, duplicates="error", ray=True)
    finally:
        ray.shutdown()
    assert (here.folder / "manifest.json").read_text() == (there.folder / "manifest.json").read_text()
    there.verify()
