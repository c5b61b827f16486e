"""Softmax against the batch and against a sample, beside the full softmax they stand for."""

import itertools
import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from torchrank.errors import ShapeError
from torchrank.losses import (
    InBatchSoftmaxLoss,
    SampledSoftmaxLoss,
    in_batch_softmax_loss,
    sampled_softmax_loss,
)


def full_softmax(scores, items):
    """Cross-entropy over the whole catalogue: ``(B, I)`` scores, ``(B,)`` items."""
    return torch.nn.functional.cross_entropy(scores, items, reduction="none")


def catalogue(rows=6, items=9, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(rows, items, generator=generator, dtype=torch.float64) * 3,
        torch.randint(items, (rows,), generator=generator),
    )


def test_the_whole_catalogue_as_sample_is_the_full_softmax():
    scores, items = catalogue()
    positive = scores.gather(1, items[:, None]).squeeze(1)
    every = torch.arange(9)
    assert_close(sampled_softmax_loss(positive, scores, every != items[:, None]), full_softmax(scores, items))
    per_row = torch.stack([torch.randperm(9) for _ in range(6)])
    got = sampled_softmax_loss(positive, scores.gather(1, per_row), per_row != items[:, None])
    assert_close(got, full_softmax(scores, items))
    # a constant correction of both cancels
    log_q = torch.full((9,), -3.0, dtype=torch.float64)
    got = sampled_softmax_loss(positive, scores, every != items[:, None], log_q=log_q[items], negative_log_q=log_q)
    assert_close(got, full_softmax(scores, items))


def test_a_batch_of_the_whole_catalogue_is_the_full_softmax():
    users, vectors = torch.randn(9, 4, dtype=torch.float64), torch.randn(9, 4, dtype=torch.float64)
    order = torch.randperm(9)
    got = in_batch_softmax_loss(users @ vectors[order].T, order, torch.full((9,), 0.7))
    assert_close(got, full_softmax(users @ vectors.T, order))


def test_copies_weighted_by_their_counts_are_the_full_softmax():
    """A sample that holds item j c_j times, corrected by log c_j, is the catalogue."""
    scores, items = catalogue()
    counts = torch.tensor([1, 4, 2, 1, 3, 1, 1, 2, 5])
    sample = torch.repeat_interleave(torch.arange(9), counts)
    got = sampled_softmax_loss(
        scores.gather(1, items[:, None]).squeeze(1),
        scores[:, sample],
        sample != items[:, None],
        negative_log_q=counts.double().log()[sample],
    )
    assert_close(got, full_softmax(scores, items))


def test_the_corrected_sum_estimates_the_catalogue_without_bias():
    """Over all samples of two draws from q: the mean of the sum under the logarithm is the catalogue's."""
    scores, _ = catalogue(rows=1, items=4)
    positive, rivals = scores[:, 0], torch.arange(1, 4)
    q = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    total = 0.0
    for drawn in itertools.product(range(3), repeat=2):
        pick = list(drawn)
        loss = sampled_softmax_loss(positive, scores[:, rivals[pick]], negative_log_q=(2 * q[pick]).log())
        total += float(q[pick].prod() * (loss + positive).exp())
    assert total == pytest.approx(float(scores.exp().sum()), rel=1e-12)


def in_batch_by_hand(scores, items, log_q, correct_positive):
    found = []
    for row, own in enumerate(items):
        value = scores[row][row] - (log_q[row] if correct_positive else 0)
        others = [
            math.exp(scores[row][column] - log_q[column])
            for column, other in enumerate(items)
            if column != row and other != own
        ]
        found.append(math.log(math.exp(value) + sum(others)) - value)
    return found


@pytest.mark.parametrize("correct_positive", [True, False])
def test_in_batch_against_the_formula(correct_positive):
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randn(7, 7, generator=generator, dtype=torch.float64)
        items = torch.randint(5, (7,), generator=generator)
        log_q = torch.rand(7, generator=generator, dtype=torch.float64).log()
        got = in_batch_softmax_loss(scores, items, log_q, correct_positive=correct_positive)
        want = in_batch_by_hand(scores.tolist(), items.tolist(), log_q.tolist(), correct_positive)
        assert got.tolist() == pytest.approx(want, rel=1e-12)


def test_accidental_hits_get_no_gradient_and_a_batch_of_one_item_nothing_to_learn():
    scores = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    in_batch_softmax_loss(scores, torch.tensor([3, 1, 3, 2])).sum().backward()
    assert scores.grad[0, 2] == scores.grad[2, 0] == 0
    assert (scores.grad[1] != 0).all()
    scores.grad = None
    each = in_batch_softmax_loss(scores, torch.full((4,), 3))
    each.sum().backward()
    assert (each == 0).all()
    assert (scores.grad == 0).all()


def test_gradients_are_derivatives():
    items = torch.tensor([0, 1, 1, 4])
    log_q = torch.tensor([0.1, -1.0, -1.0, 0.5], dtype=torch.float64)
    scores = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    for correct in (True, False):
        assert torch.autograd.gradcheck(
            lambda s, c=correct: in_batch_softmax_loss(s, items, log_q, correct_positive=c), (scores,)
        )
    positive = torch.randn(4, dtype=torch.float64, requires_grad=True)
    sampled = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([4, 9, 1]) != items[:, None]
    corrected = partial(sampled_softmax_loss, mask=mask, log_q=log_q, negative_log_q=log_q[:3])
    assert torch.autograd.gradcheck(corrected, (positive, sampled))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    scores = (torch.randn(5, 5).sign() * 1e4).to(dtype).requires_grad_()
    each = in_batch_softmax_loss(scores, torch.arange(5), torch.zeros(5, dtype=dtype))
    each.sum().backward()
    assert each.dtype == torch.float32
    assert scores.grad.dtype == dtype
    assert each.isfinite().all()
    assert scores.grad.isfinite().all()
    assert_close(each, in_batch_softmax_loss(scores.detach().float(), torch.arange(5)))
    sampled = sampled_softmax_loss(scores[:, 0], scores[:, 1:])
    assert sampled.dtype == torch.float32
    assert_close(sampled, sampled_softmax_loss(scores[:, 0].float(), scores[:, 1:].float()))


def test_rows_are_weighted_and_reduced():
    scores, weights = torch.randn(4, 4), torch.tensor([1.0, 0.0, 2.0, 1.0])
    each = in_batch_softmax_loss(scores)
    assert_close(InBatchSoftmaxLoss()(scores), each.mean())
    assert_close(InBatchSoftmaxLoss()(scores, weights=weights), (each * weights).sum() / 4)
    positive, sampled = scores[:, 0], scores[:, 1:]
    each = sampled_softmax_loss(positive, sampled)
    assert_close(SampledSoftmaxLoss(reduction="sum")(positive, sampled, weights=weights), (each * weights).sum())
    assert_close(SampledSoftmaxLoss(reduction="none")(positive, sampled), each)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match=r"\(B, B\)"):
        in_batch_softmax_loss(torch.zeros(2, 3))
    with pytest.raises(ShapeError, match="items has shape"):
        in_batch_softmax_loss(torch.zeros(2, 2), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ShapeError, match="negative_log_q has shape"):
        sampled_softmax_loss(torch.zeros(2), torch.zeros(2, 3), negative_log_q=torch.zeros(2))
