"""``torchrank rank``: objects of several attributes ranked without labels, and the ranking defended."""

import json
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from torchrank.commands.ranking import LEVEL, Ranking, rank_table
from torchrank.commands.results import target_folder
from torchrank.data.attributes import AttributeTable, countries, read_table
from torchrank.data.files import whole_file
from torchrank.errors import TorchRankError, check_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = {"countries": countries}
#: rows of the ranking's top and bottom on the screen
_SHOWN = 10
#: characters of a name on the screen
_WIDTH = 32
#: points that the curve is drawn with
_DRAWN = 200


def rank(
    table: str | None = None,
    *,
    higher: list[str] = [],  # noqa: B006 - read only; the command line reads the default off the signature
    lower: list[str] = [],  # noqa: B006
    id: str | None = None,  # noqa: A002 - the option's name
    example: str | None = None,
    out: str | None = None,
    plot: str | None = None,
    report: str | None = None,
    bootstrap: int = 0,
    scaling: str = "minmax",
    missing: str = "error",
    degree: int = 3,
    ends: str = "corner",
    score: str = "arc_length",
    solver: str = "gauss_newton",
    starts: int = 8,
    seed: int = 0,
    separator: str | None = None,
    decimal_comma: bool = False,
) -> None:
    """Rank the objects of a table by several attributes, without labels.

    Args:
        table: CSV, TSV or Parquet, one row an object.
        higher: column of which more is better; may be repeated.
        lower: column of which less is better; may be repeated.
        id: column that names the objects; row numbers by default.
        example: rank a table that comes along instead: countries, 181 of them in 2005 (Gapminder, CC BY 4.0).
        out: CSV or Parquet file for the ranking, best first; beside it, a .json of the same name for the curve and what
            was found out about it.
        plot: folder for the figures projections.png and scores.png, with --bootstrap intervals.png too.
        report: HTML file that holds everything, figures included.
        bootstrap: resamples for rank intervals, such as 200; 0 for none.
        scaling: minmax, robust (outliers do not squeeze the rest), rank or none (values lie in [0, 1] already).
        missing: what becomes of missing values: error, or observed to rank by what is there.
        degree: of the curve: 1, 2 or 3.
        ends: corner, or free to let the curve's ends move; then a better object need not rank higher.
        score: arc_length, the way along the curve, or parameter, the published score.
        solver: gauss_newton, gradient or paper.
        starts: of the fit.
        seed: of the starts and resamples.
        separator: character between values of a CSV file.
        decimal_comma: numbers are written 3,14.
    """
    chosen = _table(table, example, higher, lower, id, separator, decimal_comma)
    _check_targets(out, plot, report)
    console = Console()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not bootstrap,
        transient=True,
    ) as bar:

        def progress(rounds: Iterable[int]) -> Iterator[int]:
            return iter(bar.track(rounds, total=bootstrap, description="resampling"))

        ranking = rank_table(
            chosen,
            scaling=None if scaling == "none" else scaling,
            missing=missing,
            degree=degree,
            ends=ends,
            score=score,
            solver=solver,
            starts=starts,
            seed=seed,
            bootstrap=bootstrap,
            progress=progress,
        )
    frame = ranking.frame()
    figures = draw(ranking) if plot or report else {}
    if out is not None:
        with whole_file(out) as place:
            frame.write_parquet(place) if place.suffix == ".parquet" else frame.write_csv(place)
        with whole_file(Path(out).with_suffix(".json")) as place:
            place.write_text(json.dumps(ranking.summary(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if plot is not None:
        for name, figure in figures.items():
            with whole_file(Path(plot) / f"{name}.png") as place:
                figure.savefig(place, dpi=150)
    if report is not None:
        from torchrank.commands.rank_report import rank_report

        title = f"Ranking of {Path(table).name if table else example}"
        with whole_file(report) as place:
            place.write_text(rank_report(ranking, figures, title=title), encoding="utf-8")
    show(console, ranking)
    for written in (out, out and str(Path(out).with_suffix(".json")), plot, report):
        if written:
            console.print(f"wrote {written}", soft_wrap=True, markup=False, highlight=False)


def draw(ranking: Ranking) -> "dict[str, Figure]":
    """Draw a ranking.

    Args:
        ranking: the ranking.

    Returns:
        name to figure: ``projections`` (with two attributes or more), ``scores``, and ``intervals`` where there are
        some.
    """
    from torchrank.plots.attributes import plot_projections, plot_rank_intervals, plot_scores  # matplotlib, an extra

    table, kept = ranking.table, ranking.curve.kept.numpy()
    points = table.values[:, kept]
    names = [name for name, there in zip(table.names, kept, strict=True) if there]
    ways = [way for way, there in zip(table.directions, kept, strict=True) if there]
    with torch.no_grad():
        drawn = ranking.curve.curve(torch.linspace(0, 1, _DRAWN, dtype=torch.float64))
        drawn_scores = ranking.curve(drawn).numpy()
    curve, scores = drawn.numpy()[:, kept], ranking.scores.numpy()
    figures = {}
    if len(names) > 1:
        figures["projections"] = plot_projections(points, scores, curve, names, directions=ways)
    figures["scores"] = plot_scores(points, scores, names, curve=curve, curve_scores=drawn_scores, directions=ways)
    if ranking.intervals is not None:
        order = ranking.ranks.argsort(stable=True)
        figures["intervals"] = plot_rank_intervals(
            [str(each) for each in table.ids[order.numpy()]],
            ranking.ranks[order].numpy(),
            ranking.intervals[order].numpy(),
            level=LEVEL,
        )
    return figures


def show(console: Console, ranking: Ranking) -> None:
    """Print a ranking's ends, its curve, and how far it can be trusted."""
    table, report = ranking.table, ranking.report
    for warning in report.warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False)
    console.print(_ends(ranking))
    console.print(_points(ranking))
    if ranking.left_out:
        console.print(_without(ranking))
    console.print(
        f"explained variance {report.explained_variance:.4f}; strictly monotone: {'yes' if report.monotone else 'NO'}"
    )
    optima = ", ".join(f"J = {o.objective:.6g} from {o.starts} (ρ {o.spearman:.4f})" for o in report.optima)
    console.print(f"{len(report.runs)} starts, distinct optima (rank correlation with the best): {optima}")
    others = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in ranking.agreement().items())
    console.print(f"rank correlation with other methods: {others}")
    if table.attribution:
        console.print(f"data: {table.attribution}", markup=False)


def _table(
    path: str | None,
    example: str | None,
    higher: list[str],
    lower: list[str],
    id_column: str | None,
    separator: str | None,
    decimal_comma: bool,
) -> AttributeTable:
    if (path is None) == (example is None):
        raise TorchRankError("give a table, as in torchrank rank TABLE.csv --higher COLUMN, or --example countries")
    if example is None:
        assert path is not None  # noqa: S101 - one of the two is there
        if separator is not None and len(separator.encode()) != 1:
            raise TorchRankError(f"separator={separator!r} must be one ASCII character")
        return read_table(
            path, higher=higher, lower=lower, id=id_column, separator=separator, decimal_comma=decimal_comma
        )
    check_option("example", example, tuple(EXAMPLES))
    if higher or lower or id_column:
        raise TorchRankError("the example knows its columns; leave --higher, --lower and --id out")
    return EXAMPLES[example]()


def _check_targets(out: str | None, plot: str | None, report: str | None) -> None:
    """Refuse targets that could not be written after the work."""
    if out is not None and Path(out).suffix not in (".csv", ".parquet"):
        raise TorchRankError(f"out={out!r} must end in .csv or .parquet")
    if report is not None and Path(report).suffix not in (".html", ".htm"):
        raise TorchRankError(f"report={report!r} must end in .html")
    for name, target in (("out", out), ("report", report)):
        if target is not None and Path(target).is_dir():
            raise TorchRankError(f"{name}={target!r} is a folder; give a file")
    if plot is not None:
        target_folder(plot, "plot")
    if (plot is not None or report is not None) and find_spec("matplotlib") is None:
        raise TorchRankError("figures need matplotlib: pip install 'torchrank[plots]'")


def _ends(ranking: Ranking) -> Table:
    frame = ranking.frame()
    names = [frame.columns[0], "rank", "score"]
    heads = ["rank", "score"] + ([f"{LEVEL:.0%} interval"] if ranking.intervals is not None else [])
    short = {"first_principal_component": "PCA", "mean_rank": "mean rank", "topsis": "TOPSIS", "elpigraph": "ElPiGraph"}
    shown = _new_table(f"{len(frame):,} objects, 1 is best", names[0])
    for head in [*heads, *(short[method] for method in ranking.others)]:
        shown.add_column(head, justify="right")
    for k, row in enumerate(frame.iter_rows(named=True)):
        if len(frame) > 2 * _SHOWN and _SHOWN <= k < len(frame) - _SHOWN:
            if k == _SHOWN:
                shown.add_section()
            continue
        cells = [_name(row[names[0]]), str(row["rank"]), f"{row['score']:.4f}"]
        if ranking.intervals is not None:
            cells.append(f"{row['rank_low']}–{row['rank_high']}")
        shown.add_row(*cells, *(str(row[f"rank_{method}"]) for method in ranking.others))
    return shown


def _points(ranking: Ranking) -> Table:
    points = ranking.control_points().T.tolist()
    shown = _new_table("control points, in the table's units", "attribute")
    for r in range(len(points[0])):
        where = " worst" if r == 0 else " best" if r == len(points[0]) - 1 else ""
        shown.add_column(f"p{r}{where}", justify="right")
    for name, way, row in zip(ranking.table.names, ranking.table.directions, points, strict=True):
        shown.add_row(f"{_name(name)} {'↑' if way > 0 else '↓'}", *(f"{value:.6g}" for value in row))
    return shown


def _without(ranking: Ranking) -> Table:
    shown = _new_table("the ranking without each attribute", "left out")
    for name in ("correlation", "largest move", "explained"):
        shown.add_column(name, justify="right")
    shown.add_column("moved", no_wrap=True, overflow="ellipsis")
    for row in ranking.left_out:
        shown.add_row(
            _name(ranking.table.names[row.attribute]),
            f"{row.spearman:.4f}",
            str(row.largest_move),
            f"{row.explained_variance:.4f}",
            _name(ranking.table.ids[row.moved]),
        )
    return shown


def _name(value: object) -> str:
    """A name as rich shows it literally, short enough to leave room for numbers."""
    text = str(value)
    return escape(text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…")


def _new_table(title: str, first: str) -> Table:
    shown = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    shown.add_column(escape(first), no_wrap=True, overflow="ellipsis")
    return shown
