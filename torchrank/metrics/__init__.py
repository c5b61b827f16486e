"""Ranking measures: batched functions, and torchmetrics modules over them."""

from torchrank._lazy import lazy_names
from torchrank.metrics.binary import auc, average_precision, precision, recall
from torchrank.metrics.cascade import err, hit_rate, reciprocal_rank
from torchrank.metrics.gains import mean_ndcg, ndcg
from torchrank.metrics.sequences import position_accuracy, sequence_accuracy
from torchrank.metrics.significance import Comparison, fisher_randomization, paired_bootstrap

# The modules load torchmetrics, and with it matplotlib, when one is first used.
_NAMES: dict[str, str] = {
    "AUC": "torchrank.metrics.modules",
    "ERR": "torchrank.metrics.modules",
    "HitRate": "torchrank.metrics.modules",
    "MeanAveragePrecision": "torchrank.metrics.modules",
    "MeanNDCG": "torchrank.metrics.modules",
    "MeanOverLists": "torchrank.metrics.mean_over_lists",
    "MeanReciprocalRank": "torchrank.metrics.modules",
    "NDCG": "torchrank.metrics.modules",
    "PositionAccuracy": "torchrank.metrics.sequence_modules",
    "Precision": "torchrank.metrics.modules",
    "Recall": "torchrank.metrics.modules",
    "SequenceAccuracy": "torchrank.metrics.sequence_modules",
}
# one name a line, sorted
__all__ = [  # noqa: RUF022 - plainly sorted, as every table of names
    "AUC",
    "Comparison",
    "ERR",
    "HitRate",
    "MeanAveragePrecision",
    "MeanNDCG",
    "MeanOverLists",
    "MeanReciprocalRank",
    "NDCG",
    "PositionAccuracy",
    "Precision",
    "Recall",
    "SequenceAccuracy",
    "auc",
    "average_precision",
    "err",
    "fisher_randomization",
    "hit_rate",
    "mean_ndcg",
    "ndcg",
    "paired_bootstrap",
    "position_accuracy",
    "precision",
    "recall",
    "reciprocal_rank",
    "sequence_accuracy",
]
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
