"""The perceptron on the frozen features of a neural net: learn online what the net was not trained for.

    python docs/tutorials/perceptron_on_features.py

A net is trained once on old queries. Then users change their minds: the new grades follow other weights. The net's last
hidden layer stays as it is, and a perceptron on it learns from the new queries one at a time, each seen once, with a
bound on its mistakes that does not depend on how long the lists are. Beside it, the net as it was, and the perceptron on
the raw features.
"""

import torch

from torchrank.data import QueryDataset, make_queries
from torchrank.losses import SLAMLoss
from torchrank.metrics import ndcg
from torchrank.models import MLPScorer
from torchrank.ops import ragged_to_padded
from torchrank.training import fit_lists, perceptron_pass


def bent(data, direction, *, levels=3):
    """Grade documents by a function of the features that no line orders: |x₁| and |x₂| in the given proportion."""
    worth = data.features[:, :2].abs() @ torch.tensor(direction)
    grades = torch.bucketize(worth, torch.quantile(worth, torch.linspace(0.5, 0.9, levels - 1))).float()
    return QueryDataset(data.features, grades, data.offsets)


@torch.no_grad()
def quality(scores, data):
    """NDCG@10 of flat scores."""
    padded, mask = ragged_to_padded(scores, data.offsets)
    return ndcg(padded, ragged_to_padded(data.relevance, data.offsets)[0], mask, k=10).mean().item()


def main(*, queries=400, epochs=20):
    """Train the net on the old grades, the perceptrons on the new ones."""
    lists = make_queries(3 * queries, num_features=6, seed=0).dataset
    old, new, test = (lists.select(range(n * queries, (n + 1) * queries)) for n in range(3))
    old, new, test = bent(old, [1.0, 0.8]), bent(new, [0.2, 1.0]), bent(test, [0.2, 1.0])
    torch.manual_seed(0)
    net = fit_lists(old, MLPScorer(6, hidden=(64, 32)), SLAMLoss(graded_margin=True), epochs=epochs).module.scorer

    @torch.no_grad()
    def hidden(data):
        # all layers but the last; unit length keeps the perceptron's bound, which grows with the largest feature
        features = net.network[:-1](data.features)
        return features / features.norm(dim=1).max()

    report = {"ndcg@10, the old net": quality(net(test.features[None])[0].detach(), test)}
    for name, of in (("frozen features", hidden), ("raw features", lambda data: data.features)):
        done = perceptron_pass(of(new), new.relevance, new.offsets)
        report[f"ndcg@10, perceptron on {name}"] = quality(of(test) @ done.weights, test)
        half = len(done.measure_loss) // 2
        report[f"measure loss a round, first and second half, {name}"] = (
            done.measure_loss[:half].mean().item(),
            done.measure_loss[half:].mean().item(),
        )
    return report


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value[0]:.4f} {value[1]:.4f}")
