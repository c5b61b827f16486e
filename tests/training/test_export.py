"""Exported models give the model's outputs, whatever the sizes of what they are given."""

import numpy as np
import onnxruntime
import polars as pl
import pytest
import torch
from torch import nn

from torchrank.data import Catalogue, InteractionLog
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import SLAMLoss
from torchrank.models import (
    EASE,
    AttentionScorer,
    Factorization,
    FeedbackFactorization,
    GRU4Rec,
    LinearChain,
    LinearScorer,
    MLPScorer,
    Prod2Vec,
    search_vectors,
)
from torchrank.training import CurveModule, ListwiseModule, export_model, export_program
from torchrank.training.vectors import vector_tables


def moved(model):
    """The model with every parameter away from its start."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return model.eval()


def exported(model, folder, **options):
    path = folder / "model.onnx"
    done = export_model(model, path, **options)
    assert [p.name for p in folder.iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda **given: session.run(None, {k: v.numpy() for k, v in given.items()}), done


def lists(batch, length, width):
    generator = torch.Generator().manual_seed(100 * batch + length)
    features = torch.randn(batch, length, width, generator=generator)
    lengths = torch.randint(1, length + 1, (batch, 1), generator=generator)
    return features, torch.arange(length) < lengths


def scores_agree(run, scorer):
    for batch, length in ((1, 1), (4, 3), (2, 50)):
        features, mask = lists(batch, length, 3)
        features[~mask] = torch.nan
        with torch.no_grad():
            wanted = scorer(features, mask)
        (got,) = run(features=features, mask=mask)
        np.testing.assert_allclose(got[mask.numpy()], wanted[mask].numpy(), rtol=1e-5, atol=1e-5)


def test_a_linear_scorer_scores_any_number_of_lists_of_any_length(tmp_path):
    scorer = moved(LinearScorer(3, bias=True))
    run, done = exported(ListwiseModule(scorer, SLAMLoss()), tmp_path)
    assert done.inputs == ["features float32 (lists, documents, 3)", "mask bool (lists, documents)"]
    assert done.outputs == ["scores float32 (lists, documents)"]
    scores_agree(run, scorer)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", [MLPScorer(3, (8, 4)), AttentionScorer(3, dim=8)], ids=["mlp", "attention"])
def test_deep_scorers_score_any_number_of_lists_of_any_length(scorer, tmp_path):
    run, _ = exported(moved(scorer), tmp_path)
    scores_agree(run, scorer)


@pytest.mark.slow
@pytest.mark.parametrize("normalize", [None, "length"])
def test_a_chain_decodes_any_number_of_sequences_of_any_length(normalize, tmp_path):
    chain = moved(LinearChain(3, 4, start=True, normalize=normalize))
    run, done = exported(chain, tmp_path)
    assert done.inputs == ["features float32 (sequences, positions, 3)", "mask bool (sequences, positions)"]
    assert done.outputs == ["labels int64 (sequences, positions)", "scores float32 (sequences)"]
    for batch, length in ((1, 2), (2, 5), (3, 33), (5, 65), (2, 700)):
        features, mask = lists(batch, length, 3)
        with torch.no_grad():
            labels, scores = chain.decode(features, mask)
        got, value = run(features=features, mask=mask)
        assert np.array_equal(got, labels.numpy())
        np.testing.assert_allclose(value, scores.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["error", "observed"])
def test_a_curve_scores_any_number_of_objects(missing, tmp_path):
    module = CurveModule([1, -1, 1], missing=missing)
    curve = moved(module.curve)
    curve.set_scaling(torch.tensor([[0.0, 5.0], [-1.0, 1.0], [10.0, 30.0]]), curve.levels)
    run, done = exported(module, tmp_path)
    assert done.outputs == ["scores float64 (objects)"]
    generator = torch.Generator().manual_seed(1)
    for count in (1, 7, 300):
        points = curve.to_units(torch.rand(count, 3, generator=generator, dtype=torch.float64) * 1.4 - 0.2)
        if missing == "observed" and count > 1:
            points[1, 0] = points[2, 2] = torch.nan
        (got,) = run(points=points)
        np.testing.assert_allclose(got, curve(points).detach().numpy(), rtol=1e-9, atol=1e-9)


def recommenders():
    torch.manual_seed(3)
    random = np.random.default_rng(0)
    users, items = random.integers(0, 6, 60), random.integers(0, 20, 60)
    arguments = users, items, random.random(60) < 0.5
    sizes = {"num_users": 6, "num_items": 20, "dim": 3}
    read = np.sort(users), items
    likes = Prod2Vec(**sizes)
    likes.item_vectors.copy_(torch.randn(20, 3))
    likes.user_vectors.copy_(torch.randn(6, 3))
    likes.item_vectors[4] = likes.user_vectors[4] = 0  # nobody's item, and a user who preferred nothing
    return {
        "plain": Factorization(**sizes),
        "offsets": moved(Factorization(**sizes, item_bias=True)),
        "feedback": FeedbackFactorization.from_log_arrays(*arguments, **sizes),
        "gru4rec": moved(GRU4Rec.from_log_arrays(*read, **sizes, layers=2)),
        "gru4rec-offsets": moved(GRU4Rec.from_log_arrays(*read, **sizes, item_bias=True, dropout=0.5)),
        "prod2vec": likes,
    }


@pytest.mark.parametrize("name", recommenders())
def test_inner_products_of_search_vectors_are_the_scores(name):
    scorer = recommenders()[name]
    users, items = search_vectors(scorer)
    torch.testing.assert_close(users @ items.T, scorer.score_all(torch.arange(6)))


@pytest.mark.parametrize("by", ["id", pytest.param("vector", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["offsets", "gru4rec-offsets", "prod2vec"])
def test_a_recommender_gives_users_their_best_items(name, by, tmp_path):
    scorer = recommenders()[name]
    candidates = torch.tensor([1, 2, 4, 7, 11, 19, 0])
    run, done = exported(scorer, tmp_path, k=4, by=by, candidates=candidates)
    assert done.outputs == ["items int64 (queries, 4)", "scores float32 (queries, 4)"]
    for users in (torch.tensor([5]), torch.tensor([0, 3, 3, 1, 2])):
        given = {"users": users} if by == "id" else {"vectors": search_vectors(scorer)[0][users]}
        items, scores = run(**given)
        wanted, values, _ = scorer.recommend(users, 4, items=candidates)
        assert np.array_equal(items, wanted.numpy())
        np.testing.assert_allclose(scores, values.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_a_program_of_torch_export_gives_the_same(tmp_path):
    scorer = recommenders()["feedback"]
    done = export_model(scorer, tmp_path / "model.pt2", k=3)
    assert done.difference <= 1e-6
    back = torch.export.load(tmp_path / "model.pt2").module()
    users = torch.tensor([4, 0, 5, 5])
    wanted, values, _ = scorer.recommend(users, 3)
    items, scores = back(users)
    assert torch.equal(items, wanted)
    torch.testing.assert_close(scores, values.detach())
    assert torch.equal(export_program(scorer, k=3).module()(users)[0], wanted)


class Branches(nn.Module):
    """A scorer that looks at a value."""

    def __init__(self):
        super().__init__()
        self.num_features = 3

    def forward(self, features, mask=None):
        return features.sum(-1) if features.sum() > 0 else features.mean(-1)


class Fixed(nn.Module):
    """A scorer whose graph is of as many lists as it was traced with."""

    def __init__(self):
        super().__init__()
        self.num_features = 3

    def forward(self, features, mask=None):
        return torch.stack([each.sum(-1) for each in features])


def test_what_cannot_be_exported_is_said_and_nothing_is_written(tmp_path, monkeypatch):
    ease = EASE.from_log_arrays(np.array([0, 1]), np.array([0, 1]), num_users=2, num_items=2)
    for model, name, options, message in (
        (LinearScorer(3), "model.txt", {}, r"ends in \.txt; name it \.onnx"),
        (LinearScorer(3), "model", {}, "ends in nothing"),
        (Branches(), "model.pt2", {}, "Branches cannot be exported"),
        (Fixed(), "model.pt2", {}, "Fixed cannot be exported"),
        (ease, "model.pt2", {}, "EASE has no serving form"),
        (nn.Linear(3, 1), "model.pt2", {}, "Linear has no serving form"),
        (Factorization(2, 3, 1), "model.pt2", {"k": 4}, "k=4 must be at least 1 and at most 3"),
        (Factorization(2, 3, 1), "model.pt2", {"k": 1, "by": "user"}, "by='user'"),
    ):
        with pytest.raises(TorchRankError, match=message):
            export_model(model, tmp_path / name, **options)
    monkeypatch.setattr("torchrank.training.export.find_spec", lambda name: None)
    with pytest.raises(TorchRankError, match=r"pip install 'torchrank\[export\]'"):
        export_model(LinearScorer(3), tmp_path / "model.onnx")
    monkeypatch.undo()
    monkeypatch.setattr("torchrank.training.export._LIMIT", 1)
    with pytest.raises(TorchRankError, match="do not fit one ONNX file"):
        export_model(LinearScorer(3), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_differs_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("torchrank.training.export._run", lambda path, served: (torch.ones(3, 71),))
    with pytest.raises(TorchRankError, match="the exported scores differ from the model's by 1"):
        export_model(LinearScorer(3), tmp_path / "model.pt2")
    assert list(tmp_path.iterdir()) == []


def test_vector_tables_hold_what_the_log_has_shown():
    rows = {"user": ["a", "a", "b"], "item": ["x", "y", "y"], "feedback": [1, 0, 1], "time": [1, 2, 3]}
    train, _ = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1).split_per_user(train=0.5)
    scorer = moved(Factorization(train.num_users, train.num_items, 2, item_bias=True))
    users, items = vector_tables(scorer, Catalogue.from_log(train))
    assert set(items["item"]) <= {"x", "y"}
    assert users.columns == ["user", "number", "vector"]
    products = users["vector"].to_numpy() @ items["vector"].to_numpy().T
    numbers = torch.tensor(users["number"].to_list())
    wanted = scorer.score_all(numbers)[:, items["number"].to_list()].detach().numpy()
    np.testing.assert_allclose(products, wanted, rtol=1e-6)
    with pytest.raises(DataError, match="give the catalogue of the scorer's own log"):
        vector_tables(Factorization(9, 9, 2), Catalogue.from_log(train))
    with pytest.raises(TorchRankError, match="no vectors whose inner products"):
        vector_tables(EASE(2, 2, num_positives=1), Catalogue.from_log(train))
