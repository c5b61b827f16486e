"""The measures as ``torchmetrics`` modules, with the options of their functions, kept as attributes."""

from torch import Tensor

from torchrank.metrics.binary import auc, average_precision, precision, recall
from torchrank.metrics.cascade import err, hit_rate, reciprocal_rank
from torchrank.metrics.gains import mean_ndcg, ndcg
from torchrank.metrics.mean_over_lists import MeanOverLists, check_options


class AUC(MeanOverLists):
    """Mean area under the ROC curve; the options are those of :func:`torchrank.metrics.auc`.

    Args:
        k: ranks that count; None for all.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = AUC()
        >>> metric.update(torch.tensor([[0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 0]]))
        >>> metric.compute()
        tensor(0.5000)
    """

    def __init__(self, *, k: int | None = None, ties: str = "mean", empty: str = "zero") -> None:
        super().__init__()
        self.k = k
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return auc(scores, relevance, mask, k=self.k, ties=self.ties, empty=self.empty)


class ERR(MeanOverLists):
    """Mean expected reciprocal rank; the options are those of :func:`torchrank.metrics.err`.

    Args:
        k: ranks that count; None for all.
        max_grade: the highest grade of the scale.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = ERR(max_grade=1)
        >>> metric.update(torch.tensor([[0.3, 0.2]]), torch.tensor([[1, 0]]))
        >>> metric.compute()
        tensor(0.5000)
    """

    def __init__(
        self, *, k: int | None = None, max_grade: float = 4.0, ties: str = "stable", empty: str = "zero"
    ) -> None:
        super().__init__()
        self.k = k
        self.max_grade = max_grade
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return err(scores, relevance, mask, k=self.k, max_grade=self.max_grade, ties=self.ties, empty=self.empty)


class HitRate(MeanOverLists):
    """Share of lists with a hit; the options are those of :func:`torchrank.metrics.hit_rate`.

    Args:
        k: ranks that count; None for all.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = HitRate(k=1)
        >>> metric.update(torch.tensor([[0.3, 0.2], [0.1, 0.4]]), torch.tensor([[0, 1], [0, 1]]))
        >>> metric.compute()
        tensor(0.5000)
    """

    def __init__(self, *, k: int | None = None, ties: str = "stable", empty: str = "zero") -> None:
        super().__init__()
        self.k = k
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return hit_rate(scores, relevance, mask, k=self.k, ties=self.ties, empty=self.empty)


class MeanAveragePrecision(MeanOverLists):
    """MAP; the options are those of :func:`torchrank.metrics.average_precision`.

    Args:
        k: ranks that count; None for all.
        normalize: ``"relevant"``, ``"cutoff"`` or ``"hits"``.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = MeanAveragePrecision()
        >>> metric.update(torch.tensor([[0.3, 0.2], [0.1, 0.4]]), torch.tensor([[0, 1], [0, 1]]))
        >>> metric.compute()
        tensor(0.7500)
    """

    def __init__(
        self, *, k: int | None = None, normalize: str = "relevant", ties: str = "stable", empty: str = "zero"
    ) -> None:
        super().__init__()
        self.k = k
        self.normalize = normalize
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return average_precision(
            scores, relevance, mask, k=self.k, normalize=self.normalize, ties=self.ties, empty=self.empty
        )


class MeanNDCG(MeanOverLists):
    """LETOR's MeanNDCG over lists; the options are those of :func:`torchrank.metrics.mean_ndcg`.

    Args:
        gain: ``"exponential"`` or ``"linear"``.
        discount: ``"log2"`` or ``"jarvelin"``.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = MeanNDCG()
        >>> metric.update(torch.tensor([[0.3, 0.2]]), torch.tensor([[0, 1]]))
        >>> metric.compute()
        tensor(0.5000)
    """

    def __init__(
        self, *, gain: str = "exponential", discount: str = "jarvelin", ties: str = "stable", empty: str = "zero"
    ) -> None:
        super().__init__()
        self.gain = gain
        self.discount = discount
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return mean_ndcg(
            scores, relevance, mask, gain=self.gain, discount=self.discount, ties=self.ties, empty=self.empty
        )


class MeanReciprocalRank(MeanOverLists):
    """MRR; the options are those of :func:`torchrank.metrics.reciprocal_rank`.

    Args:
        k: ranks that count; None for all.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = MeanReciprocalRank()
        >>> metric.update(torch.tensor([[0.3, 0.2], [0.1, 0.4]]), torch.tensor([[0, 1], [0, 1]]))
        >>> metric.compute()
        tensor(0.7500)
    """

    def __init__(self, *, k: int | None = None, ties: str = "stable", empty: str = "zero") -> None:
        super().__init__()
        self.k = k
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return reciprocal_rank(scores, relevance, mask, k=self.k, ties=self.ties, empty=self.empty)


class NDCG(MeanOverLists):
    """Mean NDCG; the options are those of :func:`torchrank.metrics.ndcg`.

    Args:
        k: ranks that count; None for all.
        gain: ``"exponential"`` or ``"linear"``.
        discount: ``"log2"`` or ``"jarvelin"``.
        ideal: ``"list"``, ``"retrieved"`` or ``"full"``.
        retrieved: documents retrieved, for ``ideal="retrieved"``.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = NDCG(k=10)
        >>> metric.update(torch.tensor([[0.3, 0.2, 0.1]]), torch.tensor([[2, 1, 0]]))
        >>> metric.compute()
        tensor(1.)
    """

    def __init__(
        self,
        *,
        k: int | None = None,
        gain: str = "exponential",
        discount: str = "log2",
        ideal: str = "list",
        retrieved: int = 10,
        ties: str = "stable",
        empty: str = "zero",
    ) -> None:
        super().__init__()
        self.k = k
        self.gain = gain
        self.discount = discount
        self.ideal = ideal
        self.retrieved = retrieved
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return ndcg(
            scores,
            relevance,
            mask,
            k=self.k,
            gain=self.gain,
            discount=self.discount,
            ideal=self.ideal,
            retrieved=self.retrieved,
            ties=self.ties,
            empty=self.empty,
        )


class Precision(MeanOverLists):
    """Mean precision; the options are those of :func:`torchrank.metrics.precision`.

    Args:
        k: ranks that count; None for all.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = Precision(k=2)
        >>> metric.update(torch.tensor([[0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 1]]))
        >>> metric.compute()
        tensor(0.5000)
    """

    def __init__(self, *, k: int | None = None, ties: str = "stable", empty: str = "zero") -> None:
        super().__init__()
        self.k = k
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return precision(scores, relevance, mask, k=self.k, ties=self.ties, empty=self.empty)


class Recall(MeanOverLists):
    """Mean recall; the options are those of :func:`torchrank.metrics.recall`.

    Args:
        k: ranks that count; None for all.
        ties: ``"stable"``, ``"mean"``, ``"pessimistic"`` or ``"optimistic"``.
        empty: lists with nothing relevant: ``"zero"``, ``"one"`` or ``"skip"`` (left out of the mean).

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> import torch
        >>> metric = Recall(k=2)
        >>> metric.update(torch.tensor([[0.3, 0.2, 0.1]]), torch.tensor([[0, 1, 1]]))
        >>> metric.compute()
        tensor(0.5000)
    """

    def __init__(self, *, k: int | None = None, ties: str = "stable", empty: str = "zero") -> None:
        super().__init__()
        self.k = k
        self.ties = ties
        self.empty = empty
        check_options(self)

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the value of every list."""
        return recall(scores, relevance, mask, k=self.k, ties=self.ties, empty=self.empty)
