"""``torchrank reproduce saros``: SAROS and its rivals on one log, beside the published numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from torchrank.commands.method_choice import Choice, Trained
from torchrank.commands.results import progress_bar, target_folder, write_json, write_results, write_text
from torchrank.commands.saros_hypothesis import hypothesis_markdown, run_hypothesis
from torchrank.commands.saros_methods import METHODS, check_methods, usual_methods
from torchrank.commands.saros_report import KEYS, find_dataset, markdown
from torchrank.commands.saros_runs import Parts, Run, choose_all, compare, loss_by_time, run_method, summarise, warm_up
from torchrank.commands.saros_sets import CONVENTIONS, PRINTED, set_conventions
from torchrank.data.blocks import build_blocks
from torchrank.data.log_reading import read_log
from torchrank.data.published_sets import DATASETS, read_published
from torchrank.errors import TorchRankError, check_option
from torchrank.ops.blocks import RULES

#: seconds of training at which the loss is compared, and where the figure's curves are measured between them
MARKS = (0.1, 0.3, 1.0, 3.0, 10.0)
TIMED = ("saros", "bpr", "bpr_batch")


def reproduce_saros(
    *,
    out: str,
    log: str | None = None,
    positive_at: float | None = None,
    dataset: str | None = None,
    root: str | None = None,
    sample_users: int | None = None,
    user: str = "user",
    item: str = "item",
    feedback: str = "feedback",
    time: str = "time",
    duplicates: str = "keep",
    seeds: int = 1,
    methods: list[str] = [],  # noqa: B006 - read only; the command line reads the default off the signature
    curve_seconds: float = 10.0,
    part: str = "test",
    hypothesis: bool = False,
) -> None:
    """Train SAROS and its rivals on the published split of a log and write how well they rank.

    Args:
        out: folder for results.json, results.md and the published figures 2 to 4: block_counts.png, block_sizes.png
            and loss_by_time.png.
        log: Parquet (a file or folder), CSV, TSV, or MovieLens' own files.
        positive_at: with log, an item is preferred where its feedback is at least this.
        dataset: in place of log, a data set of the published comparison, prepared as published: kasandr,
            movielens-1m, netflix, outbrain or pandor.
        root: with dataset, the folder of its files as they were published.
        sample_users: with dataset, how many users to draw at random; all by default.
        user: column of user ids.
        item: column of item ids.
        feedback: column of numbers.
        time: column of numbers, dates or moments.
        duplicates: what becomes of a user's further rows of one item: keep, last or error.
        seeds: trainings of each method, with seeds 0, 1, …; means and deviations are reported.
        methods: train these only; may be repeated; all whose packages are installed by default.
        curve_seconds: seconds that SAROS, BPR and batch BPR each train for the loss after equal time; 0 leaves it out.
        part: measure on the "test" part, after training on all before it; or on the "validation" part, the last tenth
            of each user's training part, after training on the rest of it: to compare changes without the test part.
        hypothesis: instead, test whether the order in time matters: every block rule and threshold, in time order and
            shuffled, into hypothesis.json and hypothesis.md.
    """
    if seeds < 1 or not 0 <= curve_seconds < float("inf"):
        raise TorchRankError(f"seeds={seeds} must be at least 1, curve_seconds={curve_seconds} at least 0")
    check_option("part", part, ("test", "validation"))
    if hypothesis and part != "test":
        raise TorchRankError('the hypothesis is tested on the test part; leave out part="validation"')
    check_methods(methods)
    target = target_folder(out)
    if dataset is None:
        if log is None or positive_at is None:
            raise TorchRankError("give log and positive_at, or dataset and root")
        if root is not None or sample_users is not None:
            raise TorchRankError("root and sample_users go with dataset, which is not given")
        names = {"user": user, "item": item, "feedback": feedback, "time": time}
        whole = read_log(log, positive_at=positive_at, duplicates=duplicates, **names)
        conventions = [f"Preferred: feedback of at least {positive_at:g}.", "All users of the log are kept."]
    else:
        if log is not None or root is None:
            raise TorchRankError("give dataset with root, the folder of its files, and without log")
        whole = read_published(dataset, root, users=sample_users)
        conventions = set_conventions(dataset, whole, sample_users)
    parts = Parts.of(whole)
    if part == "validation":
        parts = parts.before_test()

    def save(results: dict[str, Any]) -> None:
        results["part"] = part
        if dataset is not None and part == "test":
            results["dataset"] = DATASETS[dataset].printed
        results["conventions"] = [*conventions, *CONVENTIONS, *([PRINTED] if results["dataset"] else [])]
        write_json(target / "results.json", results)

    console = Console()
    with progress_bar() as progress:
        if hypothesis:
            found = run_hypothesis(parts, seeds=seeds, progress=progress)
            text = hypothesis_markdown(found)
            write_results(target, found, text, name="hypothesis")
        else:
            results, curves = _train_all(parts, methods or usual_methods(), seeds, curve_seconds, progress, save)
    if hypothesis:
        console.print(text, soft_wrap=True, markup=False)
        return
    save(results)
    write_text(target / "results.md", markdown(results))
    _print(console, results)
    written = ["results.json", "results.md"]
    from torchrank.plots.blocks import plot_block_counts, plot_block_sizes  # matplotlib, an extra
    from torchrank.plots.files import save_figure
    from torchrank.plots.loss_by_time import plot_loss_by_time

    cut = {rule: build_blocks(parts.train, rule=rule) for rule in RULES}
    if any(len(blocks) for blocks in cut.values()):
        save_figure(
            plot_block_counts({rule: blocks.counts for rule, blocks in cut.items()}), target / "block_counts.png"
        )
        sizes = {rule: blocks.other_stop - blocks.other_start for rule, blocks in cut.items()}
        save_figure(plot_block_sizes(sizes), target / "block_sizes.png")
        written += ["block_counts.png", "block_sizes.png"]
    if curves:
        lines = {name: (np.array(each["seconds"]), np.array(each["train"])) for name, each in curves.items()}
        save_figure(plot_loss_by_time(lines), target / "loss_by_time.png")
        written.append("loss_by_time.png")
    console.print(f"{', '.join(written)} are in {target}", soft_wrap=True)


def _train_all(
    parts: Parts,
    names: Sequence[str],
    seeds: int,
    curve_seconds: float,
    progress: Progress,
    save: Callable[[dict[str, Any]], None],
) -> tuple[dict[str, Any], dict[str, dict[str, list[float]]]]:
    """Train and measure; ``save`` gets the results so far after each method."""
    bar = progress.add_task("compiling", total=len(names))
    warm_up(names)
    progress.update(bar, description="choosing settings")
    chosen = choose_all(names, parts, seed=0, done=lambda name: progress.advance(bar))
    seeded = {name: seeds if METHODS[name].seeded else 1 for name in names}
    bar = progress.add_task("training", total=sum(seeded.values()))
    runs: dict[str, list[Run]] = {}
    for name in names:
        for seed in range(seeded[name]):
            progress.update(bar, description=f"training {name}")
            runs.setdefault(name, []).append(run_method(METHODS[name], parts, chosen[name], seed=seed))
            progress.advance(bar)
        save(_results(parts, runs, chosen, seeds))
    progress.update(bar, description="training")
    curves = {}
    timed = [name for name in TIMED if name in names] if curve_seconds > 0 else []
    marks = sorted({*(m for m in MARKS if m <= curve_seconds), *np.geomspace(0.05, max(curve_seconds, 0.05), 15)})
    for name in timed:
        method, choice = METHODS[name], chosen[name]
        assert isinstance(method, Trained)  # noqa: S101 - for the type checker
        bar = progress.add_task(f"loss by time: {name}", total=round(curve_seconds))
        tick = lambda seconds, bar=bar: progress.update(bar, completed=round(seconds))  # noqa: E731 - bound to its bar
        curves[name] = loss_by_time(method, parts, choice.setting, marks=marks, seed=0, tick=tick)
    shown = [mark for mark in MARKS if mark <= curve_seconds]
    losses = {
        part: {name: {f"{m:g}": curve[part][marks.index(m)] for m in shown} for name, curve in curves.items()}
        for part in ("test", "train")
    }
    return _results(parts, runs, chosen, seeds) | {"losses": losses if curves else {}}, curves


def _results(
    parts: Parts, runs: Mapping[str, Sequence[Run]], chosen: Mapping[str, Choice], seeds: int
) -> dict[str, Any]:
    split = {
        "train": len(parts.train),
        "test": len(parts.test),
        "positive_train_percent": 100 * float(parts.train.preferred.mean()),
        "positive_test_percent": 100 * float(parts.test.preferred.mean()),
    }
    rivals = [name for name in runs if isinstance(METHODS[name], Trained) and "itemrate" in runs]
    return {
        "split": split,
        "dataset": find_dataset(len(parts.train), len(parts.test)),
        "seeds": seeds,
        "methods": {name: summarise(METHODS[name], each, chosen[name]) for name, each in runs.items()},
        "comparisons": {name: compare(runs[name], runs["itemrate"]) for name in rivals},
        "losses": {},
    }


def _print(console: Console, results: dict[str, Any]) -> None:
    table = Table(title="published protocol; catalogue by the usual one")
    table.add_column("method", min_width=max(map(len, results["methods"])))
    for header in (*map(str.upper, KEYS), "test loss", "NDCG@10, all items", "seconds"):
        table.add_column(header, justify="right")
    for name, row in results["methods"].items():
        loss = "" if row["test_loss"] is None else f"{row['test_loss']:.4f}"
        catalogue = f"{row['catalogue']['ndcg@10']:.4f}"
        table.add_row(
            name, *(f"{row['published'][k]:.4f}" for k in KEYS), loss, catalogue, f"{row['train_seconds']:.2f}"
        )
    console.print(table)
