"""The example that builds a filter with Dask: it equals a filter that is filled at once, even if a worker is killed meanwhile.

KOEL_DASK_KEYS=10000000 pytest python/tests/test_dask.py takes more keys. Without Dask, the tests are skipped.
"""

import math
import os
import signal
import sys
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("distributed")

import koel

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
import dask_build

KEYS, PARTITIONS, RATE = int(os.environ.get("KOEL_DASK_KEYS", "100000")), 64, 0.01


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return dask_build.write_keys(tmp_path_factory.mktemp("keys"), KEYS, PARTITIONS)


@pytest.fixture(scope="module")
def at_once(paths):
    filter = koel.ElasticFilter(false_positive_rate=RATE, max_capacity=KEYS)
    for path in paths:
        for keys in dask_build.read(path, "key"):
            filter.update(keys)
    return filter


def check_equal(filter, at_once):
    """Checks what docs/GROWTH.md promises if no key is stored twice: everything but the places of the keys in their buckets."""
    assert len(filter) == len(at_once) == KEYS and filter.params == at_once.params
    assert filter.size_in_bytes == at_once.size_in_bytes and filter.false_positive_rate == at_once.false_positive_rate
    samples = found = 0
    for start in range(0, KEYS, 1_000_000):
        end = min(KEYS, start + 1_000_000)
        counts = filter.count_batch(dask_build.texts(start, end))
        assert counts.all() and (counts == at_once.count_batch(dask_build.texts(start, end))).all()
        absent = dask_build.texts(KEYS + start, KEYS + end)
        positives = filter.contains_batch(absent)
        assert (positives == at_once.contains_batch(absent)).all()
        samples, found = samples + len(positives), found + int(positives.sum())
    # Five standard deviations: a right filter fails once in a million runs.
    margin = 5 * math.sqrt(samples * RATE)
    assert abs(found - samples * filter.false_positive_rate) < margin and found < samples * RATE + margin


def test_many_workers_build_what_one_filter_holds(paths, at_once, tmp_path, capsys):
    out = tmp_path / "keys.koel"
    dask_build.main([str(paths[0].parent), "-o", str(out), "--column", "key", "--false-positive-rate", str(RATE)])
    check_equal(koel.ElasticFilter.load(out), at_once)
    assert f"{PARTITIONS} of {PARTITIONS} files read" in capsys.readouterr().err


def test_a_killed_worker_changes_nothing(paths, at_once, tmp_path, monkeypatch):
    log, killed, merge = tmp_path / "merges", tmp_path / "killed", dask_build.merge

    def merge_and_die_once(left, right):
        with log.open("a") as file:
            file.write("merge\n")
        # Half of the keys are in the two filters, so many tasks are done, and this worker holds results of theirs.
        if 2 * (len(left) + len(right)) >= KEYS and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return merge(left, right)

    monkeypatch.setattr(dask_build, "merge", merge_and_die_once)
    with dask_build.start(2) as client:
        before = set(client.run(os.getpid).values())
        filter = dask_build.build(client, paths, "key", RATE)
    assert int(killed.read_text()) in before
    # The merge during which the worker died ran again, and so did those whose results only it had.
    assert len(log.read_text().splitlines()) >= PARTITIONS
    check_equal(filter, at_once)


def test_tasks_leave_their_arguments_as_they_are():
    left, right = (koel.ElasticFilter(false_positive_rate=RATE, max_capacity=100) for _ in range(2))
    left.update(range(60))
    right.update(range(40, 100))
    sent = left.copy(), right.copy()
    both = dask_build.merge(left, right)
    assert (left, right) == sent and len(both) == 120 and both.count_batch([0, 50, 99]).tolist() == [1, 2, 1]


def test_lines_are_the_items_of_strings(tmp_path, monkeypatch):
    path = tmp_path / "keys.txt"
    path.write_bytes("alice\r\nbob\n\nJosé\nlast".encode())
    for block in (1, 3, 1 << 24):
        monkeypatch.setattr(dask_build, "BLOCK", block)
        filter = dask_build.fill(path, None, {"false_positive_rate": RATE})
        assert len(filter) == dask_build.count(path, None) == 5
        assert filter.contains_batch(["alice", "bob", "", "José", "last"]).all() and "alice\r" not in filter


@pytest.mark.parametrize(
    "given, message",
    [
        ([], "at least one INPUT"),
        (["{empty}"], "give files with keys"),
        (["{empty}/none.parquet", "--column", "key"], "none.parquet"),
        (["{keys}"], "--column is missing; give one of key"),
        (["{keys}", "--column", "name"], "no column 'name'; give one of key"),
        (["{floats}", "--column", "key"], "cast('int64')"),
        (["{keys}", "--column", "key", "--false-positive-rate", "2"], "give one of those"),
        (["{keys}", "--column", "key", "--workers", "0"], "at least 1 is needed"),
    ],
)
def test_errors_say_what_to_do(given, message, paths, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    floats = tmp_path / "floats.parquet"
    dask_build.pq.write_table(pa.table({"key": [0.5]}), floats)
    places = {"empty": tmp_path / "empty", "keys": paths[0], "floats": floats}
    with pytest.raises(SystemExit) as exit:
        dask_build.main([argument.format(**places) for argument in given] + ["-o", str(tmp_path / "out.koel")])
    assert message in str(exit.value) + capsys.readouterr().err
    assert not (tmp_path / "out.koel").exists()
