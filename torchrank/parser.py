"""The argument parser of every command: no abbreviations, and errors of one line that name the nearest option."""

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NoReturn, get_type_hints

from jsonargparse import ArgumentParser

# Lines of jsonargparse's nested messages that say where it looked, not what is wrong.
_FRAME = re.compile(
    r'^(Parser key "[^"]+":|Problem with given class_path .*:|Does not validate against any of the Union subtypes'
    r"|Subtypes: .*|Errors:|Given value.*|Expected a <class 'NoneType'>.*)$"
)
_PATH = re.compile(r"^Expected a path but .* either not accessible or invalid")
_KEYS_OF_CLASSES = ("class_path", "dict_kwargs", "init_args")


class HelpfulParser(ArgumentParser):
    """An argument parser that takes no abbreviations and names the nearest option, key or class to a misspelt one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})

    def take_by_place(self, name: str) -> None:
        """Take the option ``--name`` as a word without a name, which may be left out."""
        action = self._option_string_actions.pop(f"--{name}")
        action.option_strings, action.nargs = [], "?"

    def name_places(self) -> None:
        """Call the words without a name what the usage line calls them."""
        for action in self._get_positional_actions():
            action.metavar = action.dest.upper()

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """End with one line that says which option is wrong and what is nearest, and exit status 2."""
        told = getattr(ex, "subcommand_parser", None) or self
        message = with_hint(message, [o.removeprefix("--") for o in told._option_string_actions])
        if not self.exit_on_error:  # the parser of a nested class: its error becomes part of the outer one's
            super().error(message, ex)
        command = self.prog.replace(" [options]", "")
        sys.stderr.write(f"{command}: {summary(message)}\n{command} --help lists the options.\n")
        self.exit(2)


def with_hint(message: str, options: Iterable[str]) -> str:
    """Add the nearest name to the unknown option, key or class that an error message of jsonargparse names.

    Args:
        message: jsonargparse's.
        options: names the parser knows, without dashes, dots between levels.

    Returns:
        the message, with ``"; did you mean …?"`` behind what is unknown where something is near.

    Example:
        >>> with_hint("Option 'rounsd' is not accepted", ["rounds", "out"])
        "Option 'rounsd' is not accepted; did you mean rounds?"
    """
    if "did you mean" in message:
        return message
    for pattern, find in _UNKNOWN:
        found = re.search(pattern, message)
        if found:
            near = find(*(part or "" for part in found.groups()), known=list(options))
            hint = f"; did you mean {near}?" if near else ""
            return message[: found.end()] + hint + message[found.end() :]
    return message


def _nearest_argument(key: str, rest: str, *, known: list[str]) -> str:
    near = _nearest_key(key, known=known)
    return f"--{near}" if near else ""


def _nearest_key(key: str, *, known: list[str]) -> str:
    """The known key most like one with dots; of a whole misspelt block, only the block's own name counts."""
    parts, known = key.split("."), [*known, *_KEYS_OF_CLASSES]
    heads = {".".join(k.split(".")[:depth]) for k in known for depth in range(1, k.count(".") + 2)}
    for depth in range(1, len(parts) + 1):
        start, tried = ".".join(parts[: depth - 1]), ".".join(parts[:depth])
        if tried not in heads:
            siblings = [h for h in heads if h.count(".") == depth - 1 and h.rpartition(".")[0] == start]
            return _closest(tried, siblings)
    return ""


def _nearest_member(package: str, name: str, *, known: list[str]) -> str:
    package = package.rstrip(".")
    if not package:
        return _closest(name, [m.name for m in iter_modules()])
    try:
        module = import_module(package)
    except ImportError:
        return ""
    members = {*dir(module), *(m.name for m in iter_modules(getattr(module, "__path__", [])))}
    near = _closest(name, [m for m in members if not m.startswith("_")])
    return f"{package}.{near}" if near else ""


def _nearest_class(name: str, *, known: list[str]) -> str:
    public = {n: f"{package}.{n}" for package in _CLASSES for n in dir(import_module(package)) if n[0].isupper()}
    return public.get(_closest(name, list(public)), "")


def _closest(word: str, known: list[str]) -> str:
    return next(iter(get_close_matches(word, sorted(known), n=1)), "")


_CLASSES = ("torchrank.losses", "torchrank.metrics", "torchrank.models", "torchrank.training", "torch.optim")
_UNKNOWN: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"unrecognized arguments: (?:--)?([^\s=]+)(.*)$", _nearest_argument),
    (r"Option '([^']+)' is not accepted", _nearest_key),
    (r"does not accept option '([^']+)'", _nearest_key),
    (r"module '([\w.]+)' has no attribute '(\w+)'", _nearest_member),
    (r"No module named '((?:\w+\.)*)(\w+)'", _nearest_member),
    (r"Expected a dot import path string: (\w+)", _nearest_class),
)


def summary(message: str) -> str:
    r"""Say in one line what a nested message of jsonargparse says.

    Example:
        >>> summary('Parser key "model":\n  Parser key "size":\n    Expected a <class \'int\'>. Got value: big')
        'model.size: expected int, got big'
        >>> tried = "- Expected a path but Los either not accessible or invalid\n- no Los; did you mean Loss?"
        >>> summary(f'Parser key "loss":\n{tried}')
        'loss: no Los; did you mean Loss?'
    """
    where = ".".join(re.findall(r'Parser key "([^"]+)":', message))
    lines = [line.strip().removeprefix("- ") for line in message.splitlines()]
    found = [re.sub(r'^Parser key "[^"]+": ', "", line) for line in lines if line and not _FRAME.match(line)]
    # Of all the types tried, those that know what was meant; a path comes last, since any word might have been one.
    helpful = [line for line in found if "did you mean" in line] or [f for f in found if not _PATH.match(f)]
    found = helpful or found
    text = " or ".join(dict.fromkeys(map(_plain, found))) or "it does not take the value given"
    owner = re.findall(r"Problem with given class_path '(?:[\w.]+\.)?(\w+)'", message)
    # Of an optimiser's option, jsonargparse names the class that takes the optimiser.
    if owner and "expects a function or a callable class" not in message:
        text = re.sub(r"^Option '([^']+)' is not accepted", rf"{owner[-1]} has no option '\1'", text)
        option = re.search(r"has no option '([^'.]+)'", text)
        made = _data_module(owner[-1]) if option and where == "data" else None
        if option and made and option[1] in inspect.signature(made).parameters:
            text = (
                f"{owner[-1]} has no option {option.group(1)!r}; {made.__name__} has: --data {made.__name__} goes first"
            )
    text = re.sub(r"^Subcommand '(\w+)' does not accept option", r"\1 has no option", text)
    given = re.search(r"^\s*Given value: (?![{\[]|Namespace|NestedArg)(.+)$", message, re.MULTILINE)
    if given and "got " not in text and "did you mean" not in text:
        text += f", got {given.group(1)}"
    return f"{where}: {text}" if where else text


def _data_module(name: str) -> type | None:
    """The DataModule that a function of torchrank.training makes, such as the synthetic data of a config."""
    maker = getattr(import_module("torchrank.training"), name, None)
    made = get_type_hints(maker).get("return") if inspect.isfunction(maker) else None
    return made if inspect.isclass(made) else None


def _plain(line: str) -> str:
    line = re.sub(r"^Type .* expects a function or a callable class: ", "", line)
    line = re.sub(r"\. Got value: (Namespace\(|\{|\[).*$", "", line)
    line = re.sub(r"[Ee]xpected an? <class '(?:\w+\.)*(\w+)'>", r"expected \1", line)
    return re.sub(r"\. Got value: ", ", got ", line)
