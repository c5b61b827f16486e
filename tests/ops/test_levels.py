import pytest
import torch

from torchrank.ops.levels import best_below, has_ordered_pair, level_means, sort_levels


@pytest.fixture
def lists():
    generator = torch.Generator().manual_seed(0)
    relevance = torch.randint(0, 4, (60, 7), generator=generator).double()
    mask = torch.rand(60, 7, generator=generator) < 0.7
    values = torch.randn(60, 7, generator=generator, dtype=torch.float64)
    return relevance, mask, values


def test_padding_stands_first_and_ties_in_input_order_from_the_top(lists):
    relevance, mask, _ = lists
    levels = sort_levels(relevance, mask, stable=True)
    for r, m, order in zip(relevance, mask, levels.order, strict=True):
        real = [i for i in range(7) if m[i]]
        want = sorted(real, key=lambda i: (-r[i].item(), i))
        assert order.flip(0)[: len(real)].tolist() == want


def test_best_below_and_level_means_against_loops(lists):
    relevance, mask, values = lists
    levels = sort_levels(relevance, mask)
    at = values.gather(-1, levels.order)
    real = mask.gather(-1, levels.order)
    below = best_below(at.masked_fill(~real, -torch.inf), levels.opens)
    means = level_means(at, levels.opens)
    for b in range(len(values)):
        for p in range(7):
            r = levels.relevance[b]
            lower = [at[b, q].item() for q in range(7) if real[b, q] and r[q] < r[p]]
            if real[b, p]:
                assert below[b, p].item() == max(lower, default=float("-inf"))
                same = [at[b, q].item() for q in range(7) if r[q] == r[p]]
                assert means[b, p].item() == pytest.approx(sum(same) / len(same))


def test_ordered_pairs_and_empty_lists():
    relevance = torch.tensor([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 5.0, 1.0]])
    mask = torch.tensor([[True, True, False], [True, True, True], [True, False, True]])
    assert has_ordered_pair(relevance, mask).tolist() == [False, False, True]
    assert has_ordered_pair(torch.zeros(2, 0)).tolist() == [False, False]
    assert sort_levels(torch.zeros(2, 0)).opens.shape == (2, 0)
