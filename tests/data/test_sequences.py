import numpy as np
import pytest
import torch

from torchrank.data import (
    SequenceDataset,
    SequenceLoader,
    collate_sequences,
    make_sequences,
    read_sequences,
)
from torchrank.errors import DataError, ShapeError, TorchRankError
from torchrank.ops import chain_marginals, ragged_to_padded, viterbi


def small(**options):
    return SequenceDataset(
        torch.arange(10.0).reshape(5, 2), torch.tensor([0, 1, 1, 2, 0]), torch.tensor([0, 2, 3, 5]), **options
    )


def test_a_dataset_hands_out_its_sequences():
    data = small(folds=torch.tensor([1, 0, 1]))
    assert (len(data), data.num_features, data.num_labels, data.lengths.tolist()) == (3, 2, 3, [2, 1, 2])
    assert [sequence.labels.tolist() for sequence in data] == [[0, 1], [1], [2, 0]]
    assert data[-1].features.tolist() == [[6, 7], [8, 9]]
    assert "3 sequences, 5 positions, 2 features, 3 labels" in repr(data)
    with pytest.raises(IndexError):
        data[3]
    part = data.select(torch.tensor([False, True, False]))
    assert (part.labels.tolist(), part.num_labels, part.folds.tolist()) == ([1], 3, [0])
    assert data.select([2, 0, 2]).labels.tolist() == [2, 0, 0, 1, 2, 0]
    assert data.in_folds([1]).labels.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"features": torch.zeros(5, 2, dtype=torch.int64)}, ShapeError, "floating point"),
        ({"offsets": torch.tensor([0, 2, 4])}, ShapeError, "from 0 to the 5 positions"),
        ({"offsets": torch.tensor([0, 2, 2, 5])}, DataError, "sequence 1 has 0 positions"),
        ({"labels": torch.zeros(4, dtype=torch.int64)}, ShapeError, r"labels must be \(5,\)"),
        ({"labels": torch.zeros(5)}, ShapeError, "integers"),
        ({"labels": torch.tensor([0, 0, -1, 0, 0])}, DataError, "label of position 2 is -1"),
        ({"num_labels": 2}, DataError, "label of position 3 is 2; with 2 labels they run from 0 to 1"),
        ({"features": torch.full((5, 2), float("nan"))}, DataError, "feature 0 of position 0 is nan"),
        ({"folds": torch.tensor([0])}, ShapeError, r"folds must be \(3,\)"),
    ],
)
def test_bad_datasets_are_refused(change, error, message):
    parts = {"features": torch.zeros(5, 2), "labels": torch.tensor([0, 1, 1, 2, 0])}
    with pytest.raises(error, match=message):
        SequenceDataset(**{**parts, "offsets": torch.tensor([0, 2, 3, 5]), **change})


def test_choosing_what_is_not_there_is_refused():
    for chosen, message in (([], "at least one"), ([3], "asked for"), ([-1], "asked for"), ([0.5], "numbers from 0")):
        with pytest.raises(DataError, match=message):
            small().select(chosen)
    with pytest.raises(DataError, match="no folds"):
        small().in_folds([0])
    with pytest.raises(DataError, match=r"folds \[0, 1\], asked for \[4\]"):
        small(folds=torch.tensor([1, 0, 1])).in_folds([0, 4])


def test_batches_hold_every_sequence_once_and_resume():
    data = make_sequences(50, length=(1, 9)).dataset
    loader = SequenceLoader(data, batch_size=8, shuffle=True, seed=3)
    batches = list(loader)
    assert sorted(int(s) for batch in batches for s in batch.sequences) == list(range(50))
    for batch in batches:
        for row, sequence in enumerate(batch.sequences):
            one = data[int(sequence)]
            n = len(one.labels)
            assert batch.mask[row].tolist() == [t < n for t in range(batch.mask.shape[1])]
            assert torch.equal(batch.features[row, :n], one.features)
            assert torch.equal(batch.labels[row, :n], one.labels)
            assert batch.features[row, n:].eq(0).all()
    again = SequenceLoader(data, batch_size=8, shuffle=True, seed=3)
    steps = iter(again)
    next(steps)
    state = again.state_dict()
    resumed = SequenceLoader(data, batch_size=8, shuffle=True, seed=3)
    resumed.load_state_dict(state)
    rest = list(resumed)
    assert [b.sequences.tolist() for b in rest] == [b.sequences.tolist() for b in batches[1:]]
    assert collate_sequences(data, torch.tensor([], dtype=torch.int64)).mask.shape == (0, 1)


def test_synthetic_sequences_are_seeded_and_the_chain_they_come_from_is_best():
    made = make_sequences(300, noise=0.6, coupling=3.0, seed=1)
    again = make_sequences(300, noise=0.6, coupling=3.0, seed=1)
    other = make_sequences(300, noise=0.6, coupling=3.0, seed=2)
    assert torch.equal(made.dataset.features, again.dataset.features)
    assert not torch.equal(made.dataset.features[:5], other.dataset.features[:5])
    data = made.dataset
    emissions, mask = ragged_to_padded(data.features @ made.weights + made.bias, data.offsets)
    labels, _ = ragged_to_padded(data.labels, data.offsets)

    def right(found):
        return ((found == labels) & mask).sum() / mask.sum()

    torch.testing.assert_close(made.transitions.exp().sum(0), torch.ones(6))
    torch.testing.assert_close(made.start.exp().sum(), torch.tensor(1.0))
    marginal = right(chain_marginals(emissions, made.transitions, mask, start=made.start).argmax(-1))
    joint = right(viterbi(emissions, made.transitions, mask, start=made.start)[0])
    alone = right(emissions.argmax(-1))
    wrong = right(viterbi(emissions, made.transitions.T.contiguous(), mask, start=made.start)[0])
    assert marginal >= joint - 0.01
    assert joint > max(alone, wrong) + 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_labels": 1}, "num_labels=1 must be at least 2"),
        ({"length": (4, 3)}, r"length\[1\]=3 must be at least 4"),
        ({"noise": 0.0}, "noise=0.0 must be a finite number above 0"),
        ({"coupling": -1.0}, "coupling=-1.0 must be a finite number of at least 0"),
    ],
)
def test_bad_options_of_synthetic_sequences_are_refused(options, message):
    with pytest.raises(TorchRankError, match=message):
        make_sequences(**options)


GOOD = {
    "pixels": np.packbits(np.eye(5, 16, dtype=np.uint8), axis=1),
    "label": np.array([0, 1, 1, 2, 0], dtype=np.uint8),
    "offset": np.array([0, 2, 3, 5], dtype=np.int32),
    "fold": np.array([1, 0, 1], dtype=np.uint8),
}


def saved(path, **change):
    arrays = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    np.savez(path, **arrays)
    return path


def test_archives_of_bits_and_of_numbers(tmp_path):
    data = read_sequences(saved(tmp_path / "bits.npz"))
    assert torch.equal(data.features, torch.eye(5, 16))
    assert data.features.dtype == torch.float32
    assert (data.labels.tolist(), data.lengths.tolist(), data.folds.tolist()) == ([0, 1, 1, 2, 0], [2, 1, 2], [1, 0, 1])
    plain = saved(tmp_path / "plain.npz", pixels=None, fold=None, features=np.arange(10.0).reshape(5, 2))
    assert read_sequences(plain, num_labels=7).num_labels == 7
    assert read_sequences(plain).folds is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": None}, "no array 'label'; it holds"),
        ({"offset": None}, "no array 'offset'"),
        ({"pixels": None}, "either 'features' or 'pixels'"),
        ({"features": np.zeros((5, 2))}, "either 'features' or 'pixels'"),
        ({"pixels": np.zeros((5, 16))}, "'pixels' must be"),
        ({"pixels": None, "features": np.zeros(5)}, "'features' must be"),
        ({"pixels": None, "features": np.array([["a"]] * 5)}, "'features' must be"),
        ({"label": np.zeros(5)}, "'label' must be one row of integers"),
        ({"label": np.array([0, 1, 1, 2, -7])}, "position 4 is -7"),
        ({"label": np.array([0, 1])}, r"labels must be \(5,\)"),
        ({"offset": np.array([0, 9])}, "offsets must run from 0 to the 5 positions"),
        ({"offset": np.array([0, 3, 3, 5])}, "sequence 1 has 0 positions"),
        ({"fold": np.array([1])}, r"folds must be \(3,\)"),
        ({"label": np.array([{}] * 5)}, "not a NumPy archive of plain arrays"),
    ],
)
def test_bad_archives_are_refused_by_name(tmp_path, change, message):
    path = saved(tmp_path / "bad.npz", **change)
    with pytest.raises(DataError, match=message) as caught:
        read_sequences(path)
    assert "bad.npz" in str(caught.value)


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read_sequences(tmp_path / "nowhere.npz")
    text = tmp_path / "text.npz"
    text.write_text("label")
    with pytest.raises(DataError, match="not a NumPy archive"):
        read_sequences(text)
    whole = saved(tmp_path / "whole.npz").read_bytes()
    for size in (0, 100, len(whole) - 30):
        text.write_bytes(whole[:size])
        with pytest.raises(DataError, match="not a NumPy archive"):
            read_sequences(text)
    np.save(tmp_path / "single.npy", np.zeros(3))
    with pytest.raises(DataError, match="single array"):
        read_sequences(tmp_path / "single.npy")
