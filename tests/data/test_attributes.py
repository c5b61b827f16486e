"""Tables of attributes: what is read, and the one line that says what is wrong."""

import gzip
import hashlib
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

from tests.real_data import REAL_DATA, needs_real_data
from torchrank.data import countries, read_table
from torchrank.errors import DataError, TorchRankError

ROWS = {"name": ["a", "b", "c"], "up": [1.5, None, 3.0], "down": [4, 5, 6], "text": ["x", "y", "z"]}


@pytest.fixture
def frame():
    return pl.DataFrame(ROWS)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "csv.gz"])
def test_every_format_gives_the_same_table(tmp_path, frame, kind):
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    else:
        frame.write_csv(path, separator="\t" if kind == "tsv" else ",")
    table = read_table(path, higher=["up"], lower=["down"], id="name")
    assert (table.ids.name, table.ids.to_list()) == ("name", ["a", "b", "c"])
    assert (table.names, table.directions) == (["up", "down"], [1, -1])
    np.testing.assert_array_equal(table.values, [[1.5, 4], [np.nan, 5], [3, 6]])


def test_rows_are_numbered_without_an_id(tmp_path, frame):
    frame.write_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv", lower=["down"])
    assert (table.ids.name, table.ids.to_list()) == ("row", [1, 2, 3])


def test_words_for_nothing_are_missing_in_attributes_and_kept_in_ids(tmp_path):
    (tmp_path / "t.csv").write_text("id,a\nNA,NA\nx, nan \ny,\nz, 2 \n")
    table = read_table(tmp_path / "t.csv", higher=["a"], id="id")
    np.testing.assert_array_equal(table.values[:, 0], [np.nan, np.nan, np.nan, 2])
    assert table.ids[0] == "NA"


def test_semicolons_and_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text("id;a\nx;1,5\ny;2\n")
    table = read_table(tmp_path / "t.csv", higher=["a"], separator=";", decimal_comma=True)
    assert table.values.tolist() == [[1.5], [2.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"higher": ["gdp"]}, "no column 'gdp'; its columns are 'name', 'up', 'down', 'text'"),
        ({"higher": ["up"], "id": "who"}, "no column 'who'"),
        ({"higher": ["text"], "id": "name"}, "column 'text' of .* is not numeric: 'x' for name 'a'"),
        ({"higher": ["text"]}, "'x' for row 1"),
        ({}, "no attribute is named"),
        ({"higher": ["up"], "lower": ["up"]}, "'up' named more than once"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, frame, options, message):
    frame.write_csv(tmp_path / "t.csv")
    with pytest.raises(TorchRankError, match=message):
        read_table(tmp_path / "t.csv", **options)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "there is no file"),
        ("t.xlsx", b"", "tells no format"),
        ("t.csv", b"", "does not read as csv"),
        ("t.csv", b"a\n", "no rows"),
        ("t.csv", b"a\ninf\n", "column 'a' of .* is infinite for row 1"),
        ("t.parquet", b"a", "is not Parquet"),
    ],
)
def test_files_that_are_no_table(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / name, higher=["a"])


def test_dates_are_no_numbers(tmp_path):
    pl.DataFrame({"a": ["2020-01-01"]}).with_columns(pl.col("a").str.to_date()).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"'a' of .* holds Date"):
        read_table(tmp_path / "t.parquet", higher=["a"])


def test_the_countries_come_along_with_their_attribution():
    table = countries()
    assert table.values.shape == (181, 4)
    assert table.directions == [1, 1, -1, -1]
    assert not np.isnan(table.values).any()
    assert "gapminder.org" in table.attribution
    assert "CC BY 4.0" in table.attribution
    notice = (files("torchrank.data") / "countries.NOTICE.txt").read_text()
    assert "CC BY 4.0" in notice


@needs_real_data
def test_the_countries_are_the_published_file():
    ours = (files("torchrank.data") / "countries.csv").read_bytes()
    theirs = (REAL_DATA / "gapminder-life-quality-2005" / "life_quality_2005.csv").read_bytes()
    assert hashlib.sha256(ours).digest() == hashlib.sha256(theirs).digest()
