"""Losses: a pure function and a thin module over it in one file each."""

# one name a line, sorted
__all__: list[str] = []
