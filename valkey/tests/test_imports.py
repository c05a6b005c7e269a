"""Filters that RedisBloom wrote (tests/data/redisbloom). Lookups and dumped bytes equal RedisBloom's."""

import json
import subprocess

import pytest

from filters import (
    FIXTURES, INFO_FIELDS, add_all, all_exist, chunks_of, difference, digest, dump, exist, fixture_named, fixtures,
    info, items, joined_bytes, load, refused, snapshot, state,
)
from servers import COMMAND, wait_until
from wire import encode, same

WITH_CHUNKS = [fixture for fixture in fixtures() if fixture["chunks"]]


@pytest.fixture(params=WITH_CHUNKS, ids=[fixture["file"] for fixture in WITH_CHUNKS])
def fixture(request):
    return request.param


def remaining(fixture):
    """Returns the items of the fixture that were not deleted."""
    deleted = fixture["delete_every"]
    every = items(fixture["key_prefix"], fixture["added"])
    return [item for n, item in enumerate(every) if not deleted or n % deleted]


def test_answers(call, fixture):
    load(call, "f", chunks_of(fixture))
    results = exist(call, "f", items(fixture["probe_prefix"], fixture["probe_count"]))
    assert [n for n, result in enumerate(results) if result] == fixture["probe_hits"]
    all_exist(call, "f", remaining(fixture))
    keys = items(fixture["key_prefix"], fixture["added"])[:: fixture["count_every"]]
    assert call.pipeline([("CF.COUNT", "f", key) for key in keys]) == fixture["counts"]


def test_info(call, fixture):
    """All of RedisBloom's fields, except Size, which is what this server needs."""
    load(call, "f", chunks_of(fixture))
    found = info(call, "f")
    expected = {**fixture["info"], "Size": found["Size"]}
    assert {name: found[name] for name in INFO_FIELDS} == expected
    assert found["Imported items"] == fixture["info"]["Number of items inserted"]


def test_bytes(call, fixture):
    chunks = chunks_of(fixture)
    load(call, "f", chunks)
    assert dump(call, "f") == chunks


def test_imported_filters_have_no_snapshot(call, fixture):
    """Snapshots are a format of koel's own filters."""
    load(call, "f", chunks_of(fixture))
    assert "CF.SCANDUMP" in refused("ERR", call, "CF.SNAPSHOT", "f")
    call("CF.ADD", "f", "a")
    assert "CF.SCANDUMP" in refused("ERR", call, "CF.SNAPSHOT", "f")


def test_an_empty_filter_has_no_chunks(call):
    fixture = fixture_named("rb_empty.chunks")
    assert chunks_of(fixture) == []
    call("CF.RESERVE", "f", *fixture["reserve"])
    assert dump(call, "f") == [] and exist(call, "f", items("probe-", 20_000)) == [0] * 20_000


def test_padded_header(call):
    """RedisBloom's header has two more bytes if its compiler does not pack it."""
    fixture = fixture_named("rb_b4_n4000.chunks")
    (iterator, header), *rest = chunks_of(fixture)
    padded = header + b"\0\0" if len(header) == 38 else header[:38]
    load(call, "f", [(iterator, padded), *rest])
    all_exist(call, "f", remaining(fixture))


def test_removals(call, fixture):
    chunks = chunks_of(fixture)
    load(call, "f", chunks)
    present = remaining(fixture)
    assert set(call.pipeline([("CF.DEL", "f", item) for item in present[:500]])) == {1}
    all_exist(call, "f", present[500:])
    found, deleted = info(call, "f"), fixture["info"]["Number of items deleted"]
    assert found["Number of items inserted"] == len(present) - 500
    if found["Number of filters"] == 1:
        assert found["Number of items deleted"] == deleted + 500
        # It is still RedisBloom's filter.
        assert len(joined_bytes(dump(call, "f"))) == len(joined_bytes(chunks))


def test_compaction(call, fixture):
    load(call, "f", chunks_of(fixture))
    same(call("CF.COMPACT", "f"), "OK")
    all_exist(call, "f", remaining(fixture))
    load(call, "g", dump(call, "f"))
    assert snapshot(call, "g") == snapshot(call, "f")


def test_new_items(call, fixture):
    """New items go into an own filter beside the imported one."""
    chunks = chunks_of(fixture)
    load(call, "f", chunks)
    old, new = remaining(fixture), items("new-", 10_000)
    add_all(call, "f", new)
    all_exist(call, "f", old + new)
    found = info(call, "f")
    assert found["Imported items"] == len(old) and found["Number of items inserted"] == len(old) + len(new)
    assert found["Size"] >= len(joined_bytes(chunks)) + 10_000
    # Additional hits are at most those of koel's filter: 1 % of 20,000, plus five standard deviations.
    hits = sum(exist(call, "f", items(fixture["probe_prefix"], fixture["probe_count"])))
    assert len(fixture["probe_hits"]) <= hits <= len(fixture["probe_hits"]) + 200 + 5 * 14.2


def test_dumps_with_new_items(call, fixture):
    chunks = chunks_of(fixture)
    load(call, "f", chunks)
    add_all(call, "f", items("new-", 3000))
    both = dump(call, "f")
    assert both != chunks
    load(call, "g", both)
    assert snapshot(call, "g") == joined_bytes(both)
    all_exist(call, "g", remaining(fixture) + items("new-", 3000))
    for key in ("f", "g"):
        add_all(call, key, items("later-", 3000))
    assert snapshot(call, "g") == snapshot(call, "f")


def test_removing_new_items_restores_the_lookups(call):
    """Removing the new items leaves RedisBloom's chunks unchanged."""
    fixture = fixture_named("rb_b4_n4000.chunks")
    load(call, "f", chunks_of(fixture))
    before = exist(call, "f", items("probe-", 20_000))
    add_all(call, "f", items("new-", 100))
    assert set(call.pipeline([("CF.DEL", "f", item) for item in items("new-", 100)])) == {1}
    assert exist(call, "f", items("probe-", 20_000)) == before
    all_exist(call, "f", remaining(fixture))


def test_copies_in_both_filters(call):
    """CF.COUNT adds up both filters, CF.ADDNX looks in both, and CF.DEL removes the copies one at a time."""
    fixture = fixture_named("rb_b1_n3000.chunks")
    load(call, "f", chunks_of(fixture))
    counted = call("CF.COUNT", "f", "key-0")
    assert counted >= 1
    same(call("CF.ADDNX", "f", "key-0"), 0)
    same(call("CF.INSERTNX", "f", "ITEMS", "key-0"), [0])
    same(call("CF.ADD", "f", "key-0"), 1)
    same(call("CF.COUNT", "f", "key-0"), counted + 1)
    for left in range(counted, -1, -1):
        same(call("CF.DEL", "f", "key-0"), 1)
        same(call("CF.COUNT", "f", "key-0"), left)
    same(call("CF.DEL", "f", "key-0"), 0)


def test_copies_in_several_sub_filters(call):
    """Each item has 1 to 20 copies, and a sub-filter has room for four. RedisBloom's counts are preserved, and every copy can
    be removed."""
    fixture = json.loads((FIXTURES / "copies.json").read_text())
    chunks, copies = chunks_of(fixture), fixture["copies"]
    keys = items(fixture["key_prefix"], len(copies))
    load(call, "f", chunks)
    assert dump(call, "f") == chunks
    found = info(call, "f")
    assert {name: found[name] for name in fixture["info"]} == fixture["info"]
    same(call("COPY", "f", "grown"), 1)
    load(call, "compacted", chunks)
    same(call("CF.COMPACT", "compacted"), "OK")
    # Further copies go into the own filter beside it.
    add_all(call, "grown", [key for key in keys for _ in range(30)])
    load(call, "again", dump(call, "grown"))
    for key, more in [("f", 0), ("compacted", 0), ("grown", 30), ("again", 30)]:
        counts = [count + more for count in fixture["counts"]]
        assert call.pipeline([("CF.COUNT", key, item) for item in keys]) == counts, key
        assert min(map(int.__sub__, counts, copies)) >= more
        same(call("DEBUG", "RELOAD"), "OK")
        removals = [("CF.DEL", key, item) for item, number in zip(keys, copies) for _ in range(number + more)]
        assert call.pipeline(removals) == [1] * len(removals), key
        assert info(call, key)["Number of items inserted"] == 0 and sum(exist(call, key, keys)) == 0


def test_expansion_0_is_imported(call):
    """The last field of RedisBloom's header is EXPANSION 0."""
    fixture = fixture_named("rb_b1_n3000.chunks")
    (iterator, header), *rest = chunks_of(fixture)
    fixed = header[:36] + b"\0\0" + header[38:]
    load(call, "f", [(iterator, fixed), *rest])
    assert info(call, "f")["Expansion rate"] == 0
    all_exist(call, "f", remaining(fixture))


def test_copies_of_the_key(call, fixture):
    load(call, "f", chunks_of(fixture))
    add_all(call, "f", items("new-", 10))
    same(call("COPY", "f", "g"), 1)
    same(call("RESTORE", "h", 0, call("DUMP", "f")), "OK")
    for key in ("g", "h"):
        assert not difference(state(call, key), state(call, "f")), key
    assert digest(call, "f") != "0" * 40


def test_a_filter_is_invisible_while_it_is_loaded(call, fixture):
    chunks = chunks_of(fixture)
    sizes = [len(data) for _, data in chunks[1:]]
    for count in range(1, len(chunks)):
        load(call, "f", chunks[:count])
        error = refused("ERR a filter is being loaded", call, "CF.EXISTS", "f", "key-0")
        assert f": {sum(sizes[: count - 1])} of {sum(sizes)} bytes have arrived" in error, error
        refused("ERR a filter is being loaded", call, "CF.ADD", "f", "a")
    load(call, "f", chunks[len(chunks) - 1 :])
    all_exist(call, "f", remaining(fixture))


def test_the_koel_command_agrees_with_the_server(call, fixture, tmp_path):
    """`koel query` on the file finds the same items as the server that loaded it."""
    load(call, "f", chunks_of(fixture))
    probes = items(fixture["probe_prefix"], 5000)
    expected = [item for item, result in zip(probes, exist(call, "f", probes)) if result]
    result = subprocess.run(
        [COMMAND, "query", FIXTURES / fixture["file"]], input=b"\n".join(probes) + b"\n", capture_output=True,
        timeout=60, check=False,
    )
    assert result.stdout.splitlines() == expected, result.stderr


def test_a_file_with_redisblooms_words(start):
    """RedisBloom reads the first letter of CF.INSERT's options, ignores unknown ones of CF.RESERVE, and writes both as they came. A
    client is told of its typing errors."""
    commands = [
        ("CF.RESERVE", "f", "5000", "EXPAND", "2"), ("CF.INSERT", "g", "CAP", "500", "ITEM", "a", "b"),
        ("CF.INSERT", "g", "n", "i", "c"), ("CF.INSERTNX", "g", "NOCREAT", "itemz", "d"),
    ]
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        call("CF.ADD", "g", "first")
        for command in commands:
            refused("Unknown argument received", call, *command)
        call("DEL", "g")
    server.stop()
    path = next((server.folder / "appendonlydir").glob("*.incr.aof"))
    path.write_bytes(path.read_bytes() + b"".join(encode(*command) for command in commands))
    server.start()
    with server.connect() as call:
        assert exist(call, "g", [b"a", b"b", b"c", b"d"]) == [1] * 4
        assert (info(call, "f")["Capacity"], info(call, "g")["Capacity"]) == (5000, 500)


def test_a_file_with_redisblooms_numbers(start):
    """RedisBloom knows no ERROR and SEED, and checks no CAPACITY of CF.INSERT. A client is told of invalid ones."""
    commands = {
        ("CF.RESERVE", "f", "5000", "ERROR", "2"): "ERROR", ("CF.RESERVE", "g", "5000", "SEED", "-1", "ERROR", "0.5", "seed", "7"): "SEED",
        ("CF.RESERVE", "h", "5000", "SEED", "x", "EXPANSION", "2"): "Couldn't parse SEED",
        ("CF.INSERT", "old", "CAPACITY", 1 << 41, "ITEMS", "a"): "Capacity", ("CF.INSERTNX", "old", "C", "-1", "I", "b"): "Unknown",
        ("CF.INSERT", "old", "CAPACITY", 0, "ITEMS", "c"): "Capacity", ("CF.INSERT", "new", "CAPACITY", 2, "ITEMS", "d", "e", "f", "g", "h"): "Capacity",
    }
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        call("CF.ADD", "old", "first")
        for command, error in commands.items():
            refused(error, call, *command)
    server.stop()
    path = next((server.folder / "appendonlydir").glob("*.incr.aof"))
    path.write_bytes(path.read_bytes() + b"".join(encode(*command) for command in commands))
    server.start()
    with server.connect() as call:
        found = [info(call, key) for key in "fgh"]
        assert [(one["Capacity"], float(one["Error rate"]), one["Seed"]) for one in found] == [(5000, 0.01, 0), (5000, 0.5, 0), (5000, 0.01, 0)]
        assert found[2]["Expansion rate"] == 2 and info(call, "new")["Capacity"] == 4
        assert exist(call, "old", [b"first", b"a", b"b", b"c"]) == [1] * 4 and exist(call, "new", [b"d", b"h"]) == [1] * 2


def test_an_imported_part_without_items_is_dropped(call):
    """The filter is then koel's alone, whether it had new items or not."""
    fixture = fixture_named("rb_b4_n4000.chunks")
    for new in ([], ["new"]):
        call("DEL", "f", "g")
        load(call, "f", chunks_of(fixture))
        call.pipeline([("CF.ADD", "f", item) for item in new])
        removals = [("CF.DEL", "f", item) for item in remaining(fixture)]
        assert all(call.pipeline(removals[1:]))
        before = info(call, "f")
        assert call(*removals[0]) == 1 and before["Imported items"] == 1
        after = info(call, "f")
        assert after["Imported items"] == 0 and after["Number of items deleted"] == before["Number of items deleted"] + 1
        assert b"koel_filters_with_imported_items:0" in call("INFO", "koel") and exist(call, "f", new) == [1] * len(new)
        load(call, "g", dump(call, "f"))
        call("CF.ADD", "f", "later")
        call("CF.UNION", "f", "f")
        assert snapshot(call, "f")


def test_new_items_go_into_the_same_filter_everywhere(start):
    """An own filter beside an imported one is sized by the items present at that moment, no matter where the imported one was
    read from."""
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        load(call, "f", chunks_of(fixture_named("rb_b4_n4000.chunks")))
        payload = call("DUMP", "f")
        removals = [("CF.DEL", "f", item) for item in items("key-", 2500)]
        call.pipeline(removals)
        call("BGREWRITEAOF")
        wait_until(lambda: b"aof_rewrite_in_progress:0" in call("INFO", "persistence"))
    server.restart()
    with server.connect() as call:
        call("RESTORE", "restored", 0, payload)
        call.pipeline([(command, "restored", item) for command, _, item in removals])
        assert digest(call, "restored") == digest(call, "f")
        for key in ("f", "restored"):
            add_all(call, key, items("new-", 3000))
        assert digest(call, "restored") == digest(call, "f")
        assert info(call, "restored")["Capacity"] == info(call, "f")["Capacity"]
