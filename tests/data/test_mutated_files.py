"""Spoilt files are read as a plain parser reads them, or refused by one error that names the file; nothing else.

LETOR text has its own in test_letor.
"""

import csv
import datetime as dt
import decimal
import io
import math
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.test_log import expected_rows, rows_of
from tests.data.test_published_sets import KASANDR, NETFLIX, OUTBRAIN
from torchrank.commands.recommend import read_users
from torchrank.data import (
    InteractionLog,
    prepare_log,
    read_kasandr,
    read_letor,
    read_log,
    read_movielens,
    read_netflix,
    read_outbrain,
    read_pandor,
    read_sequences,
    read_table,
)
from torchrank.errors import DataError, TorchRankError
from torchrank.training import TableDataModule

COLUMNS = ("user", "item", "feedback", "time")
CSV = (
    b'user,item,feedback,time,note\n7,x,1,30,"a, b"\n7,y,0,20,\n12,"x",2.5,10,"say ""hi"""\n'
    b"7,\xc3\xbc,1,40,c\n12,y,1e1,5,d\n"
)
PIECES = [
    b",", b"\n", b"\r\n", b"\r", b'"', b'""', b"\0", b"\xef\xbb\xbf", b"\xff", b"\xc3", b" ", b"\t", b"-", b"+", b".",
    b"e", b"0", b"9", b"_", b"nan", b"inf", b"-inf", b"1e400", b"9223372036854775808", b"NA", b"null", b"true", b"#",
]  # fmt: skip


@st.composite
def mutated(draw, content, separator=b","):
    """Bytes with up to three pieces put in, taken out or cut off, or lines or columns moved, doubled or dropped."""
    for _ in range(draw(st.integers(0, 3))):
        what = draw(st.sampled_from(["piece", "piece", "piece", "line", "column", "cut", "newlines", "mark"]))
        if what == "piece":
            at, cut = draw(st.integers(0, len(content))), draw(st.integers(0, 3))
            content = content[:at] + draw(st.sampled_from([b"", *PIECES])) + content[at + cut :]
        elif what == "line":
            content = b"\n".join(_moved(draw, content.split(b"\n")))
        elif what == "column":
            at, how = draw(st.integers(0, 5)), draw(st.sampled_from(["drop", "double"]))
            rows = [row.split(separator) for row in content.split(b"\n")]
            rows = [row[:at] + (row[at : at + 1] * 2 if how == "double" else []) + row[at + 1 :] for row in rows]
            content = b"\n".join(separator.join(row) for row in rows)
        elif what == "cut":
            content = content[: draw(st.integers(0, len(content)))]
        else:
            content = content.replace(b"\n", b"\r\n") if what == "newlines" else b"\xef\xbb\xbf" + content
    return content


def _moved(draw, parts):
    parts, at = list(parts), draw(st.integers(0, max(0, len(parts) - 1)))
    how = draw(st.sampled_from(["drop", "double", "swap", "empty"]))
    if how == "swap":
        parts[0], parts[at] = parts[at], parts[0]
    else:
        parts[at : at + 1] = {"drop": [], "double": [parts[at]] * 2, "empty": [parts[at], b""]}[how]
    return parts


def plain_table(content, separator=","):
    """Columns of a CSV file as lists of text, None where empty; None where the file is no table of one width."""
    try:
        text = content.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\x1e")
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    while rows and not rows[0]:
        rows.pop(0)
    if not rows or any(len(row) > len(rows[0]) for row in rows):
        return None
    whole = [[cell.replace("\x1e", "\r") or None for cell in row] + [None] * (len(rows[0]) - len(row)) for row in rows]
    return whole[0], [list(column) for column in zip(*whole[1:], strict=True)] or [[] for _ in whole[0]]


def whole(column):
    """Integers where all are, in their usual spelling, else the text."""
    usual = all(re.fullmatch(r"0|-?[1-9][0-9]*", cell) and -(2**63) <= int(cell) < 2**63 for cell in column)
    return [int(cell) for cell in column] if usual else column


def numbers(column):
    """Numbers, or None where a cell is none."""
    pattern = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)"
    if not all(re.fullmatch(pattern, cell, re.ASCII | re.IGNORECASE) for cell in column):
        return None
    found = whole(column)
    return found if column and isinstance(found[0], int) else [float(cell) for cell in column]


def plain_log(content):
    """The rows of a log in CSV by the plain reader; None where it is none."""
    table = plain_table(content)
    if table is None or not table[1][0] or any(table[0].count(name) != 1 for name in COLUMNS):
        return None
    columns = {name: table[1][table[0].index(name)] for name in COLUMNS}
    if any(None in column for column in columns.values()):
        return None
    columns |= {name: whole(columns[name]) for name in ("user", "item")}
    columns |= {name: numbers(columns[name]) for name in ("feedback", "time")}
    return None if None in columns.values() else expected_rows(columns, 1)


def read_or_refused(read, path):
    """What was read; None where the file was refused by name."""
    try:
        return read(path)
    except TorchRankError as error:
        told = str(error)
    assert Path(path).name in told or Path(path).parent.name in told
    assert len(told) < 1000
    return None


@settings(max_examples=300)
@given(mutated(CSV))
def test_logs_in_csv(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoilt.csv"
        path.write_bytes(content)
        log = read_or_refused(lambda p: InteractionLog.from_csv(p, positive_at=1), path)
        if log is not None and b'""' not in content:  # which csv does not tell from nothing
            assert plain_log(content) == rows_of(log)


def test_the_log_as_it_is_and_its_harmless_changes_are_read(tmp_path):
    want = plain_log(CSV)
    assert len(want) == 5
    for content in (CSV, CSV.rstrip(b"\n"), CSV.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + CSV, b"\n\n" + CSV):
        (tmp_path / "log.csv").write_bytes(content)
        assert rows_of(InteractionLog.from_csv(tmp_path / "log.csv", positive_at=1)) == want


@pytest.mark.slow
@settings(max_examples=40)
@given(mutated(CSV))
def test_logs_in_csv_prepared_on_disk(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoilt.csv"
        path.write_bytes(content)
        prepared = read_or_refused(lambda p: prepare_log(p, f"{folder}/out", positive_at=1, partitions=1), path)
        log = read_or_refused(lambda p: InteractionLog.from_csv(p, positive_at=1), path)
        if prepared is not None and log is not None:
            assert sorted(map(str, rows_of(prepared.to_log()))) == sorted(map(str, rows_of(log)))


TABLE = b"name,up,down,text\na,1.5,4,x\nb,,5,y\nc, NA ,6,\nd,-2e3,7,z\n"


def plain_attributes(content):
    """Values by the plain reader, None where it is no table of numbers."""
    table = plain_table(content)
    if table is None or not table[1][0] or any(table[0].count(name) != 1 for name in ("name", "up", "down")):
        return None
    rows = []
    for name in ("up", "down"):
        cells = [(cell or "").strip() for cell in table[1][table[0].index(name)]]
        cells = ["nan" if cell in ("", "NA", "N/A", "NaN", "nan", "null") else cell for cell in cells]
        found = numbers([cell for cell in cells if cell != "nan"])
        if found is None or any(math.isinf(x) for x in found):
            return None
        rows.append([float(cell) for cell in cells])
    return np.array(rows).T


@settings(max_examples=300)
@given(mutated(TABLE))
def test_tables_of_attributes_in_csv(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoilt.csv"
        path.write_bytes(content)
        table = read_or_refused(lambda p: read_table(p, higher=["up"], lower=["down"], id="name"), path)
        if table is not None:
            np.testing.assert_array_equal(table.values, plain_attributes(content))


SEVERAL = [3, 1, 2, 1, 3, 2]
DAY = dt.datetime(2024, 5, 1, 12)
KINDS = {
    "int8": pa.array(SEVERAL, pa.int8()),
    "int64, large": pa.array([2**62 + x for x in SEVERAL]),
    "uint64, large": pa.array([2**64 - x for x in SEVERAL], pa.uint64()),
    "float16": pa.array([np.float16(x) for x in SEVERAL], pa.float16()),
    "float32": pa.array(SEVERAL, pa.float32()),
    "float64 with NaN": pa.array([*SEVERAL[:5], math.nan]),
    "float64 with inf": pa.array([*SEVERAL[:4], math.inf, -math.inf]),
    "boolean": pa.array([x > 1 for x in SEVERAL]),
    "with null": pa.array([*SEVERAL[:5], None]),
    "all null": pa.nulls(6, pa.int64()),
    "null": pa.nulls(6),
    "text": pa.array([*"cabac", ""]),
    "large text": pa.array(list("cabacb"), pa.large_string()),
    "text view": pa.array(list("cabacb"), pa.string_view()),
    "text with NUL": pa.array([*"cabac", "\0"]),
    "bytes": pa.array([b"c", b"a", b"b", b"a", b"\xff", b""]),
    "bytes of one size": pa.array([b"cc", b"aa", b"bb", b"aa", b"\xff\0", b"aa"], pa.binary(2)),
    "dictionary": pa.array(list("cabacb")).dictionary_encode(),
    "dictionary of numbers": pa.array(SEVERAL).dictionary_encode(),
    "dictionary with null": pa.array([*"cabac", None]).dictionary_encode(),
    "date": pa.array([DAY.date()] * 6),
    "date64": pa.array([DAY.date()] * 6, pa.date64()),
    "moment": pa.array([DAY + dt.timedelta(seconds=x) for x in SEVERAL], pa.timestamp("us")),
    "moment of a zone": pa.array([DAY + dt.timedelta(days=x) for x in SEVERAL], pa.timestamp("ms", "Europe/Paris")),
    "moment with null": pa.array([*[DAY] * 5, None], pa.timestamp("ns")),
    "time of day": pa.array([dt.time(x) for x in SEVERAL]),
    "duration": pa.array([dt.timedelta(x) for x in SEVERAL]),
    "decimal": pa.array([decimal.Decimal(x) / 2 for x in SEVERAL]),
    "decimal of 256 bits": pa.array([decimal.Decimal(x) for x in SEVERAL], pa.decimal256(60, 2)),
    "list": pa.array([[x] for x in SEVERAL]),
    "struct": pa.array([{"x": x} for x in SEVERAL]),
    "map": pa.array([[(x, x)] for x in SEVERAL], pa.map_(pa.int64(), pa.int64())),
}
GOOD = {"user": list("abbaba"), "item": SEVERAL, "feedback": [1, 0, 1, 1, 0, 1], "time": [6, 5, 4, 3, 2, 1]}
PLAIN = ("int8", "int64, large", "float32", "float64 with inf", "text", "large text", "text view", "dictionary")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_every_type(column, kind, tmp_path):
    """In Parquet, prepared on disk, and in frames of three libraries: all alike, or all refused by the column."""
    table = pa.table({**{name: pa.array(values) for name, values in GOOD.items()}, column: KINDS[kind]})
    pq.write_table(table, tmp_path / "log.parquet")
    frames = [table, pl.from_arrow(table) if kind not in NOT_IN_POLARS else table]
    if kind not in NOT_IN_PANDAS:
        frames.append(table.to_pandas())
    path, found = tmp_path / "log.parquet", []
    for read in (
        lambda: InteractionLog.from_parquet(path, positive_at=1),
        lambda: prepare_log(path, tmp_path / "prepared", positive_at=1, partitions=1).to_log(),
        *(lambda frame=frame: InteractionLog.from_frame(frame, positive_at=1) for frame in frames),
    ):
        told = f"{column!r}"
        try:
            found.append(read())
        except TorchRankError as error:
            told = str(error)
            found.append(None)
        assert f"{column!r}" in told
    assert len({log is None for log in found[:2]}) == 1
    assert all(log is None or len(log) == 6 for log in found)
    if kind in PLAIN and found[0] is not None:
        columns = {name: table[name].to_pylist() for name in COLUMNS}
        assert rows_of(found[0]) == expected_rows(columns, 1)


NOT_IN_POLARS = ("map", "decimal of 256 bits")
NOT_IN_PANDAS = ()


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_of_every_type(kind, tmp_path):
    pq.write_table(pa.table({"id": list("abcdef"), "x": KINDS[kind]}), tmp_path / "table.parquet")
    table = read_or_refused(lambda path: read_table(path, higher=["x"], id="id"), tmp_path / "table.parquet")
    if table is not None:
        assert table.values.shape == (6, 1)
        assert not np.isinf(table.values).any()


def test_two_columns_of_one_name_are_refused(tmp_path):
    """Which of them is meant, nobody knows."""
    (tmp_path / "log.csv").write_text("user,item,user,feedback,time\n1,2,3,1,5\n")
    table = pa.Table.from_arrays([pa.array([1])] * 5, ["user", "item", "user", "feedback", "time"])
    pq.write_table(table, tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        for read in (read_log, lambda path, **how: prepare_log(path, tmp_path / "out", **how)):
            with pytest.raises(DataError, match=rf"{re.escape(name)}.*( 'user' .*twice|duplicate)"):
                read(tmp_path / name, positive_at=1)
        with pytest.raises(DataError, match=rf"{re.escape(name)}.*twice"):
            read_table(tmp_path / name, higher=["user"])
    frames = [table, pd.DataFrame([[1, 2, 3, 1, 5]], columns=table.column_names)]
    for frame in frames:
        with pytest.raises(DataError, match="twice"):
            InteractionLog.from_frame(frame, positive_at=1)
    # a column that nobody asks for may be there twice
    (tmp_path / "log.csv").write_text("user,item,feedback,time,x,x\n1,2,1,5,6,7\n")
    assert len(read_log(tmp_path / "log.csv", positive_at=1)) == 1


def parquet_bytes():
    file = io.BytesIO()
    pq.write_table(pa.table(GOOD), file, use_dictionary=["user"])
    return file.getvalue()


def archive_bytes():
    file = io.BytesIO()
    arrays = {"features": np.arange(10.0).reshape(5, 2), "label": np.array([0, 1, 1, 2, 0])}
    np.savez(file, **arrays, offset=np.array([0, 2, 3, 5]), fold=np.array([1, 0, 1]))
    return file.getvalue()


def packed_bytes():
    file = io.BytesIO()
    arrays = {"pixels": np.packbits(np.eye(5, 16, dtype=np.uint8), axis=1), "label": np.array([0, 1, 1, 2, 0])}
    np.savez_compressed(file, **arrays, offset=np.array([0, 2, 3, 5]))
    return file.getvalue()


def array_bytes():
    file = io.BytesIO()
    np.save(file, np.arange(12.0).reshape(6, 2))
    return file.getvalue()


@st.composite
def damaged(draw, content):
    """Bytes of which a few were changed, taken out or put in, or the end was lost."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        how = draw(st.sampled_from(["change", "change", "zeros", "out", "in", "cut"]))
        if how == "cut":
            del content[at:]
        else:
            size = draw(st.sampled_from([1, 1, 4, 16]))
            put = {
                "change": draw(st.binary(min_size=1, max_size=4)),
                "zeros": bytes(size),
                "out": b"",
                "in": b"\xff" * size,
            }
            content[at : at + (0 if how == "in" else size)] = put[how]
    return bytes(content)


BINARY = {
    "log.parquet": (parquet_bytes(), lambda path: read_log(path, positive_at=1)),
    "table.parquet": (parquet_bytes(), lambda path: read_table(path, higher=["item"], id="user")),
    "letters.npz": (archive_bytes(), read_sequences),
    "packed.npz": (packed_bytes(), read_sequences),
    "table.npy": (array_bytes(), lambda path: TableDataModule(str(path)).maps()),
    "users.parquet": (parquet_bytes(), lambda path: read_users(path, like=np.array(["a"]))),
    "users.csv": (CSV, lambda path: read_users(path, like=np.array([1]))),
}


@pytest.mark.filterwarnings("ignore:.*but all but outliers lie between")  # that is right of huge numbers
@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=300)
@given(data=st.data())
def test_damaged_binary_files(name, data):
    content, read = BINARY[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        read(path)
        path.write_bytes(data.draw(damaged(content)))
        read_or_refused(read, path)


TEXTS = {
    "u.data": ({"u.data": "1\t10\t5\t7\n1\t11\t3\t8\n2\t10\t4\t9\n"}, read_movielens, b"\t"),
    "ratings.dat": ({"ratings.dat": "1::10::5::7\n1::11::3::8\n2::10::4::9\n"}, read_movielens, b"::"),
    "kasandr": (KASANDR, read_kasandr, b"\t"),
    "outbrain": (OUTBRAIN, read_outbrain, b","),
    "netflix": (NETFLIX, read_netflix, b","),
    "pandor": ({"x.tsv": KASANDR["train_de.csv"]}, read_pandor, b"\t"),
    "letor": ({"x.txt": "1 qid:1 1:0.5\n0 qid:1 1:2\n"}, lambda folder: read_letor(Path(folder) / "x.txt"), b" "),
}


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=100)
@given(data=st.data())
def test_spoilt_text_of_every_layout(name, data):
    files, read, separator = TEXTS[name]
    spoilt = data.draw(st.sampled_from(sorted(files)))
    with tempfile.TemporaryDirectory(prefix="layout") as folder:
        for file, text in files.items():
            (Path(folder) / file).write_text(text)
        read(folder)
        (Path(folder) / spoilt).write_bytes(data.draw(mutated(files[spoilt].encode(), separator)))
        read_or_refused(read, folder)
