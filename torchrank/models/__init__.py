"""Scorers and models, every one an nn.Module."""

from torchrank.models.ease import EASE
from torchrank.models.factorization import Factorization
from torchrank.models.feedback import FeedbackFactorization
from torchrank.models.popularity import ItemRate, MostPop
from torchrank.models.scorers import AttentionScorer, LinearScorer, MLPScorer

# one name a line, sorted
__all__: list[str] = [
    "EASE",
    "AttentionScorer",
    "Factorization",
    "FeedbackFactorization",
    "ItemRate",
    "LinearScorer",
    "MLPScorer",
    "MostPop",
]
