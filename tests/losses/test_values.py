"""The other losses' values and gradients, written as arithmetic."""

import math

import pytest
import torch

from torchrank import losses

T = torch.tensor
SCORES, LABELS = T([[0.0, 1.0, 3.0]]), T([[2.0, 0.0, 1.0]])  # ordered pairs: (0,1), (0,2), (2,1)


def log1pexp(x):
    return math.log(1 + math.exp(x))


def test_hinge():
    scores = SCORES.clone().requires_grad_()
    loss = losses.pairwise_hinge_loss(scores, LABELS)
    torch.testing.assert_close(loss, T([((1 + 1 - 0) + (1 + 3 - 0) + 0) / 3]))
    loss.sum().backward()
    torch.testing.assert_close(scores.grad, T([[-2.0, 1.0, 1.0]]) / 3)


def test_logistic():
    want = (log1pexp(1 - 0) + log1pexp(3 - 0) + log1pexp(1 - 3)) / 3
    torch.testing.assert_close(losses.pairwise_logistic_loss(SCORES, LABELS), T([want]))


def test_softmax():
    share = [math.exp(s) / (math.exp(0) + math.exp(1) + math.exp(3)) for s in (0, 1, 3)]
    wanted = [math.exp(r) / (math.exp(2) + math.exp(0) + math.exp(1)) for r in (2, 0, 1)]
    want = -sum(w * math.log(p) for w, p in zip(wanted, share, strict=True))
    torch.testing.assert_close(losses.softmax_loss(SCORES, LABELS), T([want]))
    want = -(2 / 3 * math.log(share[0]) + 1 / 3 * math.log(share[2]))
    torch.testing.assert_close(losses.softmax_loss(SCORES, LABELS, target="relevance"), T([want]))


def test_listmle():
    first = math.log(math.exp(0) + math.exp(1) + math.exp(3)) - 0
    second = math.log(math.exp(1) + math.exp(3)) - 3
    torch.testing.assert_close(losses.listmle_loss(SCORES, LABELS), T([first + second]))


def test_listmle_places_ties_in_input_order():
    first = math.log(math.exp(0) + math.exp(1) + math.exp(3)) - 0
    second = math.log(math.exp(1) + math.exp(3)) - 1
    torch.testing.assert_close(losses.listmle_loss(SCORES, T([[1.0, 0.0, 0.0]])), T([first + second]))


def test_approx_ndcg():
    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    ideal = 3 + 1 / math.log2(3)
    rank0 = 1 + sigmoid((1 - 0) / 2) + sigmoid((3 - 0) / 2)
    rank2 = 1 + sigmoid((0 - 3) / 2) + sigmoid((1 - 3) / 2)
    want = 1 - (3 / math.log2(1 + rank0) + 1 / math.log2(1 + rank2)) / ideal
    torch.testing.assert_close(losses.approx_ndcg_loss(SCORES, LABELS, temperature=2.0), T([want]))


def test_approx_ndcg_tends_to_ndcg():
    got = losses.approx_ndcg_loss(SCORES.double(), LABELS, temperature=1e-3)
    dcg = 1 + 0 + 3 / math.log2(4)  # the order is 2, 1, 0
    assert got.item() == pytest.approx(1 - dcg / (3 + 1 / math.log2(3)))


def test_lambda_losses():
    ideal = 3 + 1 / math.log2(3)
    d1, d2, d3 = 1.0, 1 / math.log2(3), 1 / 2
    near, far = d1 - d2, d2 - d3  # ranks one and two apart
    pairs = {"01": log1pexp(1 - 0), "02": log1pexp(3 - 0), "21": log1pexp(1 - 3)}  # ranks 3-2, 3-1, 1-2
    want = (near * 3 * pairs["01"] + far * 2 * pairs["02"] + near * 1 * pairs["21"]) / ideal / math.log(2)
    torch.testing.assert_close(losses.lambda_loss(SCORES, LABELS), T([want]))
    delta = (d2 - d3) * 3 * pairs["01"] + (d1 - d3) * 2 * pairs["02"] + (d1 - d2) * 1 * pairs["21"]
    want = 7.0 * want + delta / ideal / math.log(2)
    torch.testing.assert_close(losses.lambda_loss(SCORES, LABELS, variant="ndcg2++", mu=7.0), T([want]))
    want = 3 * d3 * (log1pexp(1 - 0) + log1pexp(3 - 0)) + 1 * d1 * (log1pexp(0 - 3) + log1pexp(1 - 3))
    want /= ideal * math.log(2)
    torch.testing.assert_close(losses.lambda_loss(SCORES, LABELS, variant="ndcg1"), T([want]))


def test_lambda_options():
    torch.testing.assert_close(
        losses.lambda_loss(SCORES, LABELS, variant="ndcg2++"),
        losses.lambda_loss(SCORES, LABELS, variant="ndcg2++", mu=10.0),
    )
    for options in ({"mu": 3.0}, {"variant": "ndcg2++", "mu": -1.0}, {"sigma": 0.0}, {"k": 0}, {"variant": "ndgc2"}):
        with pytest.raises(ValueError):  # noqa: PT011 - each option has a message of its own
            losses.LambdaLoss(**options)
    for temperature in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="temperature"):
            losses.ApproxNDCGLoss(temperature=temperature)


def test_pointwise():
    torch.testing.assert_close(losses.pointwise_squared_loss(SCORES, LABELS), T([(4.0 + 1 + 4) / 3]))
    want = (math.log(2) + log1pexp(1) + log1pexp(-3)) / 3
    torch.testing.assert_close(losses.pointwise_logistic_loss(SCORES, LABELS), T([want]))


def test_bpr():
    positive, negative = T([0.0, -100.0, 100.0, 30.0]), T([0.0, 100.0, -100.0, 60.0])
    each = T([math.log(2), 200.0, 0.0, 30.0])
    torch.testing.assert_close(losses.bpr_loss(positive, negative), each)
    weights = T([0.5, 0.25, 1.0, 0.25])
    torch.testing.assert_close(losses.BPRLoss()(positive, negative, weights), (weights * each).sum() / 2)
    torch.testing.assert_close(losses.BPRLoss(reduction="sum")(positive, negative, weights), (weights * each).sum())
    torch.testing.assert_close(losses.BPRLoss(reduction="none")(positive, negative), each)
    assert losses.BPRLoss()(torch.zeros(0), torch.zeros(0)) == 0
    assert losses.bpr_loss(positive.half(), negative.half()).dtype == torch.float32
    with pytest.raises(ValueError, match="one a pair"):
        losses.bpr_loss(positive, negative[:2])
    with pytest.raises(ValueError, match="4"):
        losses.bpr_loss(positive, negative, weights[:2])


def test_bpr_derivative():
    positive, negative = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 20
    weights = torch.rand(5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inputs = (positive.requires_grad_(), negative.requires_grad_(), weights.requires_grad_())
    assert torch.autograd.gradcheck(losses.bpr_loss, inputs)


def test_block_losses_differentiate_once():
    scores = SCORES.clone().requires_grad_()
    loss = losses.pairwise_logistic_loss(scores, LABELS).sum()
    (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(ValueError, match="differentiated once"):
        gradient.square().sum().backward()
