"""The statistics of the data sets behind the published comparison of SAROS, and logs to be made after them."""

import csv
import math
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Self

from torchrank.errors import TorchRankError, check_number, check_option

#: Pareto's exponent of users' activity, to which half of the users have a block or two where the paper says so
_TAILS = {"ML-1M": 2.5, "Outbrain": 2.5, "Pandor": 1.3, "Netflix": 0.9, "Kasandr": 1.3}


@dataclass(frozen=True)
class LogStatistics:
    """What a log looks like in numbers: a row of the published table 1.

    Attributes:
        users: users, each with a preferred item and another.
        items: items, each shown at least once.
        mean_preferred: preferred items a user, at least 1.
        mean_other: items shown and not preferred a user, at least 1.
        tail: Pareto's exponent of users' activity: the smaller, the more of all interactions and blocks belong to a few
            users.

    Raises:
        TorchRankError: a number out of its range, a mean above a quarter of the items, or more items than rows.

    Source: arXiv 1902.08495, table 1 and figure 2.

    Example:
        >>> row = LogStatistics(users=100, items=50, mean_preferred=3, mean_other=5)
        >>> row.interactions, row.sparsity
        (800, 0.84)
    """

    users: int
    items: int
    mean_preferred: float
    mean_other: float
    tail: float = 2.0

    def __post_init__(self) -> None:
        check_number("users", self.users, least=1)
        check_number("items", self.items, least=2)
        check_number("mean_preferred", self.mean_preferred, least=1)
        check_number("mean_other", self.mean_other, least=1)
        check_number("tail", self.tail, above=0)
        if max(self.mean_preferred, self.mean_other) > self.items // 4:
            raise TorchRankError(
                f"mean_preferred={self.mean_preferred:g} and mean_other={self.mean_other:g} must each be at most a"
                f" quarter of the {self.items:,} items"
            )
        if self.interactions < self.items:
            raise TorchRankError(
                f"{self.users:,} users with {self.mean_preferred:g} + {self.mean_other:g} items each make"
                f" {self.interactions:,} interactions, too few to show {self.items:,} items"
            )

    @property
    def preferred(self) -> int:
        """Preferred interactions in all."""
        return round(self.users * self.mean_preferred)

    @property
    def interactions(self) -> int:
        """Interactions in all."""
        return self.preferred + round(self.users * self.mean_other)

    @property
    def sparsity(self) -> float:
        """Share of all pairs that are not in the log."""
        return 1 - self.interactions / (self.users * self.items)

    def scaled(self, *, users: float, items: float = 1.0) -> Self:
        """Return a smaller or larger log's statistics, with the same means.

        Args:
            users: share of the users to have.
            items: share of the items to have; the sparsity stays where this is 1.

        Returns:
            the statistics.

        Raises:
            TorchRankError: a share that is not above 0, or a log that cannot be.

        Example:
            >>> published_statistics("ML-1M").scaled(users=0.1).users
            604
        """
        check_number("users", users, above=0)
        check_number("items", items, above=0)
        return replace(self, users=max(1, math.ceil(self.users * users)), items=max(2, math.ceil(self.items * items)))


def published_statistics(name: str) -> LogStatistics:
    """Return a row of the published table 1.

    Two rows contradict themselves in print, which :func:`torchrank.data.log_statistics` of a log made after them
    shows. Kasandr's numbers of users and of items are exchanged: 291,485 users of 2.4202 + 51.9384 items are just the
    15,844,717 interactions of the text; they are the other way round here. Netflix' sparsity of .9914 is not that of
    its other columns, .9869, which are kept.

    Args:
        name: ``"ML-1M"``, ``"Outbrain"``, ``"Pandor"``, ``"Netflix"`` or ``"Kasandr"``.

    Returns:
        the statistics. ``tail`` is not printed: it is chosen so that the number of blocks is spread as figure 2 is
        described, with half of the users of Pandor, Netflix and Kasandr at no more than two.

    Raises:
        TorchRankError: another name.

    Source: arXiv 1902.08495, table 1.

    Example:
        >>> row = published_statistics("Pandor")
        >>> row.users, row.mean_preferred, f"{row.sparsity:.4f}"
        (177366, 1.3266, '0.9987')
    """
    check_option("name", name, _TAILS)
    rows = {row["measure"]: row["value"] for row in published_rows() if (row["table"], row["dataset"]) == ("1", name)}
    users, items = int(rows["users"]), int(rows["items"])
    if name == "Kasandr":
        users, items = items, users
    return LogStatistics(users, items, float(rows["mean_preferred"]), float(rows["mean_other"]), tail=_TAILS[name])


@cache
def published_rows() -> tuple[dict[str, str], ...]:
    """Read the published tables 1 to 5.

    Returns:
        rows of ``table``, ``dataset``, ``measure``, ``method`` and ``value``.

    Source: arXiv 1902.08495.

    Example:
        >>> published_rows()[0]
        {'table': '1', 'dataset': 'ML-1M', 'measure': 'users', 'method': '', 'value': '6040'}
    """
    path = files("torchrank.data") / "published" / "saros_tables.csv"
    return tuple(csv.DictReader(path.read_text().splitlines()))
