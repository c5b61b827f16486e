"""The linear chain against pytorch-crf (pip install pytorch-crf), and the scan against the loop over time.

    python scripts/benchmarks/chain.py --data FOLDER --out results/chain.json

The batches have the lengths of the OCR letters' words (without --data: lengths drawn like them), 26 labels and random
scores; both sides see the same and are timed in turn, on one thread. The hinge has no peer in pytorch-crf: it is
compared with its likelihood, which is what it offers to train by.
"""

import argparse
from functools import partial

import torch
from common import installed, interleave, print_table, write_results

from torchrank.data import read_sequences
from torchrank.losses import crf_loss, structured_hinge_loss
from torchrank.ops import log_partition, log_partition_scan, viterbi, viterbi_scan

LABELS, BATCH = 26, 256


def word_lengths(folder):
    if folder is not None:
        return read_sequences(f"{folder}/ocr_letters.npz").lengths
    counts = torch.tensor([0, 0, 0, 1283, 0, 568, 768, 695, 750, 1047, 584, 304, 298, 313, 267])
    return torch.repeat_interleave(torch.arange(len(counts)), counts)


def make_batches(lengths, generator):
    """Emissions, mask and labels of every batch, the words shuffled."""
    lengths = lengths[torch.randperm(len(lengths), generator=generator)]
    for part in lengths.split(BATCH):
        mask = torch.arange(int(part.max())) < part[:, None]
        emissions = torch.randn(*mask.shape, LABELS, generator=generator, requires_grad=True)
        yield emissions, mask, torch.randint(0, LABELS, mask.shape, generator=generator)


def train(loss, leaves, batches):
    for emissions, mask, labels in batches:
        for leaf in (*leaves, emissions):
            leaf.grad = None
        loss(emissions, labels, mask).backward()


@torch.no_grad()
def decode(search, batches):
    return [search(emissions, mask) for emissions, mask, _ in batches]


def against_pytorch_crf(lengths, repeats):
    from torchcrf import CRF

    generator = torch.Generator().manual_seed(0)
    batches = list(make_batches(lengths, generator))
    crf = CRF(LABELS, batch_first=True)
    with torch.no_grad():
        crf.end_transitions.zero_()
    transitions = crf.transitions.detach().T.contiguous().requires_grad_()
    start = crf.start_transitions.detach().clone().requires_grad_()

    def ours(loss):
        return lambda emissions, labels, mask: loss(emissions, transitions, labels, mask, start=start).sum()

    def theirs(emissions, labels, mask):
        return -crf(emissions, labels, mask=mask)

    def search(emissions, mask):
        return viterbi(emissions, transitions, mask, start=start)

    # The same answers before the same question is timed.
    for (labels, _), paths, (_, mask, _) in zip(
        decode(search, batches), decode(crf.decode, batches), batches, strict=True
    ):
        assert [row[:n].tolist() for row, n in zip(labels, mask.sum(1), strict=True)] == paths
    emissions, mask, labels = batches[0]
    torch.testing.assert_close(ours(crf_loss)(emissions, labels, mask), theirs(emissions, labels, mask))

    leaves = (transitions, start, *crf.parameters())
    timing = interleave(
        {
            "decode": partial(decode, search, batches),
            "decode, pytorch-crf": partial(decode, crf.decode, batches),
            "hinge": partial(train, ours(structured_hinge_loss), leaves, batches),
            "likelihood": partial(train, ours(crf_loss), leaves, batches),
            "likelihood, pytorch-crf": partial(train, theirs, leaves, batches),
        },
        repeats=repeats,
    )
    for name, mine, peer in (
        ("decode", "decode", "decode, pytorch-crf"),
        ("hinge + backward (peer: likelihood)", "hinge", "likelihood, pytorch-crf"),
        ("likelihood + backward", "likelihood", "likelihood, pytorch-crf"),
    ):
        yield {
            "what": name,
            "sequences": len(lengths),
            "torchrank s": timing[mine].best,
            "pytorch-crf s": timing[peer].best,
            "ratio": timing[peer].best / timing[mine].best,
            "ratio of medians": timing[peer].median / timing[mine].median,
        }


@torch.no_grad()
def scan_against_loop(lengths, repeats):
    for labels in (5, LABELS):
        for sequences in (1, 16):
            for length in lengths:
                generator = torch.Generator().manual_seed(0)
                emissions = torch.randn(sequences, length, labels, generator=generator)
                transitions = torch.randn(labels, labels, generator=generator)
                row = {"labels": labels, "sequences": sequences, "positions": length}
                calls = {
                    "decode loop": partial(viterbi, emissions, transitions),
                    "decode scan": partial(viterbi_scan, emissions, transitions),
                    "partition loop": partial(log_partition, emissions, transitions),
                    "partition scan": partial(log_partition_scan, emissions, transitions),
                }
                work = sequences * length * labels**3
                timing = interleave(calls, repeats=repeats if work < 10**8 else 1, warm_up=1 if work < 10**8 else 0)
                row |= {f"{name} ms": 1000 * taken.best for name, taken in timing.items()}
                row["decode loop/scan"] = timing["decode loop"].best / timing["decode scan"].best
                yield row


def main():
    """Print the tables and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--data", help="the folder with ocr_letters.npz")
    parser.add_argument("--out", help="write the rows to this JSON file")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="fewer words and shorter sequences")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lengths = word_lengths(args.data)
    peers = []
    if installed("torchcrf", "pytorch-crf"):
        peers = list(against_pytorch_crf(lengths[:: 10 if args.quick else 1], args.repeats))
        print_table(f"{LABELS} labels, batches of {BATCH}, one thread", peers)
    scans = list(scan_against_loop((10, 100) if args.quick else (10, 100, 1000, 10_000), min(args.repeats, 3)))
    print_table("scan against loop, one thread", scans)
    if args.out:
        rows = [{"part": "peers", **row} for row in peers] + [{"part": "scan", **row} for row in scans]
        write_results(args.out, rows, packages=["pytorch-crf"])


if __name__ == "__main__":
    main()
