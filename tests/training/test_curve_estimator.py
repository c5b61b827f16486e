"""The curve as a scikit-learn estimator."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from torchrank import RankingCurveRanker, fit_curve
from torchrank.errors import TorchRankError

# All that scikit-learn has, but the one for array libraries, which is for estimators that take any of them.
CHECKS = [
    pytest.param(check, id=check.func.__name__ + str(i))
    for i, (_, check) in enumerate(estimator_checks_generator(RankingCurveRanker(starts=2)))
    if check.func.__name__ != "check_array_api_input"
]


@pytest.mark.filterwarnings("ignore:.*constant, so without influence.*", "ignore:.*min-max scaling leaves.*")
@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_own_checks(check):
    check(RankingCurveRanker(starts=2))


@pytest.fixture
def table():
    return np.random.default_rng(0).random((30, 3)).cumsum(0) * [1, -1, 1]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names_and_directions_go_by_name(table, frame):
    columns = frame({name: table[:, j] for j, name in enumerate(["gdp", "infant", "life"])})
    ranker = RankingCurveRanker(directions={"life": 1, "gdp": 1, "infant": -1}).fit(columns)
    assert list(ranker.feature_names_in_) == ["gdp", "infant", "life"]
    curve = fit_curve(torch.from_numpy(table), [1, -1, 1])
    np.testing.assert_array_equal(ranker.score_samples(columns), curve(torch.from_numpy(table)).detach())
    assert ranker.rank(columns).tolist() == RankingCurveRanker(directions=[1, -1, 1]).fit(table).rank(table).tolist()


def test_equal_rows_share_a_rank(table):
    ranker = RankingCurveRanker(directions=[1, -1, 1]).fit(table)
    twice = np.concatenate([table[-1:], table[-1:], table[:1]])
    assert ranker.rank(twice).tolist() == [1, 1, 3]


def test_missing_values_by_policy(table):
    table[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        RankingCurveRanker().fit(table)
    assert np.isfinite(
        RankingCurveRanker(directions=[1, -1, 1], missing="observed").fit(table).score_samples(table)
    ).all()


@pytest.mark.parametrize(
    ("directions", "said"),
    [({"a": 1}, "column names"), ([1, 1], "2 directions for 3"), ([1, 0, 1], "direction 0")],
)
def test_directions_that_do_not_fit(table, directions, said):
    with pytest.raises(TorchRankError, match=said):
        RankingCurveRanker(directions=directions).fit(table)


def test_parameters_round_trip():
    ranker = RankingCurveRanker(directions=[1, -1], scaling="rank", starts=3)
    assert clone(ranker).get_params() == ranker.get_params()
