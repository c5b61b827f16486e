import itertools
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests import laws
from torchrank.errors import TorchRankError
from torchrank.losses import StructuredNDCGLoss, structured_ndcg_loss
from torchrank.metrics import ndcg
from torchrank.training.spec import build, describe


def positions_of(order):
    return torch.tensor(order).argsort()


def brute(scores, relevance, ties, k, normalize):
    """The loss of one list by trying every ranking."""
    length = len(scores)
    if len(set(relevance.tolist())) < 2:
        return 0.0
    discount = 1 / torch.log2(torch.arange(length, dtype=torch.float64) + 2)
    discount[k if k is not None else length :] = 0
    gains = 2**relevance - 1
    best = (gains.sort(descending=True).values * discount).sum()
    within = [float(i) for i in range(length)] if ties == "first" else (-scores).tolist()
    right = positions_of(sorted(range(length), key=lambda i: (-relevance[i].item(), within[i])))
    unit = 1 / length if normalize == "length" else 1.0
    values = []
    for order in itertools.permutations(range(length)):
        at = positions_of(order)
        cost = 1 - (gains * discount[at]).sum() / best
        values.append((cost + unit * ((right - at) * scores).sum()).item())
    return max(values)


OPTIONS = [
    {},
    {"ties": "scores"},
    {"k": 2},
    {"normalize": "length"},
    {"ties": "scores", "k": 1, "normalize": "length"},
]


@pytest.mark.parametrize("options", OPTIONS)
@given(seed=st.integers(0, 10**6), length=st.integers(1, 5))
def test_value_equals_brute_force(options, seed, length):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(length, generator=generator, dtype=torch.float64)
    relevance = torch.randint(0, 3, (length,), generator=generator).double()
    wanted = brute(scores, relevance, **{"ties": "first", "k": None, "normalize": None, **options})
    got = structured_ndcg_loss(scores, relevance, **options)
    assert got.item() == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("options", OPTIONS)
def test_it_bounds_the_cost_of_the_ranking_by_scores(options):
    scores, relevance, mask = laws.random_lists(300, 9)
    loss = structured_ndcg_loss(scores, relevance, mask, **options)
    found = ndcg(scores, relevance, mask, k=options.get("k"), ties="pessimistic", empty="one")
    assert (loss >= 1 - found - 1e-9).all()
    shuffled = scores * 0
    loss = structured_ndcg_loss(shuffled, relevance, mask, **options)
    found = ndcg(shuffled, relevance, mask, k=options.get("k"), ties="pessimistic", empty="one")
    assert (loss >= 1 - found - 1e-9).all()


def without_document_weights(loss):
    return lambda *given, document_weights=None: loss(*given)


@pytest.mark.parametrize("options", OPTIONS)
def test_laws(options):
    loss = without_document_weights(partial(structured_ndcg_loss, **options))
    for junk in (7.0, float("nan"), float("inf")):
        laws.padding_is_inert(loss, junk)
    laws.permuting_documents_permutes_the_gradient(loss)
    laws.a_batch_equals_its_lists(loss)
    if options.get("normalize") is None:
        laws.a_constant_changes_nothing(loss)
    for relevance in (torch.zeros(3, 4), torch.full((2, 3), 2.0), torch.ones(2, 1), torch.ones(2, 0)):
        laws.nothing_to_learn_costs_nothing(loss, relevance)


@pytest.mark.parametrize("options", OPTIONS)
def test_gradcheck(options):
    scores, relevance, mask = laws.random_lists(4, 6)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: structured_ndcg_loss(s, relevance, mask, **options), scores)


def test_convex_in_the_scores_for_a_fixed_right_ranking():
    one, relevance, mask = laws.random_lists(200, 6)
    other = laws.random_lists(200, 6, seed=1)[0]
    middle = structured_ndcg_loss((one + other) / 2, relevance, mask)
    ends = (structured_ndcg_loss(one, relevance, mask) + structured_ndcg_loss(other, relevance, mask)) / 2
    assert (middle <= ends + 1e-9).all()


def test_the_gradient_keeps_its_bound():
    for length in (1, 2, 5, 8):
        for normalize in (None, "length"):
            module = StructuredNDCGLoss(normalize=normalize, reduction="sum")
            bound = module.score_lipschitz(length)
            reached = 0.0
            for seed in range(50):
                relevance = torch.arange(length).double()
                scores = laws.random_lists(1, length, seed=seed)[0][0] - 100 * relevance * (seed == 0)
                scores.requires_grad_()
                module(scores, relevance).backward()
                assert scores.grad.abs().sum() <= bound.one + 1e-9
                assert scores.grad.norm() <= bound.two + 1e-9
                reached = max(reached, float(scores.grad.abs().sum()))
            assert reached == pytest.approx(bound.one)


def test_module_reduces_and_is_rebuilt():
    scores, relevance, mask = laws.random_lists(6, 7)
    each = structured_ndcg_loss(scores, relevance, mask, k=3, ties="scores", normalize="length")
    module = build(describe(StructuredNDCGLoss(k=3, ties="scores", normalize="length", reduction="none")))
    torch.testing.assert_close(module(scores, relevance, mask), each)
    for options, message in (
        ({"ties": "frist"}, "ties='frist'"),
        ({"k": 0}, "k=0"),
        ({"normalize": "size"}, "normalize='size'"),
        ({"reduction": "median"}, "reduction='median'"),
    ):
        with pytest.raises(TorchRankError, match=message):
            StructuredNDCGLoss(**options)
