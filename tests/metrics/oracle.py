"""The measures in plain Python, on one list whose relevance stands in ranked order, and tie orders one by one."""

import itertools
import math


def weight(rank, discount="log2"):
    if discount == "jarvelin":
        return 1.0 if rank == 1 else 1 / math.log2(rank)
    return 1 / math.log2(1 + rank)


def gained(ranked, k, gain, discount):
    value = (lambda r: 2.0**r - 1) if gain == "exponential" else float
    return sum(value(r) * weight(i, discount) for i, r in enumerate(ranked[:k], 1))


def ndcg(ranked, k=None, gain="exponential", discount="log2", ideal="list", retrieved=10):
    k = k or len(ranked)
    if ideal == "retrieved":
        ranked = ranked[:retrieved]
    best = gained(sorted(ranked, reverse=True), k, gain, discount)
    if ideal == "full":
        best = sum(weight(i, discount) for i in range(1, k + 1))
    return gained(ranked, k, gain, discount) / best if best else 0.0


def mean_ndcg(ranked, gain="exponential", discount="jarvelin"):
    return sum(ndcg(ranked, k, gain, discount) for k in range(1, len(ranked) + 1)) / len(ranked)


def precision(ranked, k=None):
    k = k or len(ranked)
    return sum(r > 0 for r in ranked[:k]) / k


def recall(ranked, k=None):
    return sum(r > 0 for r in ranked[:k]) / sum(r > 0 for r in ranked)


def average_precision(ranked, k=None, normalize="relevant"):
    hits, total = 0, 0.0
    for i, r in enumerate(ranked[:k], 1):
        if r > 0:
            hits += 1
            total += hits / i
    relevant = sum(r > 0 for r in ranked)
    divisor = {"relevant": relevant, "cutoff": min(k or relevant, relevant), "hits": max(hits, 1)}[normalize]
    return total / divisor


def reciprocal_rank(ranked, k=None):
    return next((1 / i for i, r in enumerate(ranked[:k], 1) if r > 0), 0.0)


def hit_rate(ranked, k=None):
    return float(any(r > 0 for r in ranked[:k]))


def err(ranked, k=None, max_grade=4.0):
    total, still_reading = 0.0, 1.0
    for i, r in enumerate(ranked[:k], 1):
        satisfied = (2.0**r - 1) / 2**max_grade
        total += still_reading * satisfied / i
        still_reading *= 1 - satisfied
    return total


def auc(ranked, k=None):
    """Each pair of a relevant document and another counts 1, or half if both lie beyond rank k."""
    k = k or len(ranked)
    pairs = [(i, j) for i, r in enumerate(ranked) for j, q in enumerate(ranked) if r > 0 and q == 0]
    return sum(0.5 if i >= k and j >= k else float(i < j) for i, j in pairs) / len(pairs)


def orders(scores, relevance, ties):
    """Every ranking that the policy stands for, as lists of relevance in ranked order."""
    groups = [
        [r for s, r in zip(scores, relevance, strict=True) if s == level] for level in sorted(set(scores), reverse=True)
    ]
    if ties == "stable":
        return [[r for group in groups for r in group]]
    if ties != "mean":
        return [[r for group in groups for r in sorted(group, reverse=ties == "optimistic")]]
    return [[r for group in order for r in group] for order in itertools.product(*map(itertools.permutations, groups))]


def measured(function, scores, relevance, ties, **options):
    """The mean of a measure over the rankings of the policy."""
    values = [function(ranked, **options) for ranked in orders(scores, relevance, ties)]
    return math.fsum(values) / len(values)
