"""The demo's relevance section: a table of losses beside the best attainable, and two figures."""

from rich.console import Console

from torchrank.commands import demo, demo_relevance
from torchrank.losses import ListMLELoss, SLAMLoss


def test_the_section_compares_losses_and_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_relevance, "LOSSES", {"SLAM": SLAMLoss(), "ListMLE": ListMLELoss()})
    monkeypatch.setattr(demo_relevance, "EPOCHS", 6)
    console = Console(record=True, width=120)
    demo_relevance.show_relevance(tmp_path, 0, console)
    shown = console.export_text()
    rows = {line.split("│")[1].strip(): line.split("│")[2:4] for line in shown.splitlines() if line.count("│") == 5}
    best = float(rows["best attainable (the true weights)"][0])
    assert all(best - 0.1 < float(rows[name][0]) < best + 0.02 for name in ("SLAM", "ListMLE"))
    for part in shown.split("bound: ")[1].split(", "):
        if "≤" in part:
            value, bound = part.split()[-3], part.split()[-1]
            assert 0 < float(value) <= float(bound)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["relevance_learning.png", "relevance_perceptron.png"]


def section(out, seed, console):
    (out / f"seed_{seed}.png").write_text("drawn")
    console.print("a table")


def test_the_demo_runs_its_sections_one_after_the_other(tmp_path, monkeypatch, capsys):
    where = "tests.commands.test_demo_relevance:section"
    monkeypatch.setattr(demo, "SECTIONS", {"one": where, "two": where})
    demo.demo(out=str(tmp_path / "new"), seed=3)
    shown = capsys.readouterr().out
    assert shown.count("a table") == 2
    assert "seed_3.png" in shown
