"""Plain mistakes of type come back as one error that names the argument, what was given, and the fix."""

import numpy as np
import polars as pl
import pytest
import torch
from torch.func import grad

from torchrank import losses
from torchrank.data import (
    Catalogue,
    InteractionLog,
    ListLoader,
    build_blocks,
    concat_queries,
    make_interactions,
    make_queries,
    read_letor,
    read_log,
    read_movielens,
)
from torchrank.errors import TorchRankError
from torchrank.losses import SLAMLoss
from torchrank.metrics import ndcg
from torchrank.models import AttentionScorer, Factorization, LinearChain, LinearScorer, MLPScorer
from torchrank.training import (
    BPRModule,
    InteractionDataModule,
    SAROSModule,
    evaluate_catalogue,
    evaluate_shown,
    fit_lists,
    fold_in,
    load,
    partial_fit,
    perceptron_pass,
    recommend,
)

LOG, _ = make_interactions(num_users=20, num_items=50, num_interactions=200)
LISTS = make_queries(5, num_features=3).dataset
MODEL = Factorization(LOG.num_users, LOG.num_items, 2)
PAIRS = torch.rand(2, 3), torch.rand(2, 3)


def wide(name):
    columns = {"user": [1, 2], "item": [1, 1], "feedback": [1, 1], "time": [1, 2]}
    return pl.DataFrame(columns).with_columns(pl.col(name).cast(pl.Int128))


MISTAKES = {
    "path is a number": (lambda: read_letor(5), "path is a int, 5; give a path"),
    "path is nothing": (lambda: read_movielens(None), "path is a NoneType, None; give a path"),
    "path of a log": (lambda: read_log(["a"], positive_at=1), "path is a list"),
    "path of Parquet": (lambda: InteractionLog.from_parquet(5, positive_at=1), "path is a int"),
    "path of CSV": (lambda: InteractionLog.from_csv(5, positive_at=1), "path is a int"),
    "path of a checkpoint": (lambda: load(5), "path is a int"),
    "groups": (lambda: read_letor(__file__, groups=3), "groups is a int"),
    "num_features of a file": (lambda: read_letor("x", num_features="3"), "num_features is a str, '3'; give an int"),
    "num_features": (lambda: LinearScorer("3"), "num_features='3' is a str; give an int of at least 1"),
    "num_features is no int": (lambda: LinearScorer(2.0), "num_features=2.0 is a float"),
    "hidden": (lambda: MLPScorer(3, hidden=5), r"hidden is a int, 5; give widths of layers"),
    "dropout": (lambda: MLPScorer(3, dropout="a"), "dropout='a' must be a finite number"),
    "dim of attention": (lambda: AttentionScorer(3, dim="8"), "dim='8' is a str"),
    "dim": (lambda: Factorization(3, 4, dim=1.5), "dim=1.5 is a float; give an int of at least 1"),
    "dim is nothing": (lambda: Factorization(3, 4, dim=None), "dim=None is a NoneType"),
    "labels of a chain": (lambda: LinearChain("3", 2), "num_features='3' is a str"),
    "minimum": (lambda: build_blocks(LOG).select(minimum=[]), r"minimum=\[\]; give 'min', a number of blocks"),
    "log": (lambda: build_blocks(None), "log is a NoneType, None; give an InteractionLog"),
    "log is a dataset": (lambda: build_blocks(LISTS), r"log is a QueryDataset, QueryDataset\(5 queries"),
    "shuffle": (lambda: build_blocks(LOG, shuffle=3), "shuffle is a int, 3; give a numpy.random.Generator"),
    "one dataset": (lambda: concat_queries(LISTS), "datasets is a QueryDataset.*give a list of QueryDatasets"),
    "no dataset": (lambda: concat_queries([LISTS, 1]), r"datasets\[1\] is a int"),
    "loader": (lambda: ListLoader(None), "dataset is a NoneType"),
    "batch_size": (lambda: ListLoader(LISTS, batch_size="3"), "batch_size='3' is a str"),
    "k as a float": (lambda: ndcg(*PAIRS, ideal="full", k=2e9), "k=2000000000.0; give an int"),
    "k beyond all": (lambda: ndcg(*PAIRS, ideal="full", k=2 * 10**9), "most of which no list has"),
    "scorer is nothing": (lambda: fit_lists(LISTS, None, SLAMLoss()), "scorer is a NoneType, None; give an nn.Module"),
    "loss is a word": (lambda: fit_lists(LISTS, LinearScorer(3), "slam"), "loss is a str, 'slam'; give an nn.Module"),
    "epochs": (lambda: fit_lists(LISTS, LinearScorer(3), SLAMLoss(), epochs="3"), "epochs='3' is a str"),
    "scorer of recommend": (lambda: recommend(None, Catalogue.from_log(LOG)), "scorer is a NoneType"),
    "catalogue": (lambda: recommend(MODEL, LOG), "catalogue is a InteractionLog.*give a Catalogue"),
    "k of recommend": (lambda: recommend(MODEL, Catalogue.from_log(LOG), k="3"), "k='3' is a str"),
    "catalogue of nothing": (lambda: Catalogue.from_log(None), "log is a NoneType"),
    "train": (lambda: evaluate_catalogue(MODEL, None, LOG), "train is a NoneType"),
    "test": (lambda: evaluate_shown(MODEL, None), "test is a NoneType"),
    "lanes": (lambda: SAROSModule(lanes="3"), "lanes='3' is a str"),
    "eta": (lambda: SAROSModule(eta="a"), "eta='a' must be a finite number"),
    "batch of BPR": (lambda: BPRModule(batch_size=1.5), "batch_size=1.5 is a float"),
    "validation": (
        lambda: InteractionDataModule(LOG, validation="a"),
        "validation='a'; give a share from 0",
    ),
    "keep": (lambda: LOG.where([True] * 200), "keep is a list"),
    "blocks": (lambda: partial_fit(MODEL, LOG), "blocks is a InteractionLog.*build_blocks"),
    "log of new users": (lambda: fold_in(MODEL, None), "log is a NoneType"),
    "arrays": (lambda: perceptron_pass(np.ones((2, 2)), np.ones(2), np.array([0, 2])), "features is a ndarray"),
    "ids of 128 bits": (lambda: InteractionLog.from_frame(wide("user"), positive_at=1), "'user'.*128 bits.*cast it"),
    "times of 128 bits": (lambda: InteractionLog.from_frame(wide("time"), positive_at=1), "'time'.*128 bits.*cast it"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name):
    make, message = MISTAKES[name]
    with pytest.raises(TorchRankError, match=message):
        make()


@pytest.mark.parametrize("scorer", [LinearScorer(3), MLPScorer(3), AttentionScorer(3)], ids=lambda s: type(s).__name__)
def test_scorers_say_what_they_take(scorer):
    for features, message in (
        (np.ones((2, 4, 3), np.float32), "features is a ndarray; give a tensor"),
        (torch.ones(2, 4, 3, dtype=torch.int64), r"features have dtype torch.int64; give floating point"),
        (
            torch.ones(2, 4, 3).double(),
            "features have dtype torch.float64, the scorer torch.float32; make both the same",
        ),
    ):
        with pytest.raises(TorchRankError, match=message):
            scorer(features)
    with pytest.raises(TorchRankError, match="mask is a ndarray"):
        scorer(torch.ones(2, 4, 3), np.ones((2, 4), bool))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert scorer(torch.ones(2, 4, 3).bfloat16()).shape == (2, 4)


LABELS = torch.tensor([[2.0, 1, 0], [0, 1, 1]])
SCORES = torch.tensor([[0.3, -1.0, 0.7], [0.1, 0.9, -0.4]])
PLAIN = ["slam_loss", "pairwise_hinge_loss", "softmax_loss", "listmle_loss", "pointwise_squared_loss"]
BESIDE = ["pairwise_logistic_loss", "approx_ndcg_loss", "lambda_loss", "structured_ndcg_loss"]


FALLS_BACK = pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's, of what vmap does row by row


@FALLS_BACK
@pytest.mark.parametrize("name", [*PLAIN, "pointwise_logistic_loss"])
def test_losses_under_torchs_transforms(name):
    loss = getattr(losses, name)
    torch.testing.assert_close(torch.vmap(loss)(SCORES, LABELS), loss(SCORES, LABELS))
    leaf = SCORES.clone().requires_grad_()
    (want,) = torch.autograd.grad(loss(leaf, LABELS).sum(), leaf)
    torch.testing.assert_close(grad(lambda s: loss(s, LABELS).sum())(SCORES), want)
    torch.testing.assert_close(torch.vmap(grad(lambda s, r: loss(s, r).sum()))(SCORES, LABELS), want)


@pytest.mark.parametrize("name", BESIDE)
def test_losses_whose_gradient_is_computed_beside_the_value_say_so(name):
    loss = getattr(losses, name)
    with pytest.raises(TorchRankError, match=r"torch\.vmap and torch\.func cannot see"):
        grad(lambda s: loss(s, LABELS).sum())(SCORES)


@FALLS_BACK
@pytest.mark.parametrize("name", ["approx_ndcg_loss"])
def test_their_values_can_be_mapped(name):
    loss = getattr(losses, name)
    torch.testing.assert_close(torch.vmap(loss)(SCORES, LABELS), loss(SCORES, LABELS))


def test_the_chain_says_so_too():
    labels, transitions = torch.zeros(2, 3, dtype=torch.int64), torch.rand(2, 2)
    with pytest.raises(TorchRankError, match=r"torch\.vmap and torch\.func cannot see"):
        grad(lambda e: losses.crf_loss(e, transitions, labels).sum())(torch.rand(2, 3, 2))
