"""Rebuild a trained module from its checkpoint alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from torchrank.data.files import as_path
from torchrank.errors import DataError
from torchrank.training.spec import build

#: the key under which every torchrank LightningModule keeps its description in a checkpoint
SPEC_KEY = "torchrank"
#: the key of the state of the random numbers
RANDOM_KEY = "torchrank_random"


def load(path: str | Path, *, map_location: str | torch.device = "cpu", trust: Sequence[str] = ()) -> torch.nn.Module:
    """Rebuild the LightningModule a checkpoint was written by, weights included.

    Needs neither the training data nor the command line. Nothing is unpickled but tensors and plain values
    (``weights_only=True``), and only classes of torchrank, ``torch.nn`` and the packages in ``trust`` are built.

    Args:
        path: a checkpoint that a torchrank module wrote through Lightning.
        map_location: the device to load to.
        trust: further packages whose modules may be built, such as the one with your own scorer.

    Returns:
        the module, in evaluation mode.

    Raises:
        DataError: the file is not a checkpoint of a torchrank module.
        TorchRankError: it names a class outside the trusted packages.

    Example:
        >>> load("last.ckpt")
        Traceback (most recent call last):
        torchrank.errors.DataError: there is no checkpoint last.ckpt
    """
    saved = read_checkpoint(path, map_location=map_location)
    if not isinstance(saved, dict) or SPEC_KEY not in saved or "state_dict" not in saved:
        raise DataError(f"{path} was not written by a torchrank module: it has no {SPEC_KEY!r} entry")
    module = build(saved[SPEC_KEY], trust=trust)
    if not isinstance(module, torch.nn.Module):
        raise DataError(f"{path} describes no module")
    try:
        module.load_state_dict(saved["state_dict"])
    except RuntimeError as error:
        raise DataError(f"{path} holds weights of other shapes than its description says: {error}") from error
    return module.to(map_location).eval()


def read_checkpoint(path: str | Path, *, map_location: str | torch.device = "cpu") -> Any:
    """Read a checkpoint's tensors and plain values; nothing else is unpickled.

    Raises:
        DataError: there is no such file, or it holds something else.
    """
    path = as_path(path)
    try:
        return torch.load(path, map_location=map_location, weights_only=True)
    except FileNotFoundError:
        raise DataError(f"there is no checkpoint {path}") from None
    except Exception as error:  # torch's text would advise to load it all the same
        raise DataError(
            f"{path} is not a checkpoint that loads safely: it is damaged, of another kind, or holds more than tensors"
            " and plain values"
        ) from error


def random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """Return the state of torch's random numbers on the CPU and, where it is another, on a CUDA device."""
    state = {"cpu": torch.get_rng_state()}
    return {**state, "cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else state


def set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    """Set what :func:`random_state` returned."""
    torch.set_rng_state(state["cpu"].cpu())
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"].cpu(), device)
