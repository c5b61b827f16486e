"""ElPiGraph's principal curve, a peer of the ranking curve; needs its package, elpigraph-python."""

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Polyline(NamedTuple):
    """Straight pieces from node to node.

    Attributes:
        nodes: ``(k, d)``, from the worst end to the best.
    """

    nodes: Tensor

    def place(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Find the nearest point of the line.

        Args:
            points: ``(n, d)``.

        Returns:
            its place as a share of the length, and the squared distance, both ``(n,)``.

        Example:
            >>> line = Polyline(torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
            >>> line.place(torch.tensor([[0.5, 0.5], [2.0, 1.0]]))
            (tensor([0.2500, 1.0000]), tensor([0.2500, 1.0000]))
        """
        start, step = self.nodes[:-1], self.nodes.diff(dim=0)
        squared_length = step.square().sum(-1)
        share = (((points[:, None] - start) * step).sum(-1) / squared_length).clamp(0, 1)
        distance = (points[:, None] - start - share[..., None] * step).square().sum(-1)
        nearest = distance.argmin(1)
        row = torch.arange(len(points))
        length = squared_length.sqrt()
        before = length.cumsum(0) - length
        along = before[nearest] + share[row, nearest] * length[nearest]
        return along / length.sum(), distance[row, nearest]

    def curve(self, s: Tensor) -> Tensor:
        """Points of the line: places ``(m,)`` as shares of its length to ``(m, d)``."""
        step = self.nodes.diff(dim=0)
        length = step.norm(dim=-1)
        ends = length.cumsum(0)
        along = s.clamp(0, 1) * ends[-1]
        piece = torch.searchsorted(ends, along).clamp(max=len(step) - 1)
        share = (along - ends[piece] + length[piece]) / length[piece]
        points: Tensor = self.nodes[piece] + share[:, None] * step[piece]
        return points


def has_elpigraph() -> bool:
    """Whether ElPiGraph's package is installed."""
    return find_spec("elpigraph") is not None


def elastic_curve(points: Tensor, directions: Tensor, *, nodes: int) -> Polyline:
    """Fit ElPiGraph's elastic principal curve with its own defaults.

    Args:
        points: ``(n, d)``, scaled.
        directions: ``(d,)`` of +1 and −1: which end is the best.
        nodes: number of nodes; a line of ``nodes`` has as many numbers as a Bézier curve of as many control points.

    Returns:
        the line.

    Source:
        Albergante et al., "Robust and scalable learning of complex intrinsic dataset geometry via ElPiGraph", Entropy
        22(3), 2020.
    """
    import elpigraph

    fitted = elpigraph.computeElasticPrincipalCurve(points.cpu().double().numpy(), NumNodes=nodes, verbose=False)[0]
    path = _path(np.asarray(fitted["Edges"][0]))
    placed = torch.from_numpy(np.asarray(fitted["NodePositions"])[path])
    rising = ((placed[-1] - placed[0]) * directions).sum() >= 0
    return Polyline(placed if rising else placed.flip(0))


def _path(edges: NDArray[np.integer]) -> list[int]:
    """Order the nodes of a path from one of its ends to the other."""
    near: dict[int, list[int]] = {}
    for a, b in edges.tolist():
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    path = [min(node for node, others in near.items() if len(others) == 1)]
    while len(path) < len(near):
        path.append(next(node for node in near[path[-1]] if node not in path[-2:]))
    return path
