import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch

from tests.training import chain_run
from torchrank import load
from torchrank.data import SequenceDataset, SequenceLoader, collate_sequences, make_sequences
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import CRFLoss, StructuredHingeLoss, StructuredPerceptronLoss
from torchrank.models import LinearChain
from torchrank.ops import viterbi
from torchrank.training import ChainModule, SequenceDataModule, fit_chain, label_sequences

QUIET = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "accelerator": "cpu",
}


def accuracy(labels, data):
    return (labels == data.labels).float().mean().item()


@pytest.fixture(scope="module")
def made():
    return make_sequences(600, noise=0.6, coupling=3.0)


@pytest.mark.parametrize("loss", [StructuredHingeLoss(), StructuredPerceptronLoss(), CRFLoss()])
def test_training_comes_near_the_chain_the_data_are_from(made, loss):
    half = torch.arange(600) < 300
    train, test = made.dataset.select(half), made.dataset.select(~half)
    best = torch.cat(
        [viterbi((s.features @ made.weights + made.bias)[None], made.transitions, start=made.start)[0][0] for s in test]
    )
    module = fit_chain(train, LinearChain(8, 6, start=True), loss, epochs=10)
    alone = fit_chain(train, LinearChain(8, 6, chained=False), loss, epochs=10)
    found = accuracy(label_sequences(module, test), test)
    assert found > accuracy(best, test) - 0.05
    assert found > accuracy(label_sequences(alone, test), test) + 0.02


def test_one_step_of_gradient_descent_moves_by_the_difference_of_features():
    data = make_sequences(1, length=(4, 4)).dataset
    model = LinearChain(8, 6)
    fit_chain(data, model, epochs=1, optimizer=partial(torch.optim.SGD, lr=0.5), average_from=None)
    labels = data.labels
    chosen = torch.where(labels == 0, 1, 0)  # at weights 0 every wrong label has the cost; the smallest is chosen
    moved = torch.zeros(6, 6)
    for t in range(1, 4):
        moved[labels[t], labels[t - 1]] += 0.5
        moved[chosen[t], chosen[t - 1]] -= 0.5
    torch.testing.assert_close(model.transitions.detach(), moved)
    one_hot = torch.nn.functional.one_hot
    wanted = 0.5 * (one_hot(labels, 6) - one_hot(chosen, 6)).float().T @ data.features
    torch.testing.assert_close(model.linear.weight.detach(), wanted)


class Remember(pl.Callback):
    def __init__(self):
        self.weights = []

    def on_train_batch_end(self, trainer, module, *_):
        self.weights.append(torch.cat([p.detach().flatten().clone() for p in module.model.parameters()]))


@pytest.mark.parametrize(("average_from", "first"), [(0.0, 0), (0.5, 9), (0.75, 13), (None, None)])
@pytest.mark.parametrize("limit", [{"max_epochs": 6}, {"max_steps": 18}])
def test_the_mean_is_over_the_last_steps(made, average_from, first, limit):
    seen = Remember()
    module = ChainModule(LinearChain(8, 6), average_from=average_from)
    trainer = pl.Trainer(callbacks=[seen], limit_val_batches=0, **limit, **QUIET)
    trainer.fit(module, SequenceDataModule(train=made.dataset.select(range(40)), batch_size=16))
    assert len(seen.weights) == 18
    wanted = seen.weights[-1] if first is None else torch.stack(seen.weights[first:]).mean(0)
    got = torch.cat([p.detach().flatten() for p in module.chain.parameters()])
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-6)
    assert module.averaged_steps == (0 if first is None else 18 - first)


def test_a_mean_over_a_share_of_an_endless_run_is_refused(made):
    module = ChainModule(LinearChain(8, 6))
    trainer = pl.Trainer(max_epochs=-1, max_time={"seconds": 1}, limit_val_batches=0, **QUIET)
    with pytest.raises(TorchRankError, match="max_epochs or max_steps"):
        trainer.fit(module, SequenceDataModule(train=made.dataset))


def test_validation_test_and_prediction_report_what_they_are_named_for(made):
    train, test = made.dataset.select(range(300)), made.dataset.select(range(300, 360))
    data = SequenceDataModule(train=train, val=test, test=test, predict=test, batch_size=16)
    module = ChainModule(LinearChain(8, 6))
    trainer = pl.Trainer(max_epochs=2, **QUIET)
    trainer.fit(module, data)
    assert {"train_loss", "val_loss", "val_accuracy", "val_whole"} <= set(trainer.callback_metrics)
    result = trainer.test(module, data, verbose=False)[0]
    labels = label_sequences(module, test)
    assert result["test_accuracy"] == pytest.approx(accuracy(labels, test))
    whole = [bool((a == s.labels).all()) for a, s in zip(labels.split(test.lengths.tolist()), test, strict=True)]
    assert result["test_whole"] == pytest.approx(sum(whole) / len(whole))
    for batch in trainer.predict(module, data):
        for row, sequence in enumerate(batch.sequences):
            n = int(batch.mask[row].sum())
            at = int(test.offsets[sequence])
            assert batch.labels[row, :n].tolist() == labels[at : at + n].tolist()


def test_a_schedule_steps(made):
    seen = []

    def halve(optimizer):
        seen.append(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5))
        return seen[0]

    module = ChainModule(LinearChain(8, 6), lr_scheduler=halve)
    trainer = pl.Trainer(max_epochs=3, limit_val_batches=0, **QUIET)
    trainer.fit(module, SequenceDataModule(train=made.dataset.select(range(20))))
    assert seen[0].get_last_lr() == [0.2 * 0.5**3]


def test_labelling_by_a_bare_model_and_of_other_features(made):
    labels = label_sequences(LinearChain(8, 6), made.dataset)
    assert labels.eq(0).all()
    with pytest.raises(DataError, match="sequences have 8 features, the model was made for 9"):
        label_sequences(LinearChain(9, 6), made.dataset)


def test_bad_options_are_refused(made):
    chain = LinearChain(8, 6)
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(TorchRankError, match="average_from"):
            ChainModule(chain, average_from=share)
    with pytest.raises(TorchRankError, match="lr_interval='stop'"):
        ChainModule(chain, lr_interval="stop")
    with pytest.raises(TorchRankError, match="model has normalize=None, the loss normalize='length'"):
        ChainModule(chain, CRFLoss(normalize="length"))
    ChainModule(LinearChain(8, 6, normalize="length"), CRFLoss(normalize="length"))
    with pytest.raises(TorchRankError, match="epochs=0"):
        fit_chain(made.dataset, epochs=0)


def test_the_data_module_checks_its_parts(tmp_path, made):
    data = SequenceDataModule(train=made.dataset, folds={"train": [0]})
    with pytest.raises(DataError, match="train: these sequences have no folds"):
        data.setup("fit")
    with pytest.raises(TorchRankError, match="folds='vla' is not one of"):
        SequenceDataModule(folds={"vla": [0]})
    with pytest.raises(DataError, match="there is no file"):
        SequenceDataModule(test=str(tmp_path / "nowhere.npz")).setup("test")
    with pytest.raises(DataError, match=r"there is no test part; give SequenceDataModule\(test=…\)"):
        SequenceDataModule().test_dataloader()
    narrow = SequenceDataset(torch.ones(2, 3), torch.tensor([0, 1]), torch.tensor([0, 2]))
    with pytest.raises(DataError, match=r"unequal numbers of features: train .* has 8, val .* has 3"):
        SequenceDataModule(train=made.dataset, val=narrow).setup("fit")


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    return folder, chain_run.train(folder)


@pytest.mark.filterwarnings("ignore:The dirpath has changed")  # a resumed run must not add to the first's files
@pytest.mark.parametrize("step", [4, 7, 9, 12])
def test_resuming_ends_with_the_same_weights_and_mean(unbroken, tmp_path, step):
    folder, whole = unbroken
    resumed = chain_run.train(tmp_path, checkpoint=folder / f"step={step}.ckpt")
    assert torch.equal(weights(resumed), weights(whole))
    assert resumed.averaged_steps == whole.averaged_steps > 0


def test_a_checkpoint_rebuilds_the_module(unbroken):
    folder, whole = unbroken
    again = load(folder / "step=15.ckpt")
    assert isinstance(again, ChainModule)
    batch = collate_sequences(make_sequences(5).dataset, torch.arange(5))
    for one, other in zip(*(m.decode(batch.features, batch.mask) for m in (again, whole)), strict=True):
        assert torch.equal(one, other)
    optimizer = again.configure_optimizers()
    assert isinstance(optimizer, torch.optim.Adagrad)
    assert optimizer.defaults["weight_decay"] == 1e-4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The dirpath has changed")
def test_a_killed_run_resumes_and_ends_with_the_same_weights(unbroken, tmp_path):
    _, whole = unbroken
    command = [sys.executable, "-m", "tests.training.chain_run", str(tmp_path), "13"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL
    resumed = chain_run.train(tmp_path / "more", checkpoint=tmp_path / "step=12.ckpt", every=2)
    assert torch.equal(weights(resumed), weights(whole))


def test_loader_order_is_the_seeds(made):
    def order(seed):
        return [batch.sequences.tolist() for batch in SequenceLoader(made.dataset, shuffle=True, seed=seed)]

    assert order(1) == order(1) != order(2)
