"""What measuring a scorer on a log found, user by user, each protocol in a class of its own."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from torchrank.data.files import whole_file


class _Evaluation(ABC):
    """Values of measures, one a user."""

    users: NDArray[Any]
    values: Mapping[str, NDArray[np.float64]]

    @property
    @abstractmethod
    def protocol(self) -> str:
        """What stands before each measure's name in a frame."""

    @property
    def mean(self) -> dict[str, float]:
        """Mean of each measure over its users."""
        return {
            name: float(np.nanmean(each)) if not np.isnan(each).all() else float("nan")
            for name, each in self.values.items()
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row a user, with columns ``user`` and each measure after its protocol, as ``shown ndcg@10``."""
        columns = {f"{self.protocol} {name}": each for name, each in self.values.items()}
        return pl.DataFrame({"user": self.users, **columns}, nan_to_null=True)

    def write_parquet(self, path: str | Path) -> None:
        """Write :meth:`to_frame` in one step."""
        with whole_file(path) as place:
            self.to_frame().write_parquet(place)


@dataclass(frozen=True, eq=False)
class PublishedEvaluation(_Evaluation):
    """Measures by the conventions of the SAROS paper's tables; they do not compare with any other's.

    Attributes:
        users: ``(Q,)`` original ids of the users who count.
        values: ``(Q,)`` values of each measure.

    Example:
        >>> result = PublishedEvaluation(np.array(["a", "b"]), {"map@5": np.array([0.5, 1.0])})
        >>> result.mean, result.to_frame().columns
        ({'map@5': 0.75}, ['user', 'published map@5'])
    """

    users: NDArray[Any]
    values: Mapping[str, NDArray[np.float64]]

    def __repr__(self) -> str:
        return f"PublishedEvaluation({len(self.users)} users; {_line(self.mean)})"

    @property
    def protocol(self) -> str:
        """What stands before each measure's name in a frame."""
        return "published"


@dataclass(frozen=True, eq=False)
class StandardEvaluation(_Evaluation):
    """Measures by the usual conventions, as every other library has them.

    Attributes:
        candidates: ``"shown"`` where each user's own test items were ranked, ``"catalogue"`` where all unseen items.
        users: ``(Q,)`` original ids of the users who count.
        values: ``(Q,)`` values of each measure; NaN where a user has none, who is then left out of the mean.

    Example:
        >>> result = StandardEvaluation("shown", np.array(["a", "b"]), {"auc": np.array([0.5, np.nan])})
        >>> result.mean, result.to_frame().rows()
        ({'auc': 0.5}, [('a', 0.5), ('b', None)])
    """

    candidates: str
    users: NDArray[Any]
    values: Mapping[str, NDArray[np.float64]]

    def __repr__(self) -> str:
        return f"StandardEvaluation({self.candidates}, {len(self.users)} users; {_line(self.mean)})"

    @property
    def protocol(self) -> str:
        """What stands before each measure's name in a frame."""
        return self.candidates


def _line(means: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
