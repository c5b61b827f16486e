import pytest
import torch
from hypothesis import given, settings

from tests.chain_oracle import chains, make, path_scores
from torchrank.errors import DataError, TorchRankError
from torchrank.ops import chain_layout as layout_module
from torchrank.ops import chain_marginals, log_partition, log_partition_scan
from torchrank.ops import chain_partition as partition_module

FORMS = ["scaled", "log", "log, masked"]


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    """The forms of the recursion: scaled products, log space, and log space under the mask as on a GPU."""
    if request.param != "scaled":
        monkeypatch.setattr(partition_module, "_RANGE", {torch.float32: -1.0, torch.float64: -1.0})
    if request.param == "log, masked":
        monkeypatch.setattr(layout_module, "values_can_be_read", lambda *_: False)
    return request.param


def leaves(chain):
    return [
        None if x is None else x.clone().requires_grad_() for x in (chain.emissions, chain.transitions, chain.start)
    ]


def grads(value, inputs):
    wanted = [x for x in inputs if x is not None]
    return torch.autograd.grad(value, wanted, allow_unused=True, materialize_grads=True)


def check_against_brute_force(chain, function=log_partition):
    weights = torch.linspace(-1, 2, len(chain.emissions), dtype=torch.float64)
    dirty = leaves(chain.dirty())
    value = function(dirty[0], dirty[1], chain.mask, start=dirty[2])
    inputs = leaves(chain)
    known = chain._replace(emissions=inputs[0], transitions=inputs[1], start=inputs[2])
    wanted = torch.stack([path_scores(known, row)[1].logsumexp(0) for row in range(len(weights))])
    torch.testing.assert_close(value, wanted)
    got = grads(value @ weights, dirty)
    for one, other in zip(got, grads(wanted @ weights, inputs), strict=True):
        torch.testing.assert_close(one, other)


@given(chain=chains())
def test_partition_and_gradient_equal_brute_force(chain):
    check_against_brute_force(chain)


@settings(max_examples=30)
@given(chain=chains())
def test_the_scan_equals_brute_force(chain):
    check_against_brute_force(chain, log_partition_scan)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.usefixtures("form")
def test_every_form_equals_brute_force(per_position, start):
    check_against_brute_force(make(0, lengths=[2, 5, 1, 5, 3], q=3, per_position=per_position, start=start))


@given(chain=chains())
def test_marginals_equal_brute_force(chain):
    dirty = chain.dirty()
    got = chain_marginals(dirty.emissions, dirty.transitions, dirty.mask, start=dirty.start)
    assert got[~chain.mask].eq(0).all()
    for row, n in enumerate(chain.lengths):
        every, total = path_scores(chain, row)
        for label in range(chain.emissions.shape[-1]):
            wanted = ((every == label) * total.softmax(0)[:, None]).sum(0)
            torch.testing.assert_close(got[row, :n, label], wanted)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.usefixtures("form")
def test_gradcheck(per_position):
    chain = make(1, lengths=[3, 1, 4], q=3, per_position=per_position)
    assert torch.autograd.gradcheck(lambda e, a, s: log_partition(e, a, chain.mask, start=s), leaves(chain))


def test_differentiating_twice_is_refused_and_the_scan_offers_it():
    chain = make(1, lengths=[3, 2], q=2)
    inputs = leaves(chain)
    first = torch.autograd.grad(log_partition(inputs[0], inputs[1]).sum(), inputs[0], create_graph=True)[0]
    with pytest.raises(TorchRankError, match="differentiated once"):
        first.sum().backward()
    assert torch.autograd.gradgradcheck(lambda e, a, s: log_partition_scan(e, a, chain.mask, start=s), leaves(chain))


def test_float32_agrees_with_float64(form):
    chain = make(2, lengths=[200, 3, 60], q=6)
    exact = leaves(chain)
    narrow = [x.float().detach().requires_grad_() for x in exact]
    wanted = log_partition(exact[0], exact[1], chain.mask, start=exact[2])
    got = log_partition(narrow[0], narrow[1], chain.mask, start=narrow[2])
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-4)
    for one, other in zip(grads(got.sum(), narrow), grads(wanted.sum(), exact), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("scale", [25.0, 100.0, 1e4])
@pytest.mark.parametrize("where", ["emissions", "transitions", "both"])
def test_large_scores_stay_exact(scale, where):
    chain = make(3, lengths=[40, 7], q=5, start=False)
    emissions = chain.emissions * (scale if where != "transitions" else 1)
    transitions = chain.transitions * (scale if where != "emissions" else 1)
    exact = [emissions.requires_grad_(), transitions.requires_grad_()]
    narrow = [x.detach().float().requires_grad_() for x in exact]
    wanted = log_partition_scan(*exact, chain.mask)
    got = log_partition(*narrow, chain.mask)
    torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-3)
    one, other = grads(got.sum(), narrow), grads(wanted.sum(), exact)
    assert all(x.isfinite().all() for x in one)
    torch.testing.assert_close(one[1].double(), other[1], rtol=2e-2, atol=2e-2)


def test_forbidden_transitions_have_probability_0():
    emissions = torch.tensor([[[200.0, 0.0], [0.0, 0.0], [0.0, 0.0]]], requires_grad=True)
    transitions = torch.tensor([[0.0, 0.0], [-torch.inf, 0.0]], requires_grad=True)  # never 1 after 0
    value = log_partition(emissions, transitions)
    assert value.item() == 200.0  # 0, 0, 0 outweighs what begins with 1
    value.sum().backward()
    torch.testing.assert_close(emissions.grad, torch.tensor([[[1.0, 0.0]] * 3]))
    torch.testing.assert_close(transitions.grad, torch.tensor([[2.0, 0.0], [0.0, 0.0]]))


def test_unreachable_labels_leave_no_nan():
    emissions = torch.zeros(1, 3, 2, requires_grad=True)
    transitions = torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]], requires_grad=True)  # never into 1
    value = log_partition(emissions, transitions)
    torch.testing.assert_close(value.detach(), torch.tensor([2.0]).log())
    value.sum().backward()
    torch.testing.assert_close(emissions.grad, torch.tensor([[[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]]]))
    assert transitions.grad.isfinite().all()


@pytest.mark.parametrize("function", [log_partition, log_partition_scan, chain_marginals])
def test_edges(function):
    one = function(torch.tensor([[[1.0, 3.0]]]), torch.zeros(2, 2))
    wanted = torch.tensor([1.0, 3.0])
    torch.testing.assert_close(one[0], wanted.softmax(0)[None] if function is chain_marginals else wanted.logsumexp(0))
    empty = torch.zeros(0, 4, 3, requires_grad=True)
    value = function(empty, torch.zeros(3, 3), torch.ones(0, 4, dtype=torch.bool))
    assert value.shape == ((0, 4, 3) if function is chain_marginals else (0,))
    if function is not chain_marginals:
        value.sum().backward()
    with pytest.raises(DataError, match="hole"):
        function(torch.zeros(1, 3, 2), torch.zeros(2, 2), torch.tensor([[True, False, True]]))
    with pytest.raises(DataError, match="nan"):
        function(torch.full((1, 3, 2), float("nan")), torch.zeros(2, 2))


def test_marginals_carry_no_gradient_and_leave_arguments_alone():
    chain = make(4, lengths=[3, 2], q=2)
    emissions = chain.emissions.clone().requires_grad_()
    assert not chain_marginals(emissions, chain.transitions, chain.mask, start=chain.start).requires_grad
    assert torch.equal(emissions, chain.emissions)
