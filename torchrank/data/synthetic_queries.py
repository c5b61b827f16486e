"""Seeded queries whose best linear ranker is known."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.data.queries import QueryDataset
from torchrank.errors import TorchRankError, check_count, check_number, check_seed


class SyntheticQueries(NamedTuple):
    """Synthetic queries and what is known about them.

    Attributes:
        dataset: the queries.
        weights: ``(d,)`` unit vector w*, the best linear ranker.
        margin: γ such that x_i·w* ≥ x_j·w* + γ for every pair of one list with a higher grade at i; None where noise
            makes the grades not separable.
        radius: R_X, the longest ‖x‖.

    Example:
        >>> made = make_queries(20, margin=0.1)
        >>> best_scores = made.dataset.features @ made.weights
    """

    dataset: QueryDataset
    weights: Tensor
    margin: float | None
    radius: float

    def __repr__(self) -> str:
        margin = "no margin" if self.margin is None else f"margin {self.margin:g}"
        return f"SyntheticQueries({self.dataset!r}, {margin}, radius {self.radius:.4g})"


def make_queries(
    num_queries: int = 200,
    *,
    num_features: int = 20,
    documents: tuple[int, int] = (5, 40),
    levels: int = 3,
    noise: float = 0.5,
    margin: float | None = None,
    seed: int = 0,
) -> SyntheticQueries:
    """Make queries with a known best linear ranker.

    With noise: features are standard normal, a document's utility is u = x·w* + noise·ε with standard normal ε, and
    grade g covers half of the documents that grade g − 1 leaves (half have grade 0, a quarter grade 1, …, by fixed
    thresholds on u). The expected gain of a document given its features rises with x·w*, so no ranker of any kind has a
    higher expected DCG than w*; the measures of ``features @ weights`` are the best attainable up to chance.

    With a margin: ‖x‖ ≤ 1, the grades are equally likely and lie in bands of x·w* that are γ apart, so w* separates
    every ordered pair by γ. Each such stream meets the condition of the perceptron's bounds, Σ RML ≤ 4R_X²/γ².

    Args:
        num_queries: number of lists.
        num_features: d, at least 2 with a margin.
        documents: shortest and longest list; lengths are uniform between them.
        levels: number of grades, 0 to ``levels`` − 1.
        noise: standard deviation of the noise in utility, in units of the standard deviation of x·w*; without meaning
            for a margin.
        margin: γ; ``levels − 1`` gaps of it must fit between −1 and 1.
        seed: of everything random.

    Returns:
        the dataset, w*, the margin and the radius.

    Raises:
        TorchRankError: an option out of its range.

    Source: the condition is that of Chaudhuri & Tewari (arXiv 1405.0591), §4.

    Example:
        >>> made = make_queries(100, documents=(5, 10), margin=0.1)
        >>> made.dataset.lengths.min().item(), made.dataset.lengths.max().item()
        (5, 10)
        >>> made.radius <= 1
        True
    """
    for name, value, least in (
        ("num_queries", num_queries, 1),
        ("num_features", num_features, 1 if margin is None else 2),
        ("documents[0]", documents[0], 1),
        ("documents[1]", documents[1], documents[0]),
        ("levels", levels, 2),
    ):
        check_count(name, value, least=least)
    check_number("noise", noise, least=0)
    check_seed(seed)
    if margin is not None and not 0 < margin * (levels - 1) < 1.9:
        raise TorchRankError(f"margin={margin} must lie above 0 and below {1.9 / (levels - 1):.3g} for {levels} levels")
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(documents[0], documents[1] + 1, (num_queries,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    total = int(offsets[-1])
    # drawn in double precision, so that the margin survives rounding to float32
    weights = torch.randn(num_features, generator=generator, dtype=torch.float64)
    weights /= weights.norm()
    features = torch.randn(total, num_features, generator=generator, dtype=torch.float64)
    if margin is None:
        utility = features @ weights + noise * torch.randn(total, generator=generator, dtype=torch.float64)
        above = 0.5 ** torch.arange(1, levels, dtype=torch.float64)
        thresholds = torch.special.ndtri(1 - above) * math.sqrt(1 + noise**2)
        relevance = (utility[:, None] > thresholds).sum(-1)
    else:
        relevance = torch.randint(0, levels, (total,), generator=generator)
        features = _banded(features, weights, relevance, levels, margin, generator)
    dataset = QueryDataset(features.float(), relevance.float(), offsets)
    radius = float(dataset.features.double().norm(dim=-1).max())
    return SyntheticQueries(dataset, weights.float(), margin, radius)


def _banded(
    directions: Tensor, weights: Tensor, relevance: Tensor, levels: int, margin: float, generator: torch.Generator
) -> Tensor:
    """Put documents into the unit ball, each grade in its own band of x·w*, the bands a little over γ apart."""
    gap = margin * (1 + 1e-4) + 1e-5  # what float32 takes away
    along, away = torch.rand(2, len(relevance), generator=generator, dtype=torch.float64)
    band = (1.98 - (levels - 1) * gap) / levels
    height: Tensor = -0.99 + relevance * (band + gap) + band * along
    across: Tensor = directions - (directions @ weights)[:, None] * weights
    across = across / across.norm(dim=-1, keepdim=True)
    room: Tensor = (0.9999 - height.square()).sqrt() * away
    return height[:, None] * weights + room[:, None] * across
