"""Steps on a device never wait for the host, and mixed precision leaves losses finite and in float32.

A tensor of the meta device has no values: whatever would read one on the host (``.item()``, a boolean index,
``unique``, a copy) raises there. So running a step on it shows that the step reads none. Where there is a GPU the same
steps run on it while torch refuses to synchronise.
"""

from contextlib import contextmanager

import pytest
import torch
from torch import nn

from tests.losses.cases import CASES as LOSSES
from tests.metrics.cases import CASES as METRICS
from torchrank import losses, ops
from torchrank.models import AttentionScorer, Factorization, LinearScorer, MLPScorer
from torchrank.ops.wave_steps import Wave, factorization_step, wave_loss
from torchrank.training.listwise import project_to_ball, squared_norm

DEVICES = [
    "meta",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")),
]


@contextmanager
def no_waiting(device):
    if device == "meta":
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.fixture(params=DEVICES)
def device(request):
    torch.manual_seed(0)
    return request.param


def lists(device):
    mask = torch.arange(7) < torch.tensor([7, 3, 5, 1])[:, None]
    scores, relevance = torch.randn(4, 7), torch.randint(3, (4, 7)).float()
    return scores.to(device).requires_grad_(), relevance.to(device), mask.to(device)


def on(device, *tensors):
    return [x.to(device) for x in tensors]


@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)
def test_losses(case, device):
    scores, relevance, mask = lists(device)
    loss = case.make().to(device)
    with no_waiting(device):
        loss(scores, relevance, mask).backward()
    assert scores.grad.shape == scores.shape


@pytest.mark.parametrize("name", ["TOP1Loss", "TOP1MaxLoss", "BPRMaxLoss", "SampledSoftmaxLoss", "BPRLoss"])
def test_losses_of_samples(name, device):
    positive, negative = on(device, torch.randn(5), torch.randn(5) if name == "BPRLoss" else torch.randn(5, 3))
    with no_waiting(device):
        getattr(losses, name)()(positive.requires_grad_(), negative).backward()
    assert positive.grad.shape == (5,)


@pytest.mark.parametrize("case", METRICS, ids=lambda case: case.name)
def test_metrics(case, device):
    scores, relevance, mask = lists(device)
    with no_waiting(device):
        values = case(scores.detach(), relevance, mask)
    assert values.shape == (4,)


@pytest.mark.parametrize(
    "scorer",
    [LinearScorer(6), MLPScorer(6), AttentionScorer(6, dim=8, heads=2, layers=1)],
    ids=lambda s: type(s).__name__,
)
def test_a_step_of_a_ranker(scorer, device):
    _, relevance, mask = lists(device)
    features = torch.randn(4, 7, 6, device=device)
    ranker, loss = scorer.to(device), losses.SLAMLoss()
    optimizer = torch.optim.Adam(ranker.parameters())
    with no_waiting(device):
        (loss(ranker(features, mask), relevance, mask) + 0.1 * squared_norm(ranker)).backward()
        optimizer.step()
        project_to_ball(ranker, 1.0)


def wave(device):
    users, items = torch.tensor([3, 3, 3, 7, 7], dtype=torch.int32), torch.tensor([1, 2, 0, 1, 5], dtype=torch.int32)
    weights = torch.tensor([1, 0.5, 0.5, 1, 1]), torch.tensor([1.0, 0, 0, 1, 0])
    pairs = torch.tensor([0, 0, 3], dtype=torch.int32), torch.tensor([1, 2, 4], dtype=torch.int32)
    return Wave(*on(device, users, items, *weights, *pairs, torch.tensor([0.5, 0.5, 1])))


def test_the_batched_engine(device):
    scorer = Factorization(9, 8, 4, item_bias=True).to(device)
    tables, step = [p.data for p in scorer.parameters()], wave(device)
    optimizer = torch.optim.SGD(scorer.parameters(), lr=0.1, momentum=0.5)
    with no_waiting(device):
        factorization_step(*tables, step, eta=0.1, mu=0.01)
        wave_loss(scorer, losses.BPRLoss(reduction="sum"), step, mu=0.01)[1].backward()
        optimizer.step()


def chain(device):
    mask = torch.arange(5) < torch.tensor([5, 2])[:, None]
    labels = torch.randint(4, (2, 5))
    return (torch.randn(2, 5, 4, device=device), torch.randn(4, 4, device=device), *on(device, labels, mask))


@pytest.mark.parametrize("name", ["viterbi", "viterbi_scan", "log_partition", "log_partition_scan", "chain_marginals"])
def test_chains(name, device):
    emissions, transitions, _, mask = chain(device)
    with no_waiting(device):
        getattr(ops, name)(emissions, transitions, mask)


@pytest.mark.parametrize("name", ["CRFLoss", "StructuredHingeLoss", "StructuredPerceptronLoss"])
def test_losses_of_chains(name, device):
    emissions, transitions, labels, mask = chain(device)
    with no_waiting(device):
        getattr(losses, name)()(emissions.requires_grad_(), transitions, labels, mask).backward()
    assert emissions.grad.shape == (2, 5, 4)


@pytest.mark.parametrize("observed", [False, True])
def test_projection(observed, device):
    points, curve = torch.rand(10, 3, device=device), torch.rand(3, 4, device=device)
    given = {"observed": torch.ones(10, 3, dtype=torch.bool, device=device)} if observed else {}
    with no_waiting(device):
        at, distance = ops.project(points, curve, **given)
        losses.ProjectionLoss()(points, curve.requires_grad_()).backward()
    assert at.shape == distance.shape == (10,)


def mixed():
    return torch.autocast("cpu", dtype=torch.bfloat16)


def gradient(make, inputs, loss, *, autocast):
    torch.manual_seed(0)
    model: nn.Module = make()
    with mixed() if autocast else torch.autocast("cpu", enabled=False):
        outputs = model(*inputs)
        value = loss(outputs)
    value.backward()
    return outputs, value.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def assert_mixed_is_safe(make, inputs, loss):
    """Scores in bfloat16, the loss in float32 and finite, and a step in nearly the direction of full precision."""
    outputs, value, found = gradient(make, inputs, loss, autocast=True)
    assert outputs.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    _, whole, expected = gradient(make, inputs, loss, autocast=False)
    assert bool(found.isfinite().all())
    assert abs(float(value - whole)) <= 0.05 * max(1.0, abs(float(whole)))
    assert torch.nn.functional.cosine_similarity(found, expected, dim=0) > 0.95 or expected.norm() == 0


@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name)
def test_mixed_precision_of_rankers(case):
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(16, 7, 6, generator=generator)
    relevance = torch.randint(3, (16, 7), generator=generator).float()
    mask = torch.arange(7) < torch.randint(3, 8, (16, 1), generator=generator)
    loss = case.make()
    assert_mixed_is_safe(lambda: MLPScorer(6), (features, mask), lambda scores: loss(scores, relevance, mask))


@pytest.mark.parametrize("name", ["CRFLoss", "StructuredHingeLoss"])
def test_mixed_precision_of_chains(name):
    generator = torch.Generator().manual_seed(3)
    features, labels = torch.randn(8, 9, 6, generator=generator), torch.randint(4, (8, 9), generator=generator)
    mask = torch.arange(9) < torch.randint(2, 10, (8, 1), generator=generator)
    loss, transitions = getattr(losses, name)(), torch.randn(4, 4, generator=generator)
    assert_mixed_is_safe(
        lambda: nn.Linear(6, 4), (features,), lambda emissions: loss(emissions, transitions, labels, mask)
    )


def test_mixed_precision_of_a_wave():
    """Sums over a score's few products stay in float32: looking rows up is no matrix product."""
    torch.manual_seed(0)
    scorer, step = Factorization(9, 8, 4, item_bias=True), wave("cpu")
    with mixed():
        value, objective = wave_loss(scorer, losses.BPRLoss(reduction="sum"), step, mu=0.01)
    assert value.dtype == objective.dtype == torch.float32
    torch.testing.assert_close(value, wave_loss(scorer, losses.BPRLoss(reduction="sum"), step, mu=0.01)[0])


def test_reading_a_value_is_found_out():
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.zeros(3, device="meta").sum().item()
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.zeros(3, device="meta")[torch.ones(3, dtype=torch.bool, device="meta")]
