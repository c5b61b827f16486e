"""Prod2Vec: vectors of word2vec, users as means of what they preferred."""

import numpy as np
import pytest
import torch

from torchrank.errors import TorchRankError
from torchrank.models import Prod2Vec, prod2vec

USERS = np.repeat(np.arange(30), 8)
ITEMS = np.random.default_rng(0).integers(6, size=240) + 6 * (USERS >= 15)  # two tastes: items 0 to 5, and 6 to 11
SIZES = {"num_users": 32, "num_items": 14, "dim": 5}


def make(**options):
    return Prod2Vec.from_log_arrays(USERS, ITEMS, **SIZES, **{"keep": 0, "eta": 0.1, **options})


def test_a_user_is_the_mean_of_preferred_items():
    scorer = make()
    for user in range(30):
        expected = scorer.item_vectors[ITEMS[user == USERS]].mean(0)
        torch.testing.assert_close(scorer.user_vectors[user], expected)
    user, items = torch.tensor([3]), torch.arange(12)
    cosine = torch.cosine_similarity(scorer.user_vectors[3][None], scorer.item_vectors[:12])
    torch.testing.assert_close(scorer.score_all(user)[0, :12], cosine)
    dot = make(similarity="dot")
    torch.testing.assert_close(dot(user.expand(12), items), dot.item_vectors[:12] @ dot.user_vectors[3])


def test_neighbours_in_time_agree():
    scores = make().score_all(torch.arange(30))
    own, other = scores[:15, :6].mean(), scores[:15, 6:12].mean()
    assert own > other + 0.5


def test_what_was_never_preferred_scores_nothing():
    scorer = make()
    assert not scorer.item_vectors[12:].any()
    assert not scorer.score_all(torch.tensor([30, 31])).any()
    assert not scorer.score_all(torch.tensor([0]))[0, 12:].any()
    empty = Prod2Vec.from_log_arrays(USERS[:0], ITEMS[:0], **SIZES)
    assert not empty.score_all(torch.arange(32)).any()


def test_a_seed_fixes_the_vectors():
    assert torch.equal(make(seed=1).item_vectors, make(seed=1).item_vectors)
    assert not torch.equal(make(seed=1).item_vectors, make(seed=2).item_vectors)


def test_every_option_changes_the_vectors():
    usual = make().item_vectors
    others = {"window": 1, "epochs": 3, "negatives": 2, "exponent": 0.0, "keep": 1e-2, "eta": 0.05}
    for name, value in others.items():
        assert not torch.allclose(make(**{name: value}).item_vectors, usual), name


def test_sentences_are_each_users_items_and_not_too_long(monkeypatch):
    users, items = np.array([4, 4, 4, 4, 4, 1, 7, 7]), np.arange(8)
    assert prod2vec._sentences(users, items) == [[0, 1, 2, 3, 4], [5], [6, 7]]
    monkeypatch.setattr(prod2vec, "_SENTENCE", 2)
    assert prod2vec._sentences(users, items) == [[0, 1], [2, 3], [4], [5], [6, 7]]


def test_bad_options_are_refused(monkeypatch):
    for options, told in (
        ({"window": 0}, "window=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"negatives": 0}, "negatives=0"),
        ({"keep": -1.0}, "keep=-1"),
        ({"eta": 0.0}, "eta=0"),
        ({"exponent": float("nan")}, "exponent=nan"),
        ({"similarity": "cosin"}, "did you mean 'cosine'"),
    ):
        with pytest.raises(TorchRankError, match=told):
            make(**options)
    with pytest.raises(TorchRankError, match="dim=0"):
        Prod2Vec(2, 2, 0)
    monkeypatch.setitem(__import__("sys").modules, "gensim.models", None)
    with pytest.raises(TorchRankError, match=r"torchrank\[words\]"):
        make()
