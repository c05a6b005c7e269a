"""Filters in a cluster: clients are redirected to the right node, and slots migrate while they are written."""

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
    """Uses keys of every node through redis-py, which follows redirections."""
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


def test_client_methods(client):
    filters = client.cf()
    assert filters.create("f", 1000) and filters.add("f", "a") == 1
    assert filters.insert("f", ["b", "c"]) == [1, 1]
    assert filters.mexists("f", "a", "x") == [1, 0] and filters.delete("f", "a") == 1
    assert filters.info("f").get("insertedNum") == 2 and len(INFO_FIELDS) == 8


def test_moved_errors_name_the_owner(cluster, client):
    owner = cluster.owner(slot_of("f"))
    for node in cluster.nodes:
        if node is not owner:
            with node.connect() as call:
                error = refused("MOVED", call, "CF.ADD", "f", "a")
                assert error.endswith(f"127.0.0.1:{owner.port}")


class Writer(Worker):
    """A thread that adds items to KEYS through a client of the cluster."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.acknowledged = cluster, []

    def connect(self):
        return closing(self.cluster.client())

    def turn(self, client):
        n = self.turns
        key, batch = KEYS[n % len(KEYS)], [f"item-{n}-{m}" for m in range(20)]
        assert client.execute_command("CF.ADD", key, f"single-{n}") == 1
        self.acknowledged.append((key, f"single-{n}"))
        assert client.execute_command("CF.INSERT", key, "ITEMS", *batch) == [1] * 20
        self.acknowledged += [(key, item) for item in batch]


def check_acknowledged(client, acknowledged):
    for key in KEYS:
        batch = [item for name, item in acknowledged if name == key]
        for start in range(0, len(batch), 1000):
            part = batch[start : start + 1000]
            found = client.execute_command("CF.MEXISTS", key, *part)
            assert found == [1] * len(part), f"{found.count(0)} of {len(part)} items of {key} are lost"


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


def migrate_atomically(cluster, slot, source, target):
    """Migrates a slot in Valkey 9: the source sends it as to a replica, then hands it over."""
    with source.connect() as call:
        call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)

        def is_done():
            migrations = [dict(zip(one[::2], one[1::2])) for one in call("CLUSTER", "GETSLOTMIGRATIONS")]
            last = max(migrations, key=lambda one: one[b"create_time"]) if migrations else {}
            assert last.get(b"state") not in (b"failed", b"cancelled"), last
            return last.get(b"state") == b"success"

        wait_until(is_done, 60, source.log)


@pytest.mark.parametrize("migrate", [migrate_key_by_key, migrate_atomically])
def test_a_slot_migrates_while_it_is_written(cluster, client, binary, migrate):
    if migrate is migrate_atomically and not binary.is_at_least(valkey=(9, 0)):
        pytest.skip("this server has no CLUSTER MIGRATESLOTS")
    slot = slot_of(KEYS[0])
    writer = Writer(cluster)
    writer.start()
    try:
        writer.wait_for_turns(150)
        for _ in range(2):
            source = cluster.owner(slot)
            target = next(node for node in cluster.nodes if node is not source)
            migrate(cluster, slot, source, target)
            wait_until(lambda target=target: cluster.owner(slot) is target)
            writer.wait_for_turns(50)
    finally:
        writer.finish()
    check_acknowledged(client, writer.acknowledged)


def test_ask_errors_lead_to_the_new_node(cluster, client):
    """While a slot migrates, new filters are created at the target."""
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


@pytest.mark.parametrize("migrate", [migrate_key_by_key, migrate_atomically])
def test_migration_preserves_filters(cluster, client, binary, migrate):
    """The limit of the target does not apply, because the source has already accepted the items."""
    if migrate is migrate_atomically and not binary.is_at_least(valkey=(9, 0)):
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
