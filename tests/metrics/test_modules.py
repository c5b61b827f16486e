"""The torchmetrics modules: means over lists, exact however the lists are batched or shared out."""

import copy
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
import torchmetrics
from torch.testing import assert_close

from tests.metrics.cases import CASES, IDS
from tests.metrics.test_laws import random_lists
from torchrank import metrics
from torchrank.training.spec import build, describe

ROOT = Path(__file__).resolve().parent.parent.parent
every_case = pytest.mark.parametrize("case", CASES, ids=IDS)


@every_case
def test_mean_over_lists_not_over_batches(case):
    scores, relevance, mask = random_lists(11, 7, dtype=torch.float32)
    metric = case.module(**case.options)
    for part in (slice(0, 1), slice(1, 8), slice(8, 11)):
        metric.update(scores[part], relevance[part], mask[part])
    assert_close(metric.compute(), case(scores, relevance, mask).mean())


@every_case
def test_weights_and_lists_left_out(case):
    scores, relevance, mask = random_lists(11, 7, dtype=torch.float32)
    weights = torch.arange(11.0)
    metric = case.module(**case.options, empty="skip")
    metric.update(scores, relevance, mask, weights)
    values = case(scores, relevance, mask, empty="skip")
    counted = ~values.isnan()
    assert not counted.all()
    assert_close(metric.compute(), (values * weights)[counted].sum() / weights[counted].sum())
    metric.reset()
    metric.update(scores[:1], relevance[:1], torch.zeros_like(mask[:1]))
    assert metric.compute().isnan()


@every_case
def test_options_are_kept_and_described(case):
    metric = case.module(**case.options)
    for name, value in case.options.items():
        assert getattr(metric, name) == value
    again = build(describe(metric))
    assert type(again) is type(metric)
    assert describe(again) == describe(metric)


def test_defaults_are_those_of_the_functions():
    scores, relevance, mask = random_lists(20, 7, dtype=torch.float32)
    for function, module in {c.function: c.module for c in CASES}.items():
        assert_close(module().per_list(scores, relevance, mask), function(scores, relevance, mask))


def test_state_dict_clone_pickle_and_forward():
    scores, relevance, mask = random_lists(11, 7, dtype=torch.float32)
    metric = metrics.NDCG(k=3)
    metric.persistent(True)
    batch_value = metric(scores[:5], relevance[:5], mask[:5])
    assert_close(batch_value, metrics.ndcg(scores[:5], relevance[:5], mask[:5], k=3).mean())
    other = metrics.NDCG(k=3)
    other.persistent(True)
    other.load_state_dict(metric.state_dict())
    for copied in (metric.clone(), copy.deepcopy(metric), other):
        copied.update(scores[5:], relevance[5:], mask[5:])
        assert_close(copied.compute(), metrics.ndcg(scores, relevance, mask, k=3).mean())
    assert_close(metric.compute(), batch_value)


def test_many_updates_lose_no_digits():
    metric = metrics.Precision()
    one = torch.zeros(1, 3), torch.tensor([[1, 0, 0]])
    two = torch.zeros(1, 7), torch.tensor([[1, 1, 1, 0, 0, 0, 0]])
    rounds = 3000
    for _ in range(rounds):
        metric.update(*one)
        metric.update(*two, list_weights=torch.tensor([1e-3]))
    third, sevenths, weight = (torch.tensor(x).double() for x in (1 / 3, 3 / 7, 1e-3))
    assert_close(metric.compute().double(), (third + weight * sevenths) / (1 + weight), atol=0, rtol=1e-7)


def test_a_collection_keeps_measures_apart_that_agree_on_the_first_batch():
    measures = {"1": metrics.NDCG(k=1), "3": metrics.NDCG(k=3), "recall": metrics.Recall(k=1)}
    collection = torchmetrics.MetricCollection(measures).clone(prefix="val/")
    scores = torch.tensor([[2.0, 1.0, 0.0]])
    collection.update(scores, torch.tensor([[1, 0, 0]]))
    assert {float(x) for x in collection.compute().values()} == {1.0}
    collection.update(scores, torch.tensor([[0, 1, 0]]))
    found = {name: float(x) for name, x in collection.compute().items()}
    later = (1 + 1 / math.log2(3)) / 2
    assert found == pytest.approx({"val/1": 1 / 2, "val/3": later, "val/recall": 1 / 2})


@pytest.mark.parametrize("bad", [{"k": 0}, {"ties": "first"}, {"empty": "none"}])
def test_a_bad_option_fails_at_once(bad):
    for module in {case.module for case in CASES} - {metrics.MeanNDCG if "k" in bad else None}:
        with pytest.raises(ValueError, match=next(iter(bad))):
            module(**bad)


def test_weights_of_another_shape():
    with pytest.raises(ValueError, match="list_weights have shape"):
        metrics.NDCG().update(torch.zeros(2, 3), torch.zeros(2, 3), None, torch.ones(3))


class Ranker(pl.LightningModule):
    """Scores by one weight and logs two measures."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))
        self.measures = torch.nn.ModuleDict({"ndcg": metrics.NDCG(k=2), "map": metrics.MeanAveragePrecision()})

    def training_step(self, batch, batch_idx):
        return self.weight.square()

    def validation_step(self, batch, batch_idx):
        for metric in self.measures.values():
            metric.update(*batch)
        self.log_dict({f"val/{name}": metric for name, metric in self.measures.items()})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def test_inside_a_lightning_module(tmp_path):
    scores, relevance, mask = random_lists(11, 7, dtype=torch.float32)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(scores, relevance, mask), batch_size=4)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = pl.Trainer(default_root_dir=tmp_path, max_epochs=2, enable_model_summary=False, **quiet)
    trainer.fit(Ranker(), loader, loader)
    assert_close(trainer.callback_metrics["val/ndcg"], metrics.ndcg(scores, relevance, mask, k=2).mean())
    assert_close(trainer.callback_metrics["val/map"], metrics.average_precision(scores, relevance, mask).mean())


def test_two_processes_with_uneven_shards(tmp_path):
    command = [sys.executable, "-m", "tests.metrics.ddp_run", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    scores, relevance, mask = random_lists(11, 7, dtype=torch.float32)
    weights = torch.arange(1.0, 12.0)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]
    assert found[0] == found[1]
    for case in CASES:
        values = case(scores, relevance, mask, empty="skip")
        counted = ~values.isnan()
        want = (values * weights)[counted].sum() / weights[counted].sum()
        assert found[0][case.name] == pytest.approx(want.item(), rel=1e-6)
