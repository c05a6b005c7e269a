"""CF.UNION: each item gets the larger number of copies."""

from filters import (
    add_all, all_exist, chunks_of, digest, dump, fixture_named, info, insert, items, load, refused, state,
)
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
