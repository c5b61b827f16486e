"""``torchrank data``: fetch public data sets."""

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from torchrank.data.download import fetch
from torchrank.data.movielens import MOVIELENS
from torchrank.data.published_sets import DATASETS
from torchrank.errors import check_option


def data(name: str, *, out: str = "data") -> None:
    """Download a public data set, check it and unpack it.

    Each data set has terms of its own, in its README: MovieLens is for research, not to be passed on. Nothing is
    fetched that could not be checked: where no checksum is published, you are told how to get it.

    Args:
        name: movielens-100k, movielens-1m, movielens-10m, movielens-20m, movielens-25m or movielens-32m; kasandr,
            netflix, outbrain or pandor to be told where they are.
        out: the folder to put it into.
    """
    check_option("name", name, dict.fromkeys([*MOVIELENS, *DATASETS]))
    if name not in MOVIELENS:
        print(
            f"{name} has no published checksum, or wants its terms accepted, so get it yourself.\n{DATASETS[name].get}"
        )
        print(f"Then: torchrank reproduce saros --dataset {name} --root FOLDER --out OUT")
        return
    archive = MOVIELENS[name]
    columns = TextColumn(name), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns) as bar:
        task = bar.add_task(name, total=None)
        folder = fetch(archive, out, progress=lambda received, total: bar.update(task, completed=received, total=total))
    print(f"{name} is in {folder}")
