"""A replica takes over while clients write, in a cluster and with Sentinel. Nothing acknowledged is lost, a dump that the old
primary began continues, and both servers have the same filters afterwards.

A planned failover loses none of the primary's replies. A primary that is killed may lose what no replica has, so there only
items that `WAIT` confirms count as acknowledged.
"""

import contextlib
from pathlib import Path

import pytest
import redis
from redis.sentinel import Sentinel

from cluster import Cluster, slot_of
from filters import all_exist, differences, joined_bytes, make_large, states
from servers import Binary, Server, found, wait_until
from wire import Connection, Refusal
from workers import Worker

KEYS = [f"{{slot}}-{n}" for n in range(6)]
UNCHANGED = "{slot}-still"
"""A key that nobody writes to."""

ENOUGH = 2000


class Writer(Worker):
    """A thread that adds items to KEYS at the server whose address `find` returns. It asks again when that server is gone or no
    longer the primary."""

    def __init__(self, find):
        super().__init__()
        self.find, self.call, self.acknowledged, self.needs_confirmation = find, None, {key: [] for key in KEYS}, False

    def connect(self):
        return contextlib.nullcontext()

    def turn(self, _):
        key, batch = KEYS[self.turns % len(KEYS)], [b"item-%d-%d" % (self.turns, m) for m in range(20)]
        try:
            self.call = self.call or Connection(self.find(), timeout=5)
            assert self.call("CF.INSERT", key, "ITEMS", *batch) == [1] * len(batch)
            if not self.needs_confirmation or self.call("WAIT", 1, 1000) == 1:
                self.acknowledged[key] += batch
        except (OSError, LookupError, Refusal):
            self.call = None
            self.stopping.wait(0.02)

    def count(self):
        return sum(map(len, self.acknowledged.values()))

    def wait_for_writes(self, explain):
        """Waits until ENOUGH more items are acknowledged."""
        goal = self.count() + ENOUGH
        wait_until(lambda: self.failure or self.count() >= goal, 60, explain)
        self.check()


def is_role(server, role):
    with server.connect() as call:
        try:
            text = call("INFO", "replication")
        except OSError:
            # A sentinel that promotes a replica closes its clients' connections.
            return False
        return b"role:%b\r" % role in text and (role == b"master" or b"master_link_status:up" in text)


def check_failover(writer, primary, replica, fail_over, explain):
    """Lets the writer write before, during and after `fail_over`, which makes the replica the primary."""
    with primary.connect() as call:
        if not call("EXISTS", UNCHANGED):
            make_large(call, UNCHANGED)
        iterator, chunk = call("CF.SCANDUMP", UNCHANGED, 0)
        chunks = [(iterator, chunk)]
        call("WAIT", 1, 5000)
    writer.start()
    try:
        writer.wait_for_writes(explain)
        fail_over()
        wait_until(lambda: is_role(replica, b"master"), 60, explain)
        if primary.process.poll() is not None:
            # The old primary becomes a replica. Without a replica, nothing is confirmed.
            primary.start()
        writer.wait_for_writes(explain)
    finally:
        writer.finish()
    wait_until(lambda: is_role(primary, b"slave"), 60, explain)
    with replica.connect() as here, primary.connect() as there:
        for key, acknowledged in writer.acknowledged.items():
            all_exist(here, key, acknowledged)
        while iterator:
            iterator, chunk = here("CF.SCANDUMP", UNCHANGED, iterator)
            chunks.append((iterator, chunk or b""))
        assert len(chunks) > 3 and joined_bytes(chunks) == here("CF.SNAPSHOT", UNCHANGED)
        # The replica has everything, because nobody writes now.
        here("CF.ADD", KEYS[0], "last")
        assert here("WAIT", 1, 5000) == 1
        if "cluster-enabled yes" in primary.options:
            there("READONLY")
        assert not differences(states(there), states(here))


# In a cluster.


@pytest.fixture(scope="module")
def cluster(binary):
    """Three primaries, one of them with a replica. While nodes are down, some slots may have no server."""
    made = Cluster(binary, options=["cluster-require-full-coverage no"])
    made.add_replica(made.owner(slot_of(UNCHANGED)))
    yield made
    made.close()


def planned(cluster, primary, replica):
    request_failover(replica)


def elected(cluster, primary, replica):
    """Kills the primary. The other primaries notice it and elect the replica."""
    primary.kill()


def forced(cluster, primary, replica):
    """Fails over immediately, without waiting for the primary, but with the others' agreement."""
    primary.kill()
    request_failover(replica, "FORCE")


def taken_over(cluster, primary, replica):
    """Fails over without agreement: two of three primaries are gone, so there is no majority."""
    other = next(node for node in cluster.nodes if node not in (primary, replica))
    other.kill()
    primary.kill()
    request_failover(replica, "TAKEOVER")


def request_failover(replica, *how):
    with replica.connect() as call:
        assert call("CLUSTER", "FAILOVER", *how) == "OK"


@pytest.mark.parametrize("how", [planned, elected, forced, taken_over])
def test_cluster(cluster, how):
    primary = cluster.owner(slot_of(UNCHANGED))
    (replica,) = [node for node in cluster.nodes if cluster.says_replica(primary, node, primary)]

    def find():
        return cluster.owner(slot_of(UNCHANGED)).address

    writer = Writer(find)
    writer.needs_confirmation = how is not planned
    check_failover(writer, primary, replica, lambda: how(cluster, primary, replica), cluster.logs)
    for node in cluster.nodes:
        if node.process.poll() is not None:
            node.start()
    wait_until(lambda: cluster.is_ready() and cluster.all_know_replica(primary, replica), 60, cluster.logs)


# With Sentinel.

NAME = "koel"


class Watcher(Server):
    """A sentinel, which is the server's program under another name."""

    def __init__(self, binary, primary, folder, *more):
        path = Path(folder) / f"{binary.kind}-sentinel"
        path.symlink_to(binary.path)
        self.primary, self.more = primary, more
        super().__init__(Binary(str(path), binary.kind, binary.version), tcp=True, module=None)

    def configuration(self):
        lines = [f"port {self.port}", f"dir {self.folder}", "logfile log", "bind 127.0.0.1", "protected-mode no"]
        lines += [f"sentinel monitor {NAME} 127.0.0.1 {self.primary.port} 1", f"sentinel down-after-milliseconds {NAME} 3000"]
        return "\n".join([*lines, f"sentinel failover-timeout {NAME} 5000", *self.more]) + "\n"


@pytest.fixture
def watched(binary, tmp_path):
    """A primary, its replica, and a sentinel that knows both."""
    if binary is not found()[0] and not binary.is_at_least(valkey=(9, 0)):
        pytest.skip("testing the oldest and the newest server suffices")
    primary = Server(binary, tcp=True)
    replica = Server(binary, f"replicaof 127.0.0.1 {primary.port}", tcp=True)
    servers = [primary, replica]
    try:
        wait_until(lambda: is_role(replica, b"slave"), 30, replica.log)
        servers.append(Watcher(binary, primary, tmp_path))
        with servers[2].connect() as call:
            wait_until(lambda: len(call("SENTINEL", "REPLICAS", NAME)) == 1, 30, servers[2].log)
            wait_until(lambda: b"slave" in call("SENTINEL", "REPLICAS", NAME)[0], 30)
        yield servers
    finally:
        for server in servers:
            server.close()


def test_sentinel(watched):
    """Clients ask the sentinel for the primary."""
    primary, replica, sentinel = watched
    client = Sentinel([("127.0.0.1", sentinel.port)], socket_timeout=5)

    def find():
        try:
            return client.discover_master(NAME)
        except redis.RedisError as error:
            raise LookupError from error

    writer = Writer(find)
    writer.needs_confirmation = True
    check_failover(writer, primary, replica, primary.kill, sentinel.log)
