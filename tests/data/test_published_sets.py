"""Readers of the published comparison's data sets, on hand-made files of their layouts."""

import gzip

import numpy as np
import pytest

from torchrank.data import read_kasandr, read_netflix, read_outbrain, read_pandor, read_published
from torchrank.data.published_sets import DATASETS
from torchrank.errors import DataError, TorchRankError

HEAD = "userid\tofferid\tcountrycode\tcategory\tmerchant\tutcdate\trating\n"
KASANDR = {
    "train_de.csv": HEAD
    + "fa93\tc5f6\tde\t100020213\tf3c9\t2016-06-14 17:28:47.0\t0\n"
    + "81f0\tc5f6\tde\t100020213\tf3c9\t2016-06-14 17:27:00.0\t0\n"
    + "fa93\t0576\tde\t100020213\tf3c9\t2016-06-14 17:28:40.0\t1\n",
    "test_de.csv": HEAD + "fa93\t0700\tde\t100020213\tac26\t2016-06-29 08:00:00.0\t1\n",
}
OUTBRAIN = {
    "clicks_train.csv": "display_id,ad_id,clicked\n1,42337,0\n1,144739,1\n2,125211,0\n2,308455,1\n3,42337,1\n",
    "events.csv": "display_id,uuid,document_id,timestamp,platform,geo_location\n"
    "2,79a85f,1794259,81,2,US>CA>807\n1,cb8c55,379743,61,3,US>SC>519\n3,cb8c55,7,60,3,\n",
}
NETFLIX = {
    "mv_0000001.txt": "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n",
    "mv_0000002.txt": "2:\n1488844,4,2005-01-02\n",
}


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_kasandr(tmp_path, packed):
    log = read_kasandr(write(tmp_path, {name + packed: text for name, text in KASANDR.items()}))
    assert log.user_ids.tolist() == ["fa93", "81f0"]
    assert log.item_ids[log.items].tolist() == ["0576", "c5f6", "0700", "c5f6"]
    assert log.preferred.tolist() == [True, False, True, False]
    assert log.times[2] == np.datetime64("2016-06-29T08:00:00")
    train = read_kasandr(tmp_path / f"train_de.csv{packed}")
    assert len(train) == 3


def test_ids_that_are_numbers_in_one_file_only_stay_what_they_are(tmp_path):
    # all offers of the second file are whole numbers, those of the first are not
    files = {**KASANDR, "test_de.csv": HEAD + "7\t12\tde\t1\tm\t2016-06-29 08:00:00.0\t1\n"}
    log = read_kasandr(write(tmp_path, files))
    assert log.user_ids.tolist() == ["fa93", "81f0", "7"]
    assert log.item_ids.tolist() == ["c5f6", "0576", "12"]


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_outbrain(tmp_path, packed):
    log = read_outbrain(write(tmp_path, {name + packed: text for name, text in OUTBRAIN.items()}))
    assert log.user_ids.tolist() == ["cb8c55", "79a85f"]
    assert log.item_ids[log.items].tolist() == [42337, 42337, 144739, 125211, 308455]
    assert log.preferred.tolist() == [True, False, True, False, True]
    assert log.times.tolist() == [60, 61, 61, 81, 81]


@pytest.mark.parametrize("layout", ["flat", "training_set", "combined", "one file"])
def test_netflix(tmp_path, layout):
    names = {"flat": "{}", "training_set": "training_set/{}", "one file": "{}"}
    if layout == "combined":
        write(
            tmp_path, {"combined_data_1.txt": "".join(NETFLIX.values()), "combined_data_2.txt": "9:\n5,2,2001-01-01\n"}
        )
    else:
        write(tmp_path, {names[layout].format(name): text for name, text in NETFLIX.items()})
    log = read_netflix(tmp_path / "mv_0000001.txt" if layout == "one file" else tmp_path)
    assert log.user_ids[:2].tolist() == [1488844, 822109]
    assert log.preferred.sum() == (1 if layout == "one file" else 2)
    if layout != "one file":
        assert log.item_ids[log.items][:2].tolist() == [2, 1]
        assert log.times[0] == np.datetime64("2005-01-02")
    assert len(log) == {"one file": 2, "combined": 4}.get(layout, 3)
    assert read_netflix(tmp_path / "mv_0000001.txt", positive_at=3).preferred.all() if layout == "flat" else True


def test_many_netflix_files_are_read_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("torchrank.data.netflix._TOGETHER", 30)
    files = {f"mv_{film:07}.txt": f"{film}:\n7,{1 + film % 5},2005-01-{film:02}\n" for film in range(1, 12)}
    log = read_netflix(write(tmp_path, files))
    assert log.item_ids.tolist() == list(range(1, 12))
    assert log.feedback.tolist() == [1 + film % 5 for film in range(1, 12)]


def test_pandor_has_columns_to_be_named(tmp_path):
    log = read_pandor(write(tmp_path, {"a.csv": KASANDR["train_de.csv"], "b.tsv.gz": KASANDR["test_de.csv"]}))
    assert len(log) == 4
    text = KASANDR["train_de.csv"].replace("userid", "uid").replace("\t", ",")
    assert len(read_pandor(write(tmp_path, {"c.txt": text}) / "c.txt", user="uid", separator=",")) == 3
    with pytest.raises(DataError, match=r"c\.txt has no column 'userid'.*user="):
        read_pandor(tmp_path / "c.txt", separator=",")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no \.csv"):
        read_pandor(tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("train_de.csv", None, r"holds no train_de\.csv"),
        ("test_de.csv", ("rating\n", "click\n"), r"test_de\.csv has no column 'rating'; its columns are 'userid'"),
        ("test_de.csv", ("\t1\n", "\tyes\n"), r"row 1 of .*test_de\.csv: rating 'yes' is not a number"),
        ("train_de.csv", ("81f0\t", "\t"), r"row 2 of .*train_de\.csv has no userid"),
        ("test_de.csv", ("2016-06-29", "29.6.16"), r"row 1 of .*test_de\.csv: utcdate '29\.6\.16 08"),
    ],
)
def test_kasandr_that_is_not_as_published(tmp_path, name, change, told):
    write(tmp_path, KASANDR)
    spoil(tmp_path / name, change)
    with pytest.raises(DataError, match=told):
        read_kasandr(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("events.csv", None, r"holds no events\.csv"),
        ("events.csv", ("uuid", "user"), r"events\.csv has no column 'uuid'"),
        ("clicks_train.csv", ("308455,1", "308455,x"), r"row 4 of .*clicks_train\.csv: clicked 'x' is not a number"),
        ("clicks_train.csv", ("\n3,", "\n4,"), r"row 5 of .*clicks_train\.csv: display_id 4 is not in .*events\.csv"),
        ("events.csv", ("\n3,", "\n2,"), r"row 3 of .*events\.csv: display_id 2 occurs before"),
        ("events.csv", (",61,", ",soon,"), r"row 2 of .*events\.csv: timestamp 'soon' is not a whole number"),
        ("clicks_train.csv", ("\n2,125211", "\nb,125211"), r"row 3 of .*clicks_train\.csv: display_id 'b'"),
        ("events.csv", (",79a85f,", ",,"), r"row 1 of .*events\.csv has no uuid"),
    ],
)
def test_outbrain_that_is_not_as_published(tmp_path, name, change, told):
    write(tmp_path, OUTBRAIN)
    spoil(tmp_path / name, change)
    with pytest.raises(DataError, match=told):
        read_outbrain(tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("2:\n", ""), r"line 1 of .*mv_0000002\.txt: '1488844,4,2005-01-02' is neither.*first line must be MovieID:"),
        (("2:\n", "two:\n"), r"line 1 of .*mv_0000002\.txt: 'two:'"),
        ((",4,", ",6,"), r"line 2 of .*mv_0000002\.txt: '1488844,6,2005-01-02'.*rating from 1 to 5"),
        ((",4,", ",,"), r"line 2 of .*mv_0000002\.txt"),
        (("2005-01-02", "02/01/2005"), r"line 2 of .*mv_0000002\.txt: '1488844,4,02/01/2005'"),
        (("1488844", "x"), r"line 2 of .*mv_0000002\.txt"),
        (("2005-01-02", "2005-01-02,9"), r"line 2 of .*mv_0000002\.txt: '1488844,4,2005-01-02,9' is neither"),
    ],
)
def test_netflix_that_is_not_as_published(tmp_path, change, told):
    write(tmp_path, NETFLIX)
    spoil(tmp_path / "mv_0000002.txt", change)
    with pytest.raises(DataError, match=told):
        read_netflix(tmp_path)


def spoil(path, change):
    if change is None:
        path.unlink()
        return
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))


@pytest.mark.parametrize("read", [read_kasandr, read_netflix, read_pandor])
def test_nothing_there(tmp_path, read):
    with pytest.raises(DataError, match="there is no"):
        read(tmp_path / "absent")
    if read is read_netflix:
        with pytest.raises(DataError, match=r"holds neither training_set/mv_"):
            read(tmp_path)


def test_users_of_one_kind_only_are_left_out(tmp_path):
    log = read_published("kasandr", write(tmp_path, KASANDR))  # 81f0 clicked nothing
    assert log.user_ids.tolist() == ["fa93"]
    assert log.item_ids.tolist() == ["c5f6", "0576", "0700"]
    assert log.item_ids[log.items].tolist() == ["0576", "c5f6", "0700"]
    assert log.offsets.tolist() == [0, 3]
    assert [len(part) for part in log.split_per_user(train=0.8)] == [2, 1]


def test_all_users_of_movielens_are_kept_and_some_can_be_drawn(tmp_path):
    lines = [
        f"{user}::{item}::{1 + (user + item) % 5}::{user * 100 + item}" for user in range(9) for item in range(user)
    ]
    (tmp_path / "ratings.dat").write_text("\n".join(lines) + "\n")
    log = read_published("movielens-1m", tmp_path)
    assert log.num_users == 8
    some, same, other = (read_published("movielens-1m", tmp_path, users=3, seed=seed) for seed in (1, 1, 2))
    assert some.num_users == 3
    assert some.user_ids.tolist() == same.user_ids.tolist() != other.user_ids.tolist()
    for user in some.user_ids:
        rows = [part.where(part.user_ids[part.users] == user) for part in (log, some)]
        assert rows[0].item_ids[rows[0].items].tolist() == rows[1].item_ids[rows[1].items].tolist()
    assert some.num_items == len(np.unique(some.items)) == some.items.max() + 1


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(TorchRankError, match="did you mean 'kasandr'"):
        read_published("kassandr", tmp_path)
    with pytest.raises(TorchRankError, match="users=0"):
        read_published("kasandr", tmp_path, users=0)
    for name, chosen in DATASETS.items():
        with pytest.raises(TorchRankError, match=r"there is no .*To get") as told:
            read_published(name, tmp_path / "absent")
        assert chosen.get in str(told.value)
    alone = {"train_de.csv": HEAD + "a\tb\tde\t1\tm\t2016-06-14 17:28:47.0\t0\n", "test_de.csv": HEAD}
    with pytest.raises(DataError, match="no user with a preferred item"):
        read_published("kasandr", write(tmp_path, alone))
