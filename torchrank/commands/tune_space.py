"""The search space of ``torchrank tune``: for each key of a config, a range or a list of choices."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchrank.errors import DataError, check_option
from torchrank.training.tuning import read_config


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole numbers where both are."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def whole(self) -> bool:
        """Whether whole numbers are drawn."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def suggest(self, trial: Any, key: str) -> float:
        """Have a trial draw a number."""
        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return int(trial.suggest_int(key, self.low, self.high, log=self.log, step=step))
        return float(trial.suggest_float(key, self.low, self.high, log=self.log, step=self.step))

    def encode(self, value: Any) -> Any:
        """Return a value as a trial holds it, or None where it is none of these."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high or (self.whole and not isinstance(value, int)):
            return None
        return value if self.step is None else None


@dataclass(frozen=True)
class Choices:
    """Some values of any kind."""

    values: tuple[Any, ...]

    def suggest(self, trial: Any, key: str) -> Any:
        """Have a trial draw a value."""
        return json.loads(trial.suggest_categorical(key, [json.dumps(value) for value in self.values]))

    def encode(self, value: Any) -> Any:
        """Return a value as a trial holds it, or None where it is none of these."""
        same = [each for each in self.values if each == value and type(each) is type(value)]
        return json.dumps(same[0]) if same else None


Space = dict[str, Range | Choices]


def read_space(path: str | Path) -> Space:
    """Read a search space.

    Args:
        path: a YAML file of keys of the config, each with ``{low: …, high: …}``, and ``log: true`` or ``step: …`` where
            wanted, or with ``{choices: […]}`` or the list alone.

    Returns:
        the space by key, as spelt.

    Raises:
        DataError: the file is not there or not of this form; the message names key and fix.
    """
    found = {str(key): _read(f"{path}: {key}", value) for key, value in read_config(path).items()}
    if not found:
        raise DataError(f"{path} names no key to search over")
    return found


def _read(where: str, given: Any) -> Range | Choices:
    if isinstance(given, list):
        given = {"choices": given}
    if not isinstance(given, dict):
        raise DataError(f"{where} is {given!r}; give {{low: …, high: …}} or {{choices: […]}}")
    for name in given:
        check_option(f"{where}: key", name, ("low", "high", "log", "step", "choices"))
    if "choices" in given:
        values = given["choices"]
        if len(given) > 1 or not isinstance(values, list) or not values:
            raise DataError(f"{where}: choices must be a list of at least one value, without low, high, log or step")
        return Choices(tuple(values))
    low, high, step = (_number(f"{where}: {name}", given.get(name)) for name in ("low", "high", "step"))
    log = given.get("log", False)
    if low is None or high is None:
        raise DataError(f"{where} needs both low and high, or choices")
    if not low < high:
        raise DataError(f"{where}: low={low:g} must be below high={high:g}")
    if not isinstance(log, bool) or (log and (low <= 0 or step is not None)):
        raise DataError(f"{where}: log must be true or false, and true goes with low above 0 and no step")
    if step is not None and step <= 0:
        raise DataError(f"{where}: step={step:g} must be above 0")
    return Range(low, high, log, step)


def _number(where: str, value: Any) -> int | float | None:
    if isinstance(value, str):  # YAML reads 1e-3 as text
        try:
            return float(value)
        except ValueError:
            raise DataError(f"{where}={value!r} is not a number") from None
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DataError(f"{where}={value!r} is not a number")
    return value
