"""CF.UNION: each item gets the larger number of copies."""

import re

import pytest

from filters import (
    add_all, all_exist, chunks_of, digest, dump, fixture_named, info, insert, items, load, refused, state,
)
from test_words import WORDS_OF_THE_LIBRARY
from test_replication import follow, wait_for_sync
from wire import same


def test_copies(call):
    for key, some in {"a": "xxxy", "b": "xyyz", "c": "w"}.items():
        add_all(call, key, list(some))
    same(call("CF.UNION", "a", "b", "c"), "OK")
    assert [call("CF.COUNT", "a", item) for item in "xyzwv"] == [3, 2, 1, 1, 0]
    assert [call("CF.COUNT", "b", item) for item in "xyzw"] == [1, 2, 1, 0]
    before = digest(call, "a")
    same(call("CF.UNION", "a", "a"), "OK")
    same(call("CF.UNION", "a", "b"), "OK")
    assert digest(call, "a") == before
    same(call("CF.UNION", "new", "a", "c"), "OK")
    assert digest(call, "new") == before


def test_the_destination_keeps_its_expiry(call):
    add_all(call, "a", [b"x"])
    add_all(call, "b", [b"y"])
    same(call("PEXPIRE", "a", 1 << 40), 1)
    same(call("CF.UNION", "a", "b"), "OK")
    assert call("CF.EXISTS", "a", "y") == 1 and 1 << 39 < call("PTTL", "a") <= 1 << 40
    same(call("CF.UNION", "new", "a"), "OK")
    same(call("PTTL", "new"), -1)


def test_many_copies(call):
    """The result is the larger number, for any numbers of copies in either filter."""
    numbers = {"x": (9, 1), "y": (3, 17), "z": (1000, 999), "w": (0, 500), "v": (500, 0), "u": (60, 60)}
    for key in "ab":
        call("CF.RESERVE", key, 10_000)
        add_all(call, key, items(f"{key}-", 3000) + items("both-", 3000) * (12 if key == "a" else 9))
        add_all(call, key, [item for item, copies in numbers.items() for _ in range(copies["ab".index(key)])])
    same(call("COPY", "a", "c"), 1)
    same(call("CF.UNION", "a", "b"), "OK")
    same(call("CF.UNION", "b", "c"), "OK")
    for key in "ab":
        assert {item: call("CF.COUNT", key, item) for item in numbers} == {item: max(copies) for item, copies in numbers.items()}
        counted = call.pipeline([("CF.COUNT", key, item) for item in items("both-", 3000)])
        assert min(counted) == 12 and sum(count > 12 for count in counted) < 60
        found = info(call, key)["Number of items inserted"]
        assert 0 <= 6000 + 12 * 3000 + sum(map(max, numbers.values())) - found < 200
    before = digest(call, "a")
    same(call("CF.UNION", "a", "b", "c"), "OK")
    assert digest(call, "a") == before
    # Copies are removed one at a time.
    for copies in range(1000):
        same(call("CF.DEL", "a", "z"), 1)
    same(call("CF.COUNT", "a", "z"), 0)


def test_large_filters(call):
    """Two filters that have a third of all items in common, and grow."""
    for n, key in enumerate("ab"):
        call("CF.RESERVE", key, 1000, "EXPANSION", 200)
        add_all(call, key, items("item-", 60_000, 30_000 * n))
    same(call("CF.UNION", "a", "b"), "OK")
    all_exist(call, "a", items("item-", 90_000))
    assert 89_000 <= info(call, "a")["Number of items inserted"] <= 90_000


def test_refused_unions_change_nothing(call):
    call("CF.RESERVE", "a", 1000)
    call("CF.RESERVE", "b", 1000)
    call("CF.RESERVE", "other seed", 1000, "SEED", 1)
    call("CF.RESERVE", "fixed", 1000, "EXPANSION", 0)
    call("CF.RESERVE", "fixed too", 1000, "EXPANSION", 0)
    for n, key in enumerate(("a", "b", "other seed")):
        add_all(call, key, items("item-", 800, 500 * n))
    for n, key in enumerate(("fixed", "fixed too")):
        add_all(call, key, items("item-", 900, 130 * n))
    call("CF.RESERVE", "large", 1000)
    add_all(call, "large", items("item-", 30_000))
    load(call, "imported", chunks_of(fixture_named("rb_b4_n4000.chunks")))
    call("SET", "text", "value")
    load(call, "half", dump(call, "a"))
    before = {key: state(call, key) for key in ("a", "b", "other seed", "fixed", "imported")}
    refused("ERR not found", call, "CF.UNION", "a", "b", "missing")
    refused("ERR not found", call, "CF.UNION", "missing", "missing too")
    refused("WRONGTYPE", call, "CF.UNION", "a", "b", "text")
    refused("WRONGTYPE", call, "CF.UNION", "text", "a")
    refused("ERR the filters cannot be united", call, "CF.UNION", "a", "b", "other seed")
    refused("ERR items that were imported", call, "CF.UNION", "a", "b", "imported")
    refused("ERR items that were imported", call, "CF.UNION", "imported", "a")
    refused("Filter is full", call, "CF.UNION", "fixed", "fixed too")
    refused("ERR wrong number of arguments", call, "CF.UNION", "a")
    call("CONFIG", "SET", "koel.max-bytes", "1kb")
    refused("ERR the filters cannot be united", call, "CF.UNION", "a", "large")
    refused("ERR Insufficient memory", call, "CF.UNION", "copy of large", "large")
    assert {key: state(call, key) for key in before} == before
    assert call("EXISTS", "missing") == 0


PLANS = [(600_000, 500_000, [1_000_000], []), (6000, 5000, [6000], ["EXPANSION", 0]), (6000, 3000, [8000], ["EXPANSION", 0, "ERROR", 0.0001])]


@pytest.mark.parametrize("count, shift, plan, options", PLANS, ids=["a million", "fixed", "sharp"])
def test_filters_that_are_planned_for_too_few_items(call, count, shift, plan, options):
    """The error names a capacity. If all are reserved with it, in either of the two ways, they are united."""
    halves = {"a": items("item-", count), "b": items("item-", count, shift)}

    def make(*plan):
        for key, members in halves.items():
            call("DEL", key)
            call("CF.RESERVE", key, *plan)
            add_all(call, key, members)

    make(*plan, *options)
    error = refused("ERR the filters cannot be united: together, they have", call, "CF.UNION", "a", "b")
    assert not WORDS_OF_THE_LIBRARY.search(error), error
    needed = int(re.search("reserve all with a capacity of at least ([0-9]+)", error)[1])
    assert needed <= 2 * count
    make(needed, *options)
    same(call("CF.UNION", "a", "b"), "OK")
    for members in halves.values():
        all_exist(call, "a", members)
    if "EXPANSION" in options:
        options = options[2:]
    make(-(-needed // 16), "EXPANSION", 16, *options)
    same(call("CF.UNION", "a", "b"), "OK")
    for members in halves.values():
        all_exist(call, "a", members)


def test_filters_that_differ(call):
    """The error names the first difference."""
    plans = {
        "a": [1000], "capacity": [2000], "SEED": [1000, "SEED", 5], "ERROR": [1000, "ERROR", 0.02], "EXPANSION": [1000, "EXPANSION", 32768],
    }
    for key, plan in plans.items():
        call("CF.RESERVE", key, *plan)
        call("CF.ADD", key, "x")
    for key, words in {
        "capacity": "their capacities 1000 and 2000 differ", "SEED": "their SEEDs 0 and 5 differ", "ERROR": "their ERRORs 0.01 and 0.02 differ",
        "EXPANSION": "their EXPANSIONs 1 and 32768 differ",
    }.items():
        error = refused(f"ERR the filters cannot be united: {words}", call, "CF.UNION", "a", key)
        assert error.endswith("reserve all with the same capacity, EXPANSION, ERROR and SEED")


def test_replicas_and_files(start):
    """Replicas and files get the union, regardless of their limits."""
    primary, replica = start("appendonly yes", tcp=True), start("koel.max-bytes 1kb", tcp=True)
    follow(primary, replica)
    with primary.connect() as call:
        call("CF.RESERVE", "a", 1000, "EXPANSION", 50)
        call("CF.RESERVE", "b", 1000, "EXPANSION", 50)
        insert(call, "a", items("item-", 20_000))
        insert(call, "b", items("other-", 20_000) + items("item-", 100) * 50)
        same(call("CF.UNION", "a", "b"), "OK")
        same(call("CF.UNION", "c", "b"), "OK")
        expected = {key: digest(call, key) for key in "abc"}
    wait_for_sync(primary, replica)
    with replica.connect() as call:
        assert {key: digest(call, key) for key in "abc"} == expected
    primary.restart("koel.max-bytes 1kb")
    with primary.connect() as call:
        assert {key: digest(call, key) for key in "abc"} == expected


def test_keys_of_the_command(call):
    """The keys as clusters and access control see them."""
    assert call("COMMAND", "GETKEYS", "CF.UNION", "a", "b", "c") == [b"a", b"b", b"c"]
    assert call("COMMAND", "GETKEYS", "CF.ADD", "a", "b") == [b"a"]
    call("CF.ADD", "a", "x")
    call("CF.ADD", "b", "y")
    call("ACL", "SETUSER", "reader", "on", ">secret", "+cf.union", "%RW~a", "%R~b")
    call("AUTH", "reader", "secret")
    same(call("CF.UNION", "a", "b"), "OK")
    refused("NOPERM", call, "CF.UNION", "b", "a")
