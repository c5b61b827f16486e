"""SAROS' convergence bound, held by a convex scorer, and the variance lemma by block rule."""

import math

import numpy as np
import polars as pl
import pytest
import pytorch_lightning as lightning
import torch
from torch import nn

from torchrank.data import InteractionLog
from torchrank.errors import TorchRankError
from torchrank.losses import bpr_loss
from torchrank.theory import block_variance_ratio, saros_convergence_bound, saros_step_size
from torchrank.training import InteractionDataModule, SAROSModule

CONSTANTS = {"smoothness": 0.7, "gradient_bound": 1.3, "variance": 0.4}


def test_the_bound_is_its_formula():
    counts, distance = [2, 5, 3, 5], 1.7
    spread = 0.4 + 3 * 1.3**2 / 2
    expected = 0.7 * 5 * 1.7**2 / 4 + 2 * 1.7 * math.sqrt(5 * spread / 4)
    assert saros_convergence_bound(distance, counts, **CONSTANTS) == pytest.approx(expected)
    eta, steps = 0.1, [0.2, 0.5, 0.3, 0.5]
    expected = (1.7**2 + spread * sum(s**2 for s in steps)) / sum(steps)
    assert saros_convergence_bound(distance, counts, eta=eta, **CONSTANTS) == pytest.approx(expected)
    second = 1.7 / math.sqrt(4 * 5 * spread)
    assert saros_step_size(distance, counts, **CONSTANTS) == pytest.approx(min(1 / (0.7 * 5), second))


@pytest.mark.parametrize("users", [1, 10, 10_000])
@pytest.mark.parametrize("distance", [0.1, 30.0])
def test_the_theorems_step_size_does_no_worse_than_the_theorem(users, distance):
    counts = np.random.default_rng(0).integers(1, 6, users)
    eta = saros_step_size(distance, counts, **CONSTANTS)
    given = saros_convergence_bound(distance, counts, eta=eta, **CONSTANTS)
    assert given <= saros_convergence_bound(distance, counts, **CONSTANTS) * (1 + 1e-12)
    tiny = saros_convergence_bound(distance, counts, eta=eta * 1e-9, **CONSTANTS)
    assert tiny > 1e6 * given  # learning nothing bounds nothing


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"distance": -1.0}, "distance"),
        ({"block_counts": []}, "block_counts"),
        ({"block_counts": [1, 0]}, "block_counts"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"variance": math.nan}, "variance"),
        ({"eta": 1.0}, "1/"),
    ],
)
def test_numbers_that_cannot_be(change, told):
    arguments = {"distance": 1.0, "block_counts": [3, 4], **CONSTANTS, **change}
    with pytest.raises(TorchRankError, match=told):
        saros_convergence_bound(**arguments)


class FixedUsers(nn.Module):
    """Known user vectors, learned item vectors: the loss is convex in what is learned."""

    def __init__(self, user_vectors, num_items):
        super().__init__()
        self.user_vectors = user_vectors
        self.item_vectors = nn.Parameter(torch.zeros(num_items, user_vectors.shape[1]))

    def forward(self, users, items):
        return (self.user_vectors[users] * self.item_vectors[items]).sum(-1)


def pair_loss(scorer, log):
    """Mean over users of the mean over all their pairs."""
    losses = []
    for user in range(log.num_users):
        rows = slice(*log.offsets[user : user + 2])
        items, liked = torch.from_numpy(log.items[rows]).long(), torch.from_numpy(log.preferred[rows])
        scores = scorer(torch.full_like(items, user), items)
        one, other = torch.meshgrid(scores[liked], scores[~liked], indexing="ij")
        losses.append(bpr_loss(one.flatten(), other.flatten()).mean())
    return torch.stack(losses).mean()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("rule", ["run", "eager"])
def test_a_convex_scorer_holds_the_bound(seed, rule):
    random = np.random.default_rng(seed)
    users, items, blocks, epochs = 40, 15, 3, 12
    vectors = torch.from_numpy(random.normal(size=(users, 2))).float()
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    rows = []
    for user in range(users):
        for item in random.permutation(items):
            rows.append((user, int(item), float(random.random() < 0.5)))
    frame = pl.DataFrame(rows, schema=["user", "item", "feedback"], orient="row").with_row_index("time")
    log = InteractionLog.from_frame(frame, positive_at=1)

    best = FixedUsers(vectors, items)
    solver = torch.optim.LBFGS(best.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        loss = pair_loss(best, log)
        loss.backward()
        return loss

    solver.step(closure)
    distance = float(best.item_vectors.detach().norm())  # from the start at 0
    # ‖U_u‖ = 1: the logistic loss has curvature at most ¼‖(U, −U)‖², gradients at most ‖(U, −U)‖
    constants = {"smoothness": 0.5, "gradient_bound": math.sqrt(2), "variance": 2.0}
    counts = [blocks] * users * epochs
    eta = saros_step_size(distance, counts, **constants)
    module = SAROSModule(
        FixedUsers(vectors, items),
        engine="batched",
        lanes=1,
        rule=rule,
        order="shuffled",
        user_order="shuffled",
        minimum=blocks,
        maximum=blocks,
        overflow="truncate",
        eta=eta,
        mu=0,
        averaging=True,
        seed=seed,
    )
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=epochs, enable_checkpointing=False, **quiet)
    trainer.fit(module, datamodule=InteractionDataModule(log, train=1, validation=0))
    starts = int(module.average.starts)
    assert starts > 0.8 * users * epochs  # a shuffled order may leave a user with fewer than three blocks
    with torch.no_grad():
        excess = float(pair_loss(module.scorer, log) - pair_loss(best, log))
        start = float(pair_loss(FixedUsers(vectors, items), log) - pair_loss(best, log))
    assert 0 < excess < start  # it has learned
    assert excess <= saros_convergence_bound(distance, [blocks] * starts, eta=eta, **constants)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_variance_lemma_holds_of_all_rules_but_positive(share):
    ratios = {
        rule: block_variance_ratio(rule, preferred_share=share, users=800)
        for rule in ("run", "single", "eager", "positive")
    }
    for rule in ("run", "single", "eager"):
        assert ratios[rule] == pytest.approx(1, abs=0.15)
    assert ratios["positive"] > (1.4 if share == 0.5 else 6)  # the lemma says at most 3
    with pytest.raises(TorchRankError, match="rule"):
        block_variance_ratio("runs")
    with pytest.raises(TorchRankError, match="preferred_share"):
        block_variance_ratio("run", preferred_share=1.0)
