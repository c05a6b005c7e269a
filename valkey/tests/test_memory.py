"""The module runs out of memory: nothing acknowledged is lost, commands that cannot be executed return an error, and the server
survives. KOEL_VALKEY_SECONDS sets the duration of the random load; its counts are printed (`pytest -s`)."""

import os
import random
import time
from collections import Counter, defaultdict

import pytest

from failing import ALWAYS, FailingServer, wrapper
from filters import (
    add_all, all_exist, check_zoo, chunks_of, differences, digest, dump, fixture_named, in_batches, is_refused, items, load,
    make_zoo, states,
)
from servers import wait_until
from test_persistence import field
from test_replication import follow, replication, wait_for_sync
from wire import Refusal

SECONDS = float(os.environ.get("KOEL_VALKEY_SECONDS", "2"))

FAILURES = [
    {"passed": 0}, {"passed": 2}, {"passed": 20}, {"least": 1000}, {"least": 50_000}, {"least": 50_000, "passed": 1},
]
"""The first `passed` allocations with at least `least` bytes succeed, and all others with as many bytes fail."""


@pytest.fixture
def start_failing(binary):
    """Starts servers for this test only, in which allocations can fail."""
    if wrapper() is None:
        pytest.skip("there is no C compiler for failing.c")
    own = []

    def start_one(*options, **keywords):
        own.append(FailingServer(binary, *options, **keywords))
        return own[-1]

    yield start_one
    for server in own:
        server.close()


def saved(call, command, done, status):
    """Returns true if a child process wrote a file, false if the server reports a failure."""
    before = field(call, "stats", "total_forks")
    call(command)
    wait_until(lambda: field(call, "stats", "total_forks") > before)
    wait_until(lambda: field(call, "persistence", done) == 0)
    return f"{status}:ok" in call("INFO", "persistence").decode()


WAYS = {
    "SAVE": ([], lambda call: not is_refused(call, "SAVE")),
    "BGSAVE": ([], lambda call: saved(call, "BGSAVE", "rdb_bgsave_in_progress", "rdb_last_bgsave_status")),
    "BGREWRITEAOF": (
        ["appendonly yes", "appendfsync always", "aof-use-rdb-preamble no"],
        lambda call: saved(call, "BGREWRITEAOF", "aof_rewrite_in_progress", "aof_last_bgrewrite_status"),
    ),
    "BGREWRITEAOF with preamble": (
        ["appendonly yes", "appendfsync always", "aof-use-rdb-preamble yes"],
        lambda call: saved(call, "BGREWRITEAOF", "aof_rewrite_in_progress", "aof_last_bgrewrite_status"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_save_keeps_the_old_file(start_failing, way):
    options, save = WAYS[way]
    server = start_failing(*options)
    with server.connect() as call:
        make_zoo(call)
        assert save(call)
        old = states(call)
    is_log = "appendonly yes" in options
    for n, settings in enumerate(FAILURES):
        with server.connect() as call:
            add_all(call, "plain", items(f"more-{n}-", 100))
            present = states(call)
            with server.failing(**settings) as failing:
                is_saved = save(call)
            failed = failing.failed
            assert not differences(states(call), present)
        server.kill()
        server.start()
        with server.connect() as call:
            found = states(call)
            # A log contains everything since then.
            expected = present if is_saved or is_log else old
            assert not differences(found, expected), f"{failed} allocations failed, reported as saved: {is_saved}"
            old = found


def test_saving_needs_no_memory(start_failing):
    """Saving in any way and computing digests make no allocation at all."""
    server = start_failing("appendonly yes", "aof-use-rdb-preamble no")
    with server.connect() as call:
        make_zoo(call)
        digests = {key: digest(call, key) for key in call("KEYS", "*")}
        with server.failing() as failing:
            assert WAYS["SAVE"][1](call) and WAYS["BGSAVE"][1](call) and WAYS["BGREWRITEAOF"][1](call)
            payloads = {key: call("DUMP", key) for key in digests}
            present = {key: digest(call, key) for key in digests}
        assert failing.failed == 0 and present == digests
        for key, payload in payloads.items():
            assert call("RESTORE", "restored", 0, payload, "REPLACE") == "OK"
            assert digest(call, "restored") == digests[key], key


@pytest.mark.parametrize("command", ["CF.ADD", "CF.ADDNX"])
def test_an_item_that_does_not_create_its_filter(start_failing, command):
    """If any allocation for the first item fails, there is no key afterwards, also at a restart."""
    server, results = start_failing("appendonly yes", "appendfsync always", "aof-use-rdb-preamble no"), []
    with server.connect() as call:
        # The library allocates some memory once.
        call("CF.ADD", "first", "a")
        for passed in range(20):
            with server.failing(passed=passed, failing=1):
                results.append(is_refused(call, command, f"f{passed}", "a"))
            assert call("EXISTS", f"f{passed}") == (not results[-1]), passed
        assert results[0] and not results[-1]
        before = states(call)
    server.kill()
    server.start()
    with server.connect() as call:
        assert not differences(states(call), before)


@pytest.mark.parametrize("passed", [0, 3, 10])
def test_dump_restore_and_copy(start_failing, passed):
    """Each command returns an error or an equal value, never a part of one."""
    server = start_failing()
    with server.connect() as call:
        make_zoo(call)
        for key in call("KEYS", "*"):
            before = digest(call, key)
            with server.failing(passed=passed):
                payload = None if is_refused(call, "DUMP", key) else call("DUMP", key)
                is_copied = not is_refused(call, "COPY", key, "copy") and call("EXISTS", "copy")
            if payload is not None:
                assert call("RESTORE", "restored", 0, payload, "REPLACE") == "OK", key
                assert digest(call, "restored") == before, key
                with server.failing(passed=passed):
                    is_restored = not is_refused(call, "RESTORE", "again", 0, payload)
                assert call("EXISTS", "again") == is_restored
                if is_restored:
                    assert digest(call, "again") == before, key
            if is_copied:
                assert digest(call, "copy") == before, key
            assert call("EXISTS", "copy") == is_copied
            call("DEL", "copy", "restored", "again")
            assert digest(call, key) == before


def is_linked(replica):
    """Returns true if the replica is linked. False also while it does not answer."""
    try:
        with replica.connect() as call:
            return replication(call).get("master_link_status") == "up"
    except (OSError, Refusal):
        return False


@pytest.mark.parametrize("side", ["primary", "replica"])
def test_full_sync(start_failing, side):
    """In the end, a replica has everything, or is not linked."""
    primary, replica = start_failing(tcp=True), start_failing(tcp=True)
    failing_one = primary if side == "primary" else replica
    with primary.connect() as call:
        rest = make_zoo(call)
        expected = states(call)
        with failing_one.failing(passed=3):
            follow(primary, replica)
            wait_until(lambda: failing_one.failed() or is_linked(replica), 30, replica.log)
        wait_until(lambda: is_linked(replica) or replica.process.poll() is not None, 30, replica.log)
        if replica.process.poll() is not None:
            # The replica had no memory to load a filter, and logged it.
            replica.restart()
            follow(primary, replica)
        wait_for_sync(primary, replica)
    with replica.connect() as call_replica:
        assert not differences(states(call_replica), expected)
        call_replica("REPLICAOF", "NO", "ONE")
        check_zoo(call_replica, rest)


@pytest.mark.parametrize("command", ["CF.ADD", "CF.INSERT", "CF.INSERTNX"])
def test_a_replica_without_memory_ends(start_failing, command):
    """With this setting, it ends at the first item that it lacks memory for, also if the primary sent many in one command. Then it
    synchronizes again."""
    primary, replica = start_failing(tcp=True), start_failing("propagation-error-behavior panic-on-replicas", tcp=True)
    follow(primary, replica)
    wait_for_sync(primary, replica)
    members = items("item-", 20_000)
    with primary.connect() as call:
        call("CF.RESERVE", "f", 1000)
        wait_for_sync(primary, replica)
        with replica.failing(least=1000):
            if command == "CF.ADD":
                call.pipeline([("CF.ADD", "f", item) for item in members])
            else:
                call.pipeline([(command, "f", "ITEMS", *batch) for batch in in_batches(members, 100)])
            replica.process.wait(30)
        expected = states(call)
    # CF.INSERTNX replicates only the new items.
    assert f"after processing the command '{command.lower().removesuffix('nx')}" in (replica.folder / "log").read_text(errors="replace")
    replica.restart()
    follow(primary, replica)
    wait_for_sync(primary, replica)
    with replica.connect() as call:
        assert states(call) == expected


class Load:
    """A random load of all commands, which records what was acknowledged."""

    def __init__(self, call, seed):
        self.call, self.choose, self.counts = call, random.Random(seed), Counter()
        self.acknowledged = defaultdict(Counter)
        self.imported = chunks_of(fixture_named("rb_b4_n4000.chunks"))
        self.next = 0

    def new_items(self, count):
        self.next += count
        return items("item-", count, self.next - count)

    def some_items(self, key, count):
        known = list(self.acknowledged[key])[-5000:]
        return self.choose.sample(known, min(count, len(known)))

    def send(self, *command):
        """Returns the reply, or `None` for an error."""
        reply = self.call.pipeline([command])[0]
        self.counts[command[0] + (" refused" if isinstance(reply, Refusal) else "")] += 1
        return None if isinstance(reply, Refusal) else reply

    def turn(self):
        choose, key = self.choose, f"key {self.choose.randrange(6)}"
        name = choose.choices(list(COMMANDS), list(COMMANDS.values()))[0]
        getattr(self, name)(key)

    def add(self, key):
        (item,) = self.new_items(1)
        if self.send("CF.ADD", key, item):
            self.acknowledged[key][item] += 1

    def add_unique(self, key):
        (item,) = self.new_items(1)
        # 0 means that the item is probably present.
        if self.send("CF.ADDNX", key, item):
            self.acknowledged[key][item] += 1

    def insert(self, key):
        self.insert_with("CF.INSERT", key)

    def insert_unique(self, key):
        self.insert_with("CF.INSERTNX", key)

    def insert_with(self, command, key):
        some = self.new_items(self.choose.choice([1, 10, 700, 3000])) + self.some_items(key, 5)
        some += self.some_items(key, 400) * self.choose.choice([0, 0, 3, 12])
        for item, result in zip(some, self.send(command, key, "ITEMS", *some) or []):
            if result == 1:
                self.acknowledged[key][item] += 1

    def remove(self, key):
        for item in self.some_items(key, 50):
            if self.send("CF.DEL", key, item):
                self.acknowledged[key][item] -= 1
                if not self.acknowledged[key][item]:
                    del self.acknowledged[key][item]

    def query(self, key):
        some = self.some_items(key, self.choose.choice([1, 100, 1000]))
        if some:
            results = self.send("CF.MEXISTS", key, *some)
            assert results is None or all(results)
            assert self.send("CF.EXISTS", key, some[0]) == 1
            assert all(self.send("CF.COUNT", key, item) >= self.acknowledged[key][item] for item in some[:10])

    def describe(self, key):
        self.send("CF.INFO", key)
        self.send("CF.SNAPSHOT", key)
        self.send("MEMORY", "USAGE", key)
        self.send("DEBUG", "DIGEST-VALUE", key)

    def compact(self, key):
        self.send("CF.COMPACT", key)

    def reserve(self, key):
        self.send("CF.RESERVE", key, self.choose.choice([4, 1000, 100_000]), "EXPANSION", self.choose.choice([0, 1, 50]))

    def delete(self, key):
        if self.send("DEL", key) is not None:
            self.acknowledged[key].clear()

    def copy(self, key):
        other = f"key {self.choose.randrange(6)}"
        if other != key and self.send("COPY", key, other, "REPLACE"):
            self.acknowledged[other] = Counter(self.acknowledged[key])

    def restore(self, key):
        """Copies a filter by DUMP and RESTORE, or by chunks."""
        other = f"key {self.choose.randrange(6)}"
        payload = self.send("DUMP", key)
        if other == key or payload is None:
            return
        if self.send("RESTORE", other, 0, payload, "REPLACE") == "OK":
            self.acknowledged[other] = Counter(self.acknowledged[key])
            return
        # The server did not delete the old key.
        try:
            chunks = dump(self.call, key)
        except Refusal:
            return
        self.delete(other)
        if chunks and all([self.send("CF.LOADCHUNK", other, *chunk) for chunk in chunks]):
            self.acknowledged[other] = Counter(self.acknowledged[key])
        elif chunks:
            self.send("DEL", other)

    def unite(self, key):
        """Unites two filters. Nothing is removed from a union: of two items that collide, it may have only one."""
        other, union = f"key {self.choose.randrange(6)}", f"union {self.choose.randrange(2)}"
        for source in (key, other):
            if self.send("CF.UNION", union, source):
                self.acknowledged[union] |= self.acknowledged[source]
        if self.choose.random() < 0.3:
            self.delete(union)

    def load_imported(self, key):
        self.delete(key)
        for iterator, chunk in self.imported:
            if not self.send("CF.LOADCHUNK", key, iterator, chunk):
                self.send("DEL", key)
                return
        self.acknowledged[key] = Counter(items("key-", 3800))

    def check(self):
        for key, some in self.acknowledged.items():
            if some:
                all_exist(self.call, key, list(some))


COMMANDS = {
    "add": 30, "add_unique": 10, "insert": 20, "insert_unique": 10, "remove": 10, "query": 10, "describe": 4, "compact": 4,
    "reserve": 3, "delete": 1, "copy": 3, "restore": 3, "load_imported": 1,
    "unite": 4,
}


def test_random_load(start_failing):
    """Allocations of all sizes fail, with a probability that varies from phase to phase."""
    server = start_failing()
    choose, failed, deadline, rounds = random.Random(20), 0, time.monotonic() + SECONDS, 0
    with server.connect() as call:
        work = Load(call, 20)
        while rounds < 3 or time.monotonic() < deadline:
            least = choose.choice([0, 0, 0, 64, 4096, 60_000])
            chance = choose.choice([ALWAYS, ALWAYS // 2, ALWAYS // 10, ALWAYS // 100])
            with server.failing(least=least, chance=chance, random=rounds) as failing:
                for _ in range(100):
                    work.turn()
            failed += failing.failed
            for _ in range(50):
                work.turn()
            work.check()
            rounds += 1
            assert server.process.poll() is None
    total = sum(work.counts.values())
    print(f"\n{server.binary}: {total} commands, {failed} failed allocations, {rounds} rounds, {dict(work.counts)}")
