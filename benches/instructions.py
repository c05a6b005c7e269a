#!/usr/bin/env python3
"""Compares the counts of benches/instructions.rs with those in benches/instructions.tsv.

python3 benches/instructions.py             prints Markdown, and fails if a count is more than 3 % above its baseline
python3 benches/instructions.py --update    writes today's counts into the file

Both commands need valgrind, and gungraun-runner in the version of Cargo.lock. gungraun's own limits are not used: they are compiled
in for each benchmark, and their message names neither the baseline nor this command.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from baselines import ROOT, TOLERANCE, compiler, end, is_comparable, output, read

BASELINES = ROOT / "benches" / "instructions.tsv"
UPDATE = "python3 benches/instructions.py --update"

# The operations of each benchmark.
OPERATIONS = 10_000

HEADER = f"""\
# Instructions of the benchmarks in benches/instructions.rs, {OPERATIONS:,} operations each. `just instructions` compares them; this
# command updates the file:
#     {UPDATE}
# Compilers give different counts. These were measured with
# {{compiler}}
benchmark\tinstructions
"""


def measure():
    """Returns the instructions of each benchmark, in the order of the source."""
    bench = ["cargo", "bench", "-p", "koel-benches", "--locked", "--profile", "release", "--no-default-features", "--features", "counts"]
    bench += ["--bench", "instructions", "--", "--output-format=json"]
    counts = {}
    for line in output(*bench).splitlines():
        summary = json.loads(line)
        [profile] = summary["profiles"]
        count = profile["data"]["total"]["metrics"]["Ir"]["values"]["new"]
        counts[f"{summary['function_name']} {summary['id']}"] = count
    return counts


def compare(counts, baselines):
    """Prints every count. Returns descriptions of the problems."""
    problems = []
    print("Instructions per item, with the hash; of `params`, per call.\n\n| operation | table, kernel | instructions | baseline |\n|---|---|---:|---:|")
    for name in baselines.keys() - counts.keys():
        problems.append(f"{name} has a baseline, but was not measured.")
    for name, count in counts.items():
        if (baseline := baselines.get(name)) is None:
            problems.append(f"{name} costs {count:,} instructions, and has no baseline.")
            continue
        change = count / baseline - 1
        operation, table = name.split(" ")
        print(f"| `{operation}` | {table.replace('_', ' ')} | {count / OPERATIONS:.0f} | {baseline / OPERATIONS:.0f} |")
        if change > TOLERANCE:
            problems.append(f"{name} costs {count:,} instructions, {change * 100:.1f} % more than its baseline, {baseline:,}.")
        elif change < -TOLERANCE:
            print(f"{name} costs less than its baseline; to keep the gain: {UPDATE}", file=sys.stderr)
    return problems


def main():
    if sys.argv[1:] not in ([], ["--update"]):
        sys.exit(__doc__)
    sys.stdout.reconfigure(line_buffering=True)  # in step with what cargo says on the other stream
    os.environ["PATH"] += os.pathsep + str(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin")
    this = compiler()
    update = sys.argv[1:] == ["--update"]
    if not update:
        baselines, theirs = read(BASELINES)
        if not is_comparable(this, theirs):
            return
    counts = measure()
    if update:
        BASELINES.write_text(HEADER.format(compiler=this) + "".join(f"{name}\t{count}\n" for name, count in counts.items()))
        return
    end(compare(counts, baselines), "count", UPDATE)


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"Failed: {' '.join(error.cmd)}")
