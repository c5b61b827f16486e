from rich.console import Console

from torchrank.commands.demo_attributes import show_attributes


def test_the_section_prints_and_draws(tmp_path):
    console = Console(record=True, width=100)
    show_attributes(tmp_path, 0, console)
    said = console.export_text()
    assert "Luxembourg" in said
    assert "CC BY 4.0" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attributes_projections.png", "attributes_scores.png"]
