"""What ``torchrank reproduce saros`` trains: the methods and the settings they choose among."""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch

from torchrank.commands.method_choice import Counted, Trained
from torchrank.data import Catalogue, InteractionLog
from torchrank.errors import TorchRankError, check_option
from torchrank.models import EASE, ItemRate, MostPop, Prod2Vec
from torchrank.training.bpr import BPRModule
from torchrank.training.gru4rec import GRU4RecModule
from torchrank.training.mf import MFModule
from torchrank.training.saros import SAROSModule
from torchrank.training.softmax import SoftmaxModule
from torchrank.types import InteractionScorer


class RandomOrder:
    """Scores without meaning, the same each time for a pair: the floor."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Return a hash of each pair."""
        start = self.seed * 0x5851F42D4C957F2D & 0x7FFFFFFFFFFFFFFF  # Python's integers do not wrap around
        word = users * 0x9E3779B97F4A7C1 + items * 0x2545F4914F6CDD1D + start
        word = (word ^ (word >> 29)) * 0x94D049BB133111  # wraps around
        return ((word ^ (word >> 32)) & 0xFFFFFF).float()


def _counts(log: InteractionLog) -> tuple[torch.Tensor, torch.Tensor]:
    catalogue = Catalogue.from_log(log)
    return torch.from_numpy(catalogue.positives), torch.from_numpy(catalogue.shown)


def _most_pop(log: InteractionLog, seed: int) -> MostPop:
    return MostPop.from_counts(_counts(log)[0], num_users=log.num_users)


def _item_rate(log: InteractionLog, seed: int) -> ItemRate:
    return ItemRate.from_counts(*_counts(log), num_users=log.num_users)


def _random(log: InteractionLog, seed: int) -> InteractionScorer:
    return RandomOrder(seed)


def _ease(log: InteractionLog, seed: int) -> EASE:
    users, items = log.users[log.preferred], log.items[log.preferred]
    return EASE.from_log_arrays(users, items, num_users=log.num_users, num_items=log.num_items)


def _prod2vec(log: InteractionLog, seed: int, **options: Any) -> Prod2Vec:
    users, items = log.users[log.preferred], log.items[log.preferred]
    sizes = {"num_users": log.num_users, "num_items": log.num_items}
    return Prod2Vec.from_log_arrays(users, items, dim=32, window=3, keep=0, seed=seed, **sizes, **options)


#: the published comparison's options: d = 4, η = .01, μ = .01, U and V uniform on [0, 1)
PUBLISHED = {"dim": 4, "eta": 0.01, "mu": 0.01, "init": "uniform"}
FEEDBACK = {"feedback": "all", "item_bias": True, "init": "normal"}
OWN_VECTORS = {"item_bias": True, "init": "normal"}
GRU = {"dim": 64, "lanes": 64, "unroll": 32, "eta": 0.05}
GRU_CHOICE: dict[str, Any] = {"epochs": 2, "choose_by": "published", "pair_loss": False}
_WORDS = ("gensim", "words")

METHODS: dict[str, Trained | Counted] = {
    "saros": Trained("SAROS as published", SAROSModule, {**PUBLISHED, "rule": "positive"}),
    "saros_discard": Trained(
        "SAROS as published, users outside [b, B] left out",
        SAROSModule,
        {**PUBLISHED, "rule": "positive", "minimum": "min", "maximum": "mean"},
        epochs=40,
    ),
    "saros_truncate": Trained(
        "SAROS as published, each user's first B blocks",
        SAROSModule,
        {**PUBLISHED, "rule": "positive", "minimum": "min", "maximum": "mean", "overflow": "truncate"},
        epochs=40,
    ),
    "saros_time_best": Trained(
        "SAROS, blocks in time order, users described by their feedback",
        SAROSModule,
        {**FEEDBACK, "dim": 64, "rule": "run"},
        tuple({"eta": 0.06, "mu": mu, "epochs": epochs} for mu in (0.04, 0.05) for epochs in (15, 25)),
    ),
    "saros_best": Trained(
        "SAROS, blocks cut anew from a shuffled order every epoch, users described by their feedback",
        SAROSModule,
        {**FEEDBACK, "dim": 64, "rule": "run", "order": "shuffled"},
        tuple({"eta": 0.06, "mu": mu, "epochs": epochs} for mu in (0.02, 0.025) for epochs in (12, 18)),
    ),
    "saros_factorization": Trained(
        "SAROS on shuffled blocks, a vector for every user",
        SAROSModule,
        {**OWN_VECTORS, "dim": 64, "rule": "positive", "order": "shuffled"},
        tuple({"eta": eta, "mu": 0.02, "epochs": 30} for eta in (0.05, 0.1)),
    ),
    "bpr": Trained("BPR as published, pairs drawn until they differ", BPRModule, {**PUBLISHED, "pairs": "rejection"}),
    "bpr_best": Trained(
        "BPR on pairs of shown items, users described by their feedback",
        BPRModule,
        {**FEEDBACK, "dim": 64, "users": "each"},
        tuple({"eta": 0.02, "mu": mu, "epochs": epochs} for mu in (0.02, 0.025) for epochs in (8, 12)),
    ),
    "bpr_factorization": Trained(
        "BPR on pairs of shown items, a vector for every user",
        BPRModule,
        {**OWN_VECTORS, "dim": 64, "users": "each"},
        tuple({"eta": 0.05, "mu": mu, "epochs": 30} for mu in (0.02, 0.03)),
    ),
    "bpr_unobserved": Trained(
        "BPR against items never shown, users described by what they preferred",
        BPRModule,
        {**FEEDBACK, "feedback": "preferred", "dim": 1024, "pairs": "unobserved", "users": "each", "offset_mu": 0.01},
        ({"eta": 0.03, "mu": 0.002, "epochs": 30},),
        choose_by="catalogue",
        pair_loss=False,
    ),
    "softmax_in_batch": Trained(
        "softmax against the batch's other items with log-Q correction, a vector for every user",
        SoftmaxModule,
        {"dim": 64, "init": "normal", "batch_size": 1024},
        ({"eta": 0.003, "epochs": 8},),
        choose_by="catalogue",
        pair_loss=False,
    ),
    "bpr_batch": Trained(
        "batch BPR: steps on the exact gradient",
        BPRModule,
        {**PUBLISHED, "pairs": "all"},
        tuple({"eta": eta} for eta in (0.01, 100.0, 1000.0)),
        epochs=3,
    ),
    "mf": Trained(
        "squared error on the feedback",
        MFModule,
        {"dim": 4},
        tuple({"eta": 0.01, "mu": mu} for mu in (0.01, 0.03)),
        epochs=40,
        choose_by="published",
        pair_loss=False,
    ),
    "prod2vec": Counted(
        "word2vec of what users preferred, items by the cosine with the mean of the user's",
        _prod2vec,
        settings=({"epochs": 15},),
        seeded=True,
        needs=_WORDS,
    ),
    "prod2vec_dot": Counted(
        "the same by the inner product, which keeps popularity",
        partial(_prod2vec, similarity="dot"),
        settings=({"epochs": 5},),
        seeded=True,
        needs=_WORDS,
    ),
    "gru4rec": Trained(
        "GRU4Rec as published: TOP1 against what comes next in other lanes, no offsets",
        GRU4RecModule,
        GRU,
        **GRU_CHOICE,
    ),
    "gru4rec_samples": Trained(
        "GRU4Rec against 256 further items, all drawn alike",
        GRU4RecModule,
        {**GRU, "samples": 256, "exponent": 0.0},
        **GRU_CHOICE,
    ),
    "gru4rec_bias": Trained(
        "GRU4Rec with item offsets that start at the log-odds of positive feedback",
        GRU4RecModule,
        {**GRU, "item_bias": True},
        **GRU_CHOICE,
    ),
    "gru4rec_shown": Trained(
        "GRU4Rec against 16 items that its user was shown and did not prefer, no offsets",
        GRU4RecModule,
        {**GRU, "negatives": "shown", "samples": 16},
        **GRU_CHOICE,
    ),
    "ease": Counted("EASE^R on what users preferred, λ = 300", _ease),
    "mostpop": Counted("how often an item was preferred", _most_pop),
    "itemrate": Counted("smoothed share of positive feedback of each item", _item_rate),
    "random": Counted("no order at all", _random, seeded=True),
}


def usual_methods() -> list[str]:
    """Name the methods whose packages are installed."""
    return [name for name, method in METHODS.items() if _missing(method) is None]


def check_methods(names: Sequence[str]) -> None:
    """Refuse names of methods that there are not, or whose package is not installed.

    Raises:
        TorchRankError: there is one.
    """
    for name in names:
        check_option("methods", name, METHODS)
        missing = _missing(METHODS[name])
        if missing is not None:
            raise TorchRankError(f"method {name!r} needs {missing[0]}: pip install 'torchrank[{missing[1]}]'")


def _missing(method: Trained | Counted) -> tuple[str, str] | None:
    needs = method.needs if isinstance(method, Counted) else None
    return needs if needs is not None and find_spec(needs[0]) is None else None
