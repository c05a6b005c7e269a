"""Refusals and their messages, which clients compare."""

import pytest

from filters import add_all, is_refused, items, refused
from wire import same

TOO_MANY = 1099511627777
CAPACITY_RANGE = "Capacity must be in the range [2 * BUCKETSIZE, 1099511627776]"

WRONG_ARITIES = [
    ("CF.RESERVE",), ("CF.RESERVE", "f"),
    ("CF.ADD",), ("CF.ADD", "f"), ("CF.ADD", "f", "a", "b"),
    ("CF.ADDNX",), ("CF.ADDNX", "f"), ("CF.ADDNX", "f", "a", "b"),
    ("CF.INSERT",), ("CF.INSERT", "f"), ("CF.INSERT", "f", "ITEMS"), ("CF.INSERT", "f", "NOCREATE", "ITEMS"),
    ("CF.INSERT", "f", "NOCREATE"), ("CF.INSERT", "f", "CAPACITY", "1000"),
    ("CF.INSERT", "f", "CAPACITY", "1000", "ITEMS"),
    ("CF.INSERTNX",), ("CF.INSERTNX", "f"), ("CF.INSERTNX", "f", "ITEMS"), ("CF.INSERTNX", "f", "NOCREATE"),
    ("CF.EXISTS",), ("CF.EXISTS", "f"), ("CF.EXISTS", "f", "a", "b"),
    ("CF.MEXISTS",), ("CF.MEXISTS", "f"),
    ("CF.COUNT",), ("CF.COUNT", "f"), ("CF.COUNT", "f", "a", "b"),
    ("CF.DEL",), ("CF.DEL", "f"), ("CF.DEL", "f", "a", "b"),
    ("CF.COMPACT",), ("CF.COMPACT", "f", "a"), ("CF.UNION",), ("CF.UNION", "f"),
    ("CF.INFO",), ("CF.INFO", "f", "a"),
    ("CF.SCANDUMP",), ("CF.SCANDUMP", "f"), ("CF.SCANDUMP", "f", "0", "a"),
    ("CF.LOADCHUNK",), ("CF.LOADCHUNK", "f"), ("CF.LOADCHUNK", "f", "1"),
    ("CF.SNAPSHOT",), ("CF.SNAPSHOT", "f", "a"), ("CF.DEBUG",), ("CF.DEBUG", "f", "a"),
]


def test_wrong_number_of_arguments(call, call3):
    for command in WRONG_ARITIES:
        for ask in (call, call3):
            error = refused("ERR wrong number of arguments", ask, *command)
            assert command[0].lower() in error.lower()
    assert call("DBSIZE") == 0


RESERVE_ERRORS = [
    ("Bad capacity", ["many"]), ("Bad capacity", ["1.5"]), ("Bad capacity", [""]), ("Bad capacity", ["0x10"]),
    (CAPACITY_RANGE, [0]), (CAPACITY_RANGE, [-1]), (CAPACITY_RANGE, [3]), (CAPACITY_RANGE, [TOO_MANY]),
    (CAPACITY_RANGE, [9, "BUCKETSIZE", 5]), (CAPACITY_RANGE, [2**63 - 1]), (CAPACITY_RANGE, [-(2**63)]),
    ("Couldn't parse BUCKETSIZE", [1000, "BUCKETSIZE", "x"]),
    ("Couldn't parse MAXITERATIONS", [1000, "MAXITERATIONS", "1.0"]),
    ("Couldn't parse EXPANSION", [1000, "EXPANSION", ""]),
    ("Couldn't parse ERROR", [1000, "ERROR", "low"]),
    ("Couldn't parse SEED", [1000, "SEED", "x"]), ("Couldn't parse SEED", [1000, "SEED", 2**64]),
    ("SEED: value must be in the range [0, ", [1000, "SEED", -1]),
    ("BUCKETSIZE: value must be in the range [1, 255]", [1000, "BUCKETSIZE", 0]),
    ("BUCKETSIZE: value must be in the range [1, 255]", [1000, "BUCKETSIZE", 256]),
    ("MAXITERATIONS: value must be in the range [1, 65535]", [1000, "MAXITERATIONS", 0]),
    ("MAXITERATIONS: value must be in the range [1, 65535]", [1000, "MAXITERATIONS", 65536]),
    ("EXPANSION: value must be in the range [0, 32768]", [1000, "EXPANSION", -1]),
    ("EXPANSION: value must be in the range [0, 32768]", [1000, "EXPANSION", 32769]),
    *(("ERROR: value must be in the range", [1000, "ERROR", rate]) for rate in (0, 1, 2, -0.5)),
    ("Unknown argument received", [1000, "BUCKETS", 4]),
]


def test_reserve(call):
    for message, arguments in RESERVE_ERRORS:
        refused(message, call, "CF.RESERVE", "f", *arguments)
    for rate in ("nan", "inf", "-inf", "1e-400"):
        assert is_refused(call, "CF.RESERVE", "f", 1000, "ERROR", rate), rate
    for option in ("BUCKETSIZE", "MAXITERATIONS", "EXPANSION", "ERROR", "SEED"):
        assert is_refused(call, "CF.RESERVE", "f", 1000, option), option
    assert call("DBSIZE") == 0


def test_reserve_accepts_the_limits_of_the_ranges(call):
    accepted = [[4], [510, "BUCKETSIZE", 255], [2, "BUCKETSIZE", 1]]
    accepted += [[1000, "MAXITERATIONS", 65535], [1000, "MAXITERATIONS", 1]]
    accepted += [[1000, "EXPANSION", 32768], [1000, "EXPANSION", 0], [1000, "SEED", 0], [1000, "SEED", 2**63 - 1]]
    for number, arguments in enumerate(accepted):
        same(call("CF.RESERVE", f"f{number}", *arguments), "OK")
        same(call("CF.ADD", f"f{number}", "a"), 1)


def test_reserve_of_an_existing_key(call):
    call("CF.ADD", "f", "a")
    refused("ERR item exists", call, "CF.RESERVE", "f", 1000)
    same(call("CF.COUNT", "f", "a"), 1)


@pytest.mark.parametrize("insert", ["CF.INSERT", "CF.INSERTNX"])
def test_insert(call, insert):
    refused("ERR not found", call, insert, "f", "NOCREATE", "ITEMS", "a")
    refused("ERR not found", call, insert, "f", "NOCREATE", "CAPACITY", 1000, "ITEMS", "a")
    refused("Unknown argument received", call, insert, "f", "SIZE", 1000, "ITEMS", "a")
    refused("Unknown argument received", call, insert, "f", "a", "ITEMS", "b")
    refused("Bad capacity", call, insert, "f", "CAPACITY", "x", "ITEMS", "a")
    refused(CAPACITY_RANGE, call, insert, "f", "CAPACITY", 0, "ITEMS", "a")
    refused(CAPACITY_RANGE, call, insert, "f", "CAPACITY", TOO_MANY, "ITEMS", "a")
    refused("Couldn't parse ERROR", call, insert, "f", "ERROR", "x", "ITEMS", "a")
    refused("ERROR: value must be in the range", call, insert, "f", "ERROR", 1, "ITEMS", "a")
    assert call("DBSIZE") == 0


ON_A_STRING = [
    ("CF.ADD", "s", "a"), ("CF.ADDNX", "s", "a"), ("CF.INSERT", "s", "ITEMS", "a"), ("CF.INSERTNX", "s", "ITEMS", "a"),
    ("CF.INSERT", "s", "NOCREATE", "ITEMS", "a"), ("CF.DEL", "s", "a"), ("CF.COMPACT", "s"), ("CF.INFO", "s"),
    ("CF.SCANDUMP", "s", 0), ("CF.SNAPSHOT", "s"), ("CF.DEBUG", "s"), ("CF.RESERVE", "s", 1000), ("CF.UNION", "s", "f"),
]
REPLIES_TO_A_STRING = {("CF.EXISTS", "s", "a"): 0, ("CF.MEXISTS", "s", "a", "b"): [0, 0], ("CF.COUNT", "s", "a"): 0}
"""To lookups, a key of another type is a filter without items."""


def test_wrong_type(call, call3):
    call("SET", "s", "value")
    for command in ON_A_STRING:
        error = refused("", call, *command)
        assert error.startswith("WRONGTYPE") or command[0] == "CF.RESERVE" and error == "ERR item exists", (command, error)
    refused("", call, "CF.LOADCHUNK", "s", 1, "bytes")
    for command, reply in REPLIES_TO_A_STRING.items():
        same(call(*command), reply)
    same(call3("CF.EXISTS", "s", "a"), False)
    same(call("GET", "s"), b"value")
    call("CF.ADD", "f", "a")
    refused("WRONGTYPE", call, "GET", "f")


BAD_ITERATORS = ["x", "", "-1", "1.5", str(-(2**63)), str(2**64), "0x1"]


def test_scandump(call):
    call("CF.ADD", "f", "a")
    for iterator in BAD_ITERATORS:
        refused("Invalid position", call, "CF.SCANDUMP", "f", iterator)
    for iterator in (2**63 - 1, 12345, 2**62):
        assert is_refused(call, "CF.SCANDUMP", "f", iterator) or call("CF.SCANDUMP", "f", iterator) == [0, None]


def test_loadchunk(call):
    call("CF.ADD", "f", "a")
    iterator, data = call("CF.SCANDUMP", "f", 0)
    refused("ERR item exists", call, "CF.LOADCHUNK", "f", iterator, data)
    for iterator in BAD_ITERATORS:
        refused("Invalid position", call, "CF.LOADCHUNK", "g", iterator, data)
    assert call("EXISTS", "g") == 0


def test_loadchunk_refuses_invalid_options(call):
    call("CF.ADD", "f", "a")
    iterator, data = call("CF.SCANDUMP", "f", 0)
    for options in (["SIZE", 1], ["EXPANSION", "x"], ["DELETED", -1], ["EXPANSION", 32769], ["EXPANSION"]):
        assert is_refused(call, "CF.LOADCHUNK", "g", iterator, data, *options), options
    assert call("EXISTS", "g") == 0


def test_maxmemory_refuses_commands_that_allocate(call):
    """Without free memory, the server refuses commands that may allocate, but not those that free memory or only read."""
    add_all(call, "f", items("item-", 1000))
    iterator, data = call("CF.SCANDUMP", "f", 0)
    call("CONFIG", "SET", "maxmemory", 1)
    for command in [
        ("CF.ADD", "f", "a"), ("CF.ADDNX", "f", "a"), ("CF.INSERT", "f", "ITEMS", "a"),
        ("CF.INSERTNX", "f", "ITEMS", "a"), ("CF.RESERVE", "g", 1000), ("CF.LOADCHUNK", "g", iterator, data),
    ]:
        refused("OOM", call, *command)
    same(call("CF.EXISTS", "f", "item-1"), 1)
    same(call("CF.DEL", "f", "item-1"), 1)
    same(call("CF.COMPACT", "f"), "OK")
    call("CONFIG", "SET", "maxmemory", 0)
    same(call("CF.ADD", "f", "a"), 1)
