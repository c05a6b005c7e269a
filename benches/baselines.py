"""What benches/instructions.py and benches/code_size.py have in common: numbers that are compared with baselines in a file."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 0.03


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def compiler():
    said = output("rustc", "-vV")
    return said.splitlines()[0] + " for " + re.search(r"^host: (.+)$", said, re.MULTILINE)[1]


def read(path):
    """The baselines in a file, and the compiler that they are of."""
    comments, rows = [], []
    for line in path.read_text().splitlines():
        (comments if line.startswith("#") else rows).append(line)
    return {name: int(number) for name, number in (row.split("\t") for row in rows[1:])}, comments[-1].removeprefix("# ")


def is_comparable(this, theirs):
    """Says which compilers these are; False if they are for different machines."""
    print(f"The baselines are of {theirs}; this is {'the same' if this == theirs else this}.", file=sys.stderr)
    if this.split(" for ")[1] == theirs.split(" for ")[1]:
        return True
    print("Not compared: other machines have other instructions.", file=sys.stderr)
    return False


def end(wrong, what, update):
    """Fails if something is wrong: `what`, a count or a size, is above its baseline."""
    if wrong:
        sys.exit("\n".join([
            *wrong,
            f"A {what} may rise by {TOLERANCE * 100:.0f} %. If it is worth it, or another compiler's doing, make it the baseline:",
            f"    {update}",
        ]))
