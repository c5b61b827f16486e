"""What every module of preferences gets from its base, shown on the smallest method of one's own."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

import torchrank
from tests.training.trainers import quiet
from torchrank.data import Catalogue, make_interactions
from torchrank.errors import DataError, TorchRankError
from torchrank.models import Factorization, FeedbackFactorization
from torchrank.training import InteractionDataModule
from torchrank.training.interaction_data import EpochPart
from torchrank.training.preference import PreferenceModule

LOG, _ = make_interactions(num_users=30, num_items=40, num_interactions=600, seed=4)


class MeanModule(PreferenceModule):
    """Step on the mean logistic loss of the feedback of each part of an epoch."""

    def __init__(self, scorer=None, *, dim=3, eta=0.5, mu=0.0, feedback=None, lr_scheduler=None, seed=0):
        super().__init__(scorer, dim=dim, eta=eta, mu=mu, feedback=feedback, lr_scheduler=lr_scheduler, seed=seed)

    def setup(self, stage):
        if stage == "fit":
            self.prepare()

    def training_step(self, batch, batch_idx):
        log, share = self._train_log, batch.share(len(self._train_log))
        users, items, preferred = (x[share.start : share.stop] for x in (log.users, log.items, log.preferred))
        scores = self(torch.from_numpy(users).long(), torch.from_numpy(items).long())
        loss = nn.functional.binary_cross_entropy_with_logits(scores, torch.from_numpy(preferred).float())
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        self.end_part(loss.detach())


def fit(module, log=LOG, **options):
    trainer = quiet(**{"max_epochs": 3, **options})
    trainer.fit(module, datamodule=InteractionDataModule(log, validation=0.2, steps_per_epoch=4))
    return trainer


def test_a_method_of_ones_own_is_its_steps(tmp_path):
    module = MeanModule(lr_scheduler=partial(StepLR, step_size=1, gamma=0.5))
    trainer = fit(module)
    assert isinstance(module.scorer, Factorization)
    assert module.scorer.user_vectors.shape == (LOG.num_users, 3)
    assert {"train_loss", "val_loss", "val_ndcg@10", "val_map@10", "val_auc"} <= set(trainer.callback_metrics)
    assert trainer.optimizers[0].param_groups[0]["lr"] == 0.5 * 0.5**3  # once an epoch
    trainer.save_checkpoint(tmp_path / "own.ckpt")
    saved = torch.load(tmp_path / "own.ckpt", weights_only=True)
    assert saved["processes"] == 1
    assert Catalogue.from_state(saved["catalogue"]).num_items == LOG.num_items
    again = torchrank.load(tmp_path / "own.ckpt", trust=["tests"])
    users, items = torch.arange(30), torch.arange(30)
    assert torch.equal(again(users, items), module(users, items))


def test_the_scorer_is_what_the_options_say():
    module = MeanModule(feedback="all")
    fit(module)
    assert isinstance(module.scorer, FeedbackFactorization)
    given = Factorization(LOG.num_users, LOG.num_items, 2)
    module = MeanModule(given)
    fit(module)
    assert module.scorer is given


@pytest.mark.parametrize("parts", [1, 3, 7])
@pytest.mark.parametrize("length", [0, 2, 7, 100])
def test_the_parts_of_an_epoch_share_everything_once(parts, length):
    shares = [EpochPart(number, parts).share(length) for number in range(parts)]
    assert [place for share in shares for place in share] == list(range(length))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(LOG.num_items))

    def forward(self, users, items):
        return self.weight[items]


def test_what_no_module_trains_is_refused():
    with pytest.raises(TorchRankError, match="no scorer yet"):
        MeanModule()(torch.tensor([0]), torch.tensor([0]))
    with pytest.raises(DataError, match="num_users=2"):
        fit(MeanModule(Factorization(2, LOG.num_items, 3)))
    with pytest.raises(TorchRankError, match=r"mu=0.1 needs Bare.squared_norms"):
        fit(MeanModule(Bare(), mu=0.1))
    for options, told in (({"eta": -1}, "eta=-1"), ({"mu": "a"}, "mu='a'"), ({"feedback": "al"}, "did you mean 'all'")):
        with pytest.raises(TorchRankError, match=told):
            MeanModule(**options)
