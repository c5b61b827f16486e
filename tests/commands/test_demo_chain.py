from rich.console import Console

from torchrank.commands.demo_chain import METHODS, show_chain


def test_chains_beat_single_positions_and_nothing_beats_the_truth(tmp_path):
    console = Console(record=True, width=120)
    show_chain(tmp_path, 0, console)
    rows = [line.split("│") for line in console.export_text().splitlines() if line.startswith("│")]
    positions = {row[1].strip(): float(row[2]) for row in rows}
    assert len(positions) == len(METHODS) + 1
    alone, *chained, best = positions.values()
    assert alone + 0.03 < min(chained[:2])
    assert max(chained) < best + 0.01
    assert (tmp_path / "chain_transitions.png").read_bytes().startswith(b"\x89PNG")
