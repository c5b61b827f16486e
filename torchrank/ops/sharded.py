"""Tables whose rows are dealt to several processes: looking rows up, scoring all of them, finding the best."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from torchrank.ops.checks import check_indices
from torchrank.ops.topk import top_k, top_k_of_chunks


def is_sharded(table: Tensor | None) -> bool:
    """Say whether a table's rows are dealt to several processes (a DTensor)."""
    return table is not None and hasattr(table, "device_mesh")


def look_up(table: Tensor, rows: Tensor, *, sparse: bool = False) -> Tensor:
    """Look rows of a table up, wherever they are.

    Each process looks up what it holds, zeros for the rest, and the parts are added up. Backward, each gets the
    gradient of its own rows alone: no process ever holds a gradient, or an optimiser's state, of the whole table.

    Args:
        table: ``(N, d)``; where its rows are dealt to processes, all of them call this with the same ``rows``.
        rows: ``(...)`` integers.
        sparse: of a table in one place, have a sparse gradient.

    Returns:
        ``(..., d)``, the same in every process.

    Example:
        >>> look_up(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([2, 0])).tolist()
        [[3.0], [1.0]]
    """
    if not is_sharded(table):
        return F.embedding(rows, table, sparse=sparse)
    from torch.distributed.tensor import DTensor, Partial, Replicate

    first, own = local_rows(table)
    place = rows.long() - first
    here = (place >= 0) & (place < len(own))
    # a process without a row has a part in the sum all the same, and in its gradient
    found = F.embedding(place.clamp(0, len(own) - 1), own) if len(own) else own.sum().expand(*rows.shape, own.shape[1])
    part = torch.where(here[..., None], found, 0)
    mesh: Any = table.device_mesh  # type: ignore[attr-defined] # a DTensor's
    whole: Tensor = DTensor.from_local(part, mesh, [Partial()]).redistribute(placements=[Replicate()]).to_local()
    return whole


def local_rows(table: Tensor) -> tuple[int, Tensor]:
    """Return the number of a process's first row, and its rows: all but the last process hold equally many."""
    mesh: Any = table.device_mesh  # type: ignore[attr-defined] # a DTensor's
    each = -(-table.shape[0] // mesh.size())
    own: Tensor = table.to_local()  # type: ignore[attr-defined] # likewise
    return min(each * mesh.get_local_rank(), table.shape[0]), own


def gather_columns(table: Tensor, part: Tensor) -> Tensor:
    """Put scores side by side: ``(B, rows of this process)`` to ``(B, N)``, in every process."""
    from torch.distributed.tensor import DTensor, Shard

    mesh: Any = table.device_mesh  # type: ignore[attr-defined] # a DTensor's
    shape = torch.Size([len(part), table.shape[0]])
    dealt = DTensor.from_local(part, mesh, [Shard(1)], shape=shape, stride=(table.shape[0], 1), run_check=False)
    whole: Tensor = dealt.full_tensor()
    return whole


def top_k_of_shards(
    table: Tensor,
    score_own: Callable[[Tensor], Tensor],
    users: Tensor,
    k: int,
    *,
    num_users: int,
    num_items: int,
    exclude: tuple[Tensor, Tensor] | None = None,
    items: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Take the k best items of users, each process among its own, and merge: scores of other items are never sent.

    Args:
        table: of the items, its rows dealt to the processes.
        score_own: ``(b,)`` users to the scores of the rows that this process holds.
        users: ``(B,)``, the same in all processes, like everything that follows.
        k: how many, at least 1.
        num_users: how many there are.
        num_items: N.
        exclude: places ``(P,)`` in ``users``, ascending, and items ``(P,)``: pairs to leave out.
        items: ``(C,)`` the items to choose from, each once; all by default.

    Returns:
        ``(B, k)`` items, best first, their scores, and a mask that is False where nothing is left, in every process.

    Raises:
        ShapeError: ``k`` below 1, or indices of another shape or type.
        DataError: a NaN score, or an index that does not exist (eager CPU tensors only).
    """
    mesh: Any = table.device_mesh  # type: ignore[attr-defined] # a DTensor's
    first, own = local_rows(table)
    if exclude is not None:
        check_indices("item", exclude[1], num_items)
        here = _inside(exclude[1], first, len(own))
        exclude = exclude[0][here], exclude[1][here] - first
    if items is not None:
        check_indices("item", items, num_items)
        items = items[_inside(items, first, len(own))] - first
    if len(own) == 0 or (items is not None and len(items) == 0):
        nothing = torch.zeros(len(users), k, dtype=torch.int64, device=users.device)
        found = nothing, nothing.to(own.dtype), nothing.bool()
    else:
        places, scores, mask = top_k_of_chunks(
            score_own, users, k, num_users=num_users, num_items=len(own), exclude=exclude, items=items
        )
        found = (places + first).masked_fill(~mask, 0), scores, mask
    columns, scores, mask = (_gather(mesh, tensor) for tensor in found)
    place, best, left = top_k(torch.where(mask, scores, -torch.inf), k)
    left = left & mask.gather(1, place)
    return columns.gather(1, place).masked_fill(~left, 0), best.masked_fill(~left, 0), left


def _inside(indices: Tensor, first: int, count: int) -> Tensor:
    return (indices >= first) & (indices < first + count)


def _gather(mesh: Any, tensor: Tensor) -> Tensor:
    """Put ``(B, k)`` of all processes side by side."""
    parts = [torch.empty_like(tensor) for _ in range(mesh.size())]
    dist.all_gather(parts, tensor.contiguous(), group=mesh.get_group())
    return torch.cat(parts, 1)
