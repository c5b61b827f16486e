"""Work in one process or in several, each on one thread, so that no result depends on how many there are."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: on small tensors a second one only waits, and waits for long beside a busy one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def each_done(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[tuple[Job, Result]]:
    """Do jobs, each on one thread.

    Args:
        work: a function of a module, or a ``functools.partial`` of one, of the job.
        jobs: what to do, the long ones first so that no worker is left with one at the end.
        workers: how many at once; 1 works in this process, 0 takes as many as there are processors.

    Yields:
        each job and its result, in the order they are done in.
    """
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        with one_thread():
            yield from ((job, work(job)) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_begin) as pool:
        waiting = {pool.submit(work, job): job for job in jobs}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _begin() -> None:
    """Take one thread, and end when the command does, also when it was killed and could say nothing."""
    torch.set_num_threads(1)
    command = multiprocessing.parent_process()

    def follow() -> None:
        if command is not None:
            command.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
