"""``torchrank tune``: search for good values of a config's keys on its validation part."""

import csv
import io
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from torchrank.commands.results import progress_bar, target_folder, write_text
from torchrank.commands.tune_space import Choices, Space, read_space
from torchrank.errors import TorchRankError, as_option, check_option
from torchrank.training.tuning import (
    TrialFailed,
    find_key,
    known_keys,
    monitored,
    read_config,
    run_trial,
    with_values,
)

_SHOWN = 10


def tune(
    *,
    config: str,
    space: str,
    trials: int,
    out: str,
    monitor: str | None = None,
    mode: str | None = None,
    seed: int = 0,
) -> None:
    """Train a config again and again with other values, and write the best ones as a config.

    Every trial trains on the training part and is judged by the best value of the monitor on the validation part; the
    test part is not looked at. A search that was interrupted goes on where it stopped when it is started again, and
    goes on further with more trials.

    Args:
        config: a config of torchrank fit. Its checkpoints, loggers and learning-rate monitors are left out of trials.
        space: YAML file of keys of the config, such as model.init_args.eta (or model.eta), each with {low: 0.01, high:
            1.0, log: true}, {low: 8, high: 64, step: 8} or {choices: [a, b]}.
        trials: trials in all. The first has the config's own values where they lie in the space.
        out: folder for best.yaml, trials.csv and the search itself, study.sqlite.
        monitor: what counts, such as val_loss; what the config's early stopping or checkpoints monitor by default.
        mode: min or max; the config's own where it monitors the same.
        seed: of the search. The trials' own seed is the config's seed_everything.
    """
    optuna = _optuna()
    if trials < 1:
        raise TorchRankError(f"trials={trials} must be at least 1")
    target = target_folder(out)
    content, asked = read_config(config), read_space(space)
    known = known_keys(content)
    searched = {find_key(key, known): each for key, each in asked.items()}
    monitor, mode = _objective(content, monitor, mode)
    for key, each in searched.items():
        _try_parse(content, key, each)
    begin = not (target / "study.sqlite").exists()
    target.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name="torchrank",
        storage=f"sqlite:///{(target / 'study.sqlite').resolve()}",
        load_if_exists=True,
        direction={"min": "minimize", "max": "maximize"}[mode],
    )
    about = json.dumps([content, {k: repr(v) for k, v in searched.items()}, monitor, mode, seed], default=str)
    if not begin and study.user_attrs.get("search") != about:
        raise TorchRankError(
            f"{target} holds a search of another config, space, monitor or seed; give another out, or remove it"
        )
    study.set_user_attr("search", about)
    try:
        _search(optuna, study, content, searched, known, trials, monitor, mode, seed)
    finally:
        _write_trials(target, study, searched, monitor)
    if not _complete(study):
        if begin:
            reason = next((t.user_attrs["error"] for t in study.trials if "error" in t.user_attrs), "")
            raise TorchRankError(f"all {trials} trials failed, the first with: {reason}; see {target / 'trials.csv'}")
        raise TorchRankError(f"no trial of {target} has succeeded; see {target / 'trials.csv'}")
    _report(target, study, content, searched, monitor)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise TorchRankError("tune searches by Optuna: pip install 'torchrank[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _objective(content: Mapping[str, Any], monitor: str | None, mode: str | None) -> tuple[str, str]:
    """Return what counts and whether its least or its most is best."""
    own = monitored(content)
    if monitor is None:
        if own is None:
            raise TorchRankError(f"the config monitors nothing; say {as_option('monitor')}, such as val_loss")
        monitor = own[0]
    if mode is None:
        if own is not None and own[0] == monitor:
            mode = own[1]
        elif "loss" in monitor:
            mode = "min"
        else:
            raise TorchRankError(f"say whether the least or the most {monitor} is best: mode=min or mode=max")
    check_option("mode", mode, ("min", "max"))
    return monitor, mode


def _try_parse(content: Mapping[str, Any], key: str, each: Any) -> None:
    """Have the parser refuse a value that cannot be, before anything is trained."""
    for value in each.values if isinstance(each, Choices) else (each.low, each.high):
        known_keys(with_values(content, {key: value}))


def _search(
    optuna: Any,
    study: Any,
    content: Mapping[str, Any],
    space: Space,
    known: Mapping[str, Any],
    trials: int,
    monitor: str,
    mode: str,
    seed: int,
) -> None:
    failed, running, waiting = (getattr(optuna.trial.TrialState, name) for name in ("FAIL", "RUNNING", "WAITING"))
    for left in study.get_trials(deepcopy=False, states=(running,)):
        study.tell(left.number, state=failed)  # a run that was killed; its trial does not count
    own = {key: each.encode(known.get(key)) for key, each in space.items()}
    usable = all(value is not None for value in own.values())
    with progress_bar(remaining=True) as progress:
        bar = progress.add_task("searching", total=trials, completed=min(trials, len(_finished(study))))
        while (done := len(_finished(study))) < trials:
            # what a trial draws depends on the seed and the trials before it, not on where the search was interrupted
            study.sampler = optuna.samplers.TPESampler(seed=seed * 1_000_003 + done)
            if done == 0 and usable and not study.get_trials(deepcopy=False, states=(waiting,)):
                study.enqueue_trial(own)
            trial = study.ask()
            values = {key: each.suggest(trial, key) for key, each in space.items()}
            begin = time.perf_counter()
            try:
                value = run_trial(with_values(content, values), monitor, mode)
            except TrialFailed as error:
                trial.set_user_attr("error", str(error))
                study.tell(trial, state=failed)
            except BaseException:
                with suppress(Exception):
                    study.tell(trial, state=failed)
                raise
            else:
                trial.set_user_attr("seconds", time.perf_counter() - begin)
                study.tell(trial, value)
            best = f", best {monitor} {study.best_value:.5g}" if _complete(study) else ""
            progress.update(bar, advance=1, description=f"searching{best}")


def _complete(study: Any) -> list[Any]:
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]


def _finished(study: Any) -> list[Any]:
    """Trials that count: those with a value, and those that failed by themselves."""
    return [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE" or "error" in t.user_attrs]


def _values(trial: Any, space: Space) -> dict[str, Any]:
    return {
        key: json.loads(trial.params[key]) if isinstance(each, Choices) else trial.params[key]
        for key, each in space.items()
    }


def _write_trials(target: Path, study: Any, space: Space, monitor: str) -> None:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", monitor, "seconds", *space, "error"])
    for number, trial in enumerate(_finished(study), 1):
        seconds = trial.user_attrs.get("seconds")
        rows.writerow(
            [
                number,
                "" if trial.value is None else repr(trial.value),
                "" if seconds is None else f"{seconds:.2f}",
                *(json.dumps(value) for value in _values(trial, space).values()),
                trial.user_attrs.get("error", ""),
            ]
        )
    write_text(target / "trials.csv", text.getvalue())


def _report(target: Path, study: Any, content: Mapping[str, Any], space: Space, monitor: str) -> None:
    finished = _finished(study)
    numbers = {trial.number: number for number, trial in enumerate(finished, 1)}
    best = study.best_trial
    head = f"# trial {numbers[best.number]} of {len(finished)}: {monitor} {best.value:.6g}\n"
    text = yaml.safe_dump(with_values(content, _values(best, space)), sort_keys=False, allow_unicode=True)
    write_text(target / "best.yaml", head + text)
    ranked = sorted(_complete(study), key=lambda trial: trial.value, reverse=study.direction.name == "MAXIMIZE")
    table = Table("trial", monitor, "seconds", *space, title=f"best of {len(finished)} trials")
    for trial in ranked[:_SHOWN]:
        values = (f"{v:.4g}" if isinstance(v, float) else json.dumps(v) for v in _values(trial, space).values())
        seconds = trial.user_attrs.get("seconds", 0.0)
        table.add_row(str(numbers[trial.number]), f"{trial.value:.5g}", f"{seconds:.1f}", *values)
    console = Console()
    console.print(table)
    console.print(
        f"best.yaml and trials.csv are in {target}: torchrank fit --config {target / 'best.yaml'}", soft_wrap=True
    )
