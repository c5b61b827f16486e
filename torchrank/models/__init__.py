"""Scorers and models, every one an nn.Module."""

# one name a line, sorted
__all__: list[str] = []
