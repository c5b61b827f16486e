"""Search a trained model's items approximately, with faiss.

    python docs/tutorials/approximate_search.py

A factorization scores a user and an item by an inner product, so its best items are what a search for the largest inner
product finds. ``torchrank export --items items.parquet --users users.parquet`` writes a checkpoint's vectors; here they
are made in memory. An index over cells looks at some cells alone: the more, the closer it comes to the exact search,
and the slower. Faiss is the extra ``torchrank[search]``.
"""

import faiss

from torchrank.data import Catalogue, make_interactions
from torchrank.training import SAROSModule, fit_interactions, recommend, vector_tables


def main(*, items=2000, epochs=4, k=10, seed=0):
    """Train, index the items, and ask how many of the model's best items each search finds."""
    log, _ = make_interactions(num_users=300, num_items=items, num_interactions=20_000, seed=seed)
    module = SAROSModule(dim=16, init="normal", item_bias=True, seed=seed)
    fit_interactions(module, log, epochs=epochs)
    catalogue = Catalogue.from_log(log)
    users, shown = vector_tables(module.scorer, catalogue)
    queries, vectors, names = users["vector"].to_numpy(), shown["vector"].to_numpy(), shown["item"].to_numpy()

    exact = faiss.IndexFlatIP(vectors.shape[1])
    exact.add(vectors)
    # Faiss numbers vectors as they were added: names[j] is the item of vector j.
    found = {"exact": names[exact.search(queries, k)[1]]}

    cells = 32
    quantizer = faiss.IndexFlatIP(vectors.shape[1])
    approximate = faiss.IndexIVFFlat(quantizer, vectors.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
    approximate.cp.seed = seed
    approximate.train(vectors)
    approximate.add(vectors)
    for probes in (1, 4, cells):
        approximate.nprobe = probes
        found[f"{probes} of {cells} cells"] = names[approximate.search(queries, k)[1]]

    # The index knows nothing of what a user has seen: ask it for more, and leave those out.
    best = recommend(module.scorer, catalogue, users["user"], k=k, exclude_seen=False)
    wanted = best["item"].to_numpy().reshape(-1, k)
    return {name: overlap(rows, wanted) for name, rows in found.items()}


def overlap(found, wanted):
    """Say which share of the wanted items of each row, (B, k), was found."""
    return float((found[:, :, None] == wanted[:, None, :]).any(1).mean())


if __name__ == "__main__":
    for name, share in main().items():
        print(f"{name:>16}: {share:.3f}")
