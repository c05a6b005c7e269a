#!/usr/bin/env python3
"""Prints what `cargo bench --bench filter` has measured, as Markdown: medians, and their ratio to the floor beside them.

python3 benches/summary.py             all groups
python3 benches/summary.py find/L2     those with this in their name

Older runs stay until target/criterion is removed.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FLOOR = " floor"
SIZES = ["L2", "16 MB", "160 MB", "1 GB", "1.6 GB"]


def measured():
    """The median of each benchmark in ns per key, by group and name."""
    groups = {}
    for estimates in TARGET.glob("criterion/**/new/estimates.json"):
        benchmark = json.loads((estimates.parent / "benchmark.json").read_text())
        keys = (benchmark["throughput"] or {}).get("Elements", 1)
        median = json.loads(estimates.read_text())["median"]["point_estimate"]
        groups.setdefault(benchmark["group_id"], {})[benchmark["function_id"]] = median / keys
    return groups


def by_size(group):
    """The order of groups: L2 before 16 MB."""
    operation, _, size = group.partition("/")
    return operation, SIZES.index(size) if size in SIZES else len(SIZES), size


def by_table(name):
    """The order of names: packed 5 before packed 13, and the floor first."""
    table, bits, *rest = name.split()
    return table, int(bits) if bits.isdecimal() else 0, not name.endswith(FLOOR), rest


def ratio(name, medians):
    """To the plain floor of the same table: "packed 13 floor" is that of "packed 13 avx512 batch absent"."""
    floors = [floor for floor in medians if floor.endswith(FLOOR) and name.startswith(floor.removesuffix(FLOOR) + " ")]
    return f"{medians[name] / medians[min(floors, key=len)]:.2f}" if floors else ""


def main():
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    groups = {group: medians for group, medians in measured().items() if "".join(sys.argv[1:]) in group}
    if not groups:
        sys.exit(f"Nothing measured below {TARGET / 'criterion'}: run cargo bench --bench filter first.")
    for group in sorted(groups, key=by_size):
        medians = groups[group]
        print(f"\n### {group}\n\n| benchmark | ns per key | × floor |\n|---|--:|--:|")
        for name in sorted(medians, key=by_table):
            print(f"| {name} | {medians[name]:.2f} | {ratio(name, medians)} |")


if __name__ == "__main__":
    main()
