"""The constants against sampled gradients: never exceeded, and nearly reached where they are said to be least."""

import math

import pytest
import torch

from tests import laws
from tests.losses.cases import CASES
from torchrank.losses import (
    BPRLoss,
    CRFLoss,
    StructuredHingeLoss,
    StructuredNDCGLoss,
    StructuredPerceptronLoss,
    bpr_loss,
)
from torchrank.theory import score_lipschitz

NOT_TIGHT = ("approx", "lambda", "squared")
every_loss = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def gradient_norms(case, scores, relevance):
    """The largest 1-norm and 2-norm of the lists' gradients."""
    _, gradient = laws.value_and_gradient(case, scores, relevance)
    return gradient.abs().sum(-1).max().item(), gradient.norm(dim=-1).max().item()


def samples(length, seed):
    """Lists of all kinds: few and many levels, one relevant document, close, ordinary and far apart scores."""
    generator = torch.Generator().manual_seed(seed)
    shape = (400, length)
    scores = torch.randn(*shape, generator=generator, dtype=torch.float64)
    scores *= 10 ** (3 * torch.rand(400, 1, generator=generator, dtype=torch.float64) - 1.5)
    levels = torch.tensor([1.1, 2.1, 5.0, 30.0]).double()[torch.randint(0, 4, (400, 1), generator=generator)]
    relevance = (torch.rand(*shape, generator=generator, dtype=torch.float64) * levels).floor()
    relevance[::5] = torch.eye(length, dtype=torch.float64)[torch.randint(0, length, (80,), generator=generator)]
    relevance[::7] += torch.rand(len(relevance[::7]), length, generator=generator, dtype=torch.float64)
    return scores, relevance


def worst_list(length):
    """One far more relevant document below all others, one document above all others, all labels distinct or binary."""
    scores = torch.zeros(2, length, dtype=torch.float64)
    scores[:, 0], scores[:, -1] = -40.0, 40.0
    relevance = torch.zeros(2, length, dtype=torch.float64)
    relevance[0, 0] = 60.0
    relevance[1] = torch.arange(length, 0, -1, dtype=torch.float64)
    even = torch.zeros(1, length, dtype=torch.float64)  # all others alike: the pairwise losses' worst
    even[0, 0] = -40.0
    return torch.cat([scores, even]), torch.cat([relevance, relevance[:1]])


@every_loss
@pytest.mark.parametrize("length", [1, 2, 3, 10, 40])
def test_never_exceeded(case, length):
    bound = score_lipschitz(case.make(), length)
    for seed in range(3):
        one, two = gradient_norms(case, *samples(length, seed))
        assert one <= bound.one + 1e-9
        assert two <= bound.two + 1e-9
    one, two = gradient_norms(case, *worst_list(length))
    assert one <= bound.one + 1e-9
    assert two <= bound.two + 1e-9
    assert bound.one <= math.sqrt(length) * bound.two + 1e-9


@pytest.mark.parametrize("case", [c for c in CASES if not c.name.startswith(NOT_TIGHT)], ids=lambda c: c.name)
@pytest.mark.parametrize("length", [2, 3, 10, 40])
def test_nearly_reached(case, length):
    scores, relevance = worst_list(length)
    if case.kind == "point":
        scores, relevance = torch.full((1, length), -40.0).double(), torch.ones(1, length).double()
    one, two = gradient_norms(case, scores, relevance)
    bound = score_lipschitz(case.make(), length)
    assert one >= 0.999 * bound.one
    assert two >= 0.999 * bound.two


def test_approx_ndcg_climbs_to_half_its_bound():
    """No length helps: one relevant document, its rivals at the steepest distance."""
    case = next(c for c in CASES if c.name == "approx-ndcg")
    bound = score_lipschitz(case.make(), 2)
    assert score_lipschitz(case.make(), 5000) == bound
    best = 0.0
    for distance in torch.linspace(0, 1, 41):
        scores = torch.zeros(1, 400, dtype=torch.float64)
        scores[0, 0] = distance
        relevance = torch.eye(1, 400, dtype=torch.float64)
        best = max(best, gradient_norms(case, scores, relevance)[0])
    assert 0.5 * bound.one < best < bound.one


def test_the_squared_loss_has_none():
    case = next(c for c in CASES if c.name == "squared")
    assert score_lipschitz(case.make(), 5).one == math.inf
    one, _ = gradient_norms(case, torch.full((1, 5), 1e6).double(), torch.zeros(1, 5).double())
    assert one == pytest.approx(2e6)


def test_weights_of_your_own_scale_slam():
    """2 Σv and √(Σv² + (Σv)²), for the documents that have a less relevant one."""
    weights = torch.tensor([[3.0, 2.0, 0.5, 0.0]]).double()
    scores = torch.tensor([[0.0, 0.0, 0.0, 9.0]]).double().requires_grad_()
    case = next(c for c in CASES if c.name == "slam-ndcg")
    loss = case(scores, torch.tensor([[3.0, 2.0, 1.0, 0.0]]).double(), weights=weights)
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert gradient.abs().sum().item() == pytest.approx(2 * 5.5)
    assert gradient.norm().item() == pytest.approx(math.sqrt(9 + 4 + 0.25 + 5.5**2))


def test_a_block_of_pairs():
    """Pairs between two preferred and three other items, each of weight 1 / 6."""
    bound = score_lipschitz(BPRLoss(), 5)
    assert score_lipschitz(BPRLoss(), 1) == (0.0, 0.0)
    items = torch.randn(200, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 20
    items.requires_grad_()
    positive = items[:, :2, None].expand(-1, 2, 3).reshape(-1)
    negative = items[:, None, 2:].expand(-1, 2, 3).reshape(-1)
    loss = bpr_loss(positive, negative, torch.full_like(positive, 1 / 6))
    (gradient,) = torch.autograd.grad(loss.sum(), items)
    assert gradient.abs().sum(-1).max() <= bound.one
    assert gradient.norm(dim=-1).max() <= bound.two


@pytest.mark.parametrize(
    "loss", [StructuredHingeLoss(), StructuredPerceptronLoss(), CRFLoss()], ids=lambda c: type(c).__name__
)
@pytest.mark.parametrize("length", [1, 2, 7])
def test_chains(loss, length):
    """In the emissions; approached where a wrong label is far ahead at every position."""
    generator = torch.Generator().manual_seed(length)
    labels = torch.zeros(60, length, dtype=torch.int64)
    emissions = 3 * torch.randn(60, length, 4, generator=generator, dtype=torch.float64)
    emissions[0, :, 2] += 60
    emissions.requires_grad_()
    transitions = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    each = loss(emissions, transitions, labels) * 60
    (gradient,) = torch.autograd.grad(each, emissions)
    bound = score_lipschitz(loss, length)
    one, two = gradient.flatten(1).abs().sum(-1), gradient.flatten(1).norm(dim=-1)
    assert one.max() <= bound.one + 1e-9
    assert two.max() <= bound.two + 1e-9
    assert one[0] >= 0.999 * bound.one
    assert two[0] >= 0.999 * bound.two


@pytest.mark.parametrize("normalize", [None, "length"])
@pytest.mark.parametrize("length", [2, 3, 10])
def test_whole_rankings(length, normalize):
    """The structured NDCG loss, reached where the right ranking is reversed."""
    loss = StructuredNDCGLoss(normalize=normalize, reduction="none")
    bound = score_lipschitz(loss, length)
    one, two = gradient_norms(loss, *(x[:100] for x in samples(length, 0)))
    assert one <= bound.one + 1e-9
    assert two <= bound.two + 1e-9
    rising = torch.arange(length, dtype=torch.float64)[None]
    one, two = gradient_norms(loss, 100 * rising, -rising + length)
    assert one == pytest.approx(bound.one)
    assert two == pytest.approx(bound.two)


def test_refuses_what_has_no_constants():
    with pytest.raises(ValueError, match="has no method score_lipschitz"):
        score_lipschitz(torch.nn.MSELoss(), 3)
    with pytest.raises(ValueError, match="length=0"):
        score_lipschitz(BPRLoss(), 0)
