"""Every benchmark, one table: what was measured, against whom, and the ratio.

    python scripts/benchmarks/all.py --out docs/benchmarks.json --page docs/benchmarks.md
    python scripts/benchmarks/all.py --quick    # a minute, small sizes: whether all of them run, not how fast

Each script runs in a process of its own, one after the other, and can be run alone. ``--out`` keeps all rows with the
machine and the versions; ``--page`` writes them as a page of the documentation. Peers that are not installed are left
out; ``pip install '.[baselines]'`` brings them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from common import machine, print_table

FOLDER = Path(__file__).parent
PACKAGES = (
    "pytorch-lightning",
    "torchmetrics",
    "ranx",
    "pytrec_eval-terrier",
    "implicit",
    "pytorch-crf",
    "numba",
    "polars",
)


def slam(rows):
    """SLAM against the pairwise form."""
    for row in rows:
        if "slam ms" in row:
            size = f"{row['lists']:,} lists × {row['length']:,}, {row['threads']} thread{'s'[: row['threads'] > 1]}"
            yield "SLAM, forward + backward", size, f"{row['slam ms']:.3g} ms", "the pairwise form", row["times faster"]
        else:
            yield "SLAM, memory", f"1 list × {row['length']:,}", f"{row['used_mib']:.3g} MiB", "", None


def losses(rows):
    """Sorting losses against whole matrices."""
    times = {(row["lists"], row["length"], row["loss"]): row["ms"] for row in rows}
    for (lists, length, name), ms in times.items():
        matrices = times.get((lists, length, f"{name}, matrices"))
        if matrices is not None:
            yield name, f"{lists:,} lists × {length:,}", f"{ms:.3g} ms", "whole matrices", matrices / ms


def metrics(rows):
    """Measures against other libraries."""
    ours = {(row["measure"], row["lists"]): row["lists a second"] for row in rows if row["library"] == "torchrank"}
    for row in rows:
        if row["library"] != "torchrank":
            speed = f"{ours[row['measure'], row['lists']] / 1e6:.2f} M lists/s"
            ratio = row["torchrank is so many times faster"]
            yield row["measure"], f"{row['lists']:,} lists × {row['length']}", speed, row["library"], ratio


def logs(rows):
    """Reading, sorting, splitting and cutting a log."""
    ours = {row["log"]: row for row in rows if row.get("by") == "torchrank"}
    for row in rows:
        if row.get("by", "torchrank") != "torchrank":
            mine = ours[row["log"]]
            speed = f"{mine['million rows/s']:.3g} M rows/s, {mine['peak MiB']} MiB at most"
            yield "read, sort, split and cut a log", row["log"], speed, row["by"], row["seconds"] / mine["seconds"]


def engines(rows):
    """Passes over a log against implicit's BPR with verified draws."""
    for row in rows:
        if not row["method"].startswith("implicit"):
            speed, ratio = f"{row['million pairs/s (processor)']:.3g} M pairs/s", row["times implicit, verified"]
            yield row["method"], f"d = {row['dim']}", speed, "implicit BPR, verified", ratio


def curve(rows):
    """Solvers of the ranking curve against the one that is the default."""
    mine = {(row["rows"], row["starts"]): row for row in rows if row.get("solver") == "gauss_newton"}
    for row in rows:
        if row["table"] == "fit" and row["solver"] != "gauss_newton":
            own = mine[row["rows"], row["starts"]]
            size = f"{row['rows']:,} × {row['attributes']}, {row['starts']} start{'s'[: row['starts'] > 1]}"
            name = f"{row['solver']} (J {100 * row['J / best - 1']:+.2g} %)"
            yield "fit a ranking curve", size, f"{own['seconds']:.3g} s", name, row["seconds"] / own["seconds"]
        elif row["table"] == "projection" and row["method"] == "exact, compiled loop":
            size = f"{row['curve']} curve, {row['attributes']} attributes"
            yield "project on a curve, exactly", size, f"{row['million points/s']:.3g} M points/s", "", None
        elif row["table"] == "stream":
            size = f"{row['rows']:,} × {row['attributes']}"
            found = f"{row['seconds']:.3g} s, {row['memory beyond a small fit MiB']:.3g} MiB"
            yield "fit a curve to a file", size, found, "", None


def chain(rows):
    """The chain against pytorch-crf."""
    for row in rows:
        if row["part"] == "peers":
            peer = "pytorch-crf" if "hinge" not in row["what"] else "pytorch-crf's likelihood"
            what = row["what"].split(" (")[0]
            yield f"chain, {what}", f"{row['sequences']:,} words", f"{row['torchrank s']:.3g} s", peer, row["ratio"]


SUMMARIES = {f.__name__: f for f in (slam, losses, metrics, logs, engines, curve, chain)}


def run(name, quick):
    """Run one script; return the rows it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        command = [sys.executable, str(FOLDER / f"{name}.py"), "--out", str(out), *(["--quick"] if quick else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout}\nscripts/benchmarks/{name}.py failed")
        return json.loads(out.read_text())["rows"]


def page(found, lines):
    """Write the documentation's page."""
    versions = ", ".join(f"{name} {version}" for name, version in found["machine"]["versions"].items())
    text = [
        "# Benchmarks",
        "",
        "Written by `python scripts/benchmarks/all.py --out docs/benchmarks.json --page docs/benchmarks.md`, which",
        "runs the scripts beside it one after the other; each measures its peers in the same run, in turn, and says",
        "what it times. A ratio above 1 says that torchrank is faster. One thread, unless a row says otherwise.",
        "",
        f"Machine: {found['machine']['cpu']}, {found['machine']['cores']} cores, Python {found['machine']['python']};",
        textwrap.fill(f"{versions}.", 120),
        "",
        "| script | what | size | torchrank | against | times faster |",
        "|---|---|---|---:|---|---:|",
    ]
    text += ["| " + " | ".join(str(value) for value in line.values()) + " |" for line in lines]
    text += ["", "All rows, unrounded: [benchmarks.json](benchmarks.json).", ""]
    return "\n".join(text)


def write(path, text):
    """Write a file in one step."""
    part = Path(path).with_name(Path(path).name + ".part")
    part.write_text(text)
    part.replace(path)


def main():
    """Run what is asked for, print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", nargs="+", choices=SUMMARIES, default=list(SUMMARIES), help="these scripts alone")
    parser.add_argument("--out", help="write all rows to this JSON file; rows of scripts that do not run stay in it")
    parser.add_argument("--page", help="write the table as Markdown to this file")
    args = parser.parse_args()
    rows = {}
    if args.out and Path(args.out).exists():
        rows = json.loads(Path(args.out).read_text())["rows"]
    for name in args.only:
        print(f"== {name}", flush=True)
        rows[name] = run(name, args.quick)
    found = {"machine": machine(*PACKAGES), "rows": rows}
    lines = []
    for name, summary in SUMMARIES.items():
        for what, size, figure, against, ratio in summary(rows.get(name, [])):
            times = "" if ratio is None else f"{ratio:,.3g}" if ratio < 1000 else f"{ratio:,.0f}"
            values = (name, what, size, figure, against, times)
            lines.append(
                dict(zip(("script", "what", "size", "torchrank", "against", "times faster"), values, strict=True))
            )
    print_table("torchrank against its peers", lines)
    if args.out:
        write(args.out, json.dumps(found, indent=1) + "\n")
    if args.page:
        write(args.page, page(found, lines))


if __name__ == "__main__":
    main()
