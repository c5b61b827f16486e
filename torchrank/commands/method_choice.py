"""Methods that are compared on a log, trained or counted, and how a setting of one is chosen."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from torch.optim.lr_scheduler import LinearLR

from torchrank.data import InteractionLog
from torchrank.models import GRU4Rec
from torchrank.training.evaluation import evaluate_catalogue, evaluate_loss, evaluate_published
from torchrank.training.interaction_fitting import fit_interactions
from torchrank.training.shown_lists import ShownLists
from torchrank.types import InteractionScorer

#: η falls to this share of itself over the epochs, in the tuned methods
FINAL_SHARE = 0.05
#: steps an epoch is cut into, and epochs without a better one after which a setting is given up
_STEPS, _PATIENCE = 20, 3


@dataclass(frozen=True)
class Trained:
    """A method that is trained by steps.

    Attributes:
        about: one line for the report.
        module: makes the module; called with the options and ``seed``.
        options: what all settings share.
        settings: options to choose among; ``epochs`` is among them where η falls over the epochs.
        epochs: the most there are where the epoch is chosen too.
        choose_by: the measure on the validation part that chooses: ``"loss"`` (lower), ``"published"`` or
            ``"catalogue"`` NDCG@10.
        pair_loss: whether the scores are log-odds of preference, so that the pair loss means something.
    """

    about: str
    module: Callable[..., Any]
    options: Mapping[str, Any]
    settings: tuple[Mapping[str, Any], ...] = ({},)
    epochs: int = 12
    choose_by: str = "loss"
    pair_loss: bool = True
    seeded: ClassVar[bool] = True

    def make(self, seed: int, setting: Mapping[str, Any]) -> Any:
        """Make the module of one setting."""
        options = {**self.options, **setting}
        epochs = options.pop("epochs", None)
        if epochs is not None:
            options["lr_scheduler"] = partial(
                LinearLR, start_factor=1.0, end_factor=FINAL_SHARE, total_iters=max(1, epochs - 1)
            )
        return self.module(seed=seed, **options)


@dataclass(frozen=True)
class Counted:
    """A method that one call makes from the training log.

    Attributes:
        about: one line for the report.
        make: makes the scorer; called with the log, the seed and a setting's options.
        pair_loss: whether the scores are log-odds of preference.
        settings: options to choose among, by published NDCG@10 on the validation part.
        seeded: whether the seed changes anything.
        needs: a package that it needs, and the extra that brings it.
    """

    about: str
    make: Callable[..., InteractionScorer]
    pair_loss: bool = False
    settings: tuple[Mapping[str, Any], ...] = field(default=({},))
    seeded: bool = False
    needs: tuple[str, str] | None = None


@dataclass(frozen=True)
class Choice:
    """A setting and the number of epochs that the validation part chose; None for a method of one call."""

    setting: Mapping[str, Any]
    epochs: int | None = None


def choose(method: Trained | Counted, fit: InteractionLog, val: InteractionLog, *, seed: int) -> Choice:
    """Choose a method's setting and epochs on the last part of each user's training interactions.

    Args:
        method: what to choose for.
        fit: what every setting is trained on.
        val: what it is measured on.
        seed: of the trainings.

    Returns:
        the choice; measured once an epoch where η stays, else at the end.
    """
    if isinstance(method, Counted):
        if len(method.settings) == 1:
            return Choice(method.settings[0])
        lists = ShownLists.from_log(val)
        values = [
            evaluate_published(method.make(fit, seed, **setting), lists).mean["ndcg@10"] for setting in method.settings
        ]
        return Choice(method.settings[values.index(max(values))])
    if len(method.settings) == 1 and "epochs" in method.settings[0]:
        return Choice(method.settings[0], method.settings[0]["epochs"])
    tried = [_try(method, setting, fit, val, seed) for setting in method.settings]
    return min(tried, key=lambda found: found[0])[1]


def _try(
    method: Trained, setting: Mapping[str, Any], fit: InteractionLog, val: InteractionLog, seed: int
) -> tuple[float, Choice]:
    """Train one setting; return what is to be made small and the epoch where it was least."""
    module, lists = method.make(seed, setting), ShownLists.from_log(val)
    falls, epochs = "epochs" in setting, setting.get("epochs", method.epochs)
    found: list[float] = []

    def look(seconds: float, steps: int) -> bool:
        epoch, inside = divmod(steps, _STEPS)
        if inside or (falls and epoch < epochs):
            return False
        found.append(_measure(module, method.choose_by, fit, val, lists))
        return len(found) - found.index(min(found)) > _PATIENCE

    fit_interactions(module, fit, epochs=epochs, steps_per_epoch=_STEPS, watch=look)
    best = found.index(min(found))
    return found[best], Choice(setting, epochs if falls else best + 1)


def _measure(module: Any, choose_by: str, fit: InteractionLog, val: InteractionLog, lists: ShownLists) -> float:
    """Return what is to be made small; infinity for a setting that has diverged."""
    if not all(bool(parameter.isfinite().all()) for parameter in module.scorer.parameters()):
        return math.inf
    scorer = measured_scorer(module)
    if choose_by == "loss":
        return evaluate_loss(scorer, lists)
    if choose_by == "published":
        return -evaluate_published(scorer, lists).mean["ndcg@10"]
    return -evaluate_catalogue(scorer, fit, val).mean["ndcg@10"]


def measured_scorer(module: Any) -> InteractionScorer:
    """Take a module's scorer, with what it has read of every user kept where it would read anew at every call."""
    scorer: InteractionScorer = module.scorer
    return scorer.to_factorization() if isinstance(scorer, GRU4Rec) else scorer
