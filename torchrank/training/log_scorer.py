"""A scorer for the users and items of a training log: made, checked, and its tables as the compiled loops take them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torchrank.data.catalogue import item_counts
from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import DataError, TorchRankError
from torchrank.models import Factorization, FeedbackFactorization


def make_scorer(
    log: InteractionLog | PreparedLog, *, dim: int, init: str, item_bias: bool, feedback: str | None, seed: int
) -> Factorization | FeedbackFactorization:
    """Make a scorer for the users and items of a training log.

    Args:
        log: what it will be trained on.
        dim: length of the vectors.
        init: ``"uniform"`` or ``"normal"``.
        item_bias: give items offsets, started at the smoothed log-odds of their positive feedback.
        feedback: describe users by ``"all"`` their feedback, or by what they ``"preferred"``, rather than by vectors of
            their own.
        seed: of the start.

    Returns:
        the scorer, on the CPU.
    """
    sizes = {"num_users": log.num_users, "num_items": log.num_items, "dim": dim, "init": init, "item_bias": item_bias}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if feedback is not None:
            log = log.to_log() if isinstance(log, PreparedLog) else log  # such a scorer holds everybody's feedback
            return FeedbackFactorization.from_log_arrays(log.users, log.items, log.preferred, kinds=feedback, **sizes)
        scorer = Factorization(**sizes)
    if item_bias:
        scorer.start_item_bias(*(torch.from_numpy(counts) for counts in item_counts(log)))
    return scorer


def check_sizes(scorer: Any, log: InteractionLog | PreparedLog) -> None:
    """Refuse a scorer made for other users or items than the log's.

    Raises:
        DataError: the numbers differ.
    """
    for name in ("num_users", "num_items"):
        made, there = getattr(scorer, name, None), getattr(log, name)
        if isinstance(made, int) and made != there:
            raise DataError(f"the scorer was made for {name}={made}, the log has {there}; make it for the log")


def compiled_scorer(scorer: nn.Module) -> Factorization | FeedbackFactorization:
    """Refuse a scorer that the compiled loops do not know.

    Raises:
        TorchRankError: it is neither of the two.
    """
    if type(scorer) not in (Factorization, FeedbackFactorization):
        raise TorchRankError(
            f'engine="sequential" is compiled for Factorization and FeedbackFactorization, not for'
            f' {type(scorer).__name__}; use engine="batched", which takes any scorer'
        )
    return scorer


def views(parameter: Tensor | None) -> NDArray[np.float32]:
    """Return a table as a numpy array that shares its memory; an empty one for None.

    Raises:
        TorchRankError: the table is not in float32 on the CPU.
    """
    if parameter is None:
        return np.zeros(0, np.float32)
    if parameter.device.type != "cpu" or parameter.dtype != torch.float32:
        raise TorchRankError(
            f'engine="sequential" steps through float32 tables on the CPU, these are {parameter.dtype} on'
            f' {parameter.device}; use engine="batched", or Trainer(accelerator="cpu", precision="32-true")'
        )
    return parameter.detach().numpy()
