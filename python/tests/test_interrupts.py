"""Ctrl-C ends long calls, and waits for other threads. The signals arrive at known places in the calls: no test waits for a
time, except after a signal that came just before a call began to wait."""

import _thread
import builtins
import collections
import errno
import functools
import gc
import itertools
import os
import re
import signal
import sys
import threading
import types

import numpy as np
import pandas
import pyarrow
import pytest

import koel

KINDS = [koel.CuckooFilter, koel.ElasticFilter, koel.SharedFilter]


@pytest.fixture(autouse=True)
def no_collections():
    """Collections call functions of Python, such as Hypothesis', in which the interpreter would see a signal, and drop its exception."""
    gc.disable()
    yield
    gc.enable()


def interrupted(*values):
    """An iterator that sends SIGINT before its first value. No Python code runs meanwhile, in which the interpreter would see it."""
    return itertools.islice(itertools.chain(itertools.starmap(_thread.interrupt_main, [()]), values), 1, None)


def integer(value):
    """An integer that sends SIGINT when it is read."""

    class Integer:
        __index__ = staticmethod(functools.partial(next, interrupted(value)))

    return Integer()


def filled(kind, items):
    filter = kind(2 * items, 0.001)
    filter.update(np.arange(items))
    return filter


@pytest.mark.parametrize("kind", [*KINDS, koel.FilterView])
def test_measuring_a_rate(kind):
    filter = koel.CuckooFilter(1000, 0.01) if kind is koel.FilterView else kind(1000, 0.01)
    filter.update(range(1000))
    filter = koel.FilterView(filter.to_bytes()) if kind is koel.FilterView else filter
    with pytest.raises(KeyboardInterrupt):
        filter.measure_false_positive_rate(integer(2**63))  # It would take millennia.
    rate = filter.measure_false_positive_rate(3_000_000)
    assert abs(rate - filter.false_positive_rate) < 0.001 and rate == filter.measure_false_positive_rate(3_000_000)
    assert filter.measure_false_positive_rate(0) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "method", ["update", "insert_batch", "insert_unique_batch", "remove_batch", "contains_batch", "count_batch", "count_members"]
)
def test_endless_batches(kind, method):
    """The items are equal, so they fit."""
    filter = filled(kind, 1000)
    with pytest.raises(KeyboardInterrupt) as raised:
        getattr(filter, method)(itertools.chain(interrupted(1), itertools.repeat(1)))
    if method not in ("contains_batch", "count_batch", "count_members"):
        assert re.match(f"{method} stopped after 32768 items[,;] ", raised.value.__notes__[0])


@pytest.mark.parametrize("kind", KINDS)
def test_union_and_intersection_of_many(kind):
    filter = filled(kind, 1000)
    for combine in (filter.union, filter.intersection):
        with pytest.raises(KeyboardInterrupt):
            combine(*interrupted(filter, 5))
        with pytest.raises(TypeError, match="int"):
            combine(filter, 5)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("kind", KINDS)
def test_loading(kind, tmp_path):
    path, data = tmp_path / "pipe", filled(kind, 300_000).to_bytes()
    os.mkfifo(path)
    is_interrupted = threading.Event()
    # Other packages leave handlers after which the system goes on with a read, so that it would wait for more bytes.
    signal.siginterrupt(signal.SIGINT, False)

    def write(is_whole):
        with open(path, "wb", buffering=0) as pipe:
            # More than a pipe holds, so the reader is in the middle of the call.
            for start in range(0, 200_000, 4096):
                pipe.write(data[start : start + 4096])
            if not is_whole:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                is_interrupted.wait()
                return
            pipe.write(data[start + 4096 :])

    for is_whole in (False, True):
        writer = threading.Thread(target=write, args=[is_whole])
        writer.start()
        try:
            if is_whole:
                assert kind.load(path).to_bytes() == data
            else:
                with pytest.raises(KeyboardInterrupt):
                    kind.load(path)
        finally:
            is_interrupted.set()
            writer.join()
    (tmp_path / "long").write_bytes(data + b"x")
    with pytest.raises(koel.SnapshotError, match="long: .*goes on") as refused:
        kind.load(tmp_path / "long")
    assert refused.value.kind == "TrailingBytes"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("kind", KINDS)
def test_bytes_after_a_snapshot_in_a_pipe(kind, tmp_path):
    path, data = tmp_path / "pipe", filled(kind, 100).to_bytes()
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[data + b"x"])
    writer.start()
    with pytest.raises(koel.SnapshotError, match="pipe: .*goes on") as refused:
        kind.load(path)
    writer.join()
    assert (refused.value.kind, refused.value.offset) == ("TrailingBytes", len(data))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("kind", KINDS)
def test_waiting_for_the_end_of_a_pipe(kind, tmp_path):
    import fcntl
    import termios

    path, data = tmp_path / "pipe", filled(kind, 100).to_bytes()
    os.mkfifo(path)
    is_interrupted = threading.Event()
    signal.siginterrupt(signal.SIGINT, False)

    def write():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(data)
            # With the last byte, the reader has the whole snapshot.
            while any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))):
                os.sched_yield()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            is_interrupted.wait()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            kind.load(path)
    finally:
        is_interrupted.set()
        writer.join()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, koel waits for a writer in the system")
@pytest.mark.parametrize("kind", KINDS)
def test_waiting_for_a_writer(kind, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    class Path:
        __fspath__ = staticmethod(functools.partial(next, interrupted(str(path))))

    with pytest.raises(KeyboardInterrupt):
        kind.load(Path())

    # A writer that comes and goes is waited for, and ends the file.
    def write():
        while True:
            try:
                return os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                # Nobody has opened the pipe for reading yet.
                assert error.errno == errno.ENXIO
                os.sched_yield()

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(koel.SnapshotError, match="pipe: at byte 0: "):
        kind.load(path)
    writer.join()


LONG = 3 << 20
COLUMNS = {
    "nulls": pyarrow.Array.from_buffers(pyarrow.int8(), LONG, [pyarrow.py_buffer(b"\xfe" * (LONG // 8)), pyarrow.py_buffer(bytes(LONG))]),
    "string": pyarrow.Array.from_buffers(pyarrow.string(), LONG, [None, pyarrow.py_buffer(bytes(4 * LONG + 4)), pyarrow.py_buffer(b"")]),
    "string_view": pyarrow.Array.from_buffers(pyarrow.string_view(), LONG, [None, pyarrow.py_buffer(bytes(16 * LONG))]),
    "dictionary": pyarrow.DictionaryArray.from_arrays(np.zeros(LONG, "int8"), ["a"]),
    "chunks": pyarrow.chunked_array([np.zeros(1 << 20, "int8")] * 3),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_checking_a_column(name):
    """A signal before the column is checked leaves the filter as it was."""
    filter = koel.ElasticFilter(false_positive_rate=0.01)

    export = "__arrow_c_stream__" if name == "chunks" else "__arrow_c_array__"
    exported = getattr(COLUMNS[name], export)()
    Column = type("Column", (), {export: staticmethod(functools.partial(next, interrupted(exported)))})
    with pytest.raises(KeyboardInterrupt) as raised:
        filter.update(Column())
    assert len(filter) == 0 and not getattr(raised.value, "__notes__", None)


@pytest.mark.parametrize("when", ["isna", "dtype"])
def test_finding_the_nulls_of_pandas(when, monkeypatch):
    """A signal before the nulls are copied, or before the first is looked for. What koel calls meanwhile is no Python code."""
    values, is_null = np.zeros(LONG, "int8"), np.zeros(LONG, bool)
    is_null[-1] = True
    array = pandas.arrays.IntegerArray(values, is_null)
    results = {"isna": is_null, "dtype": types.SimpleNamespace(numpy_dtype=values.dtype)}
    calls = {name: functools.partial(next, interrupted(it) if name == when else iter([it])) for name, it in results.items()}
    to_numpy = functools.cache(lambda dtype, na_value: values)
    to_numpy(dtype=values.dtype, na_value=0)  # From now on, the cache returns it.
    monkeypatch.setattr(pandas.arrays.IntegerArray, "isna", staticmethod(calls["isna"]))
    monkeypatch.setattr(pandas.arrays.IntegerArray, "dtype", property(calls["dtype"]))
    monkeypatch.setattr(pandas.arrays.IntegerArray, "to_numpy", staticmethod(to_numpy))
    filter = koel.ElasticFilter(false_positive_rate=0.01)
    with pytest.raises(KeyboardInterrupt) as raised:
        filter.update(array)
    monkeypatch.undo()
    assert raised.traceback[-1].name == "test_finding_the_nulls_of_pandas" and raised.value.__context__ is None
    assert len(filter) == 0 and not getattr(raised.value, "__notes__", None)


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_for_another_thread(kind):
    """The other thread holds the lock in its call for much longer than the waiting thread takes to look for signals."""
    items = 1_000_000 if kind is koel.CuckooFilter else 4_000_000
    filter, other = filled(kind, items), filled(kind, items)
    calls = {
        "in": lambda: filter.__contains__(integer(1)),
        "batch": lambda: filter.contains_batch(interrupted(1, 2, 3)),
        "==": lambda: filter.__eq__(*interrupted(other)),
        "add": lambda: filter.add(integer(-1)),
    }
    for name, call in calls.items():
        for attempt in range(100):
            begins, ended = threading.Lock(), []
            begins.acquire()
            # Releases the lock last of all, in the middle of the call.
            others = builtins.filter(None, itertools.chain(itertools.starmap(begins.release, [()]), [other]))
            thread = threading.Thread(target=lambda: ended.append(filter.__ior__(*others)))
            thread.start()
            begins.acquire()
            # On a busy machine, this thread may go on before the other one takes the lock.
            for _ in range(attempt):
                os.sched_yield()
            with pytest.raises(KeyboardInterrupt):
                call()
            is_ended = bool(ended)
            thread.join()
            assert ended and not is_ended, name
            # If the item was added, this thread was faster, and did not wait.
            if name != "add" or not filter.discard(-1):
                break
        else:
            pytest.fail("the item was added in every attempt")
    assert len(filter) == items


@pytest.mark.parametrize("call", ["distinct", "==", "|="])
def test_waiting_for_a_partition(call):
    """One thread is at work on the only partition, another one waits for it in `add`, and a third one runs meanwhile."""
    for attempt in range(100):
        if attempt % 20 == 0:
            # On a fast machine, a call on a smaller filter ends before the third thread runs.
            filter = koel.SharedFilter(false_positive_rate=0.001, partitions=1)
            filter.update(np.arange(1_000_000 << attempt // 20))
            other = filter.copy()
            act = {"distinct": filter.distinct, "==": lambda: filter == other, "|=": lambda: other.__ior__(filter)}[call]
        begins, ends, events = threading.Lock(), threading.Lock(), []
        begins.acquire()
        ends.acquire()

        def work():
            begins.release()
            act()

        def run():
            ends.acquire()
            events.append("run")

        threads = [threading.Thread(target=target) for target in (work, run)]
        for thread in threads:
            thread.start()
        begins.acquire()
        # On a busy machine, this thread may go on before the other one is at work.
        for _ in range(attempt % 20):
            os.sched_yield()
        # Releases the third thread in the middle of `add`. No Python code runs until the event of its end is there.
        item = functools.partial(next, builtins.filter(None, itertools.chain(itertools.starmap(ends.release, [()]), [-1])))
        item = type("Integer", (), {"__index__": staticmethod(item)})()
        collections.deque(map(events.append, map(filter.add, [item])), maxlen=0)
        for thread in threads:
            thread.join()
        assert sorted(events, key=str) == [None, "run"] and filter.discard(-1)
        if events[0] == "run":
            break
    else:
        pytest.fail("no other thread ran in any attempt")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_waiting_for_a_fork(kind):
    """One thread merges, another one waits for it in os.fork, and a third one waits for the fork."""
    small = kind(1000, 0.001)

    def merge(begins):
        begins.release()
        filter.__ior__(other)

    def fork(begins):
        # The thread keeps the interpreter until it waits in the fork.
        begins.release()
        if (child := os.fork()) == 0:
            os._exit(0)
        children.append(child)

    for attempt in range(100):
        if attempt % 20 == 0:
            # On a fast machine, a smaller merge ends before the third thread looks for signals.
            items = 1_000_000 << attempt // 20
            filter, other = filled(kind, items), filled(kind, items)
        threads, children = [], []
        for act in (merge, fork):
            begins = threading.Lock()
            begins.acquire()
            threads.append(threading.Thread(target=act, args=[begins]))
            threads[-1].start()
            begins.acquire()
        with pytest.raises(KeyboardInterrupt):
            small.update(interrupted(1, 2, 3))
        for thread in threads:
            thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
        # If the items were added, this thread did not wait, or the fork ended first.
        if len(small) == 0:
            break
        small.clear()
    else:
        pytest.fail("the items were added in every attempt")
