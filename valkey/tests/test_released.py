"""Files that release 0.1.0 of the module wrote on Redis 7.0, in tests/data/valkey: every later release loads them, on every server.

They never change (tests/golden.rs compares their digests). For another kind of value, add another file beside them, and a test.
"""

import shutil
from pathlib import Path

import pytest

from filters import (
    add_all, all_exist, chunks_of, differences, fixture_named, info, insert, is_refused, items, load, refused, states,
)
from test_persistence import rewrite
from wire import same

FILES = Path(__file__).resolve().parents[2] / "tests/data/valkey"
WRITE = "to write it, on Redis 7: python -m pytest -n 0 valkey/tests/test_released.py -k redis-7"
PIECE = 600


def make_keys(call):
    """Creates a small key of every kind. Returns the chunks that the half-loaded ones lack."""
    call("CF.RESERVE", "empty", 1000)
    add_all(call, "plain", items("plain-", 300) + items("plain-", 20) * 5)
    for item in items("plain-", 30, 100):
        same(call("CF.DEL", "plain", item), 1)
    call("CF.RESERVE", "fixed", 100, "EXPANSION", 0, "ERROR", 0.0001, "SEED", 77)
    assert insert(call, "fixed", items("fixed-", 150)) == [1] * 100 + [-1] * 50
    call("CF.RESERVE", "grown", 100, "ERROR", 0.01, "EXPANSION", 1)
    add_all(call, "grown", items("grown-", 3000))
    load(call, "imported", chunks_of(fixture_named("rb_deleted.chunks")))
    load(call, "mixed", chunks_of(fixture_named("rb_default.chunks")))
    add_all(call, "mixed", items("new-", 50))
    data = call("CF.SNAPSHOT", "plain")
    pieces = [(min(start + PIECE, len(data)), data[start : start + PIECE]) for start in range(0, len(data), PIECE)]
    missing = {"half": pieces, "half imported": chunks_of(fixture_named("rb_default.chunks"))}
    for key, chunks in missing.items():
        load(call, key, [chunks.pop(0)])
        assert chunks and is_refused(call, "CF.INFO", key)
    return missing


def change_keys(call):
    """Changes that an append-only file has as commands."""
    add_all(call, "later", items("later-", 700))
    call("CF.UNION", "united", "plain", "later")
    same(call("CF.DEL", "mixed", "new-0"), 1)
    call("CF.COMPACT", "grown")


def check_keys(call, missing, is_changed):
    all_exist(call, "plain", items("plain-", 100) + items("plain-", 170, 130))
    assert call("CF.COUNT", "plain", "plain-0") >= 6 and info(call, "plain")["Number of items deleted"] == 30
    all_exist(call, "fixed", items("fixed-", 100))
    refused("Filter is full", call, "CF.ADD", "fixed", "one more")
    all_exist(call, "grown", items("grown-", 3000))
    all_exist(call, "mixed", items("new-", 49, 1))
    assert info(call, "empty")["Number of items inserted"] == 0
    assert info(call, "imported")["Imported items"] > 0 < info(call, "mixed")["Imported items"]
    for key, chunks in missing.items():
        load(call, key, chunks)
    assert call("CF.SNAPSHOT", "half") == call("CF.SNAPSHOT", "plain")
    if is_changed:
        all_exist(call, "later", items("later-", 700))
        all_exist(call, "united", items("plain-", 100) + items("later-", 700))


def write(start):
    """Writes an RDB file, and an append-only file that begins with filters and ends with commands."""
    FILES.mkdir()
    with (server := start("rdbcompression no")).connect() as call:
        make_keys(call)
        call("SAVE")
    shutil.copy(server.folder / "dump.rdb", FILES)
    with (server := start("appendonly yes", "aof-use-rdb-preamble no")).connect() as call:
        make_keys(call)
        rewrite(call)
        change_keys(call)
    server.stop()
    shutil.copytree(server.folder / "appendonlydir", FILES / "appendonlydir")


@pytest.mark.parametrize("way", ["dump.rdb", "appendonlydir"])
def test_files_of_release_0_1_0(start, binary, way):
    if not FILES.exists():
        assert repr(binary).startswith("redis-7"), f"{FILES} is missing; {WRITE}"
        write(start)
        pytest.fail(f"{FILES} was missing, and is written now; add its files to tests/data/digests.tsv")
    server = start(*["appendonly yes", "aof-use-rdb-preamble no"] * (way != "dump.rdb"))
    server.stop()
    if way == "dump.rdb":
        shutil.copy(FILES / way, server.folder)
    else:
        shutil.rmtree(server.folder / way)
        shutil.copytree(FILES / way, server.folder / way)
    server.start()
    with server.connect() as call, start().connect() as other:
        missing = make_keys(other)
        if way != "dump.rdb":
            change_keys(other)
        # As long as the formats have the same versions, the same commands make the same filters.
        assert not differences(states(call), states(other))
        check_keys(call, missing, way != "dump.rdb")
