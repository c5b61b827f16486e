"""Prod2Vec: word2vec over what users preferred, one item after the other."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from torchrank.errors import TorchRankError, check_count, check_number, check_option, room_for
from torchrank.models.item_scorer import ItemScorer

#: items of one sentence at most: word2vec drops what follows
_SENTENCE = 10_000


class Prod2Vec(ItemScorer):
    """Score an item by the similarity of its vector to the mean vector of the items a user preferred.

    Vectors are word2vec's: items preferred near each other in time by many users get vectors that agree. Preferred
    items are all it knows, so what users were shown and did not prefer plays no part. An item that nobody preferred has
    the zero vector and a user without a preferred item the zero mean; both score 0.

    Make one with :meth:`from_log_arrays`.

    Args:
        num_users: users, numbered from 0.
        num_items: items, numbered from 0.
        dim: length d of the vectors.
        similarity: ``"cosine"``, as published, or ``"dot"``, in which frequent items, whose vectors are longer, count
            for more.

    Raises:
        TorchRankError: a size below 1 or an unknown similarity.

    Example:
        >>> scorer = Prod2Vec(1, 2, 2)
        >>> _ = scorer.item_vectors.copy_(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
        >>> _ = scorer.user_vectors.copy_(torch.tensor([[2.0, 0.0]]))  # who preferred item 0
        >>> scorer.score_all(torch.tensor([0])).tolist()
        [[1.0, 0.0]]

    Source: Grbovic et al., "E-commerce in Your Inbox: Product Recommendations at Scale" (arXiv 1606.07154), prod2vec.
    """

    def __init__(self, num_users: int, num_items: int, dim: int, *, similarity: str = "cosine") -> None:
        super().__init__(num_users, num_items)
        check_count("dim", dim)
        check_option("similarity", similarity, ["cosine", "dot"])
        self.dim = dim
        self.similarity = similarity
        with room_for(num_users=num_users, num_items=num_items, dim=dim):
            self.register_buffer("item_vectors", torch.zeros(num_items, dim))
            self.register_buffer("user_vectors", torch.zeros(num_users, dim))

    item_vectors: Tensor
    user_vectors: Tensor

    @classmethod
    def from_log_arrays(
        cls,
        users: NDArray[np.integer],
        items: NDArray[np.integer],
        *,
        num_users: int,
        num_items: int,
        dim: int = 64,
        similarity: str = "cosine",
        window: int = 5,
        epochs: int = 10,
        negatives: int = 5,
        exponent: float = 0.75,
        keep: float = 1e-3,
        eta: float = 0.025,
        seed: int = 0,
    ) -> "Prod2Vec":
        """Learn the vectors by skip-gram with negative samples, on one thread: the seed fixes them.

        Args:
            users: ``(N,)`` user of each positive feedback, each user's in one piece and in time, as a log has them.
            items: ``(N,)`` its item.
            num_users: users, numbered from 0.
            num_items: items, numbered from 0.
            dim: length d of the vectors.
            similarity: see the class.
            window: how many items before and after are neighbours, at most.
            epochs: passes over the log.
            negatives: negative samples a pair.
            exponent: an item is a negative sample in proportion to this power of how often it was preferred; 0 draws
                all alike.
            keep: items that are more than this share of the log are thinned out; 0 keeps all.
            eta: step size at the start; it falls to nearly 0.
            seed: of the start and of the draws.

        Returns:
            the scorer.

        Raises:
            TorchRankError: gensim is not installed, or a number out of its range.

        Example:
            >>> users = np.repeat(np.arange(40), 6)  # the first 20 users prefer items 0 to 2, the others 3 to 5
            >>> items = np.tile([0, 1, 2], 80) + 3 * (users >= 20)
            >>> scorer = Prod2Vec.from_log_arrays(users, items, num_users=40, num_items=6, dim=4, keep=0, eta=0.1)
            >>> bool(scorer(torch.tensor([0]), torch.tensor([1])) > scorer(torch.tensor([0]), torch.tensor([4])))
            True
        """
        try:
            from gensim.models import Word2Vec
        except ImportError:
            raise TorchRankError("Prod2Vec learns by gensim: pip install 'torchrank[words]'") from None
        for name, value in (("window", window), ("epochs", epochs), ("negatives", negatives)):
            check_count(name, value)
        check_number("exponent", exponent)
        check_number("keep", keep, least=0)
        check_number("eta", eta, above=0)
        scorer = cls(num_users, num_items, dim, similarity=similarity)
        if not len(items):
            return scorer
        learned = Word2Vec(
            _sentences(users, items),
            vector_size=dim,
            window=window,
            epochs=epochs,
            sg=1,
            negative=negatives,
            ns_exponent=exponent,
            sample=keep,
            alpha=eta,
            min_alpha=eta / 1000,
            min_count=1,
            seed=seed,
            workers=1,
        ).wv
        scorer.item_vectors[torch.tensor(learned.index_to_key)] = torch.from_numpy(learned.vectors)
        owners, vectors = torch.from_numpy(users.astype(np.int64)), scorer.item_vectors
        counts = torch.bincount(owners, minlength=num_users).clamp(min=1)
        # a part of the log at a time, so that no vector a row is ever held
        for rows in torch.split(torch.arange(len(items)), 2**18):
            scorer.user_vectors.index_add_(0, owners[rows], vectors[torch.from_numpy(items)[rows].long()])
        scorer.user_vectors.div_(counts[:, None])
        return scorer

    def scaled(self, vectors: Tensor) -> Tensor:
        """Return vectors whose inner products are the similarity: of length 1 for the cosine, as they are otherwise."""
        return vectors if self.similarity == "dot" else F.normalize(vectors, dim=-1)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score pairs: ``(...)`` users and items to ``(...)``."""
        self._check_pairs(users, items)
        return (self.scaled(self.user_vectors[users]) * self.scaled(self.item_vectors[items])).sum(-1)

    def score_all(self, users: Tensor) -> Tensor:
        """Score every item for some users: ``(B,)`` to ``(B, num_items)``."""
        return self.scaled(self.user_vectors[users]) @ self.scaled(self.item_vectors).T


def _sentences(users: NDArray[np.integer], items: NDArray[np.integer]) -> list[list[int]]:
    """Cut a log into each user's items in order, none longer than word2vec reads."""
    changes = np.flatnonzero(np.diff(users)) + 1
    starts = np.concatenate([[0], changes])
    inside = np.arange(len(users)) - np.repeat(starts, np.diff(np.append(starts, len(users))))
    cuts = np.flatnonzero(inside % _SENTENCE == 0)[1:]
    return [part.tolist() for part in np.split(items, cuts)]
