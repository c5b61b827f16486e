"""``torchrank blocks``: the published statistics, figures that open, nothing half written."""

import json

import polars as pl
import pytest

from tests.real_data import REAL_DATA, needs_real_data
from torchrank import cli
from torchrank.data import make_interactions


def written_log(folder):
    log, _ = make_interactions(num_users=30, num_items=40, num_interactions=600)
    ids = {"who": log.user_ids[log.users], "what": log.item_ids[log.items], "liked": log.feedback, "at": log.times}
    pl.DataFrame(ids).write_csv(folder / "log.csv")
    return log, ["--user", "who", "--item", "what", "--feedback", "liked", "--time", "at", "--positive-at", "1"]


def test_statistics_and_figures(tmp_path, capsys):
    _, columns = written_log(tmp_path)
    cli.main(["blocks", str(tmp_path / "log.csv"), *columns, "--out", str(tmp_path / "out")])
    written = json.loads((tmp_path / "out" / "blocks.json").read_text())
    assert written["log"]["all"]["interactions"] == 600
    assert written["log"]["train"]["interactions"] + written["log"]["test"]["interactions"] == 600
    assert written["blocks"]["run"]["blocks"] == written["blocks"]["single"]["blocks"]
    assert written["blocks"]["run"]["pairs"] == written["blocks"]["positive"]["pairs"]
    for name in ("block_counts.png", "block_sizes.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert "sparsity" in capsys.readouterr().out


def test_without_out_nothing_is_written(tmp_path, capsys):
    _, columns = written_log(tmp_path)
    cli.main(["blocks", str(tmp_path / "log.csv"), *columns, "--train", "1"])
    assert "train" not in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_log_without_blocks_has_numbers_and_no_figures(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("user,item,feedback,time\n1,1,0,1\n1,2,0,2\n")
    cli.main(["blocks", str(tmp_path / "log.csv"), "--positive-at", "1", "--out", str(tmp_path / "out")])
    assert "no user has a block" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["blocks.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "there is no none.csv"),
        (["log.txt"], "tells no format"),
        (["log.csv"], "no column 'user'; its columns are 'a', 'b'"),
        (["log.csv", "--user", "a", "--duplicates", "first"], "duplicates='first'"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    (tmp_path / "log.txt").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit, match=message):
        cli.main(["blocks", *words, "--positive-at", "1"])


@needs_real_data
def test_movielens_1m_has_the_published_statistics(tmp_path):
    file = REAL_DATA / "movielens-1m" / "interactions.parquet"
    columns = ["--feedback", "positive", "--time", "order", "--positive-at", "1"]
    cli.main(["blocks", str(file), *columns, "--out", str(tmp_path)])
    row = json.loads((tmp_path / "blocks.json").read_text())["log"]["all"]
    assert (row["users"], row["items"], round(row["sparsity"], 4)) == (6040, 3706, 0.9553)
    assert (round(row["mean_preferred"], 4), round(row["mean_other"], 4)) == (95.2767, 70.4690)
