"""Maps to the unit cube: what they take where, that they are increasing, and their inverse."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchrank.errors import TorchRankError
from torchrank.ops.scaling import scale, scaling_knots, whiskers

F64 = torch.float64
values = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=60).filter(lambda x: len(set(x)) > 1)


def test_minmax_takes_least_and_greatest_to_0_and_1():
    x = torch.tensor([3.0, -1.0, 7.0, 5.0], dtype=F64)
    knots, levels = scaling_knots([x], "minmax")
    torch.testing.assert_close(scale(x[:, None], knots, levels)[:, 0], (x + 1) / 8)


def test_none_leaves_values_as_they_are():
    x = torch.rand(10, 2, dtype=F64) * 5 - 2
    assert torch.equal(scale(x, *scaling_knots(x.T, None)), x)


def test_rank_is_the_mid_rank():
    x = torch.tensor([10.0, 20.0, 20.0, 40.0, 1000.0], dtype=F64)
    got = scale(x[:, None], *scaling_knots([x], "rank"))[:, 0]
    torch.testing.assert_close(got, torch.tensor([0, 1.5, 1.5, 3, 4], dtype=F64) / 4)


def test_rank_interpolates_between_many_values():
    x = torch.rand(50_000, dtype=F64, generator=torch.Generator().manual_seed(0)) ** 3
    knots, levels = scaling_knots([x], "rank")
    assert knots.shape[1] < 1100
    want = x.argsort().argsort().to(F64) / (len(x) - 1)
    torch.testing.assert_close(scale(x[:, None], knots, levels)[:, 0], want, atol=2e-3, rtol=0)


@pytest.mark.parametrize("outlier", [1e3, -1e6])
def test_whiskers_ignore_outliers(outlier):
    x = torch.cat([torch.linspace(0, 1, 99), torch.tensor([outlier])])
    assert [w.item() for w in whiskers(x)] == [0.0, 1.0]


def test_without_outliers_robust_is_minmax():
    x = torch.rand(200, 3, dtype=F64)
    for robust, plain in zip(scaling_knots(x.T, "robust"), scaling_knots(x.T, "minmax"), strict=True):
        assert torch.equal(robust, plain)


def test_whiskers_of_mostly_equal_values_are_the_extremes():
    x = torch.tensor([0.0] * 90 + [5.0, 9.0])
    assert [w.item() for w in whiskers(x)] == [0.0, 9.0]


@given(values, st.sampled_from(["minmax", "robust", "rank"]))
def test_maps_are_strictly_increasing_and_invertible(x, scaling):
    x = torch.tensor(x, dtype=F64)
    knots, levels = scaling_knots([x, 2 * x[:2]] if x[0] != x[1] else [x], scaling)
    assert (knots.diff(dim=1) > 0).all()
    assert (levels.diff(dim=1) > 0).all()
    probe = torch.linspace(float(x.min()) - 30, float(x.max()) + 30, 300, dtype=F64)[:, None].expand(-1, len(knots))
    there = scale(probe, knots, levels)
    assert (there.diff(dim=0) > 0).all()
    torch.testing.assert_close(scale(there, levels, knots), probe, atol=1e-8, rtol=1e-9)


@pytest.mark.parametrize("scaling", ["minmax", "rank"])
def test_gradients_missing_values_and_shapes(scaling):
    data = torch.rand(40, 2, dtype=F64, generator=torch.Generator().manual_seed(0))
    knots, levels = scaling_knots(data.T, scaling)
    x = (torch.rand(3, 2, 2, dtype=F64, generator=torch.Generator().manual_seed(1)) * 1.4 - 0.2).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: scale(a, knots, levels), (x,))
    holes = x.detach().clone()
    holes[0, 0, 1] = torch.nan
    assert scale(holes, knots, levels).isnan().nonzero().tolist() == [[0, 0, 1]]


def test_float32_values_are_scaled_in_float64():
    knots, levels = scaling_knots([torch.tensor([1e7, 1e7 + 4])], "minmax")
    assert scale(torch.tensor([[1e7 + 1]]), knots, levels).tolist() == [[0.25]]


def test_unknown_scaling():
    with pytest.raises(TorchRankError, match="did you mean 'minmax'"):
        scaling_knots([torch.rand(3)], "minmaxx")
