"""``torchrank reproduce curve``: the published examples of the ranking curve, measured against what was printed."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from rich.console import Console
from scipy.stats import spearmanr
from torch import Tensor

from torchrank.commands.elastic_curve import elastic_curve, has_elpigraph
from torchrank.commands.rank import draw
from torchrank.commands.rankers import elastic, first_component, mean_of_ranks, ranking_curve
from torchrank.commands.ranking import rank_table
from torchrank.commands.results import find_file, target_folder, write_results
from torchrank.data.attributes import countries, read_table
from torchrank.data.files import whole_file
from torchrank.errors import DataError, TorchRankError
from torchrank.ops.aggregation import principal_component
from torchrank.ops.projection import project
from torchrank.theory.meta_rules import Fit, RuleCheck, check_meta_rules
from torchrank.training.curve_fitting import fit_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: table I: two tables of three objects, which differ in the first
TABLE1 = {
    "a": {"A": (0.3, 0.25), "B": (0.25, 0.55), "C": (0.7, 0.7)},
    "b": {"A'": (0.35, 0.4), "B": (0.25, 0.55), "C": (0.7, 0.7)},
}
#: table II's columns: GDP per head, life expectancy, tuberculosis, infant mortality; the last two headings are swapped
_TABLE2 = ("gdp", "life_expectancy", "fourth_column", "third_column")
_TABLE3 = ("impact_factor", "five_year_if", "immediacy_index", "eigenfactor", "influence_score")
#: the heptathlon's events, seconds and metres
_TRACK, _FIELD = ["hurdles", "run200m", "run800m"], ["highjump", "shot", "longjump", "javelin"]


def reproduce_curve(*, data: str, out: str, rows: int = 100_000, repeats: int = 3) -> None:
    """Fit ranking curves to the published examples and write how they compare.

    Args:
        data: the folder with heptathlon_1988.csv, or one that holds it under heptathlon-1988; all else comes along.
        out: folder for results.json, results.md, projections.png, scores.png and published.png.
        rows: size of the table that speed is measured on, and a tenth of the points that are projected.
        repeats: times that each speed is measured, the ways taken in turn; the best counts.
    """
    heptathlon = find_file(data, "heptathlon_1988.csv", "heptathlon-1988", "the heptathlon")
    if rows < 1000 or repeats < 1:
        raise TorchRankError(f"rows={rows} must be at least 1000, repeats={repeats} at least 1")
    target = target_folder(out)
    console = Console(stderr=True)
    with console.status("small tables") as status:
        second, published = table2()
        results: dict[str, Any] = {
            "table1": {name: table1(objects) for name, objects in TABLE1.items()},
            "table2": second,
            "table3": table3(),
        }
        status.update("181 countries")
        results["countries"] = {"explained_variance": explained_variance()}
        results["heptathlon"] = heptathlon_agreement(heptathlon)
        status.update("meta-rules")
        rules = meta_rules()
        status.update("speed")
        results["speed"] = speed(rows, repeats)
    text = _markdown(results, rules)
    write_results(target, results, text)
    written = _draw(published, target)
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
    Console().print(f"results.json, results.md, {', '.join(written)} are in {target}", soft_wrap=True)


def table1(objects: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Fit one of table I's examples, unscaled.

    Args:
        objects: name to the two attributes.

    Returns:
        the order from worst to best, and J.

    Example:
        >>> table1(TABLE1["b"])["order"]
        "BA'C"
    """
    points = torch.tensor(list(objects.values()), dtype=torch.float64)
    curve = _fit(points, [1, 1], scaling=None)
    order = curve(points).argsort().tolist()
    return {"order": "".join(list(objects)[i] for i in order), "objective": _objective(curve)}


def table2() -> tuple[dict[str, int], pl.DataFrame]:
    """Fit 181 countries, fifteen of them as table II prints them, and compare the order of these.

    Returns:
        pairs of the fifteen whose published order is kept, and pairs; and the fifteen with published and found ranks.

    Raises:
        DataError: a country is not in the table.
    """
    printed, table = _published("rpc_table2_countries.csv"), countries()
    values, names = table.values.copy(), table.ids.to_list()
    missing = [name for name in printed["country"] if name not in names]
    if missing:
        raise DataError(f"the countries {missing} of table II are not in the table of countries")
    rows = [names.index(name) for name in printed["country"]]
    values[rows] = printed.select(_TABLE2).to_numpy()
    ranking = rank_table(table._replace(values=values), elpigraph=False)
    found = ranking.ranks[rows].tolist()
    compared = printed.select("country", "rpc_rank", "elmap_rank").with_columns(pl.Series("rank", found))
    elmap = _order_kept(printed["elmap_rank"].to_list(), found)
    return {**_order_kept(printed["rpc_rank"].to_list(), found), "order_kept_of_elmap": elmap["order_kept"]}, compared


def table3() -> dict[str, Any]:
    """Fit the ten printed journals of table III by their five indicators, and compare the order.

    The other 383 journals are not printed. They reach down to about 0 in every indicator, so the ten are scaled from 0
    to the greatest printed value; ``order_kept_minmax`` is what the ten alone give, scaled by their own least values.

    Returns:
        pairs whose published order is kept, pairs, and whether TKDE stays above SMC-A.
    """
    printed = _published("rpc_table3_journals.csv")
    points = torch.from_numpy(printed.select(_TABLE3).to_numpy())
    ways = [1] * len(_TABLE3)
    shares = points / points.amax(0)
    scores = _fit(shares, ways, scaling=None)(shares)
    alone = _fit(points, ways)(points)
    published = printed["rpc_rank"].to_list()
    titles = printed["title"].to_list()
    first, second = titles.index("IEEE T KNOWL DATA EN"), titles.index("IEEE T SYST MAN CY A")
    return {
        **_order_kept(published, (-scores).tolist()),
        "tkde_above_smc_a": bool(scores[first] > scores[second]),
        "order_kept_minmax": _order_kept(published, (-alone).tolist())["order_kept"],
    }


def explained_variance() -> dict[str, float | None]:
    """Explained variance on the 181 countries, min-max scaled.

    The curve has 16 numbers, 8 of them free; so has ElPiGraph's line of 4 nodes 16, all free, and the principal
    component 8 in all.

    Returns:
        method to explained variance; ElPiGraph's is None where its package is not installed.
    """
    table = countries()
    points = torch.from_numpy(table.values)
    curve = _fit(points, table.directions)
    scaled = curve.to_cube(points)
    spread = float((scaled - scaled.mean(0)).square().sum())
    singular = torch.linalg.svdvals(scaled - scaled.mean(0)).square()
    free = _fit(points, table.directions, ends="free")
    found: dict[str, float | None] = {
        "rpc": 1 - _objective(curve) / spread,
        "pca": float(singular[0] / singular.sum()),
        "elpigraph": None,
        "rpc_free_ends": 1 - _objective(free) / spread,
    }
    if has_elpigraph():
        directions = torch.tensor(table.directions, dtype=points.dtype)
        for name, nodes in (("elpigraph", 4), ("elpigraph_10_nodes", 10)):
            line = elastic_curve(scaled, directions, nodes=nodes)
            found[name] = 1 - float(line.place(scaled)[1].sum()) / spread
    return found


def heptathlon_agreement(path: Path) -> dict[str, float]:
    """Rank 25 athletes by seven events, and compare with the official points.

    Args:
        path: the table.

    Returns:
        rank correlation with the points: of the curve by its defaults, with robust scaling, as a straight line, and of
        the first principal component.
    """
    table = read_table(path, higher=_FIELD, lower=_TRACK, id="athlete")
    official = read_table(path, higher=["score"]).values[:, 0]
    points = torch.from_numpy(table.values)
    curve = _fit(points, table.directions)
    directions = torch.tensor(table.directions, dtype=points.dtype)

    def agreement(**options: Any) -> float:
        return _spearman(_fit(points, table.directions, **options)(points).detach().numpy(), official)

    component = principal_component(curve.to_cube(points), directions)
    return {
        "spearman_with_official": agreement(),
        "spearman_robust_scaling": agreement(scaling="robust"),
        "spearman_straight_line": agreement(degree=1),
        "spearman_of_pca": _spearman(component.numpy(), official),
    }


def meta_rules() -> dict[str, list[RuleCheck]]:
    """Check the five meta-rules on the 181 countries, for the curve and what it is compared with."""
    methods: dict[str, Fit] = {
        "ranking curve": ranking_curve,
        "first principal component": first_component,
        "mean rank": mean_of_ranks,
    }
    if has_elpigraph():
        methods["ElPiGraph"] = elastic
    table = countries()
    points = torch.from_numpy(table.values)
    return {name: check_meta_rules(fit, points, table.directions) for name, fit in methods.items()}


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
    control = _fit(many[:1000], [1] * 4).control_points.detach()
    fits: dict[str, Any] = {}

    def fitting(name: str, points: Tensor, solver: str, **options: Any) -> Callable[[], None]:
        def run() -> None:
            fits[name] = _fit(points, [1] * points.shape[1], solver=solver, **options)

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
        "fit_objective": _objective(fits["large"]),
        "small_fit_rows": min(2000, rows),
        "small_fit_seconds": best["small"],
        "small_fit_objective": _objective(fits["small"]),
        "paper_solver_seconds_one_start": best["paper"],
        "paper_solver_objective": _objective(fits["paper"]),
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


def _fit(points: Tensor, directions: Sequence[int], **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the published solver does not converge, free ends are not monotone: as shown
        return fit_curve(points, directions, **options)


def _objective(curve: Any) -> float:
    return float(curve.report.objective)


def _published(name: str) -> pl.DataFrame:
    return pl.read_csv(Path(str(files("torchrank.data") / "published" / name)))


def _order_kept(published: Sequence[float], found: Sequence[float]) -> dict[str, int]:
    """Count the pairs that both put in the same order; low is best in both."""
    pairs = list(combinations(range(len(published)), 2))
    kept = sum((published[i] - published[j]) * (found[i] - found[j]) > 0 for i, j in pairs)
    return {"order_kept": kept, "pairs": len(pairs)}


def _spearman(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    return float(spearmanr(a, b).statistic)


def _markdown(results: dict[str, Any], rules: dict[str, list[RuleCheck]]) -> str:
    first, second, third = results["table1"], results["table2"], results["table3"]
    variance, fast = results["countries"]["explained_variance"], results["speed"]
    hept = results["heptathlon"]
    lines = [
        "# Ranking principal curves, reproduced",
        "",
        "| example | found | published or expected |",
        "| --- | --- | --- |",
        f"| table I (a) | order {first['a']['order']}, J = {first['a']['objective']:.6f} | ABC |",
        f"| table I (b) | order {first['b']['order']}, J = {first['b']['objective']:.6f} | BA'C |",
        f"| table II, pairs in published order | {second['order_kept']} of {second['pairs']} | all |",
        f"| table II, pairs in Elmap's published order | {second['order_kept_of_elmap']} of {second['pairs']} | |",
        (
            f"| table III, pairs in published order | {third['order_kept']} of {third['pairs']}"
            f" (scaled among the ten alone {third['order_kept_minmax']}) | all |"
        ),
        (
            f"| heptathlon, rank correlation with the official points | {hept['spearman_with_official']:.4f}"
            f" (robust scaling {hept['spearman_robust_scaling']:.4f}, straight line"
            f" {hept['spearman_straight_line']:.4f}, principal component {hept['spearman_of_pca']:.4f}) | |"
        ),
        "",
        "| explained variance, 181 countries | |",
        "| --- | --- |",
        *(f"| {name.replace('_', ' ')} | {'–' if v is None else f'{v:.4f}'} |" for name, v in variance.items()),
        "",
        *_rule_table(rules),
        "",
        f"| speed ({fast['threads']} threads) | |",
        "| --- | --- |",
        f"| exact projection, d = 4 | {fast['projection_points_per_second'] / 1e6:.2f} M points/s |",
        f"| golden section, d = 4 | {fast['golden_section_points_per_second'] / 1e6:.2f} M points/s |",
        f"| fit, n = {fast['fit_rows']:,}, d = 8 | {fast['fit_seconds']:.2f} s |",
        (
            f"| fit, n = {fast['small_fit_rows']:,}, d = 4, 8 starts | {fast['small_fit_seconds']:.3f} s,"
            f" J = {fast['small_fit_objective']:.5f} |"
        ),
        (
            f"| published solver, n = {fast['small_fit_rows']:,}, d = 4, 1 start |"
            f" {fast['paper_solver_seconds_one_start']:.2f} s, J = {fast['paper_solver_objective']:.5f} |"
        ),
    ]
    return "\n".join(lines) + "\n"


def _rule_table(rules: dict[str, list[RuleCheck]]) -> list[str]:
    methods = list(rules)
    lines = [f"| meta-rule, on 181 countries | {' | '.join(methods)} |", "| --- |" + " --- |" * len(methods)]
    for row in zip(*rules.values(), strict=True):
        cells = [f"{'holds' if c.holds else 'fails'} ({c.subject})" for c in row]
        lines.append(f"| {row[0].rule} | {' | '.join(cells)} |")
    lines.append("")
    lines += [f"- {method}, {c.rule}: {c.evidence}" for method in methods for c in rules[method] if not c.holds]
    return lines


def _draw(published: pl.DataFrame, target: Path) -> list[str]:
    """Write the figures; their names."""
    from torchrank.plots.attributes import plot_order

    figures: dict[str, Figure] = draw(rank_table(countries(), elpigraph=False))
    figures["published"] = plot_order(
        published["country"].to_list(),
        published["rpc_rank"].to_numpy(),
        published["rank"].to_numpy(),
        ("published, of 171", "found, of 181"),
    )
    for name, figure in figures.items():
        with whole_file(target / f"{name}.png") as place:
            figure.savefig(place, dpi=150)
    return [f"{name}.png" for name in figures]
