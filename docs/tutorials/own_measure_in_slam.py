"""A measure of your own under SLAM, and the bound checked.

    python docs/tutorials/own_measure_in_slam.py

Suppose only the first look counts: a document at rank i is worth R/i, and the measure is that sum over its best,
M = Σ R(i)/i / max. It is no NDCG, but of the same kind: gains that rise with relevance, discounts that fall with rank.
For every such measure the weights v_i = gain_i · discount_i / best, i the place in the order of falling relevance, make
SLAM an upper bound: 1 − M ≤ Σ v_i max(0, 1 + max{s_j : R_j < R_i} − s_i). Documents of one grade share the mean of
their places' discounts: any of them may stand first.
"""

import torch
from torch import nn

from torchrank.data import ListLoader, make_queries
from torchrank.losses import SLAMLoss, slam_loss
from torchrank.models import LinearScorer
from torchrank.training import fit_lists


def places(mask):
    """1/i for the i-th of a list."""
    return 1 / torch.arange(1, mask.shape[-1] + 1, dtype=torch.float32).expand(mask.shape)


def in_order(keys, values, mask):
    """Values in the order of falling keys, padding last and 0."""
    order = keys.masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    return (values * mask).gather(-1, order), order


def measure(scores, relevance, mask):
    """M of each list: ``(B, L)`` to ``(B,)``, 0 where nothing is relevant."""
    got, best = ((in_order(keys, relevance, mask)[0] * places(mask)).sum(-1) for keys in (scores, relevance))
    return got / torch.where(best > 0, best, torch.ones_like(best))


def weights(relevance, mask):
    """v of each document: ``(B, L)``."""
    gains, order = in_order(relevance, relevance, mask)
    discounts = torch.empty_like(gains).scatter(-1, order, places(mask))
    # the mean discount of a document's grade
    same = (relevance[..., :, None] == relevance[..., None, :]) & mask[..., None, :]
    discounts = (same * discounts[..., None, :]).sum(-1) / same.sum(-1).clamp(min=1)
    best = (gains * places(mask)).sum(-1, keepdim=True)
    return relevance * discounts * mask / torch.where(best > 0, best, torch.ones_like(best))


class OwnMeasureSLAM(nn.Module):
    """SLAM with the weights of M."""

    def __init__(self):
        super().__init__()
        self.slam = SLAMLoss()

    def forward(self, scores, relevance, mask=None, list_weights=None):
        """Return the mean over lists."""
        return self.slam(scores, relevance, mask, list_weights, weights=weights(relevance, mask))


@torch.no_grad()
def mean_measure(scorer, data):
    """M, and by how much the bound lies above 1 − M at least, over a dataset."""
    found, slack = [], []
    for batch in ListLoader(data, batch_size=64):
        scores = scorer(batch.features, batch.mask)
        found.append(measure(scores, batch.relevance, batch.mask))
        bound = slam_loss(scores, batch.relevance, batch.mask, weights=weights(batch.relevance, batch.mask))
        learnable = (batch.relevance.masked_fill(~batch.mask, 0) > 0).any(-1)
        slack.append((bound - (1 - found[-1]))[learnable & (bound > 0)])
    return torch.cat(found).mean().item(), torch.cat(slack).min().item()


def random_slack(data, *, rounds=50, seed=0):
    """The least slack over random scores of every size."""
    generator, least = torch.Generator().manual_seed(seed), torch.inf
    for number in range(rounds):
        def scorer(features, mask, size=10.0 ** (number % 5 - 3)):
            return size * torch.randn(mask.shape, generator=generator)

        least = min(least, mean_measure(scorer, data)[1])
    return least


def main(*, queries=300, epochs=10, rounds=50):
    """Check the bound, then train by it and by NDCG's weights."""
    lists = make_queries(2 * queries, num_features=10, noise=1.0, seed=0).dataset
    train, val = lists.select(range(queries)), lists.select(range(queries, 2 * queries))
    report = {"least slack of the bound, random scores": random_slack(val, rounds=rounds)}
    report["M before"] = mean_measure(LinearScorer(10), val)[0]
    for name, loss in (("SLAM-NDCG", SLAMLoss()), ("SLAM-M", OwnMeasureSLAM())):
        fit = fit_lists(train, LinearScorer(10), loss, epochs=epochs, average=0.98)
        report[f"M, {name}"], report[f"least slack, {name}"] = mean_measure(fit.module.scorer, val)
    return report


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.4f}")
