"""The command line around plain functions: flags, repeated lists, hints, and errors without a traceback."""

from pathlib import Path

import pytest

from torchrank import cli
from torchrank.data import InteractionLog
from torchrank.errors import DataError


def command(table: Path, *, higher: list[str] = [], rounds: int = 3, report: bool = False) -> None:  # noqa: B006
    """Print what was given.

    Args:
        table: a positional path.
        higher: a repeated option.
        rounds: a number.
        report: a flag.
    """
    if rounds == 0:
        raise DataError("rounds=0: give at least 1")
    print(table, higher, rounds, report)


def run(*words):
    cli.run_function(command, words, prog="torchrank command")


def hyphens(*, positive_at: float, list_of: list[str] = []) -> None:  # noqa: B006
    """Print what was given.

    Args:
        positive_at: an option of two words.
        list_of: a repeated one.
    """
    print(positive_at, list_of)


def test_options_of_two_words_take_hyphens_and_underscores(capsys):
    cli.run_function(hyphens, ["--positive-at", "3", "--list-of=a-b", "--list_of", "c"], prog="torchrank command")
    cli.run_function(hyphens, ["--positive_at=3"], prog="torchrank command")
    assert capsys.readouterr().out == "3.0 ['a-b', 'c']\n3.0 []\n"


def optional_first(table: str | None = None, *, positive_at: float, size: int = 3) -> None:
    """Print what was given.

    Args:
        table: may be left out.
        positive_at: must be given.
        size: may be.
    """
    print(table, positive_at, size)


def several(logs: list[str], *, size: int = 3) -> None:
    """Print what was given.

    Args:
        logs: one or more.
        size: a number.
    """
    print(logs, size)


@pytest.mark.parametrize(
    ("function", "usage"),
    [
        (optional_first, "[TABLE] --positive-at POSITIVE_AT [OPTION…]"),
        (several, "LOGS… [OPTION…]"),
        (command, "TABLE [OPTION…]"),
    ],
)
def test_the_usage_line_says_what_comes_first_and_what_is_needed(function, usage, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.run_function(function, ["--help"], prog="torchrank command")
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert shown.startswith(f"usage: torchrank command {usage}\n")
    assert "--table" not in shown
    assert f"\n  {usage.partition(' ')[0].strip('[]…')} " in shown


def test_a_first_word_may_be_left_out(capsys):
    cli.run_function(optional_first, ["a.csv", "--positive-at", "1", "--size=4"], prog="torchrank command")
    cli.run_function(optional_first, ["--positive-at", "1"], prog="torchrank command")
    assert capsys.readouterr().out == "a.csv 1.0 4\nNone 1.0 3\n"


def test_positional_lists_and_flags(capsys):
    run("a.csv", "--higher", "x", "--rounds", "5", "--higher=y", "--report")
    assert capsys.readouterr().out == "a.csv ['x', 'y'] 5 True\n"
    run("a.csv", "--report", "false")
    assert capsys.readouterr().out == "a.csv [] 3 False\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.csv", "--round", "5"], "did you mean --rounds?"),
        (["a.csv", "--rounsd", "5"], "did you mean --rounds?"),
        (["a.csv", "--hihger", "x"], "did you mean --higher?"),
        (["a.csv", "--rounds", "many"], "rounds"),
        ([], "table"),
    ],
)
def test_a_wrong_option_is_named_with_the_nearest(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_an_error_of_the_library_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "command", ("tests.test_cli:command", "a test"))
    with pytest.raises(SystemExit) as ended:
        cli.main(["command", "a.csv", "--rounds", "0"])
    assert ended.value.code == "torchrank: rounds=0: give at least 1"


def test_the_overview_lists_every_command(capsys):
    cli.main([])
    shown = capsys.readouterr().out
    for name in [*cli.LIGHTNING, *cli.COMMANDS]:
        assert name in shown


@pytest.mark.parametrize(("word", "near"), [("fitt", "'fit'"), ("valdate", "'validate'")])
def test_a_misspelt_command_names_the_nearest(word, near):
    with pytest.raises(SystemExit) as ended:
        cli.main([word])
    assert str(ended.value.code).endswith(f"did you mean {near}?\ntorchrank --help lists the commands.")
    assert str(ended.value.code).count("\n") == 1


def test_every_command_exists_and_every_parameter_is_described():
    import inspect
    from importlib import import_module

    for name, (target, line) in cli.COMMANDS.items():
        module, _, function = target.partition(":")
        found = getattr(import_module(module), function)
        text = inspect.getdoc(found)
        assert line, name
        for parameter in inspect.signature(found).parameters:
            assert f"{parameter}:" in text, f"torchrank {name}: {parameter} is not described"


TABLE = "name,good,bad\na,1,2\nb,,3\nc,3,1\nd,2,2\n"
REMEDIES = [
    (["rank", "t.csv"], "--higher … for columns of which more is better, --lower … for less"),
    (["rank", "t.csv", "--higher", "good"], "rank by what is observed: --missing observed"),
    (["rank", "t.csv", "--higher", "name"], "--separator … or --decimal-comma"),
    (["blocks", "t.csv", "--positive-at", "1"], "name yours with --user …"),
    (["data", "prepare", "t.csv", "--positive-at", "1", "--out", "out"], "name yours with --user …"),
]


@pytest.mark.parametrize(("words", "said"), REMEDIES)
def test_a_remedy_is_spelt_as_it_is_typed(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE)
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert said in str(ended.value.code)
    with pytest.raises(DataError, match="name yours with user=…"):  # in Python, as in Python
        InteractionLog.from_csv("t.csv", positive_at=1)
