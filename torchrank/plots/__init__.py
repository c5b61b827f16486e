"""Figures; needs the extra torchrank[plots]."""

# one name a line, sorted
__all__: list[str] = []
