"""What a log and its blocks look like in numbers: the statistics of the published tables."""

import numpy as np
from numpy.typing import NDArray

from torchrank.data.blocks import Blocks
from torchrank.data.log import InteractionLog


def log_statistics(log: InteractionLog) -> dict[str, float]:
    """Count a log the way the published table 1 does.

    Args:
        log: any log.

    Returns:
        ``users`` and ``items`` with a row, ``interactions``, ``sparsity`` (share of pairs without a row),
        ``mean_preferred`` and ``mean_other`` (over ``users_with_preferred`` and ``users_with_other``, as published) and
        ``positive_percent``.

    Source: arXiv 1902.08495, tables 1 and 2.

    Example:
        >>> import polars as pl
        >>> rows = {"user": [1, 1, 1, 2], "item": [1, 2, 3, 1], "feedback": [1, 0, 0, 1], "time": range(4)}
        >>> log_statistics(InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1))["mean_other"]
        2.0
    """
    shown = np.diff(log.offsets)
    preferred = np.bincount(log.users[log.preferred], minlength=log.num_users)
    users, items = int((shown > 0).sum()), len(np.unique(log.items))
    return {
        "users": users,
        "items": items,
        "interactions": len(log),
        "sparsity": 1 - len(log) / max(users * items, 1),
        "mean_preferred": _mean_of_some(preferred),
        "users_with_preferred": int((preferred > 0).sum()),
        "mean_other": _mean_of_some(shown - preferred),
        "users_with_other": int((shown > preferred).sum()),
        "positive_percent": 100 * float(log.preferred.mean()) if len(log) else 0.0,
    }


def block_statistics(blocks: Blocks) -> dict[str, float]:
    """Count blocks.

    Args:
        blocks: blocks of any rule.

    Returns:
        ``blocks``, ``users`` who have any, of these users' counts ``min`` (the published b), ``mean`` (the published
        B), ``median`` and ``max``, the ``mean_preferred`` and ``mean_other`` items of a block, ``pairs`` in all, and
        how many blocks b and B leave with ``discard`` and with ``truncate``.

    Example:
        >>> import polars as pl
        >>> from torchrank.data import build_blocks
        >>> rows = {"user": [1] * 4, "item": [1, 2, 3, 4], "feedback": [0, 0, 1, 1], "time": range(4)}
        >>> log = InteractionLog.from_frame(pl.DataFrame(rows), positive_at=1)
        >>> found = block_statistics(build_blocks(log, rule="run"))
        >>> found["blocks"], found["mean_other"], found["pairs"]
        (1, 2.0, 4)
    """
    counts = blocks.counts[blocks.counts > 0]
    preferred = blocks.preferred_stop - blocks.preferred_start
    other = blocks.other_stop - blocks.other_start
    return {
        "blocks": len(blocks),
        "users": len(counts),
        "min": int(counts.min()) if len(counts) else 0,
        "mean": float(counts.mean()) if len(counts) else 0.0,
        "median": float(np.median(counts)) if len(counts) else 0.0,
        "max": int(counts.max()) if len(counts) else 0,
        "mean_preferred": float(preferred.mean()) if len(blocks) else 0.0,
        "mean_other": float(other.mean()) if len(blocks) else 0.0,
        "pairs": int((preferred * other).sum()),
        "discard": len(blocks.select(overflow="discard")),
        "truncate": len(blocks.select(overflow="truncate")),
    }


def _mean_of_some(counts: NDArray[np.integer]) -> float:
    some = counts[counts > 0]
    return float(some.mean()) if len(some) else 0.0
