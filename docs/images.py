"""Draw the pictures of the README and of these pages: those of ``torchrank demo``, light and dark.

    python docs/images.py

Writes docs/images/NAME-light.png and NAME-dark.png; about a minute on two cores.
"""

import tempfile
from pathlib import Path

import matplotlib.style

from torchrank.commands.demo import demo

FOLDER = Path(__file__).parent / "images"
STYLES = {"light": "default", "dark": "dark_background"}


def main() -> None:
    """Run the demo in each style and keep its figures."""
    FOLDER.mkdir(exist_ok=True)
    for name, style in STYLES.items():
        with tempfile.TemporaryDirectory() as folder, matplotlib.style.context(style):
            demo(out=folder)
            for figure in sorted(Path(folder).glob("*.png")):
                (FOLDER / f"{figure.stem}-{name}.png").write_bytes(figure.read_bytes())


if __name__ == "__main__":
    main()
