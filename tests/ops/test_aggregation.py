"""Rankings without a fit, against SciPy, NumPy and the definitions."""

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from torchrank.errors import ShapeError
from torchrank.ops.aggregation import competition_ranks, mean_rank, principal_component, topsis

SIGNS = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)


@pytest.fixture
def points():
    return torch.from_numpy(np.random.default_rng(0).integers(0, 6, (40, 3)).astype(float))


def test_ranks_are_those_of_scipy(points):
    scores = points[:, 0]
    assert competition_ranks(scores).tolist() == rankdata(-scores.numpy(), method="min").tolist()


def test_mean_rank_is_the_mean_of_the_ranks(points):
    ranks = np.stack([rankdata(column) for column in (points * SIGNS).T.numpy()])
    np.testing.assert_allclose(mean_rank(points, SIGNS), (ranks.mean(0) - 1) / 39)


def test_principal_component_is_the_leading_eigenvector(points):
    _, vectors = np.linalg.eigh(np.cov(points.T.numpy()))
    along = points.numpy() @ vectors[:, -1]
    correlation = np.corrcoef(along, principal_component(points, SIGNS))[0, 1]
    assert abs(correlation) == pytest.approx(1)


def test_principal_component_agrees_with_the_directions():
    line = torch.linspace(0, 1, 9, dtype=torch.float64)
    points = torch.stack([line, 1 - line, line], 1)
    torch.testing.assert_close(principal_component(points, SIGNS), line)
    torch.testing.assert_close(principal_component(points, -SIGNS), 1 - line)


def test_topsis_by_definition(points):
    shares = (points * SIGNS / points.norm(dim=0)).numpy()
    worst = np.linalg.norm(shares - shares.min(0), axis=1)
    best = np.linalg.norm(shares - shares.max(0), axis=1)
    np.testing.assert_allclose(topsis(points, SIGNS), worst / (worst + best))


@pytest.mark.parametrize("method", [mean_rank, principal_component, topsis])
def test_equal_objects_are_finite(method):
    assert method(torch.ones(4, 3), SIGNS.float()).isfinite().all()
    with pytest.raises(ShapeError):
        method(torch.ones(4, 2), SIGNS.float())
