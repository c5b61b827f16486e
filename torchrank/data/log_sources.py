"""The files of a large log in pieces of bounded size: what each piece is, and its rows batch by batch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from torchrank.data.files import log_format
from torchrank.data.tables import Table, require_columns
from torchrank.errors import DataError

#: rows of one piece of a Parquet file: what a stopped run may have to do again
_PIECE_ROWS = 4_000_000
#: bytes of a CSV file read at once; Arrow reads some thirty such blocks ahead
_CSV_BLOCK = 1 << 20
#: rows looked at to guess the size of all
_SAMPLE_ROWS = 20_000


class Piece(NamedTuple):
    """A part of a log that one process reads from one end to the other.

    Attributes:
        path: the file.
        groups: row groups of a Parquet file; None for a whole CSV file.
        first_row: rows of the file before these.
        constants: columns whose value the folder's names tell.
    """

    path: str
    groups: list[int] | None
    first_row: int
    constants: dict[str, Any]


class Source(NamedTuple):
    """A log of one or more files.

    Attributes:
        pieces: in order of the log.
        schema: types of the columns of users, items, feedback and times, by these names in the files; text in CSV.
        rows: how many there are; a guess for CSV.
        row_bytes: mean size of a row in memory, by the first rows of each file.
        files: every file with its size and time of change, which tell whether it is still the same.
        separator: between values of CSV files, None for Parquet.
    """

    pieces: list[Piece]
    schema: pa.Schema
    rows: int
    row_bytes: float
    files: list[list[Any]]
    separator: str | None


def open_sources(paths: Sequence[str | Path], columns: dict[str, str]) -> Source:
    """Look at the files of a log without reading them.

    Args:
        paths: Parquet files or folders, hive partitions included, or CSV files (``.tsv`` with tabs; gzipped or not),
            all Parquet or all CSV, in order of the log.
        columns: the files' column for each of ``user``, ``item``, ``feedback`` and ``time``.

    Returns:
        what there is to read.

    Raises:
        DataError: there is no file, one does not read, lacks a column, or the files do not fit each other.
    """
    if not paths:
        raise DataError("give at least one file or folder of a log")
    kinds = {log_format(Path(path)) for path in paths}
    if len(kinds) > 1:
        raise DataError("the logs are of different formats; give Parquet alone, CSV alone or TSV alone")
    separator = {".csv": ",", ".tsv": "\t"}.get(kinds.pop())
    read = _parquet_source if separator is None else _csv_source
    return read([Path(path) for path in paths], columns, separator)


def _parquet_source(paths: list[Path], columns: dict[str, str], separator: str | None) -> Source:
    import pyarrow.dataset as pads  # 45 MiB that reading whole logs does not need

    wanted = list(dict.fromkeys(columns.values()))
    pieces: list[Piece] = []
    schemas, rows, heads = [], 0, []
    for path in paths:
        try:
            folder = pads.dataset(str(path), format="parquet", partitioning="hive" if path.is_dir() else None)
            fragments = list(folder.get_fragments())
            if not fragments:
                raise DataError(f"the folder {path} holds no Parquet file")
            require_columns(Table(str(path), folder.schema.names, _never), columns)
            schemas.append(pa.schema([folder.schema.field(name) for name in wanted]))
            heads.append(len(pieces))
            for fragment in fragments:
                keys = pads.get_partition_keys(fragment.partition_expression)
                constants = {name: value for name, value in keys.items() if name in wanted}
                pieces += _pieces(fragment.path, [group.num_rows for group in fragment.row_groups], constants)
            rows += sum(fragment.count_rows() for fragment in fragments)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} is not Parquet that reads: {_line(error)}") from None
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(f"the logs' columns are of different types: {_line(error)}") from None
    schema = pa.schema([pa.field(name, _plain(schema.field(name).type)) for name in wanted])
    samples = [next(read_piece(pieces[head], schema, None, _SAMPLE_ROWS), None) for head in heads]
    sizes = [sample.nbytes / sample.num_rows for sample in samples if sample is not None]
    return Source(pieces, schema, rows, max(sizes, default=1), _files({p.path for p in pieces}), None)


def _pieces(path: str, sizes: list[int], constants: dict[str, Any]) -> Iterator[Piece]:
    groups: list[int] = []
    first = row = 0
    for number, size in enumerate(sizes):
        if groups and row + size - first > _PIECE_ROWS:
            yield Piece(path, groups, first, constants)
            groups, first = [], row
        groups.append(number)
        row += size
    yield Piece(path, groups, first, constants)


def _csv_source(paths: list[Path], columns: dict[str, str], separator: str | None) -> Source:
    wanted = list(dict.fromkeys(columns.values()))
    schema = pa.schema([pa.field(name, pa.large_string()) for name in wanted])
    rows, sizes = 0.0, []
    for path in paths:
        batch = next(_csv_batches(path, separator or ",", None), None)
        if batch is None:
            continue
        require_columns(Table(str(path), batch.schema.names, _never), columns)
        head = batch.slice(0, _SAMPLE_ROWS)
        sizes.append(head.select(wanted).nbytes / max(head.num_rows, 1))
        # all columns of a row, a separator for eight bytes of offset; text compresses to about a sixth
        line = max(head.nbytes / max(head.num_rows, 1) - 7 * head.num_columns, 1)
        rows += path.stat().st_size * (6 if path.suffix == ".gz" else 1) / line
    pieces = [Piece(str(path), None, 0, {}) for path in paths]
    return Source(pieces, schema, int(rows), max(sizes, default=1), _files({p.path for p in pieces}), separator)


def _files(paths: set[str]) -> list[list[Any]]:
    return [[path, Path(path).stat().st_size, Path(path).stat().st_mtime_ns] for path in sorted(paths)]


def read_piece(piece: Piece, schema: pa.Schema, separator: str | None, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Read a piece batch by batch.

    Args:
        piece: what to read.
        schema: the columns wanted and their types.
        separator: of CSV files; None for Parquet.
        batch_rows: the most rows at once.

    Yields:
        the columns of ``schema`` in their order.

    Raises:
        DataError: the file does not read to its end, or a value is not of its column's type.
    """
    path = Path(piece.path)
    batches = _csv_batches(path, separator, schema.names) if separator else _parquet_batches(piece, schema, batch_rows)
    for batch in _joined(batches, batch_rows):
        try:
            columns = [_cast(batch.column(name), schema.field(name).type) for name in schema.names]
        except pa.ArrowException as error:
            raise DataError(f"{path} holds other types than the rest of the log: {_line(error)}") from None
        whole = pa.record_batch(columns, schema=schema)
        for first in range(0, whole.num_rows, batch_rows):
            yield whole.slice(first, batch_rows)


def _joined(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Put small batches together until they have as many rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= rows:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held = []
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def _parquet_batches(piece: Piece, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
    try:
        # buffered: a row group of any size is read a little at a time
        with pq.ParquetFile(piece.path, buffer_size=1 << 20, pre_buffer=False) as file:
            stored = [name for name in schema.names if name not in piece.constants]
            missing = [name for name in stored if name not in file.schema_arrow.names]
            if missing:
                raise DataError(f"{piece.path} has no column {missing[0]!r}")
            for batch in file.iter_batches(batch_rows, row_groups=piece.groups, columns=stored, use_threads=False):
                for name, value in piece.constants.items():
                    batch = batch.append_column(name, pa.repeat(pa.scalar(value), batch.num_rows))
                yield batch
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{piece.path} is not Parquet that reads: {_line(error)}") from None


def _csv_batches(path: Path, separator: str, names: list[str] | None) -> Iterator[pa.RecordBatch]:
    """Read a CSV file as text; empty is null. All columns, or those of some ``names``."""
    reading = pacsv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False)
    parsing = pacsv.ParseOptions(delimiter=separator, newlines_in_values=True)
    try:
        with pa.input_stream(str(path), compression="detect") as first:
            header = pacsv.open_csv(first, pacsv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False), parsing)
            there = header.schema.names
        converting = pacsv.ConvertOptions(
            column_types=dict.fromkeys(there, pa.large_string()),
            include_columns=names or [],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with pa.input_stream(str(path), compression="detect") as file:
            yield from pacsv.open_csv(file, reading, parsing, converting)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if "Empty CSV file" in str(error):
            raise DataError(f"{path} is empty; a log has a header line and at least one row") from None
        raise DataError(f"{path} does not read as CSV: {_line(error)}") from None


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type a column is kept in on its way: no dictionaries, and text with wide offsets."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if pa.types.is_string(kind) or pa.types.is_string_view(kind) else kind


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _line(error: BaseException) -> str:
    return str(error).splitlines()[0]


def _never(name: str) -> pa.ChunkedArray:
    raise AssertionError(name)
