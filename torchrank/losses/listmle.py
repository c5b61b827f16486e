"""ListMLE: the likelihood of the best order under the Plackett–Luce model.

Source: Xia et al., "Listwise Approach to Learning to Rank: Theory and Algorithm" (ICML 2008).
"""

import math

import torch
from torch import Tensor

from torchrank.losses._lists import ListwiseLoss, prepare, prepare_weights
from torchrank.ops.levels import has_ordered_pair, sort_levels
from torchrank.types import ScoreLipschitz


def listmle_loss(
    scores: Tensor, relevance: Tensor, mask: Tensor | None = None, *, document_weights: Tensor | None = None
) -> Tensor:
    """Negative log-likelihood of the order of falling relevance, summed over its positions.

    At each position, minus the log of the softmax share of its document among those not yet placed. Documents of equal
    relevance are placed in input order. O(L log L) time.

    Args:
        scores: ``(..., L)``; half precision is computed and returned in float32.
        relevance: ``(..., L)`` at least 0.
        mask: ``(..., L)`` boolean, True where a document is real; None when all are.
        document_weights: ``(..., L)`` factors of the documents' terms, such as inverse propensities.

    Returns:
        ``(...)``, one value per list; 0 where there is no ordered pair.

    Raises:
        ShapeError: tensors whose shapes differ.
        DataError: relevance or a weight below 0 or NaN (eager CPU tensors).

    Example:
        >>> listmle_loss(torch.zeros(1, 3), torch.tensor([[2.0, 0.0, 1.0]]))  # log 3 + log 2 + log 1
        tensor([1.7918])
    """
    scores, relevance = prepare(scores, relevance, mask)
    if scores.shape[-1] == 0:
        return scores.sum(-1)
    levels = sort_levels(relevance, mask, stable=True)
    at = scores.gather(-1, levels.order)
    padding = levels.relevance == -torch.inf
    # Read from the end, the documents not yet placed are those at earlier places.
    rest = at.masked_fill(padding, -torch.inf).logcumsumexp(-1)
    terms = (rest - at).masked_fill(padding, 0)
    if document_weights is not None:
        terms = terms * prepare_weights(document_weights, scores, mask, "document_weights").gather(-1, levels.order)
    loss = terms.sum(-1)
    return torch.where(has_ordered_pair(relevance, mask), loss, torch.zeros_like(loss))


class ListMLELoss(ListwiseLoss):
    """The ListMLE loss of a batch of lists, as :func:`listmle_loss`.

    The mean is over the lists that hold at least one ordered pair.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        TorchRankError: an unknown reduction.

    Example:
        >>> ListMLELoss()(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """

    def each(self, scores: Tensor, relevance: Tensor, mask: Tensor | None, document_weights: Tensor | None) -> Tensor:
        """Return :func:`listmle_loss`."""
        return listmle_loss(scores, relevance, mask, document_weights=document_weights)

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Bound the gradient in the scores of a list of ``length`` documents, as `torchrank.theory` asks.

        Each position but the last adds the difference of two distributions; approached where the least relevant
        document is far above all others. Grows with the list.
        """
        return ScoreLipschitz(2.0 * (length - 1), math.sqrt(length * (length - 1)))
