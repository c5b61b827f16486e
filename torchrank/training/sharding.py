"""Tables of a module dealt to the processes of Lightning's ModelParallelStrategy, by rows."""

from typing import Any

from torch import Tensor, nn

from torchrank.errors import TorchRankError
from torchrank.models import Factorization
from torchrank.ops.sharded import is_sharded


def shard_tables(module: Any) -> None:
    """Deal the rows of a scorer's tables to the processes of a device mesh, where a strategy has made one.

    Args:
        module: with ``device_mesh``, ``engine`` and ``scorer``, whose parameters become DTensors.

    Raises:
        TorchRankError: the engine or the scorer does not go with it, or users are to be dealt out as well.
    """
    mesh, scorer = module.device_mesh, module.scorer
    if mesh is None or scorer is None or is_sharded(next(scorer.parameters())):
        return
    if mesh["data_parallel"].size() > 1:
        raise TorchRankError("tables are dealt out by rows or users by processes, not both; set data_parallel_size=1")
    if type(scorer) is not Factorization or scorer.sparse:
        raise TorchRankError(
            f"ModelParallelStrategy deals out the tables of a Factorization without sparse gradients, not of this"
            f' {type(scorer).__name__}; for other scorers use strategy="ddp"'
        )
    if module.engine != "batched" or getattr(module, "average", None) is not None:
        raise TorchRankError('tables dealt out by rows need engine="batched", without averaging')
    mesh = mesh["tensor_parallel"]
    for name, table in list(scorer.named_parameters()):
        setattr(scorer, name, nn.Parameter(deal_rows(table.detach(), mesh)))


def deal_rows(table: Tensor, mesh: Any) -> Tensor:
    """Keep a process's own rows of a table that every process has; nothing is sent, and no device sees the whole.

    Args:
        table: ``(N, d)``.
        mesh: of the processes.

    Returns:
        the same as a DTensor.
    """
    from torch.distributed.tensor import DTensor, Shard

    each = -(-len(table) // mesh.size())  # as torch.chunk cuts
    own = table[each * mesh.get_local_rank() :][:each].to(mesh.device_type, copy=True)
    options: Any = {"shape": table.shape, "stride": table.stride(), "run_check": False}
    dealt: Tensor = DTensor.from_local(own, mesh, [Shard(0)], **options)
    return dealt
