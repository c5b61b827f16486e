"""Differentiable ranking for PyTorch and Lightning.

Three jobs with one vocabulary of scores, masks, losses and measures: relevance (order a query's documents), preference
(order items for users from a log), attributes (order objects described by numbers), and exact structured prediction.
"""

from torchrank._lazy import lazy_names

# The most used names, one a line, sorted; every other public name lives in its sub-package.
_NAMES: dict[str, str] = {
    "InteractionLog": "torchrank.data.log",
    "MeanAveragePrecision": "torchrank.metrics.modules",
    "NDCG": "torchrank.metrics.modules",
    "RankingCurve": "torchrank.models.curve",
    "RankingCurveRanker": "torchrank.training.curve_estimator",
    "average_precision": "torchrank.metrics.binary",
    "build_blocks": "torchrank.data.blocks",
    "fit_curve": "torchrank.training.curve_fitting",
    "load": "torchrank.training.checkpoint",
    "ndcg": "torchrank.metrics.gains",
    "read_log": "torchrank.data.log_reading",
    "recommend": "torchrank.training.recommendation",
}
__version__ = "0.1.0"
__all__ = ["__version__", *sorted(_NAMES)]
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
