"""The demonstration's section on objects with several attributes: countries ranked without labels."""

import time
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from torchrank.commands.rank import draw
from torchrank.commands.ranking import rank_table
from torchrank.data.attributes import countries
from torchrank.plots.files import save_figure


def show_attributes(out: Path, seed: int, console: Console) -> None:
    """Rank 181 countries by four indicators, beside what needs no fit; draw the curve through them.

    Args:
        out: folder for attributes_projections.png and attributes_scores.png.
        seed: of the fit's starts.
        console: to print to.
    """
    began = time.perf_counter()
    ranking = rank_table(countries(), seed=seed, elpigraph=False)
    taken = time.perf_counter() - began
    frame = ranking.frame()
    shown = Table(title="181 countries by income, health and disease", title_justify="left", box=SIMPLE_HEAD)
    shown.add_column("country", no_wrap=True)
    for head in ("rank", "score", "first principal component", "mean rank", "TOPSIS"):
        shown.add_column(head, justify="right")
    for k in [*range(5), *range(len(frame) - 3, len(frame))]:
        row = frame.row(k, named=True)
        if k == len(frame) - 3:
            shown.add_row("…")
        others = (str(row[f"rank_{method}"]) for method in ranking.others)
        shown.add_row(str(row["country"]), str(row["rank"]), f"{row['score']:.4f}", *others)
    console.print(shown)
    report = ranking.report
    console.print(
        f"the curve explains {report.explained_variance:.1%} of the variance with"
        f" {ranking.curve.control_points.numel()} numbers; a country better in every indicator always ranks higher;"
        f" fitted and taken apart in {taken:.1f} s"
    )
    console.print(ranking.table.attribution)
    for name, figure in draw(ranking).items():
        save_figure(figure, out / f"attributes_{name}.png")
