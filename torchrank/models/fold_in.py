"""A vector for a user whom training has not seen, from a few interactions, with the items as they are."""

import torch
import torch.nn.functional as F
from torch import Tensor

from torchrank.errors import ShapeError, check_number, check_option
from torchrank.ops.checks import check_indices, check_tensors
from torchrank.ops.newton import Evaluate, newton
from torchrank.ops.ragged import padded_to_ragged, ragged_take, ragged_to_padded

AGAINST = ("shown", "catalogue")
#: numbers that one chunk of users may hold at once
_NUMBERS = 2**24


def fold_in_vectors(
    items: Tensor,
    preferred: Tensor,
    offsets: Tensor,
    *,
    item_vectors: Tensor,
    item_offsets: Tensor | None = None,
    centre: Tensor | None = None,
    against: str = "shown",
    mu: float = 0.01,
) -> Tensor:
    """Find the vectors that new users would have, item vectors held: one convex problem a user, solved to the end.

    ``min_u L(u) + μ‖u − c‖²`` with L the mean over a user's pairs of log(1 + exp(s_j − s_i)), item i preferred over the
    shown item j (what SAROS and BPR learn), or the mean over preferred items of −log softmax(s)_i over all items (what
    :class:`~torchrank.training.SoftmaxModule` and BPR against unobserved items learn). By damped Newton steps, many
    users side by side.

    Args:
        items: ``(N,)`` int64, what the users were shown, one user after the other.
        preferred: ``(N,)`` boolean.
        offsets: ``(B + 1,)`` int64; user b has ``items[offsets[b]:offsets[b + 1]]``.
        item_vectors: ``(I, d)``.
        item_offsets: ``(I,)``, added to an item's scores; None for none.
        centre: ``(d,)`` c, the vector of a user of whom nothing is known; zeros by default.
        against: ``"shown"`` or ``"catalogue"``.
        mu: μ, above 0; the μ of training gives what training would have found.

    Returns:
        ``(B, d)`` in the dtype of the item vectors; c for a user without a pair to learn from.

    Raises:
        ShapeError: tensors that do not fit each other.
        DataError: an item that does not exist.
        TorchRankError: an unknown word, or μ not above 0.
        ConvergenceError: μ is too small for these vectors to be found to working precision.

    Source: the user's problem of alternating least squares (Hu, Koren & Volinsky, "Collaborative Filtering for Implicit
    Feedback Datasets", ICDM 2008) with the losses of arXiv 1902.08495 and of the softmax.

    Example:
        >>> vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
        >>> user = fold_in_vectors(
        ...     torch.tensor([0, 2]), torch.tensor([True, False]), torch.tensor([0, 2]), item_vectors=vectors
        ... )
        >>> (user @ vectors.T).argsort(descending=True).tolist()
        [[0, 1, 2]]
    """
    check_option("against", against, AGAINST)
    check_number("mu", mu, above=0)
    check_tensors({"items": items, "preferred": preferred, "offsets": offsets, "item_vectors": item_vectors})
    if preferred.dtype != torch.bool or preferred.shape != items.shape:
        raise ShapeError(
            f"preferred has dtype {preferred.dtype} and shape {tuple(preferred.shape)}; give one bool a row"
        )
    check_indices("item", items, len(item_vectors))
    vectors = item_vectors.detach().double()
    shift = vectors.new_zeros(len(vectors)) if item_offsets is None else item_offsets.detach().double().reshape(-1)
    middle = vectors.new_zeros(vectors.shape[1]) if centre is None else centre.detach().double()
    padded, real = ragged_to_padded(items, offsets)
    liked = torch.zeros_like(real)
    liked[real] = preferred
    kinds = [padded_to_ragged(padded, part) for part in (liked, real & ~liked)]
    found = middle.repeat(len(padded), 1)
    learns = liked.any(1) if against == "catalogue" else liked.any(1) & (real & ~liked).any(1)
    rows = learns.nonzero().squeeze(1)
    widest = len(vectors) * vectors.shape[1] if against == "catalogue" else max(1, real.shape[1]) ** 2
    for some in torch.split(rows, max(1, _NUMBERS // max(widest, vectors.shape[1] ** 2))):
        (own, own_mask), (other, other_mask) = (_lists(*kind, some) for kind in kinds)
        if against == "catalogue":
            found[some] = newton(_softmax_problem(vectors, shift, own, own_mask, middle, mu), found[some])
        else:
            sides = (vectors[own], shift[own], own_mask), (vectors[other], shift[other], other_mask)
            found[some] = newton(_pair_problem(*sides, middle, mu), found[some])
    return found.to(item_vectors.dtype)


def _lists(items: Tensor, offsets: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    places, starts = ragged_take(offsets, rows)
    return ragged_to_padded(items[places], starts)


_Side = tuple[Tensor, Tensor, Tensor]


def _pair_problem(liked: _Side, other: _Side, centre: Tensor, mu: float) -> Evaluate:
    (up, up_shift, up_mask), (down, down_shift, down_mask) = liked, other
    pairs = up_mask[:, :, None] & down_mask[:, None, :]
    count = pairs.sum((1, 2)).double()[:, None, None]

    def evaluate(user: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        high = torch.einsum("bpd,bd->bp", up, user) + up_shift
        low = torch.einsum("bnd,bd->bn", down, user) + down_shift
        gap = low[:, None, :] - high[:, :, None]
        value = (F.softplus(gap, threshold=80) * pairs / count).sum((1, 2))
        rate = torch.sigmoid(gap)
        slope, bend = rate * pairs / count, rate * (1 - rate) * pairs / count
        gradient = torch.einsum("bn,bnd->bd", slope.sum(1), down) - torch.einsum("bp,bpd->bd", slope.sum(2), up)
        cross = up.mT @ bend @ down
        second = up.mT @ (bend.sum(2)[..., None] * up) + down.mT @ (bend.sum(1)[..., None] * down) - cross - cross.mT
        return _shrunk(value, gradient, second, user, centre, mu)

    return evaluate


def _softmax_problem(
    vectors: Tensor, shift: Tensor, own: Tensor, own_mask: Tensor, centre: Tensor, mu: float
) -> Evaluate:
    count = own_mask.sum(1).double()[:, None]
    wanted = (vectors[own] * own_mask[..., None]).sum(1) / count
    wanted_shift = (shift[own] * own_mask).sum(1) / count.squeeze(1)

    def evaluate(user: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores = user @ vectors.T + shift
        share = scores.softmax(1)
        value = scores.logsumexp(1) - (wanted * user).sum(1) - wanted_shift
        mean = share @ vectors
        second = vectors.T @ (share[..., None] * vectors) - mean[:, :, None] * mean[:, None, :]
        return _shrunk(value, mean - wanted, second, user, centre, mu)

    return evaluate


def _shrunk(
    value: Tensor, gradient: Tensor, second: Tensor, user: Tensor, centre: Tensor, mu: float
) -> tuple[Tensor, Tensor, Tensor]:
    away = user - centre
    eye = torch.eye(user.shape[1], dtype=user.dtype, device=user.device)
    return value + mu * away.square().sum(1), gradient + 2 * mu * away, second + 2 * mu * eye
