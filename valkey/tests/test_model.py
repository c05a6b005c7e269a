"""Random commands, with restarts, replicas, RESTOREd copies and limits. Everything acknowledged is present, and servers that
should have the same filters do, no matter where these were read from.

KOEL_VALKEY_TURNS sets the number of turns, and KOEL_VALKEY_SEED the seed."""

import os
import random
import re
from collections import Counter, defaultdict

from filters import all_exist, chunks_of, difference, differences, digest, dump, fixture_named, info, insert, items, load, state, states
from servers import wait_until
from test_persistence import rewrite
from test_replication import OTHER_SETTINGS, follow, wait_for_sync
from wire import Refusal, same

TURNS = int(os.environ.get("KOEL_VALKEY_TURNS", "120"))
SEED = int(os.environ.get("KOEL_VALKEY_SEED", "2"))
TURNS_TO_EVENT = 20
KEYS = 5


def test_a_copy_accepts_what_its_original_accepts(start):
    """At a binding limit, the original after any kind of restart accepts the same items as its copies by RESTORE, by COPY and
    by chunks."""
    server = start("appendonly yes", "appendfsync always")
    candidates = items("item-", 45_000)
    limits = {"a": 20_000, "b": 31_000, "c": 33_000, "mixed": 35_000}
    with server.connect() as call:
        load(call, "mixed", chunks_of(fixture_named("rb_b4_n4000.chunks")))
        for key, limit in limits.items():
            call("CONFIG", "SET", "koel.max-bytes", limit)
            results = insert(call, key, candidates[:30_000])
            # Removals make tables merge and leave gaps.
            added = [item for item, result in zip(candidates, results) if result == 1]
            call.pipeline([("CF.DEL", key, item) for item in added[:8000]])
            insert(call, key, items("other-", 3000))
            call("CONFIG", "SET", "koel.max-bytes", "1gb")
            load(call, f"{key} by chunks", dump(call, key), "DELETED", info(call, key)["Number of items deleted"])
            call("COPY", key, f"{key} by COPY")
            call("RESTORE", f"{key} by RESTORE", 0, call("DUMP", key))
    seen = defaultdict(set)
    for n, restart in enumerate((rewrite, lambda call: call("DEBUG", "RELOAD"), lambda _: None), 1):
        with server.connect() as call:
            restart(call)
        server.restart()
        batch = candidates[25_000 + 5000 * n :][:5000]
        with server.connect() as call:
            for key, limit in limits.items():
                call("CONFIG", "SET", "koel.max-bytes", limit + 1000 * n)
                results = insert(call, key, batch)
                seen[key] |= set(results)
                for way in ("chunks", "COPY", "RESTORE"):
                    other = f"{key} by {way}"
                    accepted = insert(call, other, batch)
                    is_same = accepted == results
                    assert is_same, f"{other}: {accepted.count(1)} accepted where {results.count(1)} were"
                    assert digest(call, other) == digest(call, key), difference(state(call, other), state(call, key))
    assert all(-1 in results for results in seen.values()) and any(1 in results for results in seen.values()), seen


def test_replicas_and_files_have_no_limit(start):
    """A replica, and a server that reads the append-only file, accept everything that the primary accepted, although their
    limits are lower. Clients cannot set a limit that either of them would apply."""
    primary = start("appendonly yes", "appendfsync always", tcp=True)
    replica = start("koel.max-bytes 1kb", "koel.expansion 0", tcp=True)
    follow(primary, replica)
    wait_for_sync(primary, replica)
    candidates = items("x", 20_000)
    with primary.connect() as call:
        reply = call.pipeline([("CF.INSERT", "a", "MAXBYTES", 7000, "ITEMS", *candidates)])[0]
        acknowledged = [item for item, result in zip(candidates, reply) if result == 1] if isinstance(reply, list) else []
        call.pipeline([("CF.RESERVE", "b", 1000, "MAXBYTES", 7000)])
        call("CF.RESERVE", "fixed", 1000, "EXPANSION", 0)
        insert(call, "b", candidates)
        insert(call, "fixed", candidates[:2000])
        expected = {key: digest(call, key) for key in call("KEYS", "*")}
    wait_for_sync(primary, replica)
    with replica.connect() as call:
        all_exist(call, "a", acknowledged)
        all_exist(call, "b", candidates)
        assert {key: digest(call, key) for key in call("KEYS", "*")} == expected
    assert "CRITICAL" not in replica.log()
    primary.restart("koel.max-bytes 1kb", "koel.expansion 0")
    with primary.connect() as call:
        all_exist(call, "a", acknowledged)
        all_exist(call, "b", candidates)
        assert {key: digest(call, key) for key in call("KEYS", "*")} == expected


def test_only_effects_are_replicated(start):
    """A command is replicated unchanged if all of it took effect. Otherwise the inserted items are, and all parameters of new
    filters."""
    server = start("appendonly yes", "appendfsync always", "aof-use-rdb-preamble no")
    with server.connect() as call:
        call("CF.RESERVE", "fixed", 4, "EXPANSION", 0)
        same(call("CF.INSERT", "fixed", "ITEMS", "a", "b"), [1, 1])
        same(call("CF.INSERTNX", "fixed", "ITEMS", "a", "c", "d", "e"), [0, 1, 1, -1])
        same(call("CF.ADDNX", "fixed", "a"), 0)
        call("CF.ADD", "new", "a")
        same(call("CF.INSERT", "new", "ITEMS", *["a"] * 8, "b"), [1] * 9)
        # A full filter accepts copies of its items.
        same(call("CF.INSERT", "fixed", "ITEMS", "e", "a", "f", "a"), [-1, 1, -1, 1])
    path = next((server.folder / "appendonlydir").glob("*.incr.aof"))
    lines = [line for line in path.read_bytes().split(b"\r\n") if line[:1] not in (b"$", b"*", b"#")]
    words = b" ".join(lines).decode().split("CF.")[1:]
    # Several replicated commands of one command form a transaction.
    assert [re.sub(" *(SELECT 0|MULTI|EXEC)", "", word).strip() for word in words] == [
        "RESERVE fixed 4 EXPANSION 0 ERROR 1e-2 SEED 0", "INSERT fixed ITEMS a b", "INSERT fixed NOCREATE ITEMS c d",
        "RESERVE new 1024 EXPANSION 1 ERROR 1e-2 SEED 0", "ADD new a", "INSERT new ITEMS a a a a a a a a b",
        "INSERT fixed NOCREATE ITEMS a a",
    ]


class Model:
    """A primary with an append-only file; its replica, with other settings; a twin, which executes the same commands on filters
    read from the primary's values; and the acknowledged items."""

    def __init__(self, start, seed):
        self.choose = random.Random(seed)
        low = "koel.max-bytes 1kb"  # Limits do not apply while a file is loaded.
        self.primary = start("appendonly yes", "appendfsync always", low, tcp=True)
        self.twin = start(low)
        self.replica = start(*OTHER_SETTINGS, tcp=True)
        self.acknowledged, self.commands = defaultdict(Counter), Counter()
        self.next, self.limit = 0, "1gb"
        self.imported = chunks_of(fixture_named("rb_b4_n4000.chunks"))
        follow(self.primary, self.replica)
        self.connect()

    def connect(self):
        self.to_primary, self.to_twin = self.primary.connect(), self.twin.connect()
        self.set_limit(self.limit)

    def set_limit(self, limit):
        self.limit = limit
        for call in (self.to_primary, self.to_twin):
            call("CONFIG", "SET", "koel.max-bytes", limit)

    def send(self, *command):
        """Returns the reply of both, or `None` for an error."""
        first, second = (call.pipeline([command])[0] for call in (self.to_primary, self.to_twin))
        # Compared outside the assertion, because pytest would explain long lists in detail.
        is_same = without_times(first) == without_times(second)
        assert is_same, f"{command[:3]}: {str(first)[:200]}, its twin {str(second)[:200]}"
        self.commands[command[0]] += 1
        return None if isinstance(first, Refusal) else first

    def new_items(self, count):
        self.next += count
        return items("item-", count, self.next - count)

    def known_items(self, key, count):
        known = list(self.acknowledged[key])[-3000:]
        return self.choose.sample(known, min(count, len(known)))

    def acknowledge(self, key, members, results):
        for item, result in zip(members, results or []):
            if result == 1:
                self.acknowledged[key][item] += 1

    def turn(self):
        name = self.choose.choices(list(TURN), list(TURN.values()))[0]
        getattr(self, name)(f"key {self.choose.randrange(KEYS)}")

    def insert(self, key):
        members = self.new_items(self.choose.choice([1, 20, 3000, 12_000])) + self.known_items(key, 10)
        members += members[:1] * self.choose.choice([0, 0, 9, 2000]) + members[:50] * self.choose.choice([0, 0, 12, 60])
        if self.choose.random() < 0.2:
            members += self.known_items(key, 3000) * self.choose.choice([1, 5])
            self.choose.shuffle(members)
        if self.choose.random() < 0.4:
            self.change_limit(key)
        command = self.choose.choice(["CF.INSERT", "CF.INSERTNX"])
        options = self.choose.choice([[], [], ["NOCREATE"], ["CAPACITY", 3000], ["ERROR", "0.0007"]])
        self.acknowledge(key, members, self.send(command, key, *options, "ITEMS", *members))

    def add(self, key):
        for item in self.new_items(20) + self.known_items(key, 3) * self.choose.choice([1, 1, 20]):
            self.acknowledge(key, [item], [self.send(self.choose.choice(["CF.ADD", "CF.ADDNX"]), key, item)])

    def remove(self, key):
        for item in self.known_items(key, self.choose.choice([1, 10, 100])):
            # Removes one copy, half of them, or all.
            copies = self.acknowledged[key][item]
            for _ in range(min(self.choose.choice([1, 1, (copies + 1) // 2, copies]), 200)):
                assert self.send("CF.DEL", key, item) == 1
                self.acknowledged[key][item] -= 1
            if not self.acknowledged[key][item]:
                del self.acknowledged[key][item]

    def query(self, key):
        members = self.known_items(key, 500)
        if members:
            assert all(self.send("CF.MEXISTS", key, *members, *self.new_items(2000))[: len(members)])
            for item in [*members[:20], max(self.acknowledged[key], key=self.acknowledged[key].get)]:
                assert self.send("CF.COUNT", key, item) >= self.acknowledged[key][item]

    def compact(self, key):
        self.send("CF.COMPACT", key)

    def change_limit(self, key):
        """Sets a limit, usually one that soon binds."""
        found = self.to_primary("MEMORY", "USAGE", key) or 1 << 16
        self.set_limit(self.choose.choice([1 << 30] + [max(1024, int(found * self.choose.uniform(0.95, 1.15)))] * 4))

    def transact(self, key):
        members = self.new_items(2)
        for call in (self.to_primary, self.to_twin):
            call("MULTI")
        self.send("CF.ADD", key, members[0])
        self.send("CF.INSERT", key, "ITEMS", members[1], members[1])
        reply = self.send("EXEC")
        if not isinstance(reply[0], Refusal):
            self.acknowledge(key, members[:1], [reply[0]])
        if not isinstance(reply[1], Refusal):
            self.acknowledge(key, [members[1]] * 2, reply[1])

    def reserve(self, key):
        self.delete(key)
        choose = self.choose.choice
        options = ["EXPANSION", choose([0, 1, 1, 40]), "ERROR", choose(["0.01", "0.0001", "0.2"]), "SEED", choose([0, 5])]
        self.send("CF.RESERVE", key, choose([4, 700, 5000, 60_000]), *options)

    def delete(self, key):
        self.send("DEL", key)
        self.acknowledged[key].clear()

    def load(self, key):
        """Loads RedisBloom's chunks or those of another key, sometimes without the last one."""
        self.delete(key)
        other = f"key {self.choose.randrange(KEYS)}"
        chunks, known = self.imported, Counter(items("key-", 3800))
        if other != key and self.choose.random() < 0.5:
            if not self.to_primary("EXISTS", other) or isinstance(self.to_primary.pipeline([("CF.INFO", other)])[0], Refusal):
                return
            chunks, known = dump(self.to_primary, other), Counter(self.acknowledged[other])
        if self.choose.random() < 0.2:
            chunks = chunks[:-1]
        elif all([self.send("CF.LOADCHUNK", key, *chunk) for chunk in chunks]) and chunks:
            self.acknowledged[key] = known
            return
        for chunk in chunks:
            self.send("CF.LOADCHUNK", key, *chunk)

    def copy(self, key):
        other = f"key {self.choose.randrange(KEYS)}"
        if other != key and self.send("COPY", key, other, "REPLACE"):
            self.acknowledged[other] = Counter(self.acknowledged[key])

    def unite(self, key):
        """Unites two filters. Nothing is removed from a union: of two items that collide, it may have only one."""
        union = f"union {self.choose.randrange(2)}"
        sources = [key, f"key {self.choose.randrange(KEYS)}"]
        if self.choose.random() < 0.3:
            self.delete(union)
        if self.send("CF.UNION", union, *sources):
            for source in sources:
                self.acknowledged[union] |= self.acknowledged[source]

    # Occasional events.

    def restart(self):
        self.primary.restart()

    def kill(self):
        self.primary.kill()
        self.primary.start()

    def rewrite(self):
        rewrite(self.to_primary)
        self.primary.restart()

    def reload(self):
        same(self.to_primary("DEBUG", "RELOAD"), "OK")

    def restore(self):
        self.to_twin("FLUSHALL")
        for key in self.to_primary("KEYS", "*"):
            same(self.to_twin("RESTORE", key, 0, self.to_primary("DUMP", key)), "OK")

    def sync(self):
        """Restarts the replica, for a full sync."""
        self.replica.restart()
        follow(self.primary, self.replica)

    def event(self):
        name = self.choose.choice(EVENTS)
        getattr(self, name)()
        self.connect()
        self.commands[name] += 1
        expected = states(self.to_primary)
        # As lists of short texts, because pytest would explain the dumps in detail.
        assert not differences(states(self.to_twin), expected), f"the twin, after {name}"
        wait_until(lambda: self.replica.process.poll() is None)
        wait_for_sync(self.primary, self.replica)
        with self.replica.connect() as call:
            assert not differences(states(call), expected), f"the replica, after {name}"
        assert "CRITICAL" not in self.replica.log() and "CRITICAL" not in self.primary.log()
        for key, members in self.acknowledged.items():
            if members:
                all_exist(self.to_primary, key, list(members))
                is_union = key.startswith("union")
                assert is_union or info(self.to_primary, key)["Number of items inserted"] >= sum(members.values())


def without_times(reply):
    """Returns a reply as text, without the time since the last chunk."""
    return re.sub(r"ones \d+ s ago", "", repr(reply))


TURN = {
    "insert": 30, "add": 10, "remove": 12, "query": 10, "compact": 4, "change_limit": 3, "transact": 4, "reserve": 4, "delete": 1,
    "load": 5, "copy": 4, "unite": 6,
}
EVENTS = ["restart", "kill", "rewrite", "reload", "restore", "restore", "sync"]


def test_random_commands(start):
    model = Model(start, SEED)
    for turn in range(1, TURNS + 1):
        model.turn()
        if turn % TURNS_TO_EVENT == 0:
            model.event()
    print(f"\n{model.primary.binary}: {sum(model.commands.values())} commands and events, {dict(model.commands)}")
