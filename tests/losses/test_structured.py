import pytest
import torch
from hypothesis import given

from tests.chain_oracle import chains, make, path_scores
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.losses import (
    CRFLoss,
    StructuredHingeLoss,
    StructuredPerceptronLoss,
    crf_loss,
    structured_hinge_loss,
    structured_perceptron_loss,
)
from torchrank.ops import chain_marginals, viterbi

LOSSES = [structured_hinge_loss, structured_perceptron_loss, crf_loss]
MODULES = {
    StructuredHingeLoss: structured_hinge_loss,
    StructuredPerceptronLoss: structured_perceptron_loss,
    CRFLoss: crf_loss,
}


def score_of(chain, row, labels):
    every, total = path_scores(chain, row)
    return total[(every == labels[: every.shape[1]]).all(1)][0]


def brute(loss, chain, row):
    every, total = path_scores(chain, row)
    right = score_of(chain, row, chain.labels[row])
    wrong = (every != chain.labels[row, : every.shape[1]]).sum(1)
    if loss is structured_hinge_loss:
        return (total + wrong).max() - right
    return (total.max() if loss is structured_perceptron_loss else total.logsumexp(0)) - right


@pytest.mark.parametrize("loss", LOSSES)
@given(chain=chains())
def test_value_and_gradient_equal_brute_force(loss, chain):
    inputs = [x.clone().requires_grad_() for x in (chain.emissions, chain.transitions)]
    known = chain._replace(emissions=inputs[0], transitions=inputs[1])
    wanted = torch.stack([brute(loss, known, row) for row in range(len(chain.emissions))])
    dirty = chain.dirty()
    leaves = [x.clone().requires_grad_() for x in (dirty.emissions, dirty.transitions)]
    got = loss(*leaves, dirty.labels, dirty.mask, start=dirty.start)
    torch.testing.assert_close(got, wanted)
    one, other = (
        torch.autograd.grad(value.sum(), at, allow_unused=True, materialize_grads=True)
        for value, at in ((got, leaves), (wanted, inputs))
    )
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b)


@given(chain=chains())
def test_hinge_is_at_least_the_hamming_cost_of_the_prediction(chain):
    args = (chain.emissions, chain.transitions)
    loss = structured_hinge_loss(*args, chain.labels, chain.mask, start=chain.start)
    predicted, _ = viterbi(*args, chain.mask, start=chain.start)
    wrong = ((predicted != chain.labels) & chain.mask).sum(1)
    assert (loss >= wrong - 1e-9).all()
    assert (structured_perceptron_loss(*args, chain.labels, chain.mask, start=chain.start) <= loss + 1e-9).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("normalize", [None, "length"])
@pytest.mark.parametrize("per_position", [False, True])
def test_gradcheck(loss, normalize, per_position):
    chain = make(0, lengths=[3, 1, 4], q=3, per_position=per_position)
    leaves = [x.clone().requires_grad_() for x in (chain.emissions, chain.transitions, chain.start)]

    def value(emissions, transitions, start):
        return loss(emissions, transitions, chain.labels, chain.mask, start=start, normalize=normalize)

    assert torch.autograd.gradcheck(value, leaves)


@pytest.mark.parametrize("loss", LOSSES)
def test_length_normalisation_divides_the_transitions_alone(loss):
    chain = make(1, lengths=[2, 5, 1], q=3)
    got = loss(chain.emissions, chain.transitions, chain.labels, chain.mask, start=chain.start, normalize="length")
    for row, n in enumerate(chain.lengths):
        alone = (chain.emissions[row : row + 1, :n], chain.transitions / n, chain.labels[row : row + 1, :n])
        torch.testing.assert_close(got[row], loss(*alone, start=chain.start)[0])


def test_costs_of_your_own():
    chain = make(2, lengths=[4, 2], q=3)
    args = (chain.emissions, chain.transitions, chain.labels, chain.mask)
    hamming = 1 - torch.eye(3, dtype=torch.float64)
    each = hamming[chain.labels]
    wanted = structured_hinge_loss(*args)
    torch.testing.assert_close(structured_hinge_loss(*args, cost=hamming), wanted)
    torch.testing.assert_close(structured_hinge_loss(*args, cost=each), wanted)
    torch.testing.assert_close(structured_hinge_loss(*args, cost=each.masked_fill(~chain.mask[..., None], -1)), wanted)
    torch.testing.assert_close(structured_hinge_loss(*args, cost=2 * hamming), structured_hinge_loss(*args, cost=2.0))
    torch.testing.assert_close(StructuredHingeLoss(cost=hamming, reduction="none")(*args), wanted)
    torch.testing.assert_close(StructuredHingeLoss(cost=hamming.tolist(), reduction="none")(*args), wanted)
    # One mistake that costs 5 where nothing else speaks: the loss is those 5.
    cost = torch.tensor([[0.0, 5.0], [1.0, 0.0]])
    flat = structured_hinge_loss(torch.zeros(1, 1, 2), torch.zeros(2, 2), torch.tensor([[0]]), cost=cost)
    assert flat.item() == 5.0


def test_a_right_answer_with_margin_costs_exactly_nothing():
    labels = torch.tensor([[0, 1, 1, 0]])
    emissions = (0.1 + 10 * torch.nn.functional.one_hot(labels, 2)).requires_grad_()
    transitions = torch.full((2, 2), 0.3, requires_grad=True)
    loss = structured_hinge_loss(emissions, transitions, labels)
    assert loss.item() == 0
    loss.sum().backward()
    assert emissions.grad.eq(0).all()
    assert transitions.grad.eq(0).all()


def test_gradient_of_the_likelihood_is_marginals_minus_the_right_features():
    chain = make(3, lengths=[4, 2], q=3)
    emissions = chain.emissions.clone().requires_grad_()
    crf_loss(emissions, chain.transitions, chain.labels, chain.mask, start=chain.start).sum().backward()
    right = torch.nn.functional.one_hot(chain.labels, 3) * chain.mask[..., None]
    marginals = chain_marginals(chain.emissions, chain.transitions, chain.mask, start=chain.start)
    torch.testing.assert_close(emissions.grad, marginals - right)


def test_a_perceptron_step_moves_by_the_difference_of_features():
    chain = make(4, lengths=[5], q=3, start=False)
    transitions = chain.transitions.clone().requires_grad_()
    structured_perceptron_loss(chain.emissions, transitions, chain.labels).sum().backward()
    predicted, _ = viterbi(chain.emissions, chain.transitions)
    wanted = torch.zeros(3, 3, dtype=torch.float64)
    for t in range(1, 5):
        wanted[predicted[0, t], predicted[0, t - 1]] += 1
        wanted[chain.labels[0, t], chain.labels[0, t - 1]] -= 1
    torch.testing.assert_close(transitions.grad, wanted)


@pytest.mark.parametrize("module", MODULES)
def test_modules_reduce(module):
    chain = make(5, lengths=[4, 2, 1], q=3)
    args = (chain.emissions, chain.transitions, chain.labels, chain.mask)
    for normalize in (None, "length"):
        each = MODULES[module](*args, start=chain.start, normalize=normalize)
        options = {"normalize": normalize}
        torch.testing.assert_close(module(**options, reduction="none")(*args, start=chain.start), each)
        torch.testing.assert_close(module(**options, reduction="sum")(*args, start=chain.start), each.sum())
        torch.testing.assert_close(module(**options)(*args, start=chain.start), each.mean())
    with pytest.raises(TorchRankError, match=r"reduction='men'.*'mean'"):
        module(reduction="men")
    with pytest.raises(TorchRankError, match=r"normalize='lengths'.*'length'"):
        module(normalize="lengths")


@pytest.mark.parametrize("module", MODULES)
def test_a_batch_with_no_sequence_costs_0_and_has_a_gradient(module):
    emissions = torch.zeros(0, 4, 3, requires_grad=True)
    transitions = torch.zeros(3, 3, requires_grad=True)
    nothing = torch.zeros(0, 4, dtype=torch.int64)
    loss = module()(emissions, transitions, nothing, nothing.bool())
    assert loss.item() == 0
    loss.backward()
    assert transitions.grad.eq(0).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_position(loss):
    emissions, labels = torch.tensor([[[1.0, 3.0]]]), torch.tensor([[0]])
    wanted = {
        structured_hinge_loss: torch.tensor([3.0 + 1 - 1.0]),
        structured_perceptron_loss: torch.tensor([3.0 - 1.0]),
        crf_loss: torch.tensor([1.0, 3.0]).logsumexp(0)[None] - 1.0,
    }[loss]
    torch.testing.assert_close(loss(emissions, torch.ones(2, 2), labels), wanted)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(loss, dtype):
    chain = make(6, lengths=[9, 4], q=4, dtype=dtype)
    big = chain.emissions * 1e4
    emissions = big.clone().requires_grad_()
    got = loss(emissions, chain.transitions, chain.labels, chain.mask, start=chain.start)
    assert got.dtype == torch.float32
    wide = loss(big.float(), chain.transitions.float(), chain.labels, chain.mask, start=chain.start.float())
    assert torch.equal(got, wide)
    assert got.isfinite().all()
    got.sum().backward()
    assert emissions.grad.isfinite().all()


@pytest.mark.parametrize("loss", LOSSES)
def test_bad_input_is_refused(loss):
    emissions, transitions, labels = torch.zeros(2, 3, 2), torch.zeros(2, 2), torch.zeros(2, 3, dtype=torch.int64)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    loss(emissions, transitions, labels.masked_fill(~mask, -100), mask)
    for value in (-1, 2):
        with pytest.raises(DataError, match=rf"labels\[0, 0\] is {value}; with 2 labels they run from 0 to 1"):
            loss(emissions, transitions, torch.full_like(labels, value))
    with pytest.raises(ShapeError, match="labels have shape"):
        loss(emissions, transitions, labels[:, :2])
    with pytest.raises(ShapeError, match="give integers"):
        loss(emissions, transitions, labels.float())
    with pytest.raises(DataError, match="sequence 1 has a hole"):
        loss(emissions, transitions, labels, torch.tensor([[True, True, True], [True, False, True]]))
    with pytest.raises(DataError, match="sequence 0 has length 0"):
        loss(emissions, transitions, labels, ~mask & mask)
    with pytest.raises(DataError, match="nan"):
        loss(emissions.fill_(float("nan")), transitions, labels, mask)
    with pytest.raises(TorchRankError, match="normalize='len'"):
        loss(torch.zeros(2, 3, 2), transitions, labels, normalize="len")


@pytest.mark.slow
# torch 2.13 instantiates an autograd.Function while it traces one, and warns of that.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated.*:DeprecationWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_compiled_losses_give_the_same_numbers(loss):
    chain = make(7, lengths=[4, 2], q=3, dtype=torch.float32)

    def both(emissions, transitions):
        value = loss(emissions, transitions, chain.labels, chain.mask, start=chain.start)
        return value.sum()

    results = []
    for function in (both, torch.compile(both)):
        leaves = [x.clone().requires_grad_() for x in (chain.emissions, chain.transitions)]
        value = function(*leaves)
        value.backward()
        results.append([value.detach(), *(x.grad for x in leaves)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
