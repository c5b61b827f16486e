"""Tables of the vectors of users and items, for search by the largest inner product."""

import numpy as np
import polars as pl
from torch import nn

from torchrank.data.catalogue import Catalogue
from torchrank.errors import DataError
from torchrank.models.serving import search_vectors


def vector_tables(scorer: nn.Module, catalogue: Catalogue) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Vectors of the users and items of a training log, by original ids, whose inner products are the scores.

    Items that the log has shown to nobody are left out, as :func:`torchrank.recommend` leaves them out, and so are
    users without an interaction: what was learned of them means nothing.

    Args:
        scorer: what :func:`torchrank.models.search_vectors` takes.
        catalogue: of the log it was trained on.

    Returns:
        users with columns ``user``, ``number`` (the internal one) and ``vector``, a list of d' float32; items with
        ``item``, ``number`` and ``vector``.

    Raises:
        TorchRankError: a scorer without such vectors.
        DataError: a catalogue of another number of users or items.

    Example:
        >>> from torchrank.data import make_interactions
        >>> from torchrank.models import Factorization
        >>> log, _ = make_interactions(num_users=20, num_items=30, num_interactions=200)
        >>> users, items = vector_tables(Factorization(20, 30, 4), Catalogue.from_log(log))
        >>> users.columns, items["vector"].dtype
        (['user', 'number', 'vector'], Array(Float32, shape=(4,)))
    """
    both = search_vectors(scorer)
    if (len(both[0]), len(both[1])) != (catalogue.num_users, catalogue.num_items):
        raise DataError(
            f"the scorer has {len(both[0])} users and {len(both[1])} items, the catalogue {catalogue.num_users} and"
            f" {catalogue.num_items}; give the catalogue of the scorer's own log"
        )
    known = (np.flatnonzero(np.diff(catalogue.offsets)), np.flatnonzero(catalogue.shown))
    tables = []
    for name, ids, numbers, vectors in zip(
        ("user", "item"), (catalogue.user_ids, catalogue.item_ids), known, both, strict=True
    ):
        values = vectors.float().cpu().numpy()[numbers]
        column = pl.Series(values, dtype=pl.Array(pl.Float32, values.shape[1]))
        tables.append(pl.DataFrame({name: pl.Series(ids[numbers]), "number": numbers, "vector": column}))
    return tables[0], tables[1]
