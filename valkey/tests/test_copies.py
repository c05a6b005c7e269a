"""Copies of items, up to 2³² − 1 of each. They are never refused, never make a filter grow, and survive everything that happens
to a filter."""

import subprocess

import pytest

from filters import (
    add_all, all_exist, differences, digest, dump, exist, info, insert, is_refused, items, load, make_large, refused, snapshot, states,
)
from servers import COMMAND
from test_counts import section
from test_persistence import WAYS, rewrite
from test_replication import OTHER_SETTINGS, follow, same_states, wait_for_sync
from wire import Refusal, same

MOST = 2**32 - 1
USERS = items("user", 10_000)
MANY = [(b"one", 1), (b"eight", 8), (b"nine", 9), (b"many", 1000)]
"""Items, and how many copies of each are added to a filter."""


def counts(call, key, some):
    return call.pipeline([("CF.COUNT", key, item) for item in some])


def refusals(replies):
    return sum(isinstance(reply, Refusal) or reply == -1 for reply in replies)


def remove_all(call, key, some):
    """Removes all items in this order. Asserts that each is present."""
    results = call.pipeline([("CF.DEL", key, item) for item in some])
    assert results == [1] * len(some), f"{results.count(0)} of {len(some)} were absent"


def add_copies(call, key):
    """Adds many distinct items, with the copies of MANY among them."""
    for part in range(4):
        add_all(call, key, items("item-", 1000, 1000 * part) + [item for item, copies in MANY for _ in range(-(copies // -4))])
    for item, copies in MANY:
        call.pipeline([("CF.DEL", key, item)] * (counts(call, key, [item])[0] - copies))


def check_copies(call, key):
    """Asserts that the copies of MANY can be counted and removed individually."""
    assert counts(call, key, [item for item, _ in MANY]) == [copies for _, copies in MANY]
    for item, copies in MANY:
        remove_all(call, key, [item] * copies)
        same(call("CF.DEL", key, item), 0)
    all_exist(call, key, items("item-", 4000))


@pytest.mark.parametrize("options", [[], ["EXPANSION", 0]], ids=["growing", "EXPANSION 0"])
@pytest.mark.parametrize("order", ["grouped", "interleaved", "CF.INSERT"])
def test_eight_copies_of_every_user(call, options, order):
    """The filter is reserved for all users."""
    call("CF.RESERVE", "f", len(USERS), *options)
    empty = info(call, "f")
    if order == "grouped":
        replies = call.pipeline([("CF.ADD", "f", user) for user in USERS for _ in range(8)])
    elif order == "interleaved":
        replies = call.pipeline([("CF.ADD", "f", user) for _ in range(8) for user in USERS])
    else:
        replies = insert(call, "f", [user for user in USERS for _ in range(8)], 800)
    assert refusals(replies) == 0
    all_exist(call, "f", USERS)
    counted = counts(call, "f", USERS)
    # Some users collide, and are counted together.
    assert min(counted) == 8 and sum(count > 8 for count in counted) < 200
    found = info(call, "f")
    assert found["Number of items inserted"] == 8 * len(USERS) and found["Number of filters"] == 1
    call("CF.RESERVE", "once", len(USERS), *options)
    add_all(call, "once", USERS)
    once = info(call, "once")
    assert (found["Number of buckets"], found["Shards"]) == (once["Number of buckets"], once["Shards"])
    assert float(found["False positive rate"]) <= 0.01
    # The charge of an item with copies exceeds its memory, because a list that was longer may not be full.
    assert found["Size"] <= once["Size"] + 17 * len(USERS) + 4096, found
    assert call("MEMORY", "USAGE", "f") <= call("MEMORY", "USAGE", "once") + 12 * len(USERS) + 4096
    for left in range(7, -1, -1):
        remove_all(call, "f", USERS)
        if left:
            all_exist(call, "f", USERS)
    assert sum(exist(call, "f", USERS)) == 0
    same(call("CF.COMPACT", "f"), "OK")
    found = info(call, "f")
    assert found["Number of items inserted"] == 0 and found["Size"] == empty["Size"]


def test_a_thousand_copies_of_one_item(call):
    add_all(call, "f", items("item-", 500))
    before = info(call, "f")
    for n in range(1, 1001):
        same(call("CF.ADD", "f", "a"), 1)
        same(call("CF.COUNT", "f", "a"), n)
    found = info(call, "f")
    # The counts of its list have as many bytes as the largest needs.
    assert found["Size"] <= before["Size"] + 2 * 500 + 100 and found["Shards"] == before["Shards"]
    assert found["Number of items inserted"] == 1500
    same(call("CF.ADDNX", "f", "a"), 0)
    same(call("CF.INSERTNX", "f", "ITEMS", "a", "b"), [0, 1])
    same(call("CF.INSERT", "f", "ITEMS", *["a"] * 1000), [1] * 1000)
    same(call("CF.COUNT", "f", "a"), 2000)
    remove_all(call, "f", ["a"] * 1999)
    same(call("CF.EXISTS", "f", "a"), 1)
    same(call("CF.COUNT", "f", "a"), 1)
    remove_all(call, "f", ["a"])
    same(call("CF.DEL", "f", "a"), 0)
    same(call("CF.EXISTS", "f", "a"), 0)
    found = info(call, "f")
    assert (found["Number of items inserted"], found["Number of items deleted"]) == (501, 2000)
    assert found["Size"] <= before["Size"] and sum(counts(call, "f", items("item-", 500))) >= 500


def test_copies_survive_dumps_and_reloads(call):
    """Copies survive COPY, DUMP and RESTORE, DEBUG RELOAD, CF.SNAPSHOT, and dumps of one or several chunks."""
    add_copies(call, "f")
    make_large(call, "large")
    add_copies(call, "large")
    for key in ("f", "large"):
        chunks = dump(call, key)
        assert len(chunks) > 1 or key == "f"
        load(call, f"{key} by chunks", chunks[:1], "DELETED", info(call, key)["Number of items deleted"])
        load(call, f"{key} by chunks", chunks[1:])
        same(call("COPY", key, f"{key} by COPY"), 1)
        same(call("RESTORE", f"{key} by RESTORE", 0, call("DUMP", key)), "OK")
    same(call("CF.SNAPSHOT", "f"), snapshot(call, "f"))
    same(call("DEBUG", "RELOAD"), "OK")
    for key in ("f", "large"):
        others = [f"{key} by {way}" for way in ("chunks", "COPY", "RESTORE")]
        assert {digest(call, other) for other in others} == {digest(call, key)}
        for other in others:
            assert info(call, other) == info(call, key)
        # Further changes have the same effect on all of them.
        for other in (key, *others):
            add_copies(call, other)
            same(call("CF.COMPACT", other), "OK")
        assert {digest(call, other) for other in others} == {digest(call, key)}
        for other in (key, *others):
            check_copies(call, other)


@pytest.mark.parametrize("way", WAYS)
def test_copies_survive_a_restart(start, way):
    server = start(*WAYS[way])
    with server.connect() as call:
        make_large(call, "large")
        call("CF.RESERVE", "fixed", 4004, "EXPANSION", 0)
        for key in ("f", "fixed", "large"):
            add_copies(call, key)
        if way.startswith("RDB"):
            call("SAVE")
        elif way != "AOF":
            rewrite(call)
            call("CF.ADD", "f", "many")
            call("CF.DEL", "f", "many")
        before = states(call)
    server.restart()
    with server.connect() as call:
        assert not differences(states(call), before)
        for key in ("f", "fixed", "large"):
            check_copies(call, key)


def test_copies_on_replicas(start):
    """Before and after the full synchronization, with other settings."""
    primary, replica = start(tcp=True), start(*OTHER_SETTINGS, tcp=True)
    with primary.connect() as call:
        call("CF.RESERVE", "fixed", 4004, "EXPANSION", 0)
        for key in ("f", "fixed"):
            add_copies(call, key)
        follow(primary, replica)
        same_states(primary, replica)
        add_copies(call, "f")
        for key in ("f", "later"):
            call("CF.INSERT", key, "ITEMS", *["in one command"] * 5000)
            call.pipeline([("CF.ADD", key, item) for item in USERS[:500] for _ in range(20)])
        call("CF.COMPACT", "f")
        call("CF.RESERVE", "fixed too", 300, "EXPANSION", 0)
        results = insert(call, "fixed too", [user for user in USERS[:400] for _ in range(20)])
        assert results.count(-1) > 1000
        call("CF.UNION", "fixed too", "fixed too")
    same_states(primary, replica)
    with replica.connect() as call:
        call("REPLICAOF", "NO", "ONE")
        call("CONFIG", "SET", "koel.max-bytes", "1gb")
        check_copies(call, "f")
        remove_all(call, "later", ["in one command"] * 5000)
        # From now on, the replica applies its own limits.
        assert set(counts(call, "fixed too", USERS[:300])) >= {20}
        assert is_refused(call, "CF.ADD", "fixed too", "another")
        same(call("CF.ADD", "fixed too", USERS[0]), 1)


def test_the_capacity_counts_distinct_items(call):
    """With EXPANSION 0, copies are accepted even in a full filter, and removing the last copy of an item makes room."""
    some, others = items("item-", 1000), items("other-", 1000)
    call("CF.RESERVE", "f", 1000, "EXPANSION", 0, "ERROR", 0.0001)
    assert insert(call, "f", some[:999] * 3) == [1] * 2997
    before = section(call)
    same(call("CF.INSERT", "f", "ITEMS", some[999], *others[:3], some[5], some[999]), [1, -1, -1, -1, 1, 1])
    error = refused("Filter is full: its capacity is 1000 distinct items", call, "CF.ADD", "f", others[0])
    assert "EXPANSION 0" in error
    same(call("CF.INSERTNX", "f", "ITEMS", some[3], others[3], some[4]), [0, -1, 0])
    assert is_refused(call, "CF.ADDNX", "f", others[0])
    assert section(call)["refused_capacity"] - before["refused_capacity"] == 6
    assert set(counts(call, "f", some)) == {2, 3, 4}
    same(call("COPY", "f", "g"), 1)
    load(call, "h", dump(call, "f"), "EXPANSION", 0)
    for key in "fgh":
        remove_all(call, key, [some[0]] * 2)
        assert is_refused(call, "CF.ADD", key, others[0])
        remove_all(call, key, [some[0]])
        same(call("CF.INSERT", key, "ITEMS", others[0], others[0], some[0]), [1, 1, -1])
    assert digest(call, "g") == digest(call, "f") and snapshot(call, "h") == snapshot(call, "f")
    # One union fits the capacity, the next does not.
    call("CF.RESERVE", "u", 1000, "EXPANSION", 0, "ERROR", 0.0001)
    insert(call, "u", some[500:] * 12)
    same(call("CF.UNION", "u", "f"), "OK")
    assert counts(call, "u", some[500:502]) == [12, 12] and info(call, "u")["Number of items inserted"] > 6000
    call("CF.RESERVE", "other", 1000, "EXPANSION", 0, "ERROR", 0.0001)
    call("CF.ADD", "other", others[500])
    before = digest(call, "u")
    refused("Filter is full: the union has more than 1000 distinct items", call, "CF.UNION", "u", "other")
    assert digest(call, "u") == before


def test_the_byte_limit_includes_copies(call):
    """The limit includes the list of items with copies. Copies of items on the list are still counted."""
    add_all(call, "f", USERS)
    insert(call, "f", USERS[:2000] * 20)
    call("CONFIG", "SET", "koel.max-bytes", info(call, "f")["Size"])
    before = section(call)
    results = insert(call, "f", USERS * 9)
    assert {1, -1} == set(results) and section(call)["refused_max_bytes"] - before["refused_max_bytes"] == results.count(-1)
    assert set(insert(call, "f", USERS[:2000])) == {1}
    all_exist(call, "f", USERS)
    if -1 in (replies := call.pipeline([("CF.ADD", "f", user) for user in USERS])):
        raise AssertionError(replies)
    errors = [str(reply) for reply in replies if isinstance(reply, Refusal)]
    assert errors and all(error.startswith("Maximum expansions reached") for error in errors)
    # The limit does not include the struct.
    assert info(call, "f")["Size"] <= int(call("CONFIG", "GET", "koel.max-bytes")[1]) + 1000


@pytest.fixture
def full(call, tmp_path):
    """A filter with the most copies of an item. `koel merge` doubles the copies and adds one, repeatedly."""
    add_all(call, "f", ["a"])
    one, many = tmp_path / "one.koel", tmp_path / "many.koel"
    for path in (one, many):
        path.write_bytes(call("CF.SNAPSHOT", "f"))
    for _ in range(1, 32):
        subprocess.run([COMMAND, "merge", many, many, one, "-o", many], check=True, timeout=60, capture_output=True)
    data = many.read_bytes()
    call("DEL", "f")
    load(call, "f", [(len(data), data)])
    return "f"


def test_the_largest_number_of_copies(call, full):
    same(call("CF.COUNT", full, "a"), MOST)
    assert info(call, full)["Number of items inserted"] == MOST and section(call)["items"] == MOST
    before, before_digest = section(call), digest(call, full)
    error = refused("Filter is full", call, "CF.ADD", full, "a")
    assert f"{MOST} copies" in error and "CF.ADDNX" in error
    same(call("CF.INSERT", full, "ITEMS", "a", "a"), [-1, -1])
    same(call("CF.ADDNX", full, "a"), 0)
    same(call("CF.INSERTNX", full, "ITEMS", "a"), [0])
    after = section(call)
    assert after["refused_growth"] - before["refused_growth"] == 3 and digest(call, full) == before_digest
    same(call("CF.INSERT", full, "ITEMS", "b", "a", "b"), [1, -1, 1])
    # Also where a batch of the module ends, at 512.
    runs = [("a", 510), ("b", 7), ("a", 3), ("b", 2), ("a", 600), ("c", 9), ("b", 1)]
    replies = [-1 if item == "a" else 1 for item, count in runs for _ in range(count)]
    same(call("CF.INSERT", full, "ITEMS", *(item for item, count in runs for _ in range(count))), replies)
    same([call("CF.COUNT", full, item) for item in "abc"], [MOST, 12, 9])
    remove_all(call, full, ["a"])
    same(call("CF.COUNT", full, "a"), MOST - 1)
    same(call("CF.ADD", full, "a"), 1)
    assert is_refused(call, "CF.ADD", full, "a")


def test_the_largest_number_of_copies_survives_dumps(call, full):
    load(call, "g", dump(call, full))
    same(call("RESTORE", "h", 0, call("DUMP", full)), "OK")
    same(call("CF.UNION", "g", full, "h"), "OK")
    same(call("DEBUG", "RELOAD"), "OK")
    for key in ("f", "g", "h"):
        assert info(call, key) == info(call, full)
        same(call("CF.COUNT", key, "a"), MOST)
        assert is_refused(call, "CF.ADD", key, "a")
