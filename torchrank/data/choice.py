"""Which lists or sequences of a dataset are asked for."""

from typing import Any

import torch
from torch import Tensor

from torchrank.errors import DataError


def choose(asked: Any, count: int, device: torch.device, *, one: str, several: str) -> Tensor:
    """Turn what is asked for into numbers.

    Args:
        asked: integers from 0, or a ``(count,)`` boolean tensor.
        count: how many there are.
        device: of the result.
        one: what each is called, for messages.
        several: its plural.

    Returns:
        ``(B,)`` int64, in the order asked for.

    Raises:
        DataError: none, or one that does not exist.

    Example:
        >>> choose(torch.tensor([False, True]), 2, torch.device("cpu"), one="query", several="queries").tolist()
        [1]
    """
    try:
        chosen = torch.as_tensor(asked, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise DataError(f"{asked!r} chooses no {several}; give numbers from 0 to {count - 1}") from None
    if chosen.dtype == torch.bool and chosen.shape == (count,):
        chosen = chosen.nonzero().squeeze(-1)
    if chosen.ndim != 1 or len(chosen) == 0 or chosen.dtype.is_floating_point or chosen.dtype == torch.bool:
        raise DataError(f"give {one} numbers from 0 to {count - 1} or {count} booleans, at least one")
    if int(chosen.min()) < 0 or int(chosen.max()) >= count:
        some = f"{chosen[:8].tolist()}{'…' if len(chosen) > 8 else ''}"
        raise DataError(f"there are {several} 0 to {count - 1}, asked for {some}")
    return chosen.to(torch.int64)
