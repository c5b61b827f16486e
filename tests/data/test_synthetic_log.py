import numpy as np
import pytest
import torch

from torchrank.data import make_interactions
from torchrank.errors import TorchRankError


def test_the_log_is_what_was_asked_for():
    log, truth = make_interactions(num_users=300, num_items=200, num_interactions=9000, positive_share=0.3, seed=4)
    assert len(log) == 9000
    assert log.num_users == 300
    assert log.num_items <= 200
    pairs = log.users.astype(np.int64) * log.num_items + log.items
    assert len(np.unique(pairs)) == 9000
    assert abs(log.preferred.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 9000)
    assert np.diff(log.offsets).std() > 10
    assert truth.score_all(torch.arange(3)).shape == (3, log.num_items)


def test_the_truth_gives_the_odds_the_feedback_was_drawn_with():
    log, truth = make_interactions(num_users=200, num_items=300, num_interactions=20_000, seed=0)
    odds = truth(torch.from_numpy(log.users).long(), torch.from_numpy(log.items).long())
    chance = torch.sigmoid(odds).numpy()
    for low in np.arange(0, 1, 0.1):
        inside = (chance >= low) & (chance < low + 0.1)
        spread = np.sqrt((chance[inside] * (1 - chance[inside])).sum()) / inside.sum()
        assert abs(log.preferred[inside].mean() - chance[inside].mean()) < 4 * spread
    assert odds.std().item() == pytest.approx(2.0, abs=1e-4)
    torch.testing.assert_close(truth.score_all(torch.tensor([5]))[0, 7], truth(torch.tensor(5), torch.tensor(7)))


def test_the_seed_decides():
    one, same, other = (
        make_interactions(num_users=50, num_items=40, num_interactions=500, seed=s)[0] for s in (1, 1, 2)
    )
    assert one.items.tolist() == same.items.tolist()
    assert one.preferred.tolist() == same.preferred.tolist()
    assert one.items.tolist() != other.items.tolist()


@pytest.mark.parametrize(
    "options",
    [{"num_interactions": 5}, {"num_interactions": 10_000}, {"num_interactions": 100, "positive_share": 1.0}],
)
def test_impossible_requests_are_refused(options):
    with pytest.raises(TorchRankError, match=list(options)[-1]):
        make_interactions(num_users=10, num_items=50, **options)
