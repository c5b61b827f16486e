"""Two losses summed: a neural ranker that orders documents, and whose scores still mean something.

    python docs/tutorials/two_losses.py

SLAM looks at the order alone: its scores may drift anywhere. A pointwise loss ties scores to grades, and wastes effort
on documents nobody sees. Their sum keeps the order and gives scores on the scale of the grades, which a threshold
("show nothing below 1") needs. The ranker has no text: a multilayer perceptron of each document's own features beside
self-attention over the list.
"""

import torch
from torch import nn

from torchrank.data import ListLoader, make_queries
from torchrank.losses import PointwiseSquaredLoss, SLAMLoss
from torchrank.models import AttentionScorer, MLPScorer
from torchrank.training import fit_lists


class MLPAndAttention(nn.Module):
    """Add a document's own score, with an offset for all, to what the list around it says."""

    def __init__(self, num_features):
        super().__init__()
        self.num_features = num_features  # kept under its name, so that a checkpoint can rebuild the scorer
        self.own = MLPScorer(num_features, hidden=(32,))
        self.context = AttentionScorer(num_features, dim=16, heads=2, layers=1)

    def forward(self, features, mask=None):
        """Score documents: ``(..., L, d)`` to ``(..., L)``."""
        return self.own(features, mask) + self.context(features, mask)


class Summed(nn.Module):
    """SLAM plus a share of the squared error to the grades."""

    def __init__(self, share=0.5):
        super().__init__()
        self.share = share
        self.order, self.scale = SLAMLoss(graded_margin=True), PointwiseSquaredLoss()

    def forward(self, scores, relevance, mask=None, list_weights=None):
        """Return the loss of a batch; any losses over lists can be added so."""
        order = self.order(scores, relevance, mask, list_weights)
        return order + self.share * self.scale(scores, relevance, mask, list_weights)


@torch.no_grad()
def error(scorer, data):
    """Root mean squared error of the scores as grades."""
    batches = list(ListLoader(data, batch_size=64))
    squares = [(scorer(b.features, b.mask) - b.relevance)[b.mask].square() for b in batches]
    return torch.cat(squares).mean().sqrt().item()


def main(*, queries=300, epochs=15):
    """Train with each loss alone and with their sum; all choose their epoch by NDCG@10 on the validation part."""
    lists = make_queries(2 * queries, num_features=10, seed=0).dataset
    train, val = lists.select(range(queries)), lists.select(range(queries, 2 * queries))
    report = {}
    for name, loss in (
        ("SLAM", SLAMLoss(graded_margin=True)),
        ("squared", PointwiseSquaredLoss()),
        ("sum", Summed()),
    ):
        torch.manual_seed(0)
        fit = fit_lists(train, MLPAndAttention(10), loss, val=val, monitor="ndcg@10", epochs=epochs)
        report[f"ndcg@10, {name}"] = fit.history[fit.epoch - 1]["ndcg@10"]
        report[f"error in grades, {name}"] = error(fit.module.scorer, val)
    return report


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.4f}")
