"""Which published conventions ``torchrank reproduce saros`` follows on a published data set."""

import numpy as np

from torchrank.data.log import InteractionLog
from torchrank.data.published_sets import DATASETS
from torchrank.data.published_tables import published_rows

#: those of every log
CONVENTIONS = (
    "Each user's first int(0.8 · n) of n interactions in time train, the others test; equal times keep their order.",
    "b and B, the least and the mean number of blocks, are those of `saros_discard` and `saros_truncate` alone.",
)
#: where printed numbers stand beside
PRINTED = "The printed numbers are another program's after an hour; here a validation part chooses the epochs."


def set_conventions(name: str, log: InteractionLog, sample_users: int | None) -> list[str]:
    """Say how a data set was prepared and how its size compares with the printed one.

    Args:
        name: of :data:`torchrank.data.published_sets.DATASETS`.
        log: as it was prepared.
        sample_users: how many users were to be drawn, or None.

    Returns:
        sentences.
    """
    chosen = DATASETS[name]
    sizes = {row["measure"]: row["value"] for row in published_rows() if row["dataset"] == chosen.printed}
    train = int(sum((0.8 * np.diff(log.offsets)).astype(np.int64)))
    lines = [f"Preferred: {chosen.preferred}; other items shown are not."]
    lines.append(
        "Users without a preferred item, or with nothing else, are left out."
        if chosen.two_sided
        else "All users are kept, as the printed counts have them."
    )
    if sample_users is not None:
        lines.append(f"{log.num_users:,} users drawn at random: not the published data set.")
    if chosen.subset:
        lines.append(f"The paper took a part: {chosen.subset}.")
    lines.append(
        f"{log.num_users:,} users, {train:,} interactions to train on and {len(log) - train:,} to test on; printed:"
        f" {int(sizes['train']):,} and {int(sizes['test']):,}."
    )
    return lines
