"""A table of objects as fitting a curve reads it: checked once, then scaled and passed on in chunks."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchrank.errors import DataError, ShapeError, as_option
from torchrank.ops.scaling import scale, scaling_knots, whiskers

Chunk = tuple[Tensor, Tensor | None]

#: rows of a chunk: its intermediate results stay in a CPU's second-level cache; a GPU wants more at once
_ROWS = {"cpu": 8192, "cuda": 1 << 20}
#: numbers up to which a scaled copy is kept; a larger table is scaled again in every pass
_KEEP = 1 << 23
#: rows of the sample that whiskers are looked for in
_WHISKER_ROWS = 1 << 17


class Column(NamedTuple):
    """What one pass over the table says of an attribute.

    Attributes:
        name: its name.
        low: its least value.
        high: its greatest value.
        missing: how many values are NaN.
    """

    name: str
    low: float
    high: float
    missing: int


class CurveTable:
    """Objects in rows, attributes in columns, in memory or mapped from a file.

    Args:
        points: ``(n, d)`` tensor, array (a ``numpy.memmap`` is read chunk by chunk) or data frame of numbers.
        names: the attributes' names; ``"attribute 0"``, … by default.
        missing: ``"error"`` or ``"observed"``.

    Attributes:
        columns: what is known of each attribute.
        kept: ``(d,)`` boolean, False where all values are equal.

    Raises:
        ShapeError: not a table.
        DataError: fewer than two different objects, infinite or missing values, or what is no number.
    """

    def __init__(self, points: Any, *, names: Sequence[str] | None, missing: str) -> None:
        self._source = points.detach() if isinstance(points, Tensor) else _numbers(points)
        if self._source.ndim != 2 or self._source.shape[1] == 0:
            raise ShapeError(
                f"points have shape {tuple(self._source.shape)}; give a table, one row an object, one column an"
                " attribute (one attribute is (n, 1))"
            )
        self.rows: int = self._source.shape[0]
        width = self._source.shape[1]
        if names is not None and len(names) != width:
            raise ShapeError(f"there are {len(names)} names for {width} attributes")
        self._names = [f"attribute {j}" for j in range(width)] if names is None else [repr(str(n)) for n in names]
        if self.rows < 2:
            raise DataError(f"a ranking needs at least two objects, the table has {self.rows}")
        self.missing = missing
        self.columns = self._first_pass()
        self.kept = torch.tensor([c.high > c.low for c in self.columns])
        if not bool(self.kept.any()):
            raise DataError(f"all {self.rows} objects are equal in every attribute; there is nothing to rank them by")
        self.warnings: list[str] = []

    @property
    def device(self) -> torch.device:
        """Where the points live."""
        return self._source.device if isinstance(self._source, Tensor) else torch.device("cpu")

    def warn(self, message: str) -> None:
        """Warn, and remember that for the report."""
        self.warnings.append(message)
        warnings.warn(message, stacklevel=4)

    def take(self, rows: slice | np.ndarray[Any, Any]) -> Tensor:
        """Read rows as float64, in the user's units."""
        if isinstance(self._source, Tensor):
            index = rows if isinstance(rows, slice) else torch.as_tensor(rows, device=self._source.device)
            return self._source[index].double()
        return torch.from_numpy(np.array(self._source[rows], dtype=np.float64))

    def raw_chunks(self) -> Iterator[Tensor]:
        """Pass over the table in the user's units."""
        size = _ROWS.get(self.device.type, _ROWS["cuda"])
        return (self.take(slice(a, a + size)) for a in range(0, self.rows, size))

    def column(self, j: int) -> Tensor:
        """Read the values of one attribute that are there, ``(n_j,)``."""
        values = torch.cat([chunk[:, j] for chunk in self.raw_chunks()])
        return values[~values.isnan()]

    def scaling(self, scaling: str | None) -> tuple[Tensor, Tensor]:
        """Learn the map to the unit cube, warn of outliers that spoil it; knots and levels ``(d, K)``."""
        if scaling == "minmax":
            for j in self.kept.nonzero().flatten().tolist():
                self._warn_of_outliers(j)
            ends = [[c.low, c.high if c.high > c.low else c.low + 1] for c in self.columns]
            return scaling_knots(torch.tensor(ends, dtype=torch.float64), "minmax")
        constant = torch.tensor([0.0, 1.0], dtype=torch.float64)
        columns = (self.column(j) if k else constant + self.columns[j].low for j, k in enumerate(self.kept.tolist()))
        return scaling_knots(columns, scaling)

    def scaled(self, knots: Tensor, levels: Tensor, rows: np.ndarray[Any, Any] | None = None) -> "ScaledTable":
        """Scale the table, or some of its rows, leaving out constant attributes."""
        return ScaledTable(self, knots, levels, rows)

    def _first_pass(self) -> list[Column]:
        width = self._source.shape[1]
        low = torch.full((width,), torch.inf, dtype=torch.float64)
        high, missing = -low, torch.zeros(width, dtype=torch.int64)
        start = 0
        for chunk in self.raw_chunks():
            absent = chunk.isnan()
            low = torch.minimum(low, torch.where(absent, torch.inf, chunk).amin(0).cpu())
            high = torch.maximum(high, torch.where(absent, -torch.inf, chunk).amax(0).cpu())
            if bool(absent.any()):
                missing += absent.sum(0).cpu()
                if self.missing == "error":
                    self._refuse(
                        absent,
                        start,
                        f"is missing (NaN); fill it, leave the object out, or say {as_option('missing', 'observed')}",
                    )
                if bool((blind := absent.all(1)).any()):
                    raise DataError(f"object {start + int(blind.nonzero()[0])} has no observed attribute; leave it out")
            if not bool(torch.isfinite(low + high).all()):
                self._refuse(chunk.isinf(), start, "is infinite; a curve needs finite numbers")
            start += len(chunk)
        for name, none in zip(self._names, (missing == self.rows).tolist(), strict=True):
            if none:
                raise DataError(f"{name} has no value at all; leave it out")
        stats = zip(self._names, low.tolist(), high.tolist(), missing.tolist(), strict=True)
        return [Column(*one) for one in stats]

    def _refuse(self, bad: Tensor, start: int, what: str) -> None:
        if bool(bad.any()):
            i, j = bad.nonzero()[0].tolist()
            raise DataError(f"{self._names[j]} of object {start + i} {what}")

    def _warn_of_outliers(self, j: int) -> None:
        """Warn where nine tenths of the axis hold only what a box plot shows as outliers."""
        step = max(1, self.rows // _WHISKER_ROWS)
        values = self.take(slice(None, None, step))[:, j]
        values = values[~values.isnan()]
        if len(values) < 4:
            return
        low, high = (float(w) for w in whiskers(values))
        name, least, greatest, _ = self.columns[j]
        if 0 < high - low < 0.02 * (greatest - least):
            self.warn(
                f"{name} runs from {least:g} to {greatest:g}, but all but outliers lie between {low:g} and {high:g}:"
                f" min-max scaling leaves them a sliver of the axis; {as_option('scaling', 'robust')} or"
                f" {as_option('scaling', 'rank')} does not"
            )


class ScaledTable:
    """Rows of a table in the unit cube, without its constant attributes; iterate for chunks of points and mask.

    Args:
        table: the table.
        knots: ``(d, K)``.
        levels: ``(d, K)``.
        rows: which rows; None for all.
    """

    def __init__(self, table: CurveTable, knots: Tensor, levels: Tensor, rows: np.ndarray[Any, Any] | None) -> None:
        self._table = table
        self._kept = table.kept.nonzero().flatten().to(table.device)
        self._map = knots.to(table.device)[self._kept], levels.to(table.device)[self._kept]
        self._some = None if rows is None else table.take(rows)
        self.rows = table.rows if rows is None else len(rows)
        self._ready: list[Chunk] | None = None
        if self.rows * len(self._kept) <= _KEEP:
            self._ready = list(self._chunks())

    def __iter__(self) -> Iterator[Chunk]:
        return self._chunks() if self._ready is None else iter(self._ready)

    def _chunks(self) -> Iterator[Chunk]:
        raw = self._table.raw_chunks() if self._some is None else torch.split(self._some, _ROWS["cpu"])
        for chunk in raw:
            points = scale(chunk[:, self._kept], *self._map)
            yield points, (~points.isnan() if self._table.missing == "observed" else None)

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw rows at random, ``(count, d)`` in the unit cube; what is not observed is put in its middle."""
        chunks = list(self)
        wanted = torch.randint(self.rows, (count,), generator=generator).tolist()
        rows = [chunks[i // len(chunks[0][0])][0][i % len(chunks[0][0])].cpu().nan_to_num(0.5) for i in wanted]
        return torch.stack(rows) if rows else chunks[0][0][:0].cpu()

    def variance(self) -> float:
        """Σ ‖x − x̄‖² over what is observed."""
        count = first = second = torch.zeros(len(self._kept), dtype=torch.float64, device=self._kept.device)
        for points, _ in self:
            # Around the middle of the cube: the squares stay small beside what is wanted.
            centred = points - 0.5
            count = count + (~points.isnan()).sum(0)
            first = first + centred.nansum(0)
            second = second + centred.square().nansum(0)
        return float((second - first * first / count).sum())


def _numbers(points: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(points)
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"the table holds what is no number: {error}; keep numeric attributes only") from None
    return array
