"""How fast a loss can change with the scores of a list: the constants in the generalisation bounds."""

from typing import Protocol, runtime_checkable

from torchrank.errors import TorchRankError
from torchrank.types import ScoreLipschitz


@runtime_checkable
class HasScoreLipschitz(Protocol):
    """A loss that knows how long its gradient in the scores can get."""

    def score_lipschitz(self, length: int) -> ScoreLipschitz:
        """Return the constants of a list of ``length`` documents."""
        ...


def score_lipschitz(loss: object, length: int) -> ScoreLipschitz:
    """Bound the gradient of one list's loss in its scores: L̃_1 in the 1-norm and L̃_2 in the 2-norm.

    The bounds hold for every relevance, every score and document weights of at most 1. They are the least ones
    (reached or approached) for all but ApproxNDCG and LambdaLoss; ``docs/theory-relevance.md`` derives them. A loss of
    your own takes part by having the method ``score_lipschitz(length)``.

    Args:
        loss: a loss module of ``torchrank.losses``, or any object with that method.
        length: number of real documents of the list (positions, for a chain), at least 1.

    Returns:
        the two constants, in units of the loss over units of the score; infinite where there is no bound.

    Raises:
        TorchRankError: the loss does not know its constants, or ``length`` is below 1.

    Source:
        arXiv 1405.0591, §8 (SLAM's L̃_1); the others are derived in the docs.

    Example:
        >>> from torchrank.losses import ListMLELoss, SLAMLoss
        >>> score_lipschitz(SLAMLoss(), 1000).one, score_lipschitz(ListMLELoss(), 1000).one
        (2.0, 1998.0)
    """
    if length < 1:
        raise TorchRankError(f"length={length} is not the length of a list; give at least 1")
    if not isinstance(loss, HasScoreLipschitz):
        raise TorchRankError(f"{type(loss).__name__} has no method score_lipschitz(length); write one from its formula")
    return loss.score_lipschitz(length)
