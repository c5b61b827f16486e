"""Learning on, block by block, and answering users whom training has not seen."""

import numpy as np
import polars as pl
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.preference_cases import assert_same_weights, factorization, slow_saros
from torchrank.data import Catalogue, InteractionLog, build_blocks, make_interactions
from torchrank.errors import ConvergenceError, DataError, ShapeError, TorchRankError
from torchrank.models import Factorization, FeedbackFactorization, fold_in_vectors
from torchrank.ops.newton import newton
from torchrank.training import (
    SAROSModule,
    SoftmaxModule,
    evaluate_catalogue,
    evaluate_shown,
    fit_interactions,
    fold_in,
    partial_fit,
    recommend,
)

LOG, _ = make_interactions(num_users=40, num_items=60, num_interactions=900, seed=3)


def start(seed=0, *, log=LOG, item_bias=True):
    torch.manual_seed(seed)
    return Factorization(log.num_users, log.num_items, 5, init="normal", item_bias=item_bias)


def test_pieces_of_users_are_an_epoch_of_the_sequential_engine():
    module = SAROSModule(start(), eta=0.1, mu=0.02)
    fit_interactions(module, LOG, epochs=1)
    scorer = start()
    for first in range(0, LOG.num_users, 7):
        piece = LOG.where((LOG.users >= first) & (LOG.users < first + 7))
        partial_fit(scorer, build_blocks(piece), eta=0.1, mu=0.02)
    assert_same_weights(scorer, module.scorer, tolerance=0)


def test_pieces_in_time_are_all_their_blocks_in_that_order():
    cuts = np.quantile(LOG.times, [0.3, 0.6])
    first, rest = LOG.split_by_time(cuts[0])
    second, third = rest.split_by_time(cuts[1])
    scorer, slow, total, pairs = start(), start(), 0.0, 0
    for piece in (first, second, third):
        blocks = build_blocks(piece)
        loss = partial_fit(scorer, blocks, eta=0.1, mu=0.02)
        slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
        starts = np.append(0, np.cumsum(blocks.counts))
        order = np.arange(LOG.num_users)
        slow, total, _ = slow_saros(slow, order, starts, slices, blocks.items, eta=0.1, mu=0.02)
        pairs = int(((slices[1] - slices[0]) * (slices[3] - slices[2])).sum())
        assert loss == pytest.approx(total / pairs, rel=1e-4)
    assert_same_weights(scorer, slow, tolerance=1e-5)


class Own(nn.Module):
    """A factorisation the compiled loop does not know."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, users, items):
        return self.inner(users, items)

    def squared_norms(self, users, items):
        return self.inner.squared_norms(users, items)


def test_a_scorer_of_ones_own_takes_the_same_steps():
    own, scorer = Own(start()), start()
    blocks = build_blocks(LOG.where(LOG.users < 12))
    partial_fit(scorer, blocks, eta=0.1, mu=0.02)
    partial_fit(own, blocks, eta=0.1, mu=0.02)
    assert_same_weights(own.inner, scorer, tolerance=1e-5)


def test_what_came_later_finds_room():
    early = LOG.where((LOG.users < 30) & (LOG.items < 50))
    frame = pl.DataFrame(
        {
            "user": early.user_ids[early.users],
            "item": early.item_ids[early.items],
            "feedback": early.feedback,
            "time": early.times,
        }
    )
    old = InteractionLog.from_frame(frame, positive_at=1)
    scorer = start(log=old)
    before = scorer.item_vectors.detach().clone()
    mean = scorer.user_vectors.mean(0)
    later = LOG.in_space_of(old.user_ids, old.item_ids)
    assert later.user_ids[: old.num_users].tolist() == old.user_ids.tolist()
    assert sorted(later.user_ids.tolist()) == sorted(LOG.user_ids[np.unique(LOG.users)].tolist())
    pairs = set(zip(LOG.user_ids[LOG.users].tolist(), LOG.item_ids[LOG.items].tolist(), strict=True))
    assert set(zip(later.user_ids[later.users].tolist(), later.item_ids[later.items].tolist(), strict=True)) == pairs
    for user in range(later.num_users):
        assert (np.diff(later.times[later.offsets[user] : later.offsets[user + 1]]) >= 0).all()
    partial_fit(scorer, build_blocks(later), eta=0.0, mu=0.0)
    assert (scorer.num_users, scorer.num_items) == (later.num_users, later.num_items)
    torch.testing.assert_close(scorer.item_vectors[: len(before)], before)
    torch.testing.assert_close(scorer.user_vectors[-1], mean)
    catalogue = Catalogue.from_log(old).updated(later)
    table = recommend(scorer, catalogue, later.user_ids[[-1]], k=3)
    assert table["user"].to_list() == later.user_ids[[-1] * 3].tolist()
    again = Catalogue.from_log(old).updated(old.in_space_of(old.user_ids, old.item_ids))
    assert (again.shown == 2 * Catalogue.from_log(old).shown).all()
    with pytest.raises(DataError, match="in_space_of"):
        Catalogue.from_log(old).updated(LOG)


def test_a_scorer_that_cannot_grow_says_so():
    users, items = LOG.users, LOG.items
    scorer = FeedbackFactorization.from_log_arrays(users, items, LOG.preferred, num_users=40, num_items=60, dim=4)
    bigger, _ = make_interactions(num_users=80, num_items=60, num_interactions=900)
    with pytest.raises(DataError, match="num_users=80"):
        partial_fit(scorer, build_blocks(bigger))
    with pytest.raises(TorchRankError, match="eta"):
        partial_fit(start(), build_blocks(LOG), eta=-1.0)
    with pytest.raises(TorchRankError, match="never dropped"):
        start().grow(num_users=1, num_items=60)


def objective(user, items, preferred, model, centre, mu, against):
    """Of one user, in plain torch."""
    scores = model.item_vectors.double() @ user
    if model.item_offsets is not None:
        scores = scores + model.item_offsets.double().squeeze(1)
    if against == "catalogue":
        value = (scores.logsumexp(0) - scores[items[preferred]]).mean()
    else:
        value = F.softplus(scores[items[~preferred]][:, None] - scores[items[preferred]]).mean()
    return value + mu * (user - centre).square().sum()


@pytest.mark.parametrize("against", ["shown", "catalogue"])
@pytest.mark.parametrize("item_bias", [True, False])
def test_folded_in_users_are_the_minima(against, item_bias):
    model = factorization(item_bias=item_bias)
    generator = torch.Generator().manual_seed(0)
    centre = torch.randn(5, generator=generator, dtype=torch.float64)
    sizes = [4, 1, 0, 6, 3]
    items = torch.cat([torch.randperm(12, generator=generator)[:size] for size in sizes])
    preferred = torch.tensor([1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0], dtype=torch.bool)
    offsets = torch.tensor([0, *np.cumsum(sizes)])
    tables = {
        "item_vectors": model.item_vectors,
        "item_offsets": None if model.item_offsets is None else model.item_offsets.squeeze(1),
    }
    found = fold_in_vectors(items, preferred, offsets, **tables, centre=centre, against=against, mu=0.05)
    assert found.dtype == torch.float32
    for user, (one, liked) in enumerate(zip(items.split(sizes), preferred.split(sizes), strict=True)):
        learns = liked.any() and (against == "catalogue" or (~liked).any())
        if not learns:
            torch.testing.assert_close(found[user], centre.float())
            continue
        best = found[user].double().requires_grad_()
        value = objective(best, one, liked, model, centre, 0.05, against)
        (gradient,) = torch.autograd.grad(value, best)
        assert gradient.abs().max() < 1e-5
        nudged = found[user].double() + 0.01 * torch.randn(5, dtype=torch.float64)
        assert objective(nudged, one, liked, model, centre, 0.05, against) > value


def tastes(groups=4, users=20, items=20, liked=10, shown=16):
    """Users of each group like items of their own group, and are shown others too."""
    generator = np.random.default_rng(0)
    rows = []
    for user in range(groups * users):
        own = user // users * items + generator.permutation(items)[:liked]
        rest = generator.permutation(np.setdiff1d(np.arange(groups * items), own))[: shown - liked]
        kinds = generator.permutation([(int(i), 1.0) for i in own] + [(int(i), 0.0) for i in rest])
        rows += [(user, int(item), feedback) for item, feedback in kinds]
    names = ("user", "item", "feedback")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return InteractionLog.from_frame(pl.DataFrame({**columns, "time": range(len(rows))}), positive_at=1)


@pytest.mark.parametrize("against", ["shown", "catalogue"])
def test_a_held_out_user_is_served_nearly_as_well_as_a_trained_one(against):
    train, test = tastes(users=40).split_per_user(train=0.8)
    held = train.users % 4 == 0
    if against == "shown":

        def fit(log):
            module = SAROSModule(dim=8, init="normal", eta=0.2, mu=0.01, order="shuffled")
            fit_interactions(module, log, epochs=25)
            return module.scorer

        def quality(scorer):
            return evaluate_shown(scorer, test.where(test.users % 4 == 0)).mean["auc"]
    else:

        def fit(log):
            module = SoftmaxModule(dim=8, batch_size=128, eta=0.02, mu=0.01)
            fit_interactions(module, log, epochs=15)
            return module.scorer

        def quality(scorer):
            return evaluate_catalogue(scorer, train, test.where(test.users % 4 == 0)).mean["ndcg@10"]

    trained, without = fit(train), fit(train.where(~held))
    folded = fold_in(without, train.where(held), against=against, mu=0.01)
    chance = quality(without)
    assert quality(trained) > chance + 0.2
    assert quality(folded) > quality(trained) - 0.05


def test_folded_in_users_share_the_items_and_get_recommendations():
    scorer, catalogue = start(), Catalogue.from_log(LOG)
    fresh = pl.DataFrame(
        {
            "user": ["new", "new", "new", "newer"],
            "item": [*LOG.item_ids[:2].tolist(), -5, -6],
            "feedback": [1, 0, 1, 1],
            "time": range(4),
        }
    )
    log = InteractionLog.from_frame(fresh, positive_at=1)
    known = log.in_space_of(item_ids=catalogue.item_ids, unknown="drop")
    folded = fold_in(scorer, known)
    assert folded.item_vectors is scorer.item_vectors
    torch.testing.assert_close(folded.user_vectors[1], scorer.user_vectors.mean(0))
    table = recommend(folded, catalogue.with_users(known), ["new"], k=5)
    assert len(table) == 5
    assert not set(table["item"]) & set(LOG.item_ids[:2].tolist())
    with pytest.raises(DataError, match="in_space_of"):
        fold_in(scorer, log)
    with pytest.raises(DataError, match="other items"):
        catalogue.with_users(log)


def test_a_feedback_factorisation_describes_anybody():
    whole = FeedbackFactorization.from_log_arrays(
        LOG.users, LOG.items, LOG.preferred, num_users=LOG.num_users, num_items=LOG.num_items, dim=4
    )
    some = LOG.where(LOG.users >= 30)
    folded = fold_in(whole, some)
    users = torch.arange(30, 40)
    torch.testing.assert_close(folded.score_all(users), whole.score_all(users))


def test_what_cannot_be_folded_in_is_refused():
    with pytest.raises(TorchRankError, match="Own is no Factorization"):
        fold_in(Own(start()), LOG)
    with pytest.raises(TorchRankError, match="mu"):
        fold_in(start(), LOG, mu=0)
    with pytest.raises(TorchRankError, match="against"):
        fold_in(start(), LOG, against="all")
    with pytest.raises(ShapeError, match="give one bool"):
        fold_in_vectors(torch.tensor([0]), torch.tensor([1]), torch.tensor([0, 1]), item_vectors=torch.eye(2))


def test_newton_says_when_its_steps_do_not_suffice():
    def quartic(x):
        return x.pow(4).sum(1), 4 * x.pow(3), torch.diag_embed(12 * x**2)

    with pytest.raises(ConvergenceError, match="larger μ"):
        newton(quartic, torch.full((1, 2), 9.0, dtype=torch.float64), steps=2)
