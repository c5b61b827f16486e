"""LETOR text is read right, or refused with the file and the line."""

import gzip
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from tests.real_data import REAL_DATA, needs_real_data
from torchrank.data import read_letor
from torchrank.errors import DataError

GOOD = (
    "2 qid:10 1:0.5 3:1e-1 #docid = GX-1 inc = 1\n0 qid:10 2:-3 # other words\n\n# a remark\n1 qid:4 1:1\r\n0 qid:4\n"
)


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_plain_text(write):
    data = read_letor(write(GOOD))
    assert data.features.dtype == torch.float32
    torch.testing.assert_close(
        data.features, torch.tensor([[0.5, 0, 0.1], [0, -3, 0], [1, 0, 0], [0, 0, 0]], dtype=torch.float32)
    )
    assert data.relevance.tolist() == [2, 0, 1, 0]
    assert data.offsets.tolist() == [0, 2, 4]
    assert data.query_ids.tolist() == [10, 4]
    assert data.document_ids.tolist() == ["GX-1", "other", "5", "6"]


def test_gzip_and_the_last_line_without_an_end(write):
    for text in (GOOD, GOOD.rstrip("\n")):
        data = read_letor(write(gzip.compress(text.encode()), "data.txt.gz"))
        assert data.document_ids.tolist() == ["GX-1", "other", "5", "6"]


def test_num_features_widens_and_limits(write):
    path = write(GOOD)
    assert read_letor(path, num_features=7).features.shape == (4, 7)
    assert (read_letor(path, num_features=7).features[:, 3:] == 0).all()
    with pytest.raises(DataError, match=r"data\.txt, line 1: feature 3 is beyond the 2 expected; num_features=2"):
        read_letor(path, num_features=2)
    with pytest.raises(DataError, match="num_features=0"):
        read_letor(path, num_features=0)
    assert read_letor(write("1 qid:1\n"), num_features=2).features.tolist() == [[0, 0]]


def test_counting_from_zero(write):
    path = write("1 qid:1 0:5 2:1\n")
    assert read_letor(path, zero_based=True).features.tolist() == [[5, 0, 1]]
    with pytest.raises(DataError, match=r"line 1: feature 0; .*zero_based=True"):
        read_letor(path)


def test_side_file_of_groups(write):
    path = write("1 1:1\n0 1:2\n2 2:3\n", "rank.train")
    data = read_letor(path, groups=write("1\n2\n", "rank.train.query"))
    assert data.offsets.tolist() == [0, 1, 3]
    assert data.query_ids.tolist() == [1, 2]
    assert data.document_ids.tolist() == ["1", "2", "3"]
    with pytest.raises(DataError, match=r"rank\.train\.query: the group sizes add up to 4, but .*rank.train holds 3"):
        read_letor(path, groups=write("2\n2\n", "rank.train.query"))
    for bad in ("2\n-1\n", "2\nx\n", "3\n0\n"):
        with pytest.raises(DataError, match=r"rank.train.query, line 2: .* is not a group size"):
            read_letor(path, groups=write(bad, "rank.train.query"))
    with pytest.raises(DataError, match="line 2: the line carries a qid, but a side file"):
        read_letor(write("1 1:1\n0 qid:3 1:2\n"), groups=write("2\n", "q"))
    with pytest.raises(DataError, match="line 1: '1:1' stands where qid:ID should; name the side file in groups"):
        read_letor(path)


def test_files_without_labels(write):
    bare = "qid:3 1:1 #docid = a\nqid:3 1:2\n"
    for text in (bare, "? qid:3 1:1 #docid = a\n5 qid:3 1:2\n"):
        data = read_letor(write(text), labelled=False)
        assert data.relevance.tolist() == [0, 0]
        assert data.features.tolist() == [[1], [2]]
        assert data.document_ids.tolist() == ["a", "2"]
    with pytest.raises(DataError, match=r"line 1: the line starts with 'qid:3', not with a label; .*labelled=False"):
        read_letor(write(bare))
    grouped = read_letor(write("1:4\n2:1\n"), labelled=False, groups=write("2\n", "q"))
    assert grouped.features.tolist() == [[4, 0], [0, 1]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x qid:1 1:1", "the label 'x' is not a number"),
        ("1_0 qid:1 1:1", "the label '1_0' is not a number"),
        ("nan qid:1 1:1", "the label is nan; labels must be finite and at least 0"),
        ("-1 qid:1 1:1", "the label is -1; labels must be finite and at least 0"),
        ("1e39 qid:1 1:1", r"the label is 1e\+39; labels must be finite"),
        ("1", "the line ends where qid:ID should"),
        ("1 1:1", "'1:1' stands where qid:ID should"),
        ("1 qid:x 1:1", "'qid:x' is not a query number"),
        ("1 qid: 1:1", "'qid:' is not a query number"),
        ("1 qid:99999999999999999999 1:1", "is not a query number"),
        ("1 qid:1_0 1:1", "'qid:1_0' is not a query number"),
        ("1 qidx:1 1:1", "'qidx:1' stands where qid:ID should"),
        ("1 qid:1 1:1 qid:2", "'qid:2' is not a feature"),
        ("1 qid:1 1:abc", "the value of feature 1 is 'abc', not a finite number"),
        ("1 qid:1 1:0_1", "the value of feature 1 is '0_1', not a finite number"),
        ("1 qid:1 1:", "the value of feature 1 is '', not a finite number"),
        ("1 qid:1 1:0.5:2", "the value of feature 1 is '0.5:2'"),
        ("1 qid:1 1:nan", "a feature is nan in single precision; it must be finite"),
        ("1 qid:1 1:-inf", "a feature is -inf in single precision"),
        ("1 qid:1 1:1e39", "a feature is inf in single precision"),
        ("1 qid:1 7", "'7' is not a feature; write index:value"),
        ("1 qid:1 :7", "':7' is not a feature"),
        ("1 qid:1 a:7", "'a:7' is not a feature"),
        ("1 qid:1 -1:7", "'-1:7' is not a feature"),
        ("1 qid:1 0:7", "feature 0; if the file counts from 0"),
        ("1 qid:1 2:7 1:7", "feature 1 follows feature 2; features must be in order"),
        ("1 qid:1 2:7 2:7", "feature 2 follows feature 2"),
        ("1 qid:1 1000001:7", "feature 1000001 is beyond the 1000000 expected; give num_features"),
        ("1 qid:1 99999999999:7", "feature 99999999999 is beyond what can be read"),
        ("1 qid:1 1:7\0", "is '7\\\\x00', not a finite number"),
        ("1 qid:5 1:1", "query 5 comes back after other queries, its first line is 1; put the lines"),
    ],
)
def test_a_bad_line_is_named(write, line, message):
    path = write(f"0 qid:5 1:1\n# remark\n0 qid:6 1:1\n{line}\n0 qid:9 1:1\n")
    with pytest.raises(DataError, match=rf"data\.txt, line 4: .*{message}"):
        read_letor(path)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark\n", b"\x1f\x8b" + gzip.compress(b"", mtime=0)[2:]])
def test_an_empty_file_is_refused(write, text):
    with pytest.raises(DataError, match=r"data\.txt holds no documents"):
        read_letor(write(text))


def test_a_file_without_any_feature_is_refused(write):
    with pytest.raises(DataError, match="names no feature on any line"):
        read_letor(write("1 qid:1\n"))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match=r"absent\.txt cannot be read: No such file"):
        read_letor(tmp_path / "absent.txt")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_letor(tmp_path)


def test_a_cut_or_damaged_gzip_file_is_named(write):
    body = "".join(f"1 qid:{q} 1:{q}.{q * 7919 % 997}\n" for q in range(20_000))
    whole = gzip.compress(body.encode())
    for cut in (5, 12, len(whole) // 2, len(whole) - 3):
        with pytest.raises(DataError, match=r"data\.gz, after line \d+: the gzip stream is damaged or cut short"):
            read_letor(write(whole[:cut], "data.gz"))
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 0xFF
    with pytest.raises(DataError, match=r"data\.gz, (after )?line"):
        read_letor(write(bytes(spoilt), "data.gz"))


def test_agrees_with_what_scikit_learn_writes(tmp_path):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 6)).astype(np.float32) * (rng.random((40, 6)) < 0.5)
    labels, queries = rng.integers(0, 5, 40), np.repeat(rng.permutation(8), 5)
    dump_svmlight_file(features, labels, str(tmp_path / "x"), query_id=queries, zero_based=True)
    data = read_letor(tmp_path / "x", zero_based=True, num_features=6)
    assert np.array_equal(data.features.numpy(), features)
    assert data.relevance.tolist() == labels.tolist()
    assert data.query_ids.tolist() == queries[::5].tolist()


def expected(text, most=1_000_000):
    """A second, plain reader: (features, labels, query of each line), or None where the text is not in the format."""
    rows, labels, queries = [], [], []
    number = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    for line in text.split("\n"):
        words = [w for w in re.split(r"[ \t\r\v\f]+", line.split("#")[0]) if w]
        if not words:
            continue
        row = {}
        if not re.fullmatch(number, words[0], re.A) or not re.fullmatch(r"qid:[+-]?\d+", " ".join(words[1:2]), re.A):
            return None
        for word in words[2:]:
            found = re.fullmatch(rf"(\+?\d+):({number})", word, re.A)
            if not found or not max(row, default=0) < int(found[1]) <= most:
                return None
            row[int(found[1])] = np.float32(float(found[2]))
        with np.errstate(over="ignore"):
            label = np.float32(float(words[0]))
        if not np.isfinite([label, *row.values()]).all() or float(words[0]) < 0 or abs(int(words[1][4:])) >= 2**63:
            return None
        query = int(words[1][4:])
        if query in queries[:-1] and queries[-1] != query:
            return None
        rows, labels, queries = [*rows, row], [*labels, label], [*queries, query]
    width = max((max(row, default=0) for row in rows), default=0)
    if width == 0:
        return None
    table = np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        for j, value in row.items():
            table[i, j - 1] = value
    return table, labels, queries


PIECES = [
    "qid:",
    "qid",
    ":",
    " ",
    "\t",
    "\n",
    "\r",
    "#",
    "-",
    "+",
    ".",
    "_",
    "e",
    "1",
    "0",
    "7",
    "nan",
    "inf",
    "\0",
    "é",
]
SEED = "2 qid:10 1:0.5 3:1e-1 #docid = a\n0 qid:10 2:-3.\n1 qid:4 1:1\r\n0 qid:4 2:.5\n3 qid:5 1:2\n"


@st.composite
def mutated(draw):
    """LETOR text with up to four words or characters put in, taken out or moved."""
    text = SEED
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 3))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[at + cut :]
    if draw(st.booleans()):
        text = "\n".join(draw(st.permutations(text.split("\n"))))
    return text


@settings(max_examples=400)
@given(mutated())
def test_mutated_text_is_read_right_or_refused(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.txt"
        path.write_bytes(text.encode())
        want = expected(text)
        if want is None:
            with pytest.raises(DataError, match=r"mutated\.txt"):
                read_letor(path)
            return
        data = read_letor(path)
        table, labels, queries = want
        assert np.array_equal(data.features.numpy(), table)
        assert data.relevance.tolist() == [float(x) for x in labels]
        assert np.repeat(data.query_ids.numpy(), data.lengths.numpy()).tolist() == queries


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        for options in ({}, {"labelled": False}, {"groups": path}, {"zero_based": True}):
            try:
                read_letor(path, **options)
            except DataError:
                continue


@needs_real_data
def test_mq2008():
    parts = [read_letor(REAL_DATA / "mq2008" / f"S{i}.txt.gz") for i in range(1, 6)]
    assert [(len(p), len(p.features)) for p in parts] == [
        (157, 2933),
        (157, 3635),
        (157, 3062),
        (157, 2707),
        (156, 2874),
    ]
    assert [p.describe()["labels"] for p in parts][:2] == [{0: 2316, 1: 427, 2: 190}, {0: 3080, 1: 385, 2: 170}]
    first = parts[0]
    assert first.num_features == 46
    assert first.query_ids[0] == 10002
    assert first.document_ids[0] == "GX008-86-4444840"
    assert first.features[0, :3].tolist() == torch.tensor([0.007477, 0, 1]).tolist()


@needs_real_data
def test_lightgbm_example_with_its_side_files():
    folder = REAL_DATA / "lightgbm-lambdarank"
    train, test = (read_letor(folder / f"rank.{p}.gz", groups=folder / f"rank.{p}.query") for p in ("train", "test"))
    assert train.describe()["labels"] == {0: 645, 1: 1211, 2: 858, 3: 222, 4: 69}
    assert (len(train), len(train.features), len(test), len(test.features)) == (201, 3005, 50, 768)
    assert train.num_features == test.num_features == 300


@needs_real_data
def test_trec_news_agrees_with_its_judgements():
    folder = REAL_DATA / "trec-news-2018"
    parts = [read_letor(folder / f"trec_news_2018.{p}") for p in ("train", "test")]
    judged = [line.split() for line in (folder / "newsir18-entity.qrel").read_text().splitlines()]
    for part in parts:
        assert part.num_features == 5
        for query in part:
            want = sorted(float(gain) for q, _, _, gain in judged if int(q) == query.query_id)
            assert sorted(query.relevance.tolist()) == want
    assert sum(map(len, parts)) == 50


MSLR = (
    "2 qid:1 1:3 2:3 3:0 4:0 5:3 6:1 7:1 \n"  # as published: every feature, a space at the end, no comment
    "0 qid:1 1:0 2:-0.5 3:0 4:0 5:0 6:0 7:2.5e+003 \n"
    "4 qid:16 1:1 2:0 3:0 4:0 5:1 6:1 7:0 \n"
)
YAHOO = (
    "1 qid:1 3:0.89028 7:0.75088 699:0.05\n"  # sparse: a feature of 0 is not named, 700 in both sets together
    "0 qid:1 7:0.12\n"
    "3 qid:2 10:1\n"
)
ISTELLA = (
    "0 qid:1 1:1.79769313486232e+308 2:0.5 3:12 \n2 qid:1 1:3 2:1.79769313486232e+308 3:0 \n1 qid:2 1:0 2:0.25 3:7 \n"
)


def test_the_layout_of_mslr_web(write):
    data = read_letor(write(MSLR))
    assert (len(data), data.num_features, data.relevance.tolist()) == (2, 7, [2, 0, 4])
    assert data.features[1].tolist() == [0, -0.5, 0, 0, 0, 0, 2500]


def test_the_layout_of_yahoo(write):
    train, test = (read_letor(write(text), num_features=700) for text in (YAHOO, YAHOO.replace("699", "412")))
    assert train.num_features == test.num_features == 700
    assert train.features[0].nonzero().squeeze(1).tolist() == [2, 6, 698]
    assert train.relevance.tolist() == [1, 0, 3]
    assert read_letor(write(YAHOO)).num_features == 699  # the highest named: why num_features should be said


def test_the_layout_of_istella(write):
    path = write(ISTELLA)
    with pytest.raises(DataError, match=r"line 1: a feature is inf .* missing=…; Istella's is 1\.79769313486232e\+308"):
        read_letor(path)
    data = read_letor(path, missing=1.79769313486232e308)
    assert data.features.dtype == torch.float32
    assert data.features.tolist() == [[0, 0.5, 12], [3, 0, 0], [0, 0.25, 7]]
    with pytest.raises(DataError, match="a feature is inf"):
        read_letor(path, missing=-1)
    other = read_letor(write("1 qid:1 1:-999 2:0.1\n"), missing=-999)
    assert torch.equal(other.features, torch.tensor([[0, 0.1]]))
    assert read_letor(write("1 qid:1 1:nan 2:2\n"), missing=float("nan")).features.tolist() == [[0, 2]]
    with pytest.raises(DataError, match="missing='inf'"):
        read_letor(path, missing="inf")


def test_a_mark_of_utf_8_at_the_beginning(write):
    marked = b"\xef\xbb\xbf"
    want = read_letor(write(GOOD))
    for text in (marked + GOOD.encode(), gzip.compress(marked + GOOD.encode())):
        data = read_letor(write(text))
        assert torch.equal(data.features, want.features)
        assert data.relevance.tolist() == want.relevance.tolist()
    sizes = write(marked + b"1\n1\n", "sizes")
    assert len(read_letor(write(marked + b"1 1:1\n0 1:2\n"), groups=sizes)) == 2
    with pytest.raises(DataError, match="line 2"):  # a mark anywhere else is no mark
        read_letor(write(b"1 qid:1 1:1\n" + marked + b"1 qid:1 1:1\n"))
