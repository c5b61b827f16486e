"""Every law over every loss."""

import shutil

import pytest
import torch

from tests import laws
from tests.losses.cases import CASES
from torchrank.training.spec import build, describe

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
every_loss = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


@every_loss
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("junk", [0.0, 1e9, float("nan"), float("inf")])
def test_padding_is_inert(case, junk, device):
    laws.padding_is_inert(case, junk, device)


# Two levels of labels cannot be distinct, and "first" reads ties in input order.
@pytest.mark.parametrize("case", [c for c in CASES if c.name != "slam-map-first"], ids=lambda c: c.name)
def test_permuting_documents_permutes_the_gradient(case):
    laws.permuting_documents_permutes_the_gradient(case)


@every_loss
def test_a_batch_equals_its_lists(case):
    laws.a_batch_equals_its_lists(case)


@pytest.mark.parametrize("case", [c for c in CASES if c.kind != "point"], ids=lambda c: c.name)
def test_a_constant_changes_nothing(case):
    laws.a_constant_changes_nothing(case)


@every_loss
def test_lists_with_nothing_to_learn(case):
    laws.nothing_to_learn_costs_nothing(case, torch.zeros(3, 5), torch.zeros(3, 5, dtype=torch.bool))
    laws.nothing_to_learn_costs_nothing(case, torch.zeros(3, 0))
    if case.kind != "point":
        laws.nothing_to_learn_costs_nothing(case, torch.zeros(3, 5))
    if case.kind == "list":
        laws.nothing_to_learn_costs_nothing(case, torch.full((3, 5), 2.0))
        laws.nothing_to_learn_costs_nothing(case, torch.ones(3, 1))


@every_loss
def test_float32_agrees_with_float64(case):
    laws.float32_agrees_with_float64(case)


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite(case, dtype):
    laws.half_precision_stays_finite(case, dtype)


# LambdaLoss holds its weights while it differentiates: away from ties they are constants.
@every_loss
def test_gradient_is_the_derivative(case):
    laws.gradient_is_the_derivative(case)


@pytest.mark.parametrize("case", [c for c in CASES if c.convex], ids=lambda c: c.name)
def test_convex_in_the_scores(case):
    for seed in range(5):
        laws.convex_in_the_scores(case, seed)


OPTIONS_ALONE = ("first", "at-2", "at-3", "graded", "wide", "relevance", "smooth", "ndcg1", "ndcg2")
COMPILED = [c for c in CASES if not c.name.endswith(OPTIONS_ALONE)]  # one a loss: compiling takes seconds


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's compiler does it itself
@pytest.mark.parametrize("case", COMPILED, ids=lambda c: c.name)
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
def test_compiling_changes_nothing(case):
    laws.compiling_changes_nothing(case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's compiler does it itself
@pytest.mark.parametrize("case", COMPILED, ids=lambda c: c.name)
def test_one_graph_serves_every_length(case):
    laws.one_graph_serves_every_length(case)


@every_loss
def test_against_the_formula(case):
    """Padding, ties, document weights and lists of every length, against plain Python."""
    for seed in range(60):
        length = 1 + seed % 9
        scores, relevance, mask = laws.random_lists(length, seed=seed)
        if seed % 3 == 0:
            scores = scores.round()  # ties of scores
        weights = laws.random_lists(length, seed=seed + 1)[0].abs() if seed % 2 else torch.ones_like(scores)
        got = case(scores, relevance, mask, document_weights=weights)
        want = case.oracle(scores[mask].tolist(), relevance[mask].tolist(), weights[mask].tolist())
        assert got.item() == pytest.approx(want, rel=1e-9, abs=1e-9)


@every_loss
def test_reductions(case):
    scores, relevance, mask = laws.random_lists(6, 5)
    relevance[0] = 0
    mask[1] = False
    relevance[2] = 1
    each = case(scores, relevance, mask)
    real = [relevance[b, mask[b]] for b in range(6)]
    counts = {
        "list": [len(set(r.tolist())) > 1 for r in real],
        "softmax": [bool((r > 0).any()) for r in real],
        "point": [len(r) > 0 for r in real],
    }[case.kind]
    if case.options.get("measure") == "map":
        counts = [len(set((r > 0).tolist())) > 1 for r in real]
    counted = torch.tensor(counts)
    weights = torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0, 1.0]).double()

    def make(reduction):
        return case.make(reduction=reduction)

    torch.testing.assert_close(make("none")(scores, relevance, mask), each)
    torch.testing.assert_close(make("sum")(scores, relevance, mask), each.sum())
    torch.testing.assert_close(make("mean")(scores, relevance, mask), each[counted].mean())
    torch.testing.assert_close(make("none")(scores, relevance, mask, weights), each * weights)
    torch.testing.assert_close(make("sum")(scores, relevance, mask, weights), (each * weights).sum())
    want = (each * weights)[counted].sum() / weights[counted].sum()
    torch.testing.assert_close(make("mean")(scores, relevance, mask, weights), want)
    scores = scores.clone().requires_grad_()
    nothing = make("mean")(scores, relevance, torch.zeros_like(mask))
    nothing.backward()
    assert nothing == 0
    assert (scores.grad == 0).all()


@every_loss
def test_refuses_bad_input(case):
    scores, relevance, _ = laws.random_lists(2, 3)
    refused = [
        (lambda: case(scores, relevance[:, :2]), "scores have shape"),
        (lambda: case(scores, relevance, torch.ones(2, 2, dtype=torch.bool)), "mask has shape"),
        (lambda: case(scores, relevance, torch.ones(2, 3)), "boolean"),
        (lambda: case(scores, relevance - 10), "at least 0"),
        (lambda: case(scores, relevance * torch.nan), "at least 0"),
        (lambda: case(scores, relevance, document_weights=torch.ones(2)), "document_weights have shape"),
        (lambda: case(scores, relevance, document_weights=-torch.ones(2, 3)), "document_weights must be"),
        (lambda: case.make(reduction="men"), "did you mean 'mean'"),
        (lambda: case.make()(scores, relevance, None, torch.ones(3)), "weights have shape"),
        (lambda: case.make()(scores, relevance, None, -torch.ones(2)), "at least 0"),
    ]
    for call, says in refused:
        with pytest.raises(ValueError, match=says):
            call()


@every_loss
def test_nothing_is_mutated_and_integers_are_labels(case):
    scores, relevance, mask = laws.random_lists(3, 6)
    given = [scores.clone(), relevance.clone(), mask.clone()]
    value = case(scores, relevance, mask)
    for before, after in zip(given, (scores, relevance, mask), strict=True):
        assert torch.equal(before, after)
    torch.testing.assert_close(case(scores, relevance.long(), mask), value)


@every_loss
def test_a_checkpoint_can_describe_it(case):
    """Every constructor argument is kept as an attribute, in plain form."""
    module = case.make(reduction="sum")
    rebuilt = build(describe(module))
    assert type(rebuilt) is type(module)
    assert describe(rebuilt) == describe(module)


@every_loss
def test_a_nan_score_is_not_hidden(case):
    scores, _, _ = laws.random_lists(1, 4)
    scores[0, 1] = torch.nan
    assert case(scores, torch.tensor([[2.0, 1.0, 0.0, 0.0]]).double()).isnan().all()
