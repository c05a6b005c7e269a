"""Filters of every shape that RedisBloom makes, loaded from its dumps, beside RedisBloom itself: both give the same answers, remove
the same fingerprints, and have the same bytes. RedisBloom loads this module's dumps of them."""

import functools

import pytest

from filters import INFO_FIELDS, exist, info, items, load
from wire import Refusal

ODD_ITEMS = [b"", b"\0", b"\xff\xfe", b"a\r\nb", b"x" * 10_000]


class Shape:
    """The options of CF.RESERVE, how many items are added, each how many times, and every how many-th of them is removed."""

    def __init__(self, *options, added=300, copies=1, removed=0, absent=200):
        self.options, self.copies, self.removed, self.absent = options, copies, removed, items("absent-", absent)
        self.added = items("key-", added) + ODD_ITEMS

    def gone(self):
        return [item for item in self.added[:: self.removed] for _ in range(self.copies)] if self.removed else []

    def probes(self):
        return self.added + self.absent

    def __repr__(self):
        return f"{self.options}, {len(self.added)} × {self.copies}, removed {self.removed}"


SHAPES = [Shape(64 * size, "BUCKETSIZE", size, removed=7 * (size % 2)) for size in range(1, 256)]
large = functools.partial(Shape, added=5000, absent=8000)
SHAPES += [large(8192, "MAXITERATIONS", number, removed=5) for number in (1, 2, 500, 65535)]
SHAPES += [large(512, "EXPANSION", number, removed=11) for number in (1, 2, 3, 4, 1000, 32768)]
SHAPES += [large(4096, "EXPANSION", 0), large(4096, "BUCKETSIZE", 1, "EXPANSION", 0, removed=3)]
SHAPES += [large(1024, "BUCKETSIZE", 4, "EXPANSION", 2, removed=2), large(1024, removed=1), large(100_000, "BUCKETSIZE", 255)]
SHAPES += [Shape(64, added=20, copies=number, removed=3) for number in (2, 5, 30)]
SHAPES += [Shape(2, "BUCKETSIZE", 1, added=25), Shape(4, added=55), Shape(1000, added=1, removed=1), Shape(1000, added=1)]
# RedisBloom dumps it in one chunk, and this module in four.
SHAPES += [Shape(3_000_000, added=5000, absent=20_000)]


def dumped(call, key):
    """Returns the chunks. RedisBloom's are larger than this module's."""
    iterator, chunks = 0, []
    while True:
        iterator, data = call("CF.SCANDUMP", key, iterator)
        if not iterator:
            return chunks
        chunks.append((iterator, data))


def content(chunks):
    """Returns the header, and all slots of a dump."""
    return chunks[0][1] if chunks else b"", b"".join(data for _, data in chunks[1:])


def counts(call, key, shape):
    return call.pipeline([("CF.COUNT", key, item) for item in shape.probes()[::7]])


def fields(call, key):
    """Returns RedisBloom's fields without the size, which is the server's own."""
    values = info(call, key)
    return [values[name] for name in INFO_FIELDS[1:]]


class Expected:
    """RedisBloom's replies about a filter: after filling it, and after removals and compaction."""

    def __init__(self, bloom, shape):
        bloom("FLUSHALL", "SYNC")
        assert bloom("CF.RESERVE", "f", *shape.options) == "OK"
        replies = bloom.pipeline([("CF.ADD", "f", item) for item in shape.added for _ in range(shape.copies)])
        # Few are refused: beyond the capacity with EXPANSION 0, or after 32 expansions.
        self.refused = sum(isinstance(reply, Refusal) for reply in replies)
        self.full = self.state(bloom, "f", shape)
        self.removals = bloom.pipeline([("CF.DEL", "f", item) for item in shape.gone()])
        self.removed = self.state(bloom, "f", shape)
        bloom("CF.COMPACT", "f")
        self.compacted = self.state(bloom, "f", shape)

    @staticmethod
    def state(call, key, shape):
        return dumped(call, key), exist(call, key, shape.probes()), counts(call, key, shape), fields(call, key)


@pytest.fixture(scope="session")
def expected(shared_redisbloom):
    with shared_redisbloom.connect() as bloom:
        return [Expected(bloom, shape) for shape in SHAPES]


def assert_same(call, key, shape, state):
    chunks, answers, numbers, values = state
    assert [content(dumped(call, key)), exist(call, key, shape.probes()), counts(call, key, shape), fields(call, key)] == [
        content(chunks), answers, numbers, values
    ], shape


def test_every_shape(call, bloom, expected):
    compared = 0
    for shape, theirs in zip(SHAPES, expected):
        call("FLUSHALL", "SYNC")
        load(call, "f", theirs.full[0])
        assert_same(call, "f", shape, theirs.full)
        assert call.pipeline([("CF.DEL", "f", item) for item in shape.gone()]) == theirs.removals, shape
        if theirs.removed[0]:
            assert_same(call, "f", shape, theirs.removed)
        # RedisBloom loads what this module dumps.
        bloom("FLUSHALL", "SYNC")
        chunks = dumped(call, "f")
        load(bloom, "back", chunks)
        if chunks:
            assert_same(bloom, "back", shape, theirs.removed)
        call("CF.COMPACT", "f")
        if theirs.compacted[0]:
            assert_same(call, "f", shape, theirs.compacted)
        compared += 3 * len(theirs.full[1])
    assert compared > 500_000


def test_the_shapes_are_what_they_should_be(expected):
    """Shapes have one sub-filter or many, refuse items or not, and lose some by removal."""
    filters = [theirs.full[3][1] for theirs in expected]
    assert min(filters) == 1 and max(filters) >= 20, filters
    # migrate.py relies on it: the header counts the slots that are taken.
    for state in (state for theirs in expected for state in (theirs.full, theirs.removed, theirs.compacted) if state[0]):
        header, slots = content(state[0])
        assert int.from_bytes(header[:8], "little") == len(slots) - slots.count(0)
    assert sum(theirs.refused > 0 for theirs in expected) >= 2
    assert sum(theirs.removed[0] != theirs.full[0] for theirs in expected) > 100
    assert sum(theirs.compacted[0] != theirs.removed[0] for theirs in expected) >= 5
    assert any(not theirs.removed[0] for theirs in expected)


def test_an_empty_filter(call, bloom):
    """RedisBloom dumps nothing of it, and writes it to an append-only file with a header and empty slots."""
    bloom("CF.RESERVE", "f", 1000)
    assert dumped(bloom, "f") == []
    bloom("CF.ADD", "f", "a")
    (_, header), (iterator, slots) = dumped(bloom, "f")
    bloom("CF.DEL", "f", "a")
    # The header begins with the number of items.
    for both, key in ((call, "f"), (bloom, "g")):
        load(both, key, [(1, bytes(8) + header[8:]), (iterator, bytes(len(slots)))])
        assert exist(both, key, items("absent-", 1000)) == [0] * 1000 and dumped(both, key) == []
    assert call("CF.ADD", "f", "b") == 1 and call("CF.EXISTS", "f", "b") == 1


@pytest.mark.parametrize("name", ["DUMP", "COPY", "DEBUG RELOAD"])
def test_copies(call, bloom, expected, name):
    """Copies of an imported filter are dumped as RedisBloom's, which loads them."""
    for shape, theirs in list(zip(SHAPES, expected))[255::4]:
        for both in (call, bloom):
            both("FLUSHALL", "SYNC")
        chunks = theirs.full[0]
        load(call, "f", chunks)
        if name == "DUMP":
            call("RESTORE", "copy", 0, call("DUMP", "f"))
        elif name == "COPY":
            call("COPY", "f", "copy")
        else:
            call("RENAME", "f", "copy")
            call("DEBUG", "RELOAD")
        load(bloom, "back", dumped(call, "copy"))
        assert_same(bloom, "back", shape, theirs.full)
