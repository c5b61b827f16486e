"""Reading labelled sequences from NumPy archives."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from torchrank.data.sequences import SequenceDataset
from torchrank.errors import DataError, TorchRankError


def read_sequences(path: str | Path, *, num_labels: int | None = None) -> SequenceDataset:
    """Read sequences from an ``.npz`` file, without unpickling anything.

    The file holds ``label`` (N,) and ``offset`` (S + 1,) integers, the features either as ``features`` (N, d) numbers
    or as ``pixels`` (N, d / 8) uint8 bits packed by ``numpy.packbits``, and, where there are cross-validation folds,
    ``fold`` (S,) integers. This is the layout of the OCR letters (Kassel; Taskar, Guestrin & Koller).

    Args:
        path: the file.
        num_labels: q; by default the highest label of the file and one.

    Returns:
        the sequences, features as float32.

    Raises:
        DataError: a file that is missing or no such archive, an array that is missing or has the wrong shape or type, a
            label out of range, an empty sequence; the message names the file and the array.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "letters.npz"
        >>> bits = np.packbits([[0, 1] * 8, [1, 1] * 8], axis=1)
        >>> np.savez(path, pixels=bits, label=np.array([0, 3]), offset=np.array([0, 2]))
        >>> read_sequences(path)
        SequenceDataset(1 sequences, 2 positions, 16 features, 4 labels)
    """
    try:
        with Path(path).open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds a single array; give an .npz archive")
            with archive:
                # a member that is no array comes as its bytes
                arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except TorchRankError:
        raise
    except Exception as error:  # numpy and zipfile raise many kinds on damaged bytes
        told = "it is no archive, or holds pickled objects" if "pickle" in str(error) else error
        raise DataError(f"{path} is not a NumPy archive of plain arrays: {told}") from error
    if ("features" in arrays) == ("pixels" in arrays):
        raise DataError(f"{path} must hold either 'features' or 'pixels'; it holds {sorted(arrays)}")
    label, offset = (_integers(path, arrays, name) for name in ("label", "offset"))
    fold = _integers(path, arrays, "fold") if "fold" in arrays else None
    try:
        return SequenceDataset(
            torch.from_numpy(_features(path, arrays)),
            torch.from_numpy(label),
            torch.from_numpy(offset),
            num_labels=num_labels,
            folds=None if fold is None else torch.from_numpy(fold),
        )
    except TorchRankError as error:
        raise DataError(f"{path}: {error}") from error


def _integers(path: str | Path, arrays: dict[str, NDArray[np.generic]], name: str) -> NDArray[np.int64]:
    if name not in arrays:
        raise DataError(f"{path} has no array {name!r}; it holds {sorted(arrays)}")
    found = arrays[name]
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise DataError(f"{path}: {name!r} must be one row of integers, got {found.shape} {found.dtype}")
    return found.astype(np.int64)


def _features(path: str | Path, arrays: dict[str, NDArray[np.generic]]) -> NDArray[np.float32]:
    if "features" in arrays:
        found = arrays["features"]
        if found.ndim != 2 or found.dtype.kind not in "iufb":
            raise DataError(f"{path}: 'features' must be (N, d) numbers, got {found.shape} {found.dtype}")
        with np.errstate(over="ignore"):  # beyond float32 is infinite, which is refused with its place
            return found.astype(np.float32)
    found = arrays["pixels"]
    if found.ndim != 2 or found.dtype != np.uint8:
        raise DataError(f"{path}: 'pixels' must be (N, bytes) uint8, got {found.shape} {found.dtype}")
    return np.unpackbits(found.view(np.uint8), axis=1).astype(np.float32)
