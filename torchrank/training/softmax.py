"""Learning preferences by a softmax over the catalogue, estimated from the batch or from a sample."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.data.log import InteractionLog
from torchrank.errors import DataError, TorchRankError, check_count, check_number, check_option
from torchrank.losses import in_batch_softmax_loss, sampled_softmax_loss
from torchrank.training.interaction_data import EpochPart
from torchrank.training.preference import PreferenceModule


class SoftmaxModule(PreferenceModule):
    """Learn which item a user prefers among all: softmax cross-entropy of each preferred item against a sample.

    Needs ``trainer.fit(module, datamodule=InteractionDataModule(…))``. An epoch takes every preferred interaction once,
    in random order, ``batch_size`` a step. Logs ``train_loss`` (a batch before its step) and the measures that
    :class:`~torchrank.training.SAROSModule` logs.

    Args:
        scorer: scores users and items by vectors: ``embed_users(users)`` and ``embed_items(items)`` give ``(B, d)``
            each, ``forward(users, items)`` their inner products; made from the training log by default.
        dim: of a scorer made from the log, length of the vectors.
        init: of a scorer made from the log, ``"uniform"`` on [0, 1) or ``"normal"`` with deviation 0.1.
        item_bias: of a scorer made from the log, give items offsets, started at the log-odds of their feedback.
        feedback: of a scorer made from the log, describe users by ``"all"`` their feedback, or by what they
            ``"preferred"``, and not by vectors of their own.
        negatives: ``"batch"``, the other rows' items, which are common in proportion to how often they are preferred;
            or ``"sampled"``, drawn for each batch.
        samples: with ``"sampled"``, items drawn a batch, with replacement.
        power: with ``"sampled"``, draw in proportion to the count of preferred feedback to this power; 0 is uniform.
        log_q: correct the scores by how often an item is expected in the sample.
        correct_positive: correct the preferred item's own score too, as published; False makes the sum under the
            logarithm an unbiased estimate of the catalogue's.
        eta: step size of Adam.
        mu: μ of the L2 term μ(‖U_u‖² + ‖V_i‖²), a mean over the batch; a scorer of your own then needs
            ``squared_norms(users, items)``.
        lr_scheduler: makes the schedule of the step size from an optimiser; it moves once an epoch.
        optimizer: makes the optimiser from the parameters, in place of Adam with ``eta``.
        batch_size: preferred interactions a step; B² scores are held.
        seed: of a scorer made from the log and of the draws.

    Raises:
        TorchRankError: an option that does not exist or cannot be.

    Source: Yi et al. (RecSys 2019); Bengio & Senécal (2008).

    Example:
        >>> import pytorch_lightning as pl
        >>> from torchrank.data import make_interactions
        >>> from torchrank.training import InteractionDataModule
        >>> log, _ = make_interactions(num_users=30, num_items=20, num_interactions=300)
        >>> module = SoftmaxModule(dim=4, init="normal", batch_size=32)
        >>> quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        >>> trainer = pl.Trainer(max_epochs=2, accelerator="cpu", enable_checkpointing=False, **quiet)
        >>> trainer.fit(module, datamodule=InteractionDataModule(log))
        >>> module.scorer.score_all(torch.tensor([0, 1])).shape
        torch.Size([2, 20])
    """

    def __init__(
        self,
        scorer: nn.Module | None = None,
        *,
        dim: int = 64,
        init: Literal["uniform", "normal"] = "normal",
        item_bias: bool = False,
        feedback: Literal["all", "preferred"] | None = None,
        negatives: Literal["batch", "sampled"] = "batch",
        samples: int = 1024,
        power: float = 0.0,
        log_q: bool = True,
        correct_positive: bool = True,
        eta: float = 0.003,
        mu: float = 0.0,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        batch_size: int = 1024,
        seed: int = 0,
    ) -> None:
        made: dict[str, Any] = {"dim": dim, "init": init, "item_bias": item_bias, "feedback": feedback, "seed": seed}
        super().__init__(scorer, eta=eta, mu=mu, lr_scheduler=lr_scheduler, optimizer=optimizer, **made)
        check_option("negatives", negatives, ["batch", "sampled"])
        check_number("power", power, least=0)
        for name, value in (("batch_size", batch_size), ("samples", samples)):
            check_count(name, value)
        self.negatives, self.samples, self.power = negatives, samples, power
        self.log_q, self.correct_positive, self.batch_size = log_q, correct_positive, batch_size

    _train_log: InteractionLog | None

    def setup(self, stage: str) -> None:
        """Make the scorer from the training log, and refuse what cannot be trained.

        Raises:
            DataError: nobody prefers anything.
            TorchRankError: the scorer gives no vectors.
        """
        if stage != "fit":
            return
        log = self.prepare(one_process=True)
        for name in ("embed_users", "embed_items"):
            if not hasattr(self.scorer, name):
                raise TorchRankError(
                    f"{type(self.scorer).__name__} has no {name}(indices); the softmax scores a batch by the inner"
                    " products of vectors of users and items, (B, d) each"
                )
        self._liked = np.flatnonzero(log.preferred)
        if not len(self._liked):
            raise DataError("nobody in the training log prefers an item, so there is nothing to learn")
        counts = np.bincount(log.items[self._liked], minlength=log.num_items)
        shown = np.bincount(log.items, minlength=log.num_items) > 0
        share = np.where(shown, counts.astype(np.float64) ** self.power, 0.0)
        self._share = counts / counts.sum() if self.negatives == "batch" else share / share.sum()
        with np.errstate(divide="ignore"):
            self._log_share = np.log(self._share)
        self._order: tuple[int, NDArray[np.int64]] | None = None

    def training_step(self, batch: EpochPart, batch_idx: int) -> None:
        """Take the steps of one part of the epoch."""
        optimizer: Any = self.optimizers()
        scorer, log = self.require_scorer(), self._train_log
        assert log is not None  # noqa: S101 - for the type checker: set in setup
        if self._order is None or self._order[0] != self.current_epoch:
            random = np.random.default_rng([self.seed, self.current_epoch, 0])
            self._order = (self.current_epoch, random.permutation(self._liked))
        order, size = self._order[1], self.batch_size
        total, taken = torch.zeros((), device=self.device), 0
        for number in batch.share(-(-len(order) // size)):
            rows = order[number * size : (number + 1) * size]
            users, items = (torch.from_numpy(x[rows].astype(np.int64)).to(self.device) for x in (log.users, log.items))
            value = objective = self._loss(scorer, users, items, number)
            if self.mu > 0:
                by_user, by_item = scorer.squared_norms(users, items)  # type: ignore[operator] # refused in setup
                objective = value + self.mu * (by_user + by_item).mean()
            optimizer.zero_grad(set_to_none=False)
            self.manual_backward(objective)
            optimizer.step()
            total, taken = total + value.detach() * len(rows), taken + len(rows)
        self.end_part(total / max(taken, 1))

    def _loss(self, scorer: Any, users: Tensor, items: Tensor, number: int) -> Tensor:
        """Mean loss of one batch; what is drawn depends on the epoch and the batch's number alone."""
        user, item = scorer.embed_users(users), scorer.embed_items(items)
        if self.negatives == "batch":
            expected = self._expected(items, len(items) - 1) if self.log_q else None
            scores = user @ item.T
            return in_batch_softmax_loss(scores, items, expected, correct_positive=self.correct_positive).mean()
        random = np.random.default_rng([self.seed, self.current_epoch, 1, number])
        drawn = random.choice(len(self._share), size=self.samples, p=self._share)
        sampled = torch.from_numpy(drawn).to(self.device)
        return sampled_softmax_loss(
            (user * item).sum(-1),
            user @ scorer.embed_items(sampled).T,
            sampled != items[:, None],
            log_q=self._expected(items, self.samples) if self.log_q and self.correct_positive else None,
            negative_log_q=self._expected(sampled, self.samples) if self.log_q else None,
        ).mean()

    def _expected(self, items: Tensor, draws: int) -> Tensor:
        """Log of how often items are expected among some draws."""
        share = torch.from_numpy(self._log_share[items.cpu().numpy()]).float().to(self.device)
        return share + float(np.log(max(draws, 1)))

    def default_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        """Make Adam."""
        return Adam(parameters, lr=self.eta)
