"""A child of a fork uses its filters, whatever the threads of its parent were doing with them."""

import ctypes
import functools
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import koel

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    # Python warns of forks beside threads in general.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

MUTABLE = [koel.CuckooFilter, koel.ElasticFilter, koel.SharedFilter]
ITEMS = np.arange(30_000)
# The system ends a child that hangs after this many seconds, and the test fails.
LIMIT = 60


def make(kind):
    filter = kind(65_000, 0.001)
    filter.update(ITEMS)
    return filter


def in_child(act):
    """Runs `act` in a child, and returns after the child has ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LIMIT)
            act()
            code = 0
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def use(filters):
    """Calls the methods of filters. No call may hang, and each filter must be whole."""
    for filter in filters:
        assert 5 in filter and filter.contains_batch(ITEMS[:1000]).all() and filter.count(5) and len(filter) >= 30_000
        assert repr(filter) and filter.params and filter == filter and filter.distinct() > 29_000
        koel.FilterView(filter.to_bytes()).verify()
        if not isinstance(filter, koel.FilterView):
            filter.add("child"), filter.update(range(1000)), filter.insert_unique_batch(range(1000)), filter.remove("child")
            filter |= filter.copy()
            filter.clear()
            filter.merge(filter.copy())
            assert len(filter) == 0


class Beside:
    """Calls `act` again and again in another thread."""

    def __init__(self, act):
        self.act, self.error, self.is_over, self.rounds = act, None, False, 0
        self.began, self.thread = threading.Event(), threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.is_over:
                self.began.set()
                self.act()
                self.rounds += 1
        except BaseException as error:
            self.error = error
            self.began.set()

    def __enter__(self):
        self.thread.start()
        self.began.wait()

    def __exit__(self, *error):
        self.is_over = True
        self.thread.join()
        assert self.error is None and (self.rounds or error[0])


def in_and_out(insert):
    """Inserts items, and removes them."""

    def act(filter, other, path):
        items = ITEMS + 10**6
        are_new = getattr(filter, insert)(items)
        assert filter.remove_batch(items if are_new is None else items[are_new]).all()

    return act


def merge(filter, other, path):
    copy = filter.copy()
    copy.merge(other)
    copy |= other


READING = {
    "contains_batch": lambda filter, other, path: filter.contains_batch(ITEMS),
    "contains_batch of objects": lambda filter, other, path: filter.contains_batch(map(str, range(30_000))),
    "count_batch": lambda filter, other, path: filter.count_batch(ITEMS),
    "count_members": lambda filter, other, path: filter.count_members(ITEMS),
    "single lookups": lambda filter, other, path: [number in filter for number in range(10_000)],
    "save": lambda filter, other, path: filter.save(path),
    "to_bytes": lambda filter, other, path: filter.to_bytes(),
    "pickle": lambda filter, other, path: pickle.dumps(filter),
    "copy": lambda filter, other, path: filter.copy(),
    "distinct": lambda filter, other, path: filter.distinct(),
    "measure_false_positive_rate": lambda filter, other, path: filter.measure_false_positive_rate(30_000),
    "==": lambda filter, other, path: (filter == other, filter == koel.FilterView(other.to_bytes())),
}
CHANGING = {
    "update, remove_batch": in_and_out("update"),
    "insert_unique_batch, remove_batch": in_and_out("insert_unique_batch"),
    "update of objects": lambda filter, other, path: (
        filter.update(f"text {n}" for n in range(30_000)),
        filter.remove_batch(f"text {n}" for n in range(30_000)),
    ),
    "single changes": lambda filter, other, path: [(filter.add("y"), filter.discard("y")) for _ in range(10_000)],
    "merge": merge,
    "merge of the filter itself": lambda filter, other, path: (filter.merge(other), filter.remove_batch(ITEMS)),
    "|= of the filter itself": lambda filter, other, path: filter.__ior__(other),
    "union": lambda filter, other, path: filter.union(other, other),
    "&= of the filter itself": lambda filter, other, path: filter.__iand__(other),
    "load": lambda filter, other, path: (other.save(path), type(filter).load(path)),
    "from_bytes": lambda filter, other, path: type(filter).from_bytes(other.to_bytes()),
    "clear": lambda filter, other, path: filter.copy().clear(),
}
OF_VIEWS = {
    "verify": lambda view, other, path: view.verify(),
    "to_filter": lambda view, other, path: view.to_filter(),
}
CASES = [(kind, name, act) for kind in MUTABLE for name, act in {**READING, **CHANGING}.items()]
CASES += [(kind, "shrink", lambda filter, other, path: filter.shrink()) for kind in MUTABLE[1:]]
CASES += [(koel.FilterView, name, act) for name, act in {**READING, **OF_VIEWS}.items()]


@pytest.mark.parametrize(("kind", "name", "act"), CASES, ids=[f"{kind.__name__}-{name}" for kind, name, act in CASES])
def test_a_fork_beside_an_operation(kind, name, act, tmp_path):
    if kind is koel.FilterView:
        filter, other = koel.FilterView(make(koel.ElasticFilter).to_bytes()), make(koel.ElasticFilter)
    else:
        filter, other = make(kind), make(kind)
    with Beside(lambda: act(filter, other, tmp_path / "saved.koel")):
        for _ in range(3):
            in_child(lambda: use([filter, other]))
    assert 5 in filter


@pytest.mark.parametrize("kind", MUTABLE)
def test_forks_of_several_threads_beside_several_changes(kind):
    filter, other = make(kind), make(kind)
    acts = [
        lambda: in_and_out("update")(filter, other, None),
        lambda: merge(other, filter, None),
        lambda: [number in filter for number in range(1000)],
    ]
    forks = [Beside(lambda: in_child(lambda: use([filter, other]))) for _ in range(2)]
    with Beside(acts[0]), Beside(acts[1]), Beside(acts[2]), forks[0], forks[1]:
        for _ in range(3):
            in_child(lambda: use([filter, other]))


@pytest.mark.parametrize("kind", MUTABLE)
def test_a_fork_while_a_batch_reads_an_iterable(kind):
    """The thread that forks is in the middle of the batch itself, and so is the child, which goes on with it."""
    filter = make(kind)

    def items(is_child):
        yield from range(35_000)
        is_child.append(os.fork() == 0)
        yield from range(35_000)

    is_child = []
    try:
        filter.update(items(is_child))
        if is_child[0]:
            signal.alarm(LIMIT)
            assert len(filter) == 100_000
            use([filter])
    except BaseException:
        if any(is_child):
            os._exit(1)
        raise
    if is_child[0]:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0 and len(filter) == 100_000


@pytest.mark.parametrize("kind", MUTABLE)
def test_children_fork_beside_threads_of_their_own(kind):
    filter, other = make(kind), make(kind)

    def child():
        with Beside(lambda: in_and_out("update")(filter, other, None)):
            for _ in range(3):
                in_child(lambda: use([filter, other]))

    with Beside(lambda: in_and_out("update")(filter, other, None)):
        for _ in range(3):
            in_child(child)


def length(filter):
    return len(filter), 5 in filter


@pytest.mark.parametrize("kind", MUTABLE)
def test_multiprocessing_forks_beside_a_batch(kind):
    """The filters reach the processes both by the fork and by a pickle."""
    filter = make(kind)
    reads = functools.partial(use, [filter])
    with Beside(lambda: in_and_out("update")(filter, filter, None)):
        for _ in range(3):
            process = multiprocessing.get_context("fork").Process(target=reads)
            process.start()
            process.join(LIMIT)
            is_ended = process.exitcode
            process.kill()
            assert is_ended == 0
        subprocess.run([sys.executable, "-c", ""], check=True, preexec_fn=functools.partial(length, filter), timeout=LIMIT)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(length, [filter] * 4).get(LIMIT) == [(30_000, True)] * 4


@pytest.mark.parametrize(
    "source",
    [
        *["[5]", "range(10)", "iter([5])", "numpy.arange(10)", "pyarrow.array([5])"],
        *["pandas.Series([5])", "pandas.Series(['a'])", "pandas.Series(['a'], dtype='category')", "pandas.Series([5], dtype='Int64')"],
    ],
)
def test_a_fork_beside_the_first_batch(source):
    """The first one imports numpy, and keeps what later ones need of it and of Python. Threads give up the interpreter only where they
    wait, so the first forks come where the first batch does so."""
    module = source.split(".")[0]
    program = f"""
import os, signal, sys, threading, time
import koel, {module if module in ("numpy", "pandas", "pyarrow") else "sys"}

filter, items = koel.SharedFilter(false_positive_rate=0.001), {source}
threads = [threading.Thread(target=lambda: filter.update(items)) for _ in range(3)]
sys.setswitchinterval(1)
for thread in threads:
    thread.start()
children = []
for _ in range(5):
    if (child := os.fork()) == 0:
        signal.alarm({LIMIT})
        filter.contains_batch(items), koel.FilterView(filter.to_bytes())
        os._exit(0)
    children.append(child)
    time.sleep(0)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
for thread in threads:
    thread.join()
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=2 * LIMIT)
        assert (done.returncode, done.stderr) == (0, "")


def test_functions_that_python_calls_around_forks_use_filters():
    """They cannot be unregistered, so this runs elsewhere. One of them forks, too, and other threads fork at the same time, in C."""
    program = """
import ctypes, itertools, os, threading, time
import numpy as np

def use_in_thread():
    if "use" in globals():
        other = threading.Thread(target=use)
        other.start(), other.join()

# Registered ahead of koel, so they are called last ahead of a fork, and first afterwards.
os.register_at_fork(after_in_parent=use_in_thread, after_in_child=use_in_thread)
import koel

filter, calls, is_over = koel.CuckooFilter(60_000, 0.001), itertools.count(), []
items = np.arange(30_000)

def use():
    filter.update(items[:1000]), filter.add("x"), filter.copy(), filter == filter.copy(), "x" in filter
    time.sleep(0)  # Other threads get the interpreter.

def fork():
    use()
    # Not for ever, as this is called ahead of its own fork, too.
    if next(calls) % 2 == 0:
        if (child := os.fork()) == 0:
            use()
            os._exit(0)
        wait(child)
    use()

def work():
    while not is_over:
        filter.update(items), filter.remove_batch(items)

def fork_in_c():
    fork = ctypes.PyDLL(None).fork
    while not is_over:
        if (child := fork()) == 0:
            os._exit(0)
        # It may wait for ever for threads that it does not have, as Python was not told of the fork.
        os.kill(child, 9), os.waitpid(child, 0)

def wait(child):
    assert os.waitpid(child, 0)[1] == 0

os.register_at_fork(before=fork, after_in_parent=use, after_in_child=use)
threads = [threading.Thread(target=work), threading.Thread(target=fork_in_c), threading.Thread(target=fork_in_c)]
for thread in threads:
    thread.start()
for _ in range(10):
    if (child := os.fork()) == 0:
        other = threading.Thread(target=use)
        other.start()
        other.join(), use()
        os._exit(0)
    wait(child)
is_over.append(True)
for thread in threads:
    thread.join()
print(next(calls))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "20\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="the names are those of the C library of Linux")
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python's function for the child hangs unless Python was told ahead of the fork")
@pytest.mark.parametrize("kind", ["CuckooFilter", "ElasticFilter", "SharedFilter"])
def test_forks_in_c_beside_a_batch(kind):
    """As by a server that embeds Python: it calls a function of Python after the fork in the child, and none ahead."""
    program = f"""
import ctypes, os, signal, threading
import numpy as np
import koel

system = ctypes.PyDLL(None)
filter, items, is_over = koel.{kind}(65_000, 0.001), np.arange(30_000), []
filter.update(items)
# The system calls it before any Python code runs in the child.
getattr(system, "__register_atfork")(None, None, ctypes.cast(ctypes.pythonapi.PyOS_AfterFork_Child, ctypes.c_void_p), None)

def work():
    while not is_over:
        filter.update(items + 10**6), filter.remove_batch(items + 10**6)

thread = threading.Thread(target=work)
thread.start()
for _ in range(20):
    if (child := system.fork()) == 0:
        try:
            signal.alarm({LIMIT})
            filter.add("x"), filter.update(items[:1000]), koel.FilterView(filter.to_bytes()).verify()
            os._exit(0 if "x" in filter and 5 in filter and len(filter) >= 31_001 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
is_over.append(True)
thread.join()
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=2 * LIMIT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fork_in_c_after_a_second_import():
    """Each import runs the module's init again. A fork concerns the filters of all imports."""
    program = f"""
import ctypes, os, signal, sys
import koel

filter = koel.CuckooFilter(1000, 0.001)
for _ in range(3):
    for name in [name for name in sys.modules if name.split(".")[0] == "koel"]:
        del sys.modules[name]
    import koel
signal.alarm({LIMIT})
fork = ctypes.PyDLL(None).fork
for _ in range(3):
    if (child := fork()) == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    if (child := os.fork()) == 0:
        signal.alarm({LIMIT})
        filter.update(["in the child"])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for each in (filter, koel.CuckooFilter(1000, 0.001)):
        each.update(["after", "the fork"])
print(len(filter))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=2 * LIMIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "6\n", "")


def test_items_that_fork():
    """An object that becomes an integer forks while a method converts it: the child goes on with that method."""
    filter = make(koel.SharedFilter)

    class Forks:
        is_child = False

        def __index__(self):
            self.is_child = os.fork() == 0
            return 7

    for call in (filter.add, filter.count, filter.__contains__, filter.insert_unique, filter.discard):
        item = Forks()
        try:
            call(item)
        finally:
            if item.is_child:
                os._exit(0 if 5 in filter and 7 in filter else 1)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
