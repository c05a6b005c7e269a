"""Clusters on the loopback interface, of servers with the module."""

import redis
from redis.cluster import ClusterNode, RedisCluster

from servers import Server, free_port, wait_until

SLOTS = 16384
OPTIONS = ["cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-node-timeout 2000"]


class Cluster:
    """Primaries that share the slots evenly."""

    def __init__(self, binary, primaries=3, options=()):
        self.binary, self.options, self.nodes = binary, options, []
        for _ in range(primaries):
            self.add()
        bounds = [SLOTS * n // primaries for n in range(primaries + 1)]
        for node, first, end in zip(self.nodes, bounds, bounds[1:]):
            with node.connect() as call:
                call("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
        wait_until(self.is_ready, 60, self.logs)

    def add(self):
        """One more node, which knows the first one."""
        node = Server(self.binary, *self.options, *OPTIONS, f"cluster-port {free_port()}", tcp=True)
        self.nodes.append(node)
        with node.connect() as call:
            node.id = call("CLUSTER", "MYID").decode()
            call("CLUSTER", "SET-CONFIG-EPOCH", len(self.nodes))
            if len(self.nodes) > 1:
                first = self.nodes[0]
                bus = first.options[-1].split()[1]
                call("CLUSTER", "MEET", "127.0.0.1", first.port, bus)
        return node

    def add_replica(self, primary):
        """One more, which follows this one."""
        replica = self.add()
        wait_until(self.is_ready, 60, self.logs)
        with replica.connect() as call:
            call("CLUSTER", "REPLICATE", primary.id)
            wait_until(lambda: b"master_link_status:up" in call("INFO", "replication"), 60, replica.log)
        wait_until(lambda: self.all_know_replica(replica, primary), 60, self.logs)
        return replica

    def living(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def is_ready(self):
        """Every node that lives knows all, and that all slots are served."""
        for node in self.living():
            with node.connect() as call:
                known = call("CLUSTER", "INFO").decode()
                if "cluster_state:ok" not in known or f"cluster_known_nodes:{len(self.nodes)}\r" not in known:
                    return False
        return True

    def logs(self):
        return "\n".join(node.log() for node in self.nodes)

    def client(self):
        nodes = [ClusterNode("127.0.0.1", node.port) for node in self.living()]
        return RedisCluster(startup_nodes=nodes, socket_timeout=20, protocol=2)

    def owner(self, slot):
        """The node that serves it."""
        for node in self.living():
            with node.connect() as call:
                if serves(call("CLUSTER", "NODES").decode(), "myself", slot):
                    return node
        raise LookupError(f"nobody serves {slot}")

    def all_know(self, owner, slot):
        """Whether every node says that this one serves it: a client may ask any of them."""
        for node in self.living():
            with node.connect() as call:
                if not serves(call("CLUSTER", "NODES").decode(), owner.id, slot):
                    return False
        return True

    def all_know_replica(self, replica, primary):
        """Whether every node says that this one follows the other. Until its primary does, it ignores a `CLUSTER FAILOVER`, without a
        word: Redis, and Valkey before 9, tell each other within a second or so."""
        return all(self.says_replica(node, replica, primary) for node in self.living())

    @staticmethod
    def says_replica(node, replica, primary):
        with node.connect() as call:
            lines = [line.split() for line in call("CLUSTER", "NODES").decode().splitlines()]
        return any(line[0] == replica.id and "slave" in line[2] and line[3] == primary.id for line in lines)

    def close(self):
        for node in self.nodes:
            node.close()


def serves(nodes, name, slot):
    """Whether one of the nodes in this list has the slot: that with this id, or `myself`, which said it."""
    lines = [line.split() for line in nodes.splitlines()]
    (its,) = [line for line in lines if name == line[0] or name in line[2].split(",")]
    for part in its[8:]:
        first, _, last = part.partition("-")
        if first.isdigit() and int(first) <= slot <= int(last or first):
            return True
    return False


def slot_of(key):
    return redis.crc.key_slot(key.encode())
