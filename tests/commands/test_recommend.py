"""``torchrank recommend`` from a checkpoint alone."""

import os

import polars as pl
import pytest
import torch
from torch import nn

from torchrank import cli
from torchrank.data import Catalogue, InteractionLog, make_interactions
from torchrank.data.files import whole_file
from torchrank.errors import DataError
from torchrank.models import Factorization
from torchrank.training import recommend
from torchrank.training.checkpoint import SPEC_KEY
from torchrank.training.spec import describe


class Holder(nn.Module):
    """What a training module is to the command: something that holds a scorer."""

    def __init__(self, scorer):
        super().__init__()
        self.scorer = scorer


class Other(nn.Module):
    """A module that scores nothing."""


def text_ids(log):
    """The same log with text for user ids."""
    columns = {
        "user": [f"u{user}" for user in log.user_ids[log.users]],
        "item": log.item_ids[log.items],
        "feedback": log.feedback,
        "time": log.times,
    }
    return InteractionLog.from_frame(pl.DataFrame(columns), positive_at=1)


@pytest.fixture
def trained(tmp_path):
    """A log, a scorer and its checkpoint."""
    log, _ = make_interactions(num_users=30, num_items=40, num_interactions=400)
    return written(tmp_path, log)


def written(folder, log, module=None):
    torch.manual_seed(0)
    module = module or Holder(Factorization(log.num_users, log.num_items, 3))
    saved = {SPEC_KEY: describe(module), "state_dict": module.state_dict()}
    torch.save({**saved, "catalogue": Catalogue.from_log(log).state()}, folder / "model.ckpt")
    return log, module, str(folder / "model.ckpt")


def run(ckpt, out, *words):
    cli.main(["recommend", "--ckpt", ckpt, "--out", str(out), "--trust", "tests", *words])


def test_everybody_by_default(trained, tmp_path, capsys):
    log, module, ckpt = trained
    run(ckpt, tmp_path / "new" / "recs.parquet", "--k", "4")
    frame = pl.read_parquet(tmp_path / "new" / "recs.parquet")
    assert frame.equals(recommend(module.scorer, Catalogue.from_log(log), k=4))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["recs.parquet"]
    assert "120 recommendations for 30 users" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["txt", "csv", "parquet"])
@pytest.mark.parametrize("ids", ["integers", "text"])
def test_users_from_a_file(tmp_path, kind, ids):
    log, _ = make_interactions(num_users=30, num_items=40, num_interactions=400)
    log, module, ckpt = written(tmp_path, log if ids == "integers" else text_ids(log))
    users = pl.DataFrame({"user": log.user_ids[[5, 2]]})
    file = tmp_path / f"users.{kind}"
    if kind == "txt":
        file.write_text("\n".join(map(str, users["user"])) + "\n")
    else:
        (users.write_csv if kind == "csv" else users.write_parquet)(file)
    run(ckpt, tmp_path / "recs.parquet", "--users", str(file), "--k", "3")
    frame = pl.read_parquet(tmp_path / "recs.parquet")
    assert frame.equals(recommend(module.scorer, Catalogue.from_log(log), users["user"], k=3))
    assert frame["user"].to_list() == [users["user"][0]] * 3 + [users["user"][1]] * 3


def test_parts_are_written_one_after_the_other(trained, tmp_path, monkeypatch):
    log, module, ckpt = trained
    monkeypatch.setattr("torchrank.training.recommendation._DENSE", 7 * log.num_items)
    run(ckpt, tmp_path / "recs.parquet")
    assert pl.read_parquet(tmp_path / "recs.parquet").equals(recommend(module.scorer, Catalogue.from_log(log)))


def test_unknown_users_and_seen_items_as_asked(trained, tmp_path):
    log, _, ckpt = trained
    (tmp_path / "users.txt").write_text(f"{log.user_ids[0]}\n987654\n")
    words = ["--users", str(tmp_path / "users.txt")]
    with pytest.raises(SystemExit, match="987654"):
        run(ckpt, tmp_path / "recs.parquet", *words)
    assert not (tmp_path / "recs.parquet").exists()
    run(ckpt, tmp_path / "recs.parquet", *words, "--unknown", "item_rate", "--k", "99", "--keep-seen")
    frame = pl.read_parquet(tmp_path / "recs.parquet")
    assert frame.group_by("user", "by", maintain_order=True).len().rows() == [
        (log.user_ids[0], "model", log.num_items),
        (987654, "item_rate", log.num_items),
    ]


def test_what_cannot_recommend_is_named(trained, tmp_path):
    log, module, ckpt = trained
    (tmp_path / "users.txt").write_text("abc\n")
    with pytest.raises(SystemExit, match="user 'abc' is no integer"):
        run(ckpt, tmp_path / "recs.parquet", "--users", str(tmp_path / "users.txt"))
    (tmp_path / "users.csv").write_text("who\n1\n")
    with pytest.raises(SystemExit, match="no column 'user'; its columns are 'who'"):
        run(ckpt, tmp_path / "recs.parquet", "--users", str(tmp_path / "users.csv"))
    with pytest.raises(SystemExit, match="does not read as a list of users"):
        run(ckpt, tmp_path / "recs.parquet", "--users", str(tmp_path / "nobody.txt"))
    with pytest.raises(SystemExit, match="there is no checkpoint"):
        run(str(tmp_path / "none.ckpt"), tmp_path / "recs.parquet")
    _, _, other = written(tmp_path, log, Other())
    with pytest.raises(SystemExit, match="Other, which does not score"):
        run(other, tmp_path / "recs.parquet")
    torch.save({SPEC_KEY: describe(module), "state_dict": module.state_dict()}, tmp_path / "bare.ckpt")
    with pytest.raises(SystemExit, match="holds no catalogue"):
        run(str(tmp_path / "bare.ckpt"), tmp_path / "recs.parquet")
    assert not list(tmp_path.glob("*.part"))


def test_nobody_asked_gets_an_empty_file(trained, tmp_path):
    _, _, ckpt = trained
    (tmp_path / "users.txt").write_text("\n")
    run(ckpt, tmp_path / "recs.parquet", "--users", str(tmp_path / "users.txt"))
    assert pl.read_parquet(tmp_path / "recs.parquet").shape == (0, 5)


@pytest.mark.usefixtures("trained")
def test_what_is_no_file_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.parquet")
    with pytest.raises(SystemExit, match=r"pipe\.parquet is no file that could be written anew"):
        cli.main(["recommend", "--ckpt", "model.ckpt", "--out", "pipe.parquet"])
    with pytest.raises(DataError, match="no file"), whole_file("pipe.parquet"):
        pass
    assert (tmp_path / "pipe.parquet").is_fifo()
