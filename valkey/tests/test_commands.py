"""The commands and their replies, with the exact types of both protocols."""

import pytest

from filters import INFO_FIELDS, MORE_FIELDS, info, items, refused
from wire import Pairs, pairs, same


@pytest.fixture
def ask(server, protocol):
    with server.connect(protocol) as connection:
        yield connection


@pytest.fixture
def yes(protocol):
    return 1 if protocol == 2 else True


@pytest.fixture
def no(protocol):
    return 0 if protocol == 2 else False


@pytest.fixture
def full(protocol):
    """The result of CF.INSERT for a refused item."""
    return -1 if protocol == 2 else False


def test_reserve(ask):
    same(ask("CF.RESERVE", "f", 1000), "OK")
    same(ask("CF.RESERVE", "g", 1000, "BUCKETSIZE", 4, "MAXITERATIONS", 30, "EXPANSION", 2), "OK")
    same(ask("CF.RESERVE", "h", 1000, "error", "0.001", "Seed", 2**63 - 1, "expansion", 0), "OK")
    assert ask("TYPE", "f") == "koel-cuck"
    assert info(ask, "g")["Expansion rate"] == 2 and info(ask, "h")["Expansion rate"] == 0
    assert float(info(ask, "h")["Error rate"]) == 0.001
    refused("ERR item exists", ask, "CF.RESERVE", "f", 1000)


def test_add(ask, yes):
    same(ask("CF.ADD", "f", "a"), yes)
    same(ask("CF.ADD", "f", "a"), yes)
    same(ask("CF.COUNT", "f", "a"), 2)
    assert info(ask, "f")["Number of items inserted"] == 2


def test_addnx(ask, yes, no):
    same(ask("CF.ADDNX", "f", "a"), yes)
    same(ask("CF.ADDNX", "f", "a"), no)
    same(ask("CF.COUNT", "f", "a"), 1)


def test_insert(ask, yes, full):
    same(ask("CF.INSERT", "f", "ITEMS", "a", "b", "a"), [yes] * 3)
    same(ask("CF.INSERT", "f", "NOCREATE", "ITEMS", "c"), [yes])
    same(ask("CF.INSERT", "g", "CAPACITY", 5000, "ERROR", 0.001, "ITEMS", "a"), [yes])
    assert float(info(ask, "g")["Error rate"]) == 0.001
    same(ask("CF.INSERT", "f", "ITEMS", *["d"] * 9, "e"), [yes] * 10)
    same(ask("CF.MEXISTS", "f", "a", "b", "c", "d", "e"), [yes] * 5)
    ask("CF.RESERVE", "h", 4, "EXPANSION", 0)
    same(ask("CF.INSERT", "h", "ITEMS", *"abcde", "a"), [yes] * 4 + [full, yes])


def test_words_after_items_are_items(ask, yes):
    same(ask("CF.INSERT", "f", "items", "ITEMS", "NOCREATE", "CAPACITY"), [yes] * 3)
    same(ask("CF.MEXISTS", "f", "ITEMS", "NOCREATE", "CAPACITY"), [yes] * 3)


def test_insertnx(ask):
    """Integers in protocol 3, too: a refusal must be distinct from an item that is present."""
    same(ask("CF.INSERTNX", "f", "ITEMS", "a", "b", "a"), [1, 1, 0])
    same(ask("CF.RESERVE", "g", 4, "EXPANSION", 0), "OK")
    same(ask("CF.INSERTNX", "g", "ITEMS", "a", "b", "a", "c", "d", "e"), [1, 1, 0, 1, 1, -1])


def test_exists(ask, yes, no):
    ask("CF.ADD", "f", "a")
    same(ask("CF.EXISTS", "f", "a"), yes)
    same(ask("CF.EXISTS", "f", "b"), no)
    same(ask("CF.MEXISTS", "f", "a", "b", "a"), [yes, no, yes])
    same(ask("CF.MEXISTS", "f", "a"), [yes])


def test_missing_key(ask, no):
    same(ask("CF.EXISTS", "f", "a"), no)
    same(ask("CF.MEXISTS", "f", "a", "b"), [no, no])
    same(ask("CF.COUNT", "f", "a"), 0)
    same(ask("CF.SNAPSHOT", "f"), None)
    refused("Not found", ask, "CF.DEL", "f", "a")
    refused("Cuckoo filter was not found", ask, "CF.COMPACT", "f")
    refused("ERR not found", ask, "CF.INFO", "f")
    refused("", ask, "CF.SCANDUMP", "f", 0)
    assert ask("EXISTS", "f") == 0


def test_count(ask):
    for copies in range(1, 40):
        ask("CF.ADD", "f", "a")
        same(ask("CF.COUNT", "f", "a"), copies)
    ask("CF.INSERT", "f", "ITEMS", *["a"] * 1000)
    same(ask("CF.COUNT", "f", "a"), 1039)
    same(ask("CF.COUNT", "f", "b"), 0)


def test_del(ask, yes, no):
    ask("CF.INSERT", "f", "ITEMS", "a", "a", "b")
    same(ask("CF.DEL", "f", "a"), yes)
    same(ask("CF.COUNT", "f", "a"), 1)
    same(ask("CF.DEL", "f", "a"), yes)
    same(ask("CF.DEL", "f", "a"), no)
    same(ask("CF.DEL", "f", "c"), no)
    same(ask("CF.EXISTS", "f", "b"), yes)
    counted = info(ask, "f")
    assert (counted["Number of items inserted"], counted["Number of items deleted"]) == (1, 2)


def test_compact(ask, yes):
    many = items("item-", 50_000)
    for start in range(0, 50_000, 1000):
        ask("CF.INSERT", "f", "ITEMS", *many[start : start + 1000])
    before = info(ask, "f")["Size"]
    ask.pipeline([("CF.DEL", "f", item) for item in many[1000:]])
    same(ask("CF.COMPACT", "f"), "OK")
    assert info(ask, "f")["Size"] < before / 4
    same(ask("CF.MEXISTS", "f", *many[:1000]), [yes] * 1000)


def test_info(ask, protocol):
    ask("CF.RESERVE", "f", 1000, "BUCKETSIZE", 4, "EXPANSION", 2)
    ask("CF.INSERT", "f", "ITEMS", *range(10))
    reply = ask("CF.INFO", "f")
    assert type(reply) is (list if protocol == 2 else Pairs)
    names = [name if isinstance(name, str) else name.decode() for name, _ in pairs(reply)]
    assert names == INFO_FIELDS + MORE_FIELDS
    values = info(ask, "f")
    assert all(type(values[name]) is int for name in INFO_FIELDS), values
    assert values["Number of items inserted"] == 10 and values["Number of items deleted"] == 0
    assert values["Number of filters"] >= 1 and values["Imported items"] == 0
    assert 0 <= float(values["False positive rate"]) <= float(values["Error rate"]) == 0.01


def test_the_numbers_of_info(ask):
    """A filter with room has buckets, copies are no distinct items, and a large filter is only counted by CF.DEBUG."""
    for capacity, expansion in [(4, 0), (4, 1), (100, 1), (1024, 1), (1024, 0), (5000, 1), (300_000, 1)]:
        ask("DEL", "f")
        ask("CF.RESERVE", "f", capacity, "EXPANSION", expansion)
        members = items("item-", min(capacity, 5000))
        for copies in range(3):
            found = info(ask, "f")
            assert found["Number of buckets"] * found["Bucket size"] >= capacity
            assert found["Buckets per lookup"] == 2
            distinct = found["Number of distinct items"]
            assert distinct == 0 if copies == 0 else len(members) * 0.99 <= distinct <= len(members)
            assert b"distinct:%d buckets_per_lookup:2" % distinct in ask("CF.DEBUG", "f")
            ask("CF.INSERT", "f", "ITEMS", *members)
    before = info(ask, "f")["Number of buckets"]
    for batch in range(0, 80_000, 1000):
        ask("CF.INSERT", "f", "ITEMS", *items("more-", 1000, batch))
    assert info(ask, "f")["Number of distinct items"] == -1 and info(ask, "f")["Number of buckets"] >= before
    distinct = int(ask("CF.DEBUG", "f").split(b"distinct:")[1].split()[0])
    assert 84_000 <= distinct <= 85_000


def test_scandump(ask):
    ask("CF.RESERVE", "f", 1000)
    same(ask("CF.SCANDUMP", "f", 0), [0, None])
    ask("CF.ADD", "f", "a")
    iterator, data = ask("CF.SCANDUMP", "f", 0)
    assert type(iterator) is int and iterator > 0 and type(data) is bytes
    same(ask("CF.SCANDUMP", "f", iterator), [0, None])
    same(ask("CF.LOADCHUNK", "g", iterator, data), "OK")
    same(ask("CF.SNAPSHOT", "g"), ask("CF.SNAPSHOT", "f"))
    same(ask("CF.SNAPSHOT", "g"), data)


def test_items_are_bytes(ask, yes, no):
    odd = [b"", b"\0", b"\xff\xfe", b"a\r\nb", b"x" * 100_000]
    same(ask("CF.INSERT", "f\0\r\n", "ITEMS", *odd), [yes] * 5)
    same(ask("CF.MEXISTS", "f\0\r\n", *odd, b"\0\0"), [yes] * 5 + [no])


def test_commands_in_lower_case(ask, yes):
    same(ask("cf.reserve", "f", 1000, "bucketsize", 2), "OK")
    same(ask("cf.insert", "f", "nocreate", "items", "a"), [yes])
    same(ask("cf.exists", "f", "a"), yes)
