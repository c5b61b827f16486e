import pytest
import torch

from torchrank.errors import ShapeError
from torchrank.metrics import PositionAccuracy, SequenceAccuracy, position_accuracy, sequence_accuracy

LABELS = torch.tensor([[0, 1, 2], [3, 3, 9]])
TARGETS = torch.tensor([[0, 1, 1], [3, 3, 0]])
MASK = torch.tensor([[True, True, True], [True, True, False]])


def test_values_of_each_sequence():
    torch.testing.assert_close(position_accuracy(LABELS, TARGETS), torch.tensor([2 / 3, 2 / 3]))
    torch.testing.assert_close(position_accuracy(LABELS, TARGETS, MASK), torch.tensor([2 / 3, 2 / 2]))
    assert sequence_accuracy(LABELS, TARGETS).tolist() == [0, 0]
    assert sequence_accuracy(LABELS, TARGETS, MASK).tolist() == [0, 1]
    assert position_accuracy(LABELS[0], TARGETS[0]).shape == ()


def test_modules_count_positions_and_sequences_over_batches():
    positions, sequences = PositionAccuracy(), SequenceAccuracy()
    for metric in (positions, sequences):
        metric.update(LABELS, TARGETS, MASK)
        metric.update(LABELS[:1, :1], TARGETS[:1, :1])
    torch.testing.assert_close(positions.compute(), torch.tensor((2 + 2 + 1) / (3 + 2 + 1)))
    torch.testing.assert_close(sequences.compute(), torch.tensor((0 + 1 + 1) / 3))
    positions.reset()
    positions.update(LABELS, TARGETS, MASK, torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(positions.compute(), torch.tensor(2 / 3))


@pytest.mark.parametrize("measure", [position_accuracy, sequence_accuracy])
def test_bad_shapes_are_refused(measure):
    with pytest.raises(ShapeError, match=r"\(2, 3\) and targets \(2, 2\)"):
        measure(LABELS, TARGETS[:, :2])
    with pytest.raises(ShapeError, match="boolean"):
        measure(LABELS, TARGETS, MASK.long())
