"""Reading LETOR / SVMrank text: ``label qid:ID index:value … # comment``, one document a line."""

import codecs
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from torchrank.data.files import as_path
from torchrank.data.queries import QueryDataset
from torchrank.errors import DataError, check_type

#: beyond this a feature number is taken for an error of the file unless ``num_features`` says otherwise
MOST_FEATURES = 1_000_000
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DOCID = re.compile(rb"docid\s*=\s*(\S+)")
_LARGEST = 2**63 - 1


def read_letor(
    path: str | Path,
    *,
    num_features: int | None = None,
    groups: str | Path | None = None,
    labelled: bool = True,
    zero_based: bool = False,
    missing: float | None = None,
) -> QueryDataset:
    r"""Read a LETOR file.

    The lines of a query stand together. A feature that a line does not name is 0. Blank lines and lines that hold only
    a comment are passed over. A document's id is what its comment says after ``docid =`` or else the comment's first
    word, and without a comment the number of its line. Files compressed by gzip are read as they are.

    Args:
        path: the file.
        num_features: number of features; by default the highest that the file names. Give it for sparse files, so that
            training and test parts agree.
        groups: a side file as LightGBM writes it, with one number of documents a line; the lines then carry no qid, and
            the queries are numbered 1, 2, ….
        labelled: False for a file to be scored: a label may be absent, and one that is there is not looked at; the
            relevance is all zeros.
        zero_based: features are numbered from 0, as scikit-learn's ``dump_svmlight_file`` does by default, not from 1.
        missing: the number that the file writes where a feature is not known, read as 0, as a feature that a line does
            not name; Istella's files have 1.79769313486232e+308 there, which is infinity to a computer. NaN stands for
            nan in the file. None: every number is a value.

    Returns:
        the queries, with float32 features.

    Raises:
        DataError: the file cannot be read, or a line of it is wrong; the message names the file, the line and what is
            wrong: a label or feature that is no number, is not finite or (a label) lies below 0, features out of order
            or beyond ``num_features``, a missing or misplaced qid, a query whose lines do not stand together, group
            sizes that do not add up, or no document at all.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "train.txt"
        >>> _ = path.write_text("2 qid:7 1:0.5 3:1 # docid = A\n0 qid:7 2:0.25 # docid = B\n1 qid:9 1:1\n")
        >>> data = read_letor(path)
        >>> data
        QueryDataset(2 queries, 3 documents, 3 features)
        >>> data.query_ids.tolist(), data.document_ids.tolist(), data[0].features.tolist()
        ([7, 9], ['A', 'B', '3'], [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]])
    """
    from sklearn.datasets import load_svmlight_file

    if num_features is not None:
        check_type("num_features", num_features, int, "an int of at least 1")
    if num_features is not None and num_features < 1:
        raise DataError(f"num_features={num_features} must be at least 1")
    if missing is not None and (isinstance(missing, bool) or not isinstance(missing, int | float)):
        raise DataError(f"missing={missing!r}; give the number that stands for a missing value")
    path = as_path(path)
    side = None if groups is None else as_path(groups, "groups")
    scan = _Scan(path, grouped=groups is not None, labelled=labelled)
    try:
        # what stands for a missing value may be too large for single precision
        wide = np.float32 if missing is None else np.float64
        table, labels = load_svmlight_file(scan, dtype=wide, zero_based=zero_based)
    except DataError:
        raise
    except (ValueError, OverflowError, MemoryError) as error:
        reason = _explain(scan.content, grouped=scan.grouped, zero_based=zero_based) or str(error)
        raise DataError(f"{scan.here}: {reason}") from None
    if not scan.lines:
        raise DataError(f"{path} holds no documents")
    if missing is not None:
        table.data[np.isnan(table.data) if math.isnan(missing) else table.data == missing] = 0
        with np.errstate(over="ignore"):
            table = table.astype(np.float32)
    _check_values(scan, table.data, table.indptr, labels)
    width = _width(scan, table.indices, table.indptr, num_features, first=0 if zero_based else 1)
    table.resize(len(scan.lines), width)
    sizes = scan.sizes() if side is None else _read_groups(side, path, len(scan.lines))
    return QueryDataset(
        torch.from_numpy(table.toarray()),
        torch.from_numpy(np.asarray(labels, dtype=np.float32)),
        torch.from_numpy(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])),
        torch.tensor(list(scan.starts)) if groups is None else None,
        scan.document_ids,
    )


class _Scan(io.RawIOBase):
    """The file's lines as scikit-learn takes them, without comments; what it does not look at is checked in passing.

    scikit-learn asks for one line at a time, so when it refuses one, ``here`` and ``content`` are that line.
    """

    def __init__(self, path: Path, *, grouped: bool, labelled: bool) -> None:
        self.path = path
        self.grouped = grouped
        self.labelled = labelled
        self.number = 0
        self.content = b""
        self.lines: list[int] = []  # the number of each document's line
        self.document_ids: list[str] = []
        self.starts: dict[int, int] = {}  # query id to its first document
        self._query: int | None = None
        self._text = _text_lines(path)

    @property
    def here(self) -> str:
        return f"{self.path}, line {self.number}"

    def sizes(self) -> NDArray[np.int64]:
        return np.diff([*self.starts.values(), len(self.lines)])

    def __iter__(self) -> "_Scan":
        return self

    def __next__(self) -> bytes:
        for line in self._text:
            self.number += 1
            content, _, comment = line.partition(b"#")
            words = content.split(None, 2)
            if not words:
                continue
            if not self.labelled:  # a label of 0 in place of whatever is or is not there
                words = [b"0", *words] if b":" in words[0] else [b"0", *words[1:]]
                content = b" ".join(words)
            self.content = content
            if b"_" in content:  # Python's numbers may hold underscores, the format's may not
                self._refuse()
            if self.grouped and words[1:] and words[1].startswith(b"qid"):
                raise DataError(
                    f"{self.here}: the line carries a qid, but a side file gives the groups; use one of them"
                )
            if not self.grouped:
                self._see_query(words[1] if len(words) > 1 else b"")
            self.lines.append(self.number)
            self.document_ids.append(_document_id(comment) or str(self.number))
            return content
        raise StopIteration

    def _refuse(self) -> NoReturn:
        raise DataError(f"{self.here}: {_explain(self.content, grouped=self.grouped, zero_based=True)}")

    def _see_query(self, word: bytes) -> None:
        query = _query_number(word)
        if query is None:
            self._refuse()
        if query == self._query:
            return
        if query in self.starts:
            first = self.lines[self.starts[query]]
            raise DataError(
                f"{self.here}: query {query} comes back after other queries, its first line is {first}; "
                "put the lines of a query together"
            )
        self._query = query
        self.starts[query] = len(self.lines)


def _text_lines(path: Path) -> Iterator[bytes]:
    """Lines of a file, unpacked where it is gzipped."""
    number = 0
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            for line in gzip.GzipFile(fileobj=raw) if zipped else raw:
                number += 1
                # editors on Windows begin a file by a mark that says it is UTF-8
                yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}, after line {number}: the gzip stream is damaged or cut short ({error})") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _query_number(word: bytes) -> int | None:
    number = int(word[4:]) if re.fullmatch(rb"qid:[+-]?\d{1,19}", word) else _LARGEST + 1
    return number if abs(number) <= _LARGEST else None


def _document_id(comment: bytes) -> str:
    named = _DOCID.search(comment)
    word = named.group(1) if named else (comment.split(None, 1) or [b""])[0]
    return word.decode(errors="replace")


def _explain(content: bytes, *, grouped: bool, zero_based: bool) -> str:
    """Say what is wrong with a line, or nothing when it is as it should be."""
    label, *words = content.split()
    if b":" in label:
        return f"the line starts with {_show(label)}, not with a label; for a file without labels say labelled=False"
    if not _NUMBER.fullmatch(label):
        return f"the label {_show(label)} is not a number"
    if not grouped:
        if not words or not words[0].startswith(b"qid:"):
            got = f"{_show(words[0])} stands" if words else "the line ends"
            return f"{got} where qid:ID should; name the side file in groups if the file has no qid"
        if _query_number(words[0]) is None:
            return f"{_show(words[0])} is not a query number; it must be an integer of 64 bits"
        words = words[1:]
    before = -1 if zero_based else 0
    for word in words:
        index, colon, value = word.partition(b":")
        if not colon or not re.fullmatch(rb"\+?\d+", index):
            return f"{_show(word)} is not a feature; write index:value"
        if not _NUMBER.fullmatch(value):
            return f"the value of feature {index.decode()} is {_show(value)}, not a finite number"
        if int(index) <= before:
            if before <= 0:
                return "feature 0; if the file counts from 0, say zero_based=True"
            return f"feature {int(index)} follows feature {before}; features must be in order, each once"
        before = int(index)
        if before >= 2**31 - 1:
            return f"feature {before} is beyond what can be read"
    return ""


def _check_values(
    scan: _Scan, data: NDArray[np.float32], indptr: NDArray[np.int64], labels: NDArray[np.float64]
) -> None:
    """Refuse labels and features that are numbers and yet cannot be ranked by."""
    with np.errstate(over="ignore"):
        bad = ~(np.isfinite(labels.astype(np.float32)) & (labels >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{scan.path}, line {scan.lines[row]}: the label is {labels[row]:g}; labels must be finite and at least 0"
        )
    bad = ~np.isfinite(data)
    if bad.any():
        place = int(bad.argmax())
        row = int(np.searchsorted(indptr, place, side="right")) - 1
        raise DataError(
            f"{scan.path}, line {scan.lines[row]}: a feature is {data[place]:g} in single precision; it must be finite"
            " (where the file's number stands for a missing value, say so by missing=…; Istella's is"
            " 1.79769313486232e+308)"
        )


def _width(
    scan: _Scan, indices: NDArray[np.int64], indptr: NDArray[np.int64], num_features: int | None, *, first: int
) -> int:
    """Number of features, refusing a line that names more than there should be."""
    most = int(indices.max()) + 1 if len(indices) else 0
    limit = MOST_FEATURES if num_features is None else num_features
    if most > limit:
        row = int(np.searchsorted(indptr, int(indices.argmax()), side="right")) - 1
        why = f"num_features={num_features}" if num_features is not None else "give num_features if that is meant"
        raise DataError(
            f"{scan.path}, line {scan.lines[row]}: feature {most - 1 + first} is beyond the {limit} expected; {why}"
        )
    if num_features is None and most == 0:
        raise DataError(f"{scan.path} names no feature on any line; give num_features if all are 0")
    return most if num_features is None else num_features


def _read_groups(path: Path, data: Path, documents: int) -> list[int]:
    """Group sizes from a side file that must add up to the data file's documents."""
    sizes: list[int] = []
    for number, line in enumerate(_text_lines(path), 1):
        word = line.strip()
        if not word:
            continue
        if not re.fullmatch(rb"\d{1,18}", word) or int(word) < 1:
            raise DataError(f"{path}, line {number}: {_show(word)} is not a group size; it must be an integer above 0")
        sizes.append(int(word))
    if sum(sizes) != documents:
        raise DataError(f"{path}: the group sizes add up to {sum(sizes)}, but {data} holds {documents} documents")
    return sizes


def _show(word: bytes) -> str:
    text = word[:40].decode(errors="replace")
    return repr(text + "…" if len(word) > 40 else text)
