"""Ragged lists to padded batches and back, and what is refused."""

import pytest
import torch

from torchrank.errors import ShapeError
from torchrank.ops.ragged import padded_to_ragged, ragged_to_padded


@pytest.mark.parametrize("lengths", [[], [0], [0, 0], [2, 0, 3], [1]], ids=str)
@pytest.mark.parametrize("shape", [(), (2,), (0,)], ids=str)
def test_there_and_back(lengths, shape):
    offsets = torch.tensor([0, *torch.tensor(lengths, dtype=torch.int64).cumsum(0).tolist()])
    values = torch.rand(sum(lengths), *shape)
    back, same = padded_to_ragged(*ragged_to_padded(values, offsets))
    assert torch.equal(back, values)
    assert torch.equal(same, offsets)


@pytest.mark.parametrize(
    ("values", "offsets"),
    [
        ([1, 2], torch.tensor([0, 2])),
        (torch.zeros(2), [0, 2]),
        (torch.zeros(()), torch.tensor([0, 1])),
        (torch.zeros(2), torch.tensor(2)),
        (torch.zeros(2), torch.tensor([[0, 2]])),
        (torch.zeros(2), torch.tensor([0.0, 2.0])),
        (torch.zeros(2), torch.tensor([], dtype=torch.int64)),
        (torch.zeros(2), torch.tensor([0, 3, 2])),
        (torch.zeros(2), torch.tensor([1, 2])),
    ],
)
def test_offsets_that_describe_no_lists(values, offsets):
    with pytest.raises(ShapeError):
        ragged_to_padded(values, offsets)


def test_masks_that_describe_no_batch():
    for mask in (torch.ones(2, 3), torch.ones(2, dtype=torch.bool), torch.ones(3, 2, dtype=torch.bool), [[True]]):
        with pytest.raises(ShapeError, match="mask"):
            padded_to_ragged(torch.zeros(2, 3), mask)
