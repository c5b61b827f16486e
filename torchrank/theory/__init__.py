"""The theorems behind the library, one function each."""

from torchrank.theory.equivariance import equivariant_linear_maps, split_equivariant_map
from torchrank.theory.generalization import generalization_bound, regularization_strength
from torchrank.theory.lipschitz import score_lipschitz
from torchrank.theory.meta_rules import FittedRanking, RuleCheck, check_meta_rules
from torchrank.theory.perceptron import perceptron_loss_bound, perceptron_regret_bound
from torchrank.theory.saros import block_variance_ratio, saros_convergence_bound, saros_step_size
from torchrank.theory.tightness import bounds_average_precision, tight_map_weights

# one name a line, sorted
__all__ = [
    "FittedRanking",
    "RuleCheck",
    "block_variance_ratio",
    "bounds_average_precision",
    "check_meta_rules",
    "equivariant_linear_maps",
    "generalization_bound",
    "perceptron_loss_bound",
    "perceptron_regret_bound",
    "regularization_strength",
    "saros_convergence_bound",
    "saros_step_size",
    "score_lipschitz",
    "split_equivariant_map",
    "tight_map_weights",
]
