"""Scorers and models, every one an nn.Module; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "AttentionScorer": "torchrank.models.scorers",
    "EASE": "torchrank.models.ease",
    "Factorization": "torchrank.models.factorization",
    "FeedbackFactorization": "torchrank.models.feedback",
    "GRU4Rec": "torchrank.models.gru4rec",
    "ItemRate": "torchrank.models.popularity",
    "LinearChain": "torchrank.models.chain",
    "LinearScorer": "torchrank.models.scorers",
    "MLPScorer": "torchrank.models.scorers",
    "MostPop": "torchrank.models.popularity",
    "Prod2Vec": "torchrank.models.prod2vec",
    "RankingCurve": "torchrank.models.curve",
    "Served": "torchrank.models.serving",
    "TopItems": "torchrank.models.serving",
    "fold_in_vectors": "torchrank.models.fold_in",
    "search_vectors": "torchrank.models.serving",
    "serve": "torchrank.models.serving",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
