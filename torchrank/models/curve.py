"""The ranking principal curve: a monotone Bézier curve through the cloud of objects; a score is a place along it.

Source: Li, Mei & Hu, "Unsupervised Ranking of Multi-Attribute Objects Based on Principal Curves" (arXiv 1402.4542).
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torchrank.errors import DataError, ShapeError, TorchRankError, check_option
from torchrank.models.curve_report import CurveReport
from torchrank.ops.bezier import arc_length, bezier_curve, derivative_points, is_monotone
from torchrank.ops.checks import sizes_are_symbols, values_can_be_read
from torchrank.ops.projection import project
from torchrank.ops.scaling import scale

ENDS = ("corner", "free")
SCORES = ("arc_length", "parameter")
MISSING = ("error", "observed")
#: how far inner control points stay from the cube's faces: at p1 = 1, p2 = 0 the curve would stand still half way
MARGIN = 1e-3
_BOUND = math.log((1 - MARGIN) / MARGIN)
#: rows that are scored at once
_ROWS = 1 << 17


class RankingCurve(nn.Module):
    """Score objects of ``d`` attributes by their nearest point on a curve from the worst to the best corner.

    Points come in the user's units; the curve carries the map to the unit cube that it was fitted with (none until
    then). With ``ends="corner"`` the curve strictly improves in every attribute, and so do the scores: an object
    that is at least as good in every attribute and better in one scores higher. That holds beyond the fitted box too
    when ``extend`` is set. Parameters and scores are float64, whatever the points' precision: rounding scores to
    float32 would tie objects.

    A curve has ``d (degree + 1)`` numbers. Scores are differentiable in the points and in the control points, so a
    curve can be a layer: :func:`torchrank.losses.slam_loss` of its scores bends it to a few labelled lists. They jump
    where two parts of the curve are equally near.

    Args:
        directions: ``d`` numbers, +1 for an attribute of which more is better, −1 where less is.
        degree: 1 (a straight line), 2 or 3. From 4 on a curve in the cube need not be monotone.
        ends: ``"corner"`` joins the cube's worst corner to its best; ``"free"`` lets the ends move in the cube, as eq
            20 of the paper does, and then nothing guarantees monotonicity: see :attr:`monotone`.
        score: ``"arc_length"``, the way along the curve as a share of the whole, which the data determine; or
            ``"parameter"``, the paper's s, which they do not when they are nearly straight.
        extend: let the curve go on along its end tangents, so that objects beyond the fitted box score below 0 or above
            1; otherwise they tie at 0 or 1.
        missing: ``"error"`` refuses NaN, ``"observed"`` projects on the attributes that are there.

    Attributes:
        report: how it was fitted, None for a curve that :func:`torchrank.training.fit_curve` did not make.

    Raises:
        TorchRankError: a direction that is not ±1, no direction at all, a degree outside 1 to 3, an unknown option.

    Example:
        >>> curve = RankingCurve([1, -1])
        >>> curve(torch.tensor([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [2.0, -1.0]])).detach()
        tensor([0.0000, 0.5000, 1.0000, 2.0000], dtype=torch.float64)
    """

    corners: Tensor
    knots: Tensor
    levels: Tensor
    kept: Tensor

    def __init__(
        self,
        directions: Sequence[int] | Tensor,
        *,
        degree: int = 3,
        ends: str = "corner",
        score: str = "arc_length",
        extend: bool = True,
        missing: str = "error",
    ) -> None:
        super().__init__()
        self.directions = check_directions(directions)
        check_degree(degree)
        check_option("ends", ends, ENDS)
        check_option("score", score, SCORES)
        check_option("missing", missing, MISSING)
        self.degree = degree
        self.ends = ends
        self.score = score
        self.extend = extend
        self.missing = missing
        self.report: CurveReport | None = None
        d = len(self.directions)
        corners = end_points(self.directions)
        self.register_buffer("corners", corners, persistent=False)
        self.register_buffer("knots", torch.tensor([[0.0, 1.0]], dtype=torch.float64).repeat(d, 1))
        self.register_buffer("levels", torch.tensor([[0.0, 1.0]], dtype=torch.float64).repeat(d, 1))
        self.register_buffer("kept", torch.ones(d, dtype=torch.bool))
        share = torch.arange(1, degree, dtype=torch.float64) / degree
        self.inner = nn.Parameter((corners[:, :1] + (corners[:, 1:] - corners[:, :1]) * share).logit())
        self.outer = nn.Parameter(corners.clone()) if ends == "free" else None

    @property
    def control_points(self) -> Tensor:
        """Control points in the unit cube, ``(d, degree + 1)``, differentiable; a dropped attribute's are all 0.

        Sigmoids of the parameters, whose bound keeps them 1e-3 inside the faces. At the bound the gradient is what it
        is just inside, so that a point pushed against a face can come back.
        """
        bounded = self.inner.detach().clamp(-_BOUND, _BOUND)
        inner = torch.sigmoid(self.inner + (bounded - self.inner).detach())
        ends = self.corners
        if self.outer is not None:
            ends = self.outer + (self.outer.clamp(0, 1) - self.outer).detach()
        points = torch.cat([ends[:, :1], inner, ends[:, 1:]], 1)
        return torch.where(self.kept[:, None], points, 0)

    @torch.no_grad()
    def set_control_points(self, control_points: Tensor) -> None:
        """Set the control points; inner ones closer than 1e-3 to a face are moved to that distance.

        Args:
            control_points: ``(d, degree + 1)`` in the unit cube; the ends of a curve from corner to corner are ignored.

        Raises:
            ShapeError: another shape.
        """
        if control_points.shape != (len(self.directions), self.degree + 1):
            raise ShapeError(
                f"control points have shape {tuple(control_points.shape)}; this curve has"
                f" {(len(self.directions), self.degree + 1)}"
            )
        points = control_points.to(self.inner)
        self.inner.copy_(points[:, 1:-1].clamp(MARGIN, 1 - MARGIN).logit())
        if self.outer is not None:
            self.outer.copy_(points[:, [0, -1]].clamp(0, 1))

    @torch.no_grad()
    def clip_parameters(self) -> None:
        """Bring parameters that an optimiser's step took out of bounds back to them: the curve stays the same."""
        self.inner.clamp_(-_BOUND, _BOUND)
        if self.outer is not None:
            self.outer.clamp_(0, 1)

    def set_scaling(self, knots: Tensor, levels: Tensor, kept: Tensor | None = None) -> None:
        """Set the map from the user's units to the unit cube.

        Args:
            knots: ``(d, K)`` strictly increasing values of each attribute, in the user's units.
            levels: ``(d, K)`` where the cube has them.
            kept: ``(d,)`` boolean, False for an attribute that takes no part.

        Raises:
            ShapeError: shapes that do not fit.
        """
        if knots.shape != levels.shape or knots.ndim != 2 or knots.shape[0] != len(self.directions):
            raise ShapeError(
                f"knots have shape {tuple(knots.shape)} and levels {tuple(levels.shape)}; both must be"
                f" ({len(self.directions)}, K)"
            )
        self.knots, self.levels = knots.to(self.knots), levels.to(self.levels)
        if kept is not None:
            self.kept = kept.to(self.kept)

    @property
    def monotone(self) -> bool:
        """Whether the curve strictly improves in every attribute: always with ``ends="corner"``."""
        if self.outer is None:
            return True
        directions = torch.tensor(self.directions, dtype=self.corners.dtype, device=self.corners.device)
        return is_monotone(self.control_points[self.kept], directions[self.kept])

    def to_cube(self, points: Tensor) -> Tensor:
        """Map points from the user's units to the unit cube: ``(..., d)`` to ``(..., d)``."""
        return scale(points, self.knots, self.levels)

    def to_units(self, points: Tensor) -> Tensor:
        """Map points from the unit cube to the user's units: ``(..., d)`` to ``(..., d)``."""
        return scale(points, self.levels, self.knots)

    def curve(self, s: Tensor) -> Tensor:
        """Points of the curve in the user's units.

        Args:
            s: ``(...)`` parameters from 0 (worst) to 1 (best); beyond, points on the end tangents.

        Returns:
            ``(..., d)``.

        Example:
            >>> RankingCurve([1, -1]).curve(torch.tensor([0.0, 0.5, 1.0]))[:, 1].tolist()
            [1.0, 0.5, 0.0]
        """
        points = self.control_points
        s = s.to(points)
        inside = s.clamp(0, 1)
        slope = bezier_curve(derivative_points(points), inside)
        return self.to_units(bezier_curve(points, inside) + (s - inside).unsqueeze(-1) * slope)

    def place(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Find the nearest point of the curve.

        Args:
            points: ``(..., d)`` in the user's units.

        Returns:
            its parameter s and the squared distance in the unit cube, both ``(...)``.

        Raises:
            ShapeError: points of another number of attributes.
            DataError: as when scoring.
        """
        control_points = self.control_points
        parts = [self._project(part, control_points) for part in _parts(self._rows(points, None))]
        s, squared = (torch.cat(both).reshape(points.shape[:-1]) for both in zip(*parts, strict=True))
        return s, squared

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Score objects.

        Args:
            points: ``(..., d)`` in the user's units.
            mask: ``(...)`` boolean, True where an object is real; None when all are.

        Returns:
            ``(...)``: higher is better; between 0 and 1 for objects inside the fitted box. What lies under the mask has
            no meaning.

        Raises:
            ShapeError: points of another number of attributes, or a mask that does not fit.
            DataError: infinite values, NaN where ``missing="error"``, or an object with nothing observed (on a CPU).
        """
        control_points = self.control_points
        ends = torch.tensor([0.0, 1.0], dtype=control_points.dtype, device=control_points.device)
        if self.outer is not None:
            ends = project(self.corners.T, control_points, extend=self.extend)[0]
        worst, best = self._measure(ends, control_points).unbind()
        scores = [
            (self._measure(self._project(part, control_points)[0], control_points) - worst) / (best - worst)
            for part in _parts(self._rows(points, mask))
        ]
        return torch.cat(scores).reshape(points.shape[:-1])

    def extra_repr(self) -> str:
        """Say what the curve is, and whether dominance decides."""
        text = f"{self.directions}, degree={self.degree}, ends={self.ends!r}, score={self.score!r}"
        return text if self.monotone else f"{text}, NOT monotone"

    def _rows(self, points: Tensor, mask: Tensor | None) -> Tensor:
        d = len(self.directions)
        if points.ndim == 0 or points.shape[-1] != d or not points.is_floating_point():
            raise ShapeError(
                f"points have shape {tuple(points.shape)} and dtype {points.dtype}; this curve takes floating point"
                f" (..., {d})"
            )
        if mask is not None:
            if mask.shape != points.shape[:-1] or mask.dtype != torch.bool:
                raise ShapeError(f"mask must be boolean of shape {tuple(points.shape[:-1])}, got {tuple(mask.shape)}")
            points = torch.where(mask.unsqueeze(-1), points, 0)
        return points.reshape(-1, d)

    def _project(self, rows: Tensor, control_points: Tensor) -> tuple[Tensor, Tensor]:
        observed = None if self.missing == "error" else ~rows.isnan() & self.kept
        if values_can_be_read(rows):
            check_values(rows, observed)
        return project(self.to_cube(rows), control_points, extend=self.extend, observed=observed)

    def _measure(self, s: Tensor, control_points: Tensor) -> Tensor:
        return s if self.score == "parameter" else arc_length(control_points, s)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # A rank map has as many knots as its data gave it; take the saved number.
        for name in ("knots", "levels"):
            saved, own = state_dict.get(prefix + name), getattr(self, name)
            if saved is not None and saved.ndim == 2 and len(saved) == len(own):
                setattr(self, name, own.new_zeros(saved.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _parts(rows: Tensor) -> Sequence[Tensor]:
    """Rows in pieces that bound the memory; whole while their number is a symbol."""
    return (rows,) if sizes_are_symbols() else torch.split(rows, _ROWS)


def check_directions(directions: Sequence[int] | Tensor, names: Sequence[str] | None = None) -> list[int]:
    """Return directions as a list of +1 and −1.

    Args:
        directions: one number an attribute.
        names: the attributes' names, for the message.

    Raises:
        TorchRankError: no direction, or one that is not ±1.
    """
    values = torch.as_tensor(directions, dtype=torch.float64).flatten().tolist()
    if not values:
        raise TorchRankError("there is no direction; give +1 (more is better) or −1 (less is better) an attribute")
    for j, value in enumerate(values):
        if value not in (1, -1):
            name = f"attribute {j}" if names is None else f"attribute {names[j]!r}"
            raise TorchRankError(
                f"{name} has direction {value:g}; give +1 (more is better) or −1 (less is better), or leave the"
                " attribute out"
            )
    return [int(value) for value in values]


def check_degree(degree: int) -> None:
    """Refuse a degree that a ranking curve cannot have.

    Raises:
        TorchRankError: not 1, 2 or 3.
    """
    if degree not in (1, 2, 3):
        raise TorchRankError(
            f"degree={degree} is not 1, 2 or 3: from degree 4 on a curve with control points in the cube need not be"
            " monotone ((0, .99, .01, .01, 1) falls half way), so dominance would not decide"
        )


def end_points(directions: Sequence[int]) -> Tensor:
    """Worst and best corner of the unit cube, ``(d, 2)`` float64: ``(1 − α) / 2`` and ``(1 + α) / 2``."""
    alpha = torch.tensor(list(directions), dtype=torch.float64)
    return torch.stack([(1 - alpha) / 2, (1 + alpha) / 2], 1)


def check_values(rows: Tensor, observed: Tensor | None) -> None:
    """Refuse infinite values, NaN where nothing says that it is missing, and rows with nothing observed.

    Raises:
        DataError: one of these; the message names row and attribute.
    """
    if bool(rows.isfinite().all()):
        return
    bad = rows.isinf() if observed is not None else ~rows.isfinite()
    if bool(bad.any()):
        i, j = bad.nonzero()[0].tolist()
        hint = "; missing values need missing='observed'" if rows[i, j].isnan() else ""
        raise DataError(f"object {i} has {rows[i, j].item()} in attribute {j}; scores need finite numbers{hint}")
    if observed is not None and not bool(observed.any(1).all()):
        i = int((~observed.any(1)).nonzero()[0])
        raise DataError(f"object {i} has no observed attribute; leave it out")
