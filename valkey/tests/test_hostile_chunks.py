"""CF.LOADCHUNK of bytes that no dump has: they are refused, nothing changes, and the server survives."""

import random
import struct

import pytest

from filters import (
    add_all, chunks_of, dump, exist, fixture_named, fixtures, info, is_refused, items, joined_bytes, load, make_large, refused,
)
from test_replication import follow, wait_for_sync
from test_words import built
from wire import Refusal, same

# The last one is for a later chunk of a missing key, as in RedisBloom.
ERRORS = ("Invalid position", "Invalid header", "Couldn't create filter!", "Couldn't load chunk!", "ERR not found")


@pytest.fixture
def small(call):
    """The chunks of a small filter, with copies."""
    add_all(call, "small", items("item-", 2000) + items("item-", 300) * 40)
    return dump(call, "small")


def try_to_load(call, key, chunks):
    """Returns true if all chunks were accepted. Asserts that an error is one that clients know."""
    for iterator, data in chunks:
        try:
            call("CF.LOADCHUNK", key, iterator, data)
        except Refusal as refusal:
            assert str(refusal).startswith(ERRORS), refusal
            return False
    return True


def is_invisible(call, key):
    """Returns true if there is no filter. If one is being loaded, asserts that every command says so."""
    if not call("EXISTS", key):
        return (call("CF.EXISTS", key, "item-1"), call("CF.SNAPSHOT", key)) == (0, None) and is_refused(call, "CF.INFO", key)
    for command in [("CF.EXISTS", key, "item-1"), ("CF.SNAPSHOT", key), ("CF.INFO", key)]:
        refused("ERR a filter is being loaded", call, *command)
    return True


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_random_bytes(server, call):
    choose = random.Random(1)
    for length in [0, 1, 7, 8, 37, 38, 39, 40, 63, 64, 65, 1000, 100_000]:
        for iterator in (1, 2, length, length + 1, 2**63 - 1):
            assert not try_to_load(call, "f", [(iterator, choose.randbytes(length))])
            same(call("EXISTS", "f"), 0)
    assert server.process.poll() is None


@pytest.mark.parametrize("head", ["koel", "RedisBloom"])
def test_random_bytes_after_a_valid_prefix(call, small, head):
    choose = random.Random(2)
    prefix = small[0][1][:16] if head == "koel" else chunks_of(fixture_named("rb_default.chunks"))[0][1][:24]
    for length in (0, 8, 14, 16, 22, 24, 48, 56, 1000):
        for iterator in (1, length + len(prefix), length + len(prefix) + 1):
            try_to_load(call, "f", [(iterator, prefix + choose.randbytes(length))])
            assert is_invisible(call, "f")
            call("DEL", "f")


def test_flipped_bits_of_a_header(call, small):
    """Checksums reveal every flip with the last chunk at the latest. If the header promises more bytes, the load waits for
    them."""
    (iterator, data), *rest = small
    choose = random.Random(3)
    for bit in [*range(8 * 96), *choose.sample(range(8 * len(data)), 500)]:
        if try_to_load(call, "f", [(iterator, flipped(data, bit)), *rest]):
            assert call("MEMORY", "USAGE", "f") < 2 * len(data) + 10_000, bit
        assert is_invisible(call, "f"), bit
        call("DEL", "f")


def test_truncated(call, small):
    (iterator, data), *rest = small
    choose = random.Random(4)
    for length in [*range(0, 100), *choose.sample(range(len(data)), 100), len(data) - 1]:
        for iterator_given in (iterator, iterator - len(data) + length):
            try_to_load(call, "f", [(iterator_given, data[:length]), *rest])
            assert is_invisible(call, "f"), (length, iterator_given)
            call("DEL", "f")


def test_longer(call, small):
    (iterator, data), *rest = small
    for more in (b"\0", b"\0" * 8, data):
        for iterator_given in (iterator, iterator + len(more)):
            assert not try_to_load(call, "f", [(iterator_given, data + more), *rest])
            assert is_invisible(call, "f")
            call("DEL", "f")


def test_a_damaged_last_chunk_drops_the_load(call):
    make_large(call, "large")
    chunks = dump(call, "large")
    iterator, data = chunks[-1]
    load(call, "f", chunks[:-1])
    refused(ERRORS, call, "CF.LOADCHUNK", "f", iterator, flipped(data, 8 * len(data) - 1))
    same(call("EXISTS", "f"), 0)
    # Damage nearer to the front is also noticed then.
    load(call, "f", chunks[:1])
    damaged = [(at, flipped(data, 4 * len(data))) for at, data in chunks[1:]]
    assert not try_to_load(call, "f", damaged) and is_invisible(call, "f")


def test_a_load_that_fails_reaches_neither_replicas_nor_the_file(start, tmp_path):
    """With the chunk that ends the load, a replica would panic, and the server could not start again."""
    primary = start("appendonly yes", tcp=True)
    replica = start("propagation-error-behavior panic-on-replicas", tcp=True)
    follow(primary, replica)
    with primary.connect() as call:
        add_all(call, "small", items("item-", 2000))
        make_large(call, "large")
        (iterator, data), large = *dump(call, "small"), dump(call, "large")
        assert not try_to_load(call, "f", [(iterator, flipped(data, 8 * len(data) - 1))])
        fixed = built(tmp_path, "--capacity", "1000")
        refused(ERRORS, call, "CF.LOADCHUNK", "g", len(fixed), fixed)
        # Replicas have the chunks before that one, and delete the key.
        assert not try_to_load(call, "h", [*large[:-1], (large[-1][0], flipped(large[-1][1], 0))])
        load(call, "i", large[:1])
        assert not try_to_load(call, "i", [(iterator, flipped(data, 8 * len(data) - 1))])
        load(call, "whole", large)
    wait_for_sync(primary, replica)
    primary.restart()
    for server in (primary, replica):
        with server.connect() as call:
            same(sorted(call("KEYS", "*")), [b"large", b"small", b"whole"])


def test_a_chunk_may_begin_where_the_snapshot_does(call):
    """It begins like a first chunk, but continues a load."""
    load(call, "f", chunks_of(fixture_named("rb_b4_n4000.chunks")))
    add_all(call, "f", items("new-", 2000))
    chunks = dump(call, "f")
    data = joined_bytes(chunks)
    (first, head), start = chunks[0], data.index(b"KOEL\r\n\x1a\n")
    load(call, "g", [(first - len(head) + start, data[:start]), (first - len(head) + len(data), data[start:])])
    assert dump(call, "g") == chunks


def test_a_refused_chunk_changes_nothing(call):
    """Within a load, the valid chunk is accepted afterwards."""
    make_large(call, "large")
    chunks = dump(call, "large")
    load(call, "f", chunks[:1])
    iterator, data = chunks[1]
    invalid_chunks = [(iterator + 1, data), (iterator, data[:-1]), (iterator - 1, data), (1, b""), (iterator, data + b"\0")]
    for iterator_given, invalid in invalid_chunks:
        if not try_to_load(call, "f", [(iterator_given, invalid)]):
            assert is_invisible(call, "f")
    load(call, "f", chunks[1:])
    assert call("CF.SNAPSHOT", "f") == call("CF.SNAPSHOT", "large")


def test_empty_chunks(call):
    """They are refused, as among RedisBloom's chunks, and the load goes on."""
    make_large(call, "large")
    (first, head), *rest = dump(call, "large")
    load(call, "f", [(first, head)])
    refused("Couldn't load chunk! It is empty", call, "CF.LOADCHUNK", "f", first, b"")
    load(call, "f", rest)
    assert call("CF.SNAPSHOT", "f") == call("CF.SNAPSHOT", "large")
    (first, head), *rest = chunks_of(fixture_named("rb_grown_e2.chunks"))
    load(call, "g", [(first, head), rest[0]])
    refused("Couldn't load chunk!", call, "CF.LOADCHUNK", "g", rest[0][0], b"")
    load(call, "g", rest[1:])


def test_flipped_bits_in_redisbloom_chunks(server, call):
    """RedisBloom's chunks have no checksum. Any slots are valid, but invalid headers are refused."""
    for fixture in fixtures():
        for number, (iterator, data) in enumerate(chunks_of(fixture)):
            choose = random.Random(number)
            bits = range(8 * len(data)) if number == 0 else choose.sample(range(8 * len(data)), 20)
            for bit in bits:
                chunks = chunks_of(fixture)
                chunks[number] = (iterator, flipped(data, bit))
                if try_to_load(call, "f", chunks) and not is_refused(call, "CF.INFO", "f"):
                    use(call, "f")
                call("DEL", "f")
    assert server.process.poll() is None


def use(call, key):
    """Runs commands on a damaged filter, which must not harm the server."""
    members = items("key-", 20)
    exist(call, key, members)
    call.pipeline([("CF.DEL", key, item) for item in members] + [("CF.COUNT", key, item) for item in members])
    call("CF.COMPACT", key)
    call("CF.INFO", key)
    dump(call, key)


def test_wrong_counts_in_a_header(call):
    """The items are those in the slots, whatever the header says. No filter is planned for others."""
    (iterator, header), *rest = chunks_of(fixture_named("rb_default.chunks"))
    load(call, "good", [(iterator, header), *rest])
    expected = call("INFO", "koel")
    number = info(call, "good")["Number of items inserted"]
    call("DEL", "good")
    for count in (0, 1, 2**40, 2**63, 2**64 - 1):
        # The numbers of items and of deleted items.
        chunks = [(iterator, count.to_bytes(8, "little") + header[8:16] + count.to_bytes(8, "little") + header[24:]), *rest]
        load(call, "f", chunks)
        assert call("INFO", "koel").split()[:4] == expected.split()[:4]
        found = info(call, "f")
        assert found["Number of items inserted"] == found["Imported items"] == found["Number of distinct items"] == number
        assert dump(call, "f") == chunks
        same(call("CF.DEL", "f", "key-1"), 1)
        same(call("CF.ADD", "f", "new"), 1)
        assert info(call, "f")["Capacity"] == max(number - 1, 1024) and call("CF.DEBUG", "f")
        call("DEL", "f")
        assert b"koel_items:0\r\n" in call("INFO", "koel")


def test_the_last_item_below_a_wrong_count(call):
    """Its removal creates koel's filter, for no more items than there are. Neither part then has a chunk."""
    header = struct.pack("<QQQQHHH", 2**40, 2, 0, 1, 2, 20, 1)
    before = used_memory(call)
    load(call, "f", [(1, header), (5, b"\0\xd5\0\0")])
    assert (info(call, "f")["Number of items inserted"], call("CF.COUNT", "f", "alice")) == (1, 1)
    same(call("CF.DEL", "f", "alice"), 1)
    assert used_memory(call) < before + (1 << 20)
    assert info(call, "f")["Imported items"] == 0 and dump(call, "f") == []
    load(call, "empty", [(1, header), (5, bytes(4))])
    assert info(call, "empty")["Number of items inserted"] == 0 and dump(call, "empty") == []


def test_wrong_iterators_of_redisbloom(call):
    chunks = chunks_of(fixture_named("rb_grown_e2.chunks"))
    for number, (iterator, data) in enumerate(chunks):
        for invalid in {0, 1, 2, iterator - 1, iterator + 1, 2**63 - 1} - {iterator}:
            if number or invalid != 1:
                assert not try_to_load(call, "f", [(invalid, data)]), (number, invalid)
        load(call, "f", [(iterator, data)])
    assert dump(call, "f") == chunks


def test_sizes_in_a_header_allocate_no_memory(server, call):
    """The header promises a huge filter, and nothing follows."""
    header = bytearray(chunks_of(fixture_named("rb_default.chunks"))[0][1])
    before = used_memory(call)
    for buckets in (2**20, 2**30, 2**31, 2**32, 2**62, 2**63):
        for filters in (1, 2, 65535):
            header[8:16] = buckets.to_bytes(8, "little")
            header[24:32] = filters.to_bytes(8, "little")
            try_to_load(call, "f", [(1, bytes(header))])
            try_to_load(call, "f", [(1001, bytes(1000))])
            assert used_memory(call) < before + (8 << 20)
            call("DEL", "f")
    assert server.process.poll() is None


def used_memory(call):
    line = next(line for line in call("INFO", "memory").decode().split("\r\n") if line.startswith("used_memory:"))
    return int(line.split(":")[1])


def test_chunks_of_other_filters_do_not_fit(call, small):
    """Chunks of another koel filter, or of RedisBloom's, do not continue a load."""
    make_large(call, "large")
    chunks = dump(call, "large")
    call("CF.RESERVE", "other", 2_000_000, "SEED", 5)
    add_all(call, "other", items("other-", 5000))
    others = dump(call, "other")
    load(call, "f", chunks[:1])
    assert not try_to_load(call, "f", others[1:]) and is_invisible(call, "f")
    call("DEL", "f")
    load(call, "f", chunks_of(fixture_named("rb_grown_e2.chunks"))[:2])
    assert not try_to_load(call, "f", chunks[1:]) and is_invisible(call, "f")
