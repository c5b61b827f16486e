"""LightningModules and DataModules, and fitting that needs no Lightning; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "BPRModule": "torchrank.training.bpr",
    "ChainModule": "torchrank.training.chain",
    "CurveModule": "torchrank.training.curve",
    "GRU4RecModule": "torchrank.training.gru4rec",
    "InteractionDataModule": "torchrank.training.interaction_data",
    "ListFit": "torchrank.training.list_fitting",
    "ListScores": "torchrank.training.listwise",
    "ListwiseModule": "torchrank.training.listwise",
    "MFModule": "torchrank.training.mf",
    "PerceptronModule": "torchrank.training.perceptron",
    "PublishedEvaluation": "torchrank.training.evaluation",
    "QueryDataModule": "torchrank.training.query_data",
    "RankingCurveRanker": "torchrank.training.curve_estimator",
    "SAROSModule": "torchrank.training.saros",
    "SequenceDataModule": "torchrank.training.sequence_data",
    "SequenceLabels": "torchrank.training.chain",
    "ShownLists": "torchrank.training.lists",
    "SoftmaxModule": "torchrank.training.softmax",
    "StandardEvaluation": "torchrank.training.evaluation",
    "TableDataModule": "torchrank.training.table_data",
    "contributions": "torchrank.training.curve_analysis",
    "evaluate_catalogue": "torchrank.training.evaluation",
    "evaluate_loss": "torchrank.training.evaluation",
    "evaluate_published": "torchrank.training.evaluation",
    "evaluate_shown": "torchrank.training.evaluation",
    "fit_chain": "torchrank.training.chain",
    "fit_curve": "torchrank.training.curve_fitting",
    "fit_interactions": "torchrank.training.interaction_fitting",
    "fit_lists": "torchrank.training.list_fitting",
    "label_sequences": "torchrank.training.chain",
    "leave_one_out": "torchrank.training.curve_analysis",
    "load": "torchrank.training.checkpoint",
    "perceptron_curves": "torchrank.training.online",
    "perceptron_pass": "torchrank.training.online",
    "rank_intervals": "torchrank.training.curve_analysis",
    "recommend": "torchrank.training.recommendation",
    "synthetic_interactions": "torchrank.training.synthetic_data",
    "synthetic_objects": "torchrank.training.table_data",
    "synthetic_queries": "torchrank.training.synthetic_data",
    "synthetic_sequences": "torchrank.training.synthetic_data",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
