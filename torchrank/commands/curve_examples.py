"""The published examples of the ranking curve, fitted: tables I to III, countries, the heptathlon, the meta-rules."""

import warnings
from collections.abc import Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.stats import spearmanr
from torch import Tensor

from torchrank.commands.elastic_curve import elastic_curve, has_elpigraph
from torchrank.commands.rankers import elastic, first_component, mean_of_ranks, ranking_curve
from torchrank.commands.ranking import rank_table
from torchrank.data.attributes import countries, read_table
from torchrank.errors import DataError
from torchrank.ops.aggregation import principal_component
from torchrank.theory.meta_rules import Fit, RuleCheck, check_meta_rules
from torchrank.training.curve_fitting import fit_curve

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
    curve = fit(points, [1, 1], scaling=None)
    order = curve(points).argsort().tolist()
    return {"order": "".join(list(objects)[i] for i in order), "objective": objective(curve)}


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
    scores = fit(shares, ways, scaling=None)(shares)
    alone = fit(points, ways)(points)
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
    curve = fit(points, table.directions)
    scaled = curve.to_cube(points)
    spread = float((scaled - scaled.mean(0)).square().sum())
    singular = torch.linalg.svdvals(scaled - scaled.mean(0)).square()
    free = fit(points, table.directions, ends="free")
    found: dict[str, float | None] = {
        "rpc": 1 - objective(curve) / spread,
        "pca": float(singular[0] / singular.sum()),
        "elpigraph": None,
        "rpc_free_ends": 1 - objective(free) / spread,
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
    curve = fit(points, table.directions)
    directions = torch.tensor(table.directions, dtype=points.dtype)

    def agreement(**options: Any) -> float:
        return _spearman(fit(points, table.directions, **options)(points).detach().numpy(), official)

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
    return {name: check_meta_rules(method, points, table.directions) for name, method in methods.items()}


def fit(points: Tensor, directions: Sequence[int], **options: Any) -> Any:
    """Fit a curve without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the published solver does not converge, free ends are not monotone: as shown
        return fit_curve(points, directions, **options)


def objective(curve: Any) -> float:
    """Return J, the sum of squared distances of the scaled points."""
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
