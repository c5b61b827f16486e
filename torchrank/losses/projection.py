"""The projection loss: squared distances of points to a Bézier curve, the objective of principal curves.

Source: Li, Mei & Hu, "Unsupervised Ranking of Multi-Attribute Objects Based on Principal Curves" (arXiv 1402.4542),
eq 19 and 20.
"""

from torch import Tensor

from torchrank.losses._lists import ReducedLoss, reduce_lists
from torchrank.ops.precision import at_least_float32
from torchrank.ops.projection import project


def projection_loss(points: Tensor, control_points: Tensor, *, observed: Tensor | None = None) -> Tensor:
    """Squared distance of each point to its nearest point on the curve.

    Differentiable in points and control points by the envelope theorem: ``2 (x − f(s))`` and ``2 B_r(s) (f(s) − x)``.

    Args:
        points: ``(..., d)``; half precision is returned in float32.
        control_points: ``(d, k + 1)``, degree ``k`` 1, 2 or 3, in the points' units.
        observed: ``(..., d)`` boolean, False where an attribute is missing and counts for nothing; None when all count.

    Returns:
        ``(...)``.

    Raises:
        ShapeError: shapes that do not fit.
        TorchRankError: a degree above 3.

    Source:
        Li, Mei & Hu, eq 19.

    Example:
        >>> import torch
        >>> diagonal = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
        >>> projection_loss(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), diagonal)
        tensor([0.5000, 0.0000])
    """
    return project(at_least_float32(points), at_least_float32(control_points), observed=observed)[1]


class ProjectionLoss(ReducedLoss):
    """The mean squared distance of a batch of points to a curve, as :func:`projection_loss`.

    Args:
        reduction: ``"mean"`` (0 for no points), ``"sum"`` (the paper's J) or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> import torch
        >>> ProjectionLoss(reduction="sum")(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0]] * 2))
        tensor(0.5000)
    """

    def forward(self, points: Tensor, control_points: Tensor, observed: Tensor | None = None) -> Tensor:
        """Reduce the squared distance of each point.

        Args:
            points: ``(..., d)``.
            control_points: ``(d, k + 1)``.
            observed: ``(..., d)`` boolean or None.

        Returns:
            a scalar, or ``(...)`` for ``reduction="none"``.
        """
        each = projection_loss(points, control_points, observed=observed)
        return reduce_lists(each, None, None, self.reduction)
