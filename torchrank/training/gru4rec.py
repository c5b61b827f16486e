"""GRU4Rec on session-parallel batches."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Adagrad, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.data.catalogue import Catalogue
from torchrank.data.log import InteractionLog
from torchrank.errors import TorchRankError, check_number, check_option
from torchrank.losses import TOP1Loss
from torchrank.models import GRU4Rec
from torchrank.training.interaction_data import EpochPart
from torchrank.training.lists import ShownLists
from torchrank.training.preference import (
    check_numbers,
    check_one_process,
    check_sizes,
    log_measures,
    move_schedule,
    score,
    store,
    training_log,
)
from torchrank.training.saved_module import SavedModule
from torchrank.training.sessions import Sessions, SessionStep

#: what the draws of a step are for
_SAMPLES, _DROPOUT, _ORDER = 0, 1, 2


class GRU4RecModule(SavedModule):
    """Teach a GRU to score each user's next preferred item above sampled others.

    Session-parallel: users, in a new random order each epoch, move through ``lanes`` side by side, one preferred item a
    step, and where one ends the next enters with the state 0. Every ``unroll`` steps of all lanes there is one step of
    the optimiser on the mean loss; gradients reach back to the first of them, states further. What is sampled:

    - ``negatives="lanes"``: the items that come next in the other lanes at the same step, thus items in proportion to
      how often they are preferred, and ``samples`` further ones, drawn for each step of the optimiser. As published.
    - ``negatives="shown"``: for each next item, ``samples`` items that its user was shown and did not prefer. Not as
      published: it tells the network what the published one never hears of.

    Needs ``trainer.fit(module, datamodule=InteractionDataModule(…))``, or :func:`fit_interactions`. Logs
    ``train_loss`` and the measures that :class:`~torchrank.training.SAROSModule` logs.

    Args:
        scorer: a :class:`~torchrank.models.GRU4Rec`; made from the training log by default.
        dim: of a scorer made from the log, length of states and vectors.
        layers: of a scorer made from the log, GRUs on top of each other.
        dropout: of a scorer made from the log, share of the states' numbers dropped in training.
        item_bias: of a scorer made from the log, give items offsets, started at the smoothed log-odds of their positive
            feedback; the published network has none.
        loss: a loss of wanted items against sampled ones; :class:`~torchrank.losses.TOP1Loss`, as published, by
            default.
        negatives: what is sampled, see above.
        samples: further samples; for ``"shown"`` at least 1.
        exponent: further samples are drawn in proportion to this power of how often an item is preferred in training; 0
            draws alike those that are.
        lanes: users side by side.
        unroll: steps of all lanes for one of the optimiser; 1 as published.
        eta: step size of Adagrad.
        lr_scheduler: makes the schedule of η from an optimiser; it moves once an epoch.
        optimizer: makes another optimiser from the parameters.
        seed: of a scorer made from the log, of the users' order, and of all draws.

    Raises:
        TorchRankError: an option out of its range.

    Source: Hidasi et al., "Session-based Recommendations with Recurrent Neural Networks" (arXiv 1511.06939); further
    samples and their exponent: Hidasi and Karatzoglou (arXiv 1706.03847).

    Example:
        >>> from torchrank.data import make_interactions
        >>> from torchrank.training import fit_interactions
        >>> log, _ = make_interactions(num_users=30, num_items=40, num_interactions=500)
        >>> module = GRU4RecModule(dim=8, lanes=8)
        >>> seconds = fit_interactions(module, log, epochs=2)
        >>> module(torch.tensor([0]), torch.tensor([3])).shape
        torch.Size([1])
    """

    def __init__(
        self,
        scorer: nn.Module | None = None,
        *,
        dim: int = 64,
        layers: int = 1,
        dropout: float = 0.0,
        item_bias: bool = False,
        loss: nn.Module | None = None,
        negatives: Literal["lanes", "shown"] = "lanes",
        samples: int = 0,
        exponent: float = 0.75,
        lanes: int = 64,
        unroll: int = 16,
        eta: float = 0.05,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_option("negatives", negatives, ["lanes", "shown"])
        for name, value in (("dim", dim), ("layers", layers), ("lanes", lanes), ("unroll", unroll)):
            if value < 1:
                raise TorchRankError(f"{name}={value!r}; give at least 1")
        check_numbers(samples=samples, eta=eta, dropout=dropout)
        check_number("exponent", exponent)
        if negatives == "shown" and samples < 1:
            raise TorchRankError('negatives="shown" draws samples of each user; set samples=1 or more')
        if negatives == "lanes" and lanes == 1 and samples == 0:
            raise TorchRankError("one lane has no other items to sample; set lanes=2 or more, or samples=1 or more")
        if scorer is not None:
            dim, layers = getattr(scorer, "dim", dim), getattr(scorer, "layers", layers)
        self.scorer = scorer
        self.dim, self.layers, self.dropout, self.item_bias = dim, layers, dropout, item_bias
        self.loss, self.negatives, self.samples, self.exponent = loss, negatives, samples, exponent
        self.lanes, self.unroll = lanes, unroll
        self.eta, self.lr_scheduler, self.optimizer, self.seed = eta, lr_scheduler, optimizer, seed
        self.automatic_optimization = False
        # the states that the lanes are in, so that a checkpoint inside an epoch goes on from them
        self.register_buffer("lane_states", torch.zeros(layers, lanes, dim))
        self._train_log: InteractionLog | None = None
        self._sessions: Sessions | None = None
        self._table: tuple[int, NDArray[np.int64]] | None = None

    lane_states: Tensor

    def setup(self, stage: str) -> None:
        """Make the scorer from the training log, and refuse what cannot be trained."""
        if stage != "fit":
            return
        check_one_process(self.trainer)
        log = self._train_log = training_log(self.trainer)
        self._sessions, self._table = Sessions.from_log(log), None
        if self.scorer is None:
            self.scorer = self._make_scorer(log)
        if not isinstance(self.scorer, GRU4Rec):
            raise TorchRankError(f"GRU4RecModule trains a GRU4Rec, not a {type(self.scorer).__name__}")
        check_sizes(self.scorer, log)
        counts = np.bincount(self._sessions.items, minlength=log.num_items).astype(np.float64)
        self._shares = np.cumsum(np.where(counts > 0, np.maximum(counts, 1) ** self.exponent, 0))

    def _make_scorer(self, log: InteractionLog) -> GRU4Rec:
        sizes = {"num_users": log.num_users, "num_items": log.num_items, "dim": self.dim, "layers": self.layers}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            scorer = GRU4Rec.from_log_arrays(
                log.users[log.preferred],
                log.items[log.preferred],
                dropout=self.dropout,
                item_bias=self.item_bias,
                **sizes,
            )
        if self.item_bias:
            counts = Catalogue.from_log(log)
            scorer.start_item_bias(torch.from_numpy(counts.positives), torch.from_numpy(counts.shown))
        return scorer

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Score users and items by internal index: ``(...)`` each to ``(...)``."""
        return score(self.scorer, users, items)

    def training_step(self, batch: EpochPart, batch_idx: int) -> None:
        """Take the steps of one part of the epoch."""
        optimizer: Any = self.optimizers()
        sessions = self._sessions
        assert sessions is not None  # noqa: S101 - for the type checker: made in setup
        if self._table is None or self._table[0] != self.current_epoch:
            self._table = self.current_epoch, sessions.lay_out(self._random(_ORDER), lanes=self.lanes)
        if batch.number == 0:
            self.lane_states.zero_()
        table = self._table[1]
        steps = -(-len(table) // self.unroll)
        first, last = (steps * n // batch.parts for n in (batch.number, batch.number + 1))
        total, count = torch.zeros((), device=self.device), 0
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            for number in range(first, last):
                step = sessions.step(table[number * self.unroll : (number + 1) * self.unroll])
                torch.manual_seed(int(self._random(_DROPOUT, number).integers(2**62)))
                loss = self._loss_of(step, self._random(_SAMPLES, number))
                optimizer.zero_grad()
                self.manual_backward(loss)
                optimizer.step()
                total += loss.detach() * len(step.rows)
                count += len(step.rows)
        self.log("train_loss", total / max(count, 1), on_step=True, on_epoch=True, batch_size=1, prog_bar=True)
        move_schedule(self)

    def _random(self, purpose: int, number: int = 0) -> np.random.Generator:
        """Draws of one step of an epoch: a resumed run draws what it would have drawn."""
        return np.random.default_rng([self.seed, self.current_epoch, purpose, number])

    def _loss_of(self, step: SessionStep, random: np.random.Generator) -> Tensor:
        """Read on in every lane, keep the states, and compare next items with sampled ones."""
        scorer, loss = self.scorer, self.loss or TOP1Loss()
        assert isinstance(scorer, GRU4Rec)  # noqa: S101 - for the type checker: refused in setup
        pieces, mask, lanes, resumed, last, real, targets = (
            x.to(self.device, non_blocking=True)
            for x in (step.pieces, step.mask, step.lanes, step.resumed, step.last, step.real, step.targets)
        )
        before = torch.where(resumed[:, None], self.lane_states[:, lanes], 0.0)
        vectors, after = scorer.read(pieces, step.lengths, before)
        self.lane_states[:, lanes[last]] = after[:, last].detach()
        states = vectors[mask]  # (N, d), lane by lane as targets are
        if self.negatives == "shown":
            assert self._sessions is not None  # noqa: S101 - for the type checker: made in setup
            drawn = self._sessions.draw_others(step.rows.numpy(), self.samples, random)
            others, some = (x.to(self.device) for x in drawn)
            sampled: Tensor = loss(
                scorer.score_states(states, targets), scorer.score_table(states[:, None], others).squeeze(1), some
            )
            return sampled
        # side by side: (T, lanes) next items, (T, lanes, d) states
        wide = torch.zeros(real.shape, dtype=torch.int64, device=self.device)
        wide[real] = targets
        table = states.new_zeros(*real.shape, states.shape[1])
        table[real] = states
        wide, table, there = wide.T, table.transpose(0, 1), real.T
        scores = scorer.score_table(table, wide)
        wanted = scores.diagonal(dim1=1, dim2=2)
        different = (wide[:, None] != wide[..., None]) & there[:, None] & there[..., None]
        if self.samples:
            places = np.searchsorted(self._shares, random.random(self.samples) * self._shares[-1], side="right")
            more = torch.from_numpy(places).to(self.device)
            scores = torch.cat([scores, scorer.score_table(table, more)], -1)
            different = torch.cat([different, (more != wide[..., None]) & there[..., None]], -1)
        result: Tensor = loss(wanted, scores, different)
        return result

    def validation_step(self, batch: ShownLists, batch_idx: int) -> None:
        """Log the measures of the validation part."""
        log_measures(self, batch, "val_")

    def test_step(self, batch: ShownLists, batch_idx: int) -> None:
        """Log the measures of the test part."""
        log_measures(self, batch, "test_")

    def configure_optimizers(self) -> Any:
        """Make the optimiser and its schedule."""
        optimizer = (
            Adagrad(self.parameters(), lr=self.eta) if self.optimizer is None else self.optimizer(self.parameters())
        )
        if self.lr_scheduler is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": self.lr_scheduler(optimizer)}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store what rebuilds the module, and the users and items it knows."""
        store(self, self._train_log, checkpoint)
