"""A pass of the ranking perceptron over a stream of lists; no Lightning needed."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError
from torchrank.losses import slam_weights
from torchrank.ops.perceptron import check_perceptron_options, hinges, perceptron_round, plan_lists, take_list
from torchrank.ops.ragged import ragged_to_padded


class PerceptronPass(NamedTuple):
    """What a pass over ``T`` rounds leaves behind.

    Attributes:
        weights: ``(d,)`` after the last round.
        measure_loss: ``(T,)`` 1 − NDCG or 1 − AP of each list before it was learned from, ties against the ranker.
        touched: ``(T,)`` V_t.
        surrogate: ``(T,)`` f_t(w_t).
        squared_step: ``(T,)`` ‖z_t‖².
        comparator_loss: ``(T,)`` f_t(u), zeros without a comparator.
    """

    weights: Tensor
    measure_loss: Tensor
    touched: Tensor
    surrogate: Tensor
    squared_step: Tensor
    comparator_loss: Tensor


def perceptron_pass(
    features: Tensor,
    relevance: Tensor,
    offsets: Tensor,
    *,
    measure: str = "ndcg",
    update: str = "slam",
    active: str = "margin",
    margin: float = 1.0,
    eta: float = 1.0,
    rounds: Tensor | None = None,
    start: Tensor | None = None,
    comparator: Tensor | None = None,
) -> PerceptronPass:
    """Run the perceptron over lists one at a time: ``w ← w − η z`` wherever the measure loss is not 0.

    Args:
        features: ``(N, d)`` floating point, lists one after the other; float64 for bounds to the last digit.
        relevance: ``(N,)`` at least 0.
        offsets: ``(Q + 1,)`` where the lists begin and end.
        measure: the measure whose loss is learned from, ``"ndcg"`` or ``"map"``.
        update: ``"slam"`` (sub-gradient of the SLAM loss) or ``"pair"`` (the worst pair, times the measure loss).
        active: ``"margin"`` (published) or ``"mistakes"`` (rankings do not depend on η).
        margin: Δ.
        eta: step size η.
        rounds: ``(T,)`` list numbers in the order they are met, repeats allowed; each once in order by default.
        start: ``(d,)`` first weights; zeros by default.
        comparator: ``(d,)`` weights u whose loss is recorded for the regret bound.

    Returns:
        the pass.

    Raises:
        ShapeError: shapes that do not fit.
        DataError: features that are not finite.
        TorchRankError: an option that does not exist.

    Source: Chaudhuri & Tewari (arXiv 1405.0591), Algorithm 1; ``update="pair"``: arXiv 1508.00842.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> done = perceptron_pass(x, torch.tensor([1.0, 0.0]), torch.tensor([0, 2]), rounds=torch.tensor([0, 0]))
        >>> done.measure_loss, done.weights
        (tensor([0.3691, 0.0000]), tensor([ 1., -1.]))
    """
    check_perceptron_options(measure=measure, update=update, active=active, eta=eta, margin=margin)
    if features.ndim != 2 or relevance.shape != features.shape[:1] or not features.is_floating_point():
        raise ShapeError(
            f"features are {tuple(features.shape)} {features.dtype}, relevance {tuple(relevance.shape)}; give (N, d) in"
            " floating point and (N,)"
        )
    if not bool(features.isfinite().all()):
        raise DataError("the features hold NaN or infinite values; fill or drop them before learning")
    padded, mask = ragged_to_padded(relevance.to(features.dtype), offsets)
    plan = plan_lists(padded, slam_weights(padded, mask, measure=measure), mask, measure=measure)
    lengths = offsets.diff().tolist()
    plans = [take_list(plan, q, length) for q, length in enumerate(lengths)]
    documents = torch.split(features, lengths)
    u = None if comparator is None else comparator.to(features)
    weights = features.new_zeros(features.shape[1]) if start is None else start.to(features).clone()
    nothing = features.new_zeros(())
    found = []
    for q in range(len(lengths)) if rounds is None else rounds.tolist():
        x, lists = documents[q], plans[q]
        step = perceptron_round(x @ weights, lists, measure=measure, update=update, active=active, margin=margin)
        z = step.coefficients @ x
        weights.sub_(z, alpha=eta)
        compared = nothing if u is None else step.charged @ hinges(x @ u, lists, margin=margin)
        found += [step.measure_loss, step.touched, step.surrogate, z @ z, compared]
    columns = torch.stack(found).view(-1, 5).unbind(1) if found else features.new_zeros(5, 0)
    return PerceptronPass(weights, *columns)
