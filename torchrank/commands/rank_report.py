"""A ranking as one HTML file that needs nothing else."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from torchrank.commands.ranking import LEVEL, Ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: rows up to which the report shows the whole ranking; of a longer one it shows that many at either end, halved
_ROWS = 1000
_NAMES = {
    "first_principal_component": "first principal component",
    "mean_rank": "mean rank",
    "topsis": "TOPSIS",
    "elpigraph": "ElPiGraph",
}
_CAPTIONS = {
    "projections": "Objects and curve in every pair of attributes. Colour is the score; the arrow at an attribute says"
    " which way is better.",
    "scores": "Score against each attribute, and the curve.",
    "intervals": f"Ranks of both ends of the table (dots) and where {LEVEL:.0%} of the resamples put them (bars).",
}
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d5dae0; --back: #fff; --band: #f3f5f8;
  --plus: #0072b2; --minus: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --soft: #a0a9b3; --line: #3a424b; --back: #16191d;
  --band: #20252b; --plus: #56b4e9; --minus: #f0a35e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.25rem 4rem; background: var(--back); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.8rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { max-width: 46rem; margin: .4rem 0; } .soft, figcaption { color: var(--soft); font-size: .9rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.facts div { background: var(--band); border-radius: .5rem; padding: .7rem .9rem; }
.facts b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.warning { border-left: .3rem solid var(--minus); background: var(--band); padding: .5rem .9rem; }
.wide { overflow: auto; max-height: 36rem; border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th { position: sticky; top: 0; background: var(--band); font-weight: 600; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; white-space: nowrap; } tr:last-child td { border-bottom: 0; }
.plus { color: var(--plus); } .minus { color: var(--minus); }
figure { margin: 1rem 0; } figure img { max-width: 100%; background: #fff; border-radius: .5rem; padding: .5rem; }
"""


def rank_report(ranking: Ranking, figures: "Mapping[str, Figure]", *, title: str) -> str:
    """Write a ranking as HTML; figures are inside, nothing is fetched.

    Args:
        ranking: the ranking.
        figures: name to figure.
        title: of the page.

    Returns:
        the page; whatever comes from the table is escaped.
    """
    table, report = ranking.table, ranking.report
    summary = ranking.summary()
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{_criteria(ranking)}</p>',
        _facts(ranking),
        *(f'<p class="warning">{escape(w)}</p>' for w in report.warnings),
        "<h2>Ranking</h2>",
        (
            "<p>A score is the place of the object's nearest point on a curve that runs from the worst to the best "
            "value of every attribute; 1 is the best rank, equal scores share one. A contribution is what an attribute"
            " adds to the score against the median object (Shapley value): a row's add up to its score less the median"
            " object's. The last columns are the ranks that other methods give.</p>"
        ),
        _ranking(ranking),
    ]
    for name, figure in figures.items():
        parts.append(
            f'<figure><img alt="{escape(name)}" src="{_picture(figure)}">'
            f"<figcaption>{escape(_CAPTIONS[name])}</figcaption></figure>"
        )
    points = ranking.control_points().tolist()
    parts += [
        "<h2>Curve</h2>",
        (
            "<p>The curve's control points in the table's units: with the attributes' least and greatest values they "
            "are the whole model.</p>"
        ),
        _table(["point", *table.names], ([f"p{r}", *map(_number, row)] for r, row in enumerate(points))),
    ]
    if ranking.left_out:
        parts += [
            "<h2>Without each attribute</h2>",
            (
                "<p>The ranking by the others against the ranking by all: an attribute whose absence changes little "
                "adds little.</p>"
            ),
            _table(
                ["left out", "rank correlation", "largest move", "object that moves most", "explained variance"],
                (
                    [
                        row["attribute"],
                        f"{row['spearman']:.4f}",
                        str(row["largest_move"]),
                        row["moved"],
                        f"{row['explained_variance']:.4f}",
                    ]
                    for row in summary["without_attribute"]
                ),
            ),
        ]
    parts += [
        "<h2>Other methods</h2>",
        _table(
            ["method", "rank correlation with the curve"],
            ([_NAMES[method], f"{value:.4f}"] for method, value in ranking.agreement().items()),
        ),
        "<h2>Fit</h2>",
        (
            f"<p>{len(report.runs)} starts of the solver {escape(report.solver)} ended in {len(report.optima)} distinct"
            f" {'optimum' if len(report.optima) == 1 else 'optima'}; the best run"
            f" {'converged' if report.converged else 'did NOT converge'}.</p>"
        ),
        _table(
            ["optimum", "J", "starts", "rank correlation with the best"],
            (
                [str(k + 1), f"{o.objective:.6g}", str(o.starts), f"{o.spearman:.4f}"]
                for k, o in enumerate(report.optima)
            ),
        ),
        _reservations(ranking),
    ]
    if table.attribution:
        parts.append(f'<p class="soft">Data: {escape(table.attribution)}</p>')
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _criteria(ranking: Ranking) -> str:
    both = []
    for way, text in ((1, "more is better"), (-1, "less is better")):
        names = [n for n, w in zip(ranking.table.names, ranking.table.directions, strict=True) if w == way]
        if names:
            both.append(f"{text}: {', '.join(map(escape, names))}")
    return "; ".join(both)


def _facts(ranking: Ranking) -> str:
    report = ranking.report
    facts = [
        (f"{report.rows:,}", "objects"),
        (f"{report.explained_variance:.1%}", "of the variance explained"),
        ("yes" if report.monotone else "no", "a better object always ranks higher"),
        (str(len(report.optima)), f"distinct optima in {len(report.runs)} starts"),
    ]
    if ranking.intervals is not None:
        width = (ranking.intervals[:, 1] - ranking.intervals[:, 0]).double().median()
        facts.append((f"{float(width):g}", f"places, median width of the {LEVEL:.0%} rank interval"))
    return '<div class="facts">' + "".join(f"<div><b>{escape(a)}</b>{escape(b)}</div>" for a, b in facts) + "</div>"


def _ranking(ranking: Ranking) -> str:
    frame = ranking.frame()
    names = [frame.columns[0], "rank", "score"]
    if ranking.intervals is not None:
        names.append(f"{LEVEL:.0%} interval")
    heads = [
        *names,
        *(f"from {name.replace('_', ' ')}" for name in ranking.table.names),
        *(_NAMES[method] for method in ranking.others),
    ]
    rows, cut = frame, ""
    if len(frame) > _ROWS:
        rows = frame.head(_ROWS // 2).vstack(frame.tail(_ROWS // 2))
        cut = f'<p class="soft">The first and last {_ROWS // 2} of {len(frame):,} objects.</p>'
    lines = []
    for row in rows.iter_rows(named=True):
        cells = [escape(str(row[names[0]])), str(row["rank"]), f"{row['score']:.4f}"]
        if ranking.intervals is not None:
            cells.append(f"{row['rank_low']}–{row['rank_high']}")
        cells += [_signed(row[f"contribution_{name}"]) for name in ranking.table.names]
        cells += [str(row[f"rank_{method}"]) for method in ranking.others]
        lines.append(cells)
    return _grid(map(escape, heads), lines) + cut


def _reservations(ranking: Ranking) -> str:
    """What the ranking does not say."""
    lines = [
        (
            "Scores jump where two parts of the curve are equally near to an object: two objects that differ little "
            "there may lie far apart."
        ),
        (
            "Rank intervals show what other objects in the table would change; neither errors of measurement nor the "
            "choice of attributes are in them."
        ),
    ]
    if ranking.curve.missing == "observed":
        lines.append(
            "Where a value is missing the curve uses the attributes that are there; contributions and the other "
            "methods put the attribute's median in its place."
        )
    return "<h2>Reservations</h2>" + "".join(f"<p>{escape(line)}</p>" for line in lines)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return _grid(map(escape, heads), ([escape(cell) for cell in row] for row in rows))


def _grid(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th>{head}</th>" for head in heads)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _signed(value: float) -> str:
    sign = "plus" if value > 5e-5 else "minus" if value < -5e-5 else "soft"
    return f'<span class="{sign}">{value:+.4f}</span>'


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.6g}"


def _picture(figure: "Figure") -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", dpi=150)
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
