"""Seeded objects of several attributes whose place on a curve is known."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.errors import TorchRankError, check_count, check_number, check_seed
from torchrank.ops.bezier import bezier_curve


class SyntheticObjects(NamedTuple):
    """Synthetic objects and what is known about them.

    Attributes:
        points: ``(n, d)`` float64 attributes.
        places: ``(n,)`` each object's place s on the curve: their order is the right ranking.
        directions: +1 where more is better, −1 where less is, one an attribute.
        control_points: ``(d, 4)`` the curve.

    Example:
        >>> made = make_objects(100, noise=0.0)
        >>> torch.equal(made.points, bezier_curve(made.control_points, made.places))
        True
    """

    points: Tensor
    places: Tensor
    directions: list[int]
    control_points: Tensor

    def __repr__(self) -> str:
        return f"SyntheticObjects({len(self.points)} objects, {self.points.shape[1]} attributes)"


def make_objects(
    num_objects: int = 200,
    *,
    directions: Sequence[int] = (1, 1, -1),
    noise: float = 0.02,
    seed: int = 0,
) -> SyntheticObjects:
    """Make objects around a random monotone cubic curve from the worst corner of the unit cube to the best.

    Places are uniform on [0, 1]; attributes are the curve's point plus independent Gaussian noise.

    Args:
        num_objects: n.
        directions: +1 or −1 an attribute.
        noise: standard deviation of the noise, where an attribute runs from 0 to 1.
        seed: of everything random.

    Returns:
        the objects, their places, the directions and the curve.

    Raises:
        TorchRankError: an option out of its range.

    Source:
        the model of eq 11 of Li, Mei & Hu (arXiv 1402.4542).

    Example:
        >>> made = make_objects(1000)
        >>> made.points.shape, made.control_points[:, 0].tolist()
        (torch.Size([1000, 3]), [0.0, 0.0, 1.0])
    """
    check_count("num_objects", num_objects)
    check_seed(seed)
    if not directions or any(a not in (1, -1) for a in directions):
        raise TorchRankError(f"directions={list(directions)} must be +1 or −1, one an attribute")
    check_number("noise", noise, least=0)
    generator = torch.Generator().manual_seed(seed)
    alpha = torch.tensor(list(directions), dtype=torch.float64)[:, None]
    inner = torch.rand(len(alpha), 2, dtype=torch.float64, generator=generator)
    control_points = torch.cat([(1 - alpha) / 2, inner, (1 + alpha) / 2], 1)
    places = torch.rand(num_objects, dtype=torch.float64, generator=generator)
    points = bezier_curve(control_points, places)
    points = points + noise * torch.randn(points.shape, dtype=torch.float64, generator=generator)
    return SyntheticObjects(points, places, [int(a) for a in directions], control_points)
