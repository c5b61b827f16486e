"""What the modules that learn preferences share: the scorer made from the log, what they measure, what they save."""

from typing import Any, Literal, overload

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import SGD

from torchrank.data.catalogue import Catalogue, item_counts
from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import DataError, TorchRankError
from torchrank.models import Factorization, FeedbackFactorization
from torchrank.training.checkpoint import SPEC_KEY
from torchrank.training.evaluation import NO_PAIR, NOT_PUBLISHED, evaluate_shown, measure_published, pair_losses
from torchrank.training.lists import ShownLists
from torchrank.training.processes import Processes, user_tables
from torchrank.training.spec import describe


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


@overload
def prepare(module: Any, *, compiled: bool) -> InteractionLog: ...


@overload
def prepare(module: Any, *, compiled: bool, from_disk: Literal[True]) -> InteractionLog | PreparedLog: ...


def prepare(module: Any, *, compiled: bool, from_disk: bool = False) -> InteractionLog | PreparedLog:
    """Give a module its scorer, made from the log where it has none, and refuse what cannot be trained.

    Args:
        module: with ``trainer``, ``scorer``, ``mu`` and the options of :func:`make_scorer`.
        compiled: whether the compiled loops will step through the scorer's tables.
        from_disk: whether the module reads a prepared log partition by partition.

    Returns:
        what is trained on.

    Raises:
        DataError: there is no log, or the scorer was made for another.
        TorchRankError: a scorer that the engine or μ does not go with.
    """
    log = log_of(module.trainer) if from_disk else training_log(module.trainer)
    if module.scorer is None:
        options = {name: getattr(module, name) for name in ("dim", "init", "item_bias", "feedback", "seed")}
        module.scorer = make_scorer(log, **options)
    check_sizes(module.scorer, log)
    if compiled:
        compiled_scorer(module.scorer)
    elif module.mu > 0 and not hasattr(module.scorer, "squared_norms"):
        raise TorchRankError(
            f"mu={module.mu!r} needs {type(module.scorer).__name__}.squared_norms(users, items), the squared norms of"
            " what users and items are described by; define it, or set mu=0"
        )
    return log


def check_one_process(trainer: pl.Trainer) -> None:
    """Refuse a trainer of several processes.

    Raises:
        TorchRankError: it has more than one.
    """
    if trainer.world_size > 1:
        raise TorchRankError(
            f"preferences are learned in 1 process, not in {trainer.world_size}; use Trainer(devices=1)"
        )


def training_log(trainer: pl.Trainer) -> InteractionLog:
    """Return the log in memory that a trainer's data module trains on.

    Raises:
        DataError: it has no such data module, or its log is on disk.
    """
    log = log_of(trainer)
    if isinstance(log, PreparedLog):
        raise DataError(
            "only SAROSModule reads a prepared log partition by partition; for this module read it into memory:"
            " InteractionDataModule(PreparedLog(…).to_log())"
        )
    return log


def log_of(trainer: pl.Trainer) -> InteractionLog | PreparedLog:
    """Return the log, in memory or on disk, that a trainer's data module trains on.

    Raises:
        DataError: it has no such data module.
    """
    log = getattr(getattr(trainer, "datamodule", None), "train_log", None)
    if not isinstance(log, InteractionLog | PreparedLog):
        raise DataError("training needs a log: trainer.fit(module, datamodule=InteractionDataModule(…))")
    return log


def check_sizes(scorer: Any, log: InteractionLog | PreparedLog) -> None:
    """Refuse a scorer made for other users or items than the log's.

    Raises:
        DataError: the numbers differ.
    """
    for name in ("num_users", "num_items"):
        made, there = getattr(scorer, name, None), getattr(log, name)
        if isinstance(made, int) and made != there:
            raise DataError(f"the scorer was made for {name}={made}, the log has {there}; make it for the log")


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


def check_numbers(**values: float) -> None:
    """Refuse options that are negative, infinite or NaN.

    Raises:
        TorchRankError: one is.
    """
    for name, value in values.items():
        if not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
            raise TorchRankError(f"{name}={value!r}; give a finite number, at least 0")


def check_threads(threads: int, *, alone: bool = False) -> None:
    """Refuse a number of threads that is none, or more than one where one has to do it all.

    Raises:
        TorchRankError: it is.
    """
    if threads < 1:
        raise TorchRankError(f"threads={threads!r}; give at least 1")
    if alone and threads > 1:
        raise TorchRankError(
            f'threads={threads} are for engine="sequential", without momentum, averaging and pairs="all"; set threads=1'
        )


def move_schedule(module: pl.LightningModule) -> None:
    """Move the schedule of η at the end of an epoch, after its last step."""
    scheduler: Any = module.lr_schedulers()
    if scheduler is not None and module.trainer.is_last_batch:
        scheduler.step()


def log_measures(module: pl.LightningModule, lists: ShownLists, prefix: str) -> None:
    """Log how a module orders a part's shown items.

    ``loss`` is the logistic pair loss, ``ndcg@10``, ``map@10`` and ``auc`` are by the usual conventions,
    ``published_ndcg@10`` and ``published_map@10`` by those of the SAROS paper. Of several processes each measures its
    own users' lists; what is logged are the means over all users.

    Raises:
        DataError: no user of the part counts, or a score is NaN.
    """
    values: dict[str, NDArray[np.float64]] = {"loss": pair_losses(module, lists)}
    shown = evaluate_shown(module, lists).values
    values |= {name: shown[name] for name in ("ndcg@10", "map@10", "auc")}
    published = measure_published(module, lists).values
    values |= {f"published_{name}": published[name] for name in ("ndcg@10", "map@10")}
    processes = Processes.of(module.trainer)
    sums = processes.total([float(np.nansum(each)) for each in values.values()])
    counts = processes.total([int((~np.isnan(each)).sum()) for each in values.values()])
    for name, problem in (("loss", NO_PAIR), ("published_ndcg@10", NOT_PUBLISHED)):
        if counts[list(values).index(name)] == 0:
            raise DataError(problem)
    bar = {"loss", "ndcg@10"}
    for name, total, count in zip(values, sums, counts, strict=True):
        mean = total / count if count else float("nan")
        # of several batches, the mean over all users who count
        how: dict[str, Any] = {"batch_size": max(int(count), 1), "sync_dist": module.trainer.world_size > 1}
        module.log(prefix + name, mean, **how, prog_bar=name in bar)


def score(scorer: nn.Module | None, users: Tensor, items: Tensor) -> Tensor:
    """Score with a module's scorer.

    Raises:
        TorchRankError: there is none yet.
    """
    if scorer is None:
        raise TorchRankError("this module has no scorer yet: trainer.fit makes it from the log")
    scores: Tensor = scorer(users, items)
    return scores


def make_optimizer(module: Any, parameters: Any, *, momentum: float = 0.0) -> Any:
    """Make a module's optimiser and schedule; for the compiled loops SGD holds η, the velocities and the schedule."""
    given = getattr(module, "optimizer", None)
    optimizer = SGD(parameters, lr=module.eta, momentum=momentum) if given is None else given(parameters)
    if module.lr_scheduler is None:
        return optimizer
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": module.lr_scheduler(optimizer)}}


def store(module: Any, log: InteractionLog | PreparedLog | None, checkpoint: dict[str, Any]) -> None:
    """Add to a checkpoint what rebuilds the module, the users and items it knows, and how many processes trained it.

    What each process knows of its own users is put together first; all processes call this, the first one writes.
    """
    processes = Processes.of(module.trainer)
    if processes.size > 1:
        processes.merge_users(user_tables(module))
    checkpoint[SPEC_KEY] = describe(module)
    checkpoint["processes"] = processes.size
    if log is not None:
        checkpoint["catalogue"] = Catalogue.from_log(log).state()


def check_place(module: Any, number: int, what: str) -> None:
    """Refuse to go on inside an epoch that other numbers of processes divide otherwise.

    Args:
        module: with ``resumed_with``, the number of processes of the checkpoint it goes on from.
        number: of the part of the epoch that is next.
        what: has been divided.

    Raises:
        DataError: the number of processes is another, and the epoch has begun.
    """
    before, now = module.resumed_with, Processes.of(module.trainer).size
    if number > 0 and before is not None and before != now:
        raise DataError(
            f"the checkpoint is from inside an epoch whose {what} were divided among {before} processes, not {now}; go"
            f" on with {before}, or from a checkpoint of the end of an epoch"
        )
