"""Pairs a second: sequential SAROS and BPR against implicit's BPR, on one thread; and the batched engine.

    OMP_NUM_THREADS=1 python scripts/benchmarks/engines.py --out results/engines.json

All are timed in turn in one process on one log: synthetic, or ``--log FILE`` with its columns. A pair is one
(user, preferred, other) that a method steps on or, for implicit, draws. Processor times are of this thread alone: a
busy neighbour does not count. With ``--threads 1 2`` the sequential engine is timed in so many threads instead, whole
epochs by the wall clock, on a log of few items and on one of many, and the published NDCG@10 after twelve epochs is
given too, the mean over three seeds.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # implicit warns of a threaded one

import argparse
import statistics
import time
from functools import partial

import numpy as np
import scipy.sparse
import torch
from common import installed, print_table, write_results

from torchrank.data import PairLists, build_blocks, make_interactions, read_log
from torchrank.losses import BPRLoss
from torchrank.models import Factorization, FeedbackFactorization
from torchrank.ops.sequential.bpr import REJECT, SHOWN, UNSEEN, bpr_feedback_visits, bpr_visits
from torchrank.ops.sequential.compiled import random_state
from torchrank.ops.sequential.feedback import saros_feedback_users
from torchrank.ops.sequential.saros import saros_users
from torchrank.ops.wave_steps import factorization_step, take_wave, wave_loss
from torchrank.ops.waves import build_waves
from torchrank.training import SAROSModule, evaluate_published, fit_interactions

ETA, MU = 0.01, 0.01
NO_SUMS = tuple(np.zeros((0, 1)) for _ in range(3))
NO_COUNTS = np.zeros(0, np.int64), np.zeros(0, np.int64)


def tables(model):
    """Numpy views of a scorer's parameters: of users, of items, offsets."""
    own = model.user_vectors if isinstance(model, Factorization) else model.feedback_vectors
    return own.detach().numpy(), model.item_vectors.detach().numpy(), model.item_offsets.detach().view(-1).numpy()


def laid_out(log, rule):
    """Starts of each user's blocks, their slices, and how many pairs they hold."""
    blocks = build_blocks(log, rule=rule)
    slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
    pairs = int(((slices[1] - slices[0]) * (slices[3] - slices[2])).sum())
    return np.append(0, np.cumsum(blocks.counts)), slices, blocks.items, pairs


def sequential_calls(log, dim):
    """Method to a call that runs one epoch on one thread, and its number of pairs."""
    made = {"num_users": log.num_users, "num_items": log.num_items, "dim": dim}
    scorer = Factorization(**made, init="normal", item_bias=True)
    feedback = FeedbackFactorization.from_log_arrays(log.users, log.items, log.preferred, **made)
    known = feedback.feedback_starts.numpy(), feedback.feedbacks.numpy()
    order, calls = np.arange(log.num_users, dtype=np.int32), {}

    for rule in ("positive", "run"):
        starts, slices, items, pairs = laid_out(log, rule)
        walk = order, starts, slices, items, ETA, MU, NO_SUMS, NO_COUNTS, 0
        calls[f"SAROS, {rule}"] = (lambda w=walk: saros_users(*tables(scorer), *w)), pairs
        rows, *rest = tables(feedback)
        calls[f"SAROS, {rule}, feedback"] = (
            (lambda w=walk, a=rows, b=rest: saros_feedback_users(a, *known, *b, *w)),
            pairs,
        )

    lists, random = PairLists.from_log(log), np.random.default_rng(0)
    places = lists.starts, lists.middles, lists.items, lists.seen_starts, lists.seen
    both, count = lists.with_both_kinds(), int(log.preferred.sum())
    anyone = both[random.integers(len(both), size=count)]
    owners = log.users[log.preferred][random.integers(count, size=count)]
    once, sizes = np.ones(count, np.int64), np.diff(log.offsets)[both]
    options = ETA, MU, 0.0, random_state(0)
    for name, users, pairs, draws in (
        ("BPR, shown", anyone, once, SHOWN),
        ("BPR, shown, by rejection", anyone, once, REJECT),
        ("BPR, unobserved, verified", owners, once, UNSEEN),
        ("BPR, shown, user by user", both, sizes, SHOWN),
        ("BPR, unobserved, user by user", both, sizes, UNSEEN),
    ):
        walk = users, pairs, *places, draws, *options
        calls[name] = (lambda w=walk: bpr_visits(*tables(scorer), *w)), int(pairs.sum())
    walk = both, sizes, *places, SHOWN, *options
    rows, *rest = tables(feedback)
    calls["BPR, shown, feedback"] = (lambda: bpr_feedback_visits(rows, *known, *rest, *walk)), int(sizes.sum())
    return calls


def implicit_calls(log, dim):
    """The same for implicit, with and without checking that the other item was not preferred."""
    from implicit.bpr import BayesianPersonalizedRanking

    liked = log.preferred
    ones = np.ones(int(liked.sum()), np.float32)
    seen = scipy.sparse.csr_matrix((ones, (log.users[liked], log.items[liked])), (log.num_users, log.num_items))
    calls = {}
    for name, verify in (("implicit BPR, verified", True), ("implicit BPR, unverified", False)):
        model = BayesianPersonalizedRanking(
            factors=dim, iterations=1, num_threads=1, verify_negative_samples=verify, use_gpu=False
        )
        model.fit(seen, show_progress=False)  # makes its tables: what is timed are passes
        calls[name] = (lambda m=model: m.fit(seen, show_progress=False)), seen.nnz
    return calls


def batched_calls(log, dim, lanes):
    """The same for the batched engine on the CPU: written out, and through autograd with sparse gradients."""
    starts, slices, items, pairs = laid_out(log, "positive")
    waves = build_waves(np.arange(log.num_users), starts, slices, items, lanes=lanes)
    scorer = Factorization(log.num_users, log.num_items, dim, item_bias=True, sparse=True)
    own = scorer.user_vectors.data, scorer.item_vectors.data, scorer.item_offsets.data
    optimizer, loss = torch.optim.SGD(scorer.parameters(), lr=ETA), BPRLoss(reduction="sum")

    def written_out():
        for number in range(len(waves)):
            factorization_step(*own, take_wave(waves, number), eta=ETA, mu=MU)

    def autograd():
        for number in range(len(waves)):
            optimizer.zero_grad(set_to_none=True)
            wave_loss(scorer, loss, take_wave(waves, number), mu=MU)[1].backward()
            optimizer.step()

    return {f"batched, {lanes} lanes": (written_out, pairs), f"batched, {lanes} lanes, autograd": (autograd, pairs)}


def threaded_rows(name, train, test, counts, repeats):
    """Pairs a second and quality after twelve epochs, of one thread and of several, with vectors and feedback."""
    rows, pairs = [], laid_out(train, "positive")[-1]
    for dim, feedback in ((16, None), (64, None), (64, "all")):
        options = {"dim": dim, "init": "normal", "item_bias": True, "rule": "positive", "mu": MU, "feedback": feedback}
        make = partial(SAROSModule, **options)
        fit_interactions(make(threads=max(counts)), train, epochs=1)  # compiles
        for threads in counts:
            measured = [
                evaluate_published(trained(make(threads=threads, seed=seed), train), test).mean["ndcg@10"]
                for seed in range(3)
            ]
            seconds = min(fit_interactions(make(threads=threads), train, epochs=1) for _ in range(repeats))
            row = {"log": name, "dim": dim, "users by": "feedback" if feedback else "vectors", "threads": threads}
            rows.append({**row, "M pairs/s": pairs / seconds / 1e6, "NDCG@10": statistics.fmean(measured)})
    return rows


def trained(module, train):
    """The scorer after twelve epochs."""
    fit_interactions(module, train, epochs=12)
    return module.scorer


def timed(calls, repeats):
    """Time calls in turn, round after round: wall and processor seconds of each."""
    found = {name: ([], []) for name in calls}
    for call, _ in calls.values():
        call()
    for _ in range(repeats):
        for name, (call, _) in calls.items():
            wall, own = time.perf_counter(), time.thread_time()
            call()
            found[name][0].append(time.perf_counter() - wall)
            found[name][1].append(time.thread_time() - own)
    return found


def main():
    """Print the tables and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--log", help="a log to read; synthetic by default")
    parser.add_argument("--feedback", default="feedback")
    parser.add_argument("--time", default="time")
    parser.add_argument("--positive-at", type=float, default=1.0)
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="a tenth of the synthetic log, d = 16, two repeats")
    parser.add_argument("--threads", type=int, nargs="*", default=[], help="time the sequential engine in so many")
    args = parser.parse_args()
    repeats = 2 if args.quick else args.repeats
    rivals = installed("implicit")
    torch.set_num_threads(1)
    if args.log:
        log = read_log(args.log, feedback=args.feedback, time=args.time, positive_at=args.positive_at)
    else:
        rows = 100_000 if args.quick else 1_000_000
        log, _ = make_interactions(num_users=6000, num_items=3700, num_interactions=rows)
    train, test = log.split_per_user(train=0.8)
    if args.threads:
        rows = threaded_rows(args.log or f"{log.num_items:,} items", train, test, args.threads, repeats)
        if not args.log:
            log, _ = make_interactions(num_users=20_000, num_items=200_000, num_interactions=len(log))
            train, test = log.split_per_user(train=0.8)
            rows += threaded_rows(f"{log.num_items:,} items", train, test, args.threads, repeats)
        print_table("threads on the same tables, best of repeats, by the wall clock", rows)
        if args.out:
            write_results(args.out, rows, packages=["numba"])
        return
    rows = []
    for dim in (16,) if args.quick else (16, 64):
        parts = [(sequential_calls(train, dim) | (implicit_calls(train, dim) if rivals else {}), repeats)]
        parts += [(batched_calls(train, dim, lanes), min(repeats, 3)) for lanes in (512, 4096)]
        peer = float("nan")
        for calls, rounds in parts:
            found = timed(calls, rounds)
            if "implicit BPR, verified" in calls:
                peer = min(found["implicit BPR, verified"][1]) / calls["implicit BPR, verified"][1]
            for name, (wall, own) in found.items():
                pairs = calls[name][1]
                rows.append(
                    {
                        "dim": dim,
                        "method": name,
                        "million pairs/s (processor)": pairs / min(own) / 1e6,
                        "(wall)": pairs / min(wall) / 1e6,
                        "(wall, median)": pairs / statistics.median(wall) / 1e6,
                        "times implicit, verified": peer * pairs / min(own),
                    }
                )
    print_table("one thread, best of repeats", rows)
    if args.out:
        write_results(args.out, rows, packages=["implicit", "numba"])


if __name__ == "__main__":
    main()
