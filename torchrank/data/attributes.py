"""Tables of objects with several numeric attributes, from files; and one table of countries that comes along."""

from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from torchrank.data.columns import is_single
from torchrank.data.csv_tables import written_names
from torchrank.data.tables import Table, parquet_table
from torchrank.errors import DataError, TorchRankError, as_option

#: what tables write for a value that is not there
_ABSENT = ("", "NA", "N/A", "NaN", "nan", "null")


class AttributeTable(NamedTuple):
    """Objects in rows, attributes in columns.

    Attributes:
        ids: the objects' ids, a series that has the id column's name.
        values: ``(n, d)`` float64, NaN where a value is missing.
        names: the ``d`` attributes' names.
        directions: +1 where more is better, −1 where less is, one an attribute.
        attribution: whom the table is owed to, with its licence; empty for a user's own.

    Example:
        >>> table = AttributeTable(pl.Series("city", ["A", "B"]), np.array([[3.0], [4.0]]), ["parks"], [1])
        >>> table.ids.name, table.attribution
        ('city', '')
    """

    ids: pl.Series
    values: NDArray[np.float64]
    names: list[str]
    directions: list[int]
    attribution: str = ""

    def __repr__(self) -> str:
        return f"AttributeTable({len(self.values)} objects, {len(self.names)} attributes)"


def read_table(
    path: str | Path,
    *,
    higher: Sequence[str] = (),
    lower: Sequence[str] = (),
    id: str | None = None,  # noqa: A002 - the column's role, as the command line names it
    separator: str | None = None,
    decimal_comma: bool = False,
) -> AttributeTable:
    """Read a table of objects from CSV, TSV (gzipped or not) or Parquet; columns go by name.

    Args:
        path: the file; its suffix tells the format.
        higher: columns of which more is better.
        lower: columns of which less is better.
        id: column that names the objects; row numbers from 1, in a column ``row``, where None.
        separator: one character between values; a comma, or a tab in a ``.tsv``, where None.
        decimal_comma: whether numbers are written like ``3,14``.

    Returns:
        the table, attributes in the order they were named, ``higher`` first; empty, NA and NaN are missing values.

    Raises:
        DataError: nothing is there, the name tells no format, a column is not there or not numeric, or a value is
            infinite; the message names column, object and the columns there are.
        TorchRankError: no attribute, or one named twice.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "cars.csv"
        ...     _ = path.write_text(chr(10).join(["car,power,price", "A,90,20", "B,120,"]))
        ...     table = read_table(path, higher=["power"], lower=["price"], id="car")
        >>> table.ids.to_list(), table.values.tolist(), table.directions
        (['A', 'B'], [[90.0, 20.0], [120.0, nan]], [1, -1])
    """
    names = [*higher, *lower]
    if not names:
        raise TorchRankError(
            f"no attribute is named; say {as_option('higher')} for columns of which more is better,"
            f" {as_option('lower')} for less"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TorchRankError(f"{', '.join(map(repr, twice))} named more than once among higher and lower")
    there, read = _open(Path(path), separator)
    for name in names if id is None else [id, *names]:
        if there.count(name) > 1:
            raise DataError(f"{path} has a column {name!r} twice; rename or drop one")
        if name not in there:
            shown = ", ".join(map(repr, there)) or "none"
            raise DataError(f"{path} has no column {name!r}; its columns are {shown}")
    found = [read(name) for name in names]
    if found[0].is_empty():
        raise DataError(f"{path} has a header and no rows")
    ids = pl.Series("row", np.arange(1, len(found[0]) + 1)) if id is None else read(id)
    columns = [_numbers(column, path, ids, decimal_comma) for column in found]
    return AttributeTable(ids, np.column_stack(columns), names, [1] * len(higher) + [-1] * len(lower))


def countries() -> AttributeTable:
    """Read the table of 181 countries that comes with the package: living conditions in 2005.

    Income per person (PPP, inflation-adjusted international dollars) and life expectancy at birth (years), of which
    more is better; infant mortality (deaths per 1,000 births) and new cases of infectious tuberculosis (per 100,000),
    of which less is better. Nothing is missing.

    Returns:
        the table.

    Source:
        Free material from gapminder.org, CC BY 4.0.

    Example:
        >>> table = countries()
        >>> table.values.shape, table.names[0], table.ids[0]
        ((181, 4), 'gdp_per_capita_ppp', 'Afghanistan')
    """
    table = read_table(
        Path(str(files("torchrank.data") / "countries.csv")),
        higher=["gdp_per_capita_ppp", "life_expectancy"],
        lower=["infant_mortality", "infectious_tb"],
        id="country",
    )
    return table._replace(attribution="Free material from gapminder.org, CC BY 4.0 (181 countries, 2005)")


def _open(path: Path, separator: str | None) -> tuple[list[str], Callable[[str], pl.Series]]:
    """Return the columns there are, and what reads one of them."""
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    kind = Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower()
    if kind in (".parquet", ".pq"):
        table = parquet_table(path)
        return table.names, lambda name: parquet_series(table, name)
    if kind not in (".csv", ".tsv"):
        raise DataError(f"the name of {path} tells no format; give .csv, .tsv or .parquet")
    try:
        frame = pl.read_csv(
            path, separator=separator or ("\t" if kind == ".tsv" else ","), infer_schema=False, null_values=None
        )
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path} does not read as {kind[1:]}: {str(error).splitlines()[0]}") from None
    return written_names(frame.columns), frame.get_column


def parquet_series(table: Table, name: str) -> pl.Series:
    """Read a column of a Parquet file by Arrow: polars' own reader aborts on damaged files.

    Args:
        table: the file's.
        name: the column.

    Returns:
        the column.

    Raises:
        DataError: it does not read, or holds lists or the like.
    """
    column = table.read(name)
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if not is_single(column.type):
        raise DataError(f"column {name!r} of {table.where} holds {column.type}, not numbers or names")
    return pl.Series(name, column)


def _numbers(column: pl.Series, path: str | Path, ids: pl.Series, decimal_comma: bool) -> NDArray[np.float64]:
    """Turn a column into float64, NaN where a value is missing."""
    kept, what = column, f"column {column.name!r} of {path}"
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        text = text.set(text.is_in(_ABSENT), None)
        kept = text.str.replace(",", ".", literal=True) if decimal_comma else text
    elif not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise DataError(f"{what} holds {column.dtype}, not numbers; leave it out or turn it into some")
    numbers = kept.cast(pl.Float64, strict=False)
    lost = (numbers.is_null() & kept.is_not_null()).fill_null(False)
    if lost.any():
        row = int(lost.arg_max() or 0)
        raise DataError(
            f"{what} is not numeric: {column[row]!r} for {_where(ids, row)}; leave it out, or say"
            f" {as_option('separator')} or {as_option('decimal_comma', True)} where the file is written that way"
        )
    values = numbers.fill_null(float("nan")).to_numpy().astype(np.float64)
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise DataError(f"{what} is infinite for {_where(ids, row)}; a ranking needs finite numbers")
    return values


def _where(ids: pl.Series, row: int) -> str:
    return f"row {row + 1}" if ids.name == "row" else f"{ids.name} {ids[row]!r}"
