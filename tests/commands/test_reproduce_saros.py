"""``torchrank reproduce saros``: the results' keys, the report, the figure, and errors that name the fix."""

import datetime as dt
import json

import polars as pl
import pytest

from torchrank import cli
from torchrank.commands.method_choice import Trained, choose
from torchrank.commands.saros_methods import METHODS, RandomOrder, check_methods, usual_methods
from torchrank.commands.saros_report import find_dataset, markdown, published_values
from torchrank.commands.saros_runs import Parts
from torchrank.data import make_interactions
from torchrank.errors import TorchRankError
from torchrank.training import evaluate_published

LOG, _ = make_interactions(num_users=60, num_items=80, num_interactions=2000, seed=1)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    frame = {"who": LOG.users, "what": LOG.items, "liked": LOG.preferred.astype(int), "at": range(len(LOG))}
    pl.DataFrame(frame).write_parquet(path)
    return str(path)


def run(file, out, *words):
    columns = ["--user", "who", "--item", "what", "--feedback", "liked", "--time", "at", "--positive-at", "1"]
    cli.main(["reproduce", "saros", "--log", file, *columns, "--out", str(out), *words])


def test_results_report_and_figure(file, tmp_path, capsys):
    chosen = ["saros", "bpr", "bpr_batch", "saros_best", "mf", "prod2vec", "mostpop", "itemrate", "random"]
    words = [word for name in chosen for word in ("--methods", name)]
    run(file, tmp_path, "--seeds", "2", "--curve-seconds", "0.1", *words)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["split"]["train"] + results["split"]["test"] == len(LOG)
    assert list(results["methods"]) == chosen
    keys = {"map@5", "map@10", "ndcg@5", "ndcg@10"}
    for name, row in results["methods"].items():
        assert set(row["published"]) == set(row["published_std"]) == keys
        assert set(row["standard"]) == keys | {"auc"}
        assert set(row["catalogue"]) == {"ndcg@10", "recall@10"}
        assert (row["test_loss"] is None) == (name in {"mf", "prod2vec", "mostpop", "itemrate", "random"})
        assert row["train_seconds"] >= 0
        assert (max(row["published_std"].values()) == 0) == (name in {"mostpop", "itemrate"})
    assert set(results["comparisons"]) == {"saros", "bpr", "bpr_batch", "saros_best", "mf"}
    for cells in results["comparisons"].values():
        assert all(cell["low"] <= cell["difference"] <= cell["high"] for cell in cells.values())
    assert set(results["losses"]["test"]) == {"saros", "bpr", "bpr_batch"}
    assert set(results["losses"]["train"]["saros"]) == {"0.1"}
    text = (tmp_path / "results.md").read_text()
    assert f"{results['methods']['saros_best']['published']['map@5']:.4f} ±" in text
    assert "printed" not in text  # not the published split
    assert (tmp_path / "loss_by_time.png").read_bytes().startswith(b"\x89PNG")
    assert "saros_best" in capsys.readouterr().out


def test_the_validation_part_takes_the_place_of_the_test_part(file, tmp_path):
    words = ["--methods", "itemrate", "--methods", "saros", "--curve-seconds", "0"]
    run(file, tmp_path, "--part", "validation", *words)
    results = json.loads((tmp_path / "results.json").read_text())
    parts = Parts.of(LOG)
    assert (results["split"]["train"], results["split"]["test"]) == (len(parts.fit), len(parts.val))
    rate = METHODS["itemrate"].make(parts.fit, 0)
    assert results["methods"]["itemrate"]["published"] == pytest.approx(evaluate_published(rate, parts.val).mean)
    assert "The test part has not been looked at." in (tmp_path / "results.md").read_text()


def test_every_method_can_be_made_and_chosen():
    parts = Parts.of(LOG)
    assert {"saros", "saros_discard", "saros_truncate", "saros_time_best", "saros_best", "bpr", "bpr_best"} < set(
        METHODS
    )
    assert {"bpr_batch", "mf", "mostpop", "itemrate", "random"} < set(METHODS)
    for name, method in METHODS.items():
        if isinstance(method, Trained):
            for setting in method.settings:
                method.make(0, setting)
        else:
            assert method.make(parts.train, 0) is not None, name
    choice = choose(METHODS["saros"], parts.fit, parts.val, seed=0)
    assert 1 <= choice.epochs <= METHODS["saros"].epochs
    choice = choose(METHODS["prod2vec"], parts.fit, parts.val, seed=0)
    assert choice.setting in METHODS["prod2vec"].settings
    assert choice.epochs is None


def test_a_method_without_its_package_is_left_out_and_refused_by_name(monkeypatch):
    assert "prod2vec" in usual_methods()
    monkeypatch.setattr("torchrank.commands.saros_methods.find_spec", lambda name: None)
    assert set(METHODS) - set(usual_methods()) == {"prod2vec", "prod2vec_dot"}
    with pytest.raises(TorchRankError, match=r"torchrank\[words\]"):
        check_methods(["mostpop", "prod2vec"])


def test_the_report_prints_published_obtained_and_difference():
    values = {**dict.fromkeys(("map@5", "map@10", "ndcg@5", "ndcg@10"), 0.8), "auc": 0.7, "recall@10": 0.1}
    row = {"about": "", "chosen": None, "train_seconds": 1.0, "test_loss": None, "test_loss_std": None}
    row |= {f"{protocol}{end}": values for protocol in ("published", "standard", "catalogue") for end in ("", "_std")}
    split = {"train": 1, "test": 1, "positive_train_percent": 50.0, "positive_test_percent": 50.0}
    results = {"split": split, "part": "test", "dataset": "ML-1M", "seeds": 1, "comparisons": {}, "losses": {}}
    methods = {"gru4rec": row, "saros": {**row, "test_loss": 0.5, "test_loss_std": 0.0}, "itemrate": row}
    text = markdown({**results, "methods": methods})
    assert "| *printed: GRU4Rec* | *0.777* | *0.75* | *0.721* | *0.833* |  |  |" in text
    assert "| *obtained − printed* | *+0.023* | *+0.050* | *+0.079* | *-0.033* |  |  |" in text
    assert "*-0.108* |  |" in text  # SAROS' test loss against 0.608
    assert text.count("obtained") == 2


def test_the_hypothesis_has_a_row_for_every_rule_and_limit(file, tmp_path, monkeypatch):
    monkeypatch.setattr("torchrank.commands.saros_hypothesis.RULES", ("run",))
    run(file, tmp_path, "--hypothesis", "--seeds", "2")
    rows = json.loads((tmp_path / "hypothesis.json").read_text())
    assert [(row["rule"], row["limits"]) for row in rows] == [("run", k) for k in ("none", "discard", "truncate")]
    for row in rows:
        change = row["shuffled"]["mean"]["map@10"] - row["time"]["mean"]["map@10"]
        assert row["difference"]["mean"]["map@10"] == pytest.approx(change)
    assert (tmp_path / "hypothesis.md").read_text().count("\n") == 5


def test_the_published_split_is_known_by_its_sizes():
    assert find_dataset(797_758, 202_451) == "ML-1M"
    assert find_dataset(1, 2) is None
    assert published_values("ML-1M", "bpr")["test_loss"] == 0.645
    assert published_values("ML-1M", "itemrate") == published_values(None, "saros") == {}


def test_a_random_order_is_the_same_each_time():
    import torch

    users, items = torch.arange(500).repeat_interleave(200), torch.arange(200).repeat(500)
    one, again, other = RandomOrder(0)(users, items), RandomOrder(0)(users, items), RandomOrder(1)(users, items)
    assert torch.equal(one, again)
    assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.02
    assert abs(float(one.mean()) / 2**24 - 0.5) < 0.01
    for seed in (2, 1000, 2**40):  # products beyond 64 bits
        assert not torch.equal(one, RandomOrder(seed)(users, items))


def test_what_is_done_is_written_before_the_next_method(file, tmp_path, monkeypatch):
    def fails(log, seed):
        raise KeyboardInterrupt

    from torchrank.commands.method_choice import Counted

    monkeypatch.setitem(METHODS, "random", Counted("fails", fails))
    with pytest.raises(SystemExit, match="interrupted"):
        run(file, tmp_path, "--methods", "itemrate", "--methods", "random", "--curve-seconds", "0")
    assert list(json.loads((tmp_path / "results.json").read_text())["methods"]) == ["itemrate"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--seeds", "0"], "seeds=0"),
        (["--methods", "sarso"], "did you mean 'saros'"),
        (["--curve-seconds", "-1"], "curve"),
        (["--part", "validatoin"], "did you mean 'validation'"),
        (["--part", "validation", "--hypothesis"], "leave out"),
    ],
)
def test_bad_options(file, tmp_path, words, told):
    with pytest.raises(SystemExit, match=told):
        run(file, tmp_path / "out", *words)
    assert not (tmp_path / "out").exists()
    (tmp_path / "taken").write_text("")
    with pytest.raises(SystemExit, match="is a file"):
        run(file, tmp_path / "taken")


def kasandr(folder):
    """Write the log as KASANDR's two files, and a user who clicked nothing."""
    head = "userid\tofferid\tcountrycode\tcategory\tmerchant\tutcdate\trating\n"
    start = dt.datetime(2016, 6, 1)
    rows = [
        f"u{user}\to{item}\tde\t1\tm\t{start + dt.timedelta(minutes=k)}.0\t{int(liked)}\n"
        for k, (user, item, liked) in enumerate(zip(LOG.users, LOG.items, LOG.preferred, strict=True))
    ]
    folder.mkdir()
    (folder / "train_de.csv").write_text(head + "".join(rows[:1500]))
    (folder / "test_de.csv").write_text(head + "".join(rows[1500:]) + f"idle\to1\tde\t1\tm\t{start}.0\t0\n")
    return folder


def test_a_published_data_set_is_prepared_as_published(tmp_path, capsys):
    words = ["reproduce", "saros", "--dataset", "kasandr", "--root", str(kasandr(tmp_path / "de"))]
    few = ["--methods", "saros", "--methods", "mostpop", "--methods", "itemrate", "--curve-seconds", "0.05"]
    cli.main([*words, *few, "--out", str(tmp_path / "out")])
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["dataset"] == "Kasandr"
    sides = [
        (LOG.preferred[LOG.users == u].any(), (~LOG.preferred[LOG.users == u]).any()) for u in range(LOG.num_users)
    ]
    kept = sum(len(LOG.users[LOG.users == u]) for u, both in enumerate(sides) if all(both))
    assert results["split"]["train"] + results["split"]["test"] == kept
    text = (tmp_path / "out" / "results.md").read_text()
    assert "printed: SAROS" in text
    assert f"*{published_values('Kasandr', 'saros')['map@5']:g}*" in text
    assert "Preferred: clicked offers" in text
    assert "12,509,509" in text  # the printed size of the training part, which this is not
    for name in ("block_counts", "block_sizes", "loss_by_time"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    cli.main([*words, *few[:2], "--curve-seconds", "0", "--sample-users", "20", "--out", str(tmp_path / "some")])
    assert "20 users drawn at random" in (tmp_path / "some" / "results.md").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give log and positive_at, or dataset and root"),
        (["--dataset", "kasandr"], "give dataset with root"),
        (["--dataset", "kasandr", "--root", "x", "--log", "y"], "without log"),
        (["--log", "x", "--positive-at", "1", "--root", "y"], "go with dataset"),
        (["--dataset", "kassandr", "--root", "x"], "did you mean 'kasandr'"),
        (["--dataset", "netflix", "--root", "absent"], "there is no absent. To get netflix: Download"),
    ],
)
def test_a_log_or_a_data_set(tmp_path, words, told):
    with pytest.raises(SystemExit, match=told):
        cli.main(["reproduce", "saros", *words, "--out", str(tmp_path / "out")])
