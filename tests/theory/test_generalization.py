import copy
import math

import pytest
import torch

from torchrank.losses import (
    ApproxNDCGLoss,
    ListMLELoss,
    PairwiseHingeLoss,
    PairwiseLogisticLoss,
    PointwiseLogisticLoss,
    SLAMLoss,
    SoftmaxLoss,
)
from torchrank.theory import generalization_bound, regularization_strength, score_lipschitz

LOSSES = [SLAMLoss(), SLAMLoss(measure="map"), PairwiseHingeLoss(), PairwiseLogisticLoss(), SoftmaxLoss()]
LOSSES += [ListMLELoss(), PointwiseLogisticLoss(), ApproxNDCGLoss()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_one_norm_curve_is_never_above_the_other(loss):
    curves = generalization_bound(loss, range(2, 300), num_lists=100, radius=2.0, weight_norm=0.5)
    assert curves.lengths == list(range(2, 300))
    for one, two in zip(curves.one_norm, curves.two_norm, strict=True):
        assert one <= two * (1 + 1e-12)


def test_slam_is_free_of_the_length_and_listmle_is_not():
    slam = generalization_bound(SLAMLoss(), [2, 10_000], num_lists=200, radius=3.0, weight_norm=2.0)
    assert slam.one_norm == [2 * 3 * 2 * math.sqrt(8 / 200)] * 2
    assert slam.two_norm[1] == pytest.approx(math.sqrt(2) * 3 * 2 * math.sqrt(8 * 10_000 / 200))
    listmle = generalization_bound(ListMLELoss(), [2, 3], num_lists=200, radius=3.0, weight_norm=2.0)
    assert listmle.one_norm[1] == 2 * listmle.one_norm[0]


def features_and_labels(lists, generator):
    """Lists of 8 documents with features of norm at most 1 and noisy labels."""
    features = torch.nn.functional.normalize(torch.randn(lists, 8, 4, generator=generator, dtype=torch.float64), dim=-1)
    noise = torch.randn(lists, 8, generator=generator, dtype=torch.float64)
    return features, (features[..., 0] * 2 + noise).clamp(min=0).round()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_loss_is_lipschitz_in_the_weights(loss):
    """‖∇_w φ(Xw, R)‖ ≤ L̃_1 R: the step from scores to weights in the theorem."""
    generator = torch.Generator().manual_seed(0)
    features, relevance = features_and_labels(200, generator)
    weights = 3 * torch.randn(200, 4, generator=generator, dtype=torch.float64)
    weights.requires_grad_()
    scores = (features @ weights[:, :, None]).squeeze(-1)
    each = copy.copy(loss)
    each.reduction = "sum"
    (gradient,) = torch.autograd.grad(each(scores, relevance), weights)
    assert gradient.norm(dim=-1).max() <= score_lipschitz(loss, 8).one


def test_the_regularised_minimiser_stays_below_the_bound():
    generator = torch.Generator().manual_seed(0)
    loss, norm, excess = SLAMLoss(), 2.0, []
    fresh = features_and_labels(4000, generator)

    def solve(features, relevance, penalty):
        weights = torch.zeros(4, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([weights], lr=0.05)
        for _ in range(150):
            optimizer.zero_grad()
            (loss(features @ weights, relevance) + penalty * weights.square().sum()).backward()
            optimizer.step()
        return weights.detach()

    best = solve(*fresh, 0.0)
    assert best.norm() <= norm
    for _ in range(5):
        features, relevance = features_and_labels(60, generator)
        penalty = regularization_strength(loss, 8, num_lists=60, radius=1.0, weight_norm=norm)
        found = solve(features, relevance, penalty)
        excess.append(float(loss(fresh[0] @ found, fresh[1]) - loss(fresh[0] @ best, fresh[1])))
    bound = generalization_bound(loss, [8], num_lists=60, radius=1.0, weight_norm=norm).one_norm[0]
    assert -0.01 < sum(excess) / len(excess) <= bound  # below 0 by what the solver leaves


def test_refuses_bad_numbers():
    for bad in ({"num_lists": 0}, {"radius": -1.0}, {"weight_norm": math.nan}):
        good = {"num_lists": 10, "radius": 1.0, "weight_norm": 1.0} | bad
        with pytest.raises(ValueError, match=next(iter(bad))):
            generalization_bound(SLAMLoss(), [3], **good)
        with pytest.raises(ValueError, match=next(iter(bad))):
            regularization_strength(SLAMLoss(), 3, **good)
