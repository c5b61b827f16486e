"""Rankings by packed keys, against Python's own sort."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from torchrank.ops import order
from torchrank.ops.order import best_first, highest, key_flags, ranked_keys

FINITE = st.floats(width=32, allow_nan=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(rows=st.lists(st.tuples(FINITE, st.booleans(), st.integers(0, 2)), min_size=1, max_size=12))
def test_rank_and_flags(dtype, rows):
    scores, mask, grades = zip(*rows, strict=True)
    real = [i for i, m in enumerate(mask) if m]
    want = sorted(real, key=lambda i: -scores[i])
    scores_, mask_ = torch.tensor(scores, dtype=dtype), torch.tensor(mask)
    assert best_first(scores_, mask_)[: len(real)].tolist() == want
    keys = ranked_keys(scores_, torch.tensor(grades, dtype=dtype), mask_)
    assert key_flags(keys)[: len(real)].tolist() == [int(grades[i] > 0) for i in want]


@given(rows=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8))
def test_integers_beyond_the_digits_of_a_float(rows):
    assert best_first(torch.tensor(rows)).tolist() == sorted(range(len(rows)), key=lambda i: -rows[i])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(grades=st.lists(st.floats(0, width=32, allow_infinity=False), min_size=1, max_size=12))
def test_highest(dtype, grades):
    values = torch.tensor(grades, dtype=dtype)
    for k in (1, len(grades)):
        assert highest(values, k).tolist() == sorted(values.tolist(), reverse=True)[:k]
    assert values.tolist() == torch.tensor(grades, dtype=dtype).tolist()


def test_the_compiled_loop_and_tensor_operations_lay_out_the_same_keys(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(-3, 4, (2, 6, 9), generator=generator) / 2.0
    scores[0, 0, :4] = torch.tensor([torch.inf, -torch.inf, -0.0, 0.0])
    grades = torch.randint(0, 3, scores.shape, generator=generator).float()
    mask = torch.rand(scores.shape, generator=generator) < 0.7
    arguments = [
        (),
        (grades,),
        (None, mask),
        (grades, mask),
        (grades.transpose(1, 2).contiguous().transpose(1, 2), mask),
    ]
    compiled = [ranked_keys(scores, *some) for some in arguments]
    monkeypatch.setattr(order, "values_can_be_read", lambda *_: False)
    for keys, some in zip(compiled, arguments, strict=True):
        assert torch.equal(ranked_keys(scores, *some), keys)


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("length", "depth"), [(32, 1), (320, 10), (700, 21), (2100, 64), (2100, 65), (40, 40)])
def test_the_first_ranks_are_those_of_the_whole_ranking(length, depth, dtype, rising):
    generator = torch.Generator().manual_seed(length + depth)
    scores = torch.randint(-50, 50, (3, 2, length), generator=generator).to(dtype) / 2
    scores[0, 0, :4] = torch.tensor([torch.inf, -torch.inf, -0.0, 0.0])
    scores = scores.sort(-1).values if rising else scores
    grades = torch.randint(0, 3, scores.shape, generator=generator).to(dtype)
    mask = torch.rand(scores.shape, generator=generator) < 0.7
    mask[2] = False
    for some in ((), (grades,), (grades, mask)):
        assert torch.equal(ranked_keys(scores, *some, depth=depth), ranked_keys(scores, *some)[..., :depth])
    for values in (grades, grades.sort(-1).values if rising else scores.clamp(min=0)):
        assert torch.equal(highest(values, depth), values.sort(-1, descending=True).values[..., :depth])
    assert ranked_keys(scores[:0], depth=depth).shape == (0, 2, depth)
    assert highest(grades[:0], depth).shape == (0, 2, depth)


@pytest.mark.slow
def test_compiled_and_eager_agree():
    scores = torch.randint(-3, 3, (5, 9), generator=torch.Generator().manual_seed(0)).float()
    assert torch.equal(torch.compile(best_first)(scores), best_first(scores))
    assert torch.equal(torch.compile(highest)(scores.abs(), 4), highest(scores.abs(), 4))
