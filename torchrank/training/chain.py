"""Train linear chains by any loss of label sequences, with averaging of weights."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from torchrank.data.sequence_loading import SequenceLoader
from torchrank.data.sequences import SequenceDataset
from torchrank.errors import DataError, TorchRankError, check_count, check_option
from torchrank.losses import StructuredHingeLoss
from torchrank.metrics import PositionAccuracy, SequenceAccuracy
from torchrank.models.chain import LinearChain
from torchrank.ops.ragged import ragged_index
from torchrank.training.quiet_trainer import quiet_trainer, silence
from torchrank.training.saved_module import SavedModule, with_schedule
from torchrank.training.sequence_data import SequenceDataModule
from torchrank.types import SequenceBatch

#: positions decoded at once
_POSITIONS = 2**14


def gradient_descent(parameters: Iterable[Any]) -> Optimizer:
    """Make plain stochastic gradient descent with steps that suit batches of 32 sequences: 0.2.

    Args:
        parameters: of the model.

    Returns:
        the optimiser.
    """
    return torch.optim.SGD(parameters, lr=0.2)


class SequenceLabels(NamedTuple):
    """Predicted labels of a batch.

    Attributes:
        labels: ``(B, T)`` int64; what lies under the mask has no meaning.
        score: ``(B,)`` score of each label sequence.
        mask: ``(B, T)`` boolean, True where a position is real.
        sequences: ``(B,)`` int64, each sequence's number in its dataset.

    Example:
        >>> from torchrank.data import collate_sequences, make_sequences
        >>> module = ChainModule(LinearChain(8, 6))
        >>> found = module.predict_step(collate_sequences(make_sequences(5).dataset, torch.tensor([0, 4])), 0)
        >>> found.sequences
        tensor([0, 4])
    """

    labels: Tensor
    score: Tensor
    mask: Tensor
    sequences: Tensor


class ChainModule(SavedModule):
    """Minimise a loss of label sequences over a linear chain, and predict with the mean of its weights.

    The defaults are stochastic gradient descent on the structured hinge from weights 0, predicting with an average of
    the iterates, as in the book (which averages all of them: ``average_from=0``). Regularise by the optimiser's own
    ``weight_decay``.

    Logs ``train_loss``, ``val_loss``, and ``val_accuracy``, ``val_whole``, ``test_accuracy`` and ``test_whole``: the
    shares of positions and of whole sequences labelled right.

    Args:
        model: the chain: a call gives emissions, ``transitions`` and ``start_scores`` its other scores, and
            ``decode(x, mask)`` the best labels.
        loss: called ``loss(emissions, transitions, labels, mask, start=…)``, returns a number; the structured hinge by
            default.
        optimizer: makes the optimiser from the parameters; plain SGD with steps of 0.2 by default.
        lr_scheduler: makes the schedule from the optimiser; a ``ReduceLROnPlateau`` watches ``val_loss``.
        lr_interval: step the schedule every ``"epoch"`` or every ``"step"``.
        average_from: share of the run's steps after which weights enter the mean: 0.5 for its second half, 0 for all
            steps, None for the last weights and no mean.

    Raises:
        TorchRankError: an ``average_from`` outside [0, 1), an unknown ``lr_interval``, or a loss that normalises the
            transitions otherwise than the model.

    Source:
        Shalev-Shwartz & Ben-David, "Understanding Machine Learning", 17.2.5 and 17.3.

    Example:
        >>> from torchrank.losses import CRFLoss
        >>> from functools import partial
        >>> module = ChainModule(LinearChain(3, 4), CRFLoss(), optimizer=partial(torch.optim.Adagrad, lr=0.1))
        >>> module.decode(torch.ones(1, 2, 3))[0].tolist()
        [[0, 0]]
    """

    averaged_steps: Tensor

    def __init__(
        self,
        model: nn.Module,
        loss: nn.Module | None = None,
        *,
        optimizer: Callable[[Iterable[Any]], Optimizer] = gradient_descent,
        lr_scheduler: Callable[[Optimizer], LRScheduler | ReduceLROnPlateau] | None = None,
        lr_interval: Literal["epoch", "step"] = "epoch",
        average_from: float | None = 0.5,
    ) -> None:
        super().__init__()
        check_option("lr_interval", lr_interval, ("epoch", "step"))
        if average_from is not None and not 0 <= average_from < 1:
            raise TorchRankError(f"average_from={average_from} must lie in [0, 1); None takes the last weights")
        self.model = model
        self.loss = StructuredHingeLoss() if loss is None else loss
        ours, theirs = (getattr(part, "normalize", None) for part in (self.model, self.loss))
        if ours != theirs:
            raise TorchRankError(f"the model has normalize={ours!r}, the loss normalize={theirs!r}; give both the same")
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.lr_interval = lr_interval
        self.average_from = average_from
        self.mean_model = None if average_from is None else deepcopy(model).requires_grad_(False)
        self.register_buffer("averaged_steps", torch.zeros((), dtype=torch.int64))
        for part in ("val", "test"):
            setattr(self, f"{part}_accuracy", PositionAccuracy())
            setattr(self, f"{part}_whole", SequenceAccuracy())

    @property
    def chain(self) -> LinearChain:
        """The model that predicts: the mean of the weights once there is one, else the last weights."""
        averaged = self.mean_model is not None and bool(self.averaged_steps > 0)
        return cast(LinearChain, self.mean_model if averaged else self.model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Emissions of the model that predicts: ``(B, T, d)`` to ``(B, T, q)``."""
        return self.chain(x, mask)  # type: ignore[no-any-return] # nn.Module's call

    def decode(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Label sequences by the model that predicts, see :meth:`torchrank.models.LinearChain.decode`.

        Args:
            x: ``(B, T, d)`` features.
            mask: ``(B, T)`` boolean or None.

        Returns:
            ``(B, T)`` labels and ``(B,)`` scores.
        """
        return self.chain.decode(x, mask)

    def training_step(self, batch: SequenceBatch, batch_idx: int) -> Tensor:
        """Return the loss of a batch."""
        loss = self._loss_of(cast(LinearChain, self.model), batch)
        size = len(batch.sequences)
        self.log("train_loss", loss.detach(), on_step=True, on_epoch=True, batch_size=size, prog_bar=True)
        return loss

    def validation_step(self, batch: SequenceBatch, batch_idx: int) -> None:
        """Log the loss and the accuracies of a validation batch."""
        loss = self._loss_of(self.chain, batch)
        self.log("val_loss", loss, batch_size=len(batch.sequences), sync_dist=True)
        self._measure("val", batch)

    def test_step(self, batch: SequenceBatch, batch_idx: int) -> None:
        """Log the accuracies of a test batch."""
        self._measure("test", batch)

    def predict_step(self, batch: SequenceBatch, batch_idx: int) -> SequenceLabels:
        """Label a batch."""
        labels, score = self.decode(batch.features, batch.mask)
        return SequenceLabels(labels, score, batch.mask, batch.sequences)

    def _loss_of(self, model: LinearChain, batch: SequenceBatch) -> Tensor:
        emissions = model(batch.features, batch.mask)
        loss: Tensor = self.loss(emissions, model.transitions, batch.labels, batch.mask, start=model.start_scores)
        return loss

    def _measure(self, part: str, batch: SequenceBatch) -> None:
        labels, _ = self.decode(batch.features, batch.mask)
        for name in (f"{part}_accuracy", f"{part}_whole"):
            metric = getattr(self, name)
            metric.update(labels, batch.labels, batch.mask)
            self.log(name, metric, batch_size=len(batch.sequences), prog_bar=True)

    def configure_optimizers(self) -> Any:
        """Make the optimiser, and the schedule where there is one."""
        optimizer = self.optimizer(self.model.parameters())
        return with_schedule(optimizer, self.lr_scheduler, interval=self.lr_interval, monitor="val_loss")

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Step, then take the new weights into the mean."""
        super().optimizer_step(*args, **kwargs)
        if self.mean_model is not None and self.trainer.global_step >= self._first_averaged:
            self._average(self.mean_model)

    @torch.no_grad()
    def _average(self, mean_model: nn.Module) -> None:
        self.averaged_steps += 1
        weight = 1 / self.averaged_steps
        for mean, now in zip(mean_model.parameters(), self.model.parameters(), strict=True):
            mean.lerp_(now, weight.to(mean.dtype))
        for kept, buffer in zip(mean_model.buffers(), self.model.buffers(), strict=True):
            kept.copy_(buffer)

    def on_train_start(self) -> None:
        """Find the first step whose weights enter the mean.

        Raises:
            TorchRankError: the mean is over a share of a run that has no end.
        """
        super().on_train_start()
        if self.average_from is None:
            return
        # Not earlier: asking for the number of steps makes the loader, which would then not be told where to resume.
        steps = self.trainer.estimated_stepping_batches
        if steps == float("inf"):
            raise TorchRankError(
                f"average_from={self.average_from} is a share of the run, and the run has no end; give the Trainer"
                " max_epochs or max_steps, or average_from=None"
            )
        self._first_averaged = int(self.average_from * steps)


@torch.no_grad()
def label_sequences(model: LinearChain | ChainModule, dataset: SequenceDataset) -> Tensor:
    """Label every position of a dataset by a chain or a trained module.

    Args:
        model: what decodes; its device is used.
        dataset: the sequences; their labels are not looked at.

    Returns:
        ``(N,)`` int64, in the order of ``dataset.labels``, on the CPU.

    Raises:
        DataError: the dataset has another number of features than the model.

    Example:
        >>> from torchrank.data import make_sequences
        >>> made = make_sequences(50)
        >>> label_sequences(LinearChain(8, 6), made.dataset).shape == made.dataset.labels.shape
        True
    """
    wanted = model.chain.num_features if isinstance(model, ChainModule) else model.num_features
    if dataset.num_features != wanted:
        raise DataError(f"the sequences have {dataset.num_features} features, the model was made for {wanted}")
    device = next(model.parameters()).device
    offsets = dataset.offsets.cpu()
    labels = torch.zeros(len(dataset.labels), dtype=torch.int64)
    size = max(1, _POSITIONS // int(dataset.lengths.max()))
    for batch in SequenceLoader(dataset, batch_size=size, max_padding=0.2):
        found, _ = model.decode(batch.features.to(device), batch.mask.to(device))
        places, mask = ragged_index(offsets, batch.sequences.cpu(), longest=batch.mask.shape[1])
        labels[places[mask]] = found.cpu()[mask]
    return labels


def fit_chain(
    dataset: SequenceDataset,
    model: LinearChain | None = None,
    loss: nn.Module | None = None,
    *,
    epochs: int = 20,
    batch_size: int = 32,
    optimizer: Callable[[Iterable[Any]], Optimizer] = gradient_descent,
    average_from: float | None = 0.5,
    seed: int = 0,
) -> ChainModule:
    """Train a chain on a dataset on the CPU, quietly, writing nothing.

    For progress bars, validation, checkpoints or other devices give a :class:`ChainModule` and a
    :class:`SequenceDataModule` to a Lightning ``Trainer``.

    Args:
        dataset: the sequences.
        model: the chain, trained where it is; a :class:`~torchrank.models.LinearChain` of the dataset's sizes when
            None.
        loss: as for :class:`ChainModule`.
        epochs: passes over the sequences.
        batch_size: sequences a step.
        optimizer: makes the optimiser from the parameters.
        average_from: share of the steps after which weights enter the mean; None for the last weights.
        seed: of the shuffling.

    Returns:
        the trained module, in evaluation mode.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> from torchrank.data import make_sequences
        >>> made = make_sequences(300, noise=0.2)
        >>> found = label_sequences(fit_chain(made.dataset, epochs=3), made.dataset)
        >>> bool((found == made.dataset.labels).float().mean() > 0.95)
        True
    """
    check_count("epochs", epochs)
    if model is None:
        model = LinearChain(dataset.num_features, dataset.num_labels)
    module = ChainModule(model, loss, optimizer=optimizer, average_from=average_from).train()
    with silence():
        trainer = quiet_trainer(epochs)
        trainer.fit(module, SequenceDataModule(train=dataset, batch_size=batch_size, seed=seed))
    return module.eval()
