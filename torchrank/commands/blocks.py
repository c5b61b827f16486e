"""``torchrank blocks``: what a log's SAROS blocks look like, in numbers and figures."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from torchrank.commands.results import target_folder, write_json
from torchrank.data import block_statistics, build_blocks, log_statistics, read_log
from torchrank.ops.blocks import RULES


def blocks(
    log: str,
    *,
    positive_at: float,
    user: str = "user",
    item: str = "item",
    feedback: str = "feedback",
    time: str = "time",
    duplicates: str = "keep",
    train: float = 0.8,
    out: str | None = None,
) -> None:
    """Print the statistics of a log and of its training part's blocks by every rule, and draw their distributions.

    Args:
        log: Parquet (a file or folder), CSV, TSV, or MovieLens' own files.
        positive_at: an item is preferred where its feedback is at least this.
        user: column of user ids.
        item: column of item ids.
        feedback: column of numbers.
        time: column of numbers, dates or moments.
        duplicates: what becomes of a user's further rows of one item: keep, last or error.
        train: share of each user's interactions, the first in time, that the blocks are cut from; 1 for all.
        out: folder for blocks.json and the figures block_counts.png and block_sizes.png.
    """
    whole = read_log(
        log, positive_at=positive_at, user=user, item=item, feedback=feedback, time=time, duplicates=duplicates
    )
    if train == 1:
        parts = {"all": whole}
    else:
        first, second = whole.split_per_user(train=train)
        parts = {"all": whole, "train": first, "test": second}
    logs = {name: log_statistics(part) for name, part in parts.items()}
    cut = {rule: build_blocks(parts.get("train", whole), rule=rule) for rule in RULES}
    counts = {rule: block_statistics(each) for rule, each in cut.items()}
    console = Console()
    _print(console, "log (means over the users who have such an item)", logs)
    _print(console, "blocks by rule (b = min, B = mean count of the users who have blocks)", counts)
    if out is None:
        return
    folder = target_folder(out)
    write_json(folder / "blocks.json", {"log": logs, "blocks": counts})
    if not any(len(each) for each in cut.values()):
        console.print("no user has a block: no figures")
        return
    from torchrank.plots.blocks import plot_block_counts, plot_block_sizes  # matplotlib, an extra
    from torchrank.plots.files import save_figure

    save_figure(plot_block_counts({rule: each.counts for rule, each in cut.items()}), folder / "block_counts.png")
    sizes = {rule: each.other_stop - each.other_start for rule, each in cut.items()}
    save_figure(plot_block_sizes(sizes), folder / "block_sizes.png")
    console.print(f"blocks.json, block_counts.png and block_sizes.png are in {folder}", soft_wrap=True)


def _print(console: Console, title: str, columns: Mapping[str, Mapping[str, float]]) -> None:
    table = Table(title=title)
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    for row in next(iter(columns.values())):
        table.add_row(row.replace("_", " "), *(_text(row, column[row]) for column in columns.values()))
    console.print(table)


def _text(row: str, value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if row in ("sparsity", "mean_preferred", "mean_other") else f"{value:,.2f}"
