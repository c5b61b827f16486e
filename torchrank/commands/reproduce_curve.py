"""``torchrank reproduce curve``: the published examples of the ranking curve, measured against what was printed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console

from torchrank.commands.curve_examples import (
    TABLE1,
    explained_variance,
    heptathlon_agreement,
    meta_rules,
    table1,
    table2,
    table3,
)
from torchrank.commands.curve_speed import speed
from torchrank.commands.rank import draw
from torchrank.commands.ranking import rank_table
from torchrank.commands.results import find_file, target_folder, write_results
from torchrank.data.attributes import countries
from torchrank.data.files import whole_file
from torchrank.errors import TorchRankError
from torchrank.theory.meta_rules import RuleCheck

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
