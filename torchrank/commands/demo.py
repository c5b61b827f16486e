"""``torchrank demo``: train and compare rankers of every school on data that needs no download."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import torch
from rich.console import Console

from torchrank.errors import TorchRankError

# School: the function that shows it, called ``section(out, seed, console)``: it prints its tables and writes its
# figures into ``out``. Imported when its turn comes.
SECTIONS = {
    "relevance: order a query's documents": "torchrank.commands.demo_relevance:show_relevance",
    "preference: order items for users from a log": "torchrank.commands.demo_preference:show_preference",
    "attributes: rank countries without labels": "torchrank.commands.demo_attributes:show_attributes",
    "sequences: label every position of a chain": "torchrank.commands.demo_chain:show_chain",
}


def demo(*, out: str = "demo", seed: int = 0) -> None:
    """Train and compare rankers on synthetic data with a known answer; under a minute on two cores.

    Args:
        out: folder for the figures.
        seed: of everything random.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise TorchRankError(f"out={out!r} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    begin = time.perf_counter()
    with _one_thread():
        for title, where in SECTIONS.items():
            console.rule(f"[bold]{title}")
            module, _, function = where.partition(":")
            with console.status("training …"):
                getattr(import_module(module), function)(folder, seed, console)
    console.rule()
    files = ", ".join(sorted(path.name for path in folder.glob("*.png")))
    console.print(f"{time.perf_counter() - begin:.0f} s; figures in {folder}: {files}")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch on one thread: on tensors this small a second one only waits, and waits for long beside a busy one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
