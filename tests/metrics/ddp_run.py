"""Measure lists shared out unevenly to two processes: ``python -m tests.metrics.ddp_run FOLDER``."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from tests.metrics.cases import CASES
from tests.metrics.test_laws import random_lists

PARTS = [[slice(0, 2), slice(2, 3)], [slice(3, 11)]]  # two small batches here, one large one there


def measure(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    scores, relevance, mask = random_lists(11, 7, dtype=torch.float32)
    weights = torch.arange(1.0, 12.0)
    found = {}
    for case in CASES:
        metric = case.module(**case.options, empty="skip")
        for part in PARTS[rank]:
            metric.update(scores[part], relevance[part], mask[part], weights[part])
        found[case.name] = metric.compute().item()
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(measure, (sys.argv[1],), nprocs=2)
