"""The batched engine on a device: interactions a second and memory traffic of its waves, written out and by autograd.

    python scripts/benchmarks/device.py --device cuda --bandwidth 4800

An interaction is one entry of a block. Traffic counts what a step must read and write once: the two vectors of every
entry read, their moves added to both tables (read and written), and the wave's own numbers; with ``--bandwidth`` (GB/s,
of the device's data sheet) its share of that is given. Runs on the CPU too.
"""

import argparse
import time

import numpy as np
import torch
from common import print_table, write_results

from torchrank.data import build_blocks, make_interactions
from torchrank.losses import BPRLoss
from torchrank.models import Factorization
from torchrank.ops.wave_steps import factorization_step, take_wave, wave_loss
from torchrank.ops.waves import build_waves

ETA, MU = 0.01, 0.01


def waves_of(log, lanes, device):
    """An epoch's waves on a device."""
    blocks = build_blocks(log, rule="run")
    starts = np.append(0, np.cumsum(blocks.counts))
    slices = blocks.preferred_start, blocks.preferred_stop, blocks.other_start, blocks.other_stop
    return build_waves(np.arange(log.num_users), starts, slices, blocks.items, lanes=lanes).to(device)


def seconds(call, device, repeats):
    """The best of some calls; the device is waited for once a call."""
    found = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return min(found[1:])


def main():
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--bandwidth", type=float, help="of the device's memory, in GB/s")
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a small log, one size, two repeats")
    parser.add_argument("--out", help="write the rows to this JSON file")
    args = parser.parse_args()
    device, users = torch.device(args.device), 2000 if args.quick else args.users
    repeats = 2 if args.quick else args.repeats
    log, _ = make_interactions(num_users=users, num_items=max(users // 10, 200), num_interactions=50 * users)
    rows = []
    for lanes in (512,) if args.quick else (4096, 65_536):
        waves = waves_of(log, lanes, device)
        entries, pairs = waves.entry_bounds[-1], waves.pair_bounds[-1]
        for dim in (16,) if args.quick else (16, 64):
            scorer = Factorization(log.num_users, log.num_items, dim, init="normal", item_bias=True).to(device)
            tables, loss = [table.data for table in scorer.parameters()], BPRLoss(reduction="sum")
            optimizer = torch.optim.SGD(scorer.parameters(), lr=ETA)

            def written_out(waves=waves, tables=tables):
                for number in range(len(waves)):
                    factorization_step(*tables, take_wave(waves, number), eta=ETA, mu=MU)

            def autograd(waves=waves, scorer=scorer, loss=loss, optimizer=optimizer):
                for number in range(len(waves)):
                    optimizer.zero_grad(set_to_none=False)
                    wave_loss(scorer, loss, take_wave(waves, number), mu=MU)[1].backward()
                    optimizer.step()

            for name, call in (("written out", written_out), ("autograd", autograd)):
                took = seconds(call, device, repeats)
                traffic = 4 * (entries * (6 * (dim + 1) + 4) + 3 * pairs) / took / 1e9
                row = {"lanes": lanes, "dim": dim, "step": name, "waves": len(waves)}
                row |= {"million interactions/s": entries / took / 1e6, "GB/s": traffic}
                rows.append(row | ({"share of bandwidth": traffic / args.bandwidth} if args.bandwidth else {}))
    about = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print_table(f"batched engine on {about}, {len(log):,} interactions", rows)
    if args.out:
        write_results(args.out, rows, packages=[])


if __name__ == "__main__":
    main()
