"""Curves trained in mini-batches: they reach what fitting reaches, and come back from their checkpoints."""

from functools import partial

import numpy as np
import polars as pl
import pytest
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from tests.training.trainers import quiet
from torchrank import load
from torchrank.data import make_objects, make_queries
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import SLAMLoss
from torchrank.models import RankingCurve
from torchrank.training import CurveModule, ListwiseModule, QueryDataModule, TableDataModule, fit_curve

OBJECTS = make_objects(2000, noise=0.03, seed=1)
POINTS = OBJECTS.points * torch.tensor([100.0, 1.0, 0.01]) + 5
COOLING = partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=25)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def trained(points=POINTS, directions=OBJECTS.directions, *, epochs=25, trainer=None, data=None, **options):
    module = CurveModule(directions, lr_scheduler=COOLING, **options)
    data = data or TableDataModule(points, missing=options.get("missing", "error"), batch_size=100, validation=0.0)
    (trainer or quiet(max_epochs=epochs, limit_val_batches=0)).fit(module, data)
    return module


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("degree", [2, 3])
def test_mini_batches_reach_the_fitted_curve(degree, device):
    module = trained(degree=degree, trainer=quiet(max_epochs=25, limit_val_batches=0, accelerator=device))
    fitted = fit_curve(POINTS, OBJECTS.directions, degree=degree)
    reached = module.curve.place(POINTS)[1].sum().item()
    assert reached <= fitted.report.objective * 1.02
    torch.testing.assert_close(module(POINTS), fitted(POINTS), atol=0.03, rtol=0)


@pytest.mark.parametrize(
    "optimizer", [partial(torch.optim.SGD, lr=20.0, momentum=0.9), partial(torch.optim.RMSprop, lr=0.02)]
)
def test_any_optimizer(optimizer):
    module = trained(epochs=3, optimizer=optimizer)
    straight = CurveModule(OBJECTS.directions).curve
    straight.set_scaling(module.curve.knots, module.curve.levels)
    assert module.curve.place(POINTS)[1].sum() < 0.1 * straight.place(POINTS)[1].sum()


def test_parameters_stay_in_their_bounds():
    module = trained(epochs=1, optimizer=partial(torch.optim.SGD, lr=1e4), ends="free")
    assert module.curve.inner.abs().max() < 6.91
    assert 0 <= module.curve.outer.min() <= module.curve.outer.max() <= 1


def test_missing_values_pass_where_both_sides_say_so():
    holes = torch.rand(POINTS.shape, generator=torch.Generator().manual_seed(0)) < 0.2
    holes[holes.all(1)] = False
    torn = torch.where(holes, torch.nan, POINTS)
    module = trained(torn, missing="observed")
    fitted = fit_curve(torn, OBJECTS.directions, missing="observed")
    torch.testing.assert_close(module(torn), fitted(torn), atol=0.05, rtol=0)
    with pytest.raises(TorchRankError, match="missing='error'"):
        trained(data=TableDataModule(torn, missing="observed"))
    with pytest.raises(DataError, match="is missing"):
        trained(torn)


def test_constant_attributes_are_dropped():
    wide = torch.cat([POINTS, torch.full((len(POINTS), 1), 3.0)], 1)
    module = trained(wide, [*OBJECTS.directions, 1], epochs=2)
    assert module.curve.kept.tolist() == [True, True, True, False]
    assert module.curve.place(wide)[1].mean() < 0.1


@pytest.mark.parametrize("scaling", ["minmax", "rank"])
def test_a_checkpoint_rebuilds_the_curve_with_its_scaling(scaling, tmp_path):
    data = TableDataModule(POINTS, scaling=scaling, batch_size=500)
    trainer = quiet(max_epochs=2)
    module = trained(trainer=trainer, data=data, score="parameter")
    trainer.save_checkpoint(tmp_path / "curve.ckpt")
    again = load(tmp_path / "curve.ckpt")
    assert isinstance(again, CurveModule)
    assert torch.equal(again(POINTS), module.eval()(POINTS))
    assert again.curve.score == "parameter"


def test_validation_test_and_prediction():
    data = TableDataModule(POINTS, validation=0.25, batch_size=300)
    trainer = quiet(max_epochs=2)
    module = trained(trainer=trainer, data=data)
    assert {"train_loss", "val_loss"} <= set(trainer.callback_metrics)
    assert len(data.val_dataloader()) == 2
    (tested,) = trainer.test(module, data, verbose=False)
    assert tested["test_loss"] == pytest.approx(module.curve.place(POINTS)[1].mean().item())
    scores = torch.cat(trainer.predict(module, data))
    torch.testing.assert_close(scores, module(POINTS))


def test_training_and_validation_share_no_object():
    data = TableDataModule(POINTS, validation=0.1, batch_size=64)
    data.setup("fit")
    seen = torch.cat([b.rows for loader in (data.train_dataloader(), data.val_dataloader()) for b in loader])
    assert seen.sort().values.tolist() == list(range(2000))
    assert TableDataModule(POINTS, validation=0.1).seed == 0
    again = TableDataModule(POINTS, validation=0.1, batch_size=64)
    again.setup("fit")
    first = [[b.rows.tolist() for b in d.val_dataloader()] for d in (data, again)]
    assert first[0] == first[1]


def test_files(tmp_path):
    frame = pl.DataFrame(POINTS.numpy(), schema=["income", "health", "deaths"])
    frame.write_csv(tmp_path / "table.csv")
    frame.write_parquet(tmp_path / "table.parquet")
    np.save(tmp_path / "table.npy", POINTS.numpy())
    columns = {"higher": ["income", "health"], "lower": ["deaths"]}
    want = trained(epochs=1).curve.control_points
    for name, named in (("table.csv", columns), ("table.parquet", columns), ("table.npy", {})):
        data = TableDataModule(str(tmp_path / name), batch_size=100, validation=0.0, **named)
        torch.testing.assert_close(trained(epochs=1, data=data).curve.control_points, want)
    turned = TableDataModule(str(tmp_path / "table.csv"), higher=["deaths", "health"], lower=["income"])
    with pytest.raises(TorchRankError, match=r"the table \[1, 1, -1\]"):
        trained(directions=[1, -1, 1], data=turned)
    with pytest.raises(DataError, match="there is no file"):
        trained(data=TableDataModule(str(tmp_path / "absent.npy")))
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(DataError, match="is not an array"):
        trained(data=TableDataModule(str(tmp_path / "text.npy")))


def test_directions_must_fit_the_table():
    with pytest.raises(TorchRankError, match="make them agree"):
        trained(directions=[1, 1])
    with pytest.raises(TorchRankError, match="validation"):
        TableDataModule(POINTS, validation=1.0)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curve")
    return folder, resumable(folder)


def resumable(folder, checkpoint=None):
    save = ModelCheckpoint(folder, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    trainer = quiet(max_epochs=2, limit_val_batches=0, enable_checkpointing=True, callbacks=[save])
    module = CurveModule(OBJECTS.directions)
    trainer.fit(module, TableDataModule(POINTS, batch_size=300, validation=0.0), ckpt_path=checkpoint)
    return module.curve.control_points.detach()


@pytest.mark.filterwarnings("ignore:The dirpath has changed")  # a resumed run must not add to the first's files
@pytest.mark.parametrize("step", [3, 7, 10])
def test_resuming_inside_an_epoch_changes_nothing(unbroken, tmp_path, step):
    folder, whole = unbroken
    assert torch.equal(resumable(tmp_path, folder / f"step={step}.ckpt"), whole)


def test_a_curve_is_a_scorer_of_lists(tmp_path):
    made = make_queries(60, num_features=3, seed=0)
    data = QueryDataModule(train=made.dataset, val=made.dataset, batch_size=20)
    module = ListwiseModule(RankingCurve([1, -1, 1]), SLAMLoss())
    trainer = quiet(max_epochs=3)
    before = module.scorer.control_points.detach().clone()
    trainer.fit(module, data)
    assert not torch.equal(module.scorer.control_points, before)
    trainer.save_checkpoint(tmp_path / "lists.ckpt")
    again = load(tmp_path / "lists.ckpt")
    assert torch.equal(again.scorer.control_points, module.scorer.control_points)
