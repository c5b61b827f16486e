"""How fast points are projected on a ranking curve and curves are fitted, beside the published ways."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from torchrank.commands.curve_examples import fit, objective
from torchrank.ops.projection import project


def speed(rows: int, repeats: int) -> dict[str, float]:
    """Measure projection and fit beside the published ways, in turn, the best of several times.

    Args:
        rows: objects of eight attributes that are fitted; ten times as many of four are projected.
        repeats: times that each is measured.

    Returns:
        points a second, and seconds with the objective reached.
    """
    generator = torch.Generator().manual_seed(0)
    many, wide = _cloud(10 * rows, 4, generator), _cloud(rows, 8, generator)
    few = wide[: min(2000, rows), :4]
    control = fit(many[:1000], [1] * 4).control_points.detach()
    fits: dict[str, Any] = {}

    def fitting(name: str, points: Tensor, solver: str, **options: Any) -> Callable[[], None]:
        def run() -> None:
            fits[name] = fit(points, [1] * points.shape[1], solver=solver, **options)

        return run

    ways = {
        "exact": lambda: project(many, control),
        "golden": lambda: project(many, control, method="golden_section"),
        "large": fitting("large", wide, "gauss_newton"),
        "small": fitting("small", few, "gauss_newton"),
        "paper": fitting("paper", few, "paper", starts=1, max_iterations=2000),
    }
    best = _best_of(ways, repeats)
    return {
        "projected_points": 10 * rows,
        "projection_points_per_second": 10 * rows / best["exact"],
        "golden_section_points_per_second": 10 * rows / best["golden"],
        "fit_rows": rows,
        "fit_seconds": best["large"],
        "fit_objective": objective(fits["large"]),
        "small_fit_rows": min(2000, rows),
        "small_fit_seconds": best["small"],
        "small_fit_objective": objective(fits["small"]),
        "paper_solver_seconds_one_start": best["paper"],
        "paper_solver_objective": objective(fits["paper"]),
        "threads": torch.get_num_threads(),
    }


def _best_of(ways: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Least seconds of each, taken in turn so that a busy moment hits all of them."""
    best = dict.fromkeys(ways, float("inf"))
    for way in ways.values():
        way()  # compiles
    for _ in range(repeats):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def _cloud(count: int, d: int, generator: torch.Generator) -> Tensor:
    """Objects around a bent curve."""
    s = torch.rand(count, 1, dtype=torch.float64, generator=generator)
    bend = torch.linspace(0.4, 2.5, d, dtype=torch.float64)
    return (s**bend + 0.05 * torch.randn(count, d, dtype=torch.float64, generator=generator)).clamp(0, 1)
