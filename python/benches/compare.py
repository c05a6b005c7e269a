"""Compares koel with other filters for Python: prints one Markdown table for a page.

python python/benches/compare.py [--items 1000000] [--rounds 5]

The other filters: pip install rbloom pybloomfiltermmap3 cuckoopy scalable-cuckoo-filter pyprobables

Times are of one thread's processor time, so other programs matter little. In each round, all filters do the same, one after the
other; a time is the median of the rounds, and a ratio the median of the ratios of a round.
"""

import argparse
import gc
import importlib.metadata
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


# For each package: how to make a filter, the names of its methods, its bytes, and the share of items that it is measured with, as
# some are a hundred times slower.
RIVALS: list[tuple[str, Callable[[int], Any], str, str, Callable[[Any], float], int]] = [
    ("koel-filter", lambda n: koel.CuckooFilter(n, RATE), "add", "update", lambda f: f.size_in_bytes, 1),
    ("koel-filter, ElasticFilter", lambda _: koel.ElasticFilter(None, RATE), "add", "update", lambda f: f.size_in_bytes, 1),
    ("rbloom", rbloom, "add", "update", lambda f: f.size_in_bits / 8, 1),
    ("pybloomfiltermmap3", pybloomfilter, "add", "update", lambda f: f.num_bits / 8, 1),
    ("cuckoopy", cuckoopy, "insert", "", lambda f: f.capacity * 4 * 13 / 8, 100),
    ("scalable-cuckoo-filter", scalable, "insert", "", lambda f: sum(len(one.buckets) for one in f.filters) / 8, 100),
    ("pyprobables", probables, "add", "", lambda f: f.capacity * f.bucket_size * 3, 100),
]


def timed(act: Callable[[], object], items: int) -> float:
    """Returns nanoseconds per item."""
    gc.collect()
    start = time.thread_time_ns()
    act()
    return (time.thread_time_ns() - start) / items


def measure(make: Callable[[int], Any], add: str, update: str, items: int, seed: int) -> tuple[dict[str, float], Any, int]:
    """Returns the times, the filter and the number of absent items that it finds."""
    in_order = [f"user-{n}" for n in range(items)]
    absent = [f"other-{n}" for n in range(items)]
    # Objects that were created one after the other are read faster in that order.
    present = random.Random(seed).sample(in_order, items)
    times, filter = {}, make(items)
    times["add"] = timed(lambda: add_each(getattr(filter, add), present), items)
    found: list[int] = []
    times["in, present"] = timed(lambda: found.append(sum(item in filter for item in present)), items)
    times["in, absent"] = timed(lambda: found.append(sum(item in filter for item in absent)), items)
    assert found[0] == items or not update, f"{items - found[0]} items are missing"
    for name, batch in {"update": present, "update, in order": in_order}.items() if update else ():
        other = make(items)
        times[name] = timed(lambda: getattr(other, update)(batch), items)
        assert all(item in other for item in batch[::100])
    return times, filter, found[1]


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
    results: dict[str, list[dict[str, float]]] = {}
    facts, notes = {}, []
    for number in range(options.rounds):
        for name, make, add, update, size, divisor in RIVALS:
            items = options.items // divisor
            try:
                times, filter, found = measure(make, add, update, items, number)
            except Exception as error:
                if number == 0:
                    notes.append(f"{name} is left out: {type(error).__name__}: {error}.")
                continue
            results.setdefault(name, []).append(times)
            facts[name] = (size(filter) / items, found / items, items)
    columns = ["add", "in, present", "in, absent", "update", "update, in order"]
    print("<!-- python-peers -->\n")
    print(f"Nanoseconds per item, and times as long as rbloom; {options.items:,} strings in random order, at a rate of {RATE}:\n")
    print("| package | " + " | ".join(columns) + " | bytes per item | false positives |")
    print("|---|" + "---:|" * (len(columns) + 2))
    for name, rounds in results.items():
        cells = []
        for column in columns:
            if column not in rounds[0]:
                cells.append("–")
                continue
            ratios = [own[column] / other[column] for own, other in zip(rounds, results.get("rbloom", rounds))]
            cells.append(f"{statistics.median(own[column] for own in rounds):.0f} ({statistics.median(ratios):.2f}×)")
        size, found, items = facts[name]
        version = importlib.metadata.version(name.split(",")[0])
        package = f"{name} {version}" + ("" if items == options.items else f", {items:,} items")
        print(f"| {package} | {' | '.join(cells)} | {size:.2f} | {100 * found:.3f} % |")
    print("\n" + "\n".join(notes) if notes else "")
    batches(10 * options.items, options.rounds)


if __name__ == "__main__":
    main()
