"""Preferences learned in several processes: the same steps as one process takes on the same shares, nothing twice."""

import copy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from pytorch_lightning.strategies import DDPStrategy, FSDPStrategy

from tests.training import shared_users_run as run
from tests.training.trainers import quiet
from torchrank.data import InteractionLog, make_interactions
from torchrank.errors import DataError, TorchRankError
from torchrank.losses import BPRLoss
from torchrank.ops.shares import user_shares
from torchrank.ops.wave_steps import take_wave, wave_loss
from torchrank.training import BPRModule, InteractionDataModule, MFModule, load
from torchrank.training.log_scorer import make_scorer
from torchrank.training.processes import Processes
from torchrank.training.saros_plan import BlockOptions, plan_epoch, plan_partition
from torchrank.training.sequential_steps import saros_step

pytestmark = pytest.mark.filterwarnings("ignore:The dirpath has changed")  # a resumed run has a folder of its own
TWO = list(run.CASES)
FOUR = ["mean", "few", "few batched", "batched", "bpr batched", "disk"]  # on disk are three partitions


def launch(folder, processes, names):
    command = [sys.executable, "-m", "tests.training.shared_users_run", str(folder), str(processes), *names]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {n: launch(tmp_path_factory.mktemp(f"of{n}"), n, names) for n, names in ((2, TWO), (4, FOUR))}


def found(folders, name, processes):
    return [torch.load(folders[processes] / f"{name}-{rank}.pt", weights_only=True) for rank in range(processes)]


def log_of(name, folder=None):
    return InteractionDataModule(run.log_of(name, folder), validation=0.2)


def start(name, log):
    module = run.CASES[name]()
    if module.scorer is not None:
        return copy.deepcopy(module.scorer)
    return make_scorer(log, **{key: getattr(module, key) for key in ("dim", "init", "item_bias", "feedback", "seed")})


def plans(name, log, processes):
    """Of every epoch, or partition's turn in one, each process's plan and which users of it are its own."""
    module = run.CASES[name]()
    names = ("rule", "order", "user_order", "minimum", "maximum", "overflow", "seed")
    options = BlockOptions(*(getattr(module, key) for key in names))
    owner = user_shares(log.num_users, processes)
    for epoch in range(2):
        if isinstance(log, InteractionLog):
            plan = plan_epoch(log, options, epoch)
            yield [(plan, owner == rank) for rank in range(processes)]
            continue
        # two processes have a partition each, and share the third; four share them all
        rounds = np.array([(0, 1), (2, 2)] if processes == 2 else [(n,) * processes for n in range(3)])
        if options.user_order == "shuffled":
            rounds = np.random.default_rng([options.seed, epoch, 2]).permutation(rounds)
        for numbers in rounds:
            each = [own_partition(log, options, epoch, int(number)) for number in numbers]
            yield [
                (plan, owner[plan.first_user :] == rank if len(set(numbers)) == 1 else np.ones(len(owner), bool))
                for rank, plan in enumerate(each)
            ]


def own_partition(log, options, epoch, number):
    plan = plan_partition(log, replace(options, user_order="fixed"), epoch, number)
    if options.user_order == "fixed":
        return plan
    return replace(plan, users=np.random.default_rng([options.seed, epoch, 1, number]).permutation(plan.users))


def sequential_reference(name, processes, folder=None):
    """Step through the shares one after the other, each from the same start, and put the ends together."""
    log, mean = log_of(name, folder).train_log, run.CASES[name]().combine == "mean"
    scorer, parts = start(name, log), run.STEPS if folder is None else 6 // (2 if processes == 2 else 3)
    eta = torch.optim.SGD(scorer.parameters(), lr=0.05)
    for each in plans(name, log, processes):
        for part in range(parts):
            before, ends = copy.deepcopy(scorer), []
            for plan, own in each:
                ends.append(copy.deepcopy(before))
                users = plan.part(part, parts)
                saros_step(ends[-1], plan, users[own[users]], eta, mu=0.02, momentum=0, average=None)
            with torch.no_grad():
                for key, parameter in scorer.named_parameters():
                    first = before.get_parameter(key)
                    moved = sum(end.get_parameter(key) - first for end in ends)
                    private = key == "user_vectors"  # only the user's own process moves it
                    parameter.copy_(first + moved / (processes if mean and not private else 1))
    return scorer


def batched_reference(name, processes, folder=None):
    """Take the waves of all shares as one: what autograd sums over is what the processes sum over."""
    log, module = log_of(name, folder).train_log, run.CASES[name]()
    scorer = start(name, log)
    make = module.optimizer or (lambda p: torch.optim.SGD(p, lr=0.05, momentum=module.momentum))
    optimizer, loss = make(scorer.parameters()), BPRLoss(reduction="sum")
    means = []
    for shares in plans(name, log, processes):
        each = [replace(plan, users=plan.users[own[plan.users]]).waves(max(1, 8 // processes)) for plan, own in shares]
        for number in range(max(map(len, each))):
            waves = [take_wave(w, number) for w in each if number < len(w)]
            means += [copy.deepcopy(scorer)] * sum(w.starting[number] for w in each if number < len(w))
            optimizer.zero_grad()
            sum(wave_loss(scorer, loss, wave, mu=0.02)[1] for wave in waves).backward()
            optimizer.step()
    return scorer, means


def assert_same(state, expected, tolerance=1e-5):
    for key, value in expected.named_parameters():
        torch.testing.assert_close(state[f"scorer.{key}"], value.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "processes"),
    [*((name, 2) for name in ("mean", "sum", "feedback", "few", "disk")), ("mean", 4), ("few", 4), ("disk", 4)],
)
def test_the_sequential_engine_puts_its_processes_together_after_every_step(folders, name, processes):
    expected = sequential_reference(name, processes, folders[processes] if name == "disk" else None)
    for each in found(folders, name, processes):
        assert_same(each["weights"], expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "processes"),
    [
        *((name, 2) for name in ("batched", "few batched", "batched feedback", "momentum", "adam", "sparse")),
        ("disk batched", 2),
        ("batched", 4),
        ("few batched", 4),
    ],
)
def test_the_batched_engine_sums_the_blocks_of_all_processes(folders, name, processes):
    expected, _ = batched_reference(name, processes, folders[processes] if name.startswith("disk") else None)
    for each in found(folders, name, processes):
        assert_same(each["weights"], expected)


@pytest.mark.slow
def test_averaging_counts_the_users_of_all_processes(folders):
    last, means = batched_reference("averaging", 2)
    for each in found(folders, "averaging", 2):
        assert int(each["weights"]["average.starts"]) == len(means)
        for key, parameter in last.named_parameters():
            torch.testing.assert_close(each["weights"][f"average.scorer.{key}"], parameter.detach())
            mean = torch.stack([scorer.get_parameter(key).detach().double() for scorer in means]).mean(0).float()
            torch.testing.assert_close(each["weights"][f"scorer.{key}"], mean, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "processes"), [*((name, 2) for name in TWO), *((name, 4) for name in FOUR if name != "few batched")]
)
def test_measures_are_those_of_one_process(folders, name, processes):
    ranks = found(folders, name, processes)
    for key, value in ranks[0]["weights"].items():
        assert all(torch.equal(value, other["weights"][key]) for other in ranks[1:]), key
    saved = steps(folders[processes], name)
    assert len(saved) == 2 * (6 if name.startswith("disk") else run.STEPS)
    module = load(saved[-1])
    for key, value in module.state_dict().items():  # the first process's file holds everybody's users
        assert torch.equal(value, ranks[0]["weights"][key]), key
    alone = quiet().validate(module, log_of(name, folders[processes]), verbose=False)[0]
    assert len(alone) == 6
    for key, value in alone.items():
        assert all(rank["metrics"][key] == pytest.approx(value, abs=1e-6) for rank in ranks), key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "processes"), [("mean", 2), ("sum", 2), ("disk", 2), ("mean", 4), ("few", 4), ("disk", 4)]
)
def test_every_user_is_stepped_through_once_an_epoch(folders, name, processes):
    ranks = found(folders, name, processes)
    assert len({len(rank["users"]) for rank in ranks}) == 1
    for epoch in range(2):
        users = [user for rank in ranks for number, some in rank["users"] if number == epoch for user in some]
        assert sorted(users) == list(range(log_of(name, folders[processes]).train_log.num_users))


@pytest.mark.slow
def test_a_process_steps_through_partitions_of_its_own(folders):
    starts = log_of("disk", folders[2]).train_log.user_starts
    for number, rank in enumerate(found(folders, "disk", 2)):
        users = {user for _, some in rank["users"] for user in some if user < starts[2]}
        assert users == set(range(*starts[number : number + 2]))


def steps(folder, name):
    return sorted((folder / name).glob("*.ckpt"), key=lambda path: int(path.stem.split("=")[1]))


@pytest.mark.slow
def test_another_number_of_processes_goes_on_inside_an_epoch(folders, tmp_path):
    """Two processes stop after three of five steps; one process, or three, do the rest, and nothing twice."""
    inside, end = (steps(folders[2], "sum")[n - 1] for n in (3, 10))
    run.fit("sum", tmp_path / inside.stem, 1, checkpoint=inside)
    launch(tmp_path / "three", 3, [f"sum@{inside}"])
    done = [user for rank in found(folders, "sum", 2) for _, some in rank["users"][:3] for user in some]
    whole = load(end).scorer.item_vectors.detach()
    for folder, size in ((tmp_path, 1), (tmp_path / "three", 3)):
        ranks = [torch.load(folder / inside.stem / f"sum-{rank}.pt", weights_only=True) for rank in range(size)]
        rest = [user for rank in ranks for number, some in rank["users"] if number == 0 for user in some]
        assert sorted(done + rest) == list(range(run.USERS))
        torch.testing.assert_close(ranks[0]["weights"]["scorer.item_vectors"], whole, rtol=0, atol=0.05)
        assert all(
            torch.equal(ranks[0]["weights"][key], rank["weights"][key]) for rank in ranks for key in rank["weights"]
        )


@pytest.mark.slow
def test_as_many_processes_resume_exactly(folders, tmp_path):
    stops = [(name, 3) for name in ("mean", "momentum", "adam", "bpr", "averaging", "disk")]  # between two partitions
    stops += [("disk", 8), ("disk batched", 4), ("disk bpr", 4), ("disk mf", 8)]  # inside a partition
    launch(tmp_path, 2, [f"{name}@{steps(folders[2], name)[stop - 1]}" for name, stop in stops])
    for name, stop in stops:
        whole = found(folders, name, 2)[0]["weights"]
        stem = steps(folders[2], name)[stop - 1].stem
        again = torch.load(tmp_path / stem / f"{name}-1.pt", weights_only=True)["weights"]
        for key, value in whole.items():
            assert torch.equal(again[key], value), (name, stop, key)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what", "length"),
    [("batched", "waves", run.STEPS), ("disk batched", "waves", 6), ("disk", "partitions", 6)],
)
def test_what_was_dealt_out_is_not_taken_up_by_another_number_of_processes(folders, name, what, length, tmp_path):
    inside, end = (steps(folders[2], name)[n - 1] for n in (3, length))
    with pytest.raises(DataError, match=f"{what} were divided among 2 processes, not 1"):
        run.fit(name, tmp_path, 1, checkpoint=inside)
    trainer, module = run.fit(name, tmp_path / "end", 1, checkpoint=end)
    assert trainer.global_step == 2 * length
    torch.testing.assert_close(
        module.scorer.item_vectors, load(steps(folders[2], name)[-1]).scorer.item_vectors, rtol=0, atol=0.05
    )


def test_what_needs_one_process_says_so():
    class Strategy(DDPStrategy):
        distributed_sampler_kwargs: ClassVar = {"num_replicas": 2, "rank": 0}

    class Several:
        world_size, strategy, datamodule = 2, Strategy(), log_of("mean")

    for module, words in (
        (run.SAROS(momentum=0.5), "batched"),
        (run.SAROS(averaging=True), "batched"),
        (BPRModule(pairs="all"), "1 process"),
    ):
        module._trainer = Several()
        with pytest.raises(TorchRankError, match=words):
            module.setup("fit")
    module._trainer.strategy = FSDPStrategy()
    with pytest.raises(TorchRankError, match="FSDPStrategy"):
        module.setup("fit")
    for make in (run.SAROS, run.BPR, MFModule):
        with pytest.raises(TorchRankError, match="combine"):
            make(combine="average")


def test_every_user_belongs_to_one_process():
    log, _ = make_interactions(num_users=1000, num_items=10, num_interactions=2000)
    for size in (1, 2, 3, 7):
        marks = np.stack([Processes(rank, size).own(log) for rank in range(size)])
        assert (marks.sum(0) == 1).all()
        assert marks.sum(1).min() > 0.7 * 1000 / size
