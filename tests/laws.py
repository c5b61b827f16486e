"""Properties that every loss over lists must have; each function asserts one.

A loss is called as ``loss(scores, relevance, mask=None, document_weights=None)`` and returns one value per list.
"""

import torch
from torch.testing import assert_close


def value_and_gradient(loss, scores, relevance, mask=None, **given):
    """The loss of each list, and the gradient of their sum in the scores."""
    scores = scores.detach().clone().requires_grad_()
    value = loss(scores, relevance, mask, **given)
    (gradient,) = torch.autograd.grad(value.sum(), scores)
    return value.detach(), gradient


def random_lists(*shape, seed=0, dtype=torch.float64, device="cpu", distinct=False):
    """Scores, relevance and a mask with at least one real document in most lists."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(*shape, generator=generator, dtype=torch.float64) * 2
    relevance = torch.randint(0, 4, shape, generator=generator).double()
    if distinct:
        relevance = torch.rand(*shape, generator=generator, dtype=torch.float64).argsort(-1).double() / 2
    mask = torch.rand(*shape, generator=generator) < 0.7
    return scores.to(device, dtype), relevance.to(device, dtype), mask.to(device)


def padding_is_inert(loss, junk, device="cpu"):
    """What lies under the mask changes neither values nor gradients, and gets a zero gradient itself."""
    scores, relevance, mask = random_lists(12, 9, device=device)
    weights = random_lists(12, 9, seed=1, device=device)[0].abs()

    def spoil(x, value):
        return torch.where(mask, x, torch.full_like(x, value))

    value, gradient = value_and_gradient(
        loss, spoil(scores, junk), spoil(relevance, abs(junk)), mask, document_weights=spoil(weights, junk)
    )
    assert (gradient[~mask] == 0).all()
    for b in range(len(scores)):
        keep = mask[b]
        alone, grad = value_and_gradient(loss, scores[b, keep], relevance[b, keep], document_weights=weights[b, keep])
        assert_close(value[b], alone)
        assert_close(gradient[b, keep], grad)


def permuting_documents_permutes_the_gradient(loss):
    """With distinct scores and labels the order of the input has no meaning."""
    scores, relevance, mask = random_lists(6, 8, distinct=True)
    value, gradient = value_and_gradient(loss, scores, relevance, mask)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    moved, moved_gradient = value_and_gradient(loss, scores[:, order], relevance[:, order], mask[:, order])
    assert_close(moved, value)
    assert_close(moved_gradient, gradient[:, order])


def a_batch_equals_its_lists(loss):
    """One by one, as a batch, or under two batch axes: the same numbers."""
    scores, relevance, mask = random_lists(2, 3, 7)
    value, gradient = value_and_gradient(loss, scores, relevance, mask)
    assert value.shape == (2, 3)
    for a in range(2):
        for b in range(3):
            alone, grad = value_and_gradient(loss, scores[a, b], relevance[a, b], mask[a, b])
            assert_close(value[a, b], alone)
            assert_close(gradient[a, b], grad)


def a_constant_changes_nothing(loss):
    """Adding one number to all scores of a list leaves its loss and its gradient."""
    scores, relevance, mask = random_lists(6, 8)
    shift = torch.arange(-3, 3, dtype=torch.float64)[:, None] * 16
    value, gradient = value_and_gradient(loss, scores, relevance, mask)
    moved, moved_gradient = value_and_gradient(loss, scores + shift, relevance, mask)
    assert_close(moved, value)
    assert_close(moved_gradient, gradient)


def nothing_to_learn_costs_nothing(loss, relevance, mask=None):
    """Exactly 0 with an exactly zero gradient, whatever the scores."""
    scores = random_lists(*relevance.shape)[0].to(relevance.dtype)
    value, gradient = value_and_gradient(loss, scores, relevance, mask)
    assert (value == 0).all()
    assert (gradient == 0).all()


def float32_agrees_with_float64(loss):
    """To working precision."""
    scores, relevance, mask = random_lists(8, 20)
    value, gradient = value_and_gradient(loss, scores, relevance, mask)
    single, single_gradient = value_and_gradient(loss, scores.float(), relevance.float(), mask)
    assert single.dtype == torch.float32
    assert_close(single.double(), value, rtol=1e-4, atol=1e-5)
    assert_close(single_gradient.double(), gradient, rtol=1e-3, atol=1e-5)


def half_precision_stays_finite(loss, dtype):
    """Computed and returned in float32, finite at scores of ±1e4."""
    _, relevance, mask = random_lists(8, 20)
    signs = random_lists(8, 20, seed=3)[0].sign()
    scores = (signs * 1e4).to(dtype)
    value, gradient = value_and_gradient(loss, scores, relevance.to(dtype), mask)
    assert value.dtype == torch.float32
    assert gradient.dtype == dtype
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    assert_close(value, loss(scores.float(), relevance.float(), mask))


def gradient_is_the_derivative(loss):
    """By finite differences in float64."""
    scores, relevance, mask = random_lists(3, 6)
    assert torch.autograd.gradcheck(lambda s: loss(s, relevance, mask), (scores.requires_grad_(),))


def compiling_changes_nothing(loss):
    """``torch.compile`` in one graph gives the same numbers."""
    scores, relevance, mask = random_lists(4, 12, dtype=torch.float32)
    want = value_and_gradient(loss, scores, relevance, mask)
    torch.compiler.reset()
    got = value_and_gradient(torch.compile(loss, fullgraph=True), scores, relevance, mask)
    assert_close(got, want)


def one_graph_serves_every_length(loss):
    """Traced with dynamic shapes, no break in the graph, batches of other sizes give the same numbers."""
    torch.compiler.reset()
    traced = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for shape in ((4, 12), (4, 17), (3, 9)):
        scores, relevance, mask = random_lists(*shape, dtype=torch.float32)
        want = value_and_gradient(loss, scores, relevance, mask)
        assert_close(value_and_gradient(traced, scores, relevance, mask), want)


def convex_in_the_scores(loss, seed):
    """No value on a chord is above the chord."""
    one, relevance, mask = random_lists(40, 7, seed=seed)
    two = random_lists(40, 7, seed=seed + 1)[0]
    for share in (0.25, 0.5, 0.9):
        chord = share * loss(one, relevance, mask) + (1 - share) * loss(two, relevance, mask)
        assert (loss(share * one + (1 - share) * two, relevance, mask) <= chord + 1e-9).all()
