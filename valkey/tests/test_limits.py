"""The limits of filters and of commands, and the replies beyond them."""

import re
import struct

import pytest

from filters import add_all, all_exist, differences, dump, exist, info, insert, is_refused, items, load, refused, states
from servers import MODULE
from test_persistence import field, used_memory
from wire import Refusal, same

EDGES = [
    0, 1, -1, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 10**40,
    "", " 1", "1 ", "+1", "1e3", "0x10", "1.5", "nan", "-0", "\0",
]

NUMBERS = [
    lambda n: ("CF.RESERVE", "f", n),
    lambda n: ("CF.RESERVE", "f", 1000, "BUCKETSIZE", n),
    lambda n: ("CF.RESERVE", "f", 1000, "MAXITERATIONS", n),
    lambda n: ("CF.RESERVE", "f", 1000, "EXPANSION", n),
    lambda n: ("CF.RESERVE", "f", 1000, "ERROR", n),
    lambda n: ("CF.RESERVE", "f", 1000, "SEED", n),
    lambda n: ("CF.RESERVE", "f", 1000, "SEED", n, "EXPANSION", 32768),
    lambda n: ("CF.INSERT", "f", "CAPACITY", n, "ITEMS", "a"),
    lambda n: ("CF.INSERT", "f", "ERROR", n, "ITEMS", "a"),
    lambda n: ("CF.SCANDUMP", "full", n),
    lambda n: ("CF.LOADCHUNK", "f", n, "bytes"),
    lambda n: ("CF.LOADCHUNK", "f", 1, "bytes", "EXPANSION", n),
    lambda n: ("CF.LOADCHUNK", "f", 1, "bytes", "DELETED", n),
]


def test_extreme_numbers(server, call):
    """For any number, there is a reply, the server survives, and a refused command creates no key."""
    call("CF.RESERVE", "full", 4, "EXPANSION", 0)
    add_all(call, "full", [b"a", b"b", b"c", b"d"])
    for command in NUMBERS:
        for number in EDGES:
            was_refused = is_refused(call, *command(number))
            assert call("PING") == "PONG" and server.process.poll() is None
            assert not (was_refused and call("EXISTS", "f")), command(number)
            call("DEL", "f")
    assert exist(call, "full", [b"a", b"b", b"c", b"d"]) == [1] * 4


def test_more_copies_than_buckets_have_slots(call):
    """Nine copies of one item, whose two buckets have eight slots; then nine of each item in a filter with a small capacity."""
    for _ in range(9):
        same(call("CF.ADD", "f", "a"), 1)
    same(call("CF.INSERT", "f", "ITEMS", "a", "b"), [1, 1])
    same(call("CF.COUNT", "f", "a"), 10)
    same(call("CF.ADDNX", "f", "a"), 0)
    same(call("CF.INSERTNX", "f", "ITEMS", "a"), [0])
    for _ in range(10):
        same(call("CF.DEL", "f", "a"), 1)
    same(call("CF.DEL", "f", "a"), 0)
    same(call("CF.ADD", "f", "a"), 1)
    call("CF.RESERVE", "full", 4, "EXPANSION", 0)
    same(call("CF.INSERT", "full", "ITEMS", *"abcd" * 9, "e"), [1] * 36 + [-1])
    same([call("CF.COUNT", "full", item) for item in "abcde"], [9] * 4 + [0])


@pytest.mark.parametrize(
    ("name", "value", "rest"),
    [("maxmemory", "60mb", []), ("koel.max-bytes", "20mb", []), ("koel.max-bytes", "20mb", ["EXPANSION", 0, "ERROR", 0.001])],
)
def test_refused_reservations_name_a_capacity_that_fits(call, name, value, rest):
    """A reservation beyond `maxmemory` or `koel.max-bytes` is refused. The error names a capacity that fits, and it does."""
    call("CONFIG", "SET", name, value)
    error = refused("ERR Insufficient memory to create filter: it takes", call, "CF.RESERVE", "f", 100_000_000, *rest)
    fits = int(re.search("reserve a capacity of ([0-9]+),", error)[1])
    assert name in error and fits > 1_000_000
    refused("ERR Insufficient memory", call, "CF.RESERVE", "f", fits + fits // 8, *rest)
    # The used memory varies slightly from command to command.
    same(call("CF.RESERVE", "f", fits - fits // 100, *rest), "OK")


def test_a_reservation_larger_than_all_memory(call):
    """Memory that can be evicted counts as free, but this reservation exceeds all memory."""
    call("CONFIG", "SET", "maxmemory", "60mb")
    call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        assert f"maxmemory leaves {60 << 20};" in refused("ERR Insufficient", call, "CF.RESERVE", "f", 100_000_000)
    finally:
        call("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_filters_that_appear_without_a_reservation(start):
    """The first new item beside imported ones, and a union into a missing key, need as much memory as a reservation, and are refused as
    one. A file that contains them is loaded nevertheless."""
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        # Each item with the fingerprint 213 is there, whatever its buckets.
        load(call, "f", [(1, struct.pack("<QQQQHHH", 1 << 20, 1 << 19, 0, 1, 2, 20, 1)), ((1 << 20) + 1, b"\xd5" * (1 << 20))])
        assert call("CF.MEXISTS", "f", "alice", "bob") == [1, 0]
        call("CF.RESERVE", "g", 1 << 20)
        before = info(call, "f")
        call("CONFIG", "SET", "maxmemory", used_memory(call) + (1 << 20))
        for command in (
            ("CF.ADD", "f", "alice"), ("CF.ADDNX", "f", "bob"), ("CF.INSERT", "f", "ITEMS", "bob"), ("CF.INSERTNX", "f", "ITEMS", "alice", "bob"),
            ("CF.UNION", "h", "g"),
        ):
            error = refused("ERR Insufficient memory to create filter: it takes ", call, *command)
            assert re.search("takes 1[0-9]{6} bytes, and maxmemory leaves [0-9]+; raise maxmemory$", error), error
        # These need none.
        same(call("CF.ADDNX", "f", "alice"), 0)
        same(call("CF.INSERTNX", "f", "ITEMS", "alice"), [0])
        same(call("CF.UNION", "g", "g"), "OK")
        same(call("EXISTS", "h"), 0)
        assert info(call, "f") == before and field(call, "koel", "koel_refused_out_of_memory") == 5
        call("CONFIG", "SET", "maxmemory", 0)
        same(call("CF.INSERTNX", "f", "ITEMS", "alice", "bob"), [0, 1])
        same(call("CF.UNION", "h", "g"), "OK")
        all_states = states(call)
    server.restart("maxmemory 4mb")
    with server.connect() as call:
        assert not differences(states(call), all_states)


@pytest.mark.parametrize("capacity", [4, 5, 100, 1000, 30_000])
def test_a_filter_that_does_not_grow(call, capacity):
    call("CF.RESERVE", "f", capacity, "EXPANSION", 0, "ERROR", "0.000001")
    members = items("item-", capacity)
    add_all(call, "f", members)
    refused("Filter is full", call, "CF.ADD", "f", "one more")
    refused("Filter is full", call, "CF.ADDNX", "f", "one more")
    same(call("CF.INSERT", "f", "ITEMS", "one more", "and another"), [-1, -1])
    same(call("CF.INSERTNX", "f", "ITEMS", "one more", members[0]), [-1, 0])
    assert info(call, "f")["Number of items inserted"] == capacity
    all_exist(call, "f", members)
    same(call("CF.DEL", "f", members[0]), 1)
    same(call("CF.ADD", "f", "one more"), 1)
    refused("Filter is full", call, "CF.ADD", "f", "and another")


def test_items_that_collide_count_once(call):
    """At a high rate, some distinct items collide, so slightly more items than the capacity are accepted: as copies, each of
    which is present, and can be counted and removed."""
    call("CF.RESERVE", "f", 2000, "EXPANSION", 0, "ERROR", 0.1)
    members = items("item-", 4000)
    results = insert(call, "f", members)
    accepted = [item for item, result in zip(members, results) if result == 1]
    assert 2000 <= len(accepted) <= 2000 * 1.2 and set(results[:2000]) == {1}
    assert info(call, "f")["Number of items inserted"] == len(accepted)
    all_exist(call, "f", accepted)
    assert set(call.pipeline([("CF.DEL", "f", item) for item in accepted])) == {1}
    assert info(call, "f")["Number of items inserted"] == 0


def test_in_protocol_3_full_is_false(call3):
    call3("CF.RESERVE", "f", 4, "EXPANSION", 0)
    same(call3("CF.INSERT", "f", "ITEMS", *range(6)), [True] * 4 + [False] * 2)
    same(call3("CF.INSERTNX", "f", "ITEMS", 0, 9), [0, -1])


def test_memory_of_a_reserved_filter(call):
    call("CONFIG", "SET", "koel.max-bytes", "1mb")
    error = refused("ERR Insufficient memory to create filter", call, "CF.RESERVE", "f", 100_000_000)
    assert "1048576" in error and "koel.max-bytes" in error
    refused("ERR Insufficient memory to create filter", call, "CF.RESERVE", "f", 100_000_000, "EXPANSION", 0)
    refused("ERR Insufficient memory", call, "CF.INSERT", "f", "CAPACITY", 100_000_000, "ITEMS", "a")
    same(call("EXISTS", "f"), 0)
    same(call("CF.RESERVE", "f", 100_000), "OK")


def test_memory_of_a_filter_that_grows(call, call3):
    call("CONFIG", "SET", "koel.max-bytes", "64kb")
    members = items("item-", 80_000)
    results = insert(call, "f", members, 100)
    assert set(results) == {1, -1} and info(call, "f")["Size"] <= 64 << 10
    error = refused("Maximum expansions reached: the filter would take", *refused_command(call, members))
    needed, limit = map(int, re.search("take ([0-9]+) bytes or more, and koel.max-bytes is ([0-9]+);", error).groups())
    assert limit == 64 << 10 < needed < 2 * limit
    same(call3("CF.INSERT", "f", "ITEMS", refused_command(call, members)[-1]), [False])
    added = [item for item, result in zip(members, results) if result == 1]
    all_exist(call, "f", added)
    assert info(call, "f")["Number of items inserted"] == len(added)
    call("CONFIG", "SET", "koel.max-bytes", "1gb")
    add_all(call, "f", [item for item, result in zip(members, results) if result == -1])
    all_exist(call, "f", members)


@pytest.mark.parametrize("max_bytes", [50_459, 65_537, 300_000])
def test_no_filter_is_larger_than_its_limit(call, max_bytes):
    """Neither one that is filled, nor one that is loaded or united. The size that the limit must have is in the error, or in CF.INFO."""
    members = items("item-", 3 * max_bytes // 2)
    call("CONFIG", "SET", "koel.max-bytes", max_bytes)
    insert(call, "f", members)
    assert max_bytes // 2 < info(call, "f")["Size"] <= max_bytes
    call("CONFIG", "SET", "koel.max-bytes", "1gb")
    for key, copies in (("distinct", 1), ("copies", 3)):
        for _ in range(copies):
            add_all(call, key, members[:20_000])
        size, chunks = info(call, key)["Size"], dump(call, key)
        length = sum(len(data) for _, data in chunks)
        assert length < size
        call("CONFIG", "SET", "koel.max-bytes", size - 1)
        refused("ERR Insufficient memory to create filter", call, "CF.UNION", "united", key)
        call("CONFIG", "SET", "koel.max-bytes", length)
        for chunk in chunks[:-1]:
            same(call("CF.LOADCHUNK", "loaded", *chunk), "OK")
        error = refused("Couldn't load chunk! The filter takes ", call, "CF.LOADCHUNK", "loaded", *chunks[-1])
        assert f"takes {size} bytes or more, and koel.max-bytes is {length};" in error
        same(call("EXISTS", "loaded", "united"), 0)
        call("CONFIG", "SET", "koel.max-bytes", size)
        same(call("CF.UNION", "united", key), "OK")
        load(call, "loaded", chunks)
        same(info(call, "loaded")["Size"], size)
        same(info(call, "united")["Size"], size)
        call("DEL", "loaded", "united")
        call("CONFIG", "SET", "koel.max-bytes", "1gb")


def test_each_part_of_an_imported_filter_has_the_limit(call):
    """The imported part and that of new items, also in a dump of both, whichever is larger."""
    slots = 4 << 20
    for key, data, rate in [("few items", b"\xd5" + bytes(slots - 1), 0.01), ("many", b"\xd5" * slots, 1e-6)]:
        header = struct.pack("<QQQQHHH", slots - data.count(0), slots // 2, 0, 1, 2, 20, 1)
        load(call, key, [(1, header)], "ERROR", rate)
        load(call, key, [(1 + slots, data)])
        call("CF.ADD", key, "new")
        chunks, own = dump(call, key), info(call, key)["Size"] - slots - 96
        assert (own > slots) == (key == "many")
        most = max(own, slots)
        for limit, number in [(most, len(chunks)), (most - 1, len(chunks) - 1), (1 << 20, 0)]:
            call("CONFIG", "SET", "koel.max-bytes", limit)
            load(call, "loaded", chunks[:number])
            for chunk in chunks[number:][:1]:
                error = refused("Couldn't load chunk! The filter takes ", call, "CF.LOADCHUNK", "loaded", *chunk)
                assert limit > 1 << 20 and f"takes {most} bytes or more" in error or number == 0, error
            same(call("DEL", "loaded"), int(number == len(chunks)))
            call("CONFIG", "SET", "koel.max-bytes", "1gb")


@pytest.mark.parametrize("bucket_size", [[], ["BUCKETSIZE", 1], ["BUCKETSIZE", 255]])
@pytest.mark.parametrize("max_bytes", [1024, 2500, 6000, 700_000])
def test_a_capacity_that_is_named_can_be_reserved(call, max_bytes, bucket_size):
    call("CONFIG", "SET", "koel.max-bytes", max_bytes)
    options = ["EXPANSION", 0, "ERROR", 1e-6]
    error = refused("ERR Insufficient memory to create filter", call, "CF.RESERVE", "f", 10_000_000, *bucket_size, *options)
    fits = re.search("; (reserve a capacity of ([0-9]+)( without BUCKETSIZE)?|no capacity fits), or raise koel.max-bytes", error)
    if fits[2]:
        same(call("CF.RESERVE", "f", fits[2], *([] if fits[3] else bucket_size), *options), "OK")
    else:
        refused("ERR Insufficient memory to create filter", call, "CF.RESERVE", "f", 4, *options)


def refused_command(call, members):
    """Returns an addition that the limit forbids. Other items may find room in a table that is not full."""
    for item in reversed(members):
        if call("CF.INSERT", "f", "NOCREATE", "ITEMS", item) == [-1]:
            return call, "CF.ADD", "f", item
        call("CF.DEL", "f", item)
    raise AssertionError("everything was accepted")


def test_reservations_beyond_the_address_space(server, call):
    """The limit is the server's address space of 4 GiB, set in servers.py, not the module's limit."""
    call("CONFIG", "SET", "koel.max-bytes", 1 << 40)
    refused("ERR Insufficient memory", call, "CF.RESERVE", "f", 1099511627776, "EXPANSION", 0)
    same(call("EXISTS", "f"), 0)
    same(call("CF.RESERVE", "f", 1_000_000), "OK")
    assert server.process.poll() is None


def test_refused_items_in_a_row(call):
    """Refused items alternate with accepted copies, also where a batch of the module ends, at 512."""
    call("CF.RESERVE", "f", 4, "EXPANSION", 0)
    runs = [("a", 2), ("b", 1), ("c", 500), ("d", 1), ("e", 510), ("a", 7), ("f", 3), ("b", 2), ("e", 600), ("c", 9), ("f", 1)]
    expected = [1 if item in "abcd" else -1 for item, count in runs for _ in range(count)]
    same(call("CF.INSERT", "f", "ITEMS", *(item for item, count in runs for _ in range(count))), expected)
    same([call("CF.COUNT", "f", item) for item in "abcdef"], [9, 3, 509, 1, 0, 0])


def test_transactions(call):
    call("MULTI")
    for command in (
        ("CF.RESERVE", "f", 4, "EXPANSION", 0), ("CF.INSERT", "f", "ITEMS", "a", "b", "c"), ("CF.ADD", "f", "d"),
        ("CF.ADD", "f", "e"), ("CF.EXISTS", "f", "a"), ("CF.DEL", "f", "a"), ("CF.COUNT", "f", "a"),
        ("CF.DEL", "g", "a"),
    ):
        same(call(*command), "QUEUED")
    *replies, last = call("EXEC")
    full = replies.pop(3)
    assert isinstance(full, Refusal) and str(full).startswith("Filter is full")
    assert isinstance(last, Refusal) and str(last).startswith("Not found")
    same(replies, ["OK", [1, 1, 1], 1, 1, 1, 0])


def test_scripts(call):
    script = """
        redis.call('CF.RESERVE', KEYS[1], 1000)
        local added = redis.call('CF.INSERT', KEYS[1], 'ITEMS', unpack(ARGV))
        return {added, redis.call('CF.EXISTS', KEYS[1], ARGV[1]), redis.call('CF.EXISTS', KEYS[1], 'absent')}"""
    same(call("EVAL", script, 1, "f", "a", "b"), [[1, 1], 1, 0])
    same(call("EVAL", "return redis.call('CF.COUNT', KEYS[1], ARGV[1])", 1, "f", "b"), 1)
    refused("ERR item exists", call, "EVAL", "return redis.call('CF.RESERVE', KEYS[1], 10)", 1, "f")
    refused("Not found", call, "EVAL", "return redis.pcall('CF.DEL', KEYS[1], 'a')", 1, "g")
    refused("ERR", call, "EVAL", "return redis.call('CF.ADD', KEYS[1])", 1, "f")
    in_protocol_3 = "redis.setresp(3); return redis.call('CF.EXISTS', KEYS[1], 'a') == true"
    same(call("EVAL", in_protocol_3, 1, "f"), 1)


def test_scripts_that_may_only_read(call):
    call("CF.ADD", "f", "a")
    same(call("EVAL_RO", "return redis.call('CF.EXISTS', KEYS[1], 'a')", 1, "f"), 1)
    refused("ERR", call, "EVAL_RO", "return redis.call('CF.ADD', KEYS[1], 'a')", 1, "f")
    same(call("CF.COUNT", "f", "a"), 1)


def test_settings_of_new_filters(call):
    call("CONFIG", "SET", "koel.error-rate", "0.0001")
    call("CONFIG", "SET", "koel.expansion", "0")
    call("CONFIG", "SET", "koel.initial-size", "10")
    members = items("item-", 12)
    assert [is_refused(call, "CF.ADD", "f", item) for item in members] == [False] * 10 + [True] * 2
    found = info(call, "f")
    assert float(found["Error rate"]) == 0.0001 and found["Expansion rate"] == 0 and found["Capacity"] == 10


def test_settings_from_the_configuration_file(start):
    settings = ["max-bytes 2mb", "error-rate 0.001", "initial-size 50", "expansion 4", "seed 7"]
    server = start(*[f"koel.{setting}" for setting in settings])
    with server.connect() as call:
        same(call("CONFIG", "GET", "koel.max-bytes"), [b"koel.max-bytes", b"2097152"])
        call("CF.ADD", "f", "a")
        found = info(call, "f")
        assert float(found["Error rate"]) == 0.001 and found["Expansion rate"] == 4 and found["Capacity"] >= 50
        call("CF.RESERVE", "g", 50, "ERROR", 0.001, "EXPANSION", 4, "SEED", 7)
        call("CF.ADD", "g", "a")
        assert call("CF.SNAPSHOT", "f") == call("CF.SNAPSHOT", "g")


def test_a_module_that_is_loaded_later(start):
    server = start(module=None)
    with server.connect() as call:
        same(call("MODULE", "LOADEX", MODULE, "CONFIG", "koel.error-rate", "0.001"), "OK")
        call("CF.ADD", "f", "a")
        assert float(info(call, "f")["Error rate"]) == 0.001
        refused("ERR", call, "MODULE", "LOADEX", MODULE)
        # A module with its own data type cannot be unloaded.
        refused("ERR", call, "MODULE", "UNLOAD", "koel")
        same(call("CF.EXISTS", "f", "a"), 1)


def test_invalid_settings_prevent_loading(start):
    server = start(module=None)
    with server.connect() as call:
        refused("ERR", call, "MODULE", "LOADEX", MODULE, "CONFIG", "koel.error-rate", "2")
        refused("ERR", call, "MODULE", "LOADEX", MODULE, "ARGS", "unknown")
        same(call("PING"), "PONG")
