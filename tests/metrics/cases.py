"""Every measure with every option, its reference and its module."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.metrics import oracle
from torchrank import metrics

TIES = ["stable", "mean", "pessimistic", "optimistic"]


@dataclass
class Case:
    """A measure under test."""

    name: str
    function: Callable[..., torch.Tensor]
    module: Callable[..., metrics.MeanOverLists]
    reference: Callable[..., float]
    options: dict[str, Any] = field(default_factory=dict)
    ties: list[str] = field(default_factory=lambda: TIES)

    def __call__(self, scores, relevance, mask=None, **given):
        return self.function(scores, relevance, mask, **self.options, **given)

    def expected(self, scores, relevance, ties):
        """The value by the reference; None where the measure is not defined."""
        scores, relevance = scores.tolist(), relevance.tolist()
        relevant = sum(r > 0 for r in relevance)
        if relevant == 0 or (self.function is metrics.auc and relevant == len(relevance)):
            return None
        return oracle.measured(self.reference, scores, relevance, ties, **self.options)


def _cases(name, module, options, **given):
    function, reference = getattr(metrics, name), getattr(oracle, name)
    for chosen in options:
        label = "-".join([name, *(f"{value}" for value in chosen.values())])
        yield Case(label, function, module, reference, chosen, **given)


CUTS = [{}, {"k": 1}, {"k": 3}, {"k": 20}]
CASES = [
    *_cases("ndcg", metrics.NDCG, [*CUTS, {"k": 4, "gain": "linear"}, {"k": 4, "discount": "jarvelin"}]),
    *_cases("ndcg", metrics.NDCG, [{"ideal": "full"}, {"k": 3, "ideal": "full"}, {"k": 20, "ideal": "full"}]),
    *_cases(
        "ndcg",
        metrics.NDCG,
        [
            {"ideal": "retrieved", "retrieved": 4},
            {"k": 2, "ideal": "retrieved", "discount": "jarvelin", "retrieved": 4},
        ],
        ties=["stable", "pessimistic", "optimistic"],
    ),
    *_cases("mean_ndcg", metrics.MeanNDCG, [{}, {"gain": "linear", "discount": "log2"}]),
    *_cases("precision", metrics.Precision, CUTS),
    *_cases("recall", metrics.Recall, CUTS),
    *_cases("average_precision", metrics.MeanAveragePrecision, CUTS),
    *_cases("average_precision", metrics.MeanAveragePrecision, [c | {"normalize": "cutoff"} for c in CUTS]),
    *_cases("average_precision", metrics.MeanAveragePrecision, [c | {"normalize": "hits"} for c in CUTS]),
    *_cases("reciprocal_rank", metrics.MeanReciprocalRank, CUTS),
    *_cases("hit_rate", metrics.HitRate, CUTS),
    *_cases("auc", metrics.AUC, CUTS),
    *_cases("err", metrics.ERR, [*CUTS, {"k": 4, "max_grade": 2.5}]),
]
WITH_TIES = [(case, ties) for case in CASES for ties in case.ties]
IDS = [case.name for case in CASES]
TIE_IDS = [f"{case.name}-{ties}" for case, ties in WITH_TIES]
