"""What every model of users and items does alike."""

import io

import numpy as np
import pytest
import torch

from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.models import EASE, Factorization, FeedbackFactorization, GRU4Rec, ItemRate, MostPop, Prod2Vec
from torchrank.ops.rates import smoothed_log_odds, smoothed_rate

USERS, ITEMS = 7, 11


def log_arrays(rows=40, seed=0):
    generator = np.random.default_rng(seed)
    pairs = generator.choice((USERS - 1) * ITEMS, rows, replace=False)  # the last user is shown nothing
    return pairs // ITEMS, pairs % ITEMS, generator.random(rows) < 0.5


def counts():
    _, items, preferred = log_arrays()
    shown = torch.from_numpy(np.bincount(items, minlength=ITEMS))
    return torch.from_numpy(np.bincount(items[preferred], minlength=ITEMS)), shown


def factorization(**options):
    torch.manual_seed(0)
    model = Factorization(USERS, ITEMS, 4, item_bias=True, **options)
    model.start_item_bias(*counts())
    return model


def feedback(**options):
    torch.manual_seed(0)
    return FeedbackFactorization.from_log_arrays(*log_arrays(), num_users=USERS, num_items=ITEMS, dim=4, **options)


def ease():
    users, items, preferred = log_arrays()
    return EASE.from_log_arrays(users[preferred], items[preferred], num_users=USERS, num_items=ITEMS, l2=2.0)


def prod2vec(**options):
    users, items, preferred = log_arrays()
    rows = np.argsort(users[preferred], kind="stable")
    sizes = {"num_users": USERS, "num_items": ITEMS, "dim": 4, "epochs": 3}
    return Prod2Vec.from_log_arrays(users[preferred][rows], items[preferred][rows], **sizes, **options)


def gru4rec(**options):
    users, items, preferred = log_arrays()
    rows = np.argsort(users[preferred], kind="stable")
    torch.manual_seed(0)
    sizes = {"num_users": USERS, "num_items": ITEMS, "dim": 4}
    return GRU4Rec.from_log_arrays(users[preferred][rows], items[preferred][rows], **sizes, **options)


MODELS = {
    "factorization": factorization,
    "feedback": feedback,
    "preferred": lambda: feedback(kinds="preferred"),
    "mostpop": lambda: MostPop.from_counts(counts()[0], num_users=USERS),
    "itemrate": lambda: ItemRate.from_counts(*counts(), num_users=USERS),
    "ease": ease,
    "gru4rec": gru4rec,
    "gru4rec_bias": lambda: gru4rec(layers=2, item_bias=True),
    "prod2vec": prod2vec,
    "prod2vec_dot": lambda: prod2vec(similarity="dot"),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def test_pairs_and_all_items_agree(model):
    users = torch.arange(USERS)
    every = model.score_all(users)
    pairs = model(users[:, None].expand(-1, ITEMS), torch.arange(ITEMS).expand(USERS, -1))
    assert every.shape == (USERS, ITEMS)
    torch.testing.assert_close(pairs, every)
    assert model(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long)).shape == (0,)


def test_recommend_is_the_sorted_scores_less_what_is_left_out(model):
    users = torch.tensor([5, 0, 5, 6])
    rows, items = torch.tensor([0, 0, 1, 3]), torch.tensor([2, 3, 10, 0])
    scores = model.score_all(users).detach().clone()
    scores[rows, items] = -torch.inf
    found, values, mask = model.recommend(users, ITEMS, exclude=(rows, items))
    assert mask.sum(1).tolist() == [ITEMS - 2, ITEMS - 1, ITEMS, ITEMS - 1]
    for row in range(len(users)):
        best = scores[row].sort(descending=True).values
        torch.testing.assert_close(values[row][mask[row]], best[best > -torch.inf])
        torch.testing.assert_close(scores[row, found[row][mask[row]]], values[row][mask[row]])
    assert not found[~mask].any()


def test_recommend_from_some_items(model):
    users, some = torch.tensor([1, 4]), torch.tensor([9, 2, 4])
    found, values, mask = model.recommend(users, 5, items=some, exclude=(torch.tensor([1, 1]), torch.tensor([2, 7])))
    assert mask.tolist() == [[True] * 3 + [False] * 2, [True] * 2 + [False] * 3]
    assert set(found[0, :3].tolist()) == {9, 2, 4}
    assert set(found[1, :2].tolist()) == {9, 4}
    torch.testing.assert_close(values[0, :3], model.score_all(users)[0, some].sort(descending=True).values)


def test_recommend_nobody(model):
    found, values, mask = model.recommend(torch.empty(0, dtype=torch.long), 3)
    assert found.shape == values.shape == mask.shape == (0, 3)
    with pytest.raises(ShapeError, match="k=0"):
        model.recommend(torch.tensor([0]), 0)


@pytest.mark.parametrize(("users", "items", "told"), [([0, 7], [0, 0], "no user 7"), ([0, 1], [0, -1], "no item -1")])
def test_unknown_indices_are_refused(model, users, items, told):
    with pytest.raises(DataError, match=told):
        model(torch.tensor(users), torch.tensor(items))
    with pytest.raises(ShapeError):
        model(torch.tensor([0, 1]), torch.tensor([0]))


def test_weights_come_back(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    extra = {
        k: getattr(model, k)
        for k in (
            "dim",
            "item_bias",
            "num_feedbacks",
            "kinds",
            "num_positives",
            "strength",
            "l2",
            "similarity",
            "layers",
        )
        if hasattr(model, k)
    }
    again = type(model)(num_users=USERS, num_items=ITEMS, **extra)
    again.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(again.score_all(torch.arange(USERS)), model.score_all(torch.arange(USERS)))


@pytest.mark.parametrize("make", [factorization, feedback])
def test_sparse_gradients_are_the_dense_ones(make):
    gradients = []
    for sparse in (False, True):
        model = make(sparse=sparse)
        users, items = torch.tensor([0, 3, 3, 1]), torch.tensor([1, 1, 5, 9])
        user, item = model.squared_norms(users, items)
        (model(users, items).sigmoid().sum() + user.sum() + item.sum()).backward()
        gradients.append({k: p.grad.to_dense() for k, p in model.named_parameters()})
        assert all(p.grad.is_sparse is sparse for p in model.parameters())
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient)


def test_feedback_factorization_is_its_formula():
    users, items, preferred = log_arrays()
    twice = [np.concatenate([x, x[:5]]) for x in (users, items, preferred)]  # repeated rows count once
    torch.manual_seed(0)
    model = FeedbackFactorization.from_log_arrays(*twice, num_users=USERS, num_items=ITEMS, dim=4)
    for user in range(USERS):
        own = users == user
        rows = items[own] + np.where(preferred[own], 0, ITEMS)
        vector = model.feedback_vectors[rows].sum(0) / max(1, own.sum()) ** 0.5
        expected = model.item_vectors @ vector + model.item_offsets[:, 0]
        torch.testing.assert_close(model.score_all(torch.tensor([user]))[0], expected)
        squares = model.feedback_vectors[rows].square().sum() / max(1, own.sum())
        torch.testing.assert_close(model.squared_norms(torch.tensor([user]), torch.tensor([3]))[0][0], squares)
    torch.testing.assert_close(model.score_all(torch.tensor([USERS - 1]))[0], model.item_offsets[:, 0])


def test_offsets_start_at_the_log_odds_of_the_rate():
    positives, shown = counts()
    rate = (positives + 5 * positives.sum() / shown.sum()) / (shown + 5)
    torch.testing.assert_close(smoothed_rate(positives, shown), rate.double())
    torch.testing.assert_close(factorization().item_offsets[:, 0], (rate / (1 - rate)).log())
    assert smoothed_log_odds(shown, shown).isfinite().all()
    assert smoothed_log_odds(shown * 0, shown).isfinite().all()
    with pytest.raises(TorchRankError, match="item_bias=True"):
        Factorization(2, 2, 1).start_item_bias(torch.ones(2), torch.ones(2))


def test_starts_are_what_they_say():
    torch.manual_seed(1)
    uniform, normal = (Factorization(500, 400, 8, init=init).user_vectors.detach() for init in ("uniform", "normal"))
    assert 0 <= uniform.min() < 0.01
    assert 0.99 < uniform.max() < 1
    assert abs(float(normal.std()) - 0.1) < 0.01
    with pytest.raises(TorchRankError, match="init='unifrom'"):
        Factorization(2, 2, 1, init="unifrom")
    with pytest.raises(TorchRankError, match="dim=0"):
        Factorization(2, 2, 0)


def test_ease_solves_its_problem():
    users, items, preferred = log_arrays()
    seen = torch.zeros(USERS, ITEMS, dtype=torch.float64)
    seen[users[preferred], items[preferred]] = 1
    for column in range(ITEMS):  # each column is a ridge regression on the other items
        others = [j for j in range(ITEMS) if j != column]
        x = seen[:, others]
        weights = torch.linalg.solve(x.T @ x + 2 * torch.eye(ITEMS - 1), x.T @ seen[:, column])
        torch.testing.assert_close(ease().weights[others, column], weights.float())
    assert not ease().weights.diagonal().any()


@pytest.mark.parametrize(
    "scorer", [Factorization(2, 3, 4), MostPop(2, 3), ItemRate(2, 3)], ids=lambda s: type(s).__name__
)
def test_users_and_items_that_do_not_exist_are_refused(scorer):
    users = torch.tensor([0, 1])
    for bad in (-1, 2):  # a negative number must not pass for one counted from the end
        with pytest.raises(DataError, match=f"there is no user {bad}"):
            scorer.recommend(torch.tensor([0, bad]), 2)
        with pytest.raises(DataError, match=f"there is no user {bad}"):
            scorer(torch.tensor([0, bad]), users)
    with pytest.raises(DataError, match="there is no item 3"):
        scorer.recommend(users, 2, items=torch.tensor([3]))
    with pytest.raises(DataError, match="there is no item 9"):
        scorer.recommend(users, 2, exclude=(torch.tensor([0]), torch.tensor([9])))
    with pytest.raises(DataError, match="there is no place 5"):
        scorer.recommend(users, 2, exclude=(torch.tensor([5]), torch.tensor([0])))
    for other in (users.float(), users.bool(), users.to(torch.uint8), [0, 1]):
        with pytest.raises(ShapeError, match="users"):
            scorer.recommend(other, 2)
        with pytest.raises(ShapeError, match="users"):
            scorer(other, users)
    for k in (0, 1.5, True, "1"):
        with pytest.raises(ShapeError, match="give an int of at least 1"):
            scorer.recommend(users, k)
