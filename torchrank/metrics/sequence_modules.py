"""The measures of labelled sequences as ``torchmetrics`` modules."""

from torch import Tensor

from torchrank.metrics.mean_over_lists import MeanOverLists
from torchrank.metrics.sequences import position_accuracy, sequence_accuracy
from torchrank.ops.masked import masked_count


class PositionAccuracy(MeanOverLists):
    """Share of all positions labelled right: a long sequence counts for more than a short one.

    Example:
        >>> import torch
        >>> metric = PositionAccuracy()
        >>> metric.update(torch.tensor([[0, 1, 1]]), torch.tensor([[0, 1, 0]]))
        >>> metric.update(torch.tensor([[0]]), torch.tensor([[0]]))
        >>> metric.compute()
        tensor(0.7500)
    """

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the share of every sequence, labels against targets."""
        return position_accuracy(scores, relevance, mask)

    def update(
        self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None, list_weights: Tensor | None = None
    ) -> None:
        """Add sequences.

        Args:
            scores: ``(..., T)`` predicted labels.
            relevance: ``(..., T)`` right labels.
            mask: ``(..., T)`` boolean or None.
            list_weights: ``(...)`` weight of every position of a sequence; None for equal ones.
        """
        lengths = masked_count(scores, mask).float()
        super().update(scores, relevance, mask, lengths if list_weights is None else lengths * list_weights)


class SequenceAccuracy(MeanOverLists):
    """Share of sequences labelled right from end to end.

    Example:
        >>> import torch
        >>> metric = SequenceAccuracy()
        >>> metric.update(torch.tensor([[0, 1], [0, 1]]), torch.tensor([[0, 1], [0, 0]]))
        >>> metric.compute()
        tensor(0.5000)
    """

    def per_list(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return 1 or 0 for every sequence, labels against targets."""
        return sequence_accuracy(scores, relevance, mask)
