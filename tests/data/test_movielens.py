import gzip

import pytest

from tests.real_data import REAL_DATA, needs_real_data
from torchrank.data import read_movielens
from torchrank.errors import DataError

FORMATS = {
    "u.data": "196\t242\t3\t881250949\n186\t302\t5\t891717742\n196\t377\t4\t878887116\n",
    "ratings.dat": "196::242::3::881250949\n186::302::5::891717742\n196::377::4::878887116\n",
    "ratings.csv": "userId,movieId,rating,timestamp\n"
    "196,242,3.0,881250949\n186,302,5.0,891717742\n196,377,4,878887116\n",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_published_format_gives_one_log(tmp_path, name, packed):
    text = FORMATS[name].encode()
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(text) if packed else text)
    for place in (path, tmp_path):
        log = read_movielens(place)
        assert log.user_ids.tolist() == [196, 186]
        assert log.item_ids[log.items].tolist() == [377, 242, 302]
        assert log.preferred.tolist() == [True, False, True]
        assert log.feedback.tolist() == [4, 3, 5]
        assert log.times.tolist() == [878887116, 881250949, 891717742]
    assert read_movielens(path, positive_at=5).preferred.tolist() == [False, False, True]


def test_what_is_no_movielens_data_is_named(tmp_path):
    with pytest.raises(DataError, match=r"holds none of u\.data, ratings\.dat, ratings\.csv"):
        read_movielens(tmp_path)
    with pytest.raises(DataError, match="not named like"):
        read_movielens(tmp_path / "ratings.txt")
    with pytest.raises(DataError, match="there is no"):
        read_movielens(tmp_path / "u.data")
    (tmp_path / "u.data").write_text("1::2::3::4\n")
    with pytest.raises(DataError, match=r"u\.data (does not read as CSV|has 1 null)"):
        read_movielens(tmp_path)


@needs_real_data
def test_movielens_100k_as_published():
    log = read_movielens(REAL_DATA / "movielens-100k")
    assert (len(log), log.num_users, log.num_items) == (100_000, 943, 1682)
    assert (log.user_ids[0], log.item_ids[0], log.feedback.mean()) == (196, 242, 3.52986)


@needs_real_data
def test_movielens_1m_as_published():
    log = read_movielens(REAL_DATA / "movielens-1m" / "ratings_users_1_2999.dat.gz", duplicates="error")
    assert (len(log), log.num_users, log.num_items) == (487_650, 2999, 3615)
