"""Helpers of several tests: they add many items, dump and load filters, and compare everything that a server says about them."""

import json
import struct
from pathlib import Path

import pytest

from wire import Refusal, pairs

FIXTURES = Path(__file__).resolve().parents[2] / "tests/data/redisbloom"

INFO_FIELDS = [
    "Size", "Number of buckets", "Number of filters", "Number of items inserted", "Number of items deleted",
    "Bucket size", "Expansion rate", "Max iterations",
]
"""RedisBloom's fields, in its order."""

MORE_FIELDS = [
    "Error rate", "False positive rate", "Capacity", "Maximum capacity", "Shards", "Imported items", "Seed",
    "Number of distinct items", "Buckets per lookup",
]

MAX_IN_CHUNK = 1 << 20


def refused(message, call, *arguments):
    """Returns the error of this command. Asserts that it begins with `message`."""
    with pytest.raises(Refusal) as caught:
        call(*arguments)
    error = str(caught.value)
    assert error.startswith(message), f"{arguments[:2]}: {error!r}, expected {message!r}"
    return error


def is_refused(call, *arguments):
    try:
        call(*arguments)
    except Refusal:
        return True
    return False


def items(prefix, count, start=0):
    return [b"%b%d" % (prefix.encode(), n) for n in range(start, start + count)]


def in_batches(members, size=1000):
    return (members[start : start + size] for start in range(0, len(members), size))


def insert(call, key, members, size=1000):
    """Adds items with CF.INSERT, and returns the result of each."""
    replies = call.pipeline([("CF.INSERT", key, "ITEMS", *batch) for batch in in_batches(members, size)], at_a_time=8)
    return [result for reply in replies for result in reply]


def add_all(call, key, members):
    """Adds items with CF.INSERT. Asserts that none is refused."""
    results = insert(call, key, members)
    assert results == [1] * len(members), f"{len(members) - sum(result == 1 for result in results)} refused"


def exist(call, key, members, size=1000):
    """Returns the results of CF.MEXISTS."""
    replies = call.pipeline([("CF.MEXISTS", key, *batch) for batch in in_batches(members, size)], at_a_time=8)
    return [result for reply in replies for result in reply]


def all_exist(call, key, members):
    lost = [item for item, result in zip(members, exist(call, key, members)) if result != 1]
    assert not lost, f"{len(lost)} of {len(members)} items are lost, {lost[:3]} …"


def info(call, key):
    return {name.decode() if isinstance(name, bytes) else name: value for name, value in pairs(call("CF.INFO", key))}


def dump(call, key):
    """Returns all chunks with their iterators, in the way that RedisBloom's documentation describes."""
    iterator, chunks = 0, []
    while True:
        iterator, data = call("CF.SCANDUMP", key, iterator)
        if iterator == 0:
            assert data is None
            return chunks
        chunks.append((iterator, data))
        assert 0 < len(data) <= MAX_IN_CHUNK and len(chunks) < 10_000


def load(call, key, chunks, *options):
    for iterator, data in chunks:
        assert call("CF.LOADCHUNK", key, iterator, data, *options) == "OK"


def joined_bytes(chunks):
    return b"".join(data for _, data in chunks)


def snapshot(call, key):
    """Returns the bytes of all chunks."""
    return joined_bytes(dump(call, key))


def digest(call, key):
    (value,) = call("DEBUG", "DIGEST-VALUE", key)
    return value


def state(call, key):
    """Returns everything visible of a filter. Equal states mean equal filters."""
    return info(call, key), call("CF.DEBUG", key), dump(call, key), digest(call, key)


def states(call):
    """Returns the states of all keys. Of a filter that is being loaded, only the digest is visible."""
    keys = sorted(call("KEYS", "*"))
    return {key: digest(call, key) if is_refused(call, "CF.INFO", key) else state(call, key) for key in keys}


def differences(found, expected):
    """Returns short descriptions of the differences between two results of `states`."""
    differing = [f"only one has {key}" for key in sorted(found.keys() ^ expected.keys())]
    for key in sorted(found.keys() & expected.keys()):
        if found[key] != expected[key]:
            differing.append(f"{key}: {', '.join(difference(found[key], expected[key]))}")
    return differing


def difference(found, expected):
    if isinstance(found, str) or isinstance(expected, str):
        return ["the digest of a filter that is being loaded"]
    (fields, line, chunks, value), (other_fields, other_line, other_chunks, other_value) = found, expected
    named = [f"{name}: {fields[name]}, not {other}" for name, other in other_fields.items() if fields[name] != other]
    named += ["CF.DEBUG"] * (line != other_line)
    return named + ["the dump"] * (chunks != other_chunks) + ["the digest"] * (value != other_value)


def fixtures():
    """Returns the descriptions of the files that RedisBloom wrote, with its replies."""
    return json.loads((FIXTURES / "fixtures.json").read_text())


def chunks_of(fixture):
    data, at, chunks = (FIXTURES / fixture["file"]).read_bytes(), 0, []
    while at < len(data):
        iterator, length = struct.unpack_from("<QQ", data, at)
        chunks.append((iterator, data[at + 16 : at + 16 + length]))
        at += 16 + length
    return chunks


def fixture_named(name):
    return next(fixture for fixture in fixtures() if fixture["file"] == name)


def make_large(call, key):
    """Creates a filter with several chunks but few items, which takes little time."""
    call("CF.RESERVE", key, 2_000_000)
    add_all(call, key, items("large-", 5000))


def make_zoo(call):
    """Creates one key of every kind. Returns the chunks that are still missing, for the keys that are being loaded."""
    call("CF.RESERVE", "empty", 1000)
    add_all(call, "plain", items("plain-", 3000))
    for item in items("plain-", 500):
        assert call("CF.DEL", "plain", item) == 1
    call("CF.RESERVE", "fixed", 100, "EXPANSION", 0, "ERROR", 0.0001, "SEED", 77)
    assert insert(call, "fixed", items("fixed-", 150)) == [1] * 100 + [-1] * 50
    call("CF.RESERVE", "sharp", 5000, "ERROR", 0.0001, "EXPANSION", 4, "SEED", 2**63 - 1)
    add_all(call, "sharp", items("sharp-", 20_000))
    make_large(call, "large")
    for name in ("rb_grown_e2.chunks", "rb_deleted.chunks"):
        load(call, name, chunks_of(fixture_named(name)))
    load(call, "mixed", chunks_of(fixture_named("rb_b4_n4000.chunks")))
    add_all(call, "mixed", items("new-", 5000))
    assert call("CF.DEL", "mixed", "new-0") == 1
    missing_chunks = {"half imported": chunks_of(fixture_named("rb_grown_e2.chunks")), "half large": dump(call, "large")}
    for key, chunks in missing_chunks.items():
        load(call, key, [chunks.pop(0), chunks.pop(0)])
    return missing_chunks


def check_zoo(call, missing_chunks):
    """Checks the contents of all keys of `make_zoo`, then completes the loads that were interrupted."""
    all_exist(call, "plain", items("plain-", 2500, 500))
    all_exist(call, "fixed", items("fixed-", 100))
    all_exist(call, "sharp", items("sharp-", 20_000))
    all_exist(call, "large", items("large-", 5000))
    all_exist(call, "mixed", items("key-", 3800) + items("new-", 4999, 1))
    assert info(call, "empty")["Number of items inserted"] == 0
    assert info(call, "plain")["Number of items deleted"] == 500
    refused("Filter is full", call, "CF.ADD", "fixed", "one more")
    for key, chunks in missing_chunks.items():
        load(call, key, chunks)
    all_exist(call, "half imported", items("key-", 6000))
    assert call("CF.SNAPSHOT", "half large") == call("CF.SNAPSHOT", "large")
