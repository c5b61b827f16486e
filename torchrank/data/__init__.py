"""Readers, datasets and seeded synthetic data."""

# one name a line, sorted
__all__: list[str] = []
