"""Losses of linear chains: structured hinge, structured perceptron, and negative log-likelihood.

Each is the gap between a sum or maximum over all label sequences and the score of the right one. The maximum is found
by the recursion of :mod:`torchrank.ops.chain` without a gradient; the gap to it is then summed position by position, so
the sub-gradient is the difference of the two sequences' features, and a right answer costs exactly 0.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from torchrank.errors import check_option
from torchrank.losses._lists import ReducedLoss, reduce_lists
from torchrank.ops.chain import augmented_labels, check_cost, one_dtype, over_length, position_scores
from torchrank.ops.chain_checks import check_chain, check_labels
from torchrank.ops.chain_partition import log_partition
from torchrank.types import ScoreLipschitz


def structured_hinge_loss(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    cost: float | Tensor = 1.0,
    start: Tensor | None = None,
    normalize: str | None = None,
) -> Tensor:
    """Structured hinge with margin rescaling: the right sequence must outscore each other one by its cost.

    ``max over y of { Δ(y*, y) + ⟨w, Ψ(x, y)⟩ } − ⟨w, Ψ(x, y*)⟩``. It is at least the cost Δ(y*, ŷ) of the sequence ŷ
    that :func:`torchrank.ops.viterbi` returns. The sub-gradient is Ψ(x, y) − Ψ(x, y*) at the maximum.

    Args:
        emissions: ``(B, T, q)`` score of each label at each position; what lies under the mask has no meaning.
        transitions: ``(q, q)`` indexed [to, from], or ``(B, T − 1, q, q)``.
        labels: ``(B, T)`` the right labels; what lies under the mask has no meaning.
        mask: ``(B, T)`` boolean, True on the first positions of each sequence, or None.
        cost: a number, the cost of each wrong position (1: the Hamming cost); a ``(q, q)`` tensor indexed
            [right, chosen]; or ``(B, T, q)``, the cost of each label at each position.
        start: ``(q,)`` score of each label at the first position, or None.
        normalize: ``"length"`` divides the transitions by the sequence's length, the factor 1/r of the book's second
            feature; None leaves them.

    Returns:
        ``(B,)``; float16 and bfloat16 are computed and returned in float32.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: a label out of range, a sequence of length 0, a mask with holes, a real score that is NaN or +inf
            (eager, CPU).
        TorchRankError: an option with a bad value.

    Source:
        Shalev-Shwartz & Ben-David, "Understanding Machine Learning", 17.2.4 and 17.3.

    Example:
        >>> emissions = torch.tensor([[[2.0, 0.0], [0.0, 0.5]]])
        >>> structured_hinge_loss(emissions, torch.zeros(2, 2), torch.tensor([[0, 1]]))
        tensor([0.5000])
    """
    emissions, transitions, start = _prepare(emissions, transitions, labels, mask, start, normalize)
    check_cost(cost, emissions, mask)
    chosen = augmented_labels(emissions, transitions, labels, mask, cost, start)
    return _gap(emissions, transitions, labels, chosen, mask, start, cost)


def structured_perceptron_loss(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    start: Tensor | None = None,
    normalize: str | None = None,
) -> Tensor:
    """How far the best sequence outscores the right one: the structured hinge without a margin.

    A gradient step of size 1 on one sequence is the structured perceptron's update.

    Args:
        emissions: ``(B, T, q)``.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        labels: ``(B, T)`` the right labels; what lies under the mask has no meaning.
        mask: ``(B, T)`` boolean or None.
        start: ``(q,)`` or None.
        normalize: ``"length"`` or None, as in :func:`structured_hinge_loss`.

    Returns:
        ``(B,)``, 0 where the right sequence is a best one.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: as for :func:`structured_hinge_loss`.
        TorchRankError: an option with a bad value.

    Source:
        Collins, "Discriminative training methods for hidden Markov models" (EMNLP 2002).

    Example:
        >>> emissions = torch.tensor([[[2.0, 0.0], [0.0, 0.5]]])
        >>> structured_perceptron_loss(emissions, torch.zeros(2, 2), torch.tensor([[1, 1]]))
        tensor([2.])
    """
    return structured_hinge_loss(emissions, transitions, labels, mask, cost=0.0, start=start, normalize=normalize)


def crf_loss(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    start: Tensor | None = None,
    normalize: str | None = None,
) -> Tensor:
    """Negative log-likelihood of the right sequence under the chain as a conditional random field.

    Args:
        emissions: ``(B, T, q)``.
        transitions: ``(q, q)`` or ``(B, T − 1, q, q)``, indexed [to, from].
        labels: ``(B, T)`` the right labels; what lies under the mask has no meaning.
        mask: ``(B, T)`` boolean or None.
        start: ``(q,)`` or None.
        normalize: ``"length"`` or None, as in :func:`structured_hinge_loss`.

    Returns:
        ``(B,)``, in nats, summed over the positions. Its gradient cannot be differentiated again.

    Raises:
        ShapeError: shapes that do not fit each other.
        DataError: as for :func:`structured_hinge_loss`.
        TorchRankError: an option with a bad value.

    Source:
        Lafferty, McCallum & Pereira, "Conditional Random Fields" (ICML 2001).

    Example:
        >>> loss = crf_loss(torch.zeros(1, 3, 2), torch.zeros(2, 2), torch.tensor([[0, 1, 0]]))
        >>> loss.exp()  # one of 2³ equally likely sequences
        tensor([8.])
    """
    emissions, transitions, start = _prepare(emissions, transitions, labels, mask, start, normalize)
    right = position_scores(emissions, transitions, labels, mask, start=start).sum(-1)
    return log_partition(emissions, transitions, mask, start=start) - right


def _prepare(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    mask: Tensor | None,
    start: Tensor | None,
    normalize: str | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    check_chain(emissions, transitions, mask, start)
    check_labels(labels, emissions, mask)
    emissions, transitions, start = one_dtype(emissions, transitions, start)
    return emissions, over_length(transitions, emissions, mask, normalize), start


def _gap(
    emissions: Tensor,
    transitions: Tensor,
    labels: Tensor,
    chosen: Tensor,
    mask: Tensor | None,
    start: Tensor | None,
    cost: float | Tensor,
) -> Tensor:
    """Cost of the chosen sequence plus how far it outscores the right one: ``(B,)``."""
    ahead = position_scores(emissions, transitions, chosen, mask, start=start)
    right = position_scores(emissions, transitions, labels, mask, start=start)
    if mask is not None:
        labels = torch.where(mask, labels, 0)
    if not isinstance(cost, Tensor):
        costs = cost * (chosen != labels)
    elif cost.ndim == 2:
        costs = cost.to(ahead.dtype)[labels, chosen]
    else:
        costs = cost.to(ahead.dtype).gather(-1, chosen[..., None])[..., 0]
    gaps = ahead - right + costs
    return (gaps if mask is None else torch.where(mask, gaps, 0)).sum(-1)


class SequenceLoss(ReducedLoss, ABC):
    """A loss of a batch of label sequences; the subclass says which in :meth:`each`.

    Args:
        normalize: ``"length"`` or None.
        reduction: ``"mean"`` over sequences, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.
    """

    def __init__(self, *, normalize: str | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        if normalize is not None:
            check_option("normalize", normalize, ("length",))
        self.normalize = normalize

    @abstractmethod
    def each(
        self, emissions: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor | None, start: Tensor | None
    ) -> Tensor:
        """Return the loss of each sequence: ``(B,)``."""

    def forward(
        self,
        emissions: Tensor,
        transitions: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        start: Tensor | None = None,
    ) -> Tensor:
        """Reduce the loss of each sequence.

        Args:
            emissions: ``(B, T, q)``.
            transitions: ``(q, q)`` or ``(B, T − 1, q, q)``.
            labels: ``(B, T)``.
            mask: ``(B, T)`` boolean or None.
            start: ``(q,)`` or None.

        Returns:
            a scalar, or ``(B,)`` for ``reduction="none"``.
        """
        return reduce_lists(self.each(emissions, transitions, labels, mask, start), None, None, self.reduction)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the emissions of a sequence of ``length`` positions, as `torchrank.theory` asks.

        At each position the difference of two distributions over labels. Of the hinge and the perceptron both are one
        label, and the bound is reached where every position is wrong; of the CRF it is approached where a wrong
        sequence is far ahead.
        """
        return ScoreLipschitz(2.0 * length, math.sqrt(2 * length))


class StructuredHingeLoss(SequenceLoss):
    """The structured hinge of a batch of sequences, as :func:`structured_hinge_loss`.

    Args:
        cost: a number, or the ``(q, q)`` costs indexed [right, chosen], as a tensor or as lists.
        normalize: ``"length"`` or None.
        reduction: ``"mean"`` over sequences, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> emissions = torch.tensor([[[2.0, 0.0], [0.0, 0.5]]])
        >>> StructuredHingeLoss(cost=2.0)(emissions, torch.zeros(2, 2), torch.tensor([[0, 1]]))
        tensor(1.5000)
    """

    cost_matrix: Tensor | None

    def __init__(
        self,
        *,
        cost: float | Sequence[Sequence[float]] | Tensor = 1.0,
        normalize: str | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(normalize=normalize, reduction=reduction)
        if isinstance(cost, int | float):
            self.cost: float | list[list[float]] = cost
            matrix = None
        else:
            matrix = torch.as_tensor(cost)
            self.cost = matrix.tolist()
        self.register_buffer("cost_matrix", matrix, persistent=False)

    def each(
        self, emissions: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor | None, start: Tensor | None
    ) -> Tensor:
        """Return :func:`structured_hinge_loss`."""
        cost = cast(float, self.cost) if self.cost_matrix is None else self.cost_matrix
        return structured_hinge_loss(
            emissions, transitions, labels, mask, cost=cost, start=start, normalize=self.normalize
        )


class StructuredPerceptronLoss(SequenceLoss):
    """The structured perceptron's loss of a batch of sequences, as :func:`structured_perceptron_loss`.

    Args:
        normalize: ``"length"`` or None.
        reduction: ``"mean"`` over sequences, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> emissions = torch.tensor([[[2.0, 0.0], [0.0, 0.5]]])
        >>> StructuredPerceptronLoss()(emissions, torch.zeros(2, 2), torch.tensor([[1, 1]]))
        tensor(2.)
    """

    def each(
        self, emissions: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor | None, start: Tensor | None
    ) -> Tensor:
        """Return :func:`structured_perceptron_loss`."""
        return structured_perceptron_loss(emissions, transitions, labels, mask, start=start, normalize=self.normalize)


class CRFLoss(SequenceLoss):
    """Negative log-likelihood of a batch of sequences, as :func:`crf_loss`.

    Args:
        normalize: ``"length"`` or None.
        reduction: ``"mean"`` over sequences, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an option with a bad value.

    Example:
        >>> CRFLoss()(torch.zeros(1, 3, 2), torch.zeros(2, 2), torch.tensor([[0, 1, 0]])).exp()
        tensor(8.)
    """

    def each(
        self, emissions: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor | None, start: Tensor | None
    ) -> Tensor:
        """Return :func:`crf_loss`."""
        return crf_loss(emissions, transitions, labels, mask, start=start, normalize=self.normalize)
