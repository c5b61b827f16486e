"""What all figures share: the colour of lines that belong to no series, and how they come to be files."""

from pathlib import Path

from matplotlib import rcParams
from matplotlib.figure import Figure


def ink() -> str:
    """Return the colour of axes: black, or what the style in use says (``matplotlib.style.context``)."""
    return str(rcParams["axes.edgecolor"])


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure under a temporary name and give it its name when it is whole.

    Args:
        figure: any figure.
        path: the file; its suffix is the format, such as ``.png`` or ``.svg``.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        figure.savefig(part, format=path.suffix[1:], dpi=150)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
