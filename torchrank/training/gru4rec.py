"""GRU4Rec on session-parallel batches."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Adagrad, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from torchrank.data.catalogue import item_counts
from torchrank.data.log import InteractionLog
from torchrank.data.prepared import PreparedLog
from torchrank.errors import TorchRankError, check_count, check_number, check_option
from torchrank.losses import TOP1Loss
from torchrank.models import GRU4Rec
from torchrank.training.interaction_data import EpochPart
from torchrank.training.preference import PreferenceModule
from torchrank.training.sessions import Sessions, SessionStep

#: what the draws of a step are for
_SAMPLES, _DROPOUT, _ORDER = 0, 1, 2


class GRU4RecModule(PreferenceModule):
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
        if scorer is not None:
            dim, layers = getattr(scorer, "dim", dim), getattr(scorer, "layers", layers)
        made: dict[str, Any] = {"dim": dim, "item_bias": item_bias, "seed": seed}
        super().__init__(scorer, eta=eta, lr_scheduler=lr_scheduler, optimizer=optimizer, **made)
        check_option("negatives", negatives, ["lanes", "shown"])
        for name, value in (("dim", dim), ("layers", layers), ("lanes", lanes), ("unroll", unroll)):
            check_count(name, value)
        check_count("samples", samples, least=0)
        check_number("dropout", dropout, least=0)
        check_number("exponent", exponent)
        if negatives == "shown" and samples < 1:
            raise TorchRankError('negatives="shown" draws samples of each user; set samples=1 or more')
        if negatives == "lanes" and lanes == 1 and samples == 0:
            raise TorchRankError("one lane has no other items to sample; set lanes=2 or more, or samples=1 or more")
        self.layers, self.dropout, self.lanes, self.unroll = layers, dropout, lanes, unroll
        self.loss, self.negatives, self.samples, self.exponent = loss, negatives, samples, exponent
        # the states that the lanes are in, so that a checkpoint inside an epoch goes on from them
        self.register_buffer("lane_states", torch.zeros(layers, lanes, dim))
        self._table: tuple[int, NDArray[np.int64]] | None = None

    lane_states: Tensor
    _sessions: Sessions

    def setup(self, stage: str) -> None:
        """Make the scorer from the training log, and refuse what cannot be trained."""
        if stage != "fit":
            return
        log = self.prepare(one_process=True)
        if not isinstance(self.scorer, GRU4Rec):
            raise TorchRankError(f"GRU4RecModule trains a GRU4Rec, not a {type(self.scorer).__name__}")
        self._sessions, self._table = Sessions.from_log(log), None
        counts = np.bincount(self._sessions.items, minlength=log.num_items).astype(np.float64)
        self._shares = np.cumsum(np.where(counts > 0, np.maximum(counts, 1) ** self.exponent, 0))

    def make_scorer(self, log: InteractionLog | PreparedLog) -> GRU4Rec:
        """Make a network for the users and items of a log, which knows everybody's preferred items."""
        assert isinstance(log, InteractionLog)  # noqa: S101 - for the type checker: another is refused in setup
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
            scorer.start_item_bias(*(torch.from_numpy(counts) for counts in item_counts(log)))
        return scorer

    def training_step(self, batch: EpochPart, batch_idx: int) -> None:
        """Take the steps of one part of the epoch."""
        optimizer: Any = self.optimizers()
        sessions = self._sessions
        if self._table is None or self._table[0] != self.current_epoch:
            self._table = self.current_epoch, sessions.lay_out(self._random(_ORDER), lanes=self.lanes)
        if batch.number == 0:
            self.lane_states.zero_()
        table = self._table[1]
        total, count = torch.zeros((), device=self.device), 0
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            for number in batch.share(-(-len(table) // self.unroll)):
                step = sessions.step(table[number * self.unroll : (number + 1) * self.unroll])
                torch.manual_seed(int(self._random(_DROPOUT, number).integers(2**62)))
                loss = self._loss_of(step, self._random(_SAMPLES, number))
                optimizer.zero_grad()
                self.manual_backward(loss)
                optimizer.step()
                total += loss.detach() * len(step.rows)
                count += len(step.rows)
        self.end_part(total / max(count, 1))

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

    def default_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        """Make Adagrad."""
        return Adagrad(parameters, lr=self.eta)
