"""Which candidates ``torchrank reproduce slam`` tries for each method."""

from functools import partial
from importlib.util import find_spec

from torchrank.commands.slam_rankers import Boosted, FullBatch, Perceptron, Ranker, Trained
from torchrank.losses import LambdaLoss, PairwiseLogisticLoss, SLAMLoss, SoftmaxLoss
from torchrank.models import AttentionScorer, MLPScorer

#: published for LETOR 4.0 (MAP, MeanNDCG), and what others measured on these folds (MAP)
PUBLISHED = {"ListNet (LETOR)": (0.4775, 0.4914), "AdaRank-NDCG (LETOR)": (0.4824, 0.4950)}

_RANKS = ("minmax", "rank")


def methods(epochs: int) -> dict[str, list[Ranker]]:
    """Candidates of each method; the validation part of a fold chooses among them.

    Args:
        epochs: passes of the trained ones over the training lists, at most.
    """
    attention = partial(AttentionScorer, dim=32, heads=2, layers=1)
    trained = partial(Trained, epochs=epochs)
    listed: dict[str, list[Ranker]] = {
        "slam_ndcg_linear": [
            trained("margin 1", SLAMLoss(measure="ndcg")),
            trained("graded margin", SLAMLoss(measure="ndcg", graded_margin=True)),
        ],
        "slam_map_linear": [trained(f"step {step}", SLAMLoss(measure="map"), step=step) for step in (1e-3, 1e-2)],
        "perceptron": [
            Perceptron("slam, margin", "slam", epochs=min(epochs, 10)),
            Perceptron("slam, mistakes", "slam", "mistakes", epochs=min(epochs, 10)),
            Perceptron("pair", "pair", epochs=min(epochs, 10)),
        ],
        "listnet_linear": [trained(f"step {step}", SoftmaxLoss(), step=step) for step in (1e-3, 1e-2)],
        "ranknet_linear": [trained(f"step {step}", PairwiseLogisticLoss(), step=step) for step in (1e-3, 1e-2)],
        "slam_ndcg_attention": [
            trained(
                name, SLAMLoss(graded_margin=graded), partial(attention, dropout=dropout), step=1e-3, normalize=form
            )
            for name, graded, dropout, form in (
                ("margin 1", False, 0.1, ()),
                ("graded margin", True, 0.4, ()),
                ("graded margin, ranks", True, 0.4, _RANKS),
            )
        ],
    }
    if find_spec("lightgbm") is not None:
        listed["lightgbm_lambdarank"] = [Boosted(f"{leaves} leaves", leaves) for leaves in (7, 15, 31)]
    return listed


def members(epochs: int) -> list[Ranker]:
    """What the best scorer averages over, all on LETOR's features beside their ranks inside the query."""
    trained = partial(Trained, epochs=epochs, normalize=_RANKS)
    deep, flat = partial(MLPScorer, hidden=(64, 32), dropout=0.3), partial(MLPScorer, hidden=(32,))
    return [
        trained("linear, SLAM-NDCG", SLAMLoss(graded_margin=True), step=3e-3),
        trained("linear, LambdaLoss", LambdaLoss(), step=3e-3),
        trained("one hidden layer, LambdaLoss", LambdaLoss(), flat, step=1e-3),
        trained("two hidden layers, LambdaLoss", LambdaLoss(), deep, step=1e-3),
        trained("two hidden layers, RankNet", PairwiseLogisticLoss(), deep, step=1e-3),
        trained("two hidden layers, softmax", SoftmaxLoss(target="relevance"), deep, step=1e-3),
    ]


def convergence(epochs: int) -> list[Ranker]:
    """SLAM-NDCG, linear, from early stopping to the end."""
    return [
        Trained("stopped, averaged weights", SLAMLoss(), epochs=epochs),
        Trained("stopped, weights of one step", SLAMLoss(), average=None, l2=1e-3, epochs=epochs),
        *(FullBatch(f"to the end, λ = {l2:g}", l2, steps=12 * epochs) for l2 in (1e-4, 1e-3, 1e-2)),
    ]
