"""Click logs with positions: simulated ones whose propensities are known, and the lists that a ranker learns from."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.data.queries import QueryDataset
from torchrank.errors import DataError, ShapeError, TorchRankError, check_count, check_number, check_option
from torchrank.ops.checks import check_indices, check_tensors
from torchrank.ops.position_bias import check_positions, inverse_propensities, rank_propensities
from torchrank.ops.ragged import ragged_take

LISTS = ("query", "click")


class ClickLog(NamedTuple):
    """What was shown where, and whether it was clicked: a row a document shown.

    Attributes:
        documents: ``(M,)`` int64, the document's number in its dataset.
        positions: ``(M,)`` int64, 1 for the first place.
        clicked: ``(M,)`` boolean.

    Example:
        >>> ClickLog(torch.tensor([4, 2]), torch.tensor([1, 2]), torch.tensor([False, True])).clicked.sum()
        tensor(1)
    """

    documents: Tensor
    positions: Tensor
    clicked: Tensor

    def __repr__(self) -> str:
        return f"ClickLog({len(self.documents)} documents shown, {int(self.clicked.sum())} clicked)"


def simulate_clicks(
    dataset: QueryDataset,
    scores: Tensor,
    *,
    sessions: int,
    eta: float = 1.0,
    noise: float = 0.1,
    temperature: float = 0.0,
    cutoff: int | None = None,
    seed: int = 0,
) -> ClickLog:
    """Show rankings of labelled queries to users who click by the position-based model.

    A session shows a query, drawn uniformly, ranked by ``scores``. A user examines position k with probability
    ``(1 / k)^η`` and clicks an examined document of grade y with probability ``ε + (1 − ε)(2^y − 1) / (2^Y − 1)``, Y
    the highest grade of the data set: the propensities are known.

    Args:
        dataset: queries whose labels are the truth.
        scores: ``(N,)`` by which the logging ranker orders each query's documents; equal ones in input order.
        sessions: rankings shown in all.
        eta: η, the severity of the bias; 0 for none.
        noise: ε, how often an examined document of grade 0 is clicked.
        temperature: Gumbel noise added to the scores, anew in every session, so that rankings are drawn from the
            Plackett–Luce model of ``scores / temperature``; with 0 a query always has the same ranking, and no
            estimator can tell examination from attraction.
        cutoff: show this many documents at most; all by default.
        seed: of everything random.

    Returns:
        a row a document shown, session after session, in order of position.

    Raises:
        ShapeError: scores that are not one finite number a document.
        TorchRankError: an option out of its range.
        DataError: a data set whose labels are all 0 (then nothing attracts more than anything else).

    Source:
        Joachims, Swaminathan & Schnabel (arXiv 1608.04468), §6.1; grades as in Ai et al. (arXiv 1804.05938).

    Example:
        >>> data = QueryDataset(torch.rand(3, 2), torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0, 1, 3]))
        >>> log = simulate_clicks(data, torch.tensor([0.1, 0.2, 0.3]), sessions=3, seed=3)
        >>> log.documents.tolist(), log.positions.tolist()
        ([0, 0, 2, 1], [1, 1, 1, 2])
    """
    check_tensors({"features": dataset.features, "scores": scores})
    if scores.shape != (len(dataset.features),) or not bool(scores.isfinite().all()):
        raise ShapeError(f"scores have shape {tuple(scores.shape)}; give {len(dataset.features)} finite numbers")
    check_number("temperature", temperature, least=0)
    if not 0 <= noise <= 1:
        raise TorchRankError(f"noise={noise!r} must lie in [0, 1]")
    for name, value in (("sessions", sessions), ("cutoff", cutoff)):
        if value is not None:
            check_count(name, value)
    propensities = rank_propensities(int(dataset.lengths.max()), eta)
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randint(len(dataset), (sessions,), generator=generator)
    documents, offsets = ragged_take(dataset.offsets, queries)
    session = torch.repeat_interleave(torch.arange(sessions), offsets.diff())
    utility = scores.double()[documents]
    if temperature > 0:
        uniform = torch.rand(len(documents), generator=generator, dtype=torch.float64).clamp(min=1e-300)
        utility = utility - temperature * (-uniform.log()).log()
    order = utility.argsort(descending=True, stable=True)
    order = order[session[order].argsort(stable=True)]
    documents = documents[order]
    positions = torch.arange(len(documents)) - offsets[session] + 1
    if cutoff is not None:
        shown = positions <= cutoff
        documents, positions = documents[shown], positions[shown]
    chance = propensities[positions - 1] * attraction(dataset.relevance, noise=noise)[documents]
    clicked = torch.rand(len(documents), generator=generator, dtype=torch.float64) < chance
    return ClickLog(documents, positions, clicked)


def attraction(relevance: Tensor, *, noise: float = 0.1) -> Tensor:
    """How often an examined document of each grade is clicked, as :func:`simulate_clicks` has it.

    Args:
        relevance: ``(N,)`` grades of a whole data set.
        noise: ε, of grade 0.

    Returns:
        ``(N,)`` float64.

    Raises:
        DataError: all grades are 0.

    Example:
        >>> attraction(torch.tensor([0.0, 1.0, 2.0])).tolist()
        [0.1, 0.4, 1.0]
    """
    highest = relevance.max().double() if len(relevance) else torch.zeros(())
    if not bool(highest > 0):
        raise DataError("all grades are 0: no document attracts more clicks than another")
    return noise + (1 - noise) * torch.expm1(relevance.double() * _LN2) / torch.expm1(highest * _LN2)


_LN2 = 0.6931471805599453


def click_lists(
    dataset: QueryDataset,
    log: ClickLog,
    *,
    propensities: Tensor | None = None,
    clip: float = 0.0,
    lists: str = "click",
) -> QueryDataset:
    """Lists that a ranker learns from, out of clicks; the data set's own labels are not looked at.

    Any loss ℓ that is a sum over relevant documents, ``Σ_i R_i ℓ_i(s)``, is estimated without bias by the sum over
    clicks of ``ℓ_i(s) / θ``. Both forms give that sum:

    - ``"click"``: a list for every document with a click, in which it alone is relevant, of weight Σ 1 / θ over its
      clicks. For every loss: the loss of a list with one relevant document is ℓ_i.
    - ``"query"``: a list for every query with a click, whose relevance is Σ 1 / θ over each document's clicks and whose
      weight is the sum of these. For losses linear in relevance, as ``SoftmaxLoss(target="relevance")`` is times the
      sum of relevance: the same value for as many lists as there are queries.

    Weights are scaled to a mean of 1. A mean over a batch divides by the batch's weights, which trades a little bias
    for less variance; ``reduction="sum"`` does not.

    Args:
        dataset: the queries that were shown.
        log: the clicks.
        propensities: ``(K,)`` examination probability of positions 1 … K; None takes clicks as they are.
        clip: see :func:`torchrank.ops.inverse_propensities`.
        lists: ``"click"`` or ``"query"``.

    Returns:
        a data set whose ``list_weights`` carry the weights.

    Raises:
        ShapeError: parts of the log that do not fit each other.
        DataError: a document or position that does not exist, or no click.
        TorchRankError: an unknown form, or a clip outside [0, 1].

    Source:
        Joachims, Swaminathan & Schnabel (arXiv 1608.04468), §4 and §5.

    Example:
        >>> data = QueryDataset(torch.rand(3, 2), torch.zeros(3), torch.tensor([0, 1, 3]))
        >>> log = ClickLog(torch.tensor([2, 1, 2]), torch.tensor([1, 2, 2]), torch.tensor([True, True, True]))
        >>> made = click_lists(data, log, propensities=torch.tensor([1.0, 0.5]))
        >>> made.relevance.tolist(), made.list_weights.tolist()
        ([1.0, 0.0, 0.0, 1.0], [0.800000011920929, 1.2000000476837158])
    """
    check_option("lists", lists, LISTS)
    check_tensors({"documents": log.documents, "positions": log.positions, "clicked": log.clicked})
    check_indices("document", log.documents, len(dataset.features))
    check_positions(log.positions)
    if not log.documents.shape == log.positions.shape == log.clicked.shape or log.clicked.dtype != torch.bool:
        raise ShapeError(
            f"documents have shape {tuple(log.documents.shape)}, positions {tuple(log.positions.shape)}, clicked"
            f" {tuple(log.clicked.shape)} and dtype {log.clicked.dtype}; give (M,) each, clicked boolean"
        )
    if not bool(log.clicked.any()):
        raise DataError("the log has no click: there is nothing to learn from")
    documents, positions = log.documents[log.clicked].to(torch.int64), log.positions[log.clicked]
    weights = torch.ones(len(documents), dtype=torch.float64)
    if propensities is not None:
        weights = inverse_propensities(positions, propensities.double(), clip=clip)
    total = torch.bincount(documents, weights=weights, minlength=len(dataset.features))
    owner = torch.repeat_interleave(torch.arange(len(dataset)), dataset.lengths)
    if lists == "query":
        by_query = torch.bincount(owner, weights=total, minlength=len(dataset))
        return _weighted(dataset, (by_query > 0).nonzero().flatten(), total, by_query[by_query > 0])
    chosen = (total > 0).nonzero().flatten()
    first = owner[chosen]
    _, offsets = ragged_take(dataset.offsets, first)
    relevant = torch.zeros(int(offsets[-1]), dtype=torch.float64)
    relevant[offsets[:-1] + chosen - dataset.offsets[first]] = 1
    return _weighted(dataset, first, relevant, total[chosen], taken=True)


def _weighted(
    dataset: QueryDataset, queries: Tensor, relevance: Tensor, weights: Tensor, *, taken: bool = False
) -> QueryDataset:
    """Chosen queries with other relevance (of all documents, or of those taken) and with weights of mean 1."""
    documents, offsets = ragged_take(dataset.offsets, queries)
    return QueryDataset(
        dataset.features[documents],
        relevance if taken else relevance[documents],
        offsets,
        dataset.query_ids[queries],
        dataset.document_ids[documents.numpy()],
        weights / weights.mean(),
    )
