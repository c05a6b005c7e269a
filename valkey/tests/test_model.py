"""Random commands, with restarts, replicas, RESTOREd copies and limits: what was acknowledged is there, and all servers that
should have the same filters do, whatever they were read from.

KOEL_VALKEY_TURNS makes more of it, and KOEL_VALKEY_SEED other ones."""

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
    """While a limit binds: the copy by RESTORE, by COPY, by chunks, and the original after restarts of each kind."""
    server = start("appendonly yes", "appendfsync always")
    some = items("item-", 45_000)
    limits = {"a": 20_000, "b": 31_000, "c": 33_000, "mixed": 35_000}
    with server.connect() as call:
        load(call, "mixed", chunks_of(fixture_named("rb_b4_n4000.chunks")))
        for key, limit in limits.items():
            call("CONFIG", "SET", "koel.max-bytes", limit)
            answers = insert(call, key, some[:30_000])
            # So that tables are joined, and leave gaps.
            added = [item for item, answer in zip(some, answers) if answer == 1]
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
        batch = some[25_000 + 5000 * n :][:5000]
        with server.connect() as call:
            for key, limit in limits.items():
                call("CONFIG", "SET", "koel.max-bytes", limit + 1000 * n)
                answers = insert(call, key, batch)
                seen[key] |= set(answers)
                for way in ("chunks", "COPY", "RESTORE"):
                    other = f"{key} by {way}"
                    accepted = insert(call, other, batch)
                    is_same = accepted == answers
                    assert is_same, f"{other}: {accepted.count(1)} accepted where {answers.count(1)} were"
                    assert digest(call, other) == digest(call, key), difference(state(call, other), state(call, key))
    assert all(-1 in answers for answers in seen.values()) and any(1 in answers for answers in seen.values()), seen


def test_replicas_and_files_have_no_limit(start):
    """What a primary has accepted is accepted by its replica and by the server that reads its append-only file, of which the
    limits are lower; and a client has no limit of its own that either of them would obey."""
    primary = start("appendonly yes", "appendfsync always", tcp=True)
    replica = start("koel.max-bytes 1kb", "koel.expansion 0", tcp=True)
    follow(primary, replica)
    wait_for_sync(primary, replica)
    some = items("x", 20_000)
    with primary.connect() as call:
        reply = call.pipeline([("CF.INSERT", "a", "MAXBYTES", 7000, "ITEMS", *some)])[0]
        acknowledged = [item for item, answer in zip(some, reply) if answer == 1] if isinstance(reply, list) else []
        call.pipeline([("CF.RESERVE", "b", 1000, "MAXBYTES", 7000)])
        call("CF.RESERVE", "fixed", 1000, "EXPANSION", 0)
        insert(call, "b", some)
        insert(call, "fixed", some[:2000])
        expected = {key: digest(call, key) for key in call("KEYS", "*")}
    wait_for_sync(primary, replica)
    with replica.connect() as call:
        all_exist(call, "a", acknowledged)
        all_exist(call, "b", some)
        assert {key: digest(call, key) for key in call("KEYS", "*")} == expected
    assert "CRITICAL" not in replica.log()
    primary.restart("koel.max-bytes 1kb", "koel.expansion 0")
    with primary.connect() as call:
        all_exist(call, "a", acknowledged)
        all_exist(call, "b", some)
        assert {key: digest(call, key) for key in call("KEYS", "*")} == expected


def test_what_is_replicated(start):
    """A command of which everything took effect goes as it is; otherwise the items that were inserted, and of new filters all
    numbers."""
    server = start("appendonly yes", "appendfsync always", "aof-use-rdb-preamble no")
    with server.connect() as call:
        call("CF.RESERVE", "fixed", 4, "EXPANSION", 0)
        same(call("CF.INSERT", "fixed", "ITEMS", "a", "b"), [1, 1])
        same(call("CF.INSERTNX", "fixed", "ITEMS", "a", "c", "d", "e"), [0, 1, 1, -1])
        same(call("CF.ADDNX", "fixed", "a"), 0)
        call("CF.ADD", "new", "a")
        same(call("CF.INSERT", "new", "ITEMS", *["a"] * 8, "b"), [1] * 9)
        # A full filter takes copies of what it has.
        same(call("CF.INSERT", "fixed", "ITEMS", "e", "a", "f", "a"), [-1, 1, -1, 1])
    path = next((server.folder / "appendonlydir").glob("*.incr.aof"))
    lines = [line for line in path.read_bytes().split(b"\r\n") if line[:1] not in (b"$", b"*", b"#")]
    words = b" ".join(lines).decode().split("CF.")[1:]
    # Several commands of one are a transaction.
    assert [re.sub(" *(SELECT 0|MULTI|EXEC)", "", word).strip() for word in words] == [
        "RESERVE fixed 4 EXPANSION 0 ERROR 1e-2 SEED 0", "INSERT fixed ITEMS a b", "INSERT fixed NOCREATE ITEMS c d",
        "RESERVE new 1024 EXPANSION 1 ERROR 1e-2 SEED 0", "ADD new a", "INSERT new ITEMS a a a a a a a a b",
        "INSERT fixed NOCREATE ITEMS a a",
    ]


class Model:
    """A primary with an append-only file; its replica, with other settings; a twin, which executes the same commands on filters
    that were read from the primary's values; and what was acknowledged."""

    def __init__(self, start, seed):
        self.choose = random.Random(seed)
        low = "koel.max-bytes 1kb"  # Nothing is weighed while a file is loaded.
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
        """The reply of both, `None` for an error."""
        first, second = (call.pipeline([command])[0] for call in (self.to_primary, self.to_twin))
        # Compared outside the assertion, of which pytest would explain long lists at length.
        is_same = timeless(first) == timeless(second)
        assert is_same, f"{command[:3]}: {str(first)[:200]}, its twin {str(second)[:200]}"
        self.commands[command[0]] += 1
        return None if isinstance(first, Refusal) else first

    def new_items(self, count):
        self.next += count
        return items("item-", count, self.next - count)

    def known_items(self, key, count):
        known = list(self.acknowledged[key])[-3000:]
        return self.choose.sample(known, min(count, len(known)))

    def acknowledge(self, key, some, answers):
        for item, answer in zip(some, answers or []):
            if answer == 1:
                self.acknowledged[key][item] += 1

    def turn(self):
        name = self.choose.choices(list(TURN), list(TURN.values()))[0]
        getattr(self, name)(f"key {self.choose.randrange(KEYS)}")

    def insert(self, key):
        some = self.new_items(self.choose.choice([1, 20, 3000, 12_000])) + self.known_items(key, 10)
        some += some[:1] * self.choose.choice([0, 0, 9, 2000]) + some[:50] * self.choose.choice([0, 0, 12, 60])
        if self.choose.random() < 0.2:
            some += self.known_items(key, 3000) * self.choose.choice([1, 5])
            self.choose.shuffle(some)
        if self.choose.random() < 0.4:
            self.change_limit(key)
        command = self.choose.choice(["CF.INSERT", "CF.INSERTNX"])
        options = self.choose.choice([[], [], ["NOCREATE"], ["CAPACITY", 3000], ["ERROR", "0.0007"]])
        self.acknowledge(key, some, self.send(command, key, *options, "ITEMS", *some))

    def add(self, key):
        for item in self.new_items(20) + self.known_items(key, 3) * self.choose.choice([1, 1, 20]):
            self.acknowledge(key, [item], [self.send(self.choose.choice(["CF.ADD", "CF.ADDNX"]), key, item)])

    def remove(self, key):
        for item in self.known_items(key, self.choose.choice([1, 10, 100])):
            # One of its copies, half of them, or all.
            copies = self.acknowledged[key][item]
            for _ in range(min(self.choose.choice([1, 1, (copies + 1) // 2, copies]), 200)):
                assert self.send("CF.DEL", key, item) == 1
                self.acknowledged[key][item] -= 1
            if not self.acknowledged[key][item]:
                del self.acknowledged[key][item]

    def ask(self, key):
        some = self.known_items(key, 500)
        if some:
            assert all(self.send("CF.MEXISTS", key, *some, *self.new_items(2000))[: len(some)])
            for item in [*some[:20], max(self.acknowledged[key], key=self.acknowledged[key].get)]:
                assert self.send("CF.COUNT", key, item) >= self.acknowledged[key][item]

    def compact(self, key):
        self.send("CF.COMPACT", key)

    def change_limit(self, key):
        """Mostly to one that binds soon."""
        found = self.to_primary("MEMORY", "USAGE", key) or 1 << 16
        self.set_limit(self.choose.choice([1 << 30] + [max(1024, int(found * self.choose.uniform(0.95, 1.15)))] * 4))

    def transact(self, key):
        some = self.new_items(2)
        for call in (self.to_primary, self.to_twin):
            call("MULTI")
        self.send("CF.ADD", key, some[0])
        self.send("CF.INSERT", key, "ITEMS", some[1], some[1])
        reply = self.send("EXEC")
        if not isinstance(reply[0], Refusal):
            self.acknowledge(key, some[:1], [reply[0]])
        if not isinstance(reply[1], Refusal):
            self.acknowledge(key, [some[1]] * 2, reply[1])

    def reserve(self, key):
        self.delete(key)
        choose = self.choose.choice
        options = ["EXPANSION", choose([0, 1, 1, 40]), "ERROR", choose(["0.01", "0.0001", "0.2"]), "SEED", choose([0, 5])]
        self.send("CF.RESERVE", key, choose([4, 700, 5000, 60_000]), *options)

    def delete(self, key):
        self.send("DEL", key)
        self.acknowledged[key].clear()

    def load(self, key):
        """RedisBloom's chunks; or those of another key, and sometimes only the first of them."""
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
        """Items are removed from neither afterwards: of two that were taken for one another, the union may have one."""
        union = f"union {self.choose.randrange(2)}"
        sources = [key, f"key {self.choose.randrange(KEYS)}"]
        if self.choose.random() < 0.3:
            self.delete(union)
        if self.send("CF.UNION", union, *sources):
            for source in sources:
                self.acknowledged[union] |= self.acknowledged[source]

    # What happens now and then.

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
        """A new replica."""
        self.replica.restart()
        follow(self.primary, self.replica)

    def event(self):
        name = self.choose.choice(EVENTS)
        getattr(self, name)()
        self.connect()
        self.commands[name] += 1
        expected = states(self.to_primary)
        # As lists of words, since pytest would explain the dumps at length.
        assert not differences(states(self.to_twin), expected), f"the twin, after {name}"
        wait_until(lambda: self.replica.process.poll() is None)
        wait_for_sync(self.primary, self.replica)
        with self.replica.connect() as call:
            assert not differences(states(call), expected), f"the replica, after {name}"
        assert "CRITICAL" not in self.replica.log() and "CRITICAL" not in self.primary.log()
        for key, some in self.acknowledged.items():
            if some:
                all_exist(self.to_primary, key, list(some))
                is_union = key.startswith("union")
                assert is_union or info(self.to_primary, key)["Number of items inserted"] >= sum(some.values())


def timeless(reply):
    """As text, without how long it is ago that something came."""
    return re.sub(r"ones \d+ s ago", "", repr(reply))


TURN = {
    "insert": 30, "add": 10, "remove": 12, "ask": 10, "compact": 4, "change_limit": 3, "transact": 4, "reserve": 4, "delete": 1,
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
