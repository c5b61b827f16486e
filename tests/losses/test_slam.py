"""SLAM beyond the laws: values as arithmetic, bounds, warnings, options."""

import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests import oracles
from torchrank.losses import SLAMLoss, slam_loss, slam_weights

D2 = 1 / math.log2(3)
T = torch.tensor
lists = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=9)


def test_the_check_value_of_the_formula():
    scores = T([[0.0, 1.0, 2.0]], requires_grad=True)
    loss = slam_loss(scores, T([[2.0, 1.0, 0.0]]))
    v1, v2 = 3 / (3 + D2), D2 / (3 + D2)
    torch.testing.assert_close(loss, T([v1 * (1 + 2 - 0) + v2 * (1 + 2 - 1)]))
    loss.sum().backward()
    torch.testing.assert_close(scores.grad, T([[-v1, -v2, v1 + v2]]))


@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize("ties", ["mean", "first"])
def test_weights_against_the_formula(measure, ties):
    generator = torch.Generator().manual_seed(0)
    for length in range(1, 12):
        relevance = torch.randint(0, 4, (length,), generator=generator).double()
        mask = torch.rand(length, generator=generator) < 0.8
        got = slam_weights(relevance, mask, measure=measure, ties=ties)
        assert (got[~mask] == 0).all()
        want = oracles.slam_weights(relevance[mask].tolist(), measure, ties)
        assert got[mask].tolist() == pytest.approx(want)


def test_weights_of_a_cut_off_measure():
    got = slam_weights(T([0.0, 1.0, 2.0, 1.0]), k=2)
    torch.testing.assert_close(got, T([0.0, D2 / 2, 3.0, D2 / 2]) / (3 + D2))
    torch.testing.assert_close(slam_weights(T([1.0, 1.0]), k=1, ties="first"), T([1.0, 0.0]))
    assert slam_weights(torch.zeros(2, 0)).shape == (2, 0)
    assert slam_weights(torch.zeros(2, 0), measure="map").shape == (2, 0)


@given(lists, st.sampled_from(["mean", "first"]), st.sampled_from([None, 1, 3]), st.sampled_from([1.0, 2.5]))
def test_bounds_one_minus_ndcg_from_above(pairs, ties, k, margin):
    scores, relevance = zip(*pairs, strict=True)
    loss = slam_loss(T(scores).double(), T(relevance), ties=ties, k=k, margin=margin)
    assert loss.item() >= oracles.ndcg_loss(scores, relevance, k) - 1e-9


@given(lists, st.sampled_from(["mean", "first"]), st.sampled_from([1.0, 2.5]))
def test_bounds_one_minus_average_precision_from_above(pairs, ties, margin):
    scores, relevance = zip(*pairs, strict=True)
    loss = slam_loss(T(scores).double(), T(relevance), measure="map", ties=ties, margin=margin)
    assert loss.item() >= oracles.ap_loss(scores, relevance) - 1e-9


def test_weights_of_your_own_are_used_as_given_and_carry_gradients():
    scores, relevance = T([[0.0, 1.0, 2.0]]), T([[0.0, 2.0, 1.0]])
    weights = T([[0.0, 3.0, 0.5]], requires_grad=True)
    loss = slam_loss(scores, relevance, weights=weights)
    torch.testing.assert_close(loss, T([3.0 * (1 + 2 - 1)]))
    loss.sum().backward()
    torch.testing.assert_close(weights.grad, T([[0.0, 2.0, 0.0]]))
    torch.testing.assert_close(SLAMLoss()(scores, relevance, weights=weights), loss[0])


def test_warns_of_weights_that_fall_as_relevance_rises():
    scores, relevance = torch.zeros(1, 3), T([[2.0, 1.0, 0.0]])
    with pytest.warns(UserWarning, match="more weight than a more relevant"):
        slam_loss(scores, relevance, weights=T([[0.1, 0.5, 0.0]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slam_loss(scores, relevance, weights=T([[0.5, 0.5, 0.0]]))
        # what lies under the mask does not count, nor order inside a level
        slam_loss(scores, relevance, T([[True, True, False]]), weights=T([[0.5, 0.1, 9.0]]))
        slam_loss(scores, T([[2.0, 1.0, 0.0]]), measure="map", weights=T([[0.1, 0.5, 0.0]]))


def test_map_takes_positive_relevance_as_relevant_for_the_hinges_too():
    scores = T([[0.0, 1.0, 0.5]])
    graded, binary = T([[3.0, 1.0, 0.0]]), T([[1.0, 1.0, 0.0]])
    torch.testing.assert_close(slam_loss(scores, graded, measure="map"), slam_loss(scores, binary, measure="map"))
    each = SLAMLoss(measure="map", reduction="none")(scores, T([[3.0, 1.0, 2.0]]))
    assert each.item() == 0  # nothing is irrelevant
    assert SLAMLoss(measure="map")(torch.zeros(2, 3), torch.cat([graded, T([[3.0, 1.0, 2.0]])])) == slam_loss(
        torch.zeros(1, 3), graded, measure="map"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"measure": "ncdg"}, "did you mean 'ndcg'"),
        ({"ties": "frist"}, "did you mean 'first'"),
        ({"margin": -1.0}, "margin=-1.0"),
        ({"margin": math.nan}, "margin=nan"),
        ({"k": 0}, "k=0"),
        ({"k": 5, "measure": "map"}, "measure='map'"),
    ],
)
def test_refuses_bad_options(options, says):
    with pytest.raises(ValueError, match=says):
        slam_loss(torch.zeros(1, 3), torch.zeros(1, 3), **options)
    with pytest.raises(ValueError, match=says):
        SLAMLoss(**options)


def test_refuses_bad_weights():
    zeros = torch.zeros(1, 3)
    with pytest.raises(ValueError, match="weights have shape"):
        slam_loss(zeros, zeros, weights=torch.zeros(3))
    with pytest.raises(ValueError, match="weights must be finite and at least 0"):
        slam_loss(zeros, zeros, weights=zeros - 1)
    with pytest.raises(ValueError, match="cuts NDCG's weights"):
        slam_loss(zeros, zeros, weights=zeros, k=2)


def test_real_valued_relevance_and_large_grades():
    scores = torch.zeros(1, 4, dtype=torch.float64)
    loss = slam_loss(scores, T([[0.5, 0.25, 0.125, 0.0]]).double())
    weights = oracles.slam_weights([0.5, 0.25, 0.125, 0.0])
    assert loss.item() == pytest.approx(sum(weights[:3]))
    weights = slam_weights(T([[60.0, 59.0, 0.0]]))
    torch.testing.assert_close(weights, T([[2.0, D2, 0.0]]) / (2 + D2))
