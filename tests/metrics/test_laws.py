"""Properties every measure has, under every policy for ties."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.metrics.cases import CASES, IDS, TIE_IDS, WITH_TIES
from torchrank.metrics import _lists

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
every_case = pytest.mark.parametrize(("case", "ties"), WITH_TIES, ids=TIE_IDS)


def random_lists(*shape, seed=0, dtype=torch.float64, levels=4):
    """Scores with ties, graded relevance, and a mask that leaves some lists empty."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(-levels, levels, shape, generator=generator).to(dtype)
    relevance = torch.randint(0, 3, shape, generator=generator).to(dtype)
    mask = torch.rand(shape, generator=generator) < 0.6
    mask[..., 0, :] = False
    return scores, relevance, mask


@every_case
def test_padding_changes_nothing(case, ties):
    scores, relevance, mask = random_lists(12, 7)
    alone = [case(s[m], r[m], ties=ties, empty="skip") for s, r, m in zip(scores, relevance, mask, strict=True)]
    for junk in (math.nan, math.inf, -math.inf, 1e30):
        spoilt = (torch.where(mask, x, junk) for x in (scores, relevance))
        assert_close(case(*spoilt, mask, ties=ties, empty="skip"), torch.stack(alone), equal_nan=True)


@every_case
def test_permuting_documents_changes_nothing_without_ties(case, ties):
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(10, 8, generator=generator).argsort(-1).double()
    relevance = torch.randint(0, 3, (10, 8), generator=generator).double()
    order = torch.rand(10, 8, generator=generator).argsort(-1)
    moved = case(scores.gather(-1, order), relevance.gather(-1, order), ties=ties)
    assert_close(moved, case(scores, relevance, ties=ties))


@pytest.mark.parametrize(
    ("case", "ties"), [p for p in WITH_TIES if p[1] != "stable"], ids=[i for i in TIE_IDS if not i.endswith("stable")]
)
def test_permuting_documents_changes_nothing_unless_the_input_order_decides(case, ties):
    scores, relevance, mask = random_lists(10, 8)
    order = torch.rand(10, 8, generator=torch.Generator().manual_seed(1)).argsort(-1)
    moved = case(*(x.gather(-1, order) for x in (scores, relevance, mask)), ties=ties)
    assert_close(moved, case(scores, relevance, mask, ties=ties))


@every_case
def test_a_batch_equals_its_lists(case, ties):
    scores, relevance, mask = random_lists(2, 3, 7)
    values = case(scores, relevance, mask, ties=ties)
    assert values.shape == (2, 3)
    for a in range(2):
        for b in range(3):
            assert_close(values[a, b], case(scores[a, b], relevance[a, b], mask[a, b], ties=ties))


@every_case
def test_chunks_change_nothing(case, ties, monkeypatch):
    scores, relevance, mask = random_lists(23, 7)
    want = case(scores, relevance, mask, ties=ties)
    monkeypatch.setattr(_lists, "_CHUNK", 30)
    assert_close(case(scores, relevance, mask, ties=ties), want)


@every_case
def test_a_constant_added_to_all_scores_of_a_list_changes_nothing(case, ties):
    scores, relevance, mask = random_lists(6, 8)
    shift = torch.arange(-3.0, 3.0, dtype=torch.float64)[:, None] * 100
    assert_close(case(scores + shift, relevance, mask, ties=ties), case(scores, relevance, mask, ties=ties))


@pytest.mark.parametrize("case", [c for c in CASES if "k" not in c.options], ids=lambda c: c.name)
def test_k_beyond_the_list_changes_nothing(case):
    if case.function.__name__ in ("precision", "mean_ndcg") or case.options.get("ideal") == "full":
        return  # precision and the full ideal divide by what k says; mean_ndcg has no k
    scores, relevance, mask = random_lists(6, 8)
    assert_close(case(scores, relevance, mask, k=100), case(scores, relevance, mask))


@every_case
def test_empty_policy(case, ties):
    scores = torch.tensor([[3.0, 1, 2], [3, 2, 1], [3, 2, 1], [1, 2, 3]])
    relevance = torch.tensor([[0.0, 0, 0], [1, 0, 1], [1, 1, 1], [1, 0, 0]])
    mask = torch.tensor([[True] * 3, [False] * 3, [True] * 3, [True] * 3])
    zero, one, skip = (case(scores, relevance, mask, ties=ties, empty=empty) for empty in ("zero", "one", "skip"))
    nothing = torch.tensor([True, True, case.function.__name__ == "auc", False])
    assert_close(zero[nothing], torch.zeros(int(nothing.sum())))
    assert_close(one[nothing], torch.ones(int(nothing.sum())))
    assert skip[nothing].isnan().all()
    assert_close(one[~nothing], zero[~nothing])
    assert_close(skip[~nothing], zero[~nothing])


@every_case
def test_every_type_of_number_gives_the_same_values(case, ties):
    scores, relevance, mask = random_lists(8, 6)
    scores, relevance = (scores > 0).double(), (relevance > 0).double()  # every type holds 0 and 1
    want = case(scores, relevance, mask, ties=ties)
    assert want.dtype == torch.float64
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.uint8, torch.bool):
        got = case(scores.to(dtype), relevance.to(dtype), mask, ties=ties)
        assert_close(got, want.float(), atol=1e-6, rtol=1e-6)


@every_case
def test_float32_agrees_with_float64_on_long_lists(case, ties):
    if case.function.__name__ == "err" and ties == "mean" and "k" not in case.options:
        return  # quadratic
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 5000, generator=generator).round(decimals=1)
    relevance = torch.randint(0, 3, (3, 5000), generator=generator).float()
    want = case(scores.double(), relevance.double(), ties=ties)
    assert_close(case(scores, relevance, ties=ties).double(), want, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_large_scores_of_half_precision(case):
    scores, relevance = torch.tensor([[1e4, -1e4, 0.0, 1e4]]), torch.tensor([[0, 1, 2, 1]])
    for dtype in (torch.float16, torch.bfloat16):
        assert_close(case(scores.to(dtype), relevance), case(scores, relevance))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_infinite_scores_rank_first_and_last(case):
    relevance = torch.tensor([[0, 1, 2, 1, 0]])
    infinite = case(torch.tensor([[0.0, math.inf, 1.0, -math.inf, -3.0]]), relevance)
    assert_close(infinite, case(torch.tensor([[0.0, 9.0, 1.0, -9.0, -3.0]]), relevance))
    last = torch.tensor([[False, True, True, True, True]])  # padding stands behind even those
    infinite = case(torch.tensor([[0.0, 2.0, -math.inf, -math.inf, 1.0]]), relevance, last)
    assert_close(infinite, case(torch.tensor([[2.0, -9.0, -9.0, 1.0]]), relevance[:, 1:]))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_both_zeros_are_one_score(case):
    scores, relevance = torch.tensor([[-0.0, 0.0, -0.0]]), torch.tensor([[0, 1, 2]])
    for dtype in (torch.float32, torch.float64):
        assert_close(case(scores.to(dtype), relevance), case(torch.zeros(1, 3, dtype=dtype), relevance))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_values_lie_between_0_and_1_and_arguments_are_left_alone(case):
    scores, relevance, mask = random_lists(40, 9, dtype=torch.float32)
    if case.options.get("ideal") == "full":
        relevance = relevance.clamp(max=1)  # its best is a gain of 1 everywhere
    kept = [x.clone() for x in (scores, relevance, mask)]
    for ties in case.ties:
        values = case(scores.requires_grad_(), relevance, mask, ties=ties)
        assert not values.requires_grad
        assert ((values >= 0) & (values <= 1 + 1e-6)).all()
    for before, after in zip(kept, (scores, relevance, mask), strict=True):
        assert torch.equal(before, after)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_lists_and_lists_without_places(case):
    assert case(torch.zeros(0, 5), torch.zeros(0, 5)).shape == (0,)
    assert_close(case(torch.zeros(2, 0), torch.zeros(2, 0), empty="one"), torch.ones(2))
    assert case(torch.zeros(2, 0, 3), torch.zeros(2, 0, 3)).shape == (2, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_devices_agree(case, device):
    scores, relevance, mask = random_lists(30, 11, dtype=torch.float32)
    for ties in case.ties:
        values = case(scores.to(device), relevance.to(device), mask.to(device), ties=ties)
        assert values.device.type == device
        want = case(scores.double(), relevance.double(), mask, ties=ties)
        assert_close(values.cpu().double(), want, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("case", {case.function: case for case in CASES}.values(), ids=lambda case: case.name)
def test_compiled_gives_the_same_numbers(case):
    scores, relevance, mask = random_lists(6, 5, dtype=torch.float32)
    for ties in case.ties[:2]:
        torch._dynamo.reset()
        compiled = torch.compile(lambda s, r, m, ties=ties: case(s, r, m, ties=ties), fullgraph=True)
        assert_close(compiled(scores, relevance, mask), case(scores, relevance, mask, ties=ties), atol=1e-6, rtol=1e-5)
