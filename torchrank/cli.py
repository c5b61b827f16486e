"""The ``torchrank`` command: Lightning's fit, validate, test and predict, and torchrank's own commands.

A command is a plain typed function with a docstring, in a module of its own under ``torchrank.commands``; its
parameters are the command's arguments. Nothing heavy is imported until a command runs.
"""

import inspect
import json
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from typing import Any, TypeGuard, get_origin, get_type_hints

from torchrank.errors import TorchRankError, options_of_command
from torchrank.parser import HelpfulParser

# command (one or two words): (function, one line for the overview); one a line, sorted
COMMANDS: dict[str, tuple[str, str]] = {
    "blocks": ("torchrank.commands.blocks:blocks", "statistics and figures of a log and its SAROS blocks"),
    "data": ("torchrank.commands.data:data", "download a public data set, checked"),
    "data prepare": ("torchrank.commands.data_prepare:data_prepare", "sort and partition a log of any size on disk"),
    "demo": ("torchrank.commands.demo:demo", "train and compare rankers on synthetic data with a known answer"),
    "export": ("torchrank.commands.export:export", "a trained model as ONNX, its vectors for nearest-neighbour search"),
    "rank": ("torchrank.commands.rank:rank", "objects of several attributes, without labels, best to worst"),
    "recommend": ("torchrank.commands.recommend:recommend", "the best unseen items of many users, from a checkpoint"),
    "reproduce bias": ("torchrank.commands.reproduce_bias:reproduce_bias", "learning from biased clicks, on MQ2008"),
    "reproduce bots": ("torchrank.commands.reproduce_bots:reproduce_bots", "SAROS' thresholds against bots"),
    "reproduce chain": ("torchrank.commands.reproduce_chain:reproduce_chain", "linear chains on handwritten words"),
    "reproduce curve": ("torchrank.commands.reproduce_curve:reproduce_curve", "ranking curves on the published tables"),
    "reproduce saros": ("torchrank.commands.reproduce_saros:reproduce_saros", "SAROS, BPR and others on one log"),
    "reproduce slam": ("torchrank.commands.reproduce_slam:reproduce_slam", "rankers of documents on LETOR's MQ2008"),
    "tune": ("torchrank.commands.tune:tune", "search for a config's best values on its validation part"),
}
LIGHTNING = {
    "fit": "train a model from a config",
    "predict": "score with a trained model, write a run file and Parquet",
    "test": "measure a trained model on the test part",
    "validate": "measure a trained model on the validation part",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line.

    Args:
        argv: the words after ``torchrank``; those of the process by default.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return
    try:
        _dispatch(words)
    except TorchRankError as error:
        sys.exit(f"torchrank: {error}")
    except KeyboardInterrupt:
        sys.exit("torchrank: interrupted")


def _dispatch(words: list[str]) -> None:
    if words[0] in LIGHTNING:
        import_module("torchrank.training.lightning_cli").run(words)
        return
    for size in (2, 1):
        name = " ".join(words[:size])
        if name in COMMANDS:
            module, _, function = COMMANDS[name][0].partition(":")
            run_function(getattr(import_module(module), function), words[size:], prog=f"torchrank {name}")
            return
    group = [c for c in COMMANDS if c.split()[0] == words[0]]
    if group:
        sys.exit(f"torchrank {words[0]}: name one of {', '.join(c.split()[1] for c in group)}")
    known = [*LIGHTNING, *dict.fromkeys(c.split()[0] for c in COMMANDS)]
    near = get_close_matches(words[0], known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    sys.exit(f"torchrank: there is no command {words[0]!r}{hint}\ntorchrank --help lists the commands.")


def run_function(function: Callable[..., None], words: Sequence[str], *, prog: str) -> None:
    """Parse ``words`` by a function's signature and call it.

    Parameters without a default are positional, and so is a first word for one before the ``*``; a first one that is a
    ``list`` takes all words before the options; ``list`` options may be repeated (``--higher a --higher b``); ``bool``
    options are flags.
    """
    parser = HelpfulParser(prog=prog, description=inspect.getdoc(function).split("\n")[0])  # type: ignore[union-attr]
    parser.add_function_arguments(function, as_positional=True, fail_untyped=True)
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if _may_come_first(first):
        parser.take_by_place(first.name)
    parser.name_places()
    parser.usage = f"%(prog)s {_usage(function)}"
    arguments = parser.parse_args(_plain_words(function, words))
    with options_of_command(get_type_hints(function)):
        function(**parser.instantiate_classes(arguments).as_dict())


def _usage(function: Callable[..., None]) -> str:
    """What must be given, in order, and what may come first: ``TABLE… --positive-at POSITIVE_AT [OPTION…]``."""
    hints, shown = get_type_hints(function), []
    for place, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        word = name.upper()
        if parameter.default is not parameter.empty:
            shown += [f"[{word}]"] if place == 0 and _may_come_first(parameter) else []
        elif parameter.kind is parameter.KEYWORD_ONLY:
            shown.append(f"--{name.replace('_', '-')} {word}")
        else:
            shown.append(f"{word}…" if get_origin(hints[name]) is list else word)
    return " ".join([*shown, "[OPTION…]"])


def _plain_words(function: Callable[..., None], words: Sequence[str]) -> list[str]:
    """Spell repeated list options, bare flags and hyphens (``--positive-at``) the way jsonargparse reads them."""
    hints = get_type_hints(function)
    hyphened = {f"--{n}".replace("_", "-"): f"--{n}" for n in hints}
    lists = {f"--{n}" for n, t in hints.items() if get_origin(t) is list}
    flags = {f"--{n}" for n, t in hints.items() if t is bool}
    out = []
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if words and first is not None and _is_positional_list(first, hints):
        several = list(takewhile(lambda word: not word.startswith("-"), words))
        words = [*([json.dumps(several)] if several else []), *words[len(several) :]]
    for i, given in enumerate(words):
        name, equals, value = given.partition("=")
        word = hyphened.get(name, name) + equals + value
        following = words[i + 1] if i + 1 < len(words) else "--"
        if word in flags and following not in ("true", "false"):
            out.append(f"{word}=true")
        elif word.partition("=")[0] in lists:
            name, equals, value = word.partition("=")
            out.append(f"{name}+{equals}{value}")
        else:
            out.append(word)
    return out


def _may_come_first(parameter: inspect.Parameter | None) -> TypeGuard[inspect.Parameter]:
    """Whether a command's first argument may be left out."""
    return (
        parameter is not None
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and parameter.default is not parameter.empty
    )


def _is_positional_list(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    """Whether a command's first argument is one or more words."""
    return parameter.kind is parameter.POSITIONAL_OR_KEYWORD and get_origin(hints[parameter.name]) is list


def _overview() -> str:
    rows = {**LIGHTNING, **{name: text for name, (_, text) in COMMANDS.items()}}
    width = max(map(len, rows))
    lines = [f"  {name:<{width}}  {text}" for name, text in sorted(rows.items())]
    return "usage: torchrank COMMAND [OPTION…]\n\n" + "\n".join(lines) + "\n\ntorchrank COMMAND --help says more."
