"""A pass of the ranking perceptron over a stream of lists; no Lightning needed."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchrank.data import QueryDataset
from torchrank.errors import DataError, ShapeError
from torchrank.losses import slam_weights
from torchrank.ops.checks import check_tensors
from torchrank.ops.perceptron import check_perceptron_options, hinges, perceptron_round, plan_lists, take_list
from torchrank.ops.ragged import ragged_to_padded
from torchrank.theory import perceptron_regret_bound

#: the perceptron's updates by name: the published one, and the two whose rankings do not depend on η
RULES: dict[str, dict[str, Any]] = {
    "slam, margin": {"update": "slam", "active": "margin"},
    "slam, mistakes": {"update": "slam", "active": "mistakes"},
    "pair": {"update": "pair"},
}


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
    check_tensors({"features": features, "relevance": relevance}, rounds=rounds, start=start, comparator=comparator)
    check_tensors({"offsets": offsets})
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
    found, compared = [], []
    for q in range(len(lengths)) if rounds is None else rounds.tolist():
        x, lists = documents[q], plans[q]
        step = perceptron_round(x @ weights, lists, measure=measure, update=update, active=active, margin=margin)
        z = step.coefficients @ x
        weights.sub_(z, alpha=eta)
        found += [step.measure_loss, step.touched, step.surrogate, z @ z]
        if u is not None:
            compared.append(hinges(x @ u, lists, margin=margin) @ step.charged)
    table = torch.stack(found).view(-1, 4) if found else features.new_zeros(0, 4)
    return PerceptronPass(
        weights=weights,
        measure_loss=table[:, 0],
        touched=table[:, 1],
        surrogate=table[:, 2],
        squared_step=table[:, 3],
        comparator_loss=torch.stack(compared) if compared else features.new_zeros(len(table)),
    )


class PerceptronCurve(NamedTuple):
    """How a perceptron fared on a stream, round by round.

    Attributes:
        loss: ``(T,)`` cumulative measure loss.
        bound: ``(T,)`` what it cannot pass.

    Example:
        >>> PerceptronCurve._fields
        ('loss', 'bound')
    """

    loss: Tensor
    bound: Tensor


def perceptron_curves(
    dataset: QueryDataset,
    *,
    comparator: Tensor,
    measure: str = "ndcg",
    margin: float = 1.0,
    eta: float = 1.0,
    rounds: Tensor | None = None,
) -> dict[str, PerceptronCurve]:
    """Run the three updates over one stream, each under its regret bound against one fixed ranker.

    The comparator's scale matters: too short, its hinges stay; too long, its norm costs.

    Args:
        dataset: the lists; computed in double precision.
        comparator: ``(d,)`` weights u, such as a batch solution's.
        measure: ``"ndcg"`` or ``"map"``.
        margin: Δ.
        eta: η of the published rule; the others do not depend on it.
        rounds: ``(T,)`` list numbers in the order they are met; each once in order by default.

    Returns:
        ``"slam, margin"`` (published), ``"slam, mistakes"`` and ``"pair"`` to their curves.

    Raises:
        ShapeError: a comparator of another length than the features.
        TorchRankError: an option that does not exist.

    Example:
        >>> from torchrank.data import make_queries
        >>> made = make_queries(30)
        >>> curves = perceptron_curves(made.dataset, comparator=made.weights)
        >>> all(bool((curve.loss <= curve.bound).all()) for curve in curves.values())
        True
    """
    if comparator.shape != dataset.features.shape[1:]:
        raise ShapeError(f"comparator has shape {tuple(comparator.shape)} for {dataset.num_features} features")
    u = comparator.double()
    curves = {}
    for name, rule in RULES.items():
        options: dict[str, Any] = {**rule, "margin": margin, "eta": eta}
        done = perceptron_pass(
            dataset.features.double(),
            dataset.relevance,
            dataset.offsets,
            measure=measure,
            rounds=rounds,
            comparator=u,
            **options,
        )
        bound = perceptron_regret_bound(
            done.comparator_loss.cumsum(0), float(u.norm()), done.squared_step.cumsum(0), **options
        )
        curves[name] = PerceptronCurve(done.measure_loss.cumsum(0), bound)
    return curves
