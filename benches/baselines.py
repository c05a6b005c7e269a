"""Shared by benches/instructions.py and benches/code_size.py: compares numbers with the baselines in a file."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 0.03


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def compiler():
    version = output("rustc", "-vV")
    return version.splitlines()[0] + " for " + re.search(r"^host: (.+)$", version, re.MULTILINE)[1]


def read(path):
    """Returns the baselines in a file, and the compiler that they were measured with."""
    comments, rows = [], []
    for line in path.read_text().splitlines():
        (comments if line.startswith("#") else rows).append(line)
    return {name: int(number) for name, number in (row.split("\t") for row in rows[1:])}, comments[-1].removeprefix("# ")


def is_comparable(this, theirs):
    """Prints both compilers. Returns False if they are for different machines."""
    print(f"The baselines were measured with {theirs}; this is {'the same' if this == theirs else this}.", file=sys.stderr)
    if this.split(" for ")[1] == theirs.split(" for ")[1]:
        return True
    print("Not compared: the instructions of different machines differ.", file=sys.stderr)
    return False


def end(problems, kind, update):
    """Exits with an error if there are problems, such as numbers above their baselines. `kind` is "count" or "size"."""
    if problems:
        sys.exit("\n".join([
            *problems,
            f"A {kind} may rise by {TOLERANCE * 100:.0f} %. If the rise is justified, or a new compiler causes it, update the baseline:",
            f"    {update}",
        ]))
