"""One call trains a ranker, and the epoch is chosen on the validation part."""

import pytest
import torch

from torchrank.data import ListLoader, make_queries
from torchrank.errors import TorchRankError
from torchrank.losses import SLAMLoss
from torchrank.metrics import average_precision, ndcg
from torchrank.models import LinearScorer
from torchrank.ops import ragged_to_padded
from torchrank.training import fit_lists

MADE = make_queries(120, num_features=6, seed=3)
TRAIN, VAL = MADE.dataset.select(torch.arange(80)), MADE.dataset.select(torch.arange(80, 120))


def value(scores):
    padded, mask = ragged_to_padded(scores, VAL.offsets)
    return float(ndcg(padded, ragged_to_padded(VAL.relevance, VAL.offsets)[0], mask, k=10).mean())


def mean_ap(scores):
    padded, mask = ragged_to_padded(scores, VAL.offsets)
    return float(average_precision(padded, ragged_to_padded(VAL.relevance, VAL.offsets)[0], mask).mean())


def test_the_best_epochs_weights_are_kept():
    fit = fit_lists(TRAIN, LinearScorer(6), SLAMLoss(), val=VAL, monitor="ndcg@10", epochs=6)
    values = [row["ndcg@10"] for row in fit.history]
    assert fit.epoch == 1 + max(range(6), key=lambda e: (values[e], e))
    with torch.no_grad():
        assert value(fit.module.scorer(VAL.features)) == pytest.approx(max(values), abs=1e-6)
    assert max(values) > value(torch.zeros(len(VAL.relevance))) + 0.2


def test_without_validation_the_last_epoch_is_kept_and_seeds_repeat():
    fits = [fit_lists(TRAIN, LinearScorer(6), SLAMLoss(), epochs=2, seed=5) for _ in range(2)]
    assert fits[0].epoch == 2
    assert fits[0].history == []
    first, second = (fit.module.scorer(VAL.features) for fit in fits)
    assert torch.equal(first, second)


def test_a_loss_may_be_used_again():
    loss = SLAMLoss()
    for _ in range(2):  # warnings are errors: Lightning warns of modules in evaluation mode
        fit_lists(TRAIN, LinearScorer(6), loss, epochs=1)


@pytest.mark.parametrize("val", [None, VAL])
def test_the_average_of_the_weights_is_what_a_plain_loop_gives(val):
    fit = fit_lists(TRAIN, LinearScorer(6), SLAMLoss(), val=val, epochs=3, average=0.8, l2=0.1, seed=2, batch_size=16)
    scorer, loader = LinearScorer(6), ListLoader(TRAIN, batch_size=16, shuffle=True, seed=2)
    optimizer, average, steps, epochs = torch.optim.Adam(scorer.parameters(), 0.01), torch.zeros(6), 0, []
    for _ in range(3):
        for batch in loader:
            optimizer.zero_grad()
            loss = SLAMLoss()(scorer(batch.features, batch.mask), batch.relevance, batch.mask)
            (loss + 0.1 * scorer.weight.square().sum()).backward()
            optimizer.step()
            steps += 1
            average += max(1 / steps, 0.2) * (scorer.weight.detach() - average)
        epochs.append(average.clone())
    torch.testing.assert_close(fit.module.scorer.weight.detach(), epochs[fit.epoch - 1])
    if val is not None:
        pairs = [(mean_ap(VAL.features @ w), row["map"]) for w, row in zip(epochs, fit.history, strict=True)]
        assert [a for a, _ in pairs] == pytest.approx([b for _, b in pairs], abs=1e-6)


@pytest.mark.parametrize("options", [{"epochs": 0}, {"monitor": "nothing"}, {"average": 1.0}])
def test_bad_options(options):
    with pytest.raises(TorchRankError, match=next(iter(options))):
        fit_lists(TRAIN, LinearScorer(6), SLAMLoss(), val=VAL, **options)
