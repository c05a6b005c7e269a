"""Replicas have equal filters, byte for byte, for any commands, at any time of the sync, with any configuration."""

import random
import re

import pytest

from filters import (
    add_all, all_exist, check_zoo, chunks_of, differences, dump, fixture_named, info, insert, is_refused, items, load,
    make_large, make_zoo, refused, states,
)
from servers import wait_until
from wire import same
from workers import Worker

OTHER_SETTINGS = [
    "koel.initial-size 77", "koel.error-rate 0.1", "koel.expansion 0", "koel.max-bytes 4kb", "koel.seed 5",
]


@pytest.fixture
def pair(start):
    """A primary, and a server that becomes its replica, with different settings."""
    return start(tcp=True), start(*OTHER_SETTINGS, tcp=True)


def follow(primary, replica):
    with replica.connect() as call:
        call("REPLICAOF", "127.0.0.1", primary.port)


def replication(call):
    lines = call("INFO", "replication").decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def wait_for_sync(primary, replica):
    """Waits until the replica has everything that the primary has."""
    with primary.connect() as to_primary, replica.connect() as to_replica:

        def has_all():
            here, there = replication(to_primary), replication(to_replica)
            is_linked = there.get("master_link_status") == "up" and here["connected_slaves"] != "0"
            return is_linked and there["slave_repl_offset"] == here["master_repl_offset"]

        wait_until(has_all, 60, replica.log)


def synced(pair):
    """Returns the two servers after the first sync."""
    follow(*pair)
    wait_for_sync(*pair)
    return pair


def same_states(primary, replica):
    wait_for_sync(primary, replica)
    with primary.connect() as to_primary, replica.connect() as to_replica:
        assert not differences(states(to_replica), states(to_primary))


def test_full_sync(pair):
    primary, replica = pair
    with primary.connect() as call:
        rest = make_zoo(call)
    follow(primary, replica)
    same_states(primary, replica)
    with replica.connect() as call:
        call("REPLICAOF", "NO", "ONE")
        call("CONFIG", "SET", "koel.max-bytes", "1gb")
        check_zoo(call, rest)


def test_commands(pair):
    """All commands come after the sync, so the replica executes them itself."""
    primary, replica = synced(pair)
    with primary.connect() as call:
        rest = make_zoo(call)
        call("CF.COMPACT", "plain")
        call("COPY", "mixed", "copy")
        call("RENAME", "sharp", "renamed")
        for key, chunks in rest.items():
            load(call, key, chunks)
        load(call, "with options", dump(call, "plain"), "EXPANSION", 3, "DELETED", 4)
        call("EVAL", "for n = 1, 500 do redis.call('CF.ADD', KEYS[1], n) end", 1, "scripted")
        call("MULTI")
        call("CF.ADD", "in a transaction", "a")
        call("CF.DEL", "plain", "plain-600")
        assert call("EXEC") == [1, 1]
        assert info(call, "with options")["Number of items deleted"] == 4
    same_states(primary, replica)


CREATIONS = [
    ("CF.ADD", "f", "a"), ("CF.ADDNX", "f", "a"), ("CF.INSERT", "f", "ITEMS", "a", "b"),
    ("CF.INSERTNX", "f", "ITEMS", "a"), ("CF.INSERT", "f", "CAPACITY", 5000, "ERROR", 0.001, "ITEMS", "a"),
    ("CF.RESERVE", "f", 5000),
]


def test_creation(pair):
    """New filters get the primary's settings, even when these change."""
    primary, replica = synced(pair)
    with primary.connect() as call:
        for n, (name, _, *arguments) in enumerate(CREATIONS):
            settings = {"seed": n, "initial-size": 1000 + n, "error-rate": "0.002", "expansion": n}
            for setting, value in settings.items():
                call("CONFIG", "SET", f"koel.{setting}", value)
            call(name, f"key {n}", *arguments)
        same_states(primary, replica)
        for n in range(len(CREATIONS)):
            if n > 0:
                add_all(call, f"key {n}", items("item-", 30_000))
    same_states(primary, replica)


def test_refused_items(pair):
    """Full filters, which accept only copies, and the memory limit, which differs on the replica."""
    primary, replica = synced(pair)
    with primary.connect() as call:
        batch = ["a"] * 100 + ["b"] + ["c"] * 9 + ["d"]
        same(call("CF.INSERT", "copies", "ITEMS", *batch), [1] * 111)
        same(call("CF.ADD", "copies", "a"), 1)
        call("CF.RESERVE", "fixed", 100, "EXPANSION", 0)
        assert insert(call, "fixed", items("item-", 150)) == [1] * 100 + [-1] * 50
        same(call("CF.INSERTNX", "fixed", "ITEMS", "item-1", "new"), [0, -1])
        call("CONFIG", "SET", "koel.max-bytes", "40kb")
        results = insert(call, "grown", items("item-", 50_000))
        assert set(results) == {1, -1}
        call("CONFIG", "SET", "koel.max-bytes", "1gb")
        add_all(call, "grown", items("later-", 40_000))
        # The filter was created, but nothing was inserted, so nothing is sent.
        call("CF.RESERVE", "full", 4, "EXPANSION", 0)
        same(call("CF.INSERT", "full", "ITEMS", 1, 2, 3, 4), [1] * 4)
        same(call("CF.INSERT", "full", "ITEMS", 5, 6), [-1, -1])
        same(call("CF.INSERT", "full", "ITEMS", 5, *[4] * 10, 6, *[1] * 10), [-1] + [1] * 10 + [-1] + [1] * 10)
        same(call("CF.INSERTNX", "copies", "ITEMS", "a", "b"), [0, 0])
    same_states(primary, replica)


def test_commands_without_effect_are_not_replicated(pair):
    primary, replica = synced(pair)
    with primary.connect() as call:
        call("CF.RESERVE", "f", 4, "EXPANSION", 0)
        call("CF.INSERT", "f", "ITEMS", 1, 2, 3, 4)
        call("CF.ADD", "g", "a")
        sent = call("INFO", "commandstats")
        wait_for_sync(primary, replica)
        with replica.connect() as to_replica:
            to_replica("CONFIG", "RESETSTAT")
            for command in [
                ("CF.ADD", "f", 5), ("CF.INSERT", "f", "ITEMS", 5, 6), ("CF.ADDNX", "g", "a"),
                ("CF.INSERTNX", "g", "ITEMS", "a"),
                ("CF.DEL", "g", "b"), ("CF.EXISTS", "g", "a"), ("CF.SCANDUMP", "g", 0), ("CF.RESERVE", "g", 1000),
                ("CF.DEL", "missing", "b"), ("CF.INSERT", "missing", "NOCREATE", "ITEMS", "b"),
                ("CF.LOADCHUNK", "g", 1, "x"), ("CF.COMPACT", "g"), ("CF.UNION", "g", "g"), ("CF.DEBUG", "g"),
            ]:
                is_refused(call, *command)
            same_states_by_digest(primary, replica)
            assert b"cmdstat_cf." not in to_replica("INFO", "commandstats").lower(), sent


def same_states_by_digest(primary, replica):
    """Compares without commands of the module."""
    wait_for_sync(primary, replica)
    with primary.connect() as to_primary, replica.connect() as to_replica:
        for key in to_primary("KEYS", "*"):
            assert to_primary("DEBUG", "DIGEST-VALUE", key) == to_replica("DEBUG", "DIGEST-VALUE", key)


class Writer(Worker):
    """A thread that changes filters, with a fixed seed."""

    def __init__(self, server):
        super().__init__()
        self.connect = server.connect
        self.choose, self.chunks = random.Random(7), chunks_of(fixture_named("rb_deleted.chunks"))

    def turn(self, call):
        n, choose = self.turns * 1000, self.choose
        key = f"f{choose.randrange(5)}"
        call.pipeline([("CF.ADD", key, item) for item in items("item-", 100, n)])
        call("CF.INSERT", key, "ITEMS", *items("item-", 400, n + 100))
        call("CF.INSERTNX", key, "ITEMS", *items("item-", 200, choose.randrange(n + 1)))
        call.pipeline([("CF.DEL", key, item) for item in items("item-", 300, choose.randrange(n + 1))])
        load(call, f"imported {self.turns}", self.chunks[: self.turns % 3])
        if self.turns % 10 == 9:
            call("CF.COMPACT", key)


def test_full_sync_during_writes(pair):
    """The file is a snapshot of one moment, and later changes come as commands."""
    primary, replica = pair
    with primary.connect() as call:
        make_large(call, "large")
    writer = Writer(primary)
    writer.start()
    try:
        writer.wait_for_turns(20)
        follow(primary, replica)
        with replica.connect() as call:
            wait_until(lambda: replication(call).get("master_link_status") == "up", 60, replica.log)
        writer.wait_for_turns(20)
    finally:
        writer.finish()
    same_states(primary, replica)


def test_partial_sync(pair):
    """The link breaks repeatedly while the primary is written to. Each time, only the missing part is sent."""
    primary, replica = pair
    with primary.connect() as call:
        call("CONFIG", "SET", "repl-backlog-size", "64mb")
        follow(primary, replica)
        wait_for_sync(primary, replica)
        writer = Writer(primary)
        writer.start()
        try:
            for _ in range(3):
                writer.wait_for_turns(10)
                call("CLIENT", "KILL", "TYPE", "replica")
                writer.wait_for_turns(5)
        finally:
            writer.finish()
        same_states(primary, replica)
        stats = call("INFO", "stats").decode()
        assert "sync_full:1\r" in stats and "sync_partial_ok:0\r" not in stats


def test_half_loaded_filters(pair):
    """A full sync happens between two chunks."""
    primary, replica = pair
    with primary.connect() as call:
        make_large(call, "large")
        chunks = dump(call, "large")
        load(call, "f", chunks[:1])
        load(call, "g", chunks_of(fixture_named("rb_grown_e2.chunks"))[:2])
        follow(primary, replica)
        wait_for_sync(primary, replica)
        with replica.connect() as to_replica:
            refused("ERR a filter is being loaded", to_replica, "CF.EXISTS", "f", "large-1")
            error = refused("ERR a filter is being loaded", to_replica, "CF.INFO", "g")
            assert re.search(r": \d+ of \d+ bytes have arrived", error), error
        load(call, "f", chunks[1:])
        load(call, "g", chunks_of(fixture_named("rb_grown_e2.chunks"))[2:])
    same_states(primary, replica)
    with replica.connect() as to_replica:
        all_exist(to_replica, "f", items("large-", 5000))
        all_exist(to_replica, "g", items("key-", 6000))


def test_a_replica_only_reads(pair):
    primary, replica = pair
    with primary.connect() as call:
        call("CF.ADD", "f", "a")
    follow(primary, replica)
    wait_for_sync(primary, replica)
    with replica.connect() as call:
        same(call("CF.EXISTS", "f", "a"), 1)
        refused("READONLY", call, "CF.ADD", "f", "b")
        refused("READONLY", call, "CF.DEL", "f", "a")


def test_promotion(pair):
    """The replica becomes the primary of the old one. Its own settings apply only to new filters."""
    primary, replica = pair
    follow(primary, replica)
    with primary.connect() as call:
        call("CF.RESERVE", "f", 1000, "ERROR", 0.001)
        add_all(call, "f", items("item-", 5000))
    wait_for_sync(primary, replica)
    with replica.connect() as call:
        call("REPLICAOF", "NO", "ONE")
        call("CONFIG", "SET", "koel.max-bytes", "1gb")
        add_all(call, "f", items("more-", 20_000))
        all_exist(call, "f", items("item-", 5000))
        call("CF.ADD", "new", "a")
        assert float(info(call, "f")["Error rate"]) == 0.001 and float(info(call, "new")["Error rate"]) == 0.1
    follow(replica, primary)
    same_states(replica, primary)


def test_a_promoted_replica_has_its_own_limit(pair):
    primary, replica = pair
    follow(primary, replica)
    with primary.connect() as call:
        add_all(call, "f", items("item-", 20_000))
    wait_for_sync(primary, replica)
    with replica.connect() as call:
        call("REPLICAOF", "NO", "ONE")
        results = insert(call, "f", items("more-", 50_000))
        assert -1 in results
        all_exist(call, "f", items("item-", 20_000))


def test_a_chain(start):
    """A replica of a replica. The one in the middle has other settings."""
    first, middle, last = start(tcp=True), start(*OTHER_SETTINGS, tcp=True), start(tcp=True)
    follow(first, middle)
    follow(middle, last)
    wait_for_sync(first, middle)
    wait_for_sync(middle, last)
    with first.connect() as call:
        add_all(call, "f", items("item-", 10_000))
        load(call, "g", chunks_of(fixture_named("rb_grown_e2.chunks")))
    same_states(first, middle)
    same_states(middle, last)
