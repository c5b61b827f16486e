"""Every command that the README and the documentation show is one that the command line takes."""

import functools
import re
import shlex
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from torchrank import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "configs").glob("*.yaml"))]


def shown(page):
    """The words of each command in a page's code, or in a config's comment."""
    text = re.sub(r"\\\n[# ]*", "", page.read_text())
    blocks = [text] if page.suffix == ".yaml" else text.split("```")[1::2]  # what is between fences
    lines = "\n".join(blocks).splitlines()
    for line, answer in pairwise([*lines, ""]):
        found = re.match(r"(?:[#$] *)?torchrank (\w+ .*)$", line)
        if found and not answer.startswith("torchrank "):  # an error shown on purpose
            words = shlex.split(found[1].replace("$TR/", ""), comments=True)
            yield [word for word in words if word != "…"]


COMMANDS = [(page.name, words) for page in PAGES for words in shown(page)]


def test_there_are_some():
    assert {"README.md", "getting-started.md", "slam_linear.yaml"} <= {name for name, _ in COMMANDS}
    assert len(COMMANDS) > 40


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[f"{page}: {' '.join(words)}" for page, words in COMMANDS])
def test_a_shown_command_is_taken(page, words, monkeypatch, capsys, tmp_path):
    configs = [words[place + 1] for place, word in enumerate(words) if word == "--config"]
    if words[0] in cli.LIGHTNING:
        monkeypatch.chdir(ROOT)
        words = [word for word in words if not word.startswith("--print_config")]
        for config in configs:
            if not Path(config).exists():  # made by a command shown before
                words[words.index(config)] = "configs/saros_ml1m.yaml"
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--print_config"])
        assert ended.value.code in (0, None), capsys.readouterr().err
        return
    called = []
    for path, _ in cli.COMMANDS.values():
        module, _, name = path.partition(":")
        function = getattr(import_module(module), name)
        monkeypatch.setattr(
            f"{module}.{name}", functools.wraps(function)(lambda *args, **kwargs: called.append(kwargs))
        )
    try:
        cli.main(words)
    except SystemExit as ended:
        pytest.fail(f"{ended.code}: {capsys.readouterr().err}")
    assert len(called) == 1 or words[0].startswith("-")
