"""``torchrank reproduce bots``: do the thresholds b and B protect SAROS from bots?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from torchrank.commands.bots_runs import (
    LIMITS,
    MEASURES,
    METHODS,
    Attacked,
    count_limits,
    measure,
    run_attack,
    summarise,
)
from torchrank.commands.method_choice import choose
from torchrank.commands.results import markdown_table, progress_bar, target_folder, write_results
from torchrank.commands.saros_runs import warm_up
from torchrank.data.published_tables import LogStatistics, published_statistics
from torchrank.data.synthetic_log import make_interactions
from torchrank.errors import TorchRankError

SHARES = (0.0, 0.01, 0.05, 0.1, 0.2)
#: the seed of the log without bots that settings are chosen on; seeds of the measured logs start at 0
_CHOOSING = 1_000_000


def reproduce_bots(
    *,
    out: str,
    row: str = "ML-1M",
    users: int = 1000,
    items: int = 1000,
    seeds: int = 5,
    targets: int = 10,
    activity: float = 10.0,
    shares: list[float] = [],  # noqa: B006 - read only; the command line reads the default off the signature
) -> None:
    """Train SAROS with and without thresholds on logs with more and more bots, and measure the genuine users.

    Args:
        out: folder for results.json, results.md and bots.png.
        row: the published data set whose means and tail the genuine users have: ML-1M, Outbrain, Pandor, Netflix or
            Kasandr.
        users: genuine users.
        items: items.
        seeds: logs and trainings of each cell, with seeds 0, 1, …
        targets: how many items bots click.
        activity: interactions of a bot, in means of the genuine users.
        shares: bots' shares of all users; may be repeated; 0, 0.01, 0.05, 0.1 and 0.2 by default.
    """
    if seeds < 1:
        raise TorchRankError(f"seeds={seeds} must be at least 1")
    if not all(0 <= share < 1 for share in shares):
        raise TorchRankError(f"shares={shares}; give shares from 0 to below 1")
    target = target_folder(out)
    statistics = replace(published_statistics(row), users=users, items=items)
    attack = {"targets": targets, "activity": activity}
    with progress_bar(remaining=True) as progress:
        results = _run(statistics, sorted(set(shares or SHARES)), seeds, attack, progress)
    results = {"row": row, **results}
    text = bots_markdown(results)
    write_results(target, results, text)
    from torchrank.plots.attack import plot_by_share  # matplotlib, an extra
    from torchrank.plots.files import save_figure

    shown = {
        name: {
            method: ([cell[key]["mean"] for cell in cells], [cell[key]["std"] for cell in cells])
            for method, cells in results["methods"].items()
        }
        for key, name in MEASURES.items()
    }
    lines = {name: float(np.mean([cell[key] for cell in results["truth"]])) for key, name in MEASURES.items()}
    save_figure(plot_by_share(results["shares"], shown, lines=lines), target / "bots.png")
    console = Console()
    console.print(text, soft_wrap=True, markup=False)
    console.print(f"results.json, results.md and bots.png are in {target}", soft_wrap=True)


def _run(
    statistics: LogStatistics, shares: Sequence[float], seeds: int, attack: Mapping[str, Any], progress: Progress
) -> dict[str, Any]:
    bar = progress.add_task("choosing settings", total=len(METHODS))
    warm_up(["saros", "bpr"])
    clean, _ = make_interactions(statistics=statistics, seed=_CHOOSING)
    fit, val = clean.split_per_user(train=0.8)[0].split_per_user(train=0.9)
    chosen = {}
    for name, method in METHODS.items():
        chosen[name] = choose(method, fit, val, seed=0)
        progress.advance(bar)
    bar = progress.add_task("training", total=len(shares) * seeds * len(METHODS))
    methods: dict[str, list[dict[str, Any]]] = {name: [] for name in METHODS}
    limits, truth = [], []
    for share in shares:
        runs: dict[str, dict[str, list[float]]] = {name: {} for name in METHODS}
        for seed in range(seeds):
            attacked = Attacked.of(statistics, share=share, seed=seed, **attack)
            if seed == 0:
                limits.append(count_limits(attacked))
                truth.append(measure(attacked.truth, attacked))
            for name, method in METHODS.items():
                progress.update(bar, description=f"{share:.0%} bots, {name}")
                for key, value in run_attack(method, chosen[name], attacked, seed=seed).items():
                    runs[name].setdefault(key, []).append(value)
                progress.advance(bar)
        for name in METHODS:
            methods[name].append(summarise(runs[name]))
    progress.update(bar, description="training")
    return {
        "statistics": asdict(statistics),
        "attack": dict(attack),
        "seeds": seeds,
        "shares": list(shares),
        "chosen": {name: dict(choice.setting) for name, choice in chosen.items()},
        "methods": methods,
        "limits": limits,
        "truth": truth,
    }


def bots_markdown(results: Mapping[str, Any]) -> str:
    """Write the report.

    Args:
        results: what ``results.json`` holds.

    Returns:
        Markdown.
    """
    row, attack, shares = results["statistics"], results["attack"], results["shares"]
    lines = ["# SAROS under attack by bots", ""]
    lines.append(
        f"{row['users']:,} genuine users, {row['items']:,} items, {row['mean_preferred']:g} preferred and"
        f" {row['mean_other']:g} other items a user as in {results['row']}, preferences known; bots with"
        f" {attack['activity']:g} times the mean user's interactions click {attack['targets']} target items."
        f" {results['seeds']} seed{'s' * (results['seeds'] > 1)} of log and training; means ± the deviation between"
        " seeds, of genuine users only. Settings were chosen for each method on a log without bots."
    )
    heads = [f"{share:.0%} bots" for share in shares]
    for key, name in MEASURES.items():
        best = np.mean([cell[key] for cell in results["truth"]])
        lines += ["", f"## {name[0].upper()}{name[1:]}", "", f"The true preferences have {best:.4f}.", ""]
        cells = [
            [f"`{method}`", *(f"{cell[key]['mean']:.4f} ± {cell[key]['std']:.4f}" for cell in each)]
            for method, each in results["methods"].items()
        ]
        lines += markdown_table(["", *heads], cells)
        lines += ["", f"{name[0].upper()}{name[1:]}, with thresholds less without, seed by seed:", ""]
        lines += markdown_table(
            ["", *heads], [_differences(results["methods"], method, key) for method in LIMITS if method != "saros"]
        )
    lines += [
        "",
        "## What the thresholds leave",
        "",
        "Of the first seed's training part, blocks by the rule `run`.",
        "",
    ]
    lines += markdown_table(["", *heads], _left(results["limits"]))
    lines += ["", "## Settings", ""]
    lines += [
        f"- `{name}`: {METHODS[name].about}; {', '.join(f'{k} = {v:g}' for k, v in setting.items())}."
        for name, setting in results["chosen"].items()
    ]
    return "\n".join(lines) + "\n"


def _differences(methods: Mapping[str, Any], name: str, key: str) -> list[str]:
    cells = [f"`{name}`"]
    for with_limits, without in zip(methods[name], methods["saros"], strict=True):
        each = np.subtract(with_limits[key]["each"], without[key]["each"])
        spread = f" ± {each.std(ddof=1):.4f}" if len(each) > 1 else ""
        cells.append(f"{each.mean():+.4f}{spread}")
    return cells


def _left(limits: Sequence[Mapping[str, Mapping[str, float | None]]]) -> list[list[str]]:
    rows = [["B, the mean number of blocks", *(f"{cell['saros']['B']:.1f}" for cell in limits)]]
    for name in LIMITS:
        if name == "saros":
            continue
        for key in ("genuine_users", "genuine_blocks", "bot_blocks"):
            values = (cell[name][key] for cell in limits)
            rows.append([f"`{name}`: {key.replace('_', ' ')}", *("" if v is None else f"{v:.0%}" for v in values)])
    return rows
