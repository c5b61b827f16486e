"""Slow, obvious references: plain Python over one list of numbers, as the formulas read."""

import math


def ordered_pairs(relevance):
    """All (i, j) with R_i > R_j."""
    n = range(len(relevance))
    return [(i, j) for i in n for j in n if relevance[i] > relevance[j]]


def by_relevance(relevance):
    """Documents, most relevant first, ties in input order."""
    return sorted(range(len(relevance)), key=lambda i: (-relevance[i], i))


def by_score(scores):
    """Documents, best first, ties in input order."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def gain(r):
    return 2**r - 1


def discount(rank, k=None):
    return 0.0 if k is not None and rank > k else 1 / math.log2(1 + rank)


def ideal_dcg(gains, k=None):
    return sum(g * discount(p, k) for p, g in enumerate(sorted(gains, reverse=True), 1))


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def ndcg_loss(scores, relevance, k=None):
    """1 − NDCG, ties against the ranker."""
    ideal = ideal_dcg([gain(r) for r in relevance], k)
    if ideal == 0:
        return 0.0
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], relevance[i]))
    return 1 - sum(gain(relevance[i]) * discount(p, k) for p, i in enumerate(order, 1)) / ideal


def ap_loss(scores, relevance):
    """1 − AP, ties against the ranker."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], relevance[i]))
    hits, total = 0, 0.0
    for rank, i in enumerate(order, 1):
        if relevance[i] > 0:
            hits += 1
            total += hits / rank
    return 1 - total / hits if hits else 0.0


def slam_weights(relevance, measure="ndcg", ties="mean", k=None):
    m, order = len(relevance), by_relevance(relevance)
    if measure == "map":
        relevance = [float(r > 0) for r in relevance]
        order, r = by_relevance(relevance), int(sum(relevance))
        at = {i: (m - r) / (r * (m - r + p)) if p <= r else 0.0 for p, i in enumerate(order, 1)}
    else:
        z = ideal_dcg([gain(r) for r in relevance], k)
        at = {i: gain(relevance[i]) * discount(p, k) / z if z else 0.0 for p, i in enumerate(order, 1)}
    if ties == "first":
        return [at[i] for i in range(m)]
    level = {r: [at[i] for i in range(m) if relevance[i] == r] for r in set(relevance)}
    return [sum(level[r]) / len(level[r]) for r in relevance]


def slam(scores, relevance, document_weights, measure="ndcg", ties="mean", k=None, margin=1.0, graded=False):
    v = slam_weights(relevance, measure, ties, k)
    if measure == "map":
        relevance = [float(r > 0) for r in relevance]
    total = 0.0
    for i, s in enumerate(scores):
        rivals = [
            scores[j] + margin * (relevance[i] - relevance[j] if graded else 1)
            for j in range(len(scores))
            if relevance[j] < relevance[i]
        ]
        if rivals:
            total += document_weights[i] * v[i] * max(0.0, max(rivals) - s)
    return total


def pairwise(scores, relevance, document_weights, pair):
    pairs = ordered_pairs(relevance)
    return sum(document_weights[i] * pair(scores[i] - scores[j]) for i, j in pairs) / max(len(pairs), 1)


def hinge(scores, relevance, document_weights, margin=1.0):
    return pairwise(scores, relevance, document_weights, lambda d: max(0.0, margin - d))


def logistic(scores, relevance, document_weights):
    return pairwise(scores, relevance, document_weights, lambda d: softplus(-d))


def log_softmax(scores):
    top = max(scores)
    total = top + math.log(sum(math.exp(s - top) for s in scores))
    return [s - total for s in scores]


def softmax(scores, relevance, document_weights, target="softmax"):
    if not any(relevance):
        return 0.0
    wanted = [math.exp(x) for x in log_softmax(relevance)]
    if target == "relevance":
        wanted = [r / sum(relevance) for r in relevance]
    return -sum(w * t * x for w, t, x in zip(document_weights, wanted, log_softmax(scores), strict=True))


def listmle(scores, relevance, document_weights):
    if not ordered_pairs(relevance):
        return 0.0
    order = by_relevance(relevance)
    return -sum(document_weights[i] * log_softmax([scores[j] for j in order[p:]])[0] for p, i in enumerate(order))


def approx_ndcg(scores, relevance, document_weights, temperature=0.1):
    gains = [w * gain(r) for w, r in zip(document_weights, relevance, strict=True)]
    z = ideal_dcg(gains)
    if not ordered_pairs(relevance) or z == 0:
        return 0.0
    total = 0.0
    for i, s in enumerate(scores):
        others = [scores[j] for j in range(len(scores)) if j != i]
        rank = 1 + sum(math.exp(-softplus((s - o) / temperature)) for o in others)
        total += gains[i] * discount(rank) / z
    return 1 - total


def lambda_weight(ranks, relevance, i, j, variant, mu, k):
    """The weight of the pair (i, j) for unscaled gains."""
    if variant == "ndcg1":
        return gain(relevance[i]) * discount(ranks[i], k)
    if relevance[i] <= relevance[j]:
        return 0.0
    apart = abs(ranks[i] - ranks[j])
    scale = discount(apart, k) - discount(apart + 1, k)
    if variant == "ndcg2++":
        scale = mu * scale + abs(discount(ranks[i], k) - discount(ranks[j], k))
    return scale * (gain(relevance[i]) - gain(relevance[j]))


def lambda_loss(scores, relevance, document_weights, variant="ndcg2", sigma=1.0, mu=10.0, k=None):
    if not ordered_pairs(relevance):
        return 0.0
    z = ideal_dcg([gain(r) for r in relevance], k)
    ranks = {i: p for p, i in enumerate(by_score(scores), 1)}
    total = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if i != j:
                weight = document_weights[i] * lambda_weight(ranks, relevance, i, j, variant, mu, k)
                total += weight * softplus(-sigma * (scores[i] - scores[j])) / math.log(2)
    return total / z


def pointwise_squared(scores, relevance, document_weights):
    terms = [w * (s - r) ** 2 for s, r, w in zip(scores, relevance, document_weights, strict=True)]
    return sum(terms) / max(len(terms), 1)


def pointwise_logistic(scores, relevance, document_weights):
    each = zip(scores, relevance, document_weights, strict=True)
    terms = [w * softplus(-s if r > 0 else s) for s, r, w in each]
    return sum(terms) / max(len(terms), 1)
