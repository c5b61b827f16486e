"""Run a function on numbers, here or on Ray."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchrank.errors import DataError, TorchRankError


def run_here(function: Callable[[int], None], numbers: Sequence[int]) -> Iterator[int]:
    """Call a function on one number after the other.

    Args:
        function: what to call.
        numbers: on what.

    Yields:
        each number when it is done.
    """
    for number in numbers:
        function(number)
        yield number


def run_on_ray(function: Callable[[int], None], numbers: Sequence[int]) -> Iterator[int]:
    """Call a function on numbers in Ray's workers, by Ray Data.

    Ray is started on this machine where it does not run yet and finds no cluster, and then stopped in the end.

    Args:
        function: what to call; sent to the workers.
        numbers: on what.

    Yields:
        each number when it is done, in any order.

    Raises:
        DataError: what a call raised.
        OSError: likewise.
        TorchRankError: Ray is missing.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise TorchRankError("preparing on Ray needs Ray: pip install 'torchrank[ray]'") from None
    if not numbers:
        return
    started = not ray.is_initialized()
    if started:
        ray.init(include_dashboard=False, log_to_driver=False)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        rows = [{"number": number} for number in numbers]
        done = ray.data.from_items(rows, override_num_blocks=len(rows)).map(_Told(function))
        for row in done.iter_rows():
            if row["kind"] == "OSError":
                raise OSError(row["error"])
            if row["kind"]:
                raise DataError(row["error"])
            yield row["number"]
    finally:
        if started:
            ray.shutdown()


class _Told:
    """A function of a row that says what it raised, which Ray would wrap in a page of its own."""

    def __init__(self, function: Callable[[int], None]) -> None:
        self.function = function

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        kind, error = "", ""
        try:
            self.function(int(row["number"]))
        except TorchRankError as raised:
            kind, error = "DataError", str(raised)
        except OSError as raised:
            kind, error = "OSError", str(raised)
        return {"number": row["number"], "kind": kind, "error": error}
