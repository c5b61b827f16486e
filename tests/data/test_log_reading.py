import gzip

import numpy as np
import polars as pl
import pytest

from torchrank.data import prepare_log, read_log
from torchrank.errors import DataError, TorchRankError

ROWS = {"user": ["b", "a", "b"], "item": [9, 9, 7], "feedback": [1, 0, 5], "time": [4, 1, 2]}


def write(folder, name):
    frame = pl.DataFrame(ROWS)
    if name == "parts":
        (folder / "parts").mkdir()
        frame.write_parquet(folder / "parts" / "0.parquet")
    elif name == "log.parquet":
        frame.write_parquet(folder / name)
    else:
        text = frame.write_csv(separator="\t" if ".tsv" in name else ",").encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)


@pytest.mark.parametrize("name", ["log.parquet", "parts", "log.csv", "log.csv.gz", "log.tsv", "log.tsv.gz", "LOG.CSV"])
def test_the_name_tells_the_format(tmp_path, name):
    write(tmp_path, name)
    log = read_log(tmp_path / name, positive_at=1)
    assert log.user_ids[log.users].tolist() == ["b", "b", "a"]
    assert log.item_ids[log.items].tolist() == [7, 9, 9]


@pytest.mark.parametrize("name", ["u.data", "ratings.dat", "ratings_part.dat"])
def test_movielens_files_are_known(tmp_path, name):
    line = "1\t2\t4\t5\n" if name == "u.data" else "1::2::4::5\n"
    (tmp_path / name).write_text(line)
    assert read_log(tmp_path / name, positive_at=4).preferred.tolist() == [True]
    if name in ("u.data", "ratings.dat"):
        assert len(read_log(tmp_path, positive_at=4)) == 1


@pytest.mark.parametrize("duplicates", ["keep", "last"])
def test_a_prepared_log_is_read_into_memory(tmp_path, duplicates):
    rows = {"user": [7, 8, 7, 7], "item": [1, 1, 2, 1], "feedback": [5, 2, 3, 1], "time": [1, 2, 3, 4]}
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    prepare_log(tmp_path / "log.parquet", tmp_path / "prepared", positive_at=4)
    options = {"positive_at": 2, "duplicates": duplicates}
    found, expected = read_log(tmp_path / "prepared", **options), read_log(tmp_path / "log.parquet", **options)
    order = np.argsort(expected.user_index(found.user_ids[found.users]), kind="stable")
    for name in ("items", "preferred", "feedback", "times", "item_ids"):
        values = getattr(found, name)
        assert (values[order] if len(values) == len(found) else values).tolist() == getattr(expected, name).tolist()
    with pytest.raises(DataError, match="1 repeated pairs, the first user 7 with item 1"):
        read_log(tmp_path / "prepared", positive_at=2, duplicates="error")
    with pytest.raises(TorchRankError, match="positive_at"):
        read_log(tmp_path / "prepared", positive_at=float("nan"))


def test_other_names_are_refused(tmp_path):
    (tmp_path / "log.xlsx").write_text("")
    with pytest.raises(DataError, match="tells no format"):
        read_log(tmp_path / "log.xlsx", positive_at=1)
    with pytest.raises(DataError, match="there is no"):
        read_log(tmp_path / "log.csv", positive_at=1)
