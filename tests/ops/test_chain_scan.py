import pytest
import torch

from tests.chain_oracle import make
from torchrank.ops import chain_scan as scan_module
from torchrank.ops import log_partition, log_partition_scan, viterbi, viterbi_scan


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("longest", [2, 32, 33, 34, 64, 65, 200])
def test_scan_and_loop_agree(longest, per_position, whole):
    lengths = [longest, max(1, longest // 2), 1, max(1, longest - 1)]
    chain = make(longest, lengths=lengths, q=3, per_position=per_position, whole=whole)
    dirty = chain.dirty()
    args = (dirty.emissions, dirty.transitions, dirty.mask)
    labels, score = viterbi(*args, start=dirty.start)
    got, value = viterbi_scan(*args, start=dirty.start)
    assert torch.equal(got, labels)
    assert torch.equal(value, score)
    total = log_partition(*args, start=dirty.start)
    torch.testing.assert_close(log_partition_scan(*args, start=dirty.start), total)


def test_products_in_pieces_change_nothing(monkeypatch):
    chain = make(0, lengths=[150, 90], q=4)
    labels, score = viterbi(*chain[:3])
    total = log_partition(*chain[:3])
    for cached in (1, 50, 400):
        monkeypatch.setattr(scan_module, "_CACHED", cached)
        got, value = viterbi_scan(*chain[:3])
        assert torch.equal(got, labels)
        assert torch.equal(value, score)
        torch.testing.assert_close(log_partition_scan(*chain[:3]), total)


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emissions = torch.nn.Linear(3, 2)
        self.transitions = torch.nn.Parameter(torch.tensor([[0.5, -0.5], [0.0, 1.0]]))

    def forward(self, x, mask):
        return viterbi_scan(self.emissions(x), self.transitions, mask)


@pytest.mark.slow
def test_the_scan_exports_with_a_dynamic_number_of_sequences_and_positions():
    torch.manual_seed(0)
    module = Decoder().eval()
    axes = {0: torch.export.Dim("B", min=1, max=1000), 1: torch.export.Dim("T", min=2, max=100_000)}
    example = (torch.randn(2, 40, 3), torch.ones(2, 40, dtype=torch.bool))
    with torch.no_grad():
        exported = torch.export.export(module, example, dynamic_shapes={"x": axes, "mask": axes}).module()
        for lengths in ([2], [5, 1, 33], [32, 7], [100, 3, 65]):
            chain = make(1, lengths=lengths, q=3, dtype=torch.float32)
            labels, score = exported(chain.emissions, chain.mask)
            wanted, value = viterbi(module.emissions(chain.emissions), module.transitions, chain.mask)
            assert torch.equal(labels, wanted)
            torch.testing.assert_close(score, value, rtol=1e-5, atol=1e-4)
