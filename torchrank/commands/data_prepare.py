"""``torchrank data prepare``: a log of any size, sorted and partitioned on disk for training."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from torchrank.data.prepare import prepare_log

_STEPS = {"deal": "rows to partitions", "sort": "partitions by user and time"}


def data_prepare(
    logs: list[str],
    *,
    out: str,
    positive_at: float,
    user: str = "user",
    item: str = "item",
    feedback: str = "feedback",
    time: str = "time",
    duplicates: str = "keep",
    memory: str = "2GiB",
    partitions: int | None = None,
    ray: bool = False,
) -> None:
    """Sort a log of any size by user and time on disk, for training that streams it.

    A run that was stopped goes on when it is called again in the same way.

    Args:
        logs: Parquet files or folders, or CSV or TSV files, gzipped or not, in order of the log.
        out: the folder to write to.
        positive_at: an item is preferred where its feedback is at least this.
        user: column of user ids.
        item: column of item ids.
        feedback: column of numbers.
        time: column of numbers, dates or moments.
        duplicates: what becomes of a user's further rows of one item: keep, last or error.
        memory: bound on the process, or with ray on each worker.
        partitions: how many to deal users to; by default as many as the bound asks for, and at least 8.
        ray: do the steps on Ray.
    """
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns) as bar:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, there: int) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(_STEPS[step], total=there)
            bar.update(tasks[step], completed=done)

        prepared = prepare_log(
            logs,
            out,
            positive_at=positive_at,
            user=user,
            item=item,
            feedback=feedback,
            time=time,
            duplicates=duplicates,
            memory=memory,
            partitions=partitions,
            ray=ray,
            progress=show,
        )
    print(
        f"{len(prepared):,} rows of {prepared.num_users:,} users and {prepared.num_items:,} items are in {out}, in"
        f" {prepared.num_partitions} partitions"
    )
