"""Ranking measures: batched functions, and torchmetrics modules over them."""

# one name a line, sorted
__all__: list[str] = []
