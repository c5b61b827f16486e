"""Every loss over lists, with its reference and what it claims."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from tests import oracles
from torchrank import losses


@dataclass
class Case:
    """A loss under test."""

    name: str
    function: Callable[..., torch.Tensor]
    module: type[torch.nn.Module]
    oracle: Callable[..., float]
    options: dict[str, Any] = field(default_factory=dict)
    convex: bool = True
    kind: str = "list"  # "list": needs an ordered pair; "softmax": a relevant document; "point": a document

    def __call__(self, scores, relevance, mask=None, **given):
        return self.function(scores, relevance, mask, **self.options, **given)

    def make(self, **given):
        return self.module(**self.options, **given)


def slam(name, oracle_options=None, **options):
    oracle = partial(oracles.slam, **(options if oracle_options is None else oracle_options))
    return Case(f"slam-{name}", losses.slam_loss, losses.SLAMLoss, oracle, options)


def lambdas(name, **options):
    oracle = partial(oracles.lambda_loss, **options)
    return Case(f"lambda-{name}", losses.lambda_loss, losses.LambdaLoss, oracle, options, convex=False)


CASES = [
    slam("ndcg"),
    slam("map", measure="map"),
    slam("ndcg-first", ties="first"),
    slam("map-first", measure="map", ties="first"),
    slam("ndcg-at-2", k=2, margin=0.5),
    slam("graded", {"graded": True, "margin": 2.0}, graded_margin=True, margin=2.0),
    Case("hinge", losses.pairwise_hinge_loss, losses.PairwiseHingeLoss, oracles.hinge),
    Case(
        "hinge-wide",
        losses.pairwise_hinge_loss,
        losses.PairwiseHingeLoss,
        partial(oracles.hinge, margin=2.5),
        {"margin": 2.5},
    ),
    Case("logistic", losses.pairwise_logistic_loss, losses.PairwiseLogisticLoss, oracles.logistic),
    Case("softmax", losses.softmax_loss, losses.SoftmaxLoss, oracles.softmax, kind="softmax"),
    Case(
        "softmax-relevance",
        losses.softmax_loss,
        losses.SoftmaxLoss,
        partial(oracles.softmax, target="relevance"),
        {"target": "relevance"},
        kind="softmax",
    ),
    Case("listmle", losses.listmle_loss, losses.ListMLELoss, oracles.listmle),
    Case("approx-ndcg", losses.approx_ndcg_loss, losses.ApproxNDCGLoss, oracles.approx_ndcg, convex=False),
    Case(
        "approx-ndcg-smooth",
        losses.approx_ndcg_loss,
        losses.ApproxNDCGLoss,
        partial(oracles.approx_ndcg, temperature=1.5),
        {"temperature": 1.5},
        convex=False,
    ),
    lambdas("ndcg1", variant="ndcg1"),
    lambdas("ndcg2"),
    lambdas("ndcg2-at-3", k=3, sigma=0.7),
    lambdas("ndcg2++", variant="ndcg2++", mu=4.0),
    Case(
        "squared", losses.pointwise_squared_loss, losses.PointwiseSquaredLoss, oracles.pointwise_squared, kind="point"
    ),
    Case(
        "point-logistic",
        losses.pointwise_logistic_loss,
        losses.PointwiseLogisticLoss,
        oracles.pointwise_logistic,
        kind="point",
    ),
]
