"""CF.SCANDUMP, CF.LOADCHUNK and CF.SNAPSHOT of koel's own filters. The command `koel` opens what they return."""

import json
import subprocess

import pytest

from filters import (
    MAX_IN_CHUNK, add_all, all_exist, chunks_of, differences, dump, exist, fixture_named, info, is_refused, items, joined_bytes, load,
    make_large, refused, snapshot, state, states,
)
from servers import COMMAND, wait_until
from test_replication import follow, wait_for_sync
from wire import same


@pytest.fixture
def large(call):
    """The chunks of the filter `large`, three or more."""
    make_large(call, "large")
    chunks = dump(call, "large")
    assert len(chunks) >= 3
    return chunks


def koel(*arguments, **options):
    assert COMMAND.exists(), f"{COMMAND} is missing: cargo build --release -p koel-cli"
    return subprocess.run([COMMAND, *arguments], capture_output=True, timeout=60, check=True, **options).stdout


def test_round_trip(call):
    add_all(call, "f", items("item-", 100_000))
    for n in range(0, 100_000, 100):
        call("CF.DEL", "f", f"item-{n}")
    load(call, "g", dump(call, "f"))
    assert snapshot(call, "g") == snapshot(call, "f")
    assert exist(call, "g", items("item-", 100_000)) == exist(call, "f", items("item-", 100_000))
    found, expected = info(call, "g"), info(call, "f")
    for name in ("Number of items inserted", "Number of buckets", "Error rate", "Maximum capacity"):
        assert found[name] == expected[name], name


def test_chunks_are_a_snapshot(call, large):
    snapshot = call("CF.SNAPSHOT", "large")
    assert joined_bytes(large) == snapshot and snapshot[:8] == b"KOEL\r\n\x1a\n"
    assert all(len(data) <= MAX_IN_CHUNK for _, data in large)
    # Equal filters have equal dumps.
    assert dump(call, "large") == large


def test_the_command_opens_a_dump(call, tmp_path):
    added = items("item-", 50_000)
    call("CF.RESERVE", "f", 1000, "ERROR", 0.001)
    add_all(call, "f", added)
    path = tmp_path / "dump.koel"
    path.write_bytes(joined_bytes(dump(call, "f")))
    facts = json.loads(koel("info", path, "--json"))
    assert facts["items"] == 50_000
    probes = added[:1000] + items("absent-", 20_000)
    expected = [item for item, answer in zip(probes, exist(call, "f", probes)) if answer]
    assert koel("query", "--verify", path, input=b"\n".join(probes) + b"\n").splitlines() == expected
    assert len(expected) < 1000 + 60


@pytest.mark.parametrize("piece", [8, 63, 1000, 1 << 20])
def test_a_filter_of_the_koel_command_can_be_loaded(call, tmp_path, piece):
    """Pieces may have any size except the smallest. The iterator of each is the offset of its end in the file."""
    path = tmp_path / "fruit.koel"
    koel("build", "-", "-o", path, "--grow", input=b"apple\nbanana\n")
    data = path.read_bytes()
    starts = range(0, len(data), piece)
    pieces = [(min(start + piece, len(data)), data[start : start + piece]) for start in starts]
    load(call, "fruit", pieces)
    same(call("CF.MEXISTS", "fruit", "apple", "banana", "cherry"), [1, 1, 0])
    assert call("CF.SNAPSHOT", "fruit") == data


def test_an_empty_filter_has_no_chunks(call):
    call("CF.RESERVE", "f", 1000)
    assert dump(call, "f") == []
    call("CF.ADD", "f", "a")
    call("CF.DEL", "f", "a")
    assert dump(call, "f") == []


def test_a_loaded_filter_behaves_like_the_original(call):
    """With the same items, its bytes equal those of the original."""
    call("CF.RESERVE", "f", 5000, "SEED", 9)
    add_all(call, "f", items("item-", 3000))
    load(call, "g", dump(call, "f"), "EXPANSION", 1)
    for key in ("f", "g"):
        add_all(call, key, items("more-", 30_000))
        assert call("CF.DEL", key, "item-1") == 1
    assert call("CF.SNAPSHOT", "g") == call("CF.SNAPSHOT", "f")


def test_expansion_and_deletions_can_be_set(call):
    add_all(call, "f", items("item-", 100))
    load(call, "g", dump(call, "f"), "EXPANSION", 8, "DELETED", 77)
    found = info(call, "g")
    assert (found["Expansion rate"], found["Number of items deleted"]) == (8, 77)


@pytest.mark.parametrize("change", [
    ("CF.ADD", "large", "one more"), ("CF.DEL", "large", "large-1"), ("CF.INSERT", "large", "ITEMS", "a"),
    ("CF.ADDNX", "large", "one more"), ("CF.INSERTNX", "large", "ITEMS", "one more"),
], ids=lambda change: change[0])
def test_a_change_ends_a_dump(call, large, change):
    iterator, _ = call("CF.SCANDUMP", "large", 0)
    call(*change)
    assert "again" in refused("Invalid position", call, "CF.SCANDUMP", "large", iterator)
    assert joined_bytes(dump(call, "large")) == call("CF.SNAPSHOT", "large")


def test_lookups_do_not_end_a_dump(call, large):
    iterator, _ = call("CF.SCANDUMP", "large", 0)
    call("CF.EXISTS", "large", "large-1")
    call("CF.COUNT", "large", "large-1")
    same(call("CF.SCANDUMP", "large", iterator), list(large[1]))


def test_replacing_the_filter_ends_a_dump(call, large):
    iterator, _ = call("CF.SCANDUMP", "large", 0)
    call("CF.ADD", "other", "a")
    call("RENAME", "other", "large")
    refused("Invalid position", call, "CF.SCANDUMP", "large", iterator)


LOOKUPS = [("CF.EXISTS", "f", "large-1"), ("CF.MEXISTS", "f", "large-1", "a"), ("CF.COUNT", "f", "large-1")]
DESCRIPTIONS = [("CF.INFO", "f"), ("CF.DEBUG", "f"), ("CF.SCANDUMP", "f", 0), ("CF.SNAPSHOT", "f")]
WRITES = [
    ("CF.ADD", "f", "a"), ("CF.ADDNX", "f", "a"), ("CF.INSERT", "f", "ITEMS", "a"), ("CF.INSERTNX", "f", "ITEMS", "a"),
    ("CF.INSERT", "f", "NOCREATE", "ITEMS", "a"), ("CF.RESERVE", "f", 1000), ("CF.DEL", "f", "a"), ("CF.COMPACT", "f"),
    ("CF.UNION", "f", "large"),
]


def test_commands_on_a_filter_that_is_being_loaded(call, large):
    load(call, "f", large[:2])
    received = sum(len(data) for _, data in large[:2])
    for command in LOOKUPS + DESCRIPTIONS + WRITES:
        error = refused("ERR a filter is being loaded", call, *command)
        assert f": {received} bytes have arrived, the last ones 0 s ago" in error or "ones 1 s ago" in error, error
    # A setting gives RedisBloom's reply instead.
    call("CONFIG", "SET", "koel.absent-while-loading", "yes")
    for command in LOOKUPS:
        same(call(*command), call(command[0], "missing", *command[2:]))
    for command in DESCRIPTIONS + WRITES:
        refused("ERR a filter is being loaded", call, *command)
    # Administrators find it among the other keys.
    same(sorted(call("SCAN", 0, "TYPE", "koel-cuck")[1]), [b"f", b"large"])
    same(call("EXISTS", "f"), 1)
    assert call("MEMORY", "USAGE", "f") > 2 << 20
    load(call, "f", large[2:])
    assert snapshot(call, "f") == joined_bytes(large)
    all_exist(call, "f", items("large-", 5000))


def test_a_load_can_be_aborted(call, large):
    load(call, "f", large[:2])
    same(call("DEL", "f"), 1)
    same(call("CF.ADD", "f", "a"), 1)
    refused("Couldn't load chunk!", call, "CF.LOADCHUNK", "f", *large[2])
    refused("ERR item exists", call, "CF.LOADCHUNK", "f", *large[0])
    same(call("CF.COUNT", "f", "a"), 1)


def test_a_load_can_be_restarted(call, large):
    load(call, "f", large[:2])
    load(call, "f", large[:1])
    refused("Invalid position", call, "CF.LOADCHUNK", "f", *large[2])
    load(call, "f", large[1:])
    assert snapshot(call, "f") == joined_bytes(large)


def test_chunks_are_loaded_once_and_in_order(call, large):
    for chunk in large[1:]:
        assert is_refused(call, "CF.LOADCHUNK", "f", *chunk)
        same(call("EXISTS", "f"), 0)
    load(call, "f", large[:1])
    refused("Invalid position", call, "CF.LOADCHUNK", "f", *large[2])
    load(call, "f", large[1:2])
    refused("Invalid position", call, "CF.LOADCHUNK", "f", *large[1])
    load(call, "f", large[2:])
    refused("Couldn't load chunk!", call, "CF.LOADCHUNK", "f", *large[-1])
    assert snapshot(call, "f") == joined_bytes(large)


def test_concurrent_loads(call, large):
    """Two keys are loaded alternately."""
    for chunk in large:
        load(call, "f", [chunk])
        load(call, "g", [chunk])
    assert call("CF.SNAPSHOT", "f") == call("CF.SNAPSHOT", "g") == joined_bytes(large)


@pytest.mark.parametrize("save", ["RDB", "AOF", "AOF with preamble", "AOF rewritten"])
def test_a_load_survives_a_restart(start, save):
    options = [] if save == "RDB" else ["appendonly yes"]
    options.append(f"aof-use-rdb-preamble {'yes' if 'preamble' in save else 'no'}")
    server = start(*options)
    with server.connect() as call:
        make_large(call, "large")
        chunks = dump(call, "large")
        load(call, "f", chunks[:2])
        if save == "RDB":
            call("SAVE")
        elif save != "AOF":
            call("BGREWRITEAOF")
            wait_until(lambda: b"aof_rewrite_in_progress:0" in call("INFO", "persistence"))
        before = states(call)
    server.restart()
    with server.connect() as call:
        assert not differences(states(call), before)
        refused("ERR a filter is being loaded", call, "CF.EXISTS", "f", "large-1")
        refused("ERR a filter is being loaded", call, "CF.ADD", "f", "a")
        load(call, "f", chunks[2:])
        assert state(call, "f")[2:] == state(call, "large")[2:]


def test_a_snapshot_of_more_than_64_mib_is_refused(call):
    """The limit is for a single reply. A dump in chunks has none."""
    call("CF.RESERVE", "f", 60_000_000)
    call("CF.ADD", "f", "a")
    error = refused("", call, "CF.SNAPSHOT", "f")
    assert "CF.SCANDUMP" in error
    iterator, data = call("CF.SCANDUMP", "f", 0)
    assert iterator > 0 and len(data) <= MAX_IN_CHUNK


@pytest.mark.parametrize("way", ["RDB", "AOF", "AOF rewritten"])
def test_a_dump_continues_after_a_restart(start, way):
    """An iterator has an offset and a tag of the content. So a dump continues after a restart, or is an error if the content
    has changed. Iterators of RedisBloom's chunks have no room for a tag, so these are always an error after a restart."""
    server = start(*(["appendonly yes", "aof-use-rdb-preamble no"] if way.startswith("AOF") else []))
    keys = ["large", "mixed"]
    with server.connect() as call:
        make_large(call, "large")
        for key in ("mixed", "imported"):
            load(call, key, chunks_of(fixture_named("rb_grown_e2.chunks")))
        imported = dump(call, "imported")
        call("CF.INSERT", "mixed", "CAPACITY", 2_000_000, "ITEMS", *items("new-", 3000))
        expected = {key: dump(call, key) for key in keys}
        if way == "RDB":
            call("SAVE")
        elif way == "AOF rewritten":
            call("BGREWRITEAOF")
            wait_until(lambda: b"aof_rewrite_in_progress:0" in call("INFO", "persistence"))
    server.restart()
    with server.connect() as call:
        for key, chunks in expected.items():
            for (iterator, _), following in zip(chunks, chunks[1:]):
                same(call("CF.SCANDUMP", key, iterator), list(following))
            same(call("CF.SCANDUMP", key, chunks[-1][0]), [0, None])
        for iterator, _ in imported:
            refused("Invalid position", call, "CF.SCANDUMP", "imported", iterator)
        assert dump(call, "imported") == imported
        expected["imported"] = imported
        for key, chunks in expected.items():
            call("CF.DEL", key, "large-1" if key == "large" else "key-2")
            for iterator, _ in chunks:
                assert "has changed" in refused("Invalid position", call, "CF.SCANDUMP", key, iterator)


def test_a_dump_continues_after_a_failover(start):
    """The promoted replica got the filter by commands, divided differently from the clients' commands."""
    primary, replica = start(tcp=True), start(tcp=True)
    follow(primary, replica)
    with primary.connect() as call:
        wait_for_sync(primary, replica)
        call("CF.RESERVE", "f", 2_000_000)
        call("CF.INSERT", "f", "ITEMS", *items("a", 600), *["again"] * 9, *items("b", 600))
        add_all(call, "f", items("c", 2000))
        call.pipeline([("CF.DEL", "f", item) for item in items("a", 300)])
        wait_for_sync(primary, replica)
        chunks = [call("CF.SCANDUMP", "f", 0)]
    primary.stop()
    with replica.connect() as call:
        call("REPLICAOF", "NO", "ONE")
        while chunks[-1][0]:
            chunks.append(call("CF.SCANDUMP", "f", chunks[-1][0]))
        assert len(chunks) > 3
        load(call, "g", chunks[:-1])
        assert call("CF.SNAPSHOT", "g") == call("CF.SNAPSHOT", "f")
        call("CF.DEL", "f", "b1")
        refused("Invalid position", call, "CF.SCANDUMP", "f", chunks[0][0])


def test_iterators_of_other_dumps_are_refused(call):
    """An iterator of RedisBloom's chunks is no position in a snapshot, and vice versa."""
    load(call, "f", chunks_of(fixture_named("rb_grown_e2.chunks")))
    old, _ = call("CF.SCANDUMP", "f", 0)
    call("CF.ADD", "f", "new")
    refused("Invalid position", call, "CF.SCANDUMP", "f", old)
    new, _ = call("CF.SCANDUMP", "f", 0)
    assert 2**38 < new < 2**53
    load(call, "g", chunks_of(fixture_named("rb_grown_e2.chunks")))
    refused("Invalid position", call, "CF.SCANDUMP", "g", new)


def test_a_dump_continues_with_a_copy(call):
    """A server that defragments moves filters by copying them."""
    load(call, "f", chunks_of(fixture_named("rb_grown_e2.chunks")))
    iterator, _ = call("CF.SCANDUMP", "f", 0)
    call("COPY", "f", "g")
    same(call("CF.SCANDUMP", "g", iterator), call("CF.SCANDUMP", "f", iterator))
    call("CF.ADD", "g", "new")
    refused("Invalid position", call, "CF.SCANDUMP", "g", iterator)


def test_a_damaged_header_is_reported(call):
    """With any iterator, RedisBloom's first one (1) included."""
    add_all(call, "f", items("a-", 100))
    header = bytearray(call("CF.SNAPSHOT", "f"))
    header[9] ^= 1
    for iterator in (1, len(header)):
        refused("Couldn't create filter!", call, "CF.LOADCHUNK", "g", iterator, bytes(header))
    assert call("EXISTS", "g") == 0
