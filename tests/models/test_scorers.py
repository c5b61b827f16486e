"""Every scorer commutes with permutations and does not see its padding."""

import math

import pytest
import torch
from torch import nn

from torchrank.errors import ShapeError, TorchRankError
from torchrank.models import AttentionScorer, LinearScorer, MLPScorer
from torchrank.training.spec import build, describe
from torchrank.types import Scorer

FEATURES = 6
SCORERS = {
    "linear": lambda: LinearScorer(FEATURES),
    "linear with bias": lambda: LinearScorer(FEATURES, bias=True),
    "mlp": lambda: MLPScorer(FEATURES, hidden=(8, 4), dropout=0.1),
    "mlp without hidden layers": lambda: MLPScorer(FEATURES, hidden=()),
    "attention": lambda: AttentionScorer(FEATURES, dim=8, heads=2, layers=2, dropout=0.1),
}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]


@pytest.fixture(params=SCORERS)
def scorer(request):
    """A scorer in float64 whose weights have all moved from where they start."""
    torch.manual_seed(0)
    module = SCORERS[request.param]().double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def lists(*shape):
    return torch.randn(*shape, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_meets_the_protocol_and_shape(scorer):
    assert isinstance(scorer, Scorer)
    assert scorer(lists(3, 7)).shape == (3, 7)
    assert scorer(lists(2, 3, 7)).shape == (2, 3, 7)
    assert scorer(lists(7)).shape == (7,)
    assert scorer(lists(4, 1)).shape == (4, 1)
    assert scorer(lists(0, 1)).shape == (0, 1)
    assert scorer(lists(2, 0)).shape == (2, 0)


def test_leading_axes_are_only_lists(scorer):
    x = lists(2, 3, 7)
    mask = torch.rand(2, 3, 7, generator=torch.Generator().manual_seed(2)) > 0.3
    each = torch.stack([torch.stack([scorer(x[i, j], mask[i, j]) for j in range(3)]) for i in range(2)])
    torch.testing.assert_close(scorer(x, mask), each)


def test_permuting_the_documents_permutes_the_scores(scorer):
    x = lists(3, 9)
    mask = torch.arange(9) < torch.tensor([9, 4, 1])[:, None]
    for seed in range(5):
        order = torch.randperm(9, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(scorer(x[:, order], mask[:, order]), scorer(x, mask)[:, order])
        torch.testing.assert_close(scorer(x[:, order]), scorer(x)[:, order])


@pytest.mark.parametrize("junk", [0.0, 1e300, math.nan, math.inf, -math.inf])
def test_padding_is_inert(scorer, junk):
    x = lists(2, 5)
    want = scorer(x)
    want.square().sum().backward()
    gradients = [p.grad.clone() for p in scorer.parameters()]
    scorer.zero_grad()
    padded = torch.cat([x, torch.full((2, 3, FEATURES), junk, dtype=torch.float64)], -2).requires_grad_()
    mask = (torch.arange(8) < 5).expand(2, 8)
    got = scorer(padded, mask)
    torch.testing.assert_close(got[:, :5], want)
    assert got.isfinite().all()
    got.square()[mask].sum().backward()
    for parameter, gradient in zip(scorer.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    assert (padded.grad[:, 5:] == 0).all()
    assert padded.grad.isfinite().all()


def test_a_mask_of_true_is_no_mask(scorer):
    x = lists(3, 5)
    torch.testing.assert_close(scorer(x, torch.ones(3, 5, dtype=torch.bool)), scorer(x))


def test_lists_without_documents_give_finite_scores_and_gradients(scorer):
    x = torch.full((2, 4, FEATURES), math.nan, dtype=torch.float64)
    scores = scorer(x, torch.zeros(2, 4, dtype=torch.bool))
    assert scores.isfinite().all()
    scores.sum().backward()
    assert all(p.grad.isfinite().all() for p in scorer.parameters())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_and_devices(scorer, device, dtype):
    x = lists(3, 6).to(device, dtype)
    mask = (torch.arange(6) < torch.tensor([6, 3, 0])[:, None]).to(device)
    scores = scorer.to(device, dtype)(x, mask)
    assert scores.dtype == dtype
    assert scores.isfinite().all()
    want = scorer.double()(x.double(), mask)
    torch.testing.assert_close(scores[mask].double(), want[mask], atol=0.1, rtol=0.1)


def test_a_checkpoint_description_rebuilds_it(scorer):
    again = build(describe(scorer)).double().eval()
    again.load_state_dict(scorer.state_dict())
    torch.testing.assert_close(again(lists(2, 4)), scorer(lists(2, 4)))


def test_wrong_shapes_are_refused(scorer):
    with pytest.raises(ShapeError, match=r"features have shape \(2, 5, 7\).*6"):
        scorer(torch.zeros(2, 5, 7))
    with pytest.raises(ShapeError, match="mask has shape"):
        scorer(lists(2, 5), torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(ShapeError, match="boolean"):
        scorer(lists(2, 5), torch.ones(2, 5))


def test_linear_starts_at_zero_and_is_the_dot_product():
    scorer = LinearScorer(3)
    assert scorer.weight.tolist() == [0, 0, 0]
    with torch.no_grad():
        scorer.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert scorer(torch.tensor([[[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]])).tolist() == [[1 + 3, 2 * 2]]


def test_attention_starts_at_zero_and_learns_from_the_list():
    """The mean of the list is invisible to a document alone, and attention sees it."""
    torch.manual_seed(0)
    scorer = AttentionScorer(1, dim=16, heads=2, layers=2, dropout=0.0)
    x = torch.randn(256, 6, 1) * 0.5 + torch.randn(256, 1, 1) * 2
    assert (scorer(x) == 0).all()
    target = (x - x.mean(1, keepdim=True)).abs().squeeze(-1)  # no function of one document
    optimizer = torch.optim.Adam(scorer.parameters(), 1e-2)
    for _ in range(200):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(scorer(x), target)
        loss.backward()
        optimizer.step()
    alone = target.var().item()
    assert loss.item() < 0.3 * alone


def test_attention_in_evaluation_drops_nothing_and_in_training_does():
    torch.manual_seed(0)
    scorer = AttentionScorer(FEATURES, dim=8, heads=2, layers=1, dropout=0.5).double()
    nn.init.normal_(scorer.leave.weight)
    x = lists(2, 5)
    assert not torch.equal(scorer(x), scorer(x))
    scorer.eval()
    assert torch.equal(scorer(x), scorer(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearScorer(0), "num_features=0"),
        (lambda: MLPScorer(3, hidden=(4, 0)), r"hidden\[1\]=0"),
        (lambda: MLPScorer(3, dropout=1.0), "dropout=1.0"),
        (lambda: AttentionScorer(3, dim=10, heads=4), "dim=10 is not divisible by heads=4"),
        (lambda: AttentionScorer(3, layers=0), "layers=0"),
        (lambda: AttentionScorer(3, dropout=-0.1), "dropout=-0.1"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(TorchRankError, match=message):
        make()
