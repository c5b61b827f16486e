"""``torchrank export`` from a checkpoint alone."""

import subprocess
import sys

import numpy as np
import onnxruntime
import polars as pl
import pytest
import torch

from tests.commands.test_recommend import Holder, Other, written
from torchrank import cli
from torchrank.data import Catalogue, make_interactions
from torchrank.losses import SLAMLoss
from torchrank.models import Factorization, LinearScorer
from torchrank.training import GRU4RecModule, ListwiseModule, fit_interactions
from torchrank.training.checkpoint import SPEC_KEY
from torchrank.training.spec import describe


@pytest.fixture
def recommender(tmp_path):
    """A log, a module that holds a factorization, and its checkpoint in an own folder."""
    log, _ = make_interactions(num_users=30, num_items=40, num_interactions=400)
    torch.manual_seed(0)
    folder = tmp_path / "trained"
    folder.mkdir()
    return written(folder, log, Holder(Factorization(log.num_users, log.num_items, 3, item_bias=True)))


def run(ckpt, *words):
    cli.main(["export", "--ckpt", str(ckpt), "--trust", "tests", *words])


def linear(folder):
    module = ListwiseModule(LinearScorer(3), SLAMLoss())
    torch.save({SPEC_KEY: describe(module), "state_dict": module.state_dict()}, folder / "linear.ckpt")
    return folder / "linear.ckpt"


def test_a_recommender_and_its_vectors(recommender, tmp_path, capsys):
    log, _, ckpt = recommender
    out = tmp_path / "new"
    paths = {name: str(out / name) for name in ("model.onnx", "items.parquet", "users.parquet")}
    run(
        ckpt,
        "--out",
        paths["model.onnx"],
        "--items",
        paths["items.parquet"],
        "--users",
        paths["users.parquet"],
        "--k=4",
    )
    said = capsys.readouterr().out
    assert "takes users int64 (queries)\ngives items int64 (queries, 4), scores float32 (queries, 4)" in said
    assert sorted(p.name for p in out.iterdir()) == sorted(paths)
    items, users = (pl.read_parquet(paths[name]) for name in ("items.parquet", "users.parquet"))
    assert items["item"].to_list() == log.item_ids[Catalogue.from_log(log).shown > 0].tolist()
    session = onnxruntime.InferenceSession(paths["model.onnx"], providers=["CPUExecutionProvider"])
    best, scores = session.run(None, {"users": users["number"].to_numpy()})
    products = users["vector"].to_numpy() @ items["vector"].to_numpy().T
    order = np.argsort(-products, 1)[:, :4]
    assert np.array_equal(items["number"].to_numpy()[order], best)
    np.testing.assert_allclose(np.take_along_axis(products, order, 1), scores, rtol=1e-5)


def test_a_program_serves_without_torchrank(tmp_path):
    path = tmp_path / "model.pt2"
    run(linear(tmp_path), "--out", str(path))
    code = (
        f"import torch; model = torch.export.load({str(path)!r}).module();"
        "print(model(torch.ones(2, 3, 3), torch.ones(2, 3, dtype=torch.bool)).tolist());"
        "import sys; print('torchrank' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split("\n")[:2] == ["[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]", "False"]


def test_a_trained_network_of_sequences_serves_its_users(tmp_path, capsys):
    log, _ = make_interactions(num_users=30, num_items=40, num_interactions=400)
    module = GRU4RecModule(dim=4, lanes=6, unroll=3, item_bias=True)
    fit_interactions(module, log, epochs=1)
    ckpt = written(tmp_path, log, module)[2]
    run(ckpt, "--out", str(tmp_path / "gru.onnx"), "--users", str(tmp_path / "users.parquet"), "--k=4")
    assert "takes users int64 (queries)" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(tmp_path / "gru.onnx", providers=["CPUExecutionProvider"])
    users = torch.tensor([3, 0, 29, 3])
    items, scores = session.run(None, {"users": users.numpy()})
    shown = torch.from_numpy(np.flatnonzero(Catalogue.from_log(log).shown))
    wanted, values, _ = module.scorer.recommend(users, 4, items=shown)
    assert np.array_equal(items, wanted.numpy())
    np.testing.assert_allclose(scores, values.numpy(), rtol=1e-5, atol=1e-5)
    assert pl.read_parquet(tmp_path / "users.parquet")["vector"].dtype.shape == (5,)  # the state, and 1 for the offset


def test_what_cannot_be_is_said_in_one_line(recommender, tmp_path):
    ckpt = recommender[2]
    out = tmp_path / "out"
    other = tmp_path / "other.ckpt"
    torch.save({SPEC_KEY: describe(Other()), "state_dict": {}}, other)
    for given, words, message in (
        (ckpt, [], "there is nothing to write"),
        (ckpt, ["--out", f"{out}/model.h5"], r"ends in \.h5; name it \.onnx"),
        (ckpt, ["--items", f"{out}/items.csv"], r"items=.*; name the file \.parquet"),
        (ckpt, ["--out", f"{out}/model.pt2", "--k", "99"], "k=99 must be at least 1 and at most"),
        (ckpt, ["--out", f"{out}/model.pt2", "--by", "name"], "by='name'"),
        (other, ["--out", f"{out}/model.pt2"], "Other has no serving form"),
        (linear(tmp_path), ["--items", f"{out}/items.parquet"], "holds no catalogue of users and items"),
        (tmp_path / "none.ckpt", ["--out", f"{out}/model.pt2"], "there is no checkpoint"),
    ):
        with pytest.raises(SystemExit, match=message):
            run(given, *words)
    assert not out.exists()
