"""Training, measuring and timing the methods of ``torchrank reproduce saros``."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchrank.commands.method_choice import Choice, Counted, Trained, choose, measured_scorer
from torchrank.commands.saros_methods import METHODS
from torchrank.data.log import InteractionLog
from torchrank.data.synthetic_log import make_interactions
from torchrank.metrics.significance import paired_bootstrap
from torchrank.training.evaluation import evaluate_catalogue, evaluate_loss, evaluate_published, evaluate_shown
from torchrank.training.interaction_fitting import fit_interactions
from torchrank.training.shown_lists import ShownLists

#: protocol, to measure, to the means over users of one run; and the values of each user by the published protocol
Measured = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Parts:
    """A log split for training, for choosing settings, and for the test."""

    fit: InteractionLog
    val: InteractionLog
    train: InteractionLog
    test: InteractionLog
    lists: ShownLists

    @classmethod
    def of(cls, log: InteractionLog) -> "Parts":
        """Split by the published protocol, and keep the last tenth of each user's training part to choose by."""
        train, test = log.split_per_user(train=0.8)
        fit, val = train.split_per_user(train=0.9)
        return cls(fit, val, train, test, ShownLists.from_log(test))

    def before_test(self) -> "Parts":
        """Return parts whose test part is the one to choose by, so that comparing changes does not use up the test."""
        return Parts(self.fit, self.val, self.fit, self.val, ShownLists.from_log(self.val))


@dataclass(frozen=True, eq=False)
class Run:
    """One method trained with one seed."""

    measured: Measured
    test_loss: float | None
    seconds: float
    per_user: Mapping[str, NDArray[np.float64]]


def warm_up(methods: Sequence[str]) -> None:
    """Compile what the methods run, so that no training is timed with its compilation."""
    log, _ = make_interactions(num_users=20, num_items=40, num_interactions=400)
    for name in methods:
        method = METHODS[name]
        if isinstance(method, Trained):
            fit_interactions(method.make(0, method.settings[0]), log, epochs=1)


def run_method(method: Trained | Counted, parts: Parts, choice: Choice, *, seed: int, catalogue: bool = True) -> Run:
    """Train a method on the whole training part and measure it on the test part.

    Args:
        method: what to train.
        parts: of the log.
        choice: its setting and epochs.
        seed: of the training.
        catalogue: rank the whole catalogue too.

    Returns:
        what was measured.
    """
    if isinstance(method, Trained):
        assert choice.epochs is not None  # noqa: S101 - for the type checker: chosen for every Trained
        module = method.make(seed, choice.setting)
        seconds = fit_interactions(module, parts.train, epochs=choice.epochs)
        scorer = measured_scorer(module)
    else:
        begin = time.perf_counter()
        scorer = method.make(parts.train, seed, **choice.setting)
        seconds = time.perf_counter() - begin
    published = evaluate_published(scorer, parts.lists)
    measured = {"published": published.mean, "standard": evaluate_shown(scorer, parts.lists).mean}
    if catalogue:
        measured["catalogue"] = evaluate_catalogue(scorer, parts.train, parts.test).mean
    loss = evaluate_loss(scorer, parts.lists) if method.pair_loss else None
    return Run(measured, loss, seconds, published.values)


def summarise(method: Trained | Counted, runs: Sequence[Run], choice: Choice) -> dict[str, Any]:
    """Average a method's runs: means, and deviations between seeds."""
    losses = [run.test_loss for run in runs if run.test_loss is not None]
    row: dict[str, Any] = {"about": method.about}
    for protocol in ("published", "standard", "catalogue"):
        values = {name: [run.measured[protocol][name] for run in runs] for name in runs[0].measured[protocol]}
        row[protocol] = {name: statistics.fmean(each) for name, each in values.items()}
        row[f"{protocol}_std"] = {name: _deviation(each) for name, each in values.items()}
    row["test_loss"] = statistics.fmean(losses) if losses else None
    row["test_loss_std"] = _deviation(losses) if losses else None
    row["train_seconds"] = statistics.fmean(run.seconds for run in runs)
    row["chosen"] = {**choice.setting, **({} if choice.epochs is None else {"epochs": choice.epochs})} or None
    return row


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def compare(first: Sequence[Run], second: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Compare two methods user by user, each user's value averaged over the seeds: paired bootstrap, 95 %."""
    found = {}
    for name in first[0].per_user:
        one, other = (torch.from_numpy(np.mean([run.per_user[name] for run in runs], 0)) for runs in (first, second))
        result = paired_bootstrap(one, other, samples=2000)
        found[name] = {"difference": result.difference, "low": result.low, "high": result.high}
    return found


def loss_by_time(
    method: Trained,
    parts: Parts,
    setting: Mapping[str, Any],
    *,
    marks: Sequence[float],
    seed: int,
    tick: Callable[[float], None],
) -> dict[str, list[float]]:
    """Train for as long as the last mark says; measure the losses as each mark passes.

    Args:
        method: what to train.
        parts: of the log.
        setting: its setting, with η constant.
        marks: seconds of training, ascending.
        seed: of the training.
        tick: called with the seconds of training so far.

    Returns:
        ``"seconds"`` at which was measured, ``"train"`` and ``"test"``: the mean over users of the pair losses of the
        training and the test part.
    """
    module, train = method.make(seed, setting), ShownLists.from_log(parts.train)
    found: dict[str, list[float]] = {"seconds": [], "train": [], "test": []}

    def look(seconds: float, steps: int) -> bool:
        tick(min(seconds, marks[-1]))
        if seconds >= marks[len(found["seconds"])]:
            while len(found["seconds"]) < len(marks) and seconds >= marks[len(found["seconds"])]:
                found["seconds"].append(seconds)
                again = len(found["seconds"]) - len(found["train"]) > 1
                found["train"].append(found["train"][-1] if again else evaluate_loss(module.scorer, train))
                found["test"].append(found["test"][-1] if again else evaluate_loss(module.scorer, parts.lists))
        return len(found["seconds"]) == len(marks)

    fit_interactions(module, parts.train, epochs=10**6, steps_per_epoch=50, watch=look)
    return found


def choose_all(names: Sequence[str], parts: Parts, *, seed: int, done: Callable[[str], None]) -> dict[str, Choice]:
    """Choose the settings of methods; ``done`` hears of each."""
    chosen = {}
    for name in names:
        chosen[name] = choose(METHODS[name], parts.fit, parts.val, seed=seed)
        done(name)
    return chosen
