"""Compares koel with other filters for Python: prints Markdown tables for a page.

just python-figures && target/figures/venv/bin/python python/benches/compare.py [--items 1000000] [--rounds 5]

`just python-figures` builds the wheel as users get it, and installs the other filters. The wheel of `just python`, for tests, is built
without link-time optimization: batches take several times as long in it.

Times are of one thread's processor time, so other programs matter little. In each round, all filters do one thing, one after the
other, and then the next thing; a time is the median of the rounds, and a ratio the median of the ratios of a round. Python stores a
string's hash in it as soon as a set, or a filter that uses Python's hash, asks for it. So each filter gets new strings for everything
that it does, as a program does that reads them from somewhere.
"""

import argparse
import gc
import importlib.metadata
import itertools
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import koel

RATE = 0.001
FOLDER = Path(__file__).resolve().parents[1]


def add_each(add: Callable[[Any], object], items: list[str]) -> None:
    for item in items:
        add(item)


def pybloomfilter(items: int) -> Any:
    import pybloomfilter

    return pybloomfilter.BloomFilter(items, RATE)


def rbloom(items: int) -> Any:
    import rbloom

    return rbloom.Bloom(items, RATE)


def cuckoopy(items: int) -> Any:
    import cuckoopy

    # Its fingerprints have whole bits: 2·4·2⁻¹³ is just below the rate.
    return cuckoopy.CuckooFilter(capacity=items // 4 * 100 // 95, bucket_size=4, fingerprint_size=13)


def scalable(items: int) -> Any:
    import cuckoo.filter

    return cuckoo.filter.ScalableCuckooFilter(initial_capacity=items, error_rate=RATE)


def probables(items: int) -> Any:
    import probables

    # Both buckets follow from the fingerprint, so it must have enough bytes to tell all items apart.
    return probables.CuckooFilter(capacity=items // 4 * 100 // 95, bucket_size=4, finger_size=3, auto_expand=False)


def as_large_as_rbloom(items: int) -> koel.CuckooFilter:
    """Returns the filter for as many items as possible that takes no more bytes than rbloom's."""
    most = rbloom(items).size_in_bits // 8
    low, high = items, 2 * items
    while high - low > items // 1000:
        middle = (low + high) // 2
        low, high = (middle, high) if koel.CuckooFilter(middle, RATE).size_in_bytes <= most else (low, middle)
    return koel.CuckooFilter(low, RATE)


# For each package: how to make a filter, the names of its methods, its bytes, and the share of items that it is measured with, as
# some are a hundred times slower.
RIVALS: list[tuple[str, Callable[[int], Any], str, str, Callable[[Any], float], int]] = [
    ("koel-filter", lambda n: koel.CuckooFilter(n, RATE), "add", "update", lambda f: f.size_in_bytes, 1),
    ("koel-filter, as large as rbloom", as_large_as_rbloom, "add", "update", lambda f: f.size_in_bytes, 1),
    ("koel-filter, ElasticFilter", lambda _: koel.ElasticFilter(None, RATE), "add", "update", lambda f: f.size_in_bytes, 1),
    ("rbloom", rbloom, "add", "update", lambda f: f.size_in_bits / 8, 1),
    ("pybloomfiltermmap3", pybloomfilter, "add", "update", lambda f: f.num_bits / 8, 1),
    ("cuckoopy", cuckoopy, "insert", "", lambda f: f.capacity * 4 * 13 / 8, 100),
    ("scalable-cuckoo-filter", scalable, "insert", "", lambda f: sum(len(one.buckets) for one in f.filters) / 8, 100),
    ("pyprobables", probables, "add", "", lambda f: f.capacity * f.bucket_size * 3, 100),
]
COLUMNS = ["add", "in, present", "in, absent", "update", "update, in order"]


def timed(act: Callable[[], object], items: int) -> float:
    """Returns nanoseconds per item."""
    gc.collect()
    start = time.thread_time_ns()
    act()
    return (time.thread_time_ns() - start) / items


def strings(name: str, items: int, seed: int | None) -> list[str]:
    """Returns new strings, in the order in which they were created, or in another one: then they are read more slowly."""
    created = [f"{name}-{n}" for n in range(items)]
    return created if seed is None else random.Random(seed).sample(created, items)


class Subject:
    """A filter of one package, in one round."""

    def __init__(self, rival: tuple[str, Callable[[int], Any], str, str, Callable[[Any], float], int], items: int) -> None:
        self.name, self.make, self.add, self.update, self.size, divisor = rival
        self.items, self.found = items // divisor, 0
        self.filter = self.make(self.items)

    def measure(self, column: str, seed: int) -> float | None:
        """Returns nanoseconds per item, or None if the package has no such method."""
        name = "other" if column == "in, absent" else "user"
        if column.startswith("update"):
            if not self.update:
                return None
            batch = strings(name, self.items, None if column == "update, in order" else seed)
            other = self.make(self.items)
            time = timed(lambda: getattr(other, self.update)(batch), self.items)
            assert all(item in other for item in batch[::100])
            return time
        batch = strings(name, self.items, seed)
        if column == "add":
            return timed(lambda: add_each(getattr(self.filter, self.add), batch), self.items)
        found: list[int] = []
        time = timed(lambda: found.append(sum(item in self.filter for item in batch)), self.items)
        self.found = found[0]
        if column == "in, present":
            assert self.found == self.items or not self.update, f"{self.items - self.found} items are missing"
        return time


def rivals(items: int, rounds: int) -> None:
    results: dict[str, list[dict[str, float]]] = {}
    facts, notes = {}, []
    for number in range(rounds):
        subjects: list[Subject] = []
        for rival in RIVALS:
            try:
                subjects.append(Subject(rival, items))
            except ImportError as error:
                notes += [f"{rival[0]} is left out: {error}."] * (number == 0)
        times: dict[str, dict[str, float]] = {subject.name: {} for subject in subjects}
        for column in COLUMNS:
            for subject in list(subjects):
                try:
                    time = subject.measure(column, number)
                except Exception as error:
                    notes.append(f"{subject.name} is left out in round {number}: {type(error).__name__}: {error}.")
                    subjects.remove(subject)
                    del times[subject.name]
                    continue
                if time is not None:
                    times[subject.name][column] = time
                if column == "in, absent":
                    facts[subject.name] = (subject.size(subject.filter) / subject.items, subject.found / subject.items, subject.items)
        for name, own in times.items():
            results.setdefault(name, []).append(own)
    print("<!-- python-peers -->\n")
    print(f"Nanoseconds per item, and times as long as rbloom; {items:,} strings in random order, at a rate of {RATE}:\n")
    print("| package | " + " | ".join(COLUMNS) + " | bytes per item | false positives |")
    print("|---|" + "---:|" * (len(COLUMNS) + 2))
    for name, all_times in results.items():
        cells = []
        for column in COLUMNS:
            if column not in all_times[0]:
                cells.append("–")
                continue
            ratios = [own[column] / other[column] for own, other in zip(all_times, results.get("rbloom", all_times))]
            cells.append(f"{statistics.median(own[column] for own in all_times):.0f} ({statistics.median(ratios):.2f}×)")
        size, found, count = facts[name]
        package, *rest = name.split(", ")
        package = ", ".join([f"{package} {importlib.metadata.version(package)}", *rest, *([] if count == items else [f"{count:,} items"])])
        print(f"| {package} | {' | '.join(cells)} | {size:.2f} | {100 * found:.3f} % |")
    print("\n" + "\n".join(notes) if notes else "")


def filling(items: int, rounds: int) -> None:
    """Times insertions into a filter that becomes full."""
    steps = [0, 50, 80, 90, 95, 98, 100]
    print("\n<!-- python-filling -->\n")
    print("Nanoseconds to insert an integer of an array, while a `CuckooFilter` is filled from one share of its capacity to the next:\n")
    print("| capacity | " + " | ".join(f"{start} to {end} %" for start, end in itertools.pairwise(steps)) + " |")
    print("|---:|" + "---:|" * (len(steps) - 1))
    for capacity in (items, 10 * items):
        times: list[list[float]] = []
        for number in range(rounds):
            filter, keys = koel.CuckooFilter(capacity, RATE), np.arange(capacity) + number * capacity
            parts = [keys[capacity * start // 100 : capacity * end // 100] for start, end in itertools.pairwise(steps)]
            times.append([timed(lambda: filter.update(part), len(part)) for part in parts])
        print(f"| {capacity:,} | " + " | ".join(f"{statistics.median(column):.1f}" for column in zip(*times)) + " |")


def batches(items: int, rounds: int) -> None:
    import pyarrow as pa

    half = items // 2
    numbers, texts = np.arange(2 * items), pa.array([f"user-{number}" for number in range(2 * items)])
    filters, queries, times = {}, {}, {}
    for name, batch in {"numpy int64": numbers, "Arrow utf8": texts, "Arrow utf8_view": texts.cast(pa.string_view())}.items():
        filters[name] = koel.CuckooFilter(items, RATE)
        filters[name].update(batch[:items])
        queries[name], times[name] = batch[half : half + items], list[tuple[float, float]]()
    # The library alone, in the same rounds.
    command = ["cargo", "run", "--release", "--quiet", "--example", "speed", "--features", "extension", "--", str(items)]
    with subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as speed:
        assert speed.stdin and speed.stdout
        for _ in range(rounds):
            for name, filter in filters.items():
                print("int64" if "int64" in name else "strings", file=speed.stdin)
                rust = float(speed.stdout.readline())
                answers: list[NDArray[np.bool_]] = []
                times[name].append((timed(lambda: answers.append(filter.contains_batch(queries[name])), items), rust))
                assert answers[0][: items - half].all()
        speed.stdin.close()
    print("\n<!-- python-batches -->\n")
    print(f"Lookups of {items:,} items in one call, half of which are present, in a filter that holds as many:\n")
    print("| items | ns per item | in Rust | ratio |\n|---|---:|---:|---:|")
    for name, pairs in times.items():
        own, rust = (statistics.median(column) for column in zip(*pairs))
        print(f"| {name} | {own:.1f} | {rust:.1f} | {statistics.median(own / rust for own, rust in pairs):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rivals(options.items, options.rounds)
    filling(options.items, options.rounds)
    batches(10 * options.items, options.rounds)


if __name__ == "__main__":
    main()
