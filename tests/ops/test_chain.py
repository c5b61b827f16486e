import pytest
import torch
from hypothesis import given, settings

from tests.chain_oracle import best_path, chains, make, path_scores
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.ops import chain_layout as layout_module
from torchrank.ops import cost_augmented_viterbi, position_scores, viterbi, viterbi_scan

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
DECODERS = [viterbi, viterbi_scan]


@pytest.fixture(params=["packed", "masked"])
def layout(request, monkeypatch):
    """Both ways of laying a batch out: sorted by length, and all under the mask as on a GPU."""
    if request.param == "masked":
        monkeypatch.setattr(layout_module, "values_can_be_read", lambda *_: False)


@pytest.mark.parametrize("decode", DECODERS)
@given(chain=chains())
def test_best_sequence_and_score_equal_brute_force(decode, chain):
    dirty = chain.dirty()
    labels, score = decode(dirty.emissions, dirty.transitions, dirty.mask, start=dirty.start)
    for row, n in enumerate(chain.lengths):
        every, total = path_scores(chain, row)
        best = int(total.argmax())
        assert labels[row, :n].tolist() == every[best].tolist()
        assert labels[row, n:].eq(0).all()
        torch.testing.assert_close(score[row], total[best])


@pytest.mark.parametrize("decode", DECODERS)
@given(chain=chains(whole=True))
def test_ties_go_to_the_smallest_last_label_then_the_one_before(decode, chain):
    labels, _ = decode(chain.emissions, chain.transitions, chain.mask, start=chain.start)
    for row, n in enumerate(chain.lengths):
        assert labels[row, :n].tolist() == best_path(chain, row)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.usefixtures("layout")
def test_both_layouts_agree_with_brute_force(per_position, start):
    chain = make(0, lengths=[2, 5, 1, 5, 3], q=3, per_position=per_position, start=start)
    dirty = chain.dirty()
    labels, score = viterbi(dirty.emissions, dirty.transitions, dirty.mask, start=dirty.start)
    for row, n in enumerate(chain.lengths):
        assert labels[row, :n].tolist() == best_path(chain, row)
        assert labels[row, n:].eq(0).all()
        torch.testing.assert_close(score[row], path_scores(chain, row)[1].max())


@given(chain=chains())
def test_cost_augmented_argmax_equals_brute_force(chain):
    q = chain.emissions.shape[-1]
    generator = torch.Generator().manual_seed(1)
    matrix = torch.rand(q, q, generator=generator, dtype=torch.float64)
    each = torch.rand(chain.emissions.shape, generator=generator, dtype=torch.float64)
    dirty = chain.dirty()
    for cost, of in {
        1.0: lambda row, t, y: (y != chain.labels[row, t]).to(torch.float64),
        0.25: lambda row, t, y: 0.25 * (y != chain.labels[row, t]),
        matrix: lambda row, t, y: matrix[chain.labels[row, t], y],
        each: lambda row, t, y: each[row, t, y],
    }.items():
        got = cost_augmented_viterbi(
            dirty.emissions, dirty.transitions, dirty.labels, dirty.mask, cost=cost, start=dirty.start
        )
        for row, n in enumerate(chain.lengths):
            every, total = path_scores(chain, row)
            total = total + sum(of(row, t, every[:, t]) for t in range(n))
            assert got[row, :n].tolist() == every[int(total.argmax())].tolist()


@pytest.mark.usefixtures("layout")
def test_cost_augmented_argmax_in_both_layouts():
    chain = make(3, lengths=[4, 2, 6], q=3)
    dirty = chain.dirty()
    args = (dirty.emissions, dirty.transitions, dirty.labels, dirty.mask)
    got = cost_augmented_viterbi(*args, start=dirty.start)
    for row, n in enumerate(chain.lengths):
        every, total = path_scores(chain, row)
        total = total + (every != chain.labels[row, :n]).sum(1)
        assert got[row, :n].tolist() == every[int(total.argmax())].tolist()


@settings(max_examples=20)
@given(chain=chains())
def test_position_scores_sum_to_the_score_of_the_path(chain):
    dirty = chain.dirty()
    terms = position_scores(dirty.emissions, dirty.transitions, dirty.labels, dirty.mask, start=dirty.start)
    for row, n in enumerate(chain.lengths):
        every, total = path_scores(chain, row)
        wanted = total[(every == chain.labels[row, :n]).all(1)][0]
        torch.testing.assert_close(terms[row].sum(), wanted)
        assert terms[row, n:].eq(0).all()


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("per_position", [False, True])
def test_gradient_of_the_score_counts_the_features_of_the_best_sequence(decode, per_position):
    chain = make(5, lengths=[4, 1, 3], q=3, per_position=per_position)
    leaves = [x.clone().requires_grad_() for x in (chain.emissions, chain.transitions, chain.start)]

    def score(emissions, transitions, start):
        return decode(emissions, transitions, chain.mask, start=start)[1]

    assert torch.autograd.gradcheck(score, leaves)
    labels = decode(chain.emissions, chain.transitions, chain.mask, start=chain.start)[0]
    score(*leaves).sum().backward()
    chosen = torch.nn.functional.one_hot(labels, 3) * chain.mask[..., None]
    torch.testing.assert_close(leaves[0].grad, chosen.to(torch.float64))
    assert leaves[1].grad.sum() == 3 + 0 + 2
    torch.testing.assert_close(leaves[2].grad, chosen[:, 0].sum(0).to(torch.float64))


@pytest.mark.parametrize("decode", DECODERS)
def test_nan_under_the_mask_reaches_no_gradient(decode):
    chain = make(6, lengths=[4, 2], q=3, per_position=True).dirty()
    emissions, transitions = (x.clone().requires_grad_() for x in (chain.emissions, chain.transitions))
    decode(emissions, transitions, chain.mask)[1].sum().backward()
    assert emissions.grad.isfinite().all()
    assert transitions.grad.isfinite().all()
    assert emissions.grad[~chain.mask].eq(0).all()


@pytest.mark.parametrize("decode", DECODERS)
def test_one_position_one_label_and_no_sequence(decode):
    labels, score = decode(torch.tensor([[[1.0, 3.0, 3.0]]]), torch.zeros(3, 3))
    assert (labels.tolist(), score.tolist()) == ([[1]], [3.0])
    labels, score = decode(torch.tensor([[[1.0, 3.0]]]), torch.zeros(1, 0, 2, 2), start=torch.tensor([4.0, 0.0]))
    assert (labels.tolist(), score.tolist()) == ([[0]], [1.0 + 4.0])
    labels, score = decode(torch.ones(2, 3, 1), torch.ones(1, 1))
    assert (labels.tolist(), score.tolist()) == ([[0, 0, 0]] * 2, [3 * 1.0 + 2 * 1.0] * 2)
    for shape in ((0, 4, 3), (0, 0, 3)):
        empty = torch.zeros(shape, requires_grad=True)
        labels, score = decode(empty, torch.zeros(3, 3), torch.ones(shape[:2], dtype=torch.bool))
        assert labels.shape == shape[:2]
        assert labels.dtype == torch.int64
        assert score.shape == (0,)
        score.sum().backward()


@pytest.mark.parametrize("decode", DECODERS)
def test_a_batch_equals_its_sequences_one_by_one(decode):
    chain = make(7, lengths=[3, 40, 17, 33, 1], q=4)
    labels, score = decode(chain.emissions, chain.transitions, chain.mask, start=chain.start)
    for row, n in enumerate(chain.lengths):
        alone, value = decode(chain.emissions[row : row + 1, :n], chain.transitions, start=chain.start)
        assert alone[0].tolist() == labels[row, :n].tolist()
        torch.testing.assert_close(value[0], score[row])


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(decode, dtype):
    chain = make(8, lengths=[30, 40], q=4, dtype=dtype)
    labels, score = decode(chain.emissions, chain.transitions, chain.mask, start=chain.start)
    wide, value = decode(chain.emissions.float(), chain.transitions.float(), chain.mask, start=chain.start.float())
    assert score.dtype == torch.float32
    assert torch.equal(labels, wide)
    assert torch.equal(score, value)


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_devices_and_types(decode, device, dtype):
    chain = make(9, lengths=[30, 4, 9], q=5)
    labels, score = viterbi(chain.emissions, chain.transitions, chain.mask, start=chain.start)
    moved = [x.to(device) if x.dtype == torch.bool else x.to(device, dtype) for x in chain[:4]]
    got, value = decode(*moved[:3], start=moved[3])
    assert got.device.type == value.device.type == device
    assert value.dtype == dtype
    assert torch.equal(got.cpu(), labels)
    torch.testing.assert_close(value.cpu().double(), score, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("decode", DECODERS)
def test_minus_infinity_forbids(decode):
    emissions = torch.tensor([[[5.0, 0.0], [5.0, 0.0], [-torch.inf, 0.0]]])
    never_01 = torch.tensor([[0.0, 0.0], [-torch.inf, 0.0]])
    labels, score = decode(emissions, never_01)
    assert labels.tolist() == [[1, 1, 1]]
    assert score.item() == 0


def test_arguments_are_left_as_they_are():
    chain = make(10, lengths=[4, 2], q=3)
    copies = [x.clone() for x in chain]
    viterbi(chain.emissions, chain.transitions, chain.mask, start=chain.start)
    cost_augmented_viterbi(chain.emissions, chain.transitions, chain.labels, chain.mask, start=chain.start)
    assert all(torch.equal(a, b) for a, b in zip(chain, copies, strict=True))


NAN, INF = float("nan"), float("inf")
ONE = torch.ones(1, 3, 2)


def poked(value, *index, shape=(2, 3, 2)):
    tensor = torch.zeros(shape)
    tensor[index] = value
    return tensor


def hole(*rows):
    return torch.tensor(rows, dtype=torch.bool)


BAD = {
    "two axes": ((ONE[0], torch.zeros(2, 2)), {}, ShapeError, r"\(B, T, q\)"),
    "integers": ((ONE.long(), torch.zeros(2, 2)), {}, ShapeError, "floating point"),
    "no labels": ((torch.ones(1, 3, 0), torch.zeros(0, 0)), {}, ShapeError, "q at least 1"),
    "transitions of other labels": ((ONE, torch.zeros(3, 3)), {}, ShapeError, r"give \(2, 2\) or \(1, 2, 2, 2\)"),
    "transitions of other length": ((ONE, torch.zeros(1, 3, 2, 2)), {}, ShapeError, r"indexed \[to, from\]"),
    "start": ((ONE, torch.zeros(2, 2)), {"start": torch.zeros(3)}, ShapeError, "one score a label"),
    "mask of another shape": ((ONE, torch.zeros(2, 2), hole([1, 1])), {}, ShapeError, r"boolean \(1, 3\)"),
    "mask of numbers": ((ONE, torch.zeros(2, 2), torch.ones(1, 3)), {}, ShapeError, "boolean"),
    "length 0": ((torch.ones(1, 0, 2), torch.zeros(2, 2)), {}, DataError, "length 0"),
    "masked length 0": (
        (torch.ones(2, 3, 2), torch.zeros(2, 2), hole([1, 1, 0], [0, 0, 0])),
        {},
        DataError,
        "mask of sequence 1 has length 0",
    ),
    "hole": ((ONE, torch.zeros(2, 2), hole([1, 0, 1])), {}, DataError, "sequence 0 has a hole before position 2"),
    "hole first": ((ONE, torch.zeros(2, 2), hole([0, 1, 1])), {}, DataError, "sequence 0 has a hole at position 0"),
    "NaN": ((poked(NAN, 1, 2, 0), torch.zeros(2, 2)), {}, DataError, r"\[1, 2, 0\] is nan"),
    "NaN inside the mask": (
        (poked(NAN, 1, 1, 0), torch.zeros(2, 2), hole([1, 0, 0], [1, 1, 0])),
        {},
        DataError,
        r"\[1, 1, 0\] is nan",
    ),
    "infinite": ((poked(INF, 0, 0, 1), torch.zeros(2, 2)), {}, DataError, r"\[0, 0, 1\] is inf"),
    "NaN transition": ((ONE, poked(NAN, 1, 0, shape=(2, 2))), {}, DataError, r"transition score at \[1, 0\] is nan"),
    "NaN start": ((ONE, torch.zeros(2, 2)), {"start": torch.tensor([0.0, NAN])}, DataError, r"start score at \[1\]"),
}


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("name", BAD)
def test_bad_chains_are_refused(decode, name):
    args, options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        decode(*args, **options)


@pytest.mark.parametrize(
    ("labels", "options", "error", "message"),
    [
        (torch.tensor([[0, 2, 0]]), {}, DataError, r"labels\[0, 1\] is 2; with 2 labels they run from 0 to 1"),
        (torch.tensor([[0, 0, -1]]), {}, DataError, r"labels\[0, 2\] is -1"),
        (torch.zeros(1, 3), {}, ShapeError, "give integers"),
        (torch.zeros(1, 2, dtype=torch.int64), {}, ShapeError, r"give integers \(1, 3\)"),
        (torch.zeros(1, 3, dtype=torch.int64), {"cost": -1.0}, TorchRankError, "cost=-1.0"),
        (torch.zeros(1, 3, dtype=torch.int64), {"cost": NAN}, TorchRankError, "cost=nan"),
        (torch.zeros(1, 3, dtype=torch.int64), {"cost": torch.zeros(3, 3)}, ShapeError, r"\(2, 2\) indexed"),
        (torch.zeros(1, 3, dtype=torch.int64), {"cost": poked(NAN, 0, 1, shape=(2, 2))}, DataError, "is nan"),
        (torch.zeros(1, 3, dtype=torch.int64), {"cost": -ONE}, DataError, "is -1.0"),
    ],
)
def test_bad_labels_and_costs_are_refused(labels, options, error, message):
    with pytest.raises(error, match=message):
        cost_augmented_viterbi(ONE, torch.zeros(2, 2), labels, **options)
