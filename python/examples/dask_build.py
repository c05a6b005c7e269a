"""Builds one filter from many files of keys with Dask: a filter per file, then a tree of merges, then one snapshot.

python examples/dask_build.py keys/ -o keys.koel --column name --false-positive-rate 0.001 --workers 4
python examples/dask_build.py --measure     # prints times, memory and an estimate for more keys, as Markdown (Linux)

A file that ends with .parquet has its keys in a column of strings, binary or integers; nulls are left out. Any other file is text
with a key per line. It needs requirements-examples.txt. For more machines, call `build` with `Client("tcp://HOST:PORT")`.
"""

# Dask has few types, and is optional.
# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,type-arg"

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from distributed import Client, Future, LocalCluster, wait

import koel

# Bytes of text, and rows of Parquet, that are read at a time.
BLOCK, ROWS = 1 << 24, 1 << 18


def fill(path: Path, column: str | None, options: dict[str, Any]) -> koel.ElasticFilter:
    filter = koel.ElasticFilter(**options)
    for keys in read(path, column):
        filter.insert_batch(keys)
    return filter


def merge(left: koel.ElasticFilter, right: koel.ElasticFilter) -> koel.ElasticFilter:
    both = left.copy()  # Dask may run this task again, so its arguments must not change.
    both.merge(right)
    return both


def build(client: Client, paths: list[Path], column: str | None, rate: float) -> koel.ElasticFilter:
    keys = sum(client.gather(client.map(count, paths, column=column)))
    # All filters need equal parameters, so `max_capacity` covers the keys of all files.
    filters = client.map(fill, paths, column=column, options={"false_positive_rate": rate, "max_capacity": keys})
    show_progress(filters, "files read")
    result: koel.ElasticFilter = merge_all(client, filters).result()
    return result


def merge_all(client: Client, filters: list[Future]) -> Future:
    """Merges neighbors until one filter is left. Releases each filter as soon as it is merged, so consumes the list."""
    while len(filters) > 1:
        last = filters[len(filters) // 2 * 2 :]
        filters[:] = client.map(merge, filters[0 : len(filters) - len(last) : 2], filters[1::2])
        show_progress(filters, "pairs merged")
        filters += last
    return filters.pop()


def read(path: Path, column: str | None) -> Iterator[pa.Array]:
    """Yields the keys in large arrays, without a Python object per key."""
    if path.suffix == ".parquet":
        for rows in pq.ParquetFile(path).iter_batches(ROWS, columns=[column]):
            yield rows.column(0).drop_null()
        return
    with path.open("rb") as file:
        # `readline` completes the last line of the block.
        while block := file.read(BLOCK) + file.readline():
            # The bytes of a line are the item, as they are for a `str` and for the command `koel`.
            lines = pa.array([block.replace(b"\r\n", b"\n").removesuffix(b"\n")], pa.binary())
            yield pc.split_pattern(lines, pattern=b"\n").flatten()


def count(path: Path, column: str | None) -> int:
    rows: int = pq.read_metadata(path).num_rows if path.suffix == ".parquet" else sum(len(keys) for keys in read(path, column))
    return rows


def show_progress(futures: list[Future], what: str) -> None:
    lines = iter([f"{done} of {len(futures)} {what}" for done in range(1, len(futures) + 1)])
    for future in futures:
        future.add_done_callback(lambda _: print(next(lines), file=sys.stderr))


def find_files(inputs: list[Path], column: str | None) -> list[Path]:
    """Returns the files of all folders, after checking that each has keys."""
    paths = [path for one in inputs for path in (sorted(one.glob("[!._]*")) if one.is_dir() else [one])]
    if not paths:
        raise ValueError(f"no file in {', '.join(map(str, inputs))}; give files with keys, or folders of them")
    for path in paths:
        if path.suffix != ".parquet":
            path.open("rb").close()
            continue
        schema = pq.read_schema(path)
        if column not in schema.names:
            given = "--column is missing" if column is None else f"no column {column!r}"
            raise ValueError(f"{path}: {given}; give one of {', '.join(schema.names)}")
        try:
            koel.ElasticFilter(false_positive_rate=0.5).insert_batch(pa.array([], schema.field(column).type))
        except TypeError as error:
            raise ValueError(f"{path}: column {column!r}: {error}") from None
    return paths


@contextmanager
def start(workers: int) -> Iterator[Client]:
    """Starts worker processes on this machine, which send filters to each other over TCP."""
    options = {"n_workers": workers, "threads_per_worker": 1, "protocol": "tcp://", "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="*", type=Path, metavar="INPUT", help="a file of keys, or a folder of such files")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE.koel", help="the snapshot to write")
    parser.add_argument("--column", metavar="NAME", help="the column with the keys, in Parquet files")
    parser.add_argument("--false-positive-rate", type=float, default=0.001, metavar="RATE")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes")
    parser.add_argument("--measure", action="store_true", help="measure with generated keys instead")
    parser.add_argument("--keys", type=int, default=10_000_000, help="for --measure")
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error(f"--workers: {options.workers} given, but at least 1 is needed")
    if options.measure:
        return measure(options.keys, options.false_positive_rate, options.workers)
    if not options.inputs or options.out is None:
        parser.error("give at least one INPUT, and the snapshot to write with -o FILE.koel")
    try:
        paths = find_files(options.inputs, options.column)
        koel.ElasticFilter(false_positive_rate=options.false_positive_rate)  # Checks the rate before workers start.
        if not options.out.parent.is_dir():
            raise ValueError(f"{options.out}: there is no folder {options.out.parent}; create it first")
        with start(options.workers) as client:
            filter = build(client, paths, options.column, options.false_positive_rate)
        filter.save(options.out)
    except (OSError, ValueError, koel.FullError) as error:
        sys.exit(f"{parser.prog}: {error}")
    print(f"{options.out}: {len(filter):,} keys, {filter.snapshot_bytes:,} bytes", file=sys.stderr)


# What --measure needs:


def texts(start: int, end: int) -> pa.Array:
    return pc.binary_join_element_wise("user-", pa.array(np.arange(start, end)).cast(pa.string()), "")


def write_keys(folder: Path, keys: int, files: int) -> list[Path]:
    paths = [folder / f"{number:05}.parquet" for number in range(files)]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"key": texts(number * keys // files, (number + 1) * keys // files)}), path)
    return paths


def peak() -> float:
    """Returns the most MB that this process has had in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def insertions(keys: int, files: int, workers: int) -> float:
    """Returns how many keys the tree of merges inserts one after the other: at each level, half of all keys."""
    levels = range(1, (files - 1).bit_length() + 1)
    return sum(keys / 2 / min(workers, -(-files >> level)) for level in levels)


def measure(keys: int, rate: float, workers: int) -> None:
    print(f"""{keys:,} distinct strings in Parquet files, rate {rate}, {workers} workers. Seconds are processor time of all workers,
including reading, sending and Dask's own work. The last column is a worker's peak memory, and its memory before the first key.

| files | seconds to fill | seconds to merge | MB per filter | MB of the result | MB of a worker |
|---:|---:|---:|---:|---:|---:|""")
    for files in (16, 64):
        with tempfile.TemporaryDirectory() as folder, start(workers) as client:
            paths = write_keys(Path(folder), keys, files)
            client.run(count, paths[0], "key")  # Imports the packages.
            before, began = max(client.run(peak).values()), sum(client.run(time.process_time).values())
            filters = client.map(fill, paths, column="key", options={"false_positive_rate": rate, "max_capacity": keys})
            wait(filters)
            middle = sum(client.run(time.process_time).values())
            single = max(client.gather(client.map(lambda filter: filter.size_in_bytes, filters)))
            last = merge_all(client, filters)
            wait(last)
            filled, merged = middle - began, sum(client.run(time.process_time).values()) - middle
            most, size = max(client.run(peak).values()), last.result().size_in_bytes
        print(f"| {files} | {filled:.1f} | {merged:.1f} | {single / 1e6:.2f} | {size / 1e6:.1f} | {most:.0f}, {before:.0f} |")
    each, again = filled / keys, merged / insertions(keys, files, 1)
    print(f"""
**By arithmetic, not measured**, for more keys in files of the same size: from the last row, {1e9 * each:.0f} ns to read and insert
a key, and {1e9 * again:.0f} ns to insert half of the keys again at each level of merges. The last levels have fewer merges than
there are workers, and the last merge has all keys on one worker. Larger filters miss the cache more often, and a network adds
its time, so expect more.

| keys | files | workers | seconds to fill | seconds to merge | GB of the result |
|---:|---:|---:|---:|---:|---:|""")
    for more, many in itertools.product((10**9, 10**10), (16, 256)):
        parts = files * more // keys
        times = f"{more * each / many:,.0f} | {insertions(more, parts, many) * again:,.0f}"
        print(f"| {more:,} | {parts:,} | {many} | {times} | {more * size / keys / 1e9:.1f} |")


if __name__ == "__main__":
    main()
