"""The projection loss: its value, its envelope gradient, reductions."""

import pytest
import torch

from torchrank.errors import ShapeError, TorchRankError
from torchrank.losses import ProjectionLoss, projection_loss
from torchrank.ops import bezier_curve, project
from torchrank.ops.bezier import bernstein_basis

F64 = torch.float64
CURVE = torch.tensor([[0.0, 0.2, 0.9, 1.0], [1.0, 0.8, 0.1, 0.0]], dtype=F64)


def points(n=20, seed=0):
    return torch.rand(n, 2, dtype=F64, generator=torch.Generator().manual_seed(seed))


def test_value_and_envelope_gradient():
    x, p = points().requires_grad_(), CURVE.clone().requires_grad_()
    loss = projection_loss(x, p)
    loss.sum().backward()
    s, squared = project(x.detach(), CURVE)
    residual = bezier_curve(CURVE, s) - x.detach()
    torch.testing.assert_close(loss, squared)
    torch.testing.assert_close(x.grad, -2 * residual)
    torch.testing.assert_close(p.grad, 2 * residual.T @ bernstein_basis(3, s))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_gradcheck(degree):
    p = torch.rand(2, degree + 1, dtype=F64, generator=torch.Generator().manual_seed(degree), requires_grad=True)
    assert torch.autograd.gradcheck(projection_loss, (points().requires_grad_(), p))


def test_reductions():
    x = points()
    each = projection_loss(x, CURVE)
    torch.testing.assert_close(ProjectionLoss(reduction="none")(x, CURVE), each)
    torch.testing.assert_close(ProjectionLoss(reduction="sum")(x, CURVE), each.sum())
    torch.testing.assert_close(ProjectionLoss()(x, CURVE), each.mean())
    empty = ProjectionLoss()(x[:0], CURVE.clone().requires_grad_())
    assert empty.item() == 0
    empty.backward()


def test_unobserved_attributes_cost_nothing():
    x = points()
    x[:, 1] = torch.nan
    seen = torch.tensor([True, False]).expand_as(x)
    loss = ProjectionLoss()(x, CURVE.clone().requires_grad_(), seen)
    # One attribute alone is met exactly anywhere on a monotone curve.
    assert loss.item() < 1e-20
    loss.backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_returned_in_float32(dtype):
    loss = projection_loss(points().to(dtype), CURVE.to(dtype))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), projection_loss(points(), CURVE), atol=0.05, rtol=0)


def test_bad_input():
    with pytest.raises(ShapeError, match="2 attributes"):
        projection_loss(torch.rand(3, 4), CURVE)
    with pytest.raises(TorchRankError, match="reduction"):
        ProjectionLoss(reduction="average")
