"""``torchrank demo``: train and compare rankers of every school on data that needs no download."""

import time
from importlib import import_module

from rich.console import Console

from torchrank.commands.results import target_folder
from torchrank.commands.workers import one_thread

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
    folder = target_folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    begin = time.perf_counter()
    with one_thread():
        for title, where in SECTIONS.items():
            console.rule(f"[bold]{title}")
            module, _, function = where.partition(":")
            with console.status("training …"):
                getattr(import_module(module), function)(folder, seed, console)
    console.rule()
    files = ", ".join(sorted(path.name for path in folder.glob("*.png")))
    console.print(f"{time.perf_counter() - begin:.0f} s; figures in {folder}: {files}")
