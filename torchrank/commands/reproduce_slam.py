"""``torchrank reproduce slam``: the five folds of MQ2008, SLAM beside its rivals."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from torchrank.commands.results import progress_bar, target_folder, write_results
from torchrank.commands.slam_folds import PARTS, Fold, fold_of, read_parts
from torchrank.commands.slam_methods import convergence, members, methods
from torchrank.commands.slam_rankers import Fit, Ranker
from torchrank.commands.slam_report import Report, Row, blend, markdown, results, summarize, table
from torchrank.commands.workers import each_done
from torchrank.data import QueryDataset
from torchrank.errors import TorchRankError


class Job(NamedTuple):
    """One fit: a candidate of a group, on a fold, by a seed."""

    group: str
    candidate: int
    fold: int
    seed: int


def reproduce_slam(*, data: str, out: str, seeds: int = 3, epochs: int = 25, workers: int = 0) -> None:
    """Train and compare rankers on LETOR's MQ2008: five folds, every choice made on the validation part alone.

    Args:
        data: the folder with MQ2008's parts S1.txt to S5.txt (or .txt.gz), or one that holds it as mq2008.
        out: folder for results.json, results.md, methods.png, convergence.png and perceptron.png.
        seeds: runs from different random numbers; the results are their means.
        epochs: passes over the training lists at most; the best on the validation part counts.
        workers: fits at once, one thread each; 0 for as many as there are processors.
    """
    if seeds < 1 or epochs < 1 or workers < 0:
        raise TorchRankError(f"seeds={seeds} and epochs={epochs} must be at least 1, workers={workers} at least 0")
    if find_spec("matplotlib") is None:
        raise TorchRankError("the figures need matplotlib: pip install 'torchrank[plots]'")
    parts = read_parts(Path(data))
    folds = [fold_of(parts, number) for number in range(PARTS)]
    target = target_folder(out)
    groups = _groups(epochs)
    jobs = [
        Job(group, number, fold, seed)
        for group, candidates in groups.items()
        for number, candidate in enumerate(candidates)
        for seed in range(seeds if candidate.seeded else 1)
        for fold in range(PARTS)
    ]
    jobs.sort(key=lambda job: job.group != "slam_ndcg_attention")  # the long ones first
    fits: dict[Job, Fit] = {}
    with progress_bar() as progress:
        bar = progress.add_task("fitting rankers", total=len(jobs))
        for job, fit in each_done(partial(_fit, data, epochs), jobs, workers):
            fits[job] = fit
            progress.advance(bar)
    report = _report(groups, fits, folds, seeds)
    console = Console()
    console.print(table(report))
    write_results(target, results(report), markdown(report))
    from torchrank.commands.slam_figures import draw  # matplotlib, an extra

    curves = {
        ranker.name: [fits[Job("convergence", number, fold, 0)].curve for fold in range(PARTS)]
        for number, ranker in enumerate(groups["convergence"])
    }
    draw(report, curves, folds, target)
    names = "results.json, results.md, methods.png, convergence.png and perceptron.png"
    console.print(f"{names} are in {target}", soft_wrap=True)


def _report(
    groups: Mapping[str, Sequence[Ranker]], fits: Mapping[Job, Fit], folds: Sequence[Fold], seeds: int
) -> Report:
    def part(group: str, only: int | None = None) -> dict[tuple[int, int, int], Fit]:
        """The fits of a group, or of one candidate, who then is number 0."""
        return {
            (0 if only is not None else job.candidate, job.fold, job.seed): fit
            for job, fit in sorted(fits.items())
            if job.group == group and only in (None, job.candidate)
        }

    def each(group: str) -> list[Row]:
        return [summarize(c.name, [c], part(group, number), folds) for number, c in enumerate(groups[group])]

    chosen = [
        summarize(name, candidates, part(name), folds)
        for name, candidates in groups.items()
        if name not in ("members", "convergence")
    ]
    blended = blend(groups["members"], part("members"), folds)
    return Report(chosen, [*each("members"), blended], each("convergence"), seeds)


def _fit(data: str, epochs: int, job: Job) -> Fit:
    """Fit one job; a process reads the data once."""
    return _groups(epochs)[job.group][job.candidate].fit(fold_of(_parts(data), job.fold), job.seed)


@cache
def _parts(data: str) -> list[QueryDataset]:
    return read_parts(Path(data))


def _groups(epochs: int) -> dict[str, list[Ranker]]:
    return {**methods(epochs), "members": members(epochs), "convergence": convergence(epochs)}
