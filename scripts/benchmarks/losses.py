"""Every loss over lists, forward and backward, and the pairwise ones against their formulas over whole L x L matrices.

    python scripts/benchmarks/losses.py --out results/losses.json

All are timed in turn in one process on one thread. A matrix of more than 1 GiB is left out.
"""

import argparse

import torch
from common import interleave, print_table, write_results

from torchrank import losses

SHAPES = [(256, 128), (64, 1024), (1, 10_000)]
LOSSES = {
    "SLAM (ndcg)": losses.slam_loss,
    "SLAM (map)": lambda s, r: losses.slam_loss(s, r, measure="map"),
    "pairwise hinge": losses.pairwise_hinge_loss,
    "pairwise logistic": losses.pairwise_logistic_loss,
    "softmax": losses.softmax_loss,
    "ListMLE": losses.listmle_loss,
    "ApproxNDCG": losses.approx_ndcg_loss,
    "LambdaLoss (ndcg2)": losses.lambda_loss,
    "pointwise squared": losses.pointwise_squared_loss,
}


def over_matrices(pair):
    """The mean over ordered pairs of ``pair(s_j - s_i)``, as its formula reads."""

    def loss(scores, relevance):
        less = relevance[:, None, :] < relevance[:, :, None]
        return (pair(scores[:, None, :] - scores[:, :, None]) * less).sum((-1, -2)) / less.sum((-1, -2)).clamp(min=1)

    return loss


MATRICES = {
    "pairwise hinge": over_matrices(lambda difference: (1 + difference).clamp(min=0)),
    "pairwise logistic": over_matrices(torch.nn.functional.softplus),
}


def timed(loss, scores, relevance):
    """A call that runs one forward and backward pass."""

    def call():
        scores.grad = None
        loss(scores, relevance).sum().backward()

    return call


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="only the smallest shape")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for lists, length in SHAPES[:1] if args.quick else SHAPES:
        generator = torch.Generator().manual_seed(0)
        scores = torch.randn(lists, length, generator=generator, requires_grad=True)
        relevance = torch.randint(0, 5, (lists, length), generator=generator).float()
        calls = {name: timed(loss, scores, relevance) for name, loss in LOSSES.items()}
        if lists * length**2 <= 2**28:
            for name, loss in MATRICES.items():
                torch.testing.assert_close(loss(scores, relevance), LOSSES[name](scores, relevance))
                calls[f"{name}, matrices"] = timed(loss, scores, relevance)
        for name, timing in interleave(calls, repeats=args.repeats).items():
            milliseconds = {"ms": timing.best * 1e3, "median ms": timing.median * 1e3}
            rows.append({"lists": lists, "length": length, "loss": name} | milliseconds)
    print_table("Losses, forward + backward, one thread (best of repeats)", rows)
    if args.out:
        write_results(args.out, rows)


if __name__ == "__main__":
    main()
