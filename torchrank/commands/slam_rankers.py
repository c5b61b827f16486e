"""The rankers of ``torchrank reproduce slam``: each can be fitted to a fold by a seed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torchrank.commands.slam_folds import Fold, measure
from torchrank.data import ListLoader, QueryDataset, collect_scores
from torchrank.losses import SLAMLoss
from torchrank.metrics import MeanAveragePrecision
from torchrank.models import LinearScorer
from torchrank.training import fit_lists, perceptron_pass


class Fit(NamedTuple):
    """What a ranker made of a fold.

    Attributes:
        val: ``(N_val,)`` scores of the validation part.
        test: ``(N_test,)`` scores of the test part.
        stop: the epoch or round that the validation part chose, the last where it did not choose.
        curve: validation MAP after each epoch.
        seconds: time it took.
        remark: what else is worth saying.
    """

    val: NDArray[np.float32]
    test: NDArray[np.float32]
    stop: int
    curve: list[float]
    seconds: float
    remark: dict[str, float]


class Ranker(Protocol):
    """Fits itself to the training part of a fold and stops by the validation part."""

    @property
    def name(self) -> str:
        """What tells it from the other candidates of its method."""
        ...

    @property
    def seeded(self) -> bool:
        """Whether its training draws random numbers."""
        ...

    def fit(self, fold: Fold, seed: int) -> Fit:
        """Train; look at the test part only to score it in the end."""
        ...


@dataclass(frozen=True)
class Trained:
    """A scorer under a loss: Adam, 32 lists a step, the epoch with the best validation MAP."""

    name: str
    loss: nn.Module
    scorer: Callable[[int], nn.Module] = LinearScorer
    step: float = 1e-2
    l2: float = 0.0
    average: float | None = 0.98
    normalize: tuple[str, ...] = ()
    epochs: int = 25
    seeded = True

    def fit(self, fold: Fold, seed: int) -> Fit:
        """Train by :func:`torchrank.training.fit_lists`."""
        begin = time.perf_counter()
        train, val, test = (part.normalized(*self.normalize) if self.normalize else part for part in fold)
        torch.manual_seed(seed)
        fit = fit_lists(
            train,
            self.scorer(train.num_features),
            self.loss,
            val=val,
            epochs=self.epochs,
            optimizer=partial(torch.optim.Adam, lr=self.step),
            l2=self.l2,
            average=self.average,
            metrics={"map": MeanAveragePrecision()},
            seed=seed,
        )
        scorer = fit.module.scorer
        curve = [row["map"] for row in fit.history]
        return Fit(score(scorer, val), score(scorer, test), fit.epoch, curve, time.perf_counter() - begin, {})


@dataclass(frozen=True)
class FullBatch:
    """Regularised empirical risk of a linear scorer, minimised to the end: all lists a step, a falling step size."""

    name: str
    l2: float
    steps: int = 300
    seeded = False

    def fit(self, fold: Fold, seed: int) -> Fit:
        """Minimise mean SLAM-NDCG + λ‖w‖² from w = 0; nothing is random and nothing stops early."""
        begin = time.perf_counter()
        batches, loss = list(ListLoader(fold.train, batch_size=len(fold.train))), SLAMLoss(reduction="sum")
        counts = fold.train.describe()
        learned = counts["queries"] - counts["without_pairs"]
        scorer = LinearScorer(fold.train.num_features)
        optimizer = torch.optim.Adam(scorer.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps, eta_min=1e-5)
        curve = []
        for number in range(self.steps + 1):  # the last one only looks
            losses = [loss(scorer(b.features, b.mask), b.relevance, b.mask) for b in batches]
            risk = torch.stack(losses).sum() / learned + self.l2 * scorer.weight.square().sum()
            if number % 12 == 11:
                curve.append(measure(fold.val, score(scorer, fold.val)).map)
            if number < self.steps:
                optimizer.zero_grad()
                risk.backward()
                optimizer.step()
                schedule.step()
        remark = {"risk": risk.item(), "norm": scorer.weight.norm().item()}
        seconds = time.perf_counter() - begin
        return Fit(score(scorer, fold.val), score(scorer, fold.test), self.steps, curve, seconds, remark)


@dataclass(frozen=True)
class Perceptron:
    """The perceptron over shuffled passes, the mean of its weights, the pass with the best validation MAP."""

    name: str
    update: str
    active: str = "margin"
    epochs: int = 10
    rounds: int = 32
    seeded = True

    def fit(self, fold: Fold, seed: int) -> Fit:
        """Average the weights at every ``rounds`` rounds, from the first on."""
        begin = time.perf_counter()
        random = np.random.default_rng(seed)
        weights = torch.zeros(fold.train.num_features)
        total, count = torch.zeros_like(weights), 0
        means, curve = [], []
        for _ in range(self.epochs):
            order: Tensor = torch.from_numpy(random.permutation(len(fold.train)))
            for chosen in torch.split(order, self.rounds):
                lists = fold.train.select(chosen)
                done = perceptron_pass(
                    lists.features,
                    lists.relevance,
                    lists.offsets,
                    update=self.update,
                    active=self.active,
                    start=weights,
                )
                weights = done.weights
                total, count = total + weights, count + 1
            means.append(total / count)
            curve.append(measure(fold.val, (fold.val.features @ means[-1]).numpy()).map)
        best = int(np.argmax(curve))
        val, test = ((part.features @ means[best]).numpy() for part in (fold.val, fold.test))
        return Fit(val, test, best + 1, curve, time.perf_counter() - begin, {})


@dataclass(frozen=True)
class Boosted:
    """LightGBM's LambdaMART, the number of trees with the best validation MAP."""

    name: str
    leaves: int
    trees: int = 300
    every: int = 10
    seeded = True

    def fit(self, fold: Fold, seed: int) -> Fit:
        """Grow all trees, then cut."""
        import lightgbm

        begin = time.perf_counter()
        options: dict[str, Any] = {
            "objective": "lambdarank",
            "num_leaves": self.leaves,
            "learning_rate": 0.05,
            "min_data_in_leaf": 50,
            "feature_fraction": 0.5,
            "num_threads": 1,
            "deterministic": True,
            "seed": seed,
            "verbose": -1,
        }
        lists = lightgbm.Dataset(
            fold.train.features.numpy(), fold.train.relevance.numpy(), group=fold.train.lengths.numpy()
        )
        model = lightgbm.train(options, lists, num_boost_round=self.trees)

        def scores(part: QueryDataset, trees: int) -> NDArray[np.float32]:
            return np.asarray(model.predict(part.features.numpy(), num_iteration=trees), dtype=np.float32)

        cuts = range(self.every, self.trees + 1, self.every)
        curve = [measure(fold.val, scores(fold.val, trees)).map for trees in cuts]
        best = cuts[int(np.argmax(curve))]
        return Fit(scores(fold.val, best), scores(fold.test, best), best, curve, time.perf_counter() - begin, {})


@torch.no_grad()
def score(scorer: nn.Module, dataset: QueryDataset) -> NDArray[np.float32]:
    """Score a dataset list by list: ``(N,)``."""
    batches = ListLoader(dataset, batch_size=256)
    flat = collect_scores(dataset, [(scorer(b.features, b.mask), b.mask, b.lists) for b in batches])
    return np.asarray(flat.numpy(), dtype=np.float32)
