"""Pure tensor mathematics and compiled loops underneath everything else; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "PositionBias": "torchrank.ops.position_bias",
    "arc_length": "torchrank.ops.bezier",
    "bezier_curve": "torchrank.ops.bezier",
    "chain_marginals": "torchrank.ops.chain_partition",
    "cost_augmented_viterbi": "torchrank.ops.chain",
    "fit_position_bias": "torchrank.ops.position_bias",
    "inverse_propensities": "torchrank.ops.position_bias",
    "log_partition": "torchrank.ops.chain_partition",
    "log_partition_scan": "torchrank.ops.chain_scan",
    "padded_to_ragged": "torchrank.ops.ragged",
    "position_scores": "torchrank.ops.chain",
    "project": "torchrank.ops.projection",
    "ragged_index": "torchrank.ops.ragged",
    "ragged_take": "torchrank.ops.ragged",
    "ragged_to_padded": "torchrank.ops.ragged",
    "rank_propensities": "torchrank.ops.position_bias",
    "viterbi": "torchrank.ops.chain",
    "viterbi_scan": "torchrank.ops.chain_scan",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
