"""Filters in RDB and AOF files, and in DUMP, RESTORE and COPY, are preserved. Tests of their memory, and of how it is freed."""

import random
import struct

import pytest
import xxhash

from filters import (
    add_all, all_exist, check_zoo, chunks_of, difference, differences, digest, fixture_named, info, is_refused, items,
    load, make_large, make_zoo, refused, state, states,
)
from servers import wait_until
from wire import same


def field(call, section, name):
    """Returns a number from INFO."""
    for line in call("INFO", section).decode().split("\r\n"):
        if line.startswith(f"{name}:"):
            return int(line.split(":")[1])
    raise AssertionError(f"INFO {section} has no {name}")


def used_memory(call):
    return field(call, "memory", "used_memory")


def rewrite(call):
    call("BGREWRITEAOF")
    wait_until(lambda: field(call, "persistence", "aof_rewrite_in_progress") == 0)
    assert b"aof_last_bgrewrite_status:ok" in call("INFO", "persistence")


WAYS = {
    "RDB": [],
    "RDB without compression": ["rdbcompression no"],
    "AOF": ["appendonly yes", "aof-use-rdb-preamble no"],
    "AOF with preamble": ["appendonly yes", "aof-use-rdb-preamble yes"],
    "AOF rewritten": ["appendonly yes", "aof-use-rdb-preamble no"],
}


@pytest.mark.parametrize("way", WAYS)
def test_restart(start, way):
    server = start(*WAYS[way])
    with server.connect() as call:
        rest = make_zoo(call)
        if way.startswith("RDB"):
            call("SAVE")
        elif way != "AOF":
            rewrite(call)
            # Later changes are in the file as commands.
            add_all(call, "plain", items("later-", 100))
            call("CF.DEL", "mixed", "new-1")
            call("CF.ADD", "mixed", "new-1")
        before = states(call)
    server.restart()
    with server.connect() as call:
        assert not differences(states(call), before)
        check_zoo(call, rest)


def test_rewriting_twice(start):
    """An AOF that is rewritten twice is equivalent."""
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        make_zoo(call)
        before = states(call)
    for _ in range(2):
        with server.connect() as call:
            rewrite(call)
        server.restart()
    with server.connect() as call:
        assert not differences(states(call), before)


def test_writes_during_a_rewrite(start):
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        make_zoo(call)
        call("BGREWRITEAOF")
        add_all(call, "plain", items("meanwhile-", 20_000))
        call("CF.RESERVE", "new", 1000, "SEED", 3)
        add_all(call, "new", items("meanwhile-", 20_000))
        wait_until(lambda: field(call, "persistence", "aof_rewrite_in_progress") == 0)
        before = states(call)
    server.restart()
    with server.connect() as call:
        assert not differences(states(call), before)


def test_filters_keep_their_parameters_after_a_restart(start):
    """A filter keeps its parameters, whether it is loaded from values (RDB) or from commands (AOF)."""
    for options in WAYS["RDB"], WAYS["AOF"]:
        server = start(*options)
        with server.connect() as call:
            add_all(call, "f", items("item-", 30_000))
            add_all(call, "g", items("item-", 10))
            if not options:
                call("SAVE")
            before = states(call)
        server.restart(
            "koel.initial-size 100000", "koel.error-rate 0.2", "koel.expansion 0", "koel.max-bytes 1kb", "koel.seed 99"
        )
        with server.connect() as call:
            assert not differences(states(call), before)
            all_exist(call, "f", items("item-", 30_000))


def with_rate(data, rate):
    """Returns the snapshot of a filter with one partition, with this error rate and new checksums."""
    changed = bytearray(data)
    struct.pack_into("<d", changed, 48, rate)
    header = xxhash.xxh3_64_intdigest(bytes(changed[:56]))
    (records,) = struct.unpack_from("<Q", changed, 72)
    section = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(changed[64:88] + changed[96 : 96 + 24 * records]), header))
    changed[56:64], changed[88:96] = struct.pack("<Q", header), section
    changed[-8:] = struct.pack("<Q", xxhash.xxh3_64_intdigest(section, header))
    return bytes(changed)


def test_a_rate_that_no_option_has(start):
    """A snapshot may promise a lower rate than CF.RESERVE takes, as `koel build` does. The rewritten file loads nevertheless."""
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        add_all(call, "f", items("item-", 300))
        data = call("CF.SNAPSHOT", "f")
        changed = with_rate(data, 1e-12)
        assert with_rate(data, 0.01) == data
        call("CF.LOADCHUNK", "whole", len(data), changed, "EXPANSION", 7)
        call("CF.LOADCHUNK", "half", len(data) - 9, changed[:-9])
        rewrite(call)
        before = states(call)
    server.restart()
    with server.connect() as call:
        assert not differences(states(call), before)
        # Redis 7 writes 17 digits.
        assert info(call, "whole")["Expansion rate"] == 7 and float(info(call, "whole")["Error rate"]) == 1e-12
        call("CF.LOADCHUNK", "half", len(data), changed[-9:])
        all_exist(call, "half", items("item-", 300))


def plan_of(capacity, expansion, seed, rate, deleted):
    """Returns a saved plan: each number after the mark of a number, and the length of its encoding."""
    numbers, checksum = [struct.pack("<Q", number) for number in (capacity, expansion, seed)], 0
    numbers += [struct.pack("<d", rate), struct.pack("<Q", deleted)]
    for number in numbers:
        checksum = xxhash.xxh3_64_intdigest(number, checksum)
    encoded = []
    for (number,) in [struct.unpack("<Q", number) for number in numbers] + [(checksum,)]:
        length = struct.pack("B", number) if number < 1 << 6 else struct.pack(">H", 1 << 14 | number) if number < 1 << 14 else b""
        encoded.append(length or (b"\x80" + struct.pack(">I", number) if number < 1 << 32 else b"\x81" + struct.pack(">Q", number)))
    return b"".join(b"\x02" + number for number in encoded)


def test_payloads_with_invalid_plans(start):
    """Anybody can compute the checksum of a plan. What is restored must load again, and be the same."""
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        call("CF.ADD", "own", "a")
        load(call, "imported", chunks_of(fixture_named("rb_default.chunks")))
        load(call, "half", chunks_of(fixture_named("rb_default.chunks"))[:1])
        call("CONFIG", "SET", "rdbcompression", "no")
        valid, nan = plan_of(1024, 1, 0, 0.01, 0), float("nan")
        for key in ("own", "imported", "half"):
            payload = call("DUMP", key)
            assert payload.count(valid) == 1
            for numbers, is_valid in [
                ((1024, 99999, 0, 0.01, 0), False), ((1024, 2**64 - 1, 0, 0.01, 0), False), ((1024, 0, 0, 0.01, 0), True),
                ((1024, 1, 0, nan, 0), key == "own"), ((1024, 1, 0, 1e-12, 0), key == "own"), ((7, 1, 9, 0.5, 5), True),
            ]:
                command = ("RESTORE", f"{key} {numbers}", 0, with_checksum(payload.replace(valid, plan_of(*numbers))))
                assert is_refused(call, *command) != is_valid, command[1]
        rewrite(call)
        before = states(call)
        assert {info(call, key)["Error rate"] for key in before if key.startswith(b"own")} == {b"0.01"}
    server.restart()
    with server.connect() as call:
        assert not differences(states(call), before)


def test_debug_reload(call):
    """Saves and loads without a restart. The server checks that the value is equal."""
    make_zoo(call)
    before = states(call)
    same(call("DEBUG", "RELOAD"), "OK")
    assert not differences(states(call), before)


KINDS = ["empty", "plain", "fixed", "sharp", "large", "rb_grown_e2.chunks", "mixed", "half imported", "half large"]


def test_copy_and_restore(call):
    make_zoo(call)
    for key in KINDS:
        same(call("RESTORE", "restored", 0, call("DUMP", key)), "OK")
        assert digest(call, "restored") == digest(call, key), key
        if key.startswith("half"):
            # A load can continue in only one key.
            assert is_refused(call, "COPY", key, "copy")
        else:
            same(call("COPY", key, "copy"), 1)
            for other in ("copy", "restored"):
                assert not difference(state(call, other), state(call, key)), (other, key)
        call("DEL", "copy", "restored")


def test_a_copy_is_independent(call):
    make_zoo(call)
    for key in ("plain", "mixed"):
        before = state(call, key)
        call("COPY", key, "copy")
        add_all(call, "copy", items("other-", 1000))
        call("CF.DEL", "copy", "plain-600")
        assert state(call, key) == before


def test_digests_distinguish_filters(call):
    add_all(call, "f", items("item-", 1000))
    add_all(call, "g", items("item-", 1000))
    assert digest(call, "f") == digest(call, "g") != "0" * 40
    call("CF.ADD", "g", "one more")
    assert digest(call, "f") != digest(call, "g")


def crc64(data):
    """Returns the CRC-64 (Jones) that ends a payload of DUMP."""
    crc = 0
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def with_checksum(payload):
    """Returns the payload with a valid checksum."""
    return payload[:-8] + struct.pack("<Q", crc64(payload[:-8]))


@pytest.mark.parametrize("key", ["plain", "mixed", "half"])
def test_damaged_payloads(server, call, key):
    """The server's own checksum is recomputed, so only the module's is checked. Damage is refused and does no harm."""
    # In a compressed payload, different bytes can expand to the same content.
    call("CONFIG", "SET", "rdbcompression", "no")
    make_small_filters(call)
    payload = call("DUMP", key)
    assert with_checksum(payload) == payload
    choose = random.Random(key)
    # Byte 0 is the type of a module's value, and the last ten bytes are the version and the checksum.
    places = range(8, 8 * (len(payload) - 10))
    restored = []
    for bit in [*places[: 8 * 60], *choose.sample(places, 150), *places[-8 * 12 :]]:
        changed = bytearray(payload)
        changed[bit // 8] ^= 1 << bit % 8
        if not is_refused(call, "RESTORE", "r", 0, with_checksum(bytes(changed))):
            restored.append(f"bit {bit % 8} of byte {bit // 8} is another")
        call("DEL", "r")
    for length in choose.sample(range(11, len(payload) - 10), 40):
        cut = payload[:length] + payload[-10:]
        if not is_refused(call, "RESTORE", "r", 0, with_checksum(cut)):
            restored.append(f"cut to {length} of {len(payload)} bytes")
        call("DEL", "r")
    assert server.process.poll() is None
    assert not restored
    same(call("RESTORE", "r", 0, payload), "OK")


def make_small_filters(call):
    chunks = chunks_of(fixture_named("rb_default.chunks"))
    add_all(call, "plain", items("item-", 1000))
    load(call, "mixed", chunks)
    add_all(call, "mixed", items("item-", 300))
    load(call, "half", chunks[:2])


def test_a_damaged_file_is_refused(start):
    """The server logs the damage and ends, as it does for its own values."""
    server = start("rdbchecksum no")
    with server.connect() as call:
        add_all(call, "f", items("item-", 50_000))
        call("SAVE")
    path = server.folder / "dump.rdb"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(AssertionError, match="ended with"):
        server.restart()
    assert "koel" in server.log()


def test_memory_usage(call):
    make_zoo(call)
    for key in KINDS:
        usage = call("MEMORY", "USAGE", key)
        if not key.startswith("half"):
            # The charged size depends only on the content, and is never less than the memory.
            size = info(call, key)["Size"]
            assert usage <= size + 256 and size <= usage * 1.1 + 2048, (key, usage, size)
    wait_until(lambda: field(call, "memory", "lazyfree_pending_objects") == 0)
    before = used_memory(call)
    call("CF.RESERVE", "big", 10_000_000)
    taken = used_memory(call) - before
    assert taken * 0.9 < call("MEMORY", "USAGE", "big") < taken * 1.1


@pytest.mark.parametrize("reserves, count, most", [(False, 1, 760), (True, 5, 780)], ids=["one item", "reserved, five"])
def test_small_filters_need_little_memory(call, reserves, count, most):
    """The memory of a key, its name included, averaged over 2,000 keys."""
    wait_until(lambda: field(call, "memory", "lazyfree_pending_objects") == 0)
    before = used_memory(call)
    keys = [f"key:{n:06}" for n in range(2000)]
    if reserves:
        call.pipeline([("CF.RESERVE", key, 100) for key in keys])
    call.pipeline([("CF.ADD", key, f"item {n}") for key in keys for n in range(count)])
    each = (used_memory(call) - before) / len(keys)
    assert each <= most


WAYS_TO_FREE = [("DEL", "large", "other"), ("UNLINK", "large", "other"), ("FLUSHALL", "ASYNC"), ("FLUSHDB", "SYNC")]


@pytest.mark.parametrize("how", WAYS_TO_FREE, ids=" ".join)
def test_memory_is_freed(call, how):
    wait_until(lambda: field(call, "memory", "lazyfree_pending_objects") == 0)
    before = used_memory(call)
    make_large(call, "large")
    add_all(call, "other", items("item-", 200_000))
    assert used_memory(call) > before + (2 << 20)
    call(*how)
    wait_until(lambda: field(call, "memory", "lazyfree_pending_objects") == 0)
    wait_until(lambda: used_memory(call) < before + (1 << 20))


def test_overwritten_and_expired(call):
    add_all(call, "f", items("item-", 1000))
    call("SET", "f", "value")
    refused("WRONGTYPE", call, "CF.ADD", "f", "a")
    call("DEL", "f")
    add_all(call, "f", items("item-", 1000))
    call("PEXPIRE", "f", 1)
    wait_until(lambda: call("EXISTS", "f") == 0)
    same(call("CF.EXISTS", "f", "item-1"), 0)
    same(call("CF.ADD", "f", "a"), 1)
    same(call("CF.COUNT", "f", "item-1"), 0)


def test_defragmentation(start):
    """If the server can move allocations, it does so while filters are in use. (Only Redis with jemalloc calls the module for
    it.)"""
    server = start("active-defrag-ignore-bytes 1", "active-defrag-threshold-lower 0", "active-defrag-cycle-min 50")
    with server.connect() as call:
        if is_refused(call, "CONFIG", "SET", "activedefrag", "yes"):
            pytest.skip("this server has no active defragmentation")
        call("CONFIG", "SET", "activedefrag", "no")
        rest = make_zoo(call)
        for n in range(300):
            call("CF.RESERVE", f"gap {n}", 3000, "SEED", n)
            add_all(call, f"kept {n}", items("item-", 300))
        for n in range(300):
            call("DEL", f"gap {n}")
        before = states(call)
        call("CONFIG", "SET", "activedefrag", "yes")
        wait_until(lambda: any(field(call, "stats", f"active_defrag_key_{which}") for which in ("hits", "misses")))
        add_all(call, "kept 0", items("more-", 50_000))
        del before[b"kept 0"]
        after = states(call)
        del after[b"kept 0"]
        assert not differences(after, before)
        check_zoo(call, rest)
