"""Scorers and models, every one an nn.Module."""

from torchrank.models.scorers import AttentionScorer, LinearScorer, MLPScorer

# one name a line, sorted
__all__: list[str] = [
    "AttentionScorer",
    "LinearScorer",
    "MLPScorer",
]
