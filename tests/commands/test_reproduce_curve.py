"""``torchrank reproduce curve``: the keys that are asked for, and figures that hold whatever the machine."""

import json

import polars as pl
import pytest

from tests.real_data import REAL_DATA, needs_real_data
from torchrank import cli
from torchrank.commands import curve_examples, ranking


def test_the_published_tables():
    first, second = (curve_examples.table1(objects) for objects in curve_examples.TABLE1.values())
    assert (first["order"], round(first["objective"], 6)) == ("ABC", 0.022675)
    assert (second["order"], round(second["objective"], 6)) == ("BA'C", 0.012647)
    found, rows = curve_examples.table2()
    assert found["pairs"] == 15 * 14 / 2
    assert found["order_kept"] >= 99
    assert rows["country"][0] == "Luxembourg"
    journals = curve_examples.table3()
    assert journals["pairs"] == 10 * 9 / 2
    assert journals["order_kept"] >= 41
    assert journals["tkde_above_smc_a"]


@pytest.mark.slow
@needs_real_data
def test_the_files(tmp_path, monkeypatch, capsys):
    for module in (ranking, curve_examples):
        monkeypatch.setattr(module, "has_elpigraph", lambda: False)
    words = ["--data", str(REAL_DATA), "--out", str(tmp_path / "out"), "--rows", "1000", "--repeats", "1"]
    cli.main(["reproduce", "curve", *words])
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert list(found) == ["table1", "table2", "table3", "countries", "heptathlon", "speed"]
    variance = found["countries"]["explained_variance"]
    assert variance["rpc"] > variance["pca"]
    assert variance["elpigraph"] is None
    assert found["heptathlon"]["spearman_with_official"] > 0.9
    assert found["speed"]["small_fit_objective"] <= found["speed"]["paper_solver_objective"] * (1 + 1e-9)
    names = ["projections.png", "published.png", "results.json", "results.md", "scores.png"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert "| strict monotonicity | holds (φ) |" in capsys.readouterr().out


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(SystemExit, match="there is no"):
        cli.main(["reproduce", "curve", "--data", str(tmp_path), "--out", str(tmp_path / "out")])
    pl.DataFrame({"athlete": ["a"]}).write_csv(tmp_path / "heptathlon_1988.csv")
    with pytest.raises(SystemExit, match="rows=10"):
        cli.main(["reproduce", "curve", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--rows", "10"])
    assert not (tmp_path / "out").exists()
