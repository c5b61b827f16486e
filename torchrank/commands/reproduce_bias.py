"""``torchrank reproduce bias``: learning from clicks of known position bias on MQ2008, naively and weighted."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from torchrank.commands.results import markdown_table, progress_bar, target_folder, write_results
from torchrank.commands.slam_folds import PARTS, Measures, fold_of, measure, read_parts
from torchrank.data import ClickLog, QueryDataset, attraction, click_lists, simulate_clicks
from torchrank.errors import TorchRankError, check_number
from torchrank.losses import SoftmaxLoss
from torchrank.models import LinearScorer
from torchrank.ops import fit_position_bias, ragged_to_padded, rank_propensities
from torchrank.training import fit_lists

#: severity of the bias: position k is examined with probability (1 / k)^η
ETAS = (0.5, 1.0, 1.5, 2.0)
#: share of the training queries whose labels the logging ranker has seen
LABELLED = 0.01
#: Gumbel noise on the logging ranker's scores, in standard deviations of these: documents change places
TEMPERATURE = 0.5
METHODS = ("naive", "ips", "ips est.", "oracle")


class Outcome(NamedTuple):
    """Test measures of one way to learn, from one seed on one fold.

    Attributes:
        method: how it learned; ``"logging"`` is the ranker that was clicked on.
        eta: severity of the bias.
        fold: from 0.
        seed: from 0.
        clicks: how many there were.
        measures: on the test part.
    """

    method: str
    eta: float
    fold: int
    seed: int
    clicks: int
    measures: Measures


def reproduce_bias(
    *,
    data: str,
    out: str,
    seeds: int = 5,
    folds: int = 5,
    sessions: int = 20000,
    noise: float = 0.1,
    clip: float = 0.01,
    epochs: int = 40,
) -> None:
    """Learn from simulated clicks on MQ2008 naively, by inverse propensities, and from the truth, at four bias levels.

    Args:
        data: the folder with MQ2008's parts S1.txt to S5.txt (or .txt.gz), or one that holds it as mq2008.
        out: folder for results.json, results.md and bias.png.
        seeds: runs from different logging rankers and clicks.
        folds: how many of the five folds each seed is run on.
        sessions: rankings shown to simulated users, for each seed, fold and bias level.
        noise: how often an examined document that is not relevant is clicked.
        clip: the smallest propensity that counts; a click weighs at most 1 / clip.
        epochs: passes over the lists; the last weights count, since clicks offer no labels to stop by.
    """
    if seeds < 1 or epochs < 1 or not 1 <= folds <= PARTS:
        raise TorchRankError(f"seeds={seeds} and epochs={epochs} must be at least 1, folds={folds} from 1 to {PARTS}")
    check_number("clip", clip, least=0)
    if find_spec("matplotlib") is None:
        raise TorchRankError("the figure needs matplotlib: pip install 'torchrank[plots]'")
    target = target_folder(out)
    parts = read_parts(Path(data))
    learn = partial(_learn, epochs=epochs)
    outcomes: list[Outcome] = []
    with progress_bar() as progress:
        bar = progress.add_task("learning from clicks", total=seeds * folds * len(ETAS))
        for seed in range(seeds):
            for number in range(folds):
                fold = fold_of(parts, number)
                logging = logging_scores(fold.train, seed=seed, learn=learn)
                oracle = learn(true_lists(fold.train, noise=noise), seed=seed)
                for eta in ETAS:
                    log = simulate_clicks(
                        fold.train,
                        logging(fold.train),
                        sessions=sessions,
                        eta=eta,
                        noise=noise,
                        temperature=TEMPERATURE,
                        seed=seed,
                    )
                    rankers = {"logging": logging, "oracle": oracle}
                    for method, theta in _propensities(fold.train, log, eta).items():
                        lists = click_lists(fold.train, log, propensities=theta, clip=clip, lists="query")
                        rankers[method] = learn(lists, seed=seed)
                    outcomes += [
                        Outcome(
                            name, eta, number, seed, int(log.clicked.sum()), measure(fold.test, rank(fold.test).numpy())
                        )
                        for name, rank in rankers.items()
                    ]
                    progress.advance(bar)
    console = Console()
    console.print(_table(outcomes))
    settings = {"seeds": seeds, "folds": folds, "sessions": sessions, "noise": noise, "clip": clip, "epochs": epochs}
    write_results(target, _results(outcomes, settings), _markdown(outcomes, settings))
    from torchrank.plots.comparison import plot_over  # matplotlib, an extra
    from torchrank.plots.files import save_figure

    curves = {name: [_mean(outcomes, name, eta, "ndcg_at_10") for eta in ETAS] for name in ("logging", *METHODS)}
    save_figure(plot_over(ETAS, curves, x="severity of the position bias η", y="test NDCG@10"), target / "bias.png")
    console.print(f"results.json, results.md and bias.png are in {target}", soft_wrap=True)


Ranking = Callable[[QueryDataset], Tensor]


def logging_scores(train: QueryDataset, *, seed: int, learn: Callable[..., Ranking]) -> Ranking:
    """Train the ranker whose rankings are shown: by the labels of 1 % of the queries, so informative but imperfect.

    Returns:
        scores of a data set's documents, in standard deviations of those of the training part.
    """
    relevant = ragged_to_padded(train.relevance, train.offsets)[0].amax(-1) > 0
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    few = order[relevant[order]][: max(1, round(LABELLED * len(train)))]
    rank = learn(train.select(few), seed=seed)
    scale = rank(train).std().clamp(min=1e-6)
    return lambda dataset: rank(dataset) / scale


def true_lists(train: QueryDataset, *, noise: float) -> QueryDataset:
    """Lists as clicks would give them were every place examined, without end: what the weights estimate."""
    truth = attraction(train.relevance, noise=noise)
    weights = ragged_to_padded(truth, train.offsets)[0].sum(-1)
    return QueryDataset(train.features, truth, train.offsets, list_weights=weights / weights.mean())


def _learn(lists: QueryDataset, *, seed: int, epochs: int) -> Ranking:
    fit = fit_lists(
        lists,
        LinearScorer(lists.num_features),
        SoftmaxLoss(target="relevance"),
        epochs=epochs,
        batch_size=128,
        optimizer=partial(torch.optim.Adam, lr=5e-2),
        l2=1e-4,
        seed=seed,
    )
    scorer = fit.module.scorer

    def rank(dataset: QueryDataset) -> Tensor:
        with torch.no_grad():
            scores: Tensor = scorer(dataset.features)
        return scores

    return rank


def _propensities(train: QueryDataset, log: ClickLog, eta: float) -> dict[str, Tensor | None]:
    """None for clicks as they are, the known propensities, and those that the log itself gives away."""
    known = rank_propensities(int(train.lengths.max()), eta)
    # Far down few are clicked at: positions are estimated while a click is to be had, and level from there on.
    clicks = torch.bincount(log.positions[log.clicked] - 1, minlength=len(known))
    few = (clicks < 20).nonzero().flatten()
    depth = max(1, int(few[0]) if len(few) else len(known))
    shown = log.positions <= depth
    estimate = fit_position_bias(log.documents[shown], log.positions[shown], log.clicked[shown]).propensities
    level = estimate[-1:].expand(len(known) - depth)
    return {"naive": None, "ips": known, "ips est.": torch.cat([estimate, level])}


def _values(outcomes: Sequence[Outcome], method: str, eta: float, name: str) -> list[float]:
    """Mean over the folds, one value a seed."""
    found: dict[int, list[float]] = {}
    for outcome in outcomes:
        if (outcome.method, outcome.eta) == (method, eta):
            found.setdefault(outcome.seed, []).append(getattr(outcome.measures, name))
    return [statistics.fmean(found[seed]) for seed in sorted(found)]


def _mean(outcomes: Sequence[Outcome], method: str, eta: float, name: str) -> float:
    return statistics.fmean(_values(outcomes, method, eta, name))


def _rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """One row a bias level and measure: the methods, and by how much weighting wins, seed by seed."""
    rows = []
    for eta in ETAS:
        clicks = statistics.fmean(o.clicks for o in outcomes if (o.method, o.eta) == ("naive", eta))
        for name, label in (("ndcg_at_10", "NDCG@10"), ("map", "MAP")):
            values = {method: _values(outcomes, method, eta, name) for method in ("logging", *METHODS)}
            gains = [a - b for a, b in zip(values["ips"], values["naive"], strict=True)]
            spread = f" ± {statistics.stdev(gains):.4f}" if len(gains) > 1 else ""
            won = f"{sum(g > 0 for g in gains)} of {len(gains)}"
            cells = [f"{statistics.fmean(each):.4f}" for each in values.values()]
            rows.append([f"{eta:g}", f"{clicks:,.0f}", label, *cells, f"{statistics.fmean(gains):+.4f}{spread}", won])
    return rows


_HEAD = ("η", "clicks", "measure", "logging", *METHODS, "ips − naive", "seeds won")


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(title="MQ2008, learning from clicks: test measures")
    for number, name in enumerate(("η", "measure", *_HEAD[3:8], "seeds won")):
        table.add_column(name, justify="left" if number == 1 else "right")
    for row in _rows(outcomes):
        table.add_row(row[0], *row[2:8], row[9])
    return table


def _markdown(outcomes: Sequence[Outcome], settings: Mapping[str, float]) -> str:
    return "\n".join(
        [
            "# MQ2008, learning from clicks",
            "",
            f"Means over {settings['seeds']} seeds and {settings['folds']} folds; {settings['sessions']:,} rankings",
            f"shown a fold, noise {settings['noise']}, propensities clipped at {settings['clip']}. ips knows the",
            "propensities, ips est. has them from the log alone. ± and seeds won are of ips against naive.",
            "",
            *markdown_table(_HEAD, _rows(outcomes), left=0),
            "",
        ]
    )


def _results(outcomes: Sequence[Outcome], settings: Mapping[str, float]) -> dict[str, object]:
    runs = [{**o._asdict(), "measures": o.measures._asdict()} for o in outcomes]
    return {"settings": dict(settings), "runs": runs}
