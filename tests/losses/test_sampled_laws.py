"""Every law over every loss of wanted items against others, sampled or of the batch; and no loss without its laws."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch
from torch.func import grad, hessian
from torch.testing import assert_close

from tests.losses.cases import CASES as OF_LISTS
from torchrank import losses
from torchrank.errors import DataError, ShapeError
from torchrank.training.spec import build, describe


@dataclass
class Case:
    """A loss of ``(B,)`` wanted scores against ``(B, S)`` others."""

    name: str
    function: Callable[..., torch.Tensor]
    module: type[torch.nn.Module]
    options: dict[str, Any] = field(default_factory=dict)
    samples: int = 5  # how many a row must have; 5 where it may have any number
    shifts: bool = False  # whether a constant on all scores of a row changes nothing
    convex: bool = False

    def __call__(self, positive, negative, mask=None):
        return self.function(*self.arguments(positive, negative, mask), **self.options)

    def reduced(self, positive, negative, mask=None, weights=None, **how):
        given = {} if weights is None else {"weights": weights}
        return self.module(**self.options, **how)(*self.arguments(positive, negative, mask), **given)

    def arguments(self, positive, negative, mask):
        if self.function is losses.bpr_loss:
            return positive, negative.squeeze(-1)
        return positive, negative, mask


CASES = [
    Case("top1", losses.top1_loss, losses.TOP1Loss),
    Case("top1-max", losses.top1_max_loss, losses.TOP1MaxLoss),
    Case("bpr-max", losses.bpr_max_loss, losses.BPRMaxLoss),
    Case("bpr-max-free", losses.bpr_max_loss, losses.BPRMaxLoss, {"score_l2": 0.0}, shifts=True),
    Case("sampled-softmax", losses.sampled_softmax_loss, losses.SampledSoftmaxLoss, shifts=True, convex=True),
    Case("bpr", losses.bpr_loss, losses.BPRLoss, samples=1, shifts=True, convex=True),
]
every_loss = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
masked = pytest.mark.parametrize("case", [c for c in CASES if c.samples > 1], ids=lambda c: c.name)


def drawn(case, *rows, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    positive, negative = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype) * 2
        for shape in (rows, (*rows, case.samples))
    )
    return positive, negative, torch.rand(*rows, case.samples, generator=generator) < 0.7


def value_and_gradients(loss, positive, negative, mask=None):
    positive, negative = (x.detach().clone().requires_grad_() for x in (positive, negative))
    value = loss(positive, negative, mask)
    return value.detach(), *torch.autograd.grad(value.sum(), (positive, negative))


@every_loss
def test_a_batch_equals_its_rows(case):
    positive, negative, mask = drawn(case, 2, 3)
    mask = mask if case.samples > 1 else None
    got = value_and_gradients(case, positive, negative, mask)
    assert got[0].shape == (2, 3)
    for a in range(2):
        for b in range(3):
            alone = value_and_gradients(case, positive[a, b], negative[a, b], None if mask is None else mask[a, b])
            assert_close(tuple(x[a, b] for x in got), alone)


@masked
@pytest.mark.parametrize("junk", [0.0, 1e9, float("nan"), float("inf"), -float("inf")])
def test_what_lies_under_the_mask_is_as_if_it_were_not_there(case, junk):
    positive, negative, mask = drawn(case, 12)
    mask[3] = False
    spoilt = torch.where(mask, negative, torch.full_like(negative, junk))
    value, by_positive, by_negative = value_and_gradients(case, positive, spoilt, mask)
    assert (by_negative[~mask] == 0).all()
    assert value[3] == by_positive[3] == 0
    for b in range(12):
        alone = value_and_gradients(case, positive[b], negative[b, mask[b]])
        assert_close((value[b], by_positive[b], by_negative[b, mask[b]]), alone)


@masked
def test_permuting_samples_permutes_the_gradient(case):
    positive, negative, mask = drawn(case, 6)
    order = torch.randperm(case.samples, generator=torch.Generator().manual_seed(1))
    value, by_positive, by_negative = value_and_gradients(case, positive, negative, mask)
    moved = value_and_gradients(case, positive, negative[:, order], mask[:, order])
    assert_close(moved, (value, by_positive, by_negative[:, order]))


@pytest.mark.parametrize("case", [c for c in CASES if c.shifts], ids=lambda c: c.name)
def test_a_constant_changes_nothing(case):
    positive, negative, mask = drawn(case, 6)
    shift = torch.arange(-3, 3, dtype=torch.float64) * 16
    moved = value_and_gradients(case, positive + shift, negative + shift[:, None], mask)
    assert_close(moved, value_and_gradients(case, positive, negative, mask))


@pytest.mark.parametrize("case", [c for c in CASES if c.convex], ids=lambda c: c.name)
def test_convex_in_the_scores(case):
    one, two = drawn(case, 60), drawn(case, 60, seed=1)
    for share in (0.25, 0.5, 0.9):
        middle = [share * x + (1 - share) * y for x, y in zip(one[:2], two[:2], strict=True)]
        chord = share * case(*one[:2]) + (1 - share) * case(*two[:2])
        assert (case(*middle) <= chord + 1e-9).all()


@every_loss
def test_float32_agrees_with_float64(case):
    positive, negative, mask = drawn(case, 8)
    want = value_and_gradients(case, positive, negative, mask)
    single = value_and_gradients(case, positive.float(), negative.float(), mask)
    assert single[0].dtype == torch.float32
    assert_close(tuple(x.double() for x in single), want, rtol=1e-4, atol=1e-5)


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(case, dtype):
    positive, negative, mask = drawn(case, 8)
    signs = [(x.sign() * 1e2).to(dtype) for x in (positive, negative)]
    value, *gradients = value_and_gradients(case, *signs, mask)
    assert value.dtype == torch.float32
    assert value.isfinite().all()
    for gradient in gradients:
        assert gradient.dtype == dtype
        assert gradient.isfinite().all()
    assert_close(value, case(*(x.float() for x in signs), mask))


@every_loss
def test_a_nan_score_is_not_hidden(case):
    positive, negative, _ = drawn(case, 2)
    negative[0, 0] = positive[1] = torch.nan
    assert case(positive, negative).isnan().all()


@every_loss
def test_nothing_is_mutated(case):
    given = drawn(case, 3)
    before = [x.clone() for x in given]
    value_and_gradients(case, *given)
    for x, y in zip(before, given, strict=True):
        assert torch.equal(x, y)


@every_loss
def test_reductions(case):
    positive, negative, mask = drawn(case, 6)
    mask[1] = False
    counted = mask.any(-1) if case.samples > 1 else torch.ones(6, dtype=torch.bool)
    each = case(positive, negative, mask)
    weights = torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0, 1.0]).double()
    for how, plain, weighted in (
        ("none", each, each * weights),
        ("sum", each.sum(), (each * weights).sum()),
        ("mean", each[counted].mean(), (each * weights)[counted].sum() / weights[counted].sum()),
    ):
        assert_close(case.reduced(positive, negative, mask, reduction=how), plain)
        assert_close(case.reduced(positive, negative, mask, weights, reduction=how), weighted)


@every_loss
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_row_of_weight_0_is_not_there(case, reduction):
    positive, negative, mask = drawn(case, 5)
    positive.requires_grad_(), negative.requires_grad_()
    keep = torch.tensor([0, 1, 3, 4])
    weights = torch.tensor([1.0, 2.0, 0.0, 0.5, 1.0]).double()
    value = case.reduced(positive, negative, mask, weights, reduction=reduction)
    want = case.reduced(positive[keep], negative[keep], mask[keep], weights[keep], reduction=reduction)
    assert_close(value, want)
    for got, alone in zip(
        torch.autograd.grad(value, (positive, negative)), torch.autograd.grad(want, (positive, negative)), strict=True
    ):
        assert not got[2].any()
        assert_close(got, alone)


@every_loss
def test_weights_of_one_change_nothing_and_others_are_linear(case):
    positive, negative, mask = drawn(case, 5)
    assert_close(case.reduced(positive, negative, mask, torch.ones(5).double()), case.reduced(positive, negative, mask))
    one, two = drawn(case, 5, seed=1)[0].abs(), drawn(case, 5, seed=2)[0].abs()
    parts = [case.reduced(positive, negative, mask, w, reduction="sum") for w in (one, two, one + 3 * two)]
    assert_close(parts[2], parts[0] + 3 * parts[1])


@every_loss
def test_bad_weights_are_refused(case):
    positive, negative, mask = drawn(case, 3)
    for weights, error in ((torch.ones(2), ShapeError), ([1.0] * 3, ShapeError), (-torch.ones(3), DataError)):
        with pytest.raises(error, match="weights"):
            case.reduced(positive, negative, mask, weights)


@every_loss
def test_a_checkpoint_can_describe_it(case):
    module = case.module(**case.options, reduction="sum")
    assert describe(build(describe(module))) == describe(module)


@every_loss
def test_torchs_transforms(case):
    positive, negative, _ = drawn(case, 4)
    value, by_positive, by_negative = value_and_gradients(case, positive, negative)
    assert_close(torch.vmap(case)(positive, negative), value)

    def total(p, n):
        return case(p, n).sum()

    assert_close(torch.vmap(grad(total, argnums=(0, 1)))(positive, negative), (by_positive, by_negative))
    second = torch.autograd.functional.hessian(lambda n: total(positive, n), negative)
    assert_close(hessian(total, argnums=1)(positive, negative), second)


@masked
def test_torchs_transforms_under_a_mask(case):
    positive, negative, mask = drawn(case, 4)
    mask[0] = False
    assert_close(torch.vmap(case)(positive, negative, mask), case(positive, negative, mask))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's compiler does it itself
@every_loss
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
def test_compiling_changes_nothing(case):
    positive, negative, mask = drawn(case, 4, dtype=torch.float32)
    want = value_and_gradients(case, positive, negative, mask)
    torch.compiler.reset()
    assert_close(value_and_gradients(torch.compile(case, fullgraph=True), positive, negative, mask), want)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@every_loss
def test_one_graph_serves_every_size(case):
    torch.compiler.reset()
    traced = torch.compile(case, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (4, 7, 3):
        given = drawn(case, rows, dtype=torch.float32)
        assert_close(value_and_gradients(traced, *given), value_and_gradients(case, *given))


# the softmax over a batch, whose rows are each other's samples


def batch(rows=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, rows, generator=generator, dtype=torch.float64) * 2
    return scores, torch.arange(rows) // 2, torch.rand(rows, generator=generator, dtype=torch.float64).log()


def test_in_batch_permuting_rows_permutes_the_gradient():
    scores, items, log_q = batch()
    scores.requires_grad_()
    order = torch.tensor([3, 0, 4, 1, 2])
    value = losses.in_batch_softmax_loss(scores, items, log_q)
    moved = losses.in_batch_softmax_loss(scores[order][:, order], items[order], log_q[order])
    assert_close(moved, value[order])
    weights = torch.arange(5.0).double()
    (want,) = torch.autograd.grad((value * weights).sum(), scores)
    (got,) = torch.autograd.grad((moved * weights[order]).sum(), scores)
    assert_close(got, want)


def test_in_batch_a_constant_on_a_row_changes_nothing_and_convexity():
    scores, items, log_q = batch()
    other = batch(seed=1)[0]
    loss = partial(losses.in_batch_softmax_loss, items=items, log_q=log_q)
    assert_close(loss(scores + torch.arange(5.0).double()[:, None]), loss(scores))
    for share in (0.25, 0.5, 0.9):
        chord = share * loss(scores) + (1 - share) * loss(other)
        assert (loss(share * scores + (1 - share) * other) <= chord + 1e-9).all()


def test_in_batch_a_row_of_weight_0_has_no_term_and_is_still_a_sample():
    scores, items, log_q = batch()
    scores.requires_grad_()
    weights = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.5]).double()
    each = losses.in_batch_softmax_loss(scores, items, log_q)
    loss = losses.InBatchSoftmaxLoss()
    value = loss(scores, items, log_q, weights)
    assert_close(value, (each * weights).sum() / weights.sum())
    (gradient,) = torch.autograd.grad(value, scores)
    assert not gradient[1].any()
    assert gradient[2, 1] > 0
    assert_close(loss(scores, items, log_q, torch.ones(5)), loss(scores, items, log_q))
    for bad, error in ((torch.ones(2), ShapeError), ([1.0] * 5, ShapeError), (-torch.ones(5), DataError)):
        with pytest.raises(error, match="weights"):
            loss(scores, items, log_q, bad)


def test_in_batch_nan_is_not_hidden_and_no_row_costs_nothing():
    scores, items, log_q = batch()
    scores[0, 0] = scores[3, 4] = torch.nan
    value = losses.in_batch_softmax_loss(scores, items, log_q)
    assert value.isnan().tolist() == [True, False, False, True, False]
    empty = torch.zeros(0, 0, requires_grad=True)
    losses.InBatchSoftmaxLoss()(empty).backward()
    assert losses.InBatchSoftmaxLoss()(empty) == 0


def test_in_batch_torchs_transforms():
    batches = [batch(seed=seed) for seed in range(3)]
    scores, items, log_q = (torch.stack(parts) for parts in zip(*batches, strict=True))
    each = torch.stack([losses.in_batch_softmax_loss(*parts) for parts in batches])
    assert_close(torch.vmap(losses.in_batch_softmax_loss)(scores, items, log_q), each)
    gradient = grad(lambda s: losses.in_batch_softmax_loss(s, items[0], log_q[0]).sum())(scores[0])
    leaf = scores[0].clone().requires_grad_()
    (want,) = torch.autograd.grad(losses.in_batch_softmax_loss(leaf, items[0], log_q[0]).sum(), leaf)
    assert_close(gradient, want)


#: losses whose laws are other ones: of chains, of a curve and of whole rankings
ELSEWHERE = {
    "crf_loss": "test_structured",
    "structured_hinge_loss": "test_structured",
    "structured_perceptron_loss": "test_structured",
    "structured_ndcg_loss": "test_structured_ndcg",
    "projection_loss": "test_projection",
    "in_batch_softmax_loss": "here",
}


def test_every_loss_has_its_laws():
    """A loss that is added must be put into one of the tables."""
    tables = {case.function.__name__ for case in [*OF_LISTS, *CASES]} | set(ELSEWHERE)
    assert tables == {name for name in losses.__all__ if name.endswith("_loss")}
    modules = {case.module.__name__ for case in [*OF_LISTS, *CASES]}
    others = {"CRFLoss", "StructuredHingeLoss", "StructuredPerceptronLoss", "StructuredNDCGLoss", "ProjectionLoss"}
    assert modules | others | {"InBatchSoftmaxLoss"} == {name for name in losses.__all__ if name.endswith("Loss")}
