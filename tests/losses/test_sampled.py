"""Losses of one wanted item against sampled ones: values by plain Python, derivatives, and what they promise."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchrank import losses
from torchrank.errors import ShapeError, TorchRankError
from torchrank.training.spec import build, describe


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def shares(others):
    total = sum(math.exp(x) for x in others)
    return [math.exp(x) / total for x in others]


def top1(wanted, others):
    return sum(sigmoid(x - wanted) + sigmoid(x * x) for x in others) / len(others)


def top1_max(wanted, others):
    return sum(p * (sigmoid(x - wanted) + sigmoid(x * x)) for p, x in zip(shares(others), others, strict=True))


def bpr_max(wanted, others, score_l2=1.0):
    pairs = list(zip(shares(others), others, strict=True))
    return -math.log(sum(p * sigmoid(wanted - x) for p, x in pairs)) + score_l2 * sum(p * x * x for p, x in pairs)


def softmax(wanted, others):
    return -math.log(math.exp(wanted) / (math.exp(wanted) + sum(math.exp(x) for x in others)))


CASES = {
    "top1": (losses.top1_loss, losses.TOP1Loss, top1, {}),
    "top1_max": (losses.top1_max_loss, losses.TOP1MaxLoss, top1_max, {}),
    "bpr_max": (losses.bpr_max_loss, losses.BPRMaxLoss, bpr_max, {}),
    "bpr_max_free": (losses.bpr_max_loss, losses.BPRMaxLoss, bpr_max, {"score_l2": 0.3}),
    "softmax": (losses.sampled_softmax_loss, losses.SampledSoftmaxLoss, softmax, {}),
}


@pytest.fixture(params=CASES)
def case(request):
    function, module, oracle, options = CASES[request.param]
    return partial(function, **options), partial(module, **options), partial(oracle, **options)


def drawn(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    positive = torch.randn(*shape[:-1], dtype=dtype, generator=generator) * 2
    negative = torch.randn(*shape, dtype=dtype, generator=generator) * 2
    return positive, negative, torch.rand(*shape, generator=generator) < 0.7


def test_against_the_formula(case):
    function, module, oracle = case
    positive, negative, mask = drawn(0, 3, 8, 5)
    mask[0, 0] = False
    got = function(positive, negative, mask)
    assert got.shape == (3, 8)
    assert got[0, 0] == 0
    rows = [(i, j) for i in range(3) for j in range(8) if mask[i, j].any()]
    for i, j in rows:
        assert got[i, j].item() == pytest.approx(oracle(positive[i, j].item(), negative[i, j][mask[i, j]].tolist()))
    torch.testing.assert_close(module()(positive, negative, mask), got.sum() / len(rows))
    torch.testing.assert_close(module(reduction="sum")(positive, negative, mask), got.sum())
    weights = torch.rand(3, 8, dtype=torch.float64)
    expected = (weights * got).sum() / sum(weights[row] for row in rows)
    torch.testing.assert_close(module()(positive, negative, mask, weights), expected)
    all_true = torch.ones_like(mask)
    torch.testing.assert_close(function(positive, negative), function(positive, negative, all_true))


def test_derivatives(case):
    function, _, _ = case
    positive, negative, mask = drawn(1, 4, 3)
    mask[2] = False
    inputs = (positive.requires_grad_(), negative.requires_grad_())
    assert torch.autograd.gradcheck(lambda p, n: function(p, n, mask), inputs)
    assert torch.autograd.gradgradcheck(lambda p, n: function(p, n, mask), inputs)


@pytest.mark.parametrize("junk", [1e9, float("nan"), float("inf")])
def test_padding_is_inert(case, junk):
    function, _, _ = case
    positive, negative, mask = drawn(2, 6, 4)
    mask[1] = False
    negative = negative.masked_fill(~mask, junk).requires_grad_()
    values = function(positive.requires_grad_(), negative, mask)
    values.sum().backward()
    torch.testing.assert_close(values, function(positive, torch.where(mask, negative, 0.0), mask))
    assert not negative.grad[~mask].any()
    assert positive.grad.isfinite().all()
    assert positive.grad[1] == 0


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(0.01, 5))
def test_laws(seed, samples, lift):
    positive, negative, _ = drawn(seed, 3, samples)
    for function, _, _, options in CASES.values():
        loss = partial(function, **options)
        value = loss(positive, negative)
        assert (loss(positive + lift, negative) < value + 1e-12).all()  # the wanted item higher costs no more
        order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(loss(positive, negative[:, order]), value)
    alone = negative[:, :1]  # against one sample the softmax has nothing to choose
    torch.testing.assert_close(losses.top1_max_loss(positive, alone), losses.top1_loss(positive, alone))
    pair = losses.bpr_loss(positive, alone[:, 0])
    torch.testing.assert_close(losses.bpr_max_loss(positive, alone, score_l2=0.0), pair)
    torch.testing.assert_close(losses.sampled_softmax_loss(positive, alone), pair)
    shifted = losses.sampled_softmax_loss(positive + lift, negative + lift)
    torch.testing.assert_close(shifted, losses.sampled_softmax_loss(positive, negative))


def test_extremes_are_finite(case):
    function, _, _ = case
    for far in (1e4, -1e4):
        positive, negative = torch.tensor([far], requires_grad=True), torch.tensor([[-far, 0.0]], requires_grad=True)
        function(positive, negative).sum().backward()
        assert positive.grad.isfinite().all()
        assert negative.grad.isfinite().all()
    half = function(torch.tensor([300.0]).half(), torch.tensor([[1.0, -300.0]]).half())
    assert half.dtype == torch.float32
    assert half.isfinite().all()


def test_no_samples_and_no_rows(case):
    function, module, _ = case
    assert function(torch.ones(2), torch.ones(2, 0)).tolist() == [0, 0]
    assert module()(torch.ones(2), torch.ones(2, 0)) == 0
    assert module()(torch.ones(0), torch.ones(0, 3)) == 0


def test_bad_input_is_refused(case):
    function, module, _ = case
    with pytest.raises(ShapeError, match=r"give \(\.\.\.\) and"):
        function(torch.ones(2), torch.ones(3, 4))
    with pytest.raises(ShapeError, match="booleans"):
        function(torch.ones(2), torch.ones(2, 4), torch.ones(2, 4))
    with pytest.raises(ShapeError, match="give a tensor"):
        function(torch.ones(2), [[0.0], [1.0]])
    with pytest.raises(TorchRankError, match="reduction"):
        module(reduction="average")
    with pytest.raises(TorchRankError, match="score_l2=-1"):
        losses.bpr_max_loss(torch.ones(1), torch.ones(1, 1), score_l2=-1)


def test_a_checkpoint_can_name_them(case):
    _, module, _ = case
    positive, negative, mask = drawn(3, 4, 3)
    again = build(describe(module(reduction="sum")))
    torch.testing.assert_close(again(positive, negative, mask), module(reduction="sum")(positive, negative, mask))
