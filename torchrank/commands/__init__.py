"""The command line's own commands, one file each: plain typed functions that cli.py exposes."""

# one name a line, sorted
__all__: list[str] = []
