"""What is printed of logs, tables and results: one line that says what they hold, never their arrays."""

import dataclasses
from importlib import import_module

import numpy as np
import polars as pl
import pytest
import torch

from tests.test_names import NAMES
from torchrank.data import (
    Catalogue,
    PairLists,
    add_bots,
    build_blocks,
    countries,
    make_interactions,
    make_objects,
    make_queries,
    make_sequences,
    prepare_log,
    simulate_clicks,
)
from torchrank.losses import SLAMLoss
from torchrank.models import LinearScorer, serve
from torchrank.ops import PositionBias
from torchrank.training import PublishedEvaluation, ShownLists, StandardEvaluation, fit_lists
from torchrank.training.saros_plan import BlockOptions, plan_epoch
from torchrank.training.sessions import Sessions

#: one list, batch or witness, printed in order to see its numbers
SEEN_WHOLE = {"LabelledSequence", "ListScores", "QueryList", "RuleCheck", "SequenceLabels"}
LOG, TRUTH = make_interactions(num_users=200, num_items=100, num_interactions=8000, positive_share=0.52)
LISTS = make_queries(30, num_features=4)
BLOCKS = build_blocks(LOG)
OPTIONS = BlockOptions("run", "user", "shuffled", None, None, "discard", 0)
SHARE = f"{100 * LOG.preferred.mean():.1f} % preferred"
VALUES = np.array(["a", "b"]), {"map@5": np.array([0.5, 1.0])}

PRINTED = {
    "InteractionLog": (lambda: LOG, f"InteractionLog(8000 interactions of 200 users and 100 items, {SHARE})"),
    "an empty log": (lambda: LOG.where(np.zeros(8000, bool)), "InteractionLog(0 interactions of 200 users and"),
    "InteractionTruth": (lambda: TRUTH, "InteractionTruth(200 users, 0 of them bots, 100 items, dim=4)"),
    "BotAttack": (lambda: add_bots(LOG, share=0.2, targets=3), "50 bots, 3 targets)"),
    "Catalogue": (lambda: Catalogue.from_log(LOG), "Catalogue(200 users, 100 items, 8000 interactions seen)"),
    "Blocks": (lambda: BLOCKS, f"Blocks({len(BLOCKS)} blocks of {(BLOCKS.counts > 0).sum()} of 200 users, 100 items)"),
    "PairLists": (lambda: PairLists.from_log(LOG), "PairLists(8000 interactions of 200 users and 100 items)"),
    "ShownLists": (lambda: ShownLists.from_log(LOG), "ShownLists(200 lists, 8000 items shown, "),
    "Sessions": (lambda: Sessions.from_log(LOG), "other items, 200 users)"),
    "EpochPlan": (lambda: plan_epoch(LOG, OPTIONS, 0), f"EpochPlan({len(BLOCKS)} blocks, "),
    "Waves": (lambda: plan_epoch(LOG, OPTIONS, 0).waves(8), "Waves("),
    "AttributeTable": (countries, "AttributeTable(181 objects, 4 attributes)"),
    "SyntheticObjects": (lambda: make_objects(50), "SyntheticObjects(50 objects, "),
    "SyntheticSequences": (lambda: make_sequences(50), "SyntheticSequences(SequenceDataset(50 sequences, "),
    "SyntheticQueries": (lambda: LISTS, "SyntheticQueries(QueryDataset(30 queries, "),
    "ClickLog": (
        lambda: simulate_clicks(LISTS.dataset, LISTS.dataset.relevance, sessions=9),
        " clicked)",
    ),
    "PositionBias": (
        lambda: PositionBias(torch.ones(10), torch.ones(2000), 7, -3.25),
        "PositionBias(10 positions, 2000 items, iterations=7, log_likelihood=-3.25)",
    ),
    "Served": (lambda: serve(LinearScorer(3)), ": features, mask to scores)"),
    "ListFit": (
        lambda: fit_lists(LISTS.dataset, LinearScorer(4), SLAMLoss(), epochs=1),
        "ListFit(LinearScorer by SLAMLoss, epoch 1)",
    ),
    "PublishedEvaluation": (lambda: PublishedEvaluation(*VALUES), "PublishedEvaluation(2 users; map@5 0.7500)"),
    "StandardEvaluation": (
        lambda: StandardEvaluation("shown", *VALUES),
        "StandardEvaluation(shown, 2 users; map@5 0.7500)",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_one_line_says_what_it_holds(name):
    make, said = PRINTED[name]
    shown = repr(make())
    assert said in shown
    assert len(shown) <= 150
    assert "\n" not in shown


def test_a_log_on_disk(tmp_path):
    rows = {"user": LOG.users, "item": LOG.items, "feedback": LOG.preferred.astype(int), "time": range(len(LOG))}
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    log = prepare_log(tmp_path / "log.parquet", tmp_path / "ready", positive_at=1, partitions=2)
    said = f"PreparedLog(8000 interactions of 200 users and 100 items, 2 partitions in {tmp_path / 'ready'})"
    assert repr(log) == said


def test_whatever_holds_arrays_has_a_line_of_its_own():
    for package, name in NAMES:
        thing = getattr(import_module(package), name)
        if name not in SEEN_WHOLE and (dataclasses.is_dataclass(thing) or hasattr(thing, "_fields")):
            big = [field for field, kind in thing.__annotations__.items() if _is_big(str(kind))]
            assert not big or name in PRINTED, f"what does {name} print of {big}?"


def _is_big(kind: str) -> bool:
    return "Callable" not in kind and any(
        word in kind for word in ("NDArray", "ndarray", "Tensor", "Module", "Dataset")
    )
