"""Bad input is refused with one error of the library, whichever loss it is given to."""

import math

import numpy as np
import pytest
import torch

from tests.losses.cases import CASES
from torchrank import losses
from torchrank.errors import DataError, ShapeError, TorchRankError

LISTS = [losses.structured_ndcg_loss, *{case.function: None for case in CASES}]
MODULES = [losses.StructuredNDCGLoss, *{case.module: None for case in CASES}]
every_function = pytest.mark.parametrize("function", LISTS, ids=lambda f: f.__name__)
every_module = pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
SCORES = torch.tensor([[0.3, -1.0, 2.0], [0.1, 0.2, 0.3]])
LABELS = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
REAL = torch.ones(2, 3, dtype=torch.bool)


@every_function
def test_what_is_no_tensor(function):
    for given in (
        (SCORES.numpy(), LABELS),
        (SCORES, LABELS.numpy()),
        (SCORES, LABELS.tolist()),
        (SCORES, None, REAL),
        (SCORES, LABELS, REAL.tolist()),
        (SCORES, LABELS, REAL.numpy()),
    ):
        with pytest.raises((ShapeError, TorchRankError), match=r"give a tensor|shape"):
            function(*given)


@every_function
def test_dtypes_layouts_and_devices_that_hold_no_scores(function):
    with pytest.raises(ShapeError, match="complex64"):
        function(SCORES + 1j, LABELS)
    with pytest.raises(ShapeError, match=r"relevance has .*uint16"):
        function(SCORES, LABELS.to(torch.uint16))
    with pytest.raises(ShapeError, match="sparse_coo"):
        function(SCORES.to_sparse(), LABELS)
    with pytest.raises(ShapeError, match="relevance is on meta, scores on cpu"):
        function(SCORES, LABELS.to("meta"))


@every_module
@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (1.0, ShapeError),
        ([1.0, 2.0], ShapeError),
        (np.ones(2), ShapeError),
        (torch.ones(2, 1), ShapeError),
        (torch.tensor([1.0, -1.0]), DataError),
        (torch.tensor([1.0, math.nan]), DataError),
        (torch.tensor([1.0, math.inf]), DataError),
    ],
    ids=str,
)
def test_list_weights(module, weights, error):
    with pytest.raises(error, match="list_weights"):
        module()(SCORES, LABELS, None, weights)


@pytest.mark.parametrize("function", LISTS[1:], ids=lambda f: f.__name__)
def test_document_weights(function):
    for weights in (1.0, [1.0], np.ones((2, 3))):
        with pytest.raises(ShapeError, match="document_weights is a"):
            function(SCORES, LABELS, document_weights=weights)
    for weight in (-1.0, math.nan, math.inf):
        with pytest.raises(DataError, match="document_weights must be finite"):
            function(SCORES, LABELS, document_weights=torch.full((2, 3), weight))


@pytest.mark.parametrize("module", [losses.SLAMLoss, losses.LambdaLoss, losses.StructuredNDCGLoss])
@pytest.mark.parametrize(
    "k", [0, -1, 2.0, 2.5, True, "5", math.nan, [1], np.int64(2), torch.tensor(2), 10**30], ids=str
)
def test_cutoffs_that_are_no_ranks(module, k):
    with pytest.raises(TorchRankError, match="give an int from 1"):
        module(k=k)


@pytest.mark.parametrize(
    ("module", "option"),
    [
        (losses.SLAMLoss, "margin"),
        (losses.PairwiseHingeLoss, "margin"),
        (losses.ApproxNDCGLoss, "temperature"),
        (losses.LambdaLoss, "sigma"),
    ],
)
@pytest.mark.parametrize("value", ["wide", None, True, [], -1, math.nan, math.inf, torch.tensor(1.0)], ids=str)
def test_numbers_that_are_none(module, option, value):
    with pytest.raises(TorchRankError, match=f"{option}=.* must be a finite number"):
        module(**{option: value})


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_the_most_violating_ranking_needs_finite_scores(score):
    scores = SCORES.clone()
    scores[1, 2] = score
    with pytest.raises(DataError, match=f"a score of list 1 is {score}"):
        losses.structured_ndcg_loss(scores, LABELS)
    hidden = REAL.clone()
    hidden[1, 2] = False
    assert losses.structured_ndcg_loss(scores, LABELS, hidden).isfinite().all()


def test_pairs_of_the_logistic_loss():
    with pytest.raises(ShapeError, match="negative is a list"):
        losses.bpr_loss(torch.zeros(2), [0.0, 0.0])
    with pytest.raises(ShapeError, match="weights is a float"):
        losses.bpr_loss(torch.zeros(2), torch.zeros(2), 1.0)


@pytest.mark.parametrize(
    "function", [losses.approx_ndcg_loss, losses.lambda_loss, losses.pairwise_logistic_loss], ids=lambda f: f.__name__
)
def test_a_second_derivative_is_refused_and_not_zero(function):
    scores = SCORES.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(scores, LABELS).sum(), scores, create_graph=True)
    (once,) = torch.autograd.grad(function(scores, LABELS).sum(), scores)
    torch.testing.assert_close(gradient, once)
    with pytest.raises(TorchRankError, match="differentiated once"):
        gradient.square().sum().backward()


def test_a_second_derivative_of_the_random_field_is_refused_and_not_zero():
    emissions, transitions = torch.rand(2, 3, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True)
    loss = losses.crf_loss(emissions, transitions, torch.zeros(2, 3, dtype=torch.int64)).sum()
    gradients = torch.autograd.grad(loss, [emissions, transitions], create_graph=True)
    for gradient in gradients:
        with pytest.raises(TorchRankError, match="differentiated once"):
            gradient.square().sum().backward(retain_graph=True)
