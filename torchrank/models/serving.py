"""Trained models in the form that serves: tensors in, tensors out, nothing but tensor operations between.

:mod:`torchrank.training.export` turns these into graphs. What they take and return has names, and sizes that differ
from call to call are marked, so that one graph serves any number of lists, documents, users or objects.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from torchrank.errors import TorchRankError, check_option
from torchrank.models.chain import LinearChain
from torchrank.models.curve import RankingCurve
from torchrank.models.factorization import Factorization
from torchrank.models.feedback import FeedbackFactorization
from torchrank.models.gru4rec import GRU4Rec
from torchrank.models.prod2vec import Prod2Vec

QUERIES = ("id", "vector")
#: models that score by inner products of vectors of users and items
OF_VECTORS = (Factorization, FeedbackFactorization, GRU4Rec, Prod2Vec)


class Served(NamedTuple):
    """A model in its serving form.

    Attributes:
        module: called with the inputs by position; returns one tensor, or a tuple of them.
        inputs: name of each input, with an example.
        axes: for each input, the name of the size along each axis that may differ from call to call.
        outputs: the same for what it returns.
        probe: inputs of other sizes, to compare an exported graph by.

    Example:
        >>> from torchrank.models import LinearScorer
        >>> served = serve(LinearScorer(3))
        >>> served.axes["features"], served.outputs
        ({0: 'lists', 1: 'documents'}, {'scores': {0: 'lists', 1: 'documents'}})
    """

    module: nn.Module
    inputs: dict[str, Tensor]
    axes: dict[str, dict[int, str]]
    outputs: dict[str, dict[int, str]]
    probe: dict[str, Tensor]

    def __repr__(self) -> str:
        return f"Served({type(self.module).__name__}: {', '.join(self.inputs)} to {', '.join(self.outputs)})"


def serve(model: nn.Module, *, k: int = 10, by: str = "id", candidates: Tensor | None = None) -> Served:
    """Give a model its serving form, in evaluation mode.

    ==============================  ==========================================  ===============================
    model                           inputs                                      outputs
    ==============================  ==========================================  ===============================
    any scorer of lists             ``features (B, L, d)``, ``mask (B, L)``     ``scores (B, L)``
    recommenders, ``by="id"``       ``users (B,)`` int64                        ``items (B, k)``, ``scores``
    recommenders, ``"vector"``      ``vectors (B, d')``                         ``items (B, k)``, ``scores``
    :class:`RankingCurve`           ``points (N, d)`` float64                   ``scores (N,)`` float64
    :class:`LinearChain`            ``features (B, T, d)``, ``mask (B, T)``     ``labels (B, T)``, ``scores (B,)``
    ==============================  ==========================================  ===============================

    Recommenders are those that :func:`search_vectors` takes: factorizations, :class:`GRU4Rec`, :class:`Prod2Vec`.

    Args:
        model: one of these. A scorer of your own keeps the number of its features as ``num_features``.
        k: of a recommender, how many items a user is given.
        by: what a recommender is asked by: a user's ``"id"``, the internal number; or a ``"vector"`` as
            :func:`search_vectors` makes them, which also serves users that were not there in training.
        candidates: of a recommender, ``(C,)`` the internal numbers of the items to choose from; all by default.

    Returns:
        the model's serving form. It shares the model's weights where it can.

    Raises:
        TorchRankError: a model without a serving form, or more items a user than there are.

    Example:
        >>> served = serve(Factorization(4, 9, 2), k=3)
        >>> items, scores = served.module(torch.tensor([0, 3]))
        >>> items.shape, list(served.inputs)
        (torch.Size([2, 3]), ['users'])
    """
    check_option("by", by, QUERIES)
    model = model.eval()
    if isinstance(model, OF_VECTORS):
        users, items = search_vectors(model)
        top = TopItems(items, k=k, users=users if by == "id" else None, candidates=candidates)
        few, more = (torch.arange(n, device=users.device) % len(users) for n in (2, 5))
        name = "users" if by == "id" else "vectors"
        asked = (few, more) if by == "id" else (users[few], users[more])
        rows = {0: "queries"}
        return Served(top, {name: asked[0]}, {name: rows}, {"items": rows, "scores": rows}, {name: asked[1]})
    if isinstance(model, RankingCurve):
        few, more = (model.to_units(_random(n, len(model.directions), like=model.inner)) for n in (5, 9))
        rows = {0: "objects"}
        return Served(_Points(model), {"points": few}, {"points": rows}, {"scores": rows}, {"points": more})
    if isinstance(model, LinearChain):
        sizes = {0: "sequences", 1: "positions"}
        outputs = {"labels": sizes, "scores": {0: "sequences"}}
        return _served_lists(_Decoder(model), model.num_features, sizes, outputs)
    width = getattr(model, "num_features", None)
    if not isinstance(width, int) or hasattr(model, "num_items"):
        raise TorchRankError(
            f"{type(model).__name__} has no serving form: it is no recommender of vectors, curve or chain, and does not"
            " keep the number of its features as num_features, as a scorer of lists does"
        )
    sizes = {0: "lists", 1: "documents"}
    return _served_lists(model, width, sizes, {"scores": sizes})


def _served_lists(module: nn.Module, width: int, sizes: dict[int, str], outputs: dict[str, dict[int, str]]) -> Served:
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    examples = []
    for batch, length in ((2, 40), (3, 71)):
        # the last list is one shorter, the first as long as it can be
        mask = torch.arange(length) < torch.tensor([length, *[length - 1] * (batch - 1)])[:, None]
        examples.append({"features": _random(batch, length, width, like=like), "mask": mask.to(like.device)})
    return Served(module, examples[0], {"features": sizes, "mask": sizes}, outputs, examples[1])


def _random(*shape: int, like: Tensor) -> Tensor:
    """Numbers from 0 to 1, the same at every call."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(like)


class _Points(nn.Module):
    """A curve with its one argument."""

    def __init__(self, curve: RankingCurve) -> None:
        super().__init__()
        self.curve = curve

    def forward(self, points: Tensor) -> Tensor:
        scores: Tensor = self.curve(points)
        return scores


class _Decoder(nn.Module):
    """A chain's best labels, by the form of the search that needs no loop over positions."""

    def __init__(self, chain: LinearChain) -> None:
        super().__init__()
        self.chain = chain

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return self.chain.decode(features, mask, method="scan")


class TopItems(nn.Module):
    """Find the items of the largest inner product with a vector.

    Args:
        items: ``(I, d)`` vectors.
        k: how many a query, at least 1.
        users: ``(U, d)`` vectors: then queries are users' numbers and not vectors.
        candidates: ``(C,)`` numbers of the items to choose from, each once; all by default.

    Raises:
        TorchRankError: ``k`` below 1 or above the number of items to choose from.

    Example:
        >>> TopItems(torch.eye(3), k=2)(torch.tensor([[0.0, 1.0, 2.0]]))
        (tensor([[2, 1]]), tensor([[2., 1.]]))
    """

    items: Tensor
    users: Tensor | None
    numbers: Tensor | None

    def __init__(self, items: Tensor, *, k: int, users: Tensor | None = None, candidates: Tensor | None = None) -> None:
        super().__init__()
        count = len(items) if candidates is None else len(candidates)
        if not 1 <= k <= count:
            raise TorchRankError(f"k={k} must be at least 1 and at most {count}, the items there are to choose from")
        self.k = k
        self.register_buffer("items", items if candidates is None else items[candidates])
        self.register_buffer("users", users)
        self.register_buffer("numbers", candidates)

    def forward(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Find the best items.

        Args:
            queries: ``(B,)`` numbers of users, or ``(B, d)`` vectors.

        Returns:
            ``(B, k)`` numbers of items, best first, and their scores.
        """
        vectors = queries if self.users is None else self.users[queries]
        scores, places = (vectors @ self.items.T).topk(self.k, dim=1)
        return places if self.numbers is None else self.numbers[places], scores


@torch.no_grad()
def search_vectors(scorer: nn.Module) -> tuple[Tensor, Tensor]:
    """Vectors of users and items whose inner products are the scores, offsets included.

    Where the items have offsets, these are the last number of an item's vector, and the last number of a user's is 1.
    So any search for the largest inner product ranks as the scorer does. A user's vector is, of a
    :class:`FeedbackFactorization`, the sum of the feedback's; of a :class:`GRU4Rec`, the state after the sequence; of a
    :class:`Prod2Vec` by the cosine, the mean of the items', scaled to length 1 as the items' are.

    Args:
        scorer: one of these, or a :class:`Factorization`.

    Returns:
        ``(num_users, d')`` and ``(num_items, d')`` with d' = d, or d + 1 with offsets.

    Raises:
        TorchRankError: another scorer.

    Example:
        >>> scorer = Factorization(2, 3, 4, item_bias=True)
        >>> users, items = search_vectors(scorer)
        >>> torch.allclose(users @ items.T, scorer.score_all(torch.arange(2)))
        True
    """
    if isinstance(scorer, Prod2Vec):
        return scorer.scaled(scorer.user_vectors), scorer.scaled(scorer.item_vectors)
    if isinstance(scorer, GRU4Rec):
        scorer = scorer.to_factorization()
    if isinstance(scorer, Factorization):
        users = scorer.user_vectors.detach()
    elif isinstance(scorer, FeedbackFactorization):
        numbers = torch.arange(scorer.num_users, device=scorer.item_vectors.device)
        users = torch.cat([scorer.user_vectors(part) for part in torch.split(numbers, _USERS)])
    else:
        raise TorchRankError(
            f"{type(scorer).__name__} has no vectors whose inner products are its scores; factorizations, GRU4Rec and"
            " Prod2Vec have"
        )
    items = scorer.item_vectors.detach()
    if scorer.item_offsets is None:
        return users, items
    return torch.cat([users, torch.ones_like(users[:, :1])], 1), torch.cat([items, scorer.item_offsets.detach()], 1)


#: users whose feedback is summed at once
_USERS = 2**14
