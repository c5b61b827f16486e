"""The examples of the documentation's pages run, one after the other."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.parametrize(
    "page",
    [
        "chain.md",
        "export.md",
        "large-logs.md",
        "logs.md",
        "next-items.md",
        "position-bias.md",
        "saros.md",
        "training.md",
    ],
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    names = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_prose_is_wrapped(page):
    long = [line for line in page.read_text(encoding="utf-8").splitlines() if len(line) > 140 and line[0] != "|"]
    assert long == []
