"""``torchrank reproduce chain``: the linear chain on handwritten words, ten-fold in both directions."""

import statistics
import string
import time
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from torchrank.commands.results import find_file, markdown_table, progress_bar, target_folder, write_results
from torchrank.commands.workers import each_done
from torchrank.data import SequenceDataset, read_sequences
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import CRFLoss, StructuredHingeLoss, StructuredPerceptronLoss
from torchrank.models import LinearChain
from torchrank.training import fit_chain, label_sequences

#: method: whether labels are chained, and the loss
METHODS: dict[str, tuple[bool, type[nn.Module]]] = {
    "unary": (False, StructuredHingeLoss),
    "chain_hinge": (True, StructuredHingeLoss),
    "chain_crf": (True, CRFLoss),
    "chain_perceptron": (True, StructuredPerceptronLoss),
}
SETTINGS = {"small": "train on one fold, test on the others", "large": "train on all folds but one, test on that"}
BATCH_SIZE, STEP, WEIGHT_DECAY = 32, 0.1, 1e-4


class Run(NamedTuple):
    """One training: which it was, and what came of it."""

    setting: str
    method: str
    fold: int
    accuracy: float
    whole: float
    seconds: float
    transitions: list[list[float]]


def reproduce_chain(*, data: str, out: str, epochs: int = 20, folds: int | None = None, workers: int = 0) -> None:
    """Train linear chains on handwritten words and write their accuracies.

    Args:
        data: the folder with ocr_letters.npz, or one that holds it under ocr-letters.
        out: folder for results.json, results.md, accuracy.png and transitions.png.
        epochs: passes over the training words.
        folds: train on the first so many folds only, for a quick look; all by default.
        workers: trainings at once, one thread each; 0 for as many as there are processors.
    """
    path = find_file(data, "ocr_letters.npz", "ocr-letters", "the OCR letters")
    if epochs < 1 or workers < 0:
        raise TorchRankError(f"epochs={epochs} must be at least 1, workers={workers} at least 0")
    words = read_sequences(path, num_labels=26)
    if words.folds is None or len(words.folds.unique()) < 2:
        raise DataError(f"{path} has no cross-validation folds")
    every = sorted(words.folds.unique().tolist())
    chosen = every if folds is None else every[:folds]
    if not chosen:
        raise TorchRankError(f"folds={folds} must be at least 1")
    target = target_folder(out)
    # The long trainings first, so that no worker is left with one at the end.
    jobs = [(setting, method, fold) for setting in ("large", "small") for method in METHODS for fold in chosen]
    began = time.perf_counter()
    runs = []
    with progress_bar() as progress:
        bar = progress.add_task("training chains", total=len(jobs))
        for _, run in each_done(partial(train_fold, str(path), epochs), jobs, workers):
            runs.append(run)
            progress.advance(bar)
    runs.sort(key=lambda run: (run.setting, list(METHODS).index(run.method), run.fold))
    results = _summary(runs, epochs, time.perf_counter() - began)
    console = Console()
    for setting, about in SETTINGS.items():
        console.print(_table(setting, about, results))
    write_results(target, results, _markdown(results))
    _draw(runs, target)
    console.print(f"results.json, results.md, accuracy.png and transitions.png are in {target}", soft_wrap=True)


@cache
def _words(path: str) -> SequenceDataset:
    return read_sequences(path, num_labels=26)


def train_fold(path: str, epochs: int, job: tuple[str, str, int]) -> Run:
    """Train and test one method on one fold.

    Args:
        path: the words.
        epochs: passes over the training words.
        job: the setting, ``"small"`` or ``"large"``; the method, a key of ``METHODS``; and the fold that is trained on
            (small) or tested on (large).

    Returns:
        accuracies on the test words, processor seconds of the training, and the transitions.
    """
    setting, method, fold = job
    words = _words(path)
    assert words.folds is not None  # noqa: S101 # the command has looked
    here = words.folds == fold
    train, test = (words.select(here), words.select(~here))[:: 1 if setting == "small" else -1]
    chained, loss = METHODS[method]
    model = LinearChain(words.num_features, words.num_labels, chained=chained, start=chained)
    began = time.process_time()
    module = fit_chain(
        train,
        model,
        loss(),
        epochs=epochs,
        batch_size=BATCH_SIZE,
        optimizer=partial(torch.optim.Adagrad, lr=STEP, weight_decay=WEIGHT_DECAY),
        seed=fold,
    )
    seconds = time.process_time() - began
    right = label_sequences(module, test) == test.labels
    transitions: Tensor = module.chain.transitions
    return Run(setting, method, fold, *_shares(right, test), seconds, transitions.detach().tolist())


def _shares(right: Tensor, test: SequenceDataset) -> tuple[float, float]:
    """Shares of letters and of whole words that are right."""
    wrong = torch.cat([torch.zeros(1), (~right).float().cumsum(0)])[test.offsets].diff()
    return float(right.float().mean()), float((wrong == 0).float().mean())


def _summary(runs: list[Run], epochs: int, wall: float) -> dict[str, object]:
    def mean(field: str, setting: str, method: str) -> float:
        found = [getattr(run, field) for run in runs if (run.setting, run.method) == (setting, method)]
        return statistics.fmean(found)

    def table(field: str) -> dict[str, dict[str, float]]:
        return {setting: {method: mean(field, setting, method) for method in METHODS} for setting in SETTINGS}

    return {
        **table("accuracy"),
        "whole_words": table("whole"),
        "seconds": table("seconds"),
        "by_fold": {
            setting: {
                method: {str(run.fold): run.accuracy for run in runs if (run.setting, run.method) == (setting, method)}
                for method in METHODS
            }
            for setting in SETTINGS
        },
        "folds": len({run.fold for run in runs}),
        "epochs": epochs,
        "total_seconds": wall,
    }


def _rows(setting: str, results: dict[str, object]) -> list[tuple[str, ...]]:
    by_fold, whole, seconds = (results[key][setting] for key in ("by_fold", "whole_words", "seconds"))  # type: ignore[index]
    rows: list[tuple[str, ...]] = []
    for method in METHODS:
        each = list(by_fold[method].values())
        spread = f"{statistics.stdev(each):.4f}" if len(each) > 1 else "–"
        mean = f"{statistics.fmean(each):.4f}"
        rows.append((method, mean, spread, f"{whole[method]:.4f}", f"{seconds[method]:.1f}"))
    return rows


_HEADERS = ("method", "letters", "± between folds", "whole words", "seconds a fold")


def _table(setting: str, about: str, results: dict[str, object]) -> Table:
    table = Table(title=f"{setting}: {about} (means over {results['folds']} folds)")
    for header in _HEADERS:
        table.add_column(header, justify="left" if header == "method" else "right")
    for row in _rows(setting, results):
        table.add_row(*row)
    return table


def _markdown(results: dict[str, object]) -> str:
    about_all = (
        f"Means over {results['folds']} folds, {results['epochs']} epochs, Adagrad step {STEP}, {BATCH_SIZE} words a"
        f" step, weight decay {WEIGHT_DECAY}, weights averaged over the second half. Seconds are of one processor, one"
        f" training; all of it took {results['total_seconds']:.0f} s."
    )
    parts = ["# The linear chain on handwritten words", about_all]
    for setting, about in SETTINGS.items():
        lines = markdown_table(_HEADERS, _rows(setting, results))
        parts += [f"## {setting.capitalize()}: {about}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _draw(runs: list[Run], target: Path) -> None:
    from torchrank.plots.chain import plot_fold_accuracy, plot_transitions  # matplotlib, an extra
    from torchrank.plots.files import save_figure

    accuracies = {
        setting: {
            method: [run.accuracy for run in runs if (run.setting, run.method) == (setting, method)]
            for method in METHODS
        }
        for setting in SETTINGS
    }
    lowest = min(run.accuracy for run in runs)
    save_figure(plot_fold_accuracy(accuracies, lowest=max(0.0, lowest - 0.1)), target / "accuracy.png")
    learned = [run.transitions for run in runs if (run.setting, run.method) == ("large", "chain_hinge")]
    mean = torch.tensor(learned).mean(0).numpy()
    save_figure(plot_transitions(mean, string.ascii_lowercase), target / "transitions.png")
