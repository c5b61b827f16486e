"""Whether one ranker is better than another: tests on their values per list, which need no normal distribution."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError, TorchRankError, check_count

#: numbers drawn at a time
_CHUNK = 1 << 22


class Comparison(NamedTuple):
    """How the first of two rankers compares with the second.

    Attributes:
        difference: mean of the first less the second over the lists.
        low: lower end of the difference's confidence interval.
        high: its upper end.
        p_value: probability of a difference at least as far from 0, either way, if the rankers were equally good.
        lists: lists compared: those on which both have a value.

    Example:
        >>> fisher_randomization(torch.tensor([0.5, 0.7]), torch.tensor([0.5, float("nan")])).lists
        1
    """

    difference: float
    low: float
    high: float
    p_value: float
    lists: int


def paired_bootstrap(
    first: Tensor, second: Tensor, *, samples: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> Comparison:
    """Compare two rankers by drawing lists with replacement.

    The interval holds the middle ``confidence`` of the mean differences of the draws; the p-value is the share of draws
    whose mean is as far from the observed difference as that is from 0.

    Args:
        first: ``(N,)`` the first ranker's value on each list, NaN where it has none.
        second: ``(N,)`` the second's, on the same lists.
        samples: draws.
        confidence: between 0 and 1.
        seed: of the draws.

    Returns:
        the comparison.

    Raises:
        ShapeError: the values are not two vectors of one length.
        DataError: no list has a value of both.
        TorchRankError: a bad number of samples or confidence.

    Source: Efron & Tibshirani, An Introduction to the Bootstrap (1993), §13.3 and §16.4; Sakai (SIGIR 2006).

    Example:
        >>> better = torch.tensor([0.9, 0.7, 0.8, 0.9]), torch.tensor([0.4, 0.3, 0.2, 0.4])
        >>> result = paired_bootstrap(*better)
        >>> round(result.difference, 3), result.low > 0
        (0.5, True)
    """
    differences = _differences(first, second, samples, confidence)
    lists, mean = len(differences), differences.mean()
    generator = torch.Generator().manual_seed(seed)
    means = torch.cat(
        [
            differences[torch.randint(lists, (rows, lists), generator=generator)].mean(-1)
            for rows in _chunks(samples, lists)
        ]
    )
    tail = (1 - confidence) / 2
    low, high = means.quantile(torch.tensor([tail, 1 - tail], dtype=means.dtype)).tolist()
    return Comparison(mean.item(), low, high, _share((means - mean).abs(), mean.abs()), lists)


def fisher_randomization(
    first: Tensor, second: Tensor, *, samples: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> Comparison:
    """Compare two rankers by exchanging their values list by list, at random.

    The interval holds the shifts δ that the same test, on the first ranker's values less δ, would not refuse.

    Args:
        first: ``(N,)`` the first ranker's value on each list, NaN where it has none.
        second: ``(N,)`` the second's, on the same lists.
        samples: random exchanges.
        confidence: between 0 and 1.
        seed: of the exchanges.

    Returns:
        the comparison; an end of the interval is infinite where too few lists differ to bound it.

    Raises:
        ShapeError: the values are not two vectors of one length.
        DataError: no list has a value of both.
        TorchRankError: a bad number of samples or confidence.

    Source: Fisher, The Design of Experiments (1935), §21; Smucker, Allan & Carterette (CIKM 2007).

    Example:
        >>> same = torch.linspace(0, 1, 50)
        >>> fisher_randomization(same, same.flip(0)).p_value > 0.9
        True
    """
    differences = _differences(first, second, samples, confidence)
    lists, mean = len(differences), differences.mean()
    generator = torch.Generator().manual_seed(seed)
    exchanged, balance = [], []
    for rows in _chunks(samples, lists):
        signs = torch.randint(2, (rows, lists), generator=generator).to(differences).mul_(2).sub_(1)
        exchanged.append(signs @ differences / lists)
        balance.append(signs.mean(-1))
    mean_exchanged, mean_sign = torch.cat(exchanged), torch.cat(balance)
    # With every difference less δ = mean + t, an exchange is as extreme as no exchange if |u − e t| ≥ |t|, u being its
    # mean less e · mean and e its mean sign: for t between −u/(1 − e) and u/(1 + e), whichever is the lower.
    rest = mean_exchanged - mean_sign * mean
    ends = torch.stack([rest / (1 + mean_sign), -rest / (1 - mean_sign)])
    # every list kept, or every list exchanged, is as extreme under any shift
    unbounded = mean_sign.abs() == 1
    below = torch.where(unbounded, -torch.inf, ends.amin(0)).sort().values
    above = torch.where(unbounded, torch.inf, ends.amax(0)).sort(descending=True).values
    # t is refused once (1 + exchanges as extreme)/(1 + samples), the p-value, is at most 1 − confidence
    last = max(int((1 - confidence) * (1 + samples)), 1) - 1
    p_value = _share(mean_exchanged.abs(), mean.abs())
    return Comparison(mean.item(), (mean + below[last]).item(), (mean + above[last]).item(), p_value, lists)


def _differences(first: Tensor, second: Tensor, samples: int, confidence: float) -> Tensor:
    """``(N,)`` float64 differences on the lists that both rankers have a value on."""
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(
            f"the values have shapes {tuple(first.shape)} and {tuple(second.shape)}; give two vectors, one value a list"
        )
    check_count("samples", samples)
    if not 0 < confidence < 1:
        raise TorchRankError(f"confidence={confidence!r} does not lie between 0 and 1; 0.95 is usual")
    differences = first.detach().to("cpu", torch.float64) - second.detach().to("cpu", torch.float64)
    differences = differences[~differences.isnan()]
    if len(differences) == 0:
        raise DataError("no list has a value of both rankers; there is nothing to compare")
    return differences


def _chunks(samples: int, lists: int) -> Iterator[int]:
    """Split the samples so that no more than a chunk of numbers is held at a time."""
    rows = max(1, _CHUNK // lists)
    for start in range(0, samples, rows):
        yield min(rows, samples - start)


def _share(distances: Tensor, observed: Tensor) -> float:
    """P-value: the share of samples at least as far out as what was observed, which counts as one of them."""
    rounding = 1e-12 * observed
    return (1 + int((distances >= observed - rounding).sum())) / (1 + len(distances))
