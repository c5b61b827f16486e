"""``torchrank reproduce bots``: what is written, what the measures mean, and errors that name the fix."""

import json
from dataclasses import replace

import pytest
import torch

from torchrank import cli
from torchrank.commands.bots_runs import METHODS, Attacked, count_limits, measure
from torchrank.data import published_statistics

ROW = replace(published_statistics("ML-1M"), users=40, items=400)


@pytest.fixture(scope="module")
def attacked():
    return Attacked.of(ROW, share=0.2, targets=5, activity=10, seed=0)


def test_the_report_and_the_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "torchrank.commands.reproduce_bots.METHODS",
        {name: replace(method, settings=({"eta": 0.1, "mu": 0.01, "epochs": 2},)) for name, method in METHODS.items()},
    )
    small = ["--users", "40", "--items", "400", "--seeds", "2", "--targets", "5", "--shares", "0.2", "--shares", "0"]
    cli.main(["reproduce", "bots", "--out", str(tmp_path), *small])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["shares"] == [0, 0.2]
    assert results["statistics"]["users"] == 40
    for cells in results["methods"].values():
        assert len(cells) == 2
        for cell in cells:
            assert len(cell["ndcg@10"]["each"]) == 2
            assert 0 < cell["ndcg@10"]["mean"] <= 1
    assert [round(each["ndcg@10"], 6) for each in results["truth"]] == [1, 1]
    text = (tmp_path / "results.md").read_text()
    saros = results["methods"]["saros"][1]["ndcg@10"]
    assert f"{saros['mean']:.4f} ± {saros['std']:.4f}" in text
    first, second = (results["methods"][name][1]["auc"]["each"] for name in ("saros_discard", "saros"))
    assert f"{(first[0] - second[0] + first[1] - second[1]) / 2:+.4f}" in text
    assert text in capsys.readouterr().out
    assert (tmp_path / "bots.png").read_bytes().startswith(b"\x89PNG")


def test_bots_are_left_out_of_every_measure(attacked):
    assert attacked.truth.bots.sum() == 10
    assert len(attacked.lists) <= 40
    assert not attacked.truth.bots[torch.from_numpy(attacked.lists.users).long()].any()
    found = measure(attacked.truth, attacked)
    assert found["ndcg@10"] == pytest.approx(1)
    assert found["auc"] > 0.75

    def fooled(users, items):
        return torch.isin(items, attacked.targets).float()

    worst = measure(fooled, attacked)
    assert worst["targets@10"] == pytest.approx(torch.isin(attacked.known, attacked.targets).sum().item() / 10)
    assert worst["ndcg@10"] < found["ndcg@10"] - 0.1


def test_genuine_users_are_the_same_whatever_the_share(attacked):
    alone = Attacked.of(ROW, share=0, targets=5, activity=10, seed=0)
    assert alone.lists.items.tolist() == attacked.lists.items.tolist()
    assert alone.targets.tolist() == attacked.targets.tolist() == attacked.truth.targets.tolist()
    assert alone.known.tolist() == attacked.known.tolist()


def test_what_the_thresholds_leave(attacked):
    found = count_limits(attacked)
    assert found["saros"] | {"B": 0} == {
        "B": 0,
        "genuine_users": 1,
        "genuine_blocks": 1,
        "bot_users": 1,
        "bot_blocks": 1,
    }
    assert found["saros_discard"]["bot_blocks"] == 0
    assert 0 < found["saros_truncate"]["bot_blocks"] < 1
    assert found["saros_discard"]["genuine_blocks"] <= found["saros_truncate"]["genuine_blocks"] <= 1
    none = count_limits(Attacked.of(ROW, share=0, targets=5, activity=10, seed=0))
    assert none["saros_discard"]["bot_blocks"] is None
    assert none["saros_discard"]["genuine_users"] < 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--row", "netflix"], "did you mean 'Netflix'"),
        (["--seeds", "0"], "seeds=0"),
        (["--shares", "1"], "shares="),
        (["--items", "100"], "a quarter of the 100 items"),
    ],
)
def test_bad_options(tmp_path, words, told):
    with pytest.raises(SystemExit, match=told):
        cli.main(["reproduce", "bots", "--out", str(tmp_path / "out"), *words])
    assert not (tmp_path / "out").exists()
