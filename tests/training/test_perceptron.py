"""The perceptron as a LightningModule takes the steps of the stream pass, and logs its loss below its bound."""

import pytest
import torch
from pytorch_lightning.callbacks import Callback, ModelCheckpoint

from tests.training.trainers import quiet
from torchrank.data import make_queries
from torchrank.errors import ShapeError, TorchRankError
from torchrank.theory import perceptron_loss_bound, perceptron_regret_bound
from torchrank.training import PerceptronModule, QueryDataModule, perceptron_pass

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]
RULES = [{"update": "slam", "active": "margin"}, {"update": "slam", "active": "mistakes"}, {"update": "pair"}]


def stream(made, **options):
    """One list a batch, in the dataset's order, in double precision."""
    data = made.dataset
    double = type(data)(data.features.double(), data.relevance, data.offsets)
    given = {"train": double, "val": double, "test": double, "predict": double}
    return QueryDataModule(**{**given, "batch_size": 1, "shuffle": False, "max_padding": 1.0, **options})


class Log(Callback):
    def __init__(self):
        self.rows = []

    def on_train_batch_end(self, trainer, *_):
        self.rows.append({name: float(value) for name, value in trainer.logged_metrics.items()})


def every_13_steps(folder):
    return ModelCheckpoint(folder, every_n_train_steps=13, save_top_k=-1, filename="{step}")


def fit(model, data, **options):
    log = Log()
    quiet(callbacks=[log, *options.pop("callbacks", [])], **options).fit(model.double(), data)
    return log.rows


@pytest.mark.parametrize("measure", ["ndcg", "map"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_one_list_a_batch_is_the_stream_pass(rule, measure):
    made = make_queries(40, num_features=5, noise=0.3, seed=2)
    u = made.weights.double()
    model = PerceptronModule(5, measure=measure, eta=0.5, comparator=u.tolist(), **rule)
    rows = fit(model, stream(made), max_epochs=2, log_every_n_steps=1)
    data = made.dataset
    want = perceptron_pass(
        data.features.double(),
        data.relevance,
        data.offsets,
        measure=measure,
        eta=0.5,
        rounds=torch.arange(40).repeat(2),
        comparator=u,
        **rule,
    )
    torch.testing.assert_close(model.scorer.weight.detach(), want.weights)
    logged = torch.tensor([row["cumulative_loss"] for row in rows], dtype=torch.float64)
    torch.testing.assert_close(logged, want.measure_loss.cumsum(0))
    bound = perceptron_regret_bound(
        want.comparator_loss.cumsum(0), float(u.norm()), want.squared_step.cumsum(0), eta=0.5, **rule
    )
    torch.testing.assert_close(torch.tensor([row["bound"] for row in rows], dtype=torch.float64), bound)
    assert all(row["cumulative_loss"] <= row["bound"] + 1e-9 for row in rows)


@pytest.mark.parametrize("batch_size", [1, 8])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_batch_as_one_step_keeps_the_bound(rule, batch_size):
    made = make_queries(40, num_features=5, documents=(3, 12), margin=0.3, seed=1)
    model = PerceptronModule(5, separation=made.margin, **rule)
    rows = fit(model, stream(made, batch_size=batch_size), max_epochs=4, log_every_n_steps=1)
    assert 0 < rows[-1]["cumulative_loss"] <= rows[-1]["bound"]
    assert rows[-1]["bound"] == pytest.approx(perceptron_loss_bound(made.radius, made.margin, **rule))
    assert all(row["cumulative_loss"] <= row["bound"] for row in rows)
    trainer = quiet()
    trainer.test(model, stream(made), verbose=False)
    assert trainer.callback_metrics["test_ndcg@10"] > 0.99


def test_a_batch_steps_against_the_weighted_mean_of_its_lists():
    made = make_queries(3, num_features=4, seed=3)
    data = made.dataset
    weights = torch.tensor([1.0, 2.0, 5.0])
    weighted = type(data)(data.features.double(), data.relevance, data.offsets, list_weights=weights)
    model = PerceptronModule(4)
    fit(model, stream(made, train=weighted, batch_size=3))
    each = [
        perceptron_pass(data.features.double(), data.relevance, data.offsets, rounds=torch.tensor([q])).weights
        for q in range(3)
    ]
    torch.testing.assert_close(model.scorer.weight.detach(), (weights.double() @ torch.stack(each)) / 8)


def test_a_resumed_run_goes_on_with_its_loss_and_its_bound(tmp_path):
    made = make_queries(10, num_features=4, seed=3)
    u = made.weights.tolist()
    each = {"enable_checkpointing": True, "max_epochs": 2}
    whole = PerceptronModule(4, comparator=u)
    fit(whole, stream(made), callbacks=[every_13_steps(tmp_path)], **each)
    again = PerceptronModule(4, comparator=u).double()
    quiet(callbacks=[every_13_steps(tmp_path)], **each).fit(again, stream(made), ckpt_path=tmp_path / "step=13.ckpt")
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_no_bound_is_claimed_where_none_is_known():
    assert PerceptronModule(3).bound() is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"separation": 0.0}, "separation"),
        ({"separation": 1.0, "comparator": [1.0, 2.0]}, "not both"),
        ({"eta": -1.0}, "eta"),
        ({"margin": 0.0}, "margin"),
        ({"measure": "ncdg"}, "did you mean 'ndcg'"),
        ({"update": "pairs"}, "did you mean 'pair'"),
        ({"active": "mistake"}, "did you mean 'mistakes'"),
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(TorchRankError, match=said):
        PerceptronModule(2, **options)


def test_a_comparator_of_another_length_is_refused():
    with pytest.raises(ShapeError, match="3 weights for num_features=2"):
        PerceptronModule(2, comparator=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("device", DEVICES)
def test_it_trains_on_any_device(device):
    made = make_queries(10, num_features=4, seed=3)
    model = PerceptronModule(4, comparator=made.weights.tolist())
    rows = fit(model, stream(made, batch_size=4), accelerator="gpu" if device == "cuda" else "cpu")
    assert rows[-1]["cumulative_loss"] <= rows[-1]["bound"]
