"""What the layers pass to each other: batch containers and the protocols that users' own classes meet."""

from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor


class ListBatch(NamedTuple):
    """A padded batch of ``B`` lists of at most ``L`` documents with ``d`` features.

    A named tuple, so that Lightning, ``torch.compile`` and pytree utilities move it as it is.

    Attributes:
        features: ``(B, L, d)``; what lies under the mask has no meaning.
        relevance: ``(B, L)`` graded labels, 0 is not relevant; all zeros for unlabelled data.
        mask: ``(B, L)`` boolean, True where a document is real.
        lists: ``(B,)`` int64, each list's number in its dataset.
        list_weights: ``(B,)`` weight of each list in the loss.
    """

    features: Tensor
    relevance: Tensor
    mask: Tensor
    lists: Tensor
    list_weights: Tensor


class ScoreLipschitz(NamedTuple):
    """How fast a loss of one list can change with its scores.

    Attributes:
        one: the largest 1-norm of the gradient in the scores, L̃_1.
        two: the largest 2-norm, L̃_2.
    """

    one: float
    two: float


class SequenceBatch(NamedTuple):
    """A padded batch of ``B`` sequences of at most ``T`` positions with ``d`` features.

    Attributes:
        features: ``(B, T, d)``; what lies under the mask has no meaning.
        labels: ``(B, T)`` int64, all zeros for unlabelled data; what lies under the mask has no meaning.
        mask: ``(B, T)`` boolean, True on the first positions of each sequence.
        sequences: ``(B,)`` int64, each sequence's number in its dataset.
    """

    features: Tensor
    labels: Tensor
    mask: Tensor
    sequences: Tensor


class ObjectBatch(NamedTuple):
    """Some objects of a table.

    Attributes:
        points: ``(B, d)`` attributes in the user's units, NaN where one is missing.
        rows: ``(B,)`` int64, each object's row in its table.
    """

    points: Tensor
    rows: Tensor


@runtime_checkable
class Scorer(Protocol):
    """Scores the documents of lists: ``(B, L, d)`` features and ``(B, L)`` mask to ``(B, L)`` scores."""

    def __call__(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return one score a document; what lies under the mask has no meaning."""
        ...


@runtime_checkable
class ListLoss(Protocol):
    """A loss over lists, as every module of ``torchrank.losses`` for graded relevance is."""

    def __call__(
        self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None, list_weights: Tensor | None = None
    ) -> Tensor:
        """Return the reduced loss."""
        ...


@runtime_checkable
class InteractionScorer(Protocol):
    """Scores users against items: two index tensors of one shape to scores of that shape."""

    def __call__(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the score of each (user, item)."""
        ...
