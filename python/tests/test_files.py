"""Snapshots: those of Rust are read and written byte for byte, and corrupt ones are refused."""

import copy
import errno
import itertools
import mmap
import multiprocessing
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import DATA, ITEMS, goldens, item

import koel


def class_of(entry):
    return koel.CuckooFilter if "hasher" in entry else koel.ElasticFilter


def test_goldens_are_read_and_written(golden, tmp_path):
    path, entry = golden
    data = path.read_bytes()
    filter, view = class_of(entry).load(path), koel.FilterView(path)
    view.verify()
    assert filter.to_bytes() == view.to_bytes() == view.to_filter().to_bytes() == data
    assert class_of(entry).from_bytes(data) == filter == view.to_filter()
    assert filter == view == filter and view == view.copy()
    assert class_of(entry) is koel.CuckooFilter or koel.SharedFilter.load(path) == view
    changed = filter.copy()
    changed.clear()
    assert not (changed == view or view == changed) or len(filter) == 0
    assert filter.snapshot_bytes == len(data) and filter.seed == entry["seed"]
    filter.save(tmp_path / "again.koel")
    assert (tmp_path / "again.koel").read_bytes() == data


def test_goldens_have_their_items(golden):
    path, entry = golden
    if entry["items"] not in ITEMS:
        pytest.skip(f"Python has no items of the kind {entry['items']}")
    for reader in (class_of(entry).load(path), koel.FilterView(path)):
        for start, end, copies in entry["holds"]:
            items = [item(entry, "item", number) for number in range(start, end)]
            counts = reader.count_batch(items)
            # Items that collide have the copies of both.
            assert (counts >= copies).all() and counts.tolist() == [reader.count(one) for one in items]
        found = reader.contains_batch([item(entry, "probe", number) for number in range(2000)])
        assert np.flatnonzero(found).tolist() == entry["found"]


def test_the_same_steps_give_the_bytes_of_rust(golden):
    path, entry = golden
    if entry["items"] not in ITEMS:
        pytest.skip(f"Python has no items of the kind {entry['items']}")
    if class_of(entry) is koel.CuckooFilter:
        options = {"buckets": "buckets", "fingerprint_bits": "f", "bucket_size": "b", "table": "table", "addressing": "addressing"}
    else:
        options = {name: name for name in ("capacity", "max_capacity", "partitions")}
        options["false_positive_rate"] = "rate"
    filter = class_of(entry)(seed=entry["seed"], **{name: entry[of] for name, of in options.items()})
    for step, start, end, *copies in entry["steps"]:
        items = [item(entry, "item", number) for number in range(start, end) for _ in range(*copies or (1,))]
        if step in ("insert", "copies"):
            try:
                filter.update(items)
            except koel.FullError as error:
                assert not filter.contains_batch(items)[error.position :].all()
        else:
            assert filter.remove_batch(items).all()
    if entry.get("shrink"):
        filter.shrink()
    assert filter.to_bytes() == path.read_bytes()


def corrupt():
    """Yields damaged snapshots."""
    chosen = random.Random(1)
    for path, _ in goldens():
        data = path.read_bytes()
        for end in {0, 1, 63, 64, len(data) - 1, chosen.randrange(len(data))}:
            yield data[:end]
        yield data + b"\0"
        for _ in range(100):
            bit = chosen.randrange(8 * len(data))
            yield data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]
    for path in (DATA.parents[1] / "fuzz/corpus/snapshot").iterdir():
        yield path.read_bytes()


def test_abstract_classes_read_nothing():
    data = koel.CuckooFilter(10, 0.01).to_bytes()
    with pytest.raises(TypeError, match="call this method of CuckooFilter, ElasticFilter or SharedFilter"):
        koel.MutableFilter.from_bytes(data)


def test_corrupt_bytes_are_refused():
    for data in corrupt():
        for read in (koel.CuckooFilter.from_bytes, koel.ElasticFilter.from_bytes, koel.SharedFilter.from_bytes):
            with pytest.raises(koel.SnapshotError) as refused:
                read(data)
            assert refused.value.kind and refused.value.offset <= len(data)
        try:
            view = koel.FilterView(data)
        except koel.SnapshotError:
            continue
        # Its table may be corrupt: all answers are possible, but it answers.
        view.contains_batch(range(100)), view.count("x"), repr(view), view.params, view.copy().to_bytes()
        with pytest.raises(koel.SnapshotError):
            view.verify()


def test_buffers():
    filter = koel.CuckooFilter(100, 0.01)
    filter.add("alice")
    data = filter.to_bytes()
    changing = bytearray(data)
    view = koel.FilterView(changing)
    changing[:] = bytes(len(data))
    assert view == filter and "alice" in view
    for buffer in (memoryview(data), np.frombuffer(data, "uint8"), memoryview(bytearray(data)).toreadonly()):
        assert koel.FilterView(buffer) == filter == koel.CuckooFilter.from_bytes(buffer)
    twice = np.repeat(np.frombuffer(data, "uint8"), 2)
    for read in (koel.FilterView, koel.CuckooFilter.from_bytes):
        for wrong in (1, None):
            with pytest.raises(TypeError, match="bytes-like"):
                read(wrong)
        for wrong in (memoryview(twice)[::2], twice[::2]):
            with pytest.raises(BufferError, match=r"^the bytes of this (memoryview|ndarray) are not contiguous; give bytes\(x\)$"):
                read(wrong)
            assert read(bytes(wrong)) == filter


def test_buffers_without_bytes_say_why(tmp_path):
    data, path = koel.CuckooFilter(100, 0.01).to_bytes(), tmp_path / "a.koel"
    path.write_bytes(data)
    released = memoryview(data)
    released.release()
    with open(path, "rb") as file:
        closed = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    closed.close()
    for read in (koel.FilterView, koel.CuckooFilter.from_bytes):
        with pytest.raises(ValueError, match="released memoryview"):
            read(released)
        with pytest.raises(ValueError, match="mmap closed"):
            read(closed)


def test_files(tmp_path):
    filter = koel.SharedFilter(false_positive_rate=0.01)
    filter.update(range(1000))
    path = tmp_path / "a.koel"
    filter.save(path)
    view = koel.FilterView(str(path))
    koel.SharedFilter(false_positive_rate=0.1).save(path)
    assert view.to_filter() == koel.ElasticFilter.from_bytes(filter.to_bytes()) and len(koel.FilterView(path)) == 0
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert len(koel.FilterView(mapped[:])) == 0
    missing = tmp_path / "missing" / "b.koel"
    for call in (koel.FilterView, koel.CuckooFilter.load, filter.save):
        with pytest.raises(FileNotFoundError, match="missing") as refused:
            call(missing)
        assert (refused.value.errno, refused.value.filename) == (errno.ENOENT, str(missing))
        with pytest.raises(IsADirectoryError) as refused:
            call(tmp_path)
        assert refused.value.filename == str(tmp_path)
    for broken in (koel.FilterView, koel.CuckooFilter.load):
        (tmp_path / "empty").write_bytes(b"")
        with pytest.raises(koel.SnapshotError, match="empty: at byte 0"):
            broken(tmp_path / "empty")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_views_of_pipes_are_refused(tmp_path):
    """To open a pipe that nobody writes into would take forever."""
    os.mkfifo(tmp_path / "pipe")
    for path in [tmp_path / "pipe", "/dev/null"]:
        with pytest.raises(OSError, match="cannot be mapped; read it with load") as refused:
            koel.FilterView(path)
        assert (refused.value.errno, refused.value.filename) == (errno.EINVAL, str(path))


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="the system has no such file")
def test_bytes_after_a_snapshot_in_standard_input():
    """The bytes of a pipe can be read once only."""
    data = koel.CuckooFilter(1000, 0.001).to_bytes()
    program = """
import koel
try: print(koel.CuckooFilter.load("/dev/stdin").snapshot_bytes)
except koel.SnapshotError as error: print(error.kind, error.offset, error)
"""
    for rest, expected in (b"", b"%d" % len(data)), (b"x", b"TrailingBytes %d /dev/stdin: at byte %d: " % (len(data), len(data))):
        ended = subprocess.run([sys.executable, "-c", program], input=data + rest, stdout=subprocess.PIPE, check=True)
        assert ended.stdout.startswith(expected)


@pytest.mark.skipif(sys.platform != "linux", reason="the commands are those of Linux")
def test_files_that_change_under_a_view(tmp_path):
    """README.md is right about tools, and about the end of a process whose file becomes shorter."""
    old, new = koel.CuckooFilter(100_000, 0.001), koel.CuckooFilter(100_000, 0.001)
    new.add("new")
    path, source = tmp_path / "old.koel", tmp_path / "new.koel"
    new.save(source)
    replaces = ["mv {0}.copy {1}", "install {0} {1}", "cp --remove-destination {0} {1}"]
    writes = ["cp {0} {1}", "cat {0} > {1}", "tee {1} < {0} > /dev/null", "dd if={0} of={1} status=none"]
    replaces += ["rsync {0} {1}"] * bool(shutil.which("rsync"))
    writes += ["rsync --inplace {0} {1}"] * bool(shutil.which("rsync"))
    for command in [*replaces, *writes, lambda: shutil.copy(source, path), lambda: new.save(path), lambda: os.replace(copied, path)]:
        old.save(path)
        copied = shutil.copy(source, f"{source}.copy")
        view = koel.FilterView(path)
        command() if callable(command) else subprocess.run(["sh", "-c", command.format(source, path)], check=True)
        assert "new" in koel.FilterView(path)
        is_kept = command in replaces or callable(command) and "copy" not in command.__code__.co_names
        assert (view == old and "new" not in view) == is_kept, command
    program = "import koel, os, sys; v = koel.FilterView(sys.argv[1]); os.truncate(sys.argv[1], 100); v.contains_batch(range(100))"
    ended = subprocess.run([sys.executable, "-c", program, path], stderr=subprocess.DEVNULL)
    assert ended.returncode == -signal.SIGBUS


# Functions of Rust, which Python does not have.
RUST = re.compile(r"ElasticView|AnyHasher|::|_with\b|_prefix\b|read_from|write_to\b|feature")


def test_messages_name_what_python_has(tmp_path):
    fixed, growing = koel.CuckooFilter(100, 0.01), koel.ElasticFilter(false_positive_rate=0.01)
    others = [path.read_bytes() for path, entry in goldens() if entry.get("hasher", "xxh3") != "xxh3"]
    messages = []
    for data in (growing.to_bytes(), fixed.to_bytes() + b"x", b"PK", b"", fixed.to_bytes()[:-1], *others):
        path = tmp_path / "file"
        path.write_bytes(data)
        readers = (koel.CuckooFilter.from_bytes, koel.CuckooFilter.load, koel.FilterView)
        for read, source in itertools.product(readers, (data, path)):
            try:
                read(source)
            except koel.SnapshotError as error:
                messages.append(str(error))
            except TypeError:
                assert read is not koel.FilterView
    assert len(messages) >= 4 * len(others) + 15
    other = koel.ElasticFilter(false_positive_rate=0.02)
    for act in (lambda: fixed.save(tmp_path), lambda: growing.merge(other), lambda: fixed.update(range(1000))):
        with pytest.raises((OSError, ValueError, koel.FullError)) as refused:
            act()
        messages.append(str(refused.value))
    assert not [message for message in messages if RUST.search(message)]


def contains(filter, item):
    return item in filter, len(filter)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes(method):
    filters = [kind(1000, 0.001) for kind in (koel.CuckooFilter, koel.ElasticFilter, koel.SharedFilter)]
    for filter in filters:
        filter.update(["alice", 7])
    filters.append(koel.FilterView(filters[0].to_bytes()))
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.starmap(contains, [(filter, "alice") for filter in filters]) == [(True, 2)] * 4
    for filter in filters:
        for protocol in range(6):
            buffers = []
            out_of_band = {"buffer_callback": buffers.append} if protocol == 5 else {}
            data = pickle.dumps(filter, protocol, **out_of_band)
            read = pickle.loads(data, buffers=buffers)
            assert read.to_bytes() == filter.to_bytes() and read == filter and type(read) is type(filter)
            assert protocol < 5 or len(data) < 200
        for read in (copy.copy(filter), copy.deepcopy(filter), filter.copy()):
            assert read.to_bytes() == filter.to_bytes() and read == filter and type(read) is type(filter)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say a process's own peak")
def test_memory_is_freed():
    """Runs elsewhere, so that other tests do not matter."""
    program = """
import koel, numpy
def peak():
    # Unlike that of getrusage, this peak is not that of the parent.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
data = koel.CuckooFilter(1000, 0.001).to_bytes()
def use(times):
    for n in range(times):
        f = koel.CuckooFilter(1000, 0.001)
        f.update([n, "x"]), f.contains_batch(numpy.arange(10)), f.to_bytes(), f.copy(), koel.FilterView(data), f | f
        try: f.add(1.5)
        except TypeError: pass
        try: koel.FilterView(data[1:])
        except koel.SnapshotError: pass
use(1000)
before = peak()
use(20_000)  # 100,000 objects
print(peak() - before)
"""
    grown = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout
    assert int(grown) < 4096  # KiB; each filter takes 1.5


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_a_lack_of_memory_is_an_exception():
    program = """
import itertools, pickle, resource, koel, numpy, pandas
size = {"capacity": 20_000_000, "false_positive_rate": 0.001}
filters = [koel.CuckooFilter(**size), koel.ElasticFilter(**size), koel.SharedFilter(**size)]
numbers, items = numpy.zeros(40_000_000, "int64"), lambda: itertools.repeat("bob", 40_000_000)
large, changing = bytes(40_000_000), bytearray(40_000_000)
# pandas itself makes a copy of the nulls, for which there is memory, but not for another one.
nullable, categories = pandas.array(numpy.zeros(12_000_000, "int8"), "Int8"), pandas.Categorical([large])
view = koel.FilterView(filters[2].to_bytes())
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 16_000_000,) * 2)
for filter in filters:
    assert filter is not filters[2] or filter == view
    filter.add("alice")
    acts = [filter.copy, filter.to_bytes, lambda: filter.union(filter), lambda: filter.merge(filter), lambda: pickle.dumps(filter)]
    acts += [lambda: filter.contains_batch(numbers), lambda: filter.count_batch(items()), lambda: filter.insert_unique_batch(items())]
    acts += [lambda: filter.count(changing), lambda: filter.count(memoryview(changing)), lambda: filter.count((large,))]
    for act in (*acts, lambda: filter.count_members(nullable), lambda: filter.count_members(categories)):
        try: act()
        except MemoryError: print(filter.count("alice"))
"""
    refused = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout
    assert refused.split() == [b"1"] * 39
