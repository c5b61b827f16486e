import pytest
import torch

from torchrank.errors import DataError, ShapeError
from torchrank.ops.topk import top_k


def test_top_k_is_the_head_of_a_sort_of_what_is_left():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 30, generator=generator)
    rows, columns = torch.randint(20, (200,), generator=generator), torch.randint(30, (200,), generator=generator)
    left_out = set(zip(rows.tolist(), columns.tolist(), strict=True))
    found, best, mask = top_k(scores, 25, exclude=(rows, columns))
    for row in range(20):
        left = [c for c in range(30) if (row, c) not in left_out]
        expected = sorted(left, key=lambda c: -scores[row, c])[:25]
        assert found[row][mask[row]].tolist() == expected
        assert best[row][mask[row]].tolist() == scores[row, expected].tolist()


def test_top_k_beyond_the_row_and_of_a_row_with_nothing_left():
    both = (torch.tensor([0, 0]), torch.tensor([0, 1]))
    found, best, mask = top_k(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), 3, exclude=both)
    assert mask.tolist() == [[False] * 3, [True, True, False]]
    assert found[1].tolist() == [1, 0, 0]
    assert best[0].tolist() == [0, 0, 0]


def test_top_k_refuses_what_it_cannot_rank():
    with pytest.raises(DataError, match="NaN"):
        top_k(torch.tensor([[float("nan")]]), 1)
    with pytest.raises(ShapeError, match="k=0"):
        top_k(torch.zeros(1, 1), 0)
    with pytest.raises(ShapeError, match="matrix"):
        top_k(torch.zeros(3), 1)
