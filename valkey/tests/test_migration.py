"""valkey/migrate.py: filters move while clients write, and no acknowledged item is lost. The source has RedisBloom, or koel."""

import importlib.util
import io
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from unittest.mock import Mock

import pytest
import redis

import redisbloom
from cluster import Cluster
from filters import add_all, all_exist, chunks_of, exist, fixture_named, info, insert, items, load
from proxy import Proxy
from servers import ROOT, Server, found, free_port, wait_until
from test_imports import remaining
from wire import encode
from workers import Worker

SCRIPT = ROOT / "valkey/migrate.py"
NAMES = ["rb_grown_e2.chunks", "rb_deleted.chunks", "rb_b4_n4000.chunks"]
OPTIONS = ["repl-backlog-size 64mb"]

specification = importlib.util.spec_from_file_location("migrate", SCRIPT)
migrate = importlib.util.module_from_spec(specification)
specification.loader.exec_module(migrate)


class Run:
    """A running script."""

    def __init__(self, source, target, *options):
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT, url(source), url(target), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.stderr_lines, self.stdout_lines = [], []
        pairs = ((self.process.stderr, self.stderr_lines), (self.process.stdout, self.stdout_lines))
        self.readers = [threading.Thread(target=lambda stream, lines: lines.extend(stream), args=pair) for pair in pairs]
        for reader in self.readers:
            reader.start()

    def wait_for(self, words):
        wait_until(lambda: self.has_line(words) or self.process.poll() is not None, 60, self.text)
        assert self.has_line(words), self.text()

    def has_line(self, words):
        return any(words in line for line in self.stderr_lines)

    def text(self):
        return "".join(self.stderr_lines + self.stdout_lines)

    def end(self, code=0):
        assert self.process.wait(60) == code, self.text()
        for reader in self.readers:
            reader.join(10)
        return self.text()

    def end_after(self, source, code=0):
        """Ends the script when it has replayed all that the source has written until now."""
        with source.connect() as call:
            offset = offsets(call)[0]
            wait_until(lambda: max(offsets(call)[1:], default=0) >= offset or self.process.poll() is not None, 60, self.text)
        output = self.interrupt()
        assert self.process.returncode == code, output
        return output

    def interrupt(self, how=signal.SIGINT):
        self.process.send_signal(how)
        self.process.wait(60)
        return self.end(self.process.returncode)


def offsets(call):
    """Returns the replication offset of a server, and those that its replicas have acknowledged."""
    text = call("INFO", "replication").decode()
    patterns = (r"\nmaster_repl_offset:(\d+)", r"\nslave\d+:.*offset=(\d+)")
    return [int(offset) for pattern in patterns for offset in re.findall(pattern, text)]


def url(server):
    if isinstance(server, (str, Proxy)):
        return getattr(server, "url", server)
    return f"redis://127.0.0.1:{server.port}" if server.port else f"unix://{server.address}"


class Writer(Worker):
    """A thread that adds new items and copies, and removes some. `present` has the number of copies of each item that must be
    present; `added` the number of all in each key."""

    def __init__(self, server, prefix="w"):
        super().__init__()
        self.server, self.prefix, self.random, self.present, self.added = server, prefix, random.Random(5), {}, {}

    def connect(self):
        return self.server.connect()

    def turn(self, call):
        n = self.turns
        key = self.random.choice([*NAMES, "own", "later", "mixed"])
        batch = [f"{self.prefix}-{n}-{m}" for m in range(10)]
        # The capacity is for RedisBloom, whose filters grow at most 32 times.
        assert call("CF.INSERT", key, "CAPACITY", 20_000, "ITEMS", *batch) == [1] * 10
        for item in batch:
            self.present[key, item] = 1
        assert call("CF.ADD", key, batch[0]) == 1 and call("CF.ADD", key, batch[1]) == 1
        self.present[key, batch[0]] = self.present[key, batch[1]] = 2
        call("CF.ADDNX", key, batch[2])
        for item in batch[1:4]:
            assert call("CF.DEL", key, item) == 1
            self.present[key, item] -= 1
        self.added[key] = self.added.get(key, 0) + 9


def is_koel(call):
    return bool(call("CONFIG", "GET", "koel.seed"))


def fill(call):
    seed = ("SEED", 7) if is_koel(call) else ()
    if seed:
        # The rates are so low that no items of this test collide.
        call("CONFIG", "SET", "koel.error-rate", "0.0000001")
    for name in NAMES:
        load(call, name, chunks_of(fixture_named(name)))
    load(call, "mixed", chunks_of(fixture_named("rb_b1_n3000.chunks")))
    add_all(call, "mixed", items("early-", 3000))
    call("CF.RESERVE", "own", 1000, "EXPANSION", 2, *seed)
    add_all(call, "own", items("early-", 3000))
    call("CF.RESERVE", "empty", 1000, *seed)
    call("CF.RESERVE", "fixed", 100, "EXPANSION", 0)
    call("CF.ADD", "fixed", "a")
    call("CF.ADD", "expires", "a")
    call("PEXPIRE", "expires", 3_600_000)
    call("SET", "text", "no filter")
    call("CF.RESERVE", "large", 3_000_000)
    add_all(call, "large", items("large-", 3000))


def check(call, call_source, *writers):
    """Checks that the target has all items of the source, and those of writers to the target, each once."""
    present = {at: copies for writer in writers for at, copies in writer.present.items()}
    for name in NAMES:
        all_exist(call, name, remaining(fixture_named(name)))
    all_exist(call, "mixed", remaining(fixture_named("rb_b1_n3000.chunks")) + items("early-", 3000))
    all_exist(call, "own", items("early-", 3000))
    all_exist(call, "large", items("large-", 3000))
    for key in {key for key, _ in present}:
        all_exist(call, key, [item for (name, item), copies in present.items() if name == key and copies])
        # Each write was replayed once.
        added = sum(writer.added.get(key, 0) for writer in writers[1:])
        assert numbers_of_items(call, key) == numbers_of_items(call_source, key) + added, key
    assert info(call, "fixed")["Expansion rate"] == 0
    assert 0 < call("PTTL", "expires") <= 3_600_000 and call("EXISTS", "text") == 0
    if is_koel(call_source):
        own = [(at, copies) for at, copies in present.items() if at[0] in ("own", "later")]
        assert call.pipeline([("CF.COUNT", *at) for at, _ in own]) == [copies for _, copies in own]
        # A filter that nobody wrote to has the same bytes.
        assert info(call, "empty")["Seed"] == 7 and call("CF.SNAPSHOT", "empty") == call_source("CF.SNAPSHOT", "empty")


def numbers_of_items(call, key):
    return info(call, key)["Number of items inserted"]


@pytest.fixture(params=["RedisBloom", "koel"])
def source(request, binary):
    if request.param == "RedisBloom":
        request.getfixturevalue("has_redisbloom")
        server = redisbloom.start(*OPTIONS)
    else:
        skip_all_but_the_oldest_and_the_newest(binary)
        server = Server(found()[0], *OPTIONS)
    with server.connect() as call:
        fill(call)
    yield server
    server.close()


@pytest.fixture
def old(start_redisbloom):
    """A source with RedisBloom."""
    server = start_redisbloom(*OPTIONS)
    with server.connect() as call:
        fill(call)
    return server


@pytest.fixture
def proxy():
    proxies = []

    def start(server, alter):
        proxies.append(Proxy(server, alter))
        return proxies[-1]

    yield start
    for one in proxies:
        one.close()


@pytest.fixture
def begin(monkeypatch):
    """Begins a migration whose steps the test takes, so that it decides which writes are in one batch."""
    begun = []

    def start(source, target, *options):
        monkeypatch.setattr(sys, "argv", ["migrate.py", url(source), url(target), *options])
        migration = migrate.Migration(migrate.parse_options())
        begun.append(migration.stream.source.socket)
        assert migration.stream.open(migration.resume() or None)
        migration.target.call(migration.progress, "HSET", migration.progress, "place", migration.stream.position())
        migration.find()
        return migration

    yield start
    for one in begun:
        one.shutdown(socket.SHUT_RDWR)


def copy_all(migration):
    while migration.waiting:
        migration.copy(migration.filters[migration.waiting.popleft()])


def replay_all(migration, source):
    """Replays in one batch what the source has written until now."""
    with source.connect() as call:
        offset = offsets(call)[0]
    wait_until(lambda: migration.stream.acknowledge(0.05) or migration.stream.place[0] >= offset)
    assert migration.replay()


def skip_all_but_the_oldest_and_the_newest(binary):
    if binary is not found()[0] and not binary.is_at_least(valkey=(9, 0)):
        pytest.skip("testing the oldest and the newest server suffices")


def is_clean(call):
    """Returns true if the target has none of the script's own keys."""
    return not [key for key in call("KEYS", "*") if b"koel-migrate" in key]


def test_writers_change_over_without_loss(source, server, call):
    """Writers change over to the target while others still write to the source. Nothing is lost."""
    call("CONFIG", "SET", "koel.error-rate", "0.0000001")
    writers = [Writer(source), Writer(server, "moved")]
    writers[0].start()
    try:
        writers[0].wait_for_turns(100)
        run = Run(source, server)
        run.wait_for("caught up")
        writers[0].wait_for_turns(100)
        writers[1].start()
        writers[1].wait_for_turns(100)
    finally:
        for writer in writers:
            if writer.ident:
                writer.finish()
    output = run.end_after(source)
    assert "9 filters moved" in output or "10 filters moved" in output
    with source.connect() as call_source:
        check(call, call_source, *writers)
        assert b"connected_slaves:0" in call_source("INFO", "replication")
    Run(source, server, "--forget").end()
    assert is_clean(call)


def test_an_interrupted_migration_continues(source, server, call):
    """A script that is killed anywhere loses and repeats no write."""
    call("CONFIG", "SET", "koel.error-rate", "0.0000001")
    writer = Writer(source)
    writer.start()
    try:
        writer.wait_for_turns(50)
        for _ in range(3):
            run = Run(source, server, "--probes", "10")
            run.wait_for("filters found")
            writer.wait_for_turns(30)
            run.interrupt(signal.SIGKILL)
            writer.wait_for_turns(20)
    finally:
        writer.finish()
    run = Run(source, server, "--until-idle", "0.3")
    assert "goes on behind offset" in run.end()
    with source.connect() as call_source:
        check(call, call_source, writer)


def test_a_replica_as_the_source(start_redisbloom, server, call):
    """Writers go on writing to the primary, which the dumps do not delay."""
    call("CONFIG", "SET", "koel.error-rate", "0.0000001")
    old = start_redisbloom(*OPTIONS, tcp=True)
    with old.connect() as call_source:
        # Before there is a replica, as RedisBloom does not replicate chunks.
        fill(call_source)
    replica = start_redisbloom(*OPTIONS, f"replicaof 127.0.0.1 {old.port}")
    with old.connect() as call_source, replica.connect() as call_replica:
        wait_until(lambda: b"master_link_status:up" in call_replica("INFO", "replication"), 60, replica.log)
        writer = Writer(old)
        writer.start()
        try:
            writer.wait_for_turns(50)
            run = Run(replica, server)
            run.wait_for("caught up")
            writer.wait_for_turns(100)
        finally:
            writer.finish()
        written = offsets(call_source)[0]
        wait_until(lambda: offsets(call_replica)[0] >= written, 60, replica.log)
        run.end_after(replica)
        check(call, call_source, writer)


def test_missing_writes_are_an_error(old, server, call):
    """The source no longer has the writes after the position of the script."""
    Run(old, server, "--until-idle", "0.1", "--match", "none").end()
    run = Run(old, server)
    run.wait_for("caught up")
    assert "run this again to go on" in run.interrupt()
    old.restart()
    assert "no longer has the writes behind" in Run(old, server).end(2)
    Run(old, server, "--forget").end()
    assert is_clean(call) and call("EXISTS", "own") == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_until_idle_that_is_interrupted(start, server, call, how):
    """Writers still write to the source, so its state is kept, and another run goes on."""
    source = start(*OPTIONS)
    with source.connect() as call_source:
        call_source("CF.ADD", "f", "a")
        run = Run(source, server, "--until-idle", "3600")
        run.wait_for("caught up")
        assert "state is kept at the target: run this again" in run.interrupt(how) and run.process.returncode == 0
        call_source("CF.ADD", "f", "b")
        output = Run(source, server, "--until-idle", "0.1").end()
        assert "goes on behind offset" in output and "state is kept" not in output
        assert call("CF.SNAPSHOT", "f") == call_source("CF.SNAPSHOT", "f") and is_clean(call)


def test_commands_that_cannot_be_replayed(old, server, call):
    run = Run(old, server)
    run.wait_for("caught up")
    with old.connect() as call_source:
        call_source("RENAME", "own", "renamed")
        call_source("DEL", "large")
        call_source("PERSIST", "expires")
        call_source("CF.ADD", "expires", "last")
        wait_until(lambda: call("CF.EXISTS", "expires", "last"))
        output = run.interrupt()
        assert run.process.returncode == 1 and "b'own' is not right at the target: RENAME changed it" in output
        assert "delete it at the target and run this again" in output
        assert call("EXISTS", "large") == 0 and call("PTTL", "expires") == -1
        # The advice works, once the key is deleted.
        call_source("RENAME", "renamed", "own")
        call_source("CF.ADD", "own", "renamed")
        assert "the target has this key already; delete it there" in Run(old, server, "--until-idle", "0.1").end(1)
        call("DEL", "own")
        Run(old, server, "--until-idle", "0.1").end()
        all_exist(call, "own", items("early-", 3000) + ["renamed"])
        assert numbers_of_items(call, "own") == numbers_of_items(call_source, "own")


@pytest.mark.parametrize("is_visible", [True, False])
def test_writes_before_a_command_that_cannot_be_replayed(start_redisbloom, server, call, begin, is_visible):
    """The filter's state is deleted, and the writes of the same batch do not create it again: the next run copies the filter."""
    old = start_redisbloom(*OPTIONS)
    with old.connect() as call_source:
        add_all(call_source, "f", items("n", 100))
        other = call_source("DUMP", "f")
        migration = begin(old, server)
        copy_all(migration)
        if is_visible:
            migration.switch_over()
        call_source("MULTI")
        call_source("CF.ADD", "f", "x")
        if is_visible:
            call_source("RENAME", "f", "g")
            call_source("RENAME", "g", "f")
        else:
            call_source("RESTORE", "f", 0, other, "REPLACE")
        call_source("EXEC")
        replay_all(migration, old)
        assert call("KEYS", "*:state") == [] and call("EXISTS", "f") == is_visible
        call("DEL", "f")
        Run(old, server, "--until-idle", "0.1").end()
        all_exist(call, "f", items("n", 100))
        assert numbers_of_items(call, "f") == numbers_of_items(call_source, "f")


def test_a_filter_that_gets_another_name_before_it_is_visible(start_redisbloom, server, call, begin):
    old = start_redisbloom(*OPTIONS)
    with old.connect() as call_source:
        add_all(call_source, "tmp", items("n", 100))
        migration = begin(old, server)
        copy_all(migration)
        call_source("MULTI")
        call_source("CF.ADD", "tmp", "x")
        call_source("RENAME", "tmp", "f")
        call_source("EXEC")
        replay_all(migration, old)
        copy_all(migration)
        migration.switch_over()
        assert call("EXISTS", "tmp") == 0
        all_exist(call, "f", [*items("n", 100), b"x"])
        assert migration.report() == 0


def test_what_is_left_of_a_filter_that_was_removed(start_redisbloom, server, call):
    """A run that is killed while it loads a filter leaves a key for the next one to delete."""
    old = start_redisbloom(*OPTIONS)
    call("HSET", b"koel-migrate:%b:0" % old.address.encode(), "key:f", "")
    call("CF.ADD", "{f}:koel-migrate", "a")
    Run(old, server, "--until-idle", "0.1").end()
    assert call("KEYS", "*") == []


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_run_that_is_killed_while_it_makes_a_filter_visible(start_redisbloom, server, call, begin, is_taken):
    """The next run knows whose key it is."""
    old = start_redisbloom(*OPTIONS)
    with old.connect() as call_source:
        call_source("CF.ADD", "f", "a")
        migration = begin(old, server)
        copy_all(migration)
        if is_taken:
            call("SET", "f", "mine")
        send = migration.target.batch

        def send_and_die(key, commands):
            replies = send(key, commands)
            if any(words[0] == "RENAMENX" for words in commands):
                raise KeyboardInterrupt
            return replies

        migration.target.batch = send_and_die
        with pytest.raises(KeyboardInterrupt):
            migration.switch_over()
        call_source("CF.ADD", "f", "b")
        output = Run(old, server, "--until-idle", "0.1").end(is_taken)
        if is_taken:
            assert "b'f' is not right at the target: meanwhile somebody else made this key" in output and call("GET", "f") == b"mine"
        else:
            all_exist(call, "f", [b"a", b"b"])


def test_abbreviated_options(start_redisbloom, server, call):
    """RedisBloom reads only the first letter of an option of CF.INSERT, and replicates it as it is."""
    old = start_redisbloom(*OPTIONS)
    with old.connect() as call_source:
        for key in ("f", "items"):
            call_source("CF.ADD", key, "a")
        run = Run(old, server)
        run.wait_for("caught up")
        for key in ("f", "items"):
            call_source("CF.INSERT", key, "ITEMS", "b")
            call_source("CF.INSERT", key, "cap", 5000, "Item", "items", "c")
            call_source("CF.INSERTNX", key, "n", "i", "d")
        call_source("DEL", "f")
        call_source("CF.INSERT", "f", "C", 5000, "I", "e")
        wait_until(lambda: call("CF.EXISTS", "f", "e") or run.process.poll() is not None)
        assert "5 of 5 sampled items" in run.end_after(old)
        all_exist(call, "items", [b"a", b"b", b"items", b"c", b"d"])
        assert numbers_of_items(call, "items") == 5 and numbers_of_items(call, "f") == 1 and info(call, "f")["Capacity"] == 5000


def test_items_that_are_removed_with_their_filter(start_redisbloom, server, call, begin):
    """They are not missing at the end, even if the same batch adds and removes them."""
    old = start_redisbloom(*OPTIONS)
    with old.connect() as call_source:
        call_source("CF.ADD", "f", "a")
        migration = begin(old, server)
        copy_all(migration)
        migration.switch_over()
        for command in (("CF.ADD", "f", "b"), ("UNLINK", "f"), ("CF.ADD", "f", "c")):
            call_source(*command)
        replay_all(migration, old)
        assert list(migration.sample) == [(b"f", b"c")] and migration.report() == 0


def test_items_of_a_filter_that_is_copied_again(start_redisbloom, server, call, begin):
    """What another command took away is not missing at the end."""
    old = start_redisbloom(*OPTIONS)
    with old.connect() as call_source:
        call_source("CF.ADD", "f", "a")
        other = call_source("DUMP", "f")
        migration = begin(old, server)
        copy_all(migration)
        call_source("CF.ADD", "f", "b")
        replay_all(migration, old)
        assert list(migration.sample) == [(b"f", b"b")]
        call_source("RESTORE", "f", 0, other, "REPLACE")
        replay_all(migration, old)
        copy_all(migration)
        migration.switch_over()
        assert call("CF.EXISTS", "f", "a") == 1 and call("CF.EXISTS", "f", "b") == 0 and migration.report() == 0


def test_reports_of_progress(capsys, begin, start_redisbloom, server):
    """Only a migration that has caught up says so."""
    migration = begin(start_redisbloom(*OPTIONS), server)
    migration.last_report = 0
    migration.report_progress(False)
    output = capsys.readouterr().err
    assert "0 bytes wait" in output and "caught up" not in output


@pytest.mark.parametrize("words, arguments, items", [
    ("CF.INSERT items ITEMS a b", "ITEMS a b", "a b"),
    ("CF.INSERT f cap 5 nope it ERROR", "CAPACITY 5 NOCREATE ITEMS ERROR", "ERROR"),
    ("CF.INSERTNX f error 0.1 ITEMS i", "ERROR 0.1 ITEMS i", "i"),
    # The target refuses these.
    ("CF.INSERT f CAPACITY", "CAPACITY", ""), ("CF.INSERT f new a ITEMS b", "NOCREATE a ITEMS b", ""), ("CF.INSERT f x a", "x a", ""),
])
def test_the_items_of_an_insertion(words, arguments, items):
    words = words.encode().split()
    assert migrate.insertion(words, []) == (arguments.encode().split(), items.encode().split())
    rate = b"ERROR 0.0001 " if items and b"0.1" not in words else b""
    assert migrate.insertion(words, [b"ERROR", b"0.0001"]) == ((rate + arguments.encode()).split(), items.encode().split())


RESERVATIONS = [
    ("1000 BUCKETSIZE 4 maxiterations 50 Expansion 2", "1000 BUCKETSIZE 4 maxiterations 50 Expansion 2"),
    ("1000 EXPANSION 2 ERROR 0.001 SEED 9223372036854775807", "1000 EXPANSION 2 ERROR 0.001 SEED 9223372036854775807"),
    ("1000 error 1.93e-9 seed 0", "1000 error 1.93e-9 seed 0"), ("1000 EXPAND 2 FOO bar", "1000"), ("1000 ERROR 2 SEED -1 EXPANSION 4", "1000 EXPANSION 4"),
    ("1000 ERROR x SEED 9223372036854775808", "1000"), ("1000 ERROR nan SEED 07", "1000"), ("1000 ERROR 1e-12", "1000"), ("1000 ERROR 0", "1000"),
]


@pytest.mark.parametrize("words, arguments", RESERVATIONS)
def test_options_of_a_reservation(call, words, arguments):
    """Those remain that the target takes: all that koel replicates."""
    words, arguments = [b"CF.RESERVE", b"f", *words.encode().split()], arguments.encode().split()
    assert migrate.reservation(words, []) == arguments
    has_rate = b"ERROR" in [word.upper() for word in arguments]
    assert migrate.reservation(words, [b"ERROR", b"0.5"]) == [*arguments, *([] if has_rate else [b"ERROR", b"0.5"])]
    assert call("CF.RESERVE", "f", *arguments) == "OK"


def test_reservations_with_options_that_redisbloom_ignores(start_redisbloom, server, call):
    old = start_redisbloom(*OPTIONS)
    with old.connect() as call_source:
        run = Run(old, server)
        run.wait_for("caught up")
        for key in ("f", "g"):
            call_source("CF.ADD", key, "a")
            wait_until(lambda: call("CF.EXISTS", key, "a"))
            call_source("DEL", key)
        call_source("CF.RESERVE", "f", 5000, "EXPAND", 2, "EXPANSION", 4)
        call_source("CF.RESERVE", "g", 5000, "ERROR", 2, "SEED", -1)
        run.end_after(old)
    assert [(info(call, key)["Capacity"], info(call, key)["Expansion rate"]) for key in ("f", "g")] == [(5000, 4), (5000, 1)]


def test_the_error_rate_of_filters_that_are_created_again(start_redisbloom, server, call):
    old, keys = start_redisbloom(*OPTIONS), ["CF.ADD", "CF.ADDNX", "CF.INSERT", "CF.INSERTNX", "CF.RESERVE"]
    with old.connect() as call_source:
        for key in keys:
            call_source("CF.ADD", key, "a")
        run = Run(old, server, "--error-rate", "0.0001")
        run.wait_for("caught up")
        call_source("DEL", *keys)
        for key in keys:
            call_source(key, key, *([100] if key == "CF.RESERVE" else ["ITEMS", "b"] if "INSERT" in key else ["b"]))
        call_source("CF.ADD", "CF.ADD", "b")
        call_source("CF.ADDNX", "CF.ADDNX", "b")
        output = run.end_after(old)
        assert "2 CF.ADD, 2 CF.ADDNX, 1 CF.INSERT, 1 CF.INSERTNX, 1 CF.RESERVE" in output and "4 of 4 sampled items" in output
    assert [info(call, key)["Error rate"] for key in keys] == [b"0.0001"] * 5
    assert [numbers_of_items(call, key) for key in keys] == [2, 1, 1, 1, 0]


def test_the_error_rate_of_imported_filters(start, server, call):
    """With koel as the source, the rate is that of the filter for new items, as with RedisBloom."""
    source, fixture = start(*OPTIONS), fixture_named("rb_b4_n4000.chunks")
    with source.connect() as call_source:
        call_source("CONFIG", "SET", "koel.expansion", 0)
        for key in ("imported", "mixed"):
            load(call_source, key, chunks_of(fixture))
        call_source("CF.ADD", "mixed", "a")
        call_source("CF.RESERVE", "own", 1000, "ERROR", 0.001, "EXPANSION", 3)
        call_source("CF.ADD", "own", "a")
    Run(source, server, "--until-idle", "0.1", "--error-rate", "0.0001").end()
    # A koel filter that has items keeps its rate.
    assert [info(call, key)["Error rate"] for key in ("imported", "mixed", "own")] == [b"0.0001", b"0.01", b"0.001"]
    # The expansion of new items is not that of the target's settings, either.
    assert [info(call, key)["Expansion rate"] for key in ("mixed", "own")] == [0, 3]
    all_exist(call, "imported", remaining(fixture))


def test_filters_that_others_are_made_of(start, server, call):
    """With koel as the source: a union and a copy change only their destination, which is moved, too."""
    source = start(tcp=True)
    with source.connect() as call_source:
        for key in ("one", "other"):
            call_source("CF.RESERVE", key, 1000)
            call_source("CF.INSERT", key, "ITEMS", *items(f"{key}-", 100))
        run = Run(source, server)
        run.wait_for("caught up")
        call_source("CF.UNION", "new", "one", "other")
        call_source("COPY", "one", "copy")
        call_source("SET", "text", "x")
        call_source("COPY", "text", "more text")
        for key in ("one", "new", "copy"):
            call_source("CF.ADD", key, "later")
            wait_until(lambda: call("CF.EXISTS", key, "later"))
        run.end_after(source)
        for key in ("one", "other", "new", "copy"):
            assert call("CF.SNAPSHOT", key) == call_source("CF.SNAPSHOT", key)
        assert call("EXISTS", "text", "more text") == 0


def test_commands_that_reach_other_databases(start, server, call):
    """Only those matter that change a key of the database that moves, whichever database is selected."""
    source = start(*OPTIONS)
    with source.connect() as call_source:
        for key in ("f", "g"):
            call_source("CF.ADD", key, "a")
        run = Run(source, server)
        run.wait_for("caught up")
        call_source("COPY", "f", "g", "DB", 1)
        call_source("SELECT", 1)
        for key in ("moved", "copied"):
            call_source("CF.ADD", key, "elsewhere")
        call_source("MOVE", "moved", 0)
        call_source("COPY", "copied", "copy", "DB", 0)
        call_source("FLUSHDB")
        call_source("SWAPDB", 1, 2)
        call_source("SELECT", 0)
        call_source("CF.ADD", "f", "last")
        wait_until(lambda: call("CF.EXISTS", "f", "last") and call("EXISTS", "moved", "copy") == 2)
        assert "4 filters moved" in run.end_after(source)
        for key in ("f", "g", "moved", "copy"):
            assert call("CF.SNAPSHOT", key) == call_source("CF.SNAPSHOT", key)


def test_filters_that_another_database_brings(start, server, call):
    source = start(*OPTIONS)
    with source.connect() as call_source:
        run = Run(source, server)
        run.wait_for("caught up")
        call_source("SELECT", 1)
        call_source("CF.ADD", "f", "a")
        call_source("SWAPDB", 0, 1)
        call_source("SELECT", 0)
        wait_until(lambda: call("CF.EXISTS", "f", "a"))
        assert "1 filters moved" in run.end_after(source)


@pytest.mark.parametrize("command", [
    ("FLUSHDB",), ("SWAPDB", 1, 0), ("MOVE", "f", 1), ("MSET", "a", 1, "f", 2), ("SORT", "numbers", "STORE", "f"),
    ("BITOP", "NOT", "f", "text"),
], ids=lambda command: command[0])
def test_commands_that_change_a_visible_filter(start, server, call, command):
    """The report names the filter, and the command."""
    source = start(*OPTIONS)
    with source.connect() as call_source:
        call_source("CF.ADD", "f", "a")
        call_source("RPUSH", "numbers", 1, 2)
        call_source("SET", "text", "x")
        run = Run(source, server)
        run.wait_for("caught up")
        call_source(*command)
        assert f"b'f' is not right at the target: {command[0]} changed it" in run.end_after(source, 1)


@pytest.mark.parametrize("words, keys", [
    ("SET f 1", "f"), ("MULTI", ""), ("RENAME f g", "f g"), ("RENAMENX f g", "f g"), ("COPY f g REPLACE", "g"), ("MOVE f 1", "f"),
    ("MSET f 1 g 2", "f g"), ("MSETNX f 1 g 2", "f g"), ("MSETEX 2 f 1 g 2", "f g"), ("BITOP AND f a b", "f"), ("ZUNIONSTORE f 1 a", "f"),
    ("SORT a STORE f", "f"), ("SORT a by store:* limit 0 5 store f", "f"), ("GEORADIUSBYMEMBER a m 1 m STORE f", "f"),
    ("GEORADIUS a 1 1 1 m STORE f STOREDIST g", "f g"),
])
def test_the_keys_that_a_command_changes(words, keys):
    name, *rest = words.encode().split()
    assert migrate.changed_keys(name, [name, *rest]) == keys.encode().split()


@pytest.mark.parametrize("words, selected, is_ours", [
    ("CF.ADD f a", 3, True), ("CF.ADD f a", 0, False), ("FLUSHALL", 0, True), ("FLUSHDB", 3, True), ("FLUSHDB", 0, False),
    ("SWAPDB 3 5", 0, True), ("SWAPDB 5 3", 0, True), ("SWAPDB 5 6", 3, False), ("MOVE f 3", 0, True), ("MOVE f 5", 3, True),
    ("MOVE f 5", 0, False), ("COPY f g", 3, True), ("COPY f g", 0, False), ("COPY f g DB 5", 3, False), ("COPY f g replace db 3", 0, True),
    ("COPY DB DB REPLACE", 3, True), ("COPY f g DB 5 REPLACE", 0, False),
])
def test_the_databases_that_a_command_changes(words, selected, is_ours):
    name, *rest = words.encode().split()
    assert migrate.changes(3, selected, name, [name, *rest]) == is_ours


def test_chunks_that_redisbloom_does_not_replicate(old, server, call):
    """While CF.LOADCHUNK writes a filter of RedisBloom, the script cannot know when it is complete."""
    fixture = fixture_named("rb_grown_e2.chunks")
    (first, *rest), others = chunks_of(fixture), remaining(fixture)
    run = Run(old, server)
    run.wait_for("caught up")
    with old.connect() as call_source:
        load(call_source, "loaded", [first])
        call_source("CF.ADD", "own", "last")
        wait_until(lambda: call("CF.EXISTS", "own", "last"))
        load(call_source, "loaded", rest)
    output = run.interrupt()
    assert run.process.returncode == 1 and "b'loaded' is not right at the target: CF.LOADCHUNK writes it" in output
    assert call("EXISTS", "loaded") == 0
    Run(old, server, "--until-idle", "0.1").end()
    all_exist(call, "loaded", others)


def test_chunks_that_are_missing_at_the_source(start_redisbloom, server, call):
    """A load may have begun before the script, and a replica has only the header of what its primary loads."""
    fixture = fixture_named("rb_grown_e2.chunks")
    old = start_redisbloom(*OPTIONS, tcp=True)
    replica = start_redisbloom(f"replicaof 127.0.0.1 {old.port}")
    with old.connect() as call_source, replica.connect() as call_replica:
        wait_until(lambda: b"master_link_status:up" in call_replica("INFO", "replication"), 60, replica.log)
        *most, last = chunks_of(fixture)
        load(call_source, "f", most)
        assert "b'f' is not moved: it has 5361 of its 6000 items" in Run(old, server, "--until-idle", "0.1").end(1)
        load(call_source, "f", [last])
        wait_until(lambda: call_replica("EXISTS", "f"))
        assert "b'f' is not moved: it has 0 of its 6000 items" in Run(replica, server, "--until-idle", "0.1").end(1)
        assert not call("EXISTS", "f")
        Run(old, server, "--until-idle", "0.1").end()
    all_exist(call, "f", remaining(fixture))


def test_keys_that_are_not_moved(old, server, call):
    """The report names these keys with the reason, and the others move."""
    call("SET", "own", "mine")
    output = Run(old, server, "--until-idle", "0.1", "--most-at-once", "4000000").end(1)
    assert "b'own' is not right at the target: the target has this key already; delete it" in output
    assert "b'large' is not right at the target: it has" in output and "--most-at-once is 4000000" in output
    assert call("GET", "own") == b"mine" and call("CF.EXISTS", "fixed", "a") == 1
    call("DEL", "own")
    call("CONFIG", "SET", "koel.max-bytes", "100kb")
    output = Run(old, server, "--until-idle", "0.1", "--match", "large").end(1)
    assert "the target does not load it" in output and "koel.max-bytes" in output


def test_keys_of_other_types(old, server, call):
    """The script says at its start, and in the report, which keys of RedisBloom's other types are not moved."""
    assert "other types" not in Run(old, server, "--until-idle", "0.1", "--match", "text").end()
    with old.connect() as call_source:
        for _, commands in redisbloom.FAMILIES.values():
            for command in commands:
                call_source(*command)
        types = {call_source("TYPE", commands[0][1]).encode() for _, commands in redisbloom.FAMILIES.values()}
    assert types == set(redisbloom.FAMILIES)
    run = Run(old, server, "--until-idle", "0.1")
    line = "not moved: 1 of BF.*, as b'bloom', 1 of CMS.*, as b'sketch', 1 of TDIGEST.*, as b'digest', 1 of TOPK.*, as b'top'. Keep"
    run.wait_for(line)
    assert run.end().count(line) == 2 and not call("EXISTS", "bloom", "sketch", "top", "digest")


def test_errors(old, server, start):
    assert "has no module koel" in Run(old, start(module=None)).end(2)
    assert "are the same server" in Run(server, server).end(2)
    assert "does not answer" in Run(old, "redis://127.0.0.1:%d" % free_port()).end(2)
    assert "is no address of a server" in Run(old, "localhost").end(2)
    assert "--error-rate 1.0 is not above 0 and below 1" in Run(old, server, "--error-rate", "1").end(2)
    assert "--probes -1 is not from 0 to 100000" in Run(old, server, "--probes", "-1").end(2)
    assert "usage:" in subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True, check=True).stdout


def test_the_documented_rights_suffice(source, server, call):
    """The rights in the script's help suffice at the source."""
    rights = "+psync +replconf +info +scan +type +eval +cf.info +cf.scandump +cf.exists +pttl +time +select"
    assert rights in " ".join(SCRIPT.read_text().split())
    with source.connect() as call_source:
        more = ["+cf.snapshot"] if is_koel(call_source) else []
        call_source("ACL", "SETUSER", "mover", "on", ">secret", "-@all", *rights.split(), "~*", *more)
        call_source("CONFIG", "SET", "requirepass", "other")
    Run(f"unix://mover:secret@{source.address}", server, "--until-idle", "0.1").end()
    assert call("CF.EXISTS", "own", "early-1") == 1


@pytest.mark.parametrize("rights", ["-type ~*", "+type ~text"])
def test_keys_whose_type_is_refused(start, server, call, rights):
    """They could be filters, so it is an error."""
    source = start(*OPTIONS)
    with source.connect() as call_source:
        call_source("CF.ADD", "own", "a")
        call_source("ACL", "SETUSER", "mover", "on", ">secret", "+@all", *rights.split())
    output = Run(f"unix://mover:secret@{source.address}", server, "--until-idle", "0.1").end(2)
    assert re.search(r"does not tell the type of b'own': NOPERM .*; grant the rights that --help names, or leave such keys out by --match", output)
    assert call("EXISTS", "own") == 0


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_replaying_commands_of_an_old_source(start_redisbloom, proxy, server, call, diskless):
    """A source before Redis 7 sends a complete RDB file. Commands that changed nothing there do no harm at the target."""
    old = start_redisbloom(*OPTIONS, f"repl-diskless-sync {diskless}")
    source = proxy(old, lambda words: b"-ERR Unrecognized REPLCONF option\r\n" if b"rdb-filter-only" in words else words)
    file = server.folder / "items"
    with old.connect() as write:
        fill(write)
        add_all(write, "sparse", items("n", 500))
        write("CF.RESERVE", "full", 1024, "EXPANSION", 0)
        file.write_bytes(b"\n".join(items("key-", 6000)) + b"\n")
        write("CF.ADD", "own", "before the dump")
        run = Run(source, server, "--probes", "0", "--items", str(file), "--error-rate", "0.0001")
        run.wait_for("caught up")
        assert "writes and sends a whole one" in run.text()
        write("SELECT", 1)
        write("CF.ADD", "own", "in another database")
        write("SELECT", 0)
        write("SET", "text", "value")
        write("CF.RESERVE", "new", 100, "BUCKETSIZE", 4, "MAXITERATIONS", 50, "EXPANSION", 2)
        write("CF.ADD", "new", "a")
        write("MULTI")
        write("CF.ADDNX", "sparse", "n1")  # It is present.
        write("CF.INSERT", "empty", "CAPACITY", 4, "ITEMS", *items("n", 5000))
        write("EXEC")
        for _ in range(20):
            write("CF.ADD", "empty", "same")
        # RedisBloom refuses some of these, and replicates all.
        accepted = insert(write, "full", items("n", 1100))
        assert -1 in accepted and 1 in accepted[1024:]
        write("CF.DEL", "sparse", "n1")
        write("CF.DEL", "empty", "n0")
        write("CF.COMPACT", "rb_grown_e2.chunks")
        output = run.end_after(old, 1)
        assert "writes were refused by the target, as CF.INSERT of b'full': CF.INSERT answered -1" in output
        assert "2 removals were replayed" in output and "12 filters moved" in output
        assert numbers_of_items(call, "empty") == numbers_of_items(write, "empty") == 5019
        assert numbers_of_items(call, "sparse") == numbers_of_items(write, "sparse") == 499
    all_exist(call, "empty", items("n", 4999, 1) + [b"same"])
    all_exist(call, "full", items("n", 1024))
    assert call("CF.COUNT", "empty", "same") >= 20 and info(call, "empty")["Error rate"] == b"0.0001"
    all_exist(call, "own", ["before the dump"])
    assert exist(call, "own", ["in another database"]) == [0] and call("CF.EXISTS", "new", "a") == 1


@pytest.mark.parametrize("data", [b"\n\n$EOF:%(mark)b\r\n%(mark).20b%(file)b%(mark)b", b"\n$%(length)d\r\n%(file)b"])
def test_files_that_are_skipped(data):
    """Empty lines keep the connection alive while the source saves, and the beginning of the mark may occur in the file. No server
    does so on demand."""
    file = bytes(range(256)) * 1000
    stream, connection = migrate.Stream.__new__(migrate.Stream), migrate.Connection.__new__(migrate.Connection)
    connection.stream = io.BufferedReader(io.BytesIO(data % {b"mark": b"b" * 40, b"file": file, b"length": len(file)} + b"*1\r\n"))
    stream.source = connection
    assert stream.skip_file() == (data.split(b"%(file)b")[0].split(b"\r\n")[1] % {b"mark": b"b" * 40} + file)[: migrate.RDB_HEAD]
    assert connection.line() == b"*1\r\n"


def test_a_source_that_stalls_while_it_sends_its_file():
    """It is an error like that of a broken connection."""
    connection = migrate.Connection.__new__(migrate.Connection)
    here, there = socket.socketpair()
    here.settimeout(0.1)
    connection.name, connection.stream = "source", here.makefile("rb")
    stream = migrate.Stream(connection, 0)
    there.sendall(b"$EOF:%b\r\n" % (b"b" * 40))
    with pytest.raises(migrate.Failure, match="the connection to source broke: timed out; run this again to go on"):
        stream.skip_file()
    there.close()


PATTERNS = [
    "*", "", "a*", "*b", "a?b", "???", "**", "*a*b*", "a\\*b", "\\*", "\\a*", "*\\", "a\\", "[ab]*", "[^a]*", "[!a]*", "[a-c]b", "[c-a]b",
    "[a-]", "[-a]", "[]a]", "[^]", "[]", "[a\\]]", "[\\a-c]", "[\\]-a]", "[a", "[^a", "[a-", "[a\\", "{a}*", "a.b", "(a)|b", "[[a]", "[a&&b]",
    "^a$", "\u00e9?", "[\u00e9]", "a\n*",
]


def test_patterns_match_as_in_scan(call):
    keys = [b"a", b"b", b"c", b"-", b"]", b"\\", b"ab", b"a*b", b"a\nb", b"cb", b"!ab", b"&", b"\xc3", b"\xff", b"a]", b"^"]
    keys += [pattern.encode() for pattern in PATTERNS if pattern]
    call("MSET", *(word for key in keys for word in (key, 1)))
    for pattern in PATTERNS:
        cursor, found = b"0", set()
        while True:
            cursor, some = call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            found.update(some)
            if cursor == b"0":
                break
        assert {key for key in keys if migrate.matches(pattern, key)} == found, pattern


@pytest.mark.parametrize("value, number", [(b"\xc0\x03", 3), (b"\xc1\x2c\x01", 300), (b"\x012", 2), (b"", None)])
def test_the_database_of_the_stream(value, number):
    field = b"\xfa\x0erepl-stream-db" + value if value else b""
    assert migrate.stream_database(b"REDIS0012\xfa\x05ctime\xc2abcd" + field + b"\xfa\x07repl-id") == number


def test_a_wrong_dump_is_refused(old, proxy, server, call):
    """Probes give another result, so the filter does not become visible. The source is asked for items instead of five probes."""
    def alter(words):
        return [*words[:-5], *[b"early-%d" % n for n in range(5)]] if words[0] == b"EVAL" and words[3] == b"own" else words

    output = Run(proxy(old, alter), server, "--until-idle", "0.1", "--probes", "100").end(1)
    # A probe may be a false positive at the target.
    assert re.search("b'own' is not moved: [1-5] of 100 probes are answered differently", output) and not call("EXISTS", "own")
    assert call("CF.EXISTS", "large", "large-1") == 1


@pytest.mark.parametrize(
    "key", [b"f", b"", b"a}b", b"x{}y", b"{", b"}", b"{a", b"{a}b", b"b{a}", b"{}{a}", b"{{a}}", b"a}{b}", b"\xff}", b"}:koel"]
)
def test_the_keys_of_a_filter_share_a_slot(key):
    entry = migrate.Filter(key)
    assert {redis.crc.key_slot(name) for name in (key, entry.shadow, entry.state)} == {redis.crc.key_slot(key)}
    assert len({key, entry.shadow, entry.state}) == 3 and migrate.is_internal(entry.shadow) and migrate.is_internal(entry.state)


def test_into_a_cluster(old, binary):
    skip_all_but_the_oldest_and_the_newest(binary)
    cluster = Cluster(binary)
    writer = Writer(old)
    with old.connect() as call:
        for key in ("a}b", "x{}y"):
            call("CF.ADD", key, "a")
    try:
        for node in cluster.nodes:
            with node.connect() as call:
                call("CONFIG", "SET", "koel.error-rate", "0.0000001")
        writer.start()
        run = Run(old, cluster.nodes[0])
        run.wait_for("caught up")
        writer.wait_for_turns(100)
        writer.finish()
        run.end_after(old)
        client = cluster.client()
        for (key, item), copies in writer.present.items():
            assert not copies or client.execute_command("CF.EXISTS", key, item) == 1
        assert client.execute_command("CF.MEXISTS", "own", *items("early-", 3000)) == [1] * 3000
        assert [client.execute_command("CF.EXISTS", key, "a") for key in ("a}b", "x{}y")] == [1, 1]
        client.close()
    finally:
        writer.stopping.set()
        cluster.close()


def test_from_a_cluster(server, call, binary):
    """The source is a primary, or a replica, which redirects most connections to its primary."""
    skip_all_but_the_oldest_and_the_newest(binary)
    cluster = Cluster(binary, primaries=2)
    try:
        replica = cluster.add_replica(cluster.nodes[0])
        client = cluster.client()
        keys = [f"f{n}" for n in range(20)]
        for key in keys:
            client.execute_command("CF.ADD", key, "a")
        runs = [Run(node, server) for node in (replica, cluster.nodes[1])]
        for run in runs:
            run.wait_for("caught up")
        for key in keys:
            client.execute_command("CF.ADD", key, "b")
            wait_until(lambda: call("CF.EXISTS", key, "b"))
        client.close()
        for run, node in zip(runs, (replica, cluster.nodes[1])):
            run.end_after(node)
        assert [numbers_of_items(call, key) for key in keys] == [2] * len(keys)
    finally:
        cluster.close()


def test_an_append_only_file_of_redisbloom_opens(start_redisbloom, start):
    """A file that was written with `aof-use-rdb-preamble no` contains only commands: chunks, then what clients wrote."""
    old = start_redisbloom()
    with old.connect() as write:
        fill(write)
        # As docs/VALKEY.md says.
        write("CONFIG", "SET", "aof-use-rdb-preamble", "no")
        write("CONFIG", "SET", "appendonly", "yes")
        wait_until(lambda: b"aof_rewrite_in_progress:0" in write("INFO", "persistence"), 60, old.log)
        write("CF.RESERVE", "later", 4, "BUCKETSIZE", 2, "EXPANSION", 1)
        write("CF.INSERT", "later", "CAPACITY", 100, "ITEMS", *items("n", 100))
        write("CF.ADDNX", NAMES[0], "later")
        write("CF.DEL", "later", "n0")
        write("CF.COMPACT", NAMES[0])
        keys = [*NAMES, "mixed", "own", "empty", "fixed", "large"]
        probes = items("key-", 6000) + items("early-", 3000) + items("absent-", 5000)
        expected = {key: (numbers_of_items(write, key), exist(write, key, probes)) for key in keys}
        old.stop()
    server = start("appendonly yes")
    server.stop()
    shutil.rmtree(server.folder / "appendonlydir")
    shutil.copytree(old.folder / "appendonlydir", server.folder / "appendonlydir")
    server.start()
    with server.connect() as call:
        for key, (count, answers) in expected.items():
            assert numbers_of_items(call, key) == count, key
            # The new item of NAMES[0] is not among RedisBloom's.
            assert key == NAMES[0] or exist(call, key, probes) == answers, key
        all_exist(call, NAMES[0], remaining(fixture_named(NAMES[0])) + [b"later"])
        all_exist(call, "later", items("n", 99, 1))
        assert numbers_of_items(call, "later") == 99 and 0 < call("PTTL", "expires") <= 3_600_000
        assert call("GET", "text") == b"no filter"
        call("BGREWRITEAOF")
        wait_until(lambda: b"aof_rewrite_in_progress:0" in call("INFO", "persistence"))


def stream_of(*commands, database=b"0"):
    """Returns a stream that goes on behind offset 100 in this database, and has these commands to read."""
    connection = migrate.Connection.__new__(migrate.Connection)
    connection.name, connection.database, connection.socket, connection.call = "source", 0, Mock(), Mock()
    connection.stream = io.BufferedReader(io.BytesIO(b"".join([b"+CONTINUE id\r\n", *[encode(*command) for command in commands]])))
    stream = migrate.Stream(connection, 1 << 20)
    stream.start = Mock()
    assert stream.open([b"id", b"100", database])
    return stream


def test_a_position_has_the_database_of_its_offset():
    """The reader may have read a SELECT of a later offset. A primary does not repeat it after +CONTINUE."""
    commands = [("CF.ADD", "f", "a"), ("CF.ADD", "f", "b"), ("SELECT", 1), ("CF.ADD", "f", "c")]
    stream = stream_of(*commands)
    for _ in commands[:2]:
        stream.read_command()
    batch, end = stream.take_batch(10)
    stream.read_command()
    stream.applied = end
    length = len(encode(*commands[0]))
    assert len(batch) == 2 and stream.position() == b"id %d 0" % (100 + 2 * length)
    # The end of a full batch.
    stream = stream_of(*commands)
    for _ in commands:
        stream.read_command()
    _, stream.applied = stream.take_batch(1)
    assert stream.position() == b"id %d 0" % (100 + length)
    _, stream.applied = stream.take_batch(10)
    assert stream.position() == b"id %d 1" % (100 + sum(len(encode(*command)) for command in commands))


def test_a_position_without_a_database():
    """A replica as the source may not tell which one is selected. The next run must not take it for its own."""
    stream = stream_of(("PING",), ("CF.ADD", "f", "a"), database=b"-1")
    stream.read_command()
    _, stream.applied = stream.take_batch(10)
    assert stream.position() == b"id %d -1" % (100 + len(encode("PING")))
    with pytest.raises(migrate.Failure, match="does not tell for which database"):
        stream.read_command()


def test_bytes_that_wait_are_counted():
    commands = [("CF.ADD", "f", "a"), ("SET", "text", "value"), ("CF.INSERT", "f", "ITEMS", *range(100))]
    stream = stream_of(*commands)
    for _ in commands:
        stream.read_command()
    assert stream.queued == sum(len(encode(*command)) for command in commands)
    stream.take_batch(1)
    assert stream.queued == sum(len(encode(*command)) for command in commands[1:])
    stream.take_batch(10)
    assert stream.queued == 0
