"""``python -m torchrank`` is the ``torchrank`` command."""

from torchrank.cli import main

if __name__ == "__main__":
    main()
