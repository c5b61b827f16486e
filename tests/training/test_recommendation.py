import numpy as np
import polars as pl
import pytest
import torch

from torchrank.data import Catalogue, InteractionLog
from torchrank.errors import DataError, TorchRankError
from torchrank.training.recommendation import batch_size, recommend, recommend_batches


def catalogue(seed=0, users=30, items=40, n=400):
    generator = np.random.default_rng(seed)
    rows = {
        "user": [f"u{u}" for u in generator.integers(users, size=n)],
        "item": generator.integers(1000, 1000 + items, size=n),
        "feedback": generator.integers(2, size=n),
        "time": range(n),
    }
    return Catalogue.from_log(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))


class Table(torch.nn.Module):
    """Scores from a fixed table."""

    def __init__(self, table):
        super().__init__()
        self.table = torch.nn.Parameter(table, requires_grad=False)

    def forward(self, users, items):
        return self.table[users, items]


class FastTable(Table):
    def score_all(self, users):
        return self.table[users]


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def by_hand(table, known, users, k):
    rows = []
    for user in users:
        u = known.user_ids.tolist().index(user)
        seen = set(known.items[known.offsets[u] : known.offsets[u + 1]].tolist())
        best = sorted((i for i in range(known.num_items) if i not in seen), key=lambda i: -table[u, i])[:k]
        rows += [
            (user, int(known.item_ids[i]), rank, pytest.approx(float(table[u, i])), "model")
            for rank, i in enumerate(best, 1)
        ]
    return rows


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [Table, FastTable])
def test_recommendations_are_the_best_unseen_items(kind, device):
    known = catalogue()
    table = torch.randn(known.num_users, known.num_items, generator=torch.Generator().manual_seed(1))
    users = ["u3", "u1", "u7"]
    frame = recommend(kind(table).to(device), known, users, k=5)
    assert frame.rows() == by_hand(table, known, users, 5)
    assert frame.columns == ["user", "item", "rank", "score", "by"]


def test_everybody_by_default_and_parts_add_up(monkeypatch):
    known = catalogue()
    table = torch.randn(known.num_users, known.num_items, generator=torch.Generator().manual_seed(1))
    whole = recommend(Table(table), known, k=3)
    assert whole["user"].unique(maintain_order=True).to_list() == known.user_ids.tolist()
    monkeypatch.setattr("torchrank.training.recommendation._PAIRS", 4 * known.num_items)
    assert batch_size(Table(table), known.num_items) == 4
    parts = list(recommend_batches(Table(table), known, k=3))
    assert len(parts) == -(-known.num_users // 4)
    assert pl.concat(parts).equals(whole)


def test_a_user_who_has_seen_nearly_all_gets_fewer_and_never_a_filler():
    rows = {"user": [1, 1, 1, 2], "item": [1, 2, 3, 4], "feedback": [1, 0, 1, 1], "time": range(4)}
    known = Catalogue.from_log(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
    frame = recommend(Table(torch.zeros(2, 4)), known, [1, 2], k=10)
    assert frame.filter(user=1)["item"].to_list() == [4]
    assert sorted(frame.filter(user=2)["item"].to_list()) == [1, 2, 3]
    assert len(recommend(Table(torch.zeros(2, 4)), known, [1], k=10, exclude_seen=False)) == 4


def test_items_that_only_the_test_part_has_are_no_candidates():
    rows = {"user": [1] * 5 + [2], "item": [1, 2, 3, 4, 5, 1], "feedback": [1] * 6, "time": range(6)}
    train, _ = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1).split_per_user(train=0.8)
    known = Catalogue.from_log(train)
    assert 5 not in recommend(Table(torch.zeros(2, 5)), known, [1], exclude_seen=False)["item"].to_list()


def test_unknown_users_are_an_error_or_get_the_item_rate():
    rows = {"user": [1, 2, 1, 2, 1], "item": [7, 7, 8, 8, 9], "feedback": [1, 1, 0, 1, 0], "time": range(5)}
    known = Catalogue.from_log(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))
    table = Table(torch.zeros(2, 3))
    with pytest.raises(DataError, match="99"):
        recommend(table, known, [1, 99])
    frame = recommend(table, known, [99, 2], k=3, unknown="item_rate").filter(user=99)
    rate = [(2 + 5 * 3 / 5) / 7, (1 + 5 * 3 / 5) / 7, (0 + 5 * 3 / 5) / 6]
    assert frame["item"].to_list() == [7, 8, 9]
    assert frame["score"].to_list() == pytest.approx(rate)
    assert frame["by"].to_list() == ["item_rate"] * 3
    assert frame.schema == recommend(table, known).schema


def test_nobody_asked_is_an_empty_frame_of_the_same_columns():
    known = catalogue()
    frame = recommend(Table(torch.zeros(known.num_users, known.num_items)), known, np.array([], object))
    assert frame.shape == (0, 5)


@pytest.mark.parametrize("options", [{"k": 0}, {"unknown": "popular"}])
def test_bad_options_are_named(options):
    known = catalogue()
    with pytest.raises(TorchRankError, match=next(iter(options))):
        recommend(Table(torch.zeros(known.num_users, known.num_items)), known, **options)


@pytest.mark.parametrize("device", DEVICES)
def test_nan_scores_are_refused(device):
    known = catalogue()
    with pytest.raises(DataError, match="NaN"):
        recommend(Table(torch.full((known.num_users, known.num_items), float("nan"))).to(device), known)
