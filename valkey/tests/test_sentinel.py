"""Sentinel promotes a replica while clients write: what the replica acknowledged is there, and clients find their way."""

import threading
from pathlib import Path

import pytest
import redis
from redis.sentinel import Sentinel

from filters import all_exist, digest
from servers import Binary, Server, found, wait_until

NAME = "koel"


class Watcher(Server):
    """A sentinel, which is the server's program by another name."""

    def __init__(self, binary, primary, folder):
        path = Path(folder) / f"{binary.kind}-sentinel"
        path.symlink_to(binary.path)
        self.primary = primary
        super().__init__(Binary(str(path), binary.kind, binary.version), tcp=True, module=None)

    def configuration(self):
        lines = [f"port {self.port}", f"dir {self.folder}", "logfile log", "bind 127.0.0.1", "protected-mode no"]
        lines += [f"sentinel monitor {NAME} 127.0.0.1 {self.primary.port} 1", f"sentinel down-after-milliseconds {NAME} 3000"]
        return "\n".join([*lines, f"sentinel failover-timeout {NAME} 5000"]) + "\n"


@pytest.fixture
def watched(binary, tmp_path):
    """A primary, its replica, and a sentinel that knows both."""
    if binary is not found()[0] and not binary.is_at_least(valkey=(9, 0)):
        pytest.skip("the oldest and the newest show it")
    primary = Server(binary, tcp=True)
    replica = Server(binary, f"replicaof 127.0.0.1 {primary.port}", tcp=True)
    servers = [primary, replica]
    try:
        wait_until(lambda: is_linked(replica), 30, replica.log)
        servers.append(Watcher(binary, primary, tmp_path))
        with servers[2].connect() as call:
            wait_until(lambda: len(call("SENTINEL", "REPLICAS", NAME)) == 1, 30, servers[2].log)
            wait_until(lambda: b"slave" in call("SENTINEL", "REPLICAS", NAME)[0], 30)
        yield servers
    finally:
        for server in servers:
            server.close()


def is_linked(replica):
    with replica.connect() as call:
        return b"master_link_status:up" in call("INFO", "replication")


def test_failover(watched):
    primary, replica, sentinel = watched
    client = Sentinel([("127.0.0.1", sentinel.port)], socket_timeout=5).master_for(NAME, socket_timeout=5, protocol=2)
    acknowledged, stopping = [], threading.Event()

    def write():
        n = 0
        while not stopping.is_set():
            n += 1
            some = [b"item-%d-%d" % (n, m) for m in range(20)]
            try:
                client.execute_command("CF.INSERT", "f", "ITEMS", *some)
                if client.execute_command("WAIT", 1, 1000) == 1:
                    acknowledged.extend(some)
            except redis.RedisError:
                stopping.wait(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(acknowledged) > 2000, 30)
        primary.kill()
        # The client writes to the promoted one, which soon has a replica again.
        wait_until(lambda: is_role(replica, b"role:master"), 60, sentinel.log)
        primary.start()
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before + 2000, 60, sentinel.log)
    finally:
        stopping.set()
        writer.join(30)
    assert not writer.is_alive()
    wait_until(lambda: is_role(primary, b"role:slave") and is_linked(primary), 60, sentinel.log)
    with replica.connect() as here, primary.connect() as there:
        all_exist(here, "f", acknowledged)
        here("WAIT", 1, 5000)
        assert digest(there, "f") == digest(here, "f")


def is_role(server, role):
    with server.connect() as call:
        return role in call("INFO", "replication")
