"""List losses as objectives of boosted trees."""

from functools import partial

import lightgbm
import numpy as np
import pytest
import torch
import xgboost

from torchrank.data import make_queries
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.losses import LambdaLoss, PairwiseLogisticLoss, SLAMLoss, SoftmaxLoss
from torchrank.metrics import ndcg
from torchrank.ops import ragged_to_padded
from torchrank.training import lightgbm_objective, list_gradients, xgboost_objective

LOSSES = [SLAMLoss, partial(SLAMLoss, measure="map"), PairwiseLogisticLoss, SoftmaxLoss, LambdaLoss]
DATA = make_queries(60, num_features=6, documents=(1, 30), seed=1).dataset
FEATURES, LABELS, LENGTHS = DATA.features.numpy(), DATA.relevance.numpy(), DATA.lengths.numpy()


def mean_ndcg(scores):
    padded, mask = ragged_to_padded(torch.from_numpy(np.asarray(scores, dtype=np.float32)), DATA.offsets)
    return ndcg(padded, ragged_to_padded(DATA.relevance, DATA.offsets)[0], mask).mean().item()


def slow(scores, relevance, lengths, loss):
    """The gradient list by list."""
    scores = scores.clone().requires_grad_()
    for one, own in zip(scores.split(lengths.tolist()), relevance.split(lengths.tolist()), strict=True):
        loss(one[None], own[None]).backward()
    return scores.grad


@pytest.mark.parametrize("make", LOSSES, ids=str)
def test_gradients_are_those_of_the_lists_one_by_one(make):
    loss = make(reduction="sum")
    scores = torch.randn(len(FEATURES), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    relevance = DATA.relevance.double()
    got = list_gradients(scores, relevance, LENGTHS, loss)
    torch.testing.assert_close(got, slow(scores, relevance, LENGTHS, loss))
    with torch.no_grad():
        torch.testing.assert_close(list_gradients(scores, relevance, LENGTHS, loss), got)


def lightgbm_data(**options):
    return lightgbm.Dataset(FEATURES, LABELS, group=LENGTHS, free_raw_data=False, **options)


def xgboost_data(**options):
    matrix = xgboost.DMatrix(FEATURES, LABELS, **options)
    matrix.set_group(LENGTHS)
    return matrix


SIDES = [(lightgbm_objective, lightgbm_data), (xgboost_objective, xgboost_data)]
SIDES = [pytest.param(*side, id=side[0].__name__) for side in SIDES]


@pytest.mark.parametrize(("make", "data"), SIDES)
def test_what_the_booster_gets(make, data):
    scores = np.random.default_rng(0).normal(size=len(FEATURES))
    lists = data()
    if make is lightgbm_objective:
        lists.construct()
    want = list_gradients(torch.from_numpy(scores), DATA.relevance.double(), LENGTHS).numpy()
    gradient, second = make()(scores, lists)
    assert gradient.dtype == second.dtype == np.float32
    np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(second, np.abs(want) + np.abs(want).mean(), rtol=1e-6)
    assert (np.abs(gradient) < second).all()  # a leaf moves by less than the step size
    assert (make(hessian="constant")(scores, lists)[1] == 1).all()
    np.testing.assert_allclose(
        make(smoothing=0.1)(scores, lists)[1], np.abs(want) + 0.1 * np.abs(want).mean(), rtol=1e-5
    )


def test_weights_of_documents_and_lists_multiply():
    scores = np.random.default_rng(0).normal(size=len(FEATURES))
    plain, second = lightgbm_objective()(scores, lightgbm_data().construct())
    weights = np.linspace(0, 2, len(FEATURES))
    got = lightgbm_objective()(scores, lightgbm_data(weight=weights).construct())
    np.testing.assert_allclose(got[0], plain * weights, rtol=1e-5)
    np.testing.assert_allclose(got[1], second * weights, rtol=1e-5)
    by_list = np.linspace(0, 2, len(LENGTHS))
    matrix = xgboost_data()
    matrix.set_weight(by_list)
    got = xgboost_objective()(scores, matrix)
    np.testing.assert_allclose(got[0], plain * np.repeat(by_list, LENGTHS), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("hessian", ["magnitude", "constant"])
@pytest.mark.parametrize("make", LOSSES[:2] + LOSSES[4:], ids=str)
def test_lightgbm_learns(make, hessian):
    options = {
        "objective": lightgbm_objective(make(reduction="sum"), hessian=hessian),
        "learning_rate": 0.1 if hessian == "magnitude" else 5.0,
        "verbose": -1,
        "num_threads": 1,
        "min_data_in_leaf": 10,
    }
    model = lightgbm.train(options, lightgbm_data(), num_boost_round=30)
    assert mean_ndcg(model.predict(FEATURES)) > mean_ndcg(np.zeros(len(FEATURES))) + 0.15


def test_xgboost_learns():
    options = {"base_score": 0, "min_child_weight": 0, "eta": 0.1, "nthread": 1, "max_depth": 3}
    model = xgboost.train(options, xgboost_data(), num_boost_round=30, obj=xgboost_objective())
    assert mean_ndcg(model.predict(xgboost_data())) > mean_ndcg(np.zeros(len(FEATURES))) + 0.15


def test_one_objective_follows_the_lists_it_is_given():
    objective = lightgbm_objective()
    objective(np.zeros(len(FEATURES)), lightgbm_data().construct())
    other = lightgbm.Dataset(FEATURES[:4], LABELS[:4], group=[3, 1], params={"verbose": -1}).construct()
    gradient, _ = objective(np.zeros(4), other)
    want = list_gradients(torch.zeros(4), DATA.relevance[:4], np.array([3, 1]))
    np.testing.assert_allclose(gradient, want, rtol=1e-6)


def test_where_nothing_is_left_to_learn_nothing_moves():
    same = lightgbm.Dataset(FEATURES[:4], np.ones(4), group=[4], params={"verbose": -1}).construct()
    gradient, second = lightgbm_objective()(np.zeros(4), same)
    assert (gradient == 0).all()
    assert (second > 0).all()


def test_what_cannot_be_grown_on_is_refused():
    with pytest.raises(TorchRankError, match=r"SLAMLoss\(…, reduction='sum'\)"):
        lightgbm_objective(SLAMLoss())
    with pytest.raises(TorchRankError, match="hessian='exact'"):
        xgboost_objective(hessian="exact")
    with pytest.raises(TorchRankError, match="smoothing"):
        lightgbm_objective(smoothing=0)
    with pytest.raises(DataError, match="group="):
        lightgbm_objective()(
            np.zeros(4), lightgbm.Dataset(FEATURES[:4], LABELS[:4], params={"verbose": -1}).construct()
        )
    with pytest.raises(DataError, match="qid="):
        xgboost_objective()(np.zeros(4), xgboost.DMatrix(FEATURES[:4], LABELS[:4]))
    with pytest.raises(ShapeError, match="3 documents"):
        list_gradients(torch.zeros(4), torch.zeros(4), np.array([2, 1]))
