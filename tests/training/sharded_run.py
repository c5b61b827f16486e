"""Train with every table's rows dealt to two processes: ``python -m tests.training.sharded_run FOLDER CASE…``."""

import sys
import warnings
from functools import partial
from pathlib import Path

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.strategies import ModelParallelStrategy

from torchrank.data import Catalogue, make_interactions
from torchrank.ops.sharded import look_up
from torchrank.training import BPRModule, InteractionDataModule, SAROSModule, recommend
from torchrank.training.sharding import deal_rows

LOG, _ = make_interactions(num_users=41, num_items=61, num_interactions=900, seed=3)  # no table divides by two
MODEL = {"dim": 4, "init": "normal", "item_bias": True, "seed": 2, "mu": 0.02, "engine": "batched"}
SAROS = partial(SAROSModule, **MODEL, lanes=8)
CASES = {
    "sgd": partial(SAROS, eta=0.05),
    "momentum": partial(SAROS, eta=0.05, momentum=0.5),
    "adam": partial(SAROS, optimizer=partial(torch.optim.Adam, lr=0.01)),
    "bpr": partial(BPRModule, **MODEL, eta=0.05, batch_size=64),
}
USERS, CHOICE = torch.tensor([0, 3, 40, 7]), torch.tensor([60, 2, 5, 31])
EXCLUDE = torch.tensor([0, 0, 2, 3]), torch.tensor([60, 5, 0, 31])


def fit(name, folder, *, checkpoint=None, epochs=2, **options):
    save = ModelCheckpoint(folder, filename=f"{name}-{{step}}", every_n_epochs=1, save_top_k=-1)
    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[save],
        **options,
    )
    module = CASES[name]()
    trainer.fit(module, datamodule=InteractionDataModule(LOG, validation=0.2, steps_per_epoch=5), ckpt_path=checkpoint)
    return trainer, module


def answers(module, train):
    """What the trained scorer recommends, of all items, with some left out, and of some alone."""
    scorer = module.scorer
    found = [scorer.recommend(USERS, 5), scorer.recommend(USERS, 70, exclude=EXCLUDE)]
    found.append(scorer.recommend(USERS, 3, items=CHOICE, exclude=EXCLUDE))
    table = recommend(scorer, Catalogue.from_log(train), k=4)
    with torch.no_grad():
        return found, scorer.score_all(USERS), table.select("user", "item", "rank").rows()


def describe(trainer, module):
    """Whole tables, what this process holds of them and of the optimiser's state, answers and measures."""
    tables = dict(module.scorer.named_parameters())
    states = [x for state in trainer.optimizers[0].state.values() for x in state.values()]
    return {
        "tables": {name: table.full_tensor().detach() for name, table in tables.items()},
        "held": {name: tuple(table.to_local().shape) for name, table in tables.items()},
        "states": [tuple(x.to_local().shape) for x in states if torch.is_tensor(x) and x.ndim],
        "answers": answers(module, trainer.datamodule.train_log),
        "metrics": {name: float(value) for name, value in trainer.callback_metrics.items()},
    }


def look_up_in_few(mesh):
    """Rows of a table that is too short for every process to have one, and their gradient."""
    table = deal_rows(torch.tensor([[1.0, 2.0, 3.0]]), mesh).requires_grad_()
    found = look_up(table, torch.tensor([0, 0]))
    (found * torch.tensor([[1.0, 0, 0], [0, 5, 1]])).sum().backward()
    return {"rows": found.detach(), "gradient": table.grad.full_tensor(), "held": len(table.to_local())}


def main(folder, names):
    for name in names:
        for kind in ("folder", "file", "resumed"):
            place, checkpoint = Path(folder, kind), None
            if kind == "resumed":
                checkpoint = min(
                    Path(folder, "folder").glob(f"{name}-step=*"), key=lambda path: int(path.stem.split("=")[1])
                )
            options = {
                "data_parallel_size": 1,
                "tensor_parallel_size": 2,
                "save_distributed_checkpoint": kind != "file",
            }
            trainer, module = fit(
                name, place, checkpoint=checkpoint, devices=2, strategy=ModelParallelStrategy(**options)
            )
            torch.save(describe(trainer, module), place / f"{name}-{trainer.global_rank}.pt")
    mesh = trainer.strategy.device_mesh["tensor_parallel"]
    torch.save(look_up_in_few(mesh), Path(folder, f"few-{trainer.global_rank}.pt"))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], sys.argv[2:])
