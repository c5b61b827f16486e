"""NDCG@10 and average precision against torchmetrics, ranx and pytrec_eval, on one thread.

    python scripts/benchmarks/metrics.py --out results/metrics.json

All are timed in turn in one process, in CPU seconds, so that a busy neighbour counts for none of them. Each gets its
input in the form it takes: building ranx's ``Qrels`` and ``Run`` and pytrec_eval's dictionaries is not timed. The
others' time is proportional to the number of lists; ``--peer-lists`` bounds how many they are given.
"""

import argparse
import time

import numba
import torch
from common import installed, interleave, print_table, write_results
from torchmetrics.retrieval import RetrievalMAP, RetrievalNormalizedDCG

from torchrank.metrics import average_precision, ndcg

SHAPES = [(8_000, 40), (100_000, 100)]
SHARES = [0.80, 0.13, 0.07]  # of the grades 0, 1, 2, as in MQ2008


def plain_ndcg(scores, relevance, k=10):
    """The measure as one would write it in torch: two sorts and a gather."""
    discount = 1 / torch.log2(torch.arange(2.0, k + 2))
    ranked = relevance.gather(-1, torch.argsort(scores, dim=-1, descending=True, stable=True))[:, :k]
    best = relevance.sort(-1, descending=True).values[:, :k]
    gained, possible = (((torch.exp2(grades) - 1) * discount).sum(-1) for grades in (ranked, best))
    return torch.where(possible > 0, gained / possible, 0)


def plain_average_precision(scores, relevance):
    """Likewise."""
    hits = (relevance > 0).float().gather(-1, torch.argsort(scores, dim=-1, descending=True, stable=True))
    precision = hits.cumsum(-1) / torch.arange(1.0, scores.shape[-1] + 1)
    return (precision * hits).sum(-1) / hits.sum(-1).clamp(min=1)


def peers(scores, relevance):
    """Bind the same lists to each library: name to a call, for NDCG@10 and for average precision."""
    lists, length = scores.shape
    names = [f"d{i}" for i in range(length)]
    grades = {f"q{i}": dict(zip(names, row, strict=True)) for i, row in enumerate(relevance.int().tolist())}
    run = {f"q{i}": dict(zip(names, row, strict=True)) for i, row in enumerate(scores.double().tolist())}
    index = torch.arange(lists).repeat_interleave(length)

    def torchmetrics(metric, target):
        metric.update(scores.reshape(-1), target.reshape(-1), indexes=index)
        return metric.compute()

    calls = {
        "NDCG@10": {"torchmetrics": lambda: torchmetrics(RetrievalNormalizedDCG(top_k=10), relevance.long())},
        "AP": {"torchmetrics": lambda: torchmetrics(RetrievalMAP(), (relevance > 0).long())},
    }
    if installed("ranx"):
        import ranx

        qrels, ranx_run = ranx.Qrels(grades), ranx.Run(run)
        calls["NDCG@10"]["ranx"] = lambda: ranx.evaluate(qrels, ranx_run, "ndcg@10", return_mean=False)
        calls["AP"]["ranx"] = lambda: ranx.evaluate(qrels, ranx_run, "map", return_mean=False)
    if installed("pytrec_eval", "pytrec_eval-terrier"):
        import pytrec_eval

        by_ndcg = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.10"})
        by_map = pytrec_eval.RelevanceEvaluator(grades, {"map"})
        calls["NDCG@10"]["pytrec_eval"] = lambda: by_ndcg.evaluate(run)
        calls["AP"]["pytrec_eval"] = lambda: by_map.evaluate(run)
    return calls


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peer-lists", type=int, default=8_000, help="at most so many lists for the other libraries")
    parser.add_argument("--quick", action="store_true", help="only the smaller shape, once, the others on 500 lists")
    args = parser.parse_args()
    repeats, most = (1, min(args.peer_lists, 500)) if args.quick else (args.repeats, args.peer_lists)
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    rows = []
    for lists, length in SHAPES[:1] if args.quick else SHAPES:
        generator = torch.Generator().manual_seed(0)
        # no score twice in a list: pytrec_eval and ranx break ties in ways of their own
        scores = torch.rand(lists, length, generator=generator).argsort(-1) + torch.rand(lists, 1, generator=generator)
        shares = torch.tensor(SHARES).expand(lists, 3)
        relevance = torch.multinomial(shares, length, replacement=True, generator=generator).float()
        few = min(lists, most)
        ours = {"NDCG@10": lambda s, r: ndcg(s, r, k=10), "AP": average_precision}
        plain = {"NDCG@10": plain_ndcg, "AP": plain_average_precision}
        for measure, others in peers(scores[:few], relevance[:few]).items():
            calls = {
                "torchrank": lambda f=ours[measure], s=scores, r=relevance: f(s, r),
                "plain torch": lambda f=plain[measure], s=scores, r=relevance: f(s, r),
            }
            torch.testing.assert_close(calls["torchrank"](), calls["plain torch"]())
            timing = interleave(calls | others, repeats=repeats, least=0.1, clock=time.process_time)
            speed = {name: (few if name in others else lists) / taken.best for name, taken in timing.items()}
            for name, value in speed.items():
                rows.append(
                    {
                        "measure": measure,
                        "lists": lists,
                        "length": length,
                        "library": name,
                        "lists a second": value,
                        "torchrank is so many times faster": speed["torchrank"] / value,
                    }
                )
    print_table("Measures on one thread (best of repeats)", rows)
    if args.out:
        write_results(args.out, rows, packages=("torchmetrics", "ranx", "pytrec_eval-terrier"))


if __name__ == "__main__":
    main()
