#!/usr/bin/env python3
"""Runs a part of `cargo bench --bench filter`, and prints its medians as Markdown, beside the floor of the same table.

python3 benches/summary.py 'find/.*/packed 13'     what has this in its name: a regular expression
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BENCH = ["cargo", "bench", "-p", "koel-benches", "--locked", "--bench", "filter", "--"]
FLOOR = " floor"
SIZES = {"L2": "0.15 MB", "16 MB": "15 MB", "160 MB": "150 MB", "1 GB": "1 GB", "1.6 GB": "1.6 GB"}


def measured(since):
    """The median of each benchmark since then, in ns per key or in all, by name and size."""
    found = {}
    for estimates in TARGET.glob("criterion/**/new/estimates.json"):
        if estimates.stat().st_mtime < since:
            continue
        benchmark = json.loads((estimates.parent / "benchmark.json").read_text())
        keys = (benchmark["throughput"] or {}).get("Elements")
        median = json.loads(estimates.read_text())["median"]["point_estimate"]
        size = benchmark["group_id"].partition("/")[2]
        found.setdefault(benchmark["function_id"], {})[size] = (median / (keys or 1), keys)
    return found


def by_table(name):
    """The order of names: packed 5 before packed 13, and the floor first."""
    table, bits, *rest = name.split()
    return table, int(bits) if bits.isdecimal() else 0, not name.endswith(FLOOR), rest


def cell(name, size, found):
    """The time, and its ratio to the plain floor of the same table: "packed 13 floor" is that of "packed 13 avx512 batch absent"."""
    if size not in found[name]:
        return "–"
    time, keys = found[name][size]
    if keys is None:
        return next(f"{time / unit:.3g} {word}" for unit, word in [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")] if time >= unit)
    floors = [floor for floor in found if floor.endswith(FLOOR) and name.startswith(floor.removesuffix(FLOOR) + " ")]
    floor = found[min(floors, key=len)].get(size) if floors else None
    return f"{time:.1f} ({time / floor[0]:.2f})" if floor else f"{time:.1f}"


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    since = time.time()
    subprocess.run([*BENCH, sys.argv[1]], cwd=ROOT, stdout=sys.stderr, check=True)
    found = measured(since)
    if not found:
        sys.exit(f"No benchmark has {sys.argv[1]} in its name.")
    sizes = [size for size in SIZES if any(size in times for times in found.values())]
    if any(keys for times in found.values() for _, keys in times.values()):
        print("ns per key, in brackets × the floor, which reads two random places of a buffer as large as the table.\n")
    print("| | " + " | ".join(SIZES[size] for size in sizes) + " |\n|---|" + "---:|" * len(sizes))
    for name in sorted(found, key=by_table):
        print(f"| {name} | " + " | ".join(cell(name, size, found) for size in sizes) + " |")


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"Failed: {' '.join(error.cmd)}")
