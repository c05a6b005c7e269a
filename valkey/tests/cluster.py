"""Clusters of servers with the module, on the loopback interface."""

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
        """Adds a node that knows the first one."""
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
        """Adds a replica of this primary."""
        replica = self.add()
        wait_until(self.is_ready, 60, self.logs)
        with replica.connect() as call:
            call("CLUSTER", "REPLICATE", primary.id)
            wait_until(lambda: b"master_link_status:up" in call("INFO", "replication"), 60, replica.log)
        wait_until(lambda: self.all_know_replica(replica, primary), 60, self.logs)
        return replica

    def running(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def is_ready(self):
        """Returns true if every running node knows all nodes and sees all slots served."""
        for node in self.running():
            with node.connect() as call:
                known = call("CLUSTER", "INFO").decode()
                if "cluster_state:ok" not in known or f"cluster_known_nodes:{len(self.nodes)}\r" not in known:
                    return False
        return True

    def logs(self):
        return "\n".join(node.log() for node in self.nodes)

    def client(self):
        nodes = [ClusterNode("127.0.0.1", node.port) for node in self.running()]
        return RedisCluster(startup_nodes=nodes, socket_timeout=20, protocol=2)

    def owner(self, slot):
        """Returns the node that serves the slot."""
        for node in self.running():
            with node.connect() as call:
                if serves(call("CLUSTER", "NODES").decode(), "myself", slot):
                    return node
        raise LookupError(f"no node serves slot {slot}")

    def all_know(self, owner, slot):
        """Returns whether every node knows that this one serves the slot. A client may ask any of them."""
        for node in self.running():
            with node.connect() as call:
                if not serves(call("CLUSTER", "NODES").decode(), owner.id, slot):
                    return False
        return True

    def all_know_replica(self, replica, primary):
        """Returns whether every node knows that `replica` follows `primary`. Until the primary knows, it silently ignores
        `CLUSTER FAILOVER`: Redis, and Valkey before 9, spread this within about a second."""
        return all(self.says_replica(node, replica, primary) for node in self.running())

    @staticmethod
    def says_replica(node, replica, primary):
        with node.connect() as call:
            lines = [line.split() for line in call("CLUSTER", "NODES").decode().splitlines()]
        return any(line[0] == replica.id and "slave" in line[2] and line[3] == primary.id for line in lines)

    def close(self):
        for node in self.nodes:
            node.close()


def serves(nodes, name, slot):
    """Returns whether a node of this list serves the slot. `name` is the node's id, or `myself` for the node that returned the
    list."""
    lines = [line.split() for line in nodes.splitlines()]
    (fields,) = [line for line in lines if name == line[0] or name in line[2].split(",")]
    for part in fields[8:]:
        first, _, last = part.partition("-")
        if first.isdigit() and int(first) <= slot <= int(last or first):
            return True
    return False


def slot_of(key):
    return redis.crc.key_slot(key.encode())
