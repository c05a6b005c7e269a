#!/usr/bin/env python3
"""Runs some benchmarks of `cargo bench --bench filter`, and prints their medians and the ratios to the floor as Markdown.

python3 benches/summary.py 'find/.*/packed 13'     benchmarks whose names match this regular expression
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
SIZES = {"L2": "0.15 MB", "16 MB": "15 MB", "160 MB": "150 MB", "1 GB": "1 GB", "1.6 GB": "1.6 GB"}
KERNELS = {"avx512": "AVX-512", "avx2": "AVX2", "bmi2": "BMI2", "portable": "portable"}
WORDS = {
    "floor": "two random reads",
    "dense floor": "two random reads, 64 keys at a time",
    "batch": "`contains_batch`",
    "each": "`contains`",
    "memcpy": "a copy (`to_vec`)",
    "open and one query": "open a map, look up one item",
    **{name: f"`{name}`" for name in ("to_bytes", "write_to", "from_bytes", "read_from", "verify")},
}
NAME = re.compile(r"(?P<table>(?:packed|single) \d+)? ?(?P<what>.+?)(?: (?P<answer>absent|present|mixed))?")


def measured(since):
    """Returns the medians measured since then, per table and operation, then per size and answer: in ns per key, or a total time as
    text."""
    found = {}
    for estimates in TARGET.glob("criterion/**/new/estimates.json"):
        if estimates.stat().st_mtime < since:
            continue
        benchmark = json.loads((estimates.parent / "benchmark.json").read_text())
        keys = (benchmark["throughput"] or {}).get("Elements")
        median = json.loads(estimates.read_text())["median"]["point_estimate"]
        table, what, answer = NAME.fullmatch(benchmark["function_id"]).group("table", "what", "answer")
        size = benchmark["group_id"].partition("/")[2]
        found.setdefault((table or "", what), {}).setdefault(size, {})[answer] = median / keys if keys else time_of(median)
    return found


def time_of(ns):
    return next(f"{ns / unit:.3g} {word}" for unit, word in [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")] if ns >= unit)


def parts(what):
    """Returns the kernel, or an empty string, and the operation."""
    kernel, _, operation = what.partition(" ")
    return (kernel, operation) if kernel in KERNELS else ("", what)


def natural(text):
    """Splits a text into words and numbers, so that 25 % is sorted before 100 %."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]


def order(row):
    """Returns a sort key: packed 5 before packed 13, floors first, and the fastest kernel first."""
    table, what = row
    (kind, bits), (kernel, operation) = [*table.split(), "", "0"][:2], parts(what)
    return kind, int(bits or 0), what != "floor", what != "dense floor", *natural(operation), [*KERNELS, ""].index(kernel)


def label(what):
    kernel, operation = parts(what)
    if near := re.fullmatch(r"dense (\d+ %)", operation):
        return f"the same, {near[1]} of the second reads near the first"
    return WORDS.get(operation, operation) + (f", {KERNELS[kernel]}" if kernel else "")


def cell(times, floor):
    """Formats the times for each kind of keys, and their ratios to the floor."""
    times = [times[answer] for answer in ("absent", "present", "mixed", None) if answer in times]
    if not times:
        return "–"
    if isinstance(times[0], str):
        return times[0]
    ratios = "; ".join(f"{time / floor:.2f}" for time in times) if floor else ""
    return "; ".join(f"{time:.1f}" for time in times) + (f" ({ratios})" if ratios else "")


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    since = time.time()
    subprocess.run([*BENCH, sys.argv[1]], cwd=ROOT, stdout=sys.stderr, check=True)
    found = measured(since)
    if not found:
        sys.exit(f"No benchmark has {sys.argv[1]} in its name.")
    tables = {table for table, _ in found}
    floors = {table: found.get((table, "floor")) or found.get((table, "dense floor"), {}) for table in tables}
    # With several tables, the floors have no rows: the ratios include them.
    rows = [row for row in sorted(found, key=order) if len(tables) == 1 or row[1] not in ("floor", "dense floor")]
    answers = [answer for answer in ("absent", "present", "mixed") if any(answer in times for row in rows for times in found[row].values())]
    sizes = [size for size in SIZES if any(size in found[row] for row in rows)]
    if any(floors.values()):
        keys = f" Keys are {'; '.join(answers)}." if answers else ""
        print(f"ns per key, and in brackets × two random reads in a buffer as large as the table.{keys}\n")
    operations = {label(what) for _, what in rows}
    head = [*tables] if len(tables) == 1 else [*operations] if len(operations) == 1 else [""]
    print(f"| {head[0]} | " + " | ".join(SIZES[size] for size in sizes) + " |\n|---|" + "---:|" * len(sizes))
    for table, what in rows:
        name = ": ".join(part for part in (table, label(what)) if part not in head)
        cells = (cell(found[table, what].get(size, {}), floors[table].get(size, {}).get(None)) for size in sizes)
        print(f"| {name} | " + " | ".join(cells) + " |")


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"Failed: {' '.join(error.cmd)}")
