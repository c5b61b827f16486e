import pytest
import torch

from tests.chain_oracle import make
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.losses import structured_hinge_loss
from torchrank.models import LinearChain
from torchrank.ops import viterbi
from torchrank.training.spec import build, describe


def filled(*args, **options):
    torch.manual_seed(0)
    chain = LinearChain(*args, **options)
    for parameter in chain.parameters():
        torch.nn.init.normal_(parameter)
    return chain


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("method", ["loop", "scan"])
def test_decode_is_viterbi_on_its_own_scores(start, method):
    chain = filled(3, 4, start=start)
    case = make(1, lengths=[5, 2, 40], q=3, dtype=torch.float32)
    labels, score = chain.decode(case.emissions, case.mask, method=method)
    wanted, value = viterbi(chain(case.emissions), chain.transitions, case.mask, start=chain.start_scores)
    assert torch.equal(labels, wanted)
    torch.testing.assert_close(score, value)


def test_it_starts_at_zero_and_length_normalisation_divides_transitions():
    fresh = LinearChain(3, 4, start=True)
    assert all(parameter.eq(0).all() for parameter in fresh.parameters())
    assert fresh.transitions.shape == (4, 4)
    case = make(2, lengths=[6, 3], q=3, dtype=torch.float32)
    chain = filled(3, 4, normalize="length")
    labels, _ = chain.decode(case.emissions, case.mask)
    for row, n in enumerate(case.lengths):
        alone, _ = viterbi(chain(case.emissions[row : row + 1, :n]), chain.transitions / n)
        assert labels[row, :n].tolist() == alone[0].tolist()


def test_unchained_labels_every_position_by_itself():
    chain = filled(3, 4, chained=False)
    case = make(3, lengths=[6, 3], q=3, dtype=torch.float32)
    labels, _ = chain.decode(case.emissions, case.mask)
    assert torch.equal(labels, torch.where(case.mask, chain(case.emissions).argmax(-1), 0))
    assert [name for name, _ in chain.named_parameters()] == ["linear.weight", "linear.bias"]


def test_any_network_in_place_of_the_linear_one():
    network = torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.ReLU(), torch.nn.Linear(7, 4))
    chain = LinearChain(3, 4, network=network, start=True)
    x = torch.randn(2, 5, 3)
    assert torch.equal(chain(x), network(x))
    assert chain.linear is None
    with pytest.raises(ShapeError, match=r"Linear returned emissions of shape \(2, 5, 6\)"):
        LinearChain(3, 4, network=torch.nn.Linear(3, 6))(x)


def test_nan_under_the_mask_reaches_no_weight():
    chain = filled(3, 4, start=True)
    case = make(4, lengths=[5, 2], q=3, dtype=torch.float32)
    x = case.emissions.masked_fill(~case.mask[..., None], float("nan"))
    labels = torch.zeros(2, 5, dtype=torch.int64)
    loss = structured_hinge_loss(chain(x, case.mask), chain.transitions, labels, case.mask, start=chain.start_scores)
    loss.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in chain.parameters())


def test_it_is_rebuilt_from_plain_data():
    chain = LinearChain(3, 3, network=torch.nn.Identity(), start=True, normalize="length")
    torch.nn.init.normal_(chain.transitions)
    again = build(describe(chain))
    again.load_state_dict(chain.state_dict())
    assert describe(again) == describe(chain)
    x = torch.randn(2, 5, 3)
    assert torch.equal(again.decode(x)[0], chain.decode(x)[0])


def test_bad_input_is_refused():
    with pytest.raises(TorchRankError, match="num_labels=0 must be at least 1"):
        LinearChain(3, 0)
    with pytest.raises(TorchRankError, match="normalize='len'"):
        LinearChain(3, 2, normalize="len")
    chain = LinearChain(3, 2)
    with pytest.raises(ShapeError, match=r"made for \(B, T, 3\)"):
        chain(torch.zeros(2, 5, 4))
    with pytest.raises(TorchRankError, match="method='lop'"):
        chain.decode(torch.zeros(2, 5, 3), method="lop")
    with pytest.raises(DataError, match="nan"):
        chain.decode(torch.full((2, 5, 3), float("nan")))
