"""SLAM forward and backward against the same loss written pairwise, and its peak memory on long lists.

    python scripts/benchmarks/slam.py --out results/slam.json

Both sides take the same weights function and are timed in turn in one process; ``--quick`` leaves out what takes the
pairwise form minutes or gigabytes.
"""

import argparse

import torch
from common import interleave, peak_memory, print_table, write_results

from torchrank.losses import slam_loss, slam_weights

SHAPES = [(256, 128), (64, 1024), (8, 4096), (1, 10_000)]
MEMORY = """
import torch
from torchrank.losses import slam_loss
def step(length):
    scores = torch.randn(1, length, requires_grad=True)
    slam_loss(scores, torch.randint(0, 5, (1, length)).float()).sum().backward()
step(100)
# measure
step({length})
"""


def pairwise_slam(scores, relevance, margin=1.0):
    """The loss as its formula reads, one L x L matrix a list."""
    less = relevance[:, None, :] < relevance[:, :, None]
    hinges = ((margin + scores[:, None, :] - scores[:, :, None]).clamp(min=0) * less).amax(-1)
    return (slam_weights(relevance) * hinges).sum(-1)


def step(loss, scores, relevance):
    """One forward and backward pass."""
    scores.grad = None
    loss(scores, relevance).sum().backward()


def main():
    """Print the tables and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="only the two smaller shapes, one thread")
    args = parser.parse_args()
    rows = []
    for threads in [1] if args.quick else [1, 2]:
        torch.set_num_threads(threads)
        for lists, length in SHAPES[:2] if args.quick else SHAPES:
            generator = torch.Generator().manual_seed(0)
            scores = torch.randn(lists, length, generator=generator, requires_grad=True)
            relevance = torch.randint(0, 5, (lists, length), generator=generator).float()
            torch.testing.assert_close(slam_loss(scores, relevance), pairwise_slam(scores, relevance))
            fast = lambda s=scores, r=relevance: step(slam_loss, s, r)  # noqa: E731 - a bound call to time
            slow = lambda s=scores, r=relevance: step(pairwise_slam, s, r)  # noqa: E731 - likewise
            rounds = (1 if args.quick else 3) if lists * length**2 >= 10**7 else args.repeats
            # The first call after the matrices finds cold caches and unmapped memory; the second is what training sees.
            timing = interleave({"cold": fast, "slam": fast, "pairwise": slow}, repeats=rounds)
            rows.append(
                {
                    "threads": threads,
                    "lists": lists,
                    "length": length,
                    "slam ms": timing["slam"].best * 1e3,
                    "slam cold ms": timing["cold"].best * 1e3,
                    "slam median ms": timing["slam"].median * 1e3,
                    "pairwise ms": timing["pairwise"].best * 1e3,
                    "times faster": timing["pairwise"].best / timing["slam"].best,
                }
            )
            print(", ".join(f"{name} {value:.4g}" for name, value in rows[-1].items()), flush=True)
    print_table("SLAM forward + backward (best of repeats)", rows)
    memory = [{"length": length} | peak_memory(MEMORY.replace("{length}", str(length))) for length in (10**5, 10**6)]
    for row in memory:
        row["bytes a document"] = row["used_mib"] * 2**20 / row["length"]
    print_table("SLAM peak memory, one list, forward + backward", memory)
    if args.out:
        write_results(args.out, [*rows, *memory])


if __name__ == "__main__":
    main()
