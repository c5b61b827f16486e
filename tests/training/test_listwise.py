"""Any scorer, loss, metric, optimiser and schedule; the penalty and the ball; what is logged and predicted."""

from functools import partial

import pytest
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from tests.training import parts
from tests.training.trainers import quiet
from torchrank.data import collect_scores, make_queries
from torchrank.errors import ShapeError, TorchRankError
from torchrank.losses import SLAMLoss
from torchrank.metrics import NDCG, ndcg
from torchrank.models import LinearScorer
from torchrank.training import ListwiseModule, QueryDataModule

ADAM = partial(torch.optim.Adam, lr=0.05)


def queries(**options):
    made = {part: make_queries(60, num_features=5, seed=seed).dataset for seed, part in enumerate(("train", "val"))}
    return QueryDataModule(**{**made, "test": made["val"], "predict": made["val"], "batch_size": 16, **options})


def module(**options):
    return ListwiseModule(LinearScorer(5), SLAMLoss(), **{"optimizer": ADAM, **options})


def batch(data=None):
    data = data or queries()
    data.setup("fit")
    return next(iter(data.train_dataloader()))


def test_training_comes_near_the_best_ranker():
    made = make_queries(200, num_features=5, seed=1)
    model = module()
    trainer = quiet(max_epochs=6)
    trainer.fit(model, queries(val=made.dataset))
    found = trainer.callback_metrics
    best = NDCG(k=10)
    for q in range(len(made.dataset)):
        one = made.dataset[q]
        best.update((one.features @ made.weights)[None], one.relevance[None])
    cosine = torch.cosine_similarity(model.scorer.weight.detach(), make_queries(60, num_features=5).weights, dim=0)
    assert cosine > 0.95
    assert set(found) == {"train_loss", "val_loss", "val_ndcg@10", "val_map"}
    assert found["val_ndcg@10"] == pytest.approx(float(collect_ndcg(model, made.dataset)), abs=1e-6)
    assert best.compute() > 0.5


def collect_ndcg(model, dataset):
    values = [ndcg(model(x[None]), r[None], k=10) for x, r, *_ in (dataset[q] for q in range(len(dataset)))]
    return torch.cat(values).mean()


@pytest.mark.parametrize("l2", [0.0, 0.25])
def test_the_penalty_is_lambda_times_the_squared_norm(l2):
    model, lists = module(l2=l2), batch()
    with torch.no_grad():
        model.scorer.weight.copy_(torch.tensor([1.0, -2, 0, 0, 3]))
    model.log = lambda *_, **__: None
    loss = model.loss(model(lists.features, lists.mask), lists.relevance, lists.mask, lists.list_weights)
    torch.testing.assert_close(model.training_step(lists, 0), loss + l2 * (1 + 4 + 9))


@pytest.mark.parametrize(("radius", "reached"), [(0.1, True), (1e6, False)])
def test_the_weights_stay_in_the_ball_after_every_step(radius, reached):
    norms = []

    class Watch(ListwiseModule):
        def on_train_batch_end(self, *_):
            norms.append(float(self.scorer.weight.detach().norm()))

    quiet(max_epochs=2).fit(Watch(LinearScorer(5), SLAMLoss(), optimizer=ADAM, max_norm=radius), queries())
    assert max(norms) <= radius * (1 + 1e-6)
    assert (max(norms) == pytest.approx(radius)) == reached


def test_own_scorer_loss_metric_and_schedule():
    model = ListwiseModule(
        parts.OwnScorer(5, scale=2.0),
        parts.OwnLoss(),
        metrics={"lists": parts.CountLists()},
        optimizer=partial(torch.optim.SGD, lr=0.1),
        lr_scheduler=parts.halving,
    )
    trainer = quiet(max_epochs=3)
    trainer.fit(model, queries())
    assert trainer.callback_metrics["val_lists"] == 60
    assert trainer.optimizers[0].param_groups[0]["lr"] == 0.1 * 0.5**3
    trainer.test(model, queries(), verbose=False)
    assert trainer.callback_metrics["test_lists"] == 60


def test_a_schedule_may_step_with_every_batch_or_watch_the_validation_loss():
    trainer = quiet()
    trainer.fit(module(lr_scheduler=parts.halving, lr_interval="step"), queries())
    assert trainer.optimizers[0].param_groups[0]["lr"] == 0.05 * 0.5**trainer.global_step
    trainer = quiet(max_epochs=3)
    trainer.fit(module(lr_scheduler=partial(ReduceLROnPlateau, patience=0, threshold=1e9)), queries())
    assert trainer.optimizers[0].param_groups[0]["lr"] < 0.05


def test_predictions_are_the_scores_of_every_list():
    data, model = queries(), module()
    quiet().fit(model, data)
    found = quiet().predict(model, data)
    dataset = data.dataset("predict")
    torch.testing.assert_close(collect_scores(dataset, found), model(dataset.features[None])[0].detach())


def test_two_modules_share_no_metric_state_and_leave_the_given_metrics_alone():
    given = {"ndcg": NDCG(k=3)}
    first, second = module(metrics=given), module(metrics=given)
    lists = batch()
    first.val_metrics.update(lists.relevance, lists.relevance, lists.mask)
    assert first.val_metrics["ndcg"].sums[1] > 0
    assert second.val_metrics["ndcg"].sums[1] == given["ndcg"].sums[1] == first.test_metrics["ndcg"].sums[1] == 0


def test_a_scorer_that_returns_something_else_than_scores_is_refused():
    model = ListwiseModule(parts.TwoColumns(5), SLAMLoss())
    with pytest.raises(ShapeError, match="TwoColumns returned scores of shape"):
        model(torch.ones(2, 3, 5))


def test_features_of_another_number_are_refused():
    with pytest.raises(ShapeError, match="5"):
        quiet().fit(module(), queries(**dict.fromkeys(("train", "val"), make_queries(9, num_features=4).dataset)))


@pytest.mark.parametrize(
    "option", [{"l2": -1.0}, {"l2": float("nan")}, {"max_norm": 0.0}, {"lr_interval": "batch"}], ids=str
)
def test_options_that_cannot_be_are_refused(option):
    with pytest.raises(TorchRankError, match=next(iter(option))):
        module(**option)


def test_a_module_that_no_checkpoint_could_rebuild_is_refused_before_anything_is_written(tmp_path):
    model = ListwiseModule(parts.Forgetful(5), SLAMLoss())
    with pytest.raises(TorchRankError, match="Forgetful does not keep its constructor argument 'size'"):
        quiet(enable_checkpointing=True, default_root_dir=tmp_path).fit(model, queries())
    assert list(tmp_path.iterdir()) == []
    quiet().fit(model, queries())  # without checkpoints it may train
