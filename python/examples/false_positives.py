"""Draws false positives by load: those that were measured, and those that the filter expects.

python examples/false_positives.py [--items 200000] [--rate 0.01] [--out rates.svg]
"""

import argparse
from typing import NamedTuple

import matplotlib
import numpy as np

import koel

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402


class Row(NamedTuple):
    load: float
    samples: int
    measured: int
    expected: float


def measure(items: int, rate: float, steps: int = 20) -> list[Row]:
    """Fills a filter step by step, and looks up items that it does not have."""
    filter, rows = koel.CuckooFilter(items, rate), []
    absent = np.arange(items, 11 * items)
    for part in np.array_split(np.arange(items), steps):
        filter.update(part)
        found = filter.count_members(absent)
        rows.append(Row(filter.load_factor, len(absent), found, filter.false_positive_rate * len(absent)))
    return rows


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--out", default="rates.svg")
    options = parser.parse_args(arguments)
    rows = measure(options.items, options.rate)
    figure, axes = plt.subplots()
    loads = [100 * row.load for row in rows]
    axes.plot(loads, [row.measured / row.samples for row in rows], "o", label="measured")
    axes.plot(loads, [row.expected / row.samples for row in rows], label="expected")
    axes.axhline(options.rate, color="gray", linestyle="--", label="requested, at most")
    axes.set(xlabel="load, %", ylabel="false-positive rate", ylim=0)
    axes.legend()
    figure.savefig(options.out)
    return rows


if __name__ == "__main__":
    main()
