"""Against plain Python over every tie order, for lists small enough to write all of them down."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from tests.metrics.cases import CASES, IDS, TIE_IDS, WITH_TIES

GRADES = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0])
LISTS = st.lists(st.tuples(st.integers(-2, 1), GRADES), min_size=1, max_size=6)


@pytest.mark.parametrize(("case", "ties"), WITH_TIES, ids=TIE_IDS)
@settings(max_examples=25)
@given(rows=LISTS)
def test_value_is_the_mean_over_the_orders_of_the_policy(case, ties, rows):
    scores, relevance = torch.tensor(rows, dtype=torch.float64).unbind(-1)
    expected = case.expected(scores, relevance, ties)
    assert case(scores, relevance, ties=ties, empty="zero").item() == pytest.approx(expected or 0.0, abs=1e-12)


@pytest.mark.parametrize(("case", "ties"), WITH_TIES, ids=TIE_IDS)
def test_a_padded_batch_of_long_ties(case, ties):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 2, (20, 9), generator=generator).double()
    relevance = torch.randint(0, 3, (20, 9), generator=generator).double()
    mask = torch.arange(9) < torch.randint(1, 8, (20, 1), generator=generator)
    values = case(scores, relevance, mask, ties=ties)
    for value, s, r, m in zip(values, scores, relevance, mask, strict=True):
        assert value.item() == pytest.approx(case.expected(s[m], r[m], ties) or 0.0, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_pessimistic_and_optimistic_order_by_relevance(case):
    generator = torch.Generator().manual_seed(1)
    scores = torch.zeros(50, 6)
    relevance = torch.randint(0, 3, (50, 6), generator=generator).float()
    rising, falling = relevance.sort(-1).values, relevance.sort(-1, descending=True).values
    torch.testing.assert_close(case(scores, relevance, ties="pessimistic"), case(scores, rising, ties="stable"))
    torch.testing.assert_close(case(scores, relevance, ties="optimistic"), case(scores, falling, ties="stable"))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_without_ties_every_policy_agrees(case):
    generator = torch.Generator().manual_seed(2)
    scores = torch.rand(50, 8, generator=generator).argsort(-1).double()
    relevance = torch.randint(0, 3, (50, 8), generator=generator).double()
    want = case(scores, relevance, ties="stable")
    for ties in case.ties:
        torch.testing.assert_close(case(scores, relevance, ties=ties), want)
