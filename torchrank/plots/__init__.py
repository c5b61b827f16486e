"""Figures; needs the extra torchrank[plots]; names load when first used."""

from torchrank._lazy import lazy_names

# one name a line, sorted
_NAMES: dict[str, str] = {
    "plot_block_counts": "torchrank.plots.blocks",
    "plot_block_sizes": "torchrank.plots.blocks",
    "plot_by_share": "torchrank.plots.attack",
    "plot_cumulative_loss": "torchrank.plots.learning",
    "plot_fold_accuracy": "torchrank.plots.chain",
    "plot_generalization": "torchrank.plots.generalization",
    "plot_learning_curves": "torchrank.plots.learning",
    "plot_loss_by_time": "torchrank.plots.loss_by_time",
    "plot_measures": "torchrank.plots.comparison",
    "plot_order": "torchrank.plots.attributes",
    "plot_over": "torchrank.plots.comparison",
    "plot_projections": "torchrank.plots.attributes",
    "plot_rank_intervals": "torchrank.plots.attributes",
    "plot_scores": "torchrank.plots.attributes",
    "plot_transitions": "torchrank.plots.chain",
}
__all__ = sorted(_NAMES)
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
