"""The ranking curve as a scikit-learn estimator."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from torchrank.errors import DataError, TorchRankError
from torchrank.models.curve import RankingCurve
from torchrank.ops.aggregation import competition_ranks
from torchrank.training.curve_fitting import fit_curve


class RankingCurveRanker(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Rank objects by several numeric attributes without labels, in scikit-learn's manner.

    Args:
        directions: +1 (more is better) or −1 (less is better) an attribute: a sequence in the order of the columns, or
            a mapping from column name for a frame; None for +1 throughout.
        scaling: ``"minmax"``, ``"robust"``, ``"rank"`` or None.
        solver: ``"gauss_newton"``, ``"paper"`` or ``"gradient"``.
        degree: 1, 2 or 3.
        ends: ``"corner"`` or ``"free"``.
        score_type: ``"arc_length"`` or ``"parameter"``, the curve's ``score``; scikit-learn takes an attribute of that
            name for a method.
        missing: ``"error"`` or ``"observed"``.
        starts: number of starts.
        random_state: seed of the starts, an integer.

    Attributes:
        curve_: the fitted :class:`torchrank.models.RankingCurve`; ``curve_.report`` says how it was found.
        control_points_: ``(d, degree + 1)`` in the user's units.
        directions_: the directions, one an attribute.
        n_features_in_: number of attributes.
        feature_names_in_: their names, where the table had some.

    Source:
        Li, Mei & Hu (arXiv 1402.4542).

    Example:
        >>> ranker = RankingCurveRanker(directions=[1, -1]).fit([[2.1, 75], [11.3, 12], [32.1, 6], [47.6, 3]])
        >>> ranker.rank([[2.1, 75], [11.3, 12], [47.6, 3]]).tolist()
        [3, 2, 1]
    """

    def __init__(
        self,
        *,
        directions: Sequence[int] | Mapping[str, int] | None = None,
        scaling: str | None = "minmax",
        solver: str = "gauss_newton",
        degree: int = 3,
        ends: str = "corner",
        score_type: str = "arc_length",
        missing: str = "error",
        starts: int = 8,
        random_state: int = 0,
    ) -> None:
        self.directions = directions
        self.scaling = scaling
        self.solver = solver
        self.degree = degree
        self.ends = ends
        self.score_type = score_type
        self.missing = missing
        self.starts = starts
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803  scikit-learn's own name
        """Fit the curve.

        Args:
            X: ``(n, d)`` array or pandas or polars frame of numbers.
            y: not used; there are no labels.

        Returns:
            the estimator.

        Raises:
            DataError: fewer than two different objects.
            TorchRankError: directions that do not fit, or an option with a bad value.
            ValueError: what scikit-learn's own checks refuse.
        """
        values = self._values(X, reset=True)
        if len(values) < 2:
            raise DataError(f"a ranking needs at least two objects, got 1 sample (n_samples={len(values)})")
        self.directions_ = self._directions()
        names = getattr(self, "feature_names_in_", None)
        curve = fit_curve(
            values,
            self.directions_,
            scaling=self.scaling,
            solver=self.solver,
            degree=self.degree,
            ends=self.ends,
            score=self.score_type,
            missing=self.missing,
            starts=self.starts,
            seed=self.random_state,
            names=None if names is None else [str(n) for n in names],
        )
        self.curve_: RankingCurve = curve
        self.control_points_: NDArray[np.float64] = curve.to_units(curve.control_points.detach().T).T.numpy()
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Score objects, higher is better; new ones are scored by the curve as it is.

        Args:
            X: ``(n, d)``.

        Returns:
            ``(n,)``.
        """
        check_is_fitted(self)
        values = self._values(X, reset=False)
        with torch.no_grad():
            scores: NDArray[np.float64] = self.curve_(torch.from_numpy(values)).numpy()
        return scores

    def rank(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """Rank objects among themselves: 1 is best, equal scores share a rank.

        Args:
            X: ``(n, d)``.

        Returns:
            ``(n,)`` int64.
        """
        ranks: NDArray[np.int64] = competition_ranks(torch.from_numpy(self.score_samples(X))).numpy()
        return ranks

    def _values(self, X: Any, *, reset: bool) -> NDArray[np.float64]:  # noqa: N803
        finite: bool | str = True if self.missing == "error" else "allow-nan"
        values: NDArray[np.float64] = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite=finite, copy=True
        )
        return values

    def _directions(self) -> list[int]:
        count: int = self.n_features_in_
        if self.directions is None:
            return [1] * count
        if not isinstance(self.directions, Mapping):
            return list(self.directions)
        names = [str(n) for n in getattr(self, "feature_names_in_", [])]
        if not names:
            raise TorchRankError("directions by name need a frame with column names; give one number a column")
        if set(names) != set(self.directions):
            raise TorchRankError(f"directions name {sorted(self.directions)}, the table's columns are {names}")
        return [self.directions[n] for n in names]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "observed"
        tags.target_tags.required = False
        return tags
