"""Weights of lists and of documents mean the same in every loss."""

import pytest
import torch

from tests import laws
from tests.losses.cases import CASES
from torchrank.losses import BPRLoss, StructuredNDCGLoss

every_loss = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
# ApproxNDCG weighs the gains of its ideal too: it is a ratio.
linear = pytest.mark.parametrize("case", [c for c in CASES if "approx" not in c.name], ids=lambda c: c.name)


def weights_like(scores, seed=9):
    return laws.random_lists(*scores.shape, seed=seed)[0].abs()


@every_loss
def test_weights_of_one_change_nothing(case):
    scores, relevance, mask = laws.random_lists(5, 7)
    torch.testing.assert_close(
        case(scores, relevance, mask, document_weights=torch.ones_like(scores)), case(scores, relevance, mask)
    )
    loss = case.make()
    torch.testing.assert_close(
        loss(scores, relevance, mask, scores.new_ones(5), document_weights=torch.ones_like(scores)),
        loss(scores, relevance, mask),
    )


@every_loss
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_list_of_weight_0_is_not_there(case, reduction):
    scores, relevance, mask = laws.random_lists(5, 7)
    scores.requires_grad_()
    keep = torch.tensor([0, 1, 3, 4])
    loss = case.make(reduction=reduction)
    value = loss(scores, relevance, mask, torch.tensor([1.0, 2.0, 0.0, 0.5, 1.0]).double())
    wanted = loss(scores[keep], relevance[keep], mask[keep], torch.tensor([1.0, 2.0, 0.5, 1.0]).double())
    torch.testing.assert_close(value, wanted)
    (gradient,) = torch.autograd.grad(value, scores)
    assert not gradient[2].any()
    torch.testing.assert_close(gradient[keep], torch.autograd.grad(wanted, scores)[0][keep])


@every_loss
def test_documents_of_weight_0_have_no_terms(case):
    scores, relevance, mask = laws.random_lists(4, 6)
    scores.requires_grad_()
    each = case(scores, relevance, mask, document_weights=torch.zeros_like(scores))
    assert not each.any()
    each.sum().backward()
    assert not scores.grad.any()


@linear
def test_the_loss_is_linear_in_the_documents_weights(case):
    scores, relevance, mask = laws.random_lists(4, 6)
    one, two = weights_like(scores, 1), weights_like(scores, 2)
    parts = case(scores, relevance, mask, document_weights=one) + 3 * case(
        scores, relevance, mask, document_weights=two
    )
    torch.testing.assert_close(case(scores, relevance, mask, document_weights=one + 3 * two), parts)


@every_loss
def test_the_gradient_under_weights_is_the_losss(case):
    scores, relevance, mask = laws.random_lists(3, 5, seed=4)
    weights = weights_like(scores)
    scores = (scores + 0.01 * torch.arange(15).view(3, 5)).requires_grad_()
    loss = case.make()
    lists = torch.tensor([0.5, 2.0, 1.0]).double()
    assert torch.autograd.gradcheck(lambda s: loss(s, relevance, mask, lists, document_weights=weights), scores)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_weights_of_pairs(reduction):
    torch.manual_seed(0)
    positive, negative = torch.randn(2, 4).double()
    loss = BPRLoss(reduction=reduction)
    torch.testing.assert_close(loss(positive, negative, torch.ones(4)), loss(positive, negative))
    weights = torch.tensor([2.0, 0.0, 1.0, 0.5]).double()
    keep = torch.tensor([0, 2, 3])
    torch.testing.assert_close(loss(positive, negative, weights), loss(positive[keep], negative[keep], weights[keep]))
    positive.requires_grad_()
    assert torch.autograd.gradcheck(lambda p: loss(p, negative, weights), positive)


def test_lists_of_the_structured_hinge():
    scores, relevance, mask = laws.random_lists(4, 5)
    loss = StructuredNDCGLoss()
    torch.testing.assert_close(loss(scores, relevance, mask, scores.new_ones(4)), loss(scores, relevance, mask))
    weights = torch.tensor([1.0, 0.0, 3.0, 2.0]).double()
    keep = torch.tensor([0, 2, 3])
    torch.testing.assert_close(
        loss(scores, relevance, mask, weights), loss(scores[keep], relevance[keep], mask[keep], weights[keep])
    )
