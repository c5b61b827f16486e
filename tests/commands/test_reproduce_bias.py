"""``torchrank reproduce bias``: every way to learn from clicks is measured at every bias level."""

import json

import pytest
import torch

from tests.commands.test_reproduce_slam import folder  # noqa: F401 - a fixture
from torchrank import cli
from torchrank.commands.reproduce_bias import ETAS, METHODS, true_lists
from torchrank.data import attraction, click_lists, make_queries, simulate_clicks
from torchrank.ops import rank_propensities

FILES = ["bias.png", "results.json", "results.md"]


def run(data, out, *words):
    cli.main(["reproduce", "bias", "--data", str(data), "--out", str(out), *words])


@pytest.mark.slow
def test_every_way_is_measured_and_drawn(folder, tmp_path, capsys):  # noqa: F811
    run(folder, tmp_path, "--seeds", "2", "--folds", "1", "--sessions", "4000", "--epochs", "4")
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["settings"]["clip"] == 0.01
    assert {(r["method"], r["eta"]) for r in results["runs"]} == {(m, e) for m in ("logging", *METHODS) for e in ETAS}
    assert len(results["runs"]) == 2 * 5 * len(ETAS)
    for each in results["runs"]:
        assert all(0 < value <= 1 for value in each["measures"].values())
    clicks = [next(r["clicks"] for r in results["runs"] if r["eta"] == eta) for eta in ETAS]
    assert clicks == sorted(clicks, reverse=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    assert (tmp_path / "bias.png").read_bytes().startswith(b"\x89PNG")
    assert "| 0.5 |" in (tmp_path / "results.md").read_text()
    assert "ips est." in capsys.readouterr().out


def test_weighted_clicks_tend_to_the_lists_of_the_oracle():
    queries = make_queries(4, num_features=3, documents=(4, 5), seed=2).dataset
    log = simulate_clicks(queries, queries.features[:, 0], sessions=60_000, eta=1.0, temperature=0.5)
    made = click_lists(queries, log, propensities=rank_propensities(5), lists="query")
    wanted = true_lists(queries, noise=0.1)
    assert torch.equal(wanted.relevance, attraction(queries.relevance).float())
    for got, truth in zip(made, wanted, strict=True):
        shares = got.relevance / got.relevance.sum(), truth.relevance / truth.relevance.sum()
        torch.testing.assert_close(*shares, atol=0.02, rtol=0)
    torch.testing.assert_close(made.list_weights, wanted.list_weights, atol=0.05, rtol=0)


def test_what_cannot_be_is_said_in_one_line(folder, tmp_path):  # noqa: F811
    file = tmp_path / "file"
    file.write_text("")
    for words, message in (
        ([folder, tmp_path / "out", "--seeds", "0"], "seeds=0"),
        ([folder, tmp_path / "out", "--folds", "6"], "folds=6 from 1 to 5"),
        ([folder, tmp_path / "out", "--clip", "-1"], "clip=-1"),
        ([folder, file], "is a file; give a folder"),
        ([tmp_path, tmp_path / "out"], r"there is no S1\.txt"),
    ):
        with pytest.raises(SystemExit, match=message):
            run(*words)
    assert not (tmp_path / "out").exists()
