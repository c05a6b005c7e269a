"""Filters in a cluster: clients are led to the right node, slots move while they are written."""

from contextlib import closing

import pytest

from cluster import Cluster, slot_of
from filters import INFO_FIELDS, digest, refused
from servers import wait_until
from workers import Worker

KEYS = [f"{{slot}}-{n}" for n in range(6)]


@pytest.fixture(scope="module")
def cluster(binary):
    made = Cluster(binary)
    yield made
    made.close()


@pytest.fixture
def client(cluster):
    for node in cluster.nodes:
        with node.connect() as call:
            call("FLUSHALL")
    made = cluster.client()
    yield made
    made.close()


def test_all_nodes(cluster, client):
    """Keys of every node by redis-py, which is told of the right one."""
    keys = [f"key {n}" for n in range(60)]
    for key in keys:
        assert client.execute_command("CF.INSERT", key, "ITEMS", key, "b") == [1, 1]
    for key in keys:
        assert client.execute_command("CF.MEXISTS", key, key, "b", "absent") == [1, 1, 0]
    sizes = []
    for node in cluster.nodes:
        with node.connect() as call:
            sizes.append(call("DBSIZE"))
    assert sum(sizes) == len(keys) and all(sizes)


def test_the_methods_of_the_client(client):
    filters = client.cf()
    assert filters.create("f", 1000) and filters.add("f", "a") == 1
    assert filters.insert("f", ["b", "c"]) == [1, 1]
    assert filters.mexists("f", "a", "x") == [1, 0] and filters.delete("f", "a") == 1
    assert filters.info("f").get("insertedNum") == 2 and len(INFO_FIELDS) == 8


def test_moved(cluster, client):
    owner = cluster.owner(slot_of("f"))
    for node in cluster.nodes:
        if node is not owner:
            with node.connect() as call:
                said = refused("MOVED", call, "CF.ADD", "f", "a")
                assert said.endswith(f"127.0.0.1:{owner.port}")


class Writer(Worker):
    """Adds items to KEYS through a client of the cluster."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.acknowledged = cluster, []

    def connect(self):
        return closing(self.cluster.client())

    def turn(self, client):
        n = self.turns
        key, some = KEYS[n % len(KEYS)], [f"item-{n}-{m}" for m in range(20)]
        assert client.execute_command("CF.ADD", key, f"single-{n}") == 1
        self.acknowledged.append((key, f"single-{n}"))
        assert client.execute_command("CF.INSERT", key, "ITEMS", *some) == [1] * 20
        self.acknowledged += [(key, item) for item in some]


def check_acknowledged(client, acknowledged):
    for key in KEYS:
        some = [item for name, item in acknowledged if name == key]
        for start in range(0, len(some), 1000):
            batch = some[start : start + 1000]
            found = client.execute_command("CF.MEXISTS", key, *batch)
            assert found == [1] * len(batch), f"{found.count(0)} of {len(batch)} items of {key} are lost"


def migrate_key_by_key(cluster, slot, source, target):
    with source.connect() as here, target.connect() as there:
        there("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        here("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        while True:
            keys = here("CLUSTER", "GETKEYSINSLOT", slot, 2)
            if not keys:
                break
            here("MIGRATE", "127.0.0.1", target.port, "", 0, 20_000, "KEYS", *keys)
        there("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        here("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    for node in cluster.nodes:
        if node not in (source, target):
            with node.connect() as call:
                call("CLUSTER", "SETSLOT", slot, "NODE", target.id)


def migrate_as_a_whole(cluster, slot, source, target):
    """Valkey 9: the source sends the slot as it sends a replica, and then hands it over."""
    with source.connect() as call:
        call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)

        def is_done():
            migrations = [dict(zip(one[::2], one[1::2])) for one in call("CLUSTER", "GETSLOTMIGRATIONS")]
            last = max(migrations, key=lambda one: one[b"create_time"]) if migrations else {}
            assert last.get(b"state") not in (b"failed", b"cancelled"), last
            return last.get(b"state") == b"success"

        wait_until(is_done, 60, source.log)


@pytest.mark.parametrize("migrate", [migrate_key_by_key, migrate_as_a_whole])
def test_migration_while_it_is_written(cluster, client, binary, migrate):
    if migrate is migrate_as_a_whole and not binary.is_at_least(valkey=(9, 0)):
        pytest.skip("this server has no CLUSTER MIGRATESLOTS")
    slot = slot_of(KEYS[0])
    writer = Writer(cluster)
    writer.start()
    try:
        writer.turns_more(150)
        for _ in range(2):
            source = cluster.owner(slot)
            target = next(node for node in cluster.nodes if node is not source)
            migrate(cluster, slot, source, target)
            wait_until(lambda target=target: cluster.owner(slot) is target)
            writer.turns_more(50)
    finally:
        writer.finish()
    check_acknowledged(client, writer.acknowledged)


def test_ask(cluster, client):
    """While a slot moves, a new filter is made at its new place."""
    slot = slot_of(KEYS[0])
    source = cluster.owner(slot)
    target = next(node for node in cluster.nodes if node is not source)
    client.execute_command("CF.ADD", KEYS[0], "a")
    with source.connect() as here, target.connect() as there:
        there("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        here("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        refused("ASK", here, "CF.ADD", KEYS[1], "b")
        assert client.execute_command("CF.ADD", KEYS[1], "b") == 1
        assert client.execute_command("CF.ADD", KEYS[0], "b") == 1
        assert here("CLUSTER", "GETKEYSINSLOT", slot, 9) == [KEYS[0].encode()]
        assert there("CLUSTER", "GETKEYSINSLOT", slot, 9) == [KEYS[1].encode()]
    migrate_key_by_key(cluster, slot, source, target)
    assert client.execute_command("CF.MEXISTS", KEYS[0], "a", "b") == [1, 1]
    assert client.execute_command("CF.EXISTS", KEYS[1], "b") == 1


@pytest.mark.parametrize("migrate", [migrate_key_by_key, migrate_as_a_whole])
def test_a_migrated_filter_is_the_same(cluster, client, binary, migrate):
    """Whatever the new node's limit is: its former node has decided what it holds."""
    if migrate is migrate_as_a_whole and not binary.is_at_least(valkey=(9, 0)):
        pytest.skip("this server has no CLUSTER MIGRATESLOTS")
    slot = slot_of(KEYS[0])
    source = cluster.owner(slot)
    target = next(node for node in cluster.nodes if node is not source)
    for n, key in enumerate(KEYS):
        client.execute_command("CF.RESERVE", key, 1000, "SEED", n)
        client.execute_command("CF.INSERT", key, "ITEMS", *range(5000))
    with source.connect() as call:
        before = [(digest(call, key), call("CF.SNAPSHOT", key)) for key in KEYS]
    with target.connect() as call:
        call("CONFIG", "SET", "koel.max-bytes", "1kb")
        migrate(cluster, slot, source, target)
        wait_until(lambda: cluster.owner(slot) is target)
        assert [(digest(call, key), call("CF.SNAPSHOT", key)) for key in KEYS] == before
        call("CONFIG", "SET", "koel.max-bytes", "1gb")
