"""Ranking measures: batched functions, and torchmetrics modules over them."""

from torchrank._lazy import lazy_names
from torchrank.metrics.binary import auc, average_precision, precision, recall
from torchrank.metrics.cascade import err, hit_rate, reciprocal_rank
from torchrank.metrics.gains import mean_ndcg, ndcg
from torchrank.metrics.sequences import position_accuracy, sequence_accuracy

# The modules load torchmetrics, and with it matplotlib, when one is first used.
_NAMES: dict[str, str] = {
    "AUC": "torchrank.metrics.modules",
    "ERR": "torchrank.metrics.modules",
    "HitRate": "torchrank.metrics.modules",
    "MeanAveragePrecision": "torchrank.metrics.modules",
    "MeanNDCG": "torchrank.metrics.modules",
    "MeanReciprocalRank": "torchrank.metrics.modules",
    "NDCG": "torchrank.metrics.modules",
    "PositionAccuracy": "torchrank.metrics.sequence_modules",
    "Precision": "torchrank.metrics.modules",
    "Recall": "torchrank.metrics.modules",
    "SequenceAccuracy": "torchrank.metrics.sequence_modules",
}
# one name a line, sorted
__all__ = [
    *sorted(_NAMES),
    "auc",
    "average_precision",
    "err",
    "hit_rate",
    "mean_ndcg",
    "ndcg",
    "position_accuracy",
    "precision",
    "recall",
    "reciprocal_rank",
    "sequence_accuracy",
]
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
