"""A table ranked by a curve, with all that it takes to defend the ranking."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.stats import spearmanr
from torch import Tensor

from torchrank.commands.elastic_curve import elastic_curve, has_elpigraph
from torchrank.data.attributes import AttributeTable
from torchrank.errors import DataError, TorchRankError, as_option
from torchrank.models.curve import RankingCurve
from torchrank.models.curve_report import CurveReport
from torchrank.ops.aggregation import competition_ranks, mean_rank, principal_component, topsis
from torchrank.training.curve_analysis import LeftOut, contributions, leave_one_out, rank_intervals
from torchrank.training.curve_fitting import fit_curve

Progress = Callable[[Iterable[int]], Iterable[int]]

#: level of the rank intervals
LEVEL = 0.95


@dataclass(frozen=True)
class Ranking:
    """What was found.

    Attributes:
        table: the table.
        curve: the fitted curve.
        report: how it was fitted.
        scores: ``(n,)``, higher is better.
        ranks: ``(n,)``, 1 is best; equal scores share a rank.
        contributions: ``(n, d)``, what each attribute adds to the score against the median object.
        intervals: ``(n, 2)`` bootstrap ranks, None where not asked for.
        others: ranking method to its ranks ``(n,)``.
        left_out: what becomes of the ranking without each attribute.
    """

    table: AttributeTable
    curve: RankingCurve
    report: CurveReport
    scores: Tensor
    ranks: Tensor
    contributions: Tensor
    intervals: Tensor | None
    others: dict[str, Tensor]
    left_out: list[LeftOut]

    def frame(self) -> pl.DataFrame:
        """The ranking as a table, best object first, in table order where objects tie."""
        columns: dict[str, Any] = {"score": self.scores.numpy(), "rank": self.ranks.numpy()}
        if self.intervals is not None:
            columns |= {"rank_low": self.intervals[:, 0].numpy(), "rank_high": self.intervals[:, 1].numpy()}
        columns |= {f"contribution_{name}": self.contributions[:, j].numpy() for j, name in enumerate(self.table.names)}
        columns |= {f"rank_{method}": ranks.numpy() for method, ranks in self.others.items()}
        if self.table.ids.name in columns:
            raise TorchRankError(f"the id column is called {self.table.ids.name!r}, as one of the ranking's; rename it")
        return pl.DataFrame([self.table.ids, *(pl.Series(name, values) for name, values in columns.items())]).sort(
            "rank", maintain_order=True
        )

    def control_points(self) -> Tensor:
        """Control points in the table's units, ``(degree + 1, d)``, from worst to best; NaN where an attribute is out.

        Between rank and robust scaling's knots they are where the map to the unit cube takes them.
        """
        points = self.curve.to_units(self.curve.control_points.detach().T)
        return torch.where(self.curve.kept, points, torch.nan)

    def agreement(self) -> dict[str, float]:
        """Rank correlation (Spearman) of each other method with the curve's ranking."""
        return {
            name: float(spearmanr(self.ranks.numpy(), ranks.numpy()).statistic) for name, ranks in self.others.items()
        }

    def summary(self) -> dict[str, Any]:
        """Everything but the rows, as plain data."""
        names = self.table.names
        points = [
            {n: None if np.isnan(v) else v for n, v in zip(names, row, strict=True)}
            for row in self.control_points().tolist()
        ]
        return {
            "objects": len(self.ranks),
            "attributes": dict(zip(names, self.table.directions, strict=True)),
            "attribution": self.table.attribution,
            "control_points": points,
            "explained_variance": self.report.explained_variance,
            "strictly_monotone": self.report.monotone,
            "solver": self.report.solver,
            "objective": self.report.objective,
            "iterations": len(self.report.objectives) - 1,
            "converged": self.report.converged,
            "starts": len(self.report.runs),
            "optima": [
                {"objective": o.objective, "starts": o.starts, "spearman_with_best": o.spearman}
                for o in self.report.optima
            ],
            "without_attribute": [
                {
                    "attribute": names[row.attribute],
                    "spearman": row.spearman,
                    "largest_move": row.largest_move,
                    "moved": str(self.table.ids[row.moved]),
                    "explained_variance": row.explained_variance,
                }
                for row in self.left_out
            ],
            "spearman_with_other_methods": self.agreement(),
            "dropped": list(self.report.dropped),
            "warnings": list(self.report.warnings),
        }


def rank_table(
    table: AttributeTable,
    *,
    scaling: str | None = "minmax",
    missing: str = "error",
    degree: int = 3,
    ends: str = "corner",
    score: str = "arc_length",
    solver: str = "gauss_newton",
    starts: int = 8,
    seed: int = 0,
    bootstrap: int = 0,
    elpigraph: bool = True,
    progress: Progress = iter,
) -> Ranking:
    """Rank the objects of a table, and collect what there is to say about the ranking.

    Args:
        table: the table.
        scaling: as in :func:`torchrank.fit_curve`, and so the next six.
        missing: ``"error"`` or ``"observed"``.
        degree: of the curve.
        ends: ``"corner"`` or ``"free"``.
        score: ``"arc_length"`` or ``"parameter"``.
        solver: of the fit.
        starts: of the fit.
        seed: of the starts and of the bootstrap.
        bootstrap: number of resamples for rank intervals; 0 for none.
        elpigraph: whether to compare with ElPiGraph's curve too.
        progress: wraps the resamples, for a progress bar.

    Returns:
        the ranking; the fit's warnings are in its report.

    Raises:
        DataError: a value is missing where that is an error, or fewer than two different objects.
        TorchRankError: an option with a bad value.
    """
    if bootstrap < 0:
        raise TorchRankError(f"bootstrap={bootstrap} must be at least 0")
    if missing == "error":
        _refuse_missing(table)
    points = torch.from_numpy(table.values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report holds them, and shows them where the reader looks
        curve = fit_curve(
            points,
            table.directions,
            scaling=scaling,
            missing=missing,
            degree=degree,
            ends=ends,
            score=score,
            solver=solver,
            starts=starts,
            seed=seed,
            names=table.names,
        )
    report = curve.report
    assert report is not None  # noqa: S101 - fit_curve sets it
    scores = curve(points).detach()
    return Ranking(
        table=table,
        curve=curve,
        report=report,
        scores=scores,
        ranks=competition_ranks(scores),
        contributions=contributions(curve, points),
        intervals=rank_intervals(
            curve,
            points,
            rounds=bootstrap,
            level=LEVEL,
            scaling=scaling,
            solver=solver,
            seed=seed,
            progress=progress,
        )
        if bootstrap
        else None,
        others=_other_methods(table, curve, elpigraph=elpigraph),
        left_out=leave_one_out(curve, points, scaling=scaling, solver=solver, starts=starts),
    )


def _refuse_missing(table: AttributeTable) -> None:
    absent = np.isnan(table.values)
    if absent.any():
        row, column = np.argwhere(absent)[0].tolist()
        raise DataError(
            f"{table.names[column]!r} of {table.ids[row]} is missing ({int(absent.sum())} values in all); fill them in,"
            f" leave the objects out, or rank by what is observed: {as_option('missing', 'observed')}"
        )


def _other_methods(table: AttributeTable, curve: RankingCurve, *, elpigraph: bool) -> dict[str, Tensor]:
    """Ranks by methods that know no curve; a missing value stands for the attribute's median."""
    points = torch.from_numpy(table.values)[:, curve.kept]
    points = torch.where(points.isnan(), points.nanmedian(0).values, points)
    directions = torch.tensor(table.directions, dtype=points.dtype)[curve.kept]
    filled = torch.zeros(table.values.shape, dtype=points.dtype)
    filled[:, curve.kept] = points
    scaled = curve.to_cube(filled)[:, curve.kept]
    scores = {
        "first_principal_component": principal_component(scaled, directions),
        "mean_rank": mean_rank(points, directions),
        "topsis": topsis(points, directions),
    }
    if elpigraph and has_elpigraph():
        line = elastic_curve(scaled, directions, nodes=max(curve.degree + 1, 3))
        scores["elpigraph"] = line.place(scaled)[0]
    return {method: competition_ranks(each) for method, each in scores.items()}
