"""``torchrank rank``: what is written, what is said, and nothing written where something is wrong."""

import json
import re

import polars as pl
import pytest
import torch

from torchrank import cli
from torchrank.commands import ranking as module
from torchrank.data import countries

TABLE = pl.DataFrame(
    {
        "city": ["A", "B", "C", "D", "E", "<b>F</b>", "E2"],
        "pay": [10.0, 20.0, 30.0, 45.0, 60.0, 80.0, 60.0],
        "health": [50.0, 62.0, 66.0, 73.0, 78.0, 81.0, 78.0],
        "crime": [9.0, 5.0, 6.0, 3.0, 2.5, 1.0, 2.5],
    }
)
WORDS = ["--higher", "pay", "--higher", "health", "--lower", "crime", "--id", "city"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Without ElPiGraph, which takes seconds to load; a test of its own has it."""
    monkeypatch.setattr(module, "has_elpigraph", lambda: False)


def run(folder, *words, table=TABLE, columns=WORDS):
    table.write_csv(folder / "t.csv")
    cli.main(["rank", str(folder / "t.csv"), *columns, *words])


def test_the_ranking_file(tmp_path, capsys):
    run(tmp_path, "--out", str(tmp_path / "new" / "ranking.csv"), "--bootstrap", "5")
    frame = pl.read_csv(tmp_path / "new" / "ranking.csv")
    assert frame.columns == [
        *("city", "score", "rank", "rank_low", "rank_high"),
        *("contribution_pay", "contribution_health", "contribution_crime"),
        *("rank_first_principal_component", "rank_mean_rank", "rank_topsis"),
    ]
    assert frame["rank"].to_list() == [1, 2, 2, 4, 5, 6, 7]
    assert frame["city"].to_list() == ["<b>F</b>", "E", "E2", "D", "C", "B", "A"]
    assert frame["score"].is_sorted(descending=True)
    assert (frame["rank_low"] <= frame["rank_high"]).all()
    total = frame.select(pl.sum_horizontal(pl.col("^contribution_.*$"))).to_series()
    shift = (frame["score"] - total).to_numpy()
    assert shift == pytest.approx(shift[0])
    assert "<b>F</b>" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["ranking.csv", "ranking.json"]


def test_the_summary_file(tmp_path):
    run(tmp_path, "--out", str(tmp_path / "ranking.parquet"))
    assert pl.read_parquet(tmp_path / "ranking.parquet").columns[:3] == ["city", "score", "rank"]
    found = json.loads((tmp_path / "ranking.json").read_text())
    assert found["control_points"][0] == {"pay": 10.0, "health": 50.0, "crime": 9.0}
    assert found["control_points"][-1] == {"pay": 80.0, "health": 81.0, "crime": 1.0}
    assert 0.9 < found["explained_variance"] <= 1
    assert [row["attribute"] for row in found["without_attribute"]] == ["pay", "health", "crime"]
    assert sum(optimum["starts"] for optimum in found["optima"]) == found["starts"] == 8


def test_figures_and_the_report(tmp_path):
    words = ["--plot", str(tmp_path / "figures"), "--report", str(tmp_path / "report.html"), "--bootstrap", "3"]
    run(tmp_path, *words)
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == [
        "intervals.png",
        "projections.png",
        "scores.png",
    ]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in (tmp_path / "figures").iterdir())
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;F&lt;/b&gt;" in page
    assert "<b>F</b>" not in page
    assert page.count("data:image/svg+xml;base64,") == 3
    assert not re.search(r"""(src|href)=["'](?!data:)|url\(|@import|<script""", page)


def test_the_example_needs_no_table_and_names_its_source(tmp_path, capsys):
    cli.main(["rank", "--example", "countries", "--out", str(tmp_path / "r.csv")])
    said = capsys.readouterr().out
    assert "CC BY 4.0" in said
    frame = pl.read_csv(tmp_path / "r.csv")
    assert (frame.columns[0], len(frame), frame["country"][0]) == ("country", 181, "Luxembourg")
    assert set(frame["country"]) == set(countries().ids)


def test_missing_values_as_asked(tmp_path):
    holes = TABLE.with_columns(pl.when(pl.col("city") == "C").then(None).otherwise(pl.col("pay")).alias("pay"))
    with pytest.raises(SystemExit, match="'pay' of C is missing"):
        run(tmp_path, "--out", str(tmp_path / "r.csv"), table=holes)
    assert not (tmp_path / "r.csv").exists()
    run(tmp_path, "--out", str(tmp_path / "r.csv"), "--missing", "observed", table=holes)
    frame = pl.read_csv(tmp_path / "r.csv")
    assert len(frame) == 7
    assert frame["score"].is_not_nan().all()


def test_a_constant_column_is_dropped_with_a_warning(tmp_path, capsys):
    same = TABLE.with_columns(pl.lit(1.0).alias("same"))
    words = ["--out", str(tmp_path / "r.csv"), "--plot", str(tmp_path / "f"), "--report", str(tmp_path / "r.html")]
    run(tmp_path, *words, table=same, columns=[*WORDS, "--higher", "same"])
    assert "'same': constant" in capsys.readouterr().out
    assert pl.read_csv(tmp_path / "r.csv")["contribution_same"].to_list() == [0.0] * 7
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["dropped"] == ["'same'"]
    assert found["control_points"][0]["same"] is None


def test_an_outlier_is_warned_of(tmp_path, capsys):
    long = pl.DataFrame({"a": [*map(float, range(30)), 29_000.0], "b": range(31)})
    run(tmp_path, table=long, columns=["--higher", "a", "--higher", "b"])
    assert "--scaling robust or --scaling rank" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "options", [["--scaling", "rank"], ["--scaling", "robust"], ["--degree", "1"], ["--ends", "free"]]
)
def test_options_reach_the_fit(tmp_path, options):
    run(tmp_path, "--out", str(tmp_path / "r.csv"), "--starts", "2", *options)
    plain = tmp_path / "plain.csv"
    run(tmp_path, "--out", str(plain))
    assert not pl.read_csv(plain)["score"].equals(pl.read_csv(tmp_path / "r.csv")["score"])


def test_one_attribute_has_no_projections(tmp_path):
    run(tmp_path, "--plot", str(tmp_path / "f"), columns=["--lower", "crime", "--id", "city"])
    assert [p.name for p in (tmp_path / "f").iterdir()] == ["scores.png"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--higher", "nope"], "no column 'nope'; its columns are 'city', 'pay', 'health', 'crime'"),
        (["--higher", "city"], "'city' of t.csv is not numeric"),
        ([], "no attribute is named"),
        (["--higher", "pay", "--lower", "pay"], "more than once"),
        (["--higher", "pay", "--scaling", "log"], "scaling='log'"),
        (["--higher", "pay", "--missing", "drop"], "missing='drop'"),
        (["--higher", "pay", "--degree", "4"], "degree=4"),
        (["--higher", "pay", "--ends", "loose"], "ends='loose'"),
        (["--higher", "pay", "--solver", "magic"], "solver='magic'"),
        (["--higher", "pay", "--starts", "0"], "starts=0"),
        (["--higher", "pay", "--bootstrap", "-1"], "bootstrap=-1"),
        (["--higher", "pay", "--example", "countries"], "give a table"),
        (["--higher", "pay", "--separator", ";;"], "one ASCII character"),
        (["--higher", "pay", "--out", "r.txt"], "must end in .csv or .parquet"),
        (["--higher", "pay", "--report", "r.pdf"], "must end in .html"),
        (["--higher", "pay", "--plot", "t.csv"], "is a file"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    TABLE.write_csv("t.csv")
    if "--out" not in words:
        words = [*words, "--out", "new/r.csv"]
    with pytest.raises(SystemExit) as error:
        cli.main(["rank", "t.csv", *words])
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(("rows", "message"), [(TABLE[:1], "at least two"), (TABLE[[0, 0, 0]], "nothing to rank")])
def test_tables_that_cannot_be_ranked(tmp_path, rows, message):
    with pytest.raises(SystemExit, match=message):
        run(tmp_path, table=rows)


def test_an_id_column_that_clashes_is_named(tmp_path):
    with pytest.raises(SystemExit, match="'rank'"):
        run(tmp_path, table=TABLE.rename({"city": "rank"}), columns=["--higher", "pay", "--id", "rank"])


def test_neither_table_nor_example(capsys):
    with pytest.raises(SystemExit, match="give a table"):
        cli.main(["rank"])
    with pytest.raises(SystemExit, match="planets"):
        cli.main(["rank", "--example", "planets"])
    with pytest.raises(SystemExit, match="knows its columns"):
        cli.main(["rank", "--example", "countries", "--higher", "gdp"])


def test_control_points_match_the_curve():
    found = module.rank_table(countries(), starts=2)
    s = torch.linspace(0, 1, 5, dtype=torch.float64)
    share = torch.stack([(1 - s) ** 3, 3 * s * (1 - s) ** 2, 3 * s**2 * (1 - s), s**3], 1)
    torch.testing.assert_close(share @ found.control_points(), found.curve.curve(s).detach())
