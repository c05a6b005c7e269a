"""CF.SCANDUMP, CF.LOADCHUNK and CF.SNAPSHOT of koel's own filters; the command `koel` opens what they give."""

import json
import subprocess

import pytest

from filters import (
    MOST_IN_CHUNK, add_all, all_exist, chunks_of, differences, dump, exist, fixture_named, info, is_refused, items, joined, load,
    make_large, refused, snapshot, state, states,
)
from servers import COMMAND, wait_until
from test_replication import follow, wait_for_sync
from wire import same


@pytest.fixture
def large(call):
    """The chunks of the filter `large`: three or more."""
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
    assert joined(large) == snapshot and snapshot[:8] == b"KOEL\r\n\x1a\n"
    assert all(len(data) <= MOST_IN_CHUNK for _, data in large)
    # A dump is as deterministic as the filter.
    assert dump(call, "large") == large


def test_the_command_opens_a_dump(call, tmp_path):
    some = items("item-", 50_000)
    call("CF.RESERVE", "f", 1000, "ERROR", 0.001)
    add_all(call, "f", some)
    path = tmp_path / "dump.koel"
    path.write_bytes(joined(dump(call, "f")))
    facts = json.loads(koel("info", path, "--json"))
    assert facts["items"] == 50_000
    probes = some[:1000] + items("absent-", 20_000)
    expected = [item for item, answer in zip(probes, exist(call, "f", probes)) if answer]
    assert koel("query", "--verify", path, input=b"\n".join(probes) + b"\n").splitlines() == expected
    assert len(expected) < 1000 + 60


@pytest.mark.parametrize("piece", [8, 63, 1000, 1 << 20])
def test_a_filter_of_the_command_is_loaded(call, tmp_path, piece):
    """In pieces of any size but the tiniest: the iterator of each is the offset of its end in the file."""
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


def test_a_loaded_filter_goes_on(call):
    """As the original would: same items, same bytes."""
    call("CF.RESERVE", "f", 5000, "SEED", 9)
    add_all(call, "f", items("item-", 3000))
    load(call, "g", dump(call, "f"), "EXPANSION", 1)
    for key in ("f", "g"):
        add_all(call, key, items("more-", 30_000))
        assert call("CF.DEL", key, "item-1") == 1
    assert call("CF.SNAPSHOT", "g") == call("CF.SNAPSHOT", "f")


def test_expansion_and_deletions_can_be_given(call):
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
    assert joined(dump(call, "large")) == call("CF.SNAPSHOT", "large")


def test_what_changes_nothing_does_not_end_a_dump(call, large):
    iterator, _ = call("CF.SCANDUMP", "large", 0)
    call("CF.EXISTS", "large", "large-1")
    call("CF.COUNT", "large", "large-1")
    same(call("CF.SCANDUMP", "large", iterator), list(large[1]))


def test_another_filter_under_the_name_ends_a_dump(call, large):
    iterator, _ = call("CF.SCANDUMP", "large", 0)
    call("CF.ADD", "other", "a")
    call("RENAME", "other", "large")
    refused("Invalid position", call, "CF.SCANDUMP", "large", iterator)


LOOK_UPS = [("CF.EXISTS", "f", "large-1"), ("CF.MEXISTS", "f", "large-1", "a"), ("CF.COUNT", "f", "large-1")]
DESCRIPTIONS = [("CF.INFO", "f"), ("CF.DEBUG", "f"), ("CF.SCANDUMP", "f", 0), ("CF.SNAPSHOT", "f")]
WRITES = [
    ("CF.ADD", "f", "a"), ("CF.ADDNX", "f", "a"), ("CF.INSERT", "f", "ITEMS", "a"), ("CF.INSERTNX", "f", "ITEMS", "a"),
    ("CF.INSERT", "f", "NOCREATE", "ITEMS", "a"), ("CF.RESERVE", "f", 1000), ("CF.DEL", "f", "a"), ("CF.COMPACT", "f"),
]


def test_a_filter_that_is_being_loaded(call, large):
    load(call, "f", large[:2])
    received = sum(len(data) for _, data in large[:2])
    for command in LOOK_UPS + DESCRIPTIONS + WRITES:
        said = refused("ERR a filter is being loaded", call, *command)
        assert f": {received} bytes have come, the last ones 0 s ago" in said or "ones 1 s ago" in said, said
    # Those who want RedisBloom's answer can have it.
    call("CONFIG", "SET", "koel.absent-while-loading", "yes")
    for command in LOOK_UPS:
        same(call(*command), call(command[0], "missing", *command[2:]))
    for command in DESCRIPTIONS + WRITES:
        refused("ERR a filter is being loaded", call, *command)
    # An administrator finds it, among those that are there.
    same(sorted(call("SCAN", 0, "TYPE", "koel-cuck")[1]), [b"f", b"large"])
    same(call("EXISTS", "f"), 1)
    assert call("MEMORY", "USAGE", "f") > 2 << 20
    load(call, "f", large[2:])
    assert snapshot(call, "f") == joined(large)
    all_exist(call, "f", items("large-", 5000))


def test_a_load_can_be_given_up(call, large):
    load(call, "f", large[:2])
    same(call("DEL", "f"), 1)
    same(call("CF.ADD", "f", "a"), 1)
    refused("Couldn't load chunk!", call, "CF.LOADCHUNK", "f", *large[2])
    refused("ERR item exists", call, "CF.LOADCHUNK", "f", *large[0])
    same(call("CF.COUNT", "f", "a"), 1)


def test_a_load_can_start_again(call, large):
    load(call, "f", large[:2])
    load(call, "f", large[:1])
    refused("Invalid position", call, "CF.LOADCHUNK", "f", *large[2])
    load(call, "f", large[1:])
    assert snapshot(call, "f") == joined(large)


def test_a_load_takes_each_chunk_once_and_in_order(call, large):
    for chunk in large[1:]:
        assert is_refused(call, "CF.LOADCHUNK", "f", *chunk)
        same(call("EXISTS", "f"), 0)
    load(call, "f", large[:1])
    refused("Invalid position", call, "CF.LOADCHUNK", "f", *large[2])
    load(call, "f", large[1:2])
    refused("Invalid position", call, "CF.LOADCHUNK", "f", *large[1])
    load(call, "f", large[2:])
    refused("Couldn't load chunk!", call, "CF.LOADCHUNK", "f", *large[-1])
    assert snapshot(call, "f") == joined(large)


def test_loads_side_by_side(call, large):
    """Into two keys, and from two connections."""
    for chunk in large:
        load(call, "f", [chunk])
        load(call, "g", [chunk])
    assert call("CF.SNAPSHOT", "f") == call("CF.SNAPSHOT", "g") == joined(large)


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
    """The limit is for one reply; the dump has none."""
    call("CF.RESERVE", "f", 60_000_000)
    call("CF.ADD", "f", "a")
    said = refused("", call, "CF.SNAPSHOT", "f")
    assert "CF.SCANDUMP" in said
    iterator, data = call("CF.SCANDUMP", "f", 0)
    assert iterator > 0 and len(data) <= MOST_IN_CHUNK


@pytest.mark.parametrize("way", ["RDB", "AOF", "AOF rewritten"])
def test_a_dump_goes_on_after_a_restart(start, way):
    """An iterator says at which byte of which content a dump is. So it goes on, or is an error if the content is another. Those of
    RedisBloom's chunks have no room for that, and are an error after a restart."""
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


def test_a_dump_goes_on_after_a_failover(start):
    """At the promoted replica, of which the filter came by commands, in other portions than those of the clients."""
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
    """What RedisBloom's chunks have for iterators is no position in a snapshot, nor the other way round."""
    load(call, "f", chunks_of(fixture_named("rb_grown_e2.chunks")))
    old, _ = call("CF.SCANDUMP", "f", 0)
    call("CF.ADD", "f", "new")
    refused("Invalid position", call, "CF.SCANDUMP", "f", old)
    new, _ = call("CF.SCANDUMP", "f", 0)
    assert 2**38 < new < 2**53
    load(call, "g", chunks_of(fixture_named("rb_grown_e2.chunks")))
    refused("Invalid position", call, "CF.SCANDUMP", "g", new)


def test_a_dump_goes_on_with_a_copy(call):
    """As while a server defragments, which moves filters by copying them."""
    load(call, "f", chunks_of(fixture_named("rb_grown_e2.chunks")))
    iterator, _ = call("CF.SCANDUMP", "f", 0)
    call("COPY", "f", "g")
    same(call("CF.SCANDUMP", "g", iterator), call("CF.SCANDUMP", "f", iterator))
    call("CF.ADD", "g", "new")
    refused("Invalid position", call, "CF.SCANDUMP", "g", iterator)


def test_a_damaged_header_is_named(call):
    """Whatever the iterator: RedisBloom's is 1."""
    add_all(call, "f", items("a-", 100))
    header = bytearray(call("CF.SNAPSHOT", "f"))
    header[9] ^= 1
    for iterator in (1, len(header)):
        refused("Couldn't create filter!", call, "CF.LOADCHUNK", "g", iterator, bytes(header))
    assert call("EXISTS", "g") == 0
