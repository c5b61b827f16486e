"""Prepared logs equal the log read at once, whatever the format, the ids and the number of partitions."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from torchrank.data import InteractionLog, prepare_log

GOOD = {"user": ["b", "a", "b", "c"], "item": [9, 9, 7, 8], "feedback": [1.0, 0.0, 5.0, 3.0], "time": [4, 1, 2, 3]}


def random_frame(rows=3000, users=200, items=60, seed=0):
    generator = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user": generator.integers(0, users, rows) * 3,
            "item": [f"item {k}" for k in generator.integers(0, items, rows)],
            "feedback": generator.integers(1, 6, rows),
            "time": generator.integers(0, 500, rows),
        }
    )


def assert_same(prepared, log):
    """A prepared log holds the same rows in the same order of each user, and numbers items alike."""
    whole = prepared.to_log()
    assert whole.item_ids.dtype == log.item_ids.dtype
    assert whole.item_ids.tolist() == log.item_ids.tolist()
    assert whole.user_ids.dtype == log.user_ids.dtype
    assert (len(prepared), prepared.num_users, prepared.num_items) == (len(log), log.num_users, log.num_items)
    user = log.user_index(whole.user_ids)
    assert sorted(user.tolist()) == list(range(log.num_users))
    order = np.argsort(user[whole.users], kind="stable")
    for name in ("items", "preferred", "feedback", "times"):
        there, expected = getattr(whole, name), getattr(log, name)
        assert there.dtype == expected.dtype, name
        assert there[order].tolist() == expected.tolist(), name
    assert np.array_equal(np.diff(whole.offsets), np.diff(log.offsets)[user])
    for number, part in enumerate(prepared.partitions()):
        first = prepared.user_starts[number]
        assert np.array_equal(
            part.users + first, whole.users[(whole.users >= first) & (whole.users < first + part.num_users)]
        )
        assert (np.diff(user[first : first + part.num_users]) > 0).all()  # by first appearance


frames = st.integers(1, 40).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "user": st.lists(st.sampled_from([5, -3, 2**40, 7, 0]), min_size=n, max_size=n),
            "item": st.lists(st.sampled_from(["x", "ü", "longer than twelve bytes"]), min_size=n, max_size=n),
            "feedback": st.lists(st.integers(1, 5), min_size=n, max_size=n),
            "time": st.lists(st.integers(0, 4) | st.integers(-(2**50), 2**50), min_size=n, max_size=n),
        }
    )
)


@settings(max_examples=20)
@given(frames, st.sampled_from([1, 3, 8]), st.sampled_from(["keep", "last"]))
def test_a_prepared_log_is_the_log(tmp_path_factory, columns, partitions, duplicates):
    folder = tmp_path_factory.mktemp("log")
    for kind in ("parquet", "csv"):
        path = folder / f"log.{kind}"
        getattr(pl.DataFrame(columns), f"write_{kind}")(path)
        options = {"positive_at": 4, "duplicates": duplicates}
        prepared = prepare_log(path, folder / kind, partitions=partitions, **options)
        assert_same(prepared, getattr(InteractionLog, f"from_{kind}")(path, **options))
        prepared.verify()
