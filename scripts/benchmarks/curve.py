"""Projection on curves and fits: exact against golden section, Gauss–Newton against the paper's solver and L-BFGS.

    python scripts/benchmarks/curve.py --out results/curve.json

One core, float64. Projections and fits are timed in turn in one process; the streamed fit runs in processes of its own,
which measure peak memory. ``--quick`` takes smaller tables. J is relative to the best J of any solver.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from common import interleave, peak_memory, print_table, write_results

from torchrank.models import RankingCurve
from torchrank.ops import bezier_curve, project
from torchrank.ops.projection import _chunks, _search_rows
from torchrank.training import fit_curve

STREAM = """
import time, numpy as np, torch
from torchrank.training import fit_curve
torch.set_num_threads(1)
def fit(rows):
    table = np.load({path!r}, mmap_mode="r")[:rows]
    began = time.perf_counter()
    curve = fit_curve(table, {directions!r}, starts=8)
    return curve, time.perf_counter() - began
fit(20_000)
# measure
curve, seconds = fit({rows})
open({path!r} + ".seconds", "w").write(str(seconds))
"""
SOLVERS = {
    "gauss_newton": {"solver": "gauss_newton"},
    "gradient (L-BFGS)": {"solver": "gradient"},
    "paper, corrected step": {"solver": "paper", "max_iterations": 3000},
    "paper, as printed": {"solver": "paper", "step": "printed", "max_iterations": 2000},
}


def crescent(rows, attributes, *, noise=0.06, seed=0):
    """Objects around a bent curve, min-max scaled: the shape of real tables."""
    generator = torch.Generator().manual_seed(seed)
    curve = torch.rand(attributes, 4, dtype=torch.float64, generator=generator)
    curve[:, 0], curve[:, 3] = 0, 1
    places = torch.rand(rows, dtype=torch.float64, generator=generator)
    points = bezier_curve(curve, places)
    points += noise * torch.randn(points.shape, dtype=torch.float64, generator=generator)
    return (points - points.amin(0)) / (points.amax(0) - points.amin(0))


def projections(repeats, rows):
    """Millions of points a second, and how often each method misses the global minimum around the cube."""
    out = []
    for attributes in (4, 8):
        points = crescent(rows, attributes)
        fitted = fit_curve(points[:5000], [1] * attributes, scaling=None)
        winding = RankingCurve([1] * attributes)
        winding.set_control_points(torch.tensor([[0, 0.95, 0.05, 1], [0, 0.05, 0.95, 1]] * (attributes // 2)))
        for name, curve in (("fitted", fitted), ("winding", winding)):
            control = curve.control_points.detach()
            methods = {
                "exact, compiled loop": lambda x, c=control: project(x, c),
                "golden section, compiled loop": lambda x, c=control: project(x, c, method="golden_section"),
                "exact, batched chain": lambda x, c=control: chain(x, c, "newton"),
                "golden section, batched": lambda x, c=control: chain(x, c, "golden_section"),
            }
            timing = interleave({m: lambda f=f, x=points: f(x) for m, f in methods.items()}, repeats=repeats)
            around = torch.rand(points.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 2 - 0.5
            least = project(around, control)[1]
            for method, taken in timing.items():
                wrong = methods[method](around)[1] > least + 1e-9
                out.append(
                    {
                        "curve": name,
                        "attributes": attributes,
                        "method": method,
                        "million points/s": rows / taken.best / 1e6,
                        "wrong minima %": 100 * float(wrong.double().mean()),
                    }
                )
    return out


def chain(points, control, method):
    """The torch operations that a GPU runs."""
    parts = [_search_rows(points[rows], control, None, method, False) for rows in _chunks(len(points), points.device)]
    return [torch.cat(both) for both in zip(*parts, strict=True)]


def fits(rows, attributes, repeats, solvers, starts):
    """Seconds, J and projections of each solver on one table."""
    points = crescent(rows, attributes, noise=0.08)
    curves = {}

    def fit(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            curves[name] = fit_curve(points, [1] * attributes, starts=starts, **SOLVERS[name])

    seconds = interleave({name: lambda n=name: fit(n) for name in solvers}, repeats=repeats, warm_up=0)
    best = min(curve.report.objective for curve in curves.values())
    return [
        {
            "rows": rows,
            "attributes": attributes,
            "starts": starts,
            "solver": name,
            "seconds": taken.best,
            "J": curves[name].report.objective,
            "J / best - 1": curves[name].report.objective / best - 1,
            "iterations": len(curves[name].report.objectives) - 1,
            "converged": curves[name].report.converged,
        }
        for name, taken in seconds.items()
    ]


def stream(rows, attributes):
    """Fit a table mapped from a file in a fresh process: seconds and peak memory beyond a small fit's."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.npy")
        table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(rows, attributes))
        for a in range(0, rows, 1_000_000):
            table[a : a + 1_000_000] = crescent(min(1_000_000, rows - a), attributes, seed=0)
        table.flush()
        size = Path(path).stat().st_size / 2**20
        code = STREAM.format(path=path, directions=[1] * attributes, rows=rows)
        memory = peak_memory(code)
        return {
            "rows": rows,
            "attributes": attributes,
            "file MiB": size,
            "seconds": float(Path(path + ".seconds").read_text()),
            "memory beyond a small fit MiB": memory["used_mib"],
            "peak MiB": memory["peak_mib"],
        }


def main():
    """Print the tables and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    args = parser.parse_args()
    torch.set_num_threads(1)
    quick = args.quick
    tables = {
        "projection": projections(1 if quick else args.repeats, 20_000 if quick else 1_000_000),
        "fit": fits(2000, 4, 1 if quick else args.repeats, list(SOLVERS), 1)
        + fits(10_000 if quick else 100_000, 8, 1 if quick else 3, list(SOLVERS)[: 1 if quick else 2], 8)
        + ([] if quick else fits(100_000, 8, 1, list(SOLVERS), 1)),
        "stream": [stream(200_000 if quick else 10_000_000, 4)],
    }
    for title, rows in tables.items():
        print_table(title, rows)
    if args.out:
        write_results(args.out, [{"table": title, **row} for title, rows in tables.items() for row in rows])


if __name__ == "__main__":
    main()
