"""GRU4Rec: users as states of a network that has read their items."""

import numpy as np
import pytest
import torch

from torchrank.errors import DataError, TorchRankError
from torchrank.models import GRU4Rec, gru4rec

GENERATOR = np.random.default_rng(0)
SIZES = GENERATOR.permutation([0, 0, 1, 1, 2, 3, 5, 8, 13, 21])
USERS = np.repeat(np.arange(10), SIZES)
ITEMS = GENERATOR.integers(15, size=len(USERS))


def make(**options):
    torch.manual_seed(1)
    return GRU4Rec.from_log_arrays(USERS, ITEMS, num_users=10, num_items=15, dim=6, **options)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("held", [1, 30, 2**17])
def test_a_user_is_the_state_after_their_items(layers, held, monkeypatch):
    monkeypatch.setattr(gru4rec, "_ITEMS", held)
    scorer = make(layers=layers, dropout=0.5).eval()
    users = torch.tensor([3, 9, 0, 1, 2, 5, 3, 8, 7, 6, 4])
    vectors = scorer.user_vectors(users)
    for row, user in enumerate(users.tolist()):
        own = torch.from_numpy(ITEMS[user == USERS])
        expected = torch.zeros(6)
        if len(own):
            expected = scorer.gru(scorer.input_vectors[own][None])[1][-1, 0]
        torch.testing.assert_close(vectors[row], expected)


def test_reading_in_pieces_is_reading_at_once():
    scorer = make(layers=2)
    items = torch.arange(12).view(2, 6)
    state = torch.zeros(2, 2, 6)
    whole = scorer.read(items, torch.tensor([6, 4]), state)
    first = scorer.read(items[:, :3], torch.tensor([3, 3]), state)
    rest = scorer.read(items[:, 3:], torch.tensor([3, 1]), first.state)
    torch.testing.assert_close(torch.cat([first.vectors, rest.vectors], 1), whole.vectors)
    torch.testing.assert_close(rest.state, whole.state)
    assert not whole.vectors[1, 4:].any()


def test_dropout_is_for_training():
    scorer, state = make(dropout=0.5), torch.zeros(1, 1, 6)
    items, lengths = torch.tensor([[1, 2]]), torch.tensor([2])
    assert (scorer.train().read(items, lengths, state).vectors == 0).any()
    assert not (scorer.eval().read(items, lengths, state).vectors == 0).any()


def test_what_a_score_is_made_of():
    scorer = make(item_bias=True)
    positives, shown = torch.arange(15), torch.arange(15) * 2 + 1
    scorer.start_item_bias(positives, shown)
    users = torch.tensor([4, 1])
    states = scorer.user_vectors(users)
    expected = states @ scorer.item_vectors.T + scorer.item_offsets[:, 0]
    torch.testing.assert_close(scorer.score_all(users), expected)
    some = torch.tensor([3, 3, 9])
    torch.testing.assert_close(scorer.score_table(states, some), expected[:, some])
    torch.testing.assert_close(scorer.score_states(states, torch.tensor([3, 9])), expected[[0, 1], [3, 9]])
    with pytest.raises(TorchRankError, match="item_bias=True"):
        make().start_item_bias(positives, shown)


@pytest.mark.parametrize("item_bias", [True, False])
def test_states_can_be_kept(item_bias):
    scorer = make(item_bias=item_bias, dropout=0.5).eval()
    if item_bias:
        scorer.start_item_bias(torch.arange(15), torch.arange(15) * 2 + 1)
    kept, users = scorer.to_factorization(), torch.arange(10)
    torch.testing.assert_close(kept.score_all(users), scorer.score_all(users))
    assert not kept.training


def test_sparse_gradients_are_the_dense_ones():
    gradients = []
    for sparse in (False, True):
        scorer = make(sparse=sparse, item_bias=True)
        scorer(torch.tensor([0, 3, 3, 7]), torch.tensor([1, 1, 5, 9])).sigmoid().sum().backward()
        gradients.append({name: p.grad.to_dense() for name, p in scorer.named_parameters()})
        assert scorer.input_vectors.grad.is_sparse is scorer.item_vectors.grad.is_sparse is sparse
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient)


def test_bad_options_are_refused():
    with pytest.raises(TorchRankError, match="layers=0"):
        make(layers=0)
    with pytest.raises(TorchRankError, match="dropout=1"):
        make(dropout=1.0)
    with pytest.raises(TorchRankError, match="dim=0"):
        GRU4Rec(2, 2, 0, num_positives=0)
    with pytest.raises(DataError, match="ascending"):
        GRU4Rec.from_log_arrays(np.array([1, 0]), np.array([0, 0]), num_users=2, num_items=1, dim=2)
    with pytest.raises(DataError, match="one a row"):
        GRU4Rec.from_log_arrays(np.array([1]), np.array([0, 0]), num_users=2, num_items=1, dim=2)
