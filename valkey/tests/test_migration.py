"""valkey/migrate.py: filters move while clients write, and no acknowledged item is lost. The source is koel on Redis 7 with
filters that RedisBloom wrote, so that the protocol is a real server's. A fake server (redisbloom.py) replicates as RedisBloom
does."""

import random
import signal
import subprocess
import sys
import threading

import pytest

from cluster import Cluster
from filters import add_all, all_exist, chunks_of, dump, exist, fixture_named, info, items, load
from redisbloom import RedisBloom
from servers import ROOT, Server, found, free_port, wait_until
from test_imports import remaining
from wire import encode
from workers import Worker

SCRIPT = ROOT / "valkey/migrate.py"
NAMES = ["rb_grown_e2.chunks", "rb_deleted.chunks", "rb_b4_n4000.chunks"]


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

    def interrupt(self, how=signal.SIGINT):
        self.process.send_signal(how)
        self.process.wait(60)
        return self.end(self.process.returncode)


def url(server):
    if isinstance(server, (str, RedisBloom)):
        return getattr(server, "url", server)
    return f"redis://127.0.0.1:{server.port}" if server.port else f"unix://{server.address}"


class Writer(Worker):
    """A thread that adds new items and copies, and removes some. `present` has the number of copies of each item that must be
    present."""

    def __init__(self, server, prefix="w"):
        super().__init__()
        self.server, self.prefix, self.random, self.present = server, prefix, random.Random(5), {}

    def connect(self):
        return self.server.connect()

    def turn(self, call):
        n = self.turns
        key = self.random.choice([*NAMES, "own", "later", "mixed"])
        batch = [f"{self.prefix}-{n}-{m}" for m in range(10)]
        assert call("CF.INSERT", key, "ITEMS", *batch) == [1] * 10
        for item in batch:
            self.present[key, item] = 1
        assert call("CF.ADD", key, batch[0]) == 1 and call("CF.ADD", key, batch[1]) == 1
        self.present[key, batch[0]] = self.present[key, batch[1]] = 2
        call("CF.ADDNX", key, batch[2])
        for item in batch[1:4]:
            assert call("CF.DEL", key, item) == 1
            self.present[key, item] -= 1


def fill(call):
    # The rates are so low that no items of this test collide.
    call("CONFIG", "SET", "koel.error-rate", "0.0000001")
    for name in NAMES:
        load(call, name, chunks_of(fixture_named(name)))
    load(call, "mixed", chunks_of(fixture_named("rb_b1_n3000.chunks")))
    add_all(call, "mixed", items("early-", 3000))
    call("CF.RESERVE", "own", 1000, "SEED", 7)
    add_all(call, "own", items("early-", 3000))
    call("CF.RESERVE", "empty", 1000, "ERROR", "0.001", "SEED", 3)
    call("CF.RESERVE", "fixed", 100, "EXPANSION", 0)
    call("CF.ADD", "fixed", "a")
    call("CF.ADD", "expires", "a")
    call("PEXPIRE", "expires", 3_600_000)
    call("SET", "text", "no filter")
    call("CF.RESERVE", "large", 3_000_000)
    add_all(call, "large", items("large-", 3000))


def check(call, present):
    for name in NAMES:
        all_exist(call, name, remaining(fixture_named(name)))
    all_exist(call, "mixed", remaining(fixture_named("rb_b1_n3000.chunks")) + items("early-", 3000))
    all_exist(call, "own", items("early-", 3000))
    all_exist(call, "large", items("large-", 3000))
    for key in {key for key, _ in present}:
        all_exist(call, key, [item for (name, item), copies in present.items() if name == key and copies])
    assert info(call, "empty")["Seed"] == 3 and info(call, "fixed")["Expansion rate"] == 0
    assert 0 < call("PTTL", "expires") <= 3_600_000 and call("EXISTS", "text") == 0


@pytest.fixture
def source():
    server = Server(found()[0], "repl-backlog-size 64mb")
    with server.connect() as call:
        fill(call)
    yield server
    server.close()


def test_writers_change_over_without_loss(source, server, call):
    """Writers change over to the target while others still write to the source. Nothing is lost."""
    call("CONFIG", "SET", "koel.error-rate", "0.0000001")
    writers = [Writer(source), Writer(server, "moved")]
    writers[0].start()
    try:
        writers[0].wait_for_turns(100)
        run = Run(source, server, "--until-idle", "0.5")
        run.wait_for("caught up")
        writers[0].wait_for_turns(100)
        writers[1].start()
        writers[1].wait_for_turns(100)
    finally:
        for writer in writers:
            if writer.ident:
                writer.finish()
    output = run.end()
    present = {at: copies for writer in writers for at, copies in writer.present.items()}
    check(call, present)
    # Copies are counted, too: every write was replayed once.
    own = [(at, copies) for at, copies in present.items() if at[0] in ("own", "later")]
    assert call.pipeline([("CF.COUNT", *at) for at, _ in own]) == [copies for _, copies in own]
    assert "9 filters moved" in output or "10 filters moved" in output
    assert sorted(key for key in call("KEYS", "*") if b"koel-migrate" in key) == []
    # A filter that nobody wrote to has the same bytes.
    with source.connect() as call_source:
        assert call("CF.SNAPSHOT", "empty") == call_source("CF.SNAPSHOT", "empty")
        assert b"connected_slaves:0" in call_source("INFO", "replication")


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
    check(call, writer.present)
    own = [(at, copies) for at, copies in writer.present.items() if at[0] in ("own", "later")]
    assert call.pipeline([("CF.COUNT", *at) for at, _ in own]) == [copies for _, copies in own]


def test_missing_writes_are_an_error(source, server, call):
    """The source no longer has the writes after the position of the script."""
    Run(source, server, "--until-idle", "0.1", "--match", "none").end()
    run = Run(source, server)
    run.wait_for("caught up")
    assert "run this again to go on" in run.interrupt()
    source.restart()
    assert "no longer has the writes behind" in Run(source, server).end(2)
    Run(source, server, "--forget").end()
    assert not [key for key in call("KEYS", "*") if b"koel-migrate" in key] and call("EXISTS", "own") == 1


def test_commands_that_cannot_be_replayed(source, server, call):
    run = Run(source, server)
    run.wait_for("caught up")
    with source.connect() as call_source:
        call_source("RENAME", "own", "renamed")
        call_source("DEL", "large")
        call_source("PERSIST", "expires")
        call_source("CF.ADD", "expires", "last")
    wait_until(lambda: call("CF.EXISTS", "expires", "last"))
    output = run.interrupt()
    assert run.process.returncode == 1 and "b'own' is not right at the target: RENAME changed it" in output
    assert call("EXISTS", "large") == 0 and call("PTTL", "expires") == -1


def test_keys_that_are_not_moved(source, server, call):
    """The report names these keys with the reason, and the others move."""
    call("SET", "own", "mine")
    output = Run(source, server, "--until-idle", "0.1", "--most-at-once", "8000000").end(1)
    assert "b'own' is not right at the target: the target has this key already; delete it" in output
    assert "b'large' is not right at the target: it has" in output and "--most-at-once is 8000000" in output
    assert call("GET", "own") == b"mine" and call("CF.EXISTS", "fixed", "a") == 1
    call("DEL", "own")
    call("CONFIG", "SET", "koel.max-bytes", "100kb")
    output = Run(source, server, "--until-idle", "0.1", "--match", "large").end(1)
    assert "the target does not load it" in output and "koel.max-bytes" in output


def test_errors(source, server, start):
    assert "has no module koel" in Run(source, start(module=None)).end(2)
    assert "are the same server" in Run(source, source).end(2)
    assert "does not answer" in Run(source, "redis://127.0.0.1:%d" % free_port()).end(2)
    assert "is no address of a server" in Run(source, "localhost").end(2)
    assert "--error-rate 1.0 is not above 0 and below 1" in Run(source, server, "--error-rate", "1").end(2)
    assert "--probes -1 is not from 0 to 100000" in Run(source, server, "--probes", "-1").end(2)
    assert "usage:" in subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True, check=True).stdout


def test_the_documented_rights_suffice(source, server, call):
    """The rights in the script's help suffice at the source."""
    rights = "+psync +replconf +info +scan +type +eval +cf.info +cf.scandump +cf.exists +cf.snapshot +pttl +time +select ~*"
    with source.connect() as call_source:
        call_source("ACL", "SETUSER", "mover", "on", ">secret", "-@all", *rights.split())
        call_source("CONFIG", "SET", "requirepass", "other")
    Run(f"unix://mover:secret@{source.address}", server, "--until-idle", "0.1").end()
    assert call("CF.EXISTS", "own", "early-1") == 1


@pytest.mark.parametrize("ending", [b"$EOF:", b"$"])
def test_replaying_redisbloom_commands(server, call, ending):
    """Commands that changed nothing at the source do no harm at the target."""
    names, empty = [*NAMES, "rb_empty.chunks", "rb_fixed"], fixture_named("rb_empty.chunks")
    fixed = {**empty, "info": {**empty["info"], "Expansion rate": 0}}
    source = RedisBloom({name: fixed if name == "rb_fixed" else fixture_named(name) for name in names}, ending)
    fixture = fixture_named("rb_deleted.chunks")
    probes = items(fixture["probe_prefix"], 2000)
    file = server.folder / "items"
    file.write_bytes(b"\n".join(probes) + b"\n")
    try:
        source.write("CF.ADD", NAMES[0], "before the dump: its chunks have it")
        run = Run(source, server, "--until-idle", "0.3", "--probes", "0", "--items", str(file), "--error-rate", "0.0001", "--match", "rb_*")
        run.wait_for("caught up")
        assert source.dumped == set(names) and "writes and sends a whole one" in run.text()
        source.write("SELECT", 1)
        source.write("CF.ADD", "rb_default.chunks", "of another database")
        source.write("SELECT", 0)
        source.write("SET", "text", "value")
        source.write("CF.RESERVE", "rb_new", 100, "BUCKETSIZE", 4, "MAXITERATIONS", 50, "EXPANSION", 2)
        source.filters["rb_new"] = fixture_named("rb_b4_n4000.chunks")
        source.write("MULTI")
        source.write("CF.ADDNX", NAMES[1], "key-1")  # It is present.
        source.write("CF.INSERT", "rb_empty.chunks", "CAPACITY", 4, "ITEMS", *[f"n{n}" for n in range(5000)])
        source.write("EXEC")
        for _ in range(20):
            source.write("CF.ADD", "rb_empty.chunks", "same")
        source.write("CF.INSERT", "rb_fixed", "ITEMS", *[f"n{n}" for n in range(1024)])
        source.write("CF.ADD", "rb_fixed", "n1")
        source.write("CF.ADD", "rb_fixed", "one more")
        source.write("CF.INSERT", "rb_fixed", "ITEMS", "n2", "two more")
        source.write("CF.DEL", NAMES[1], "key-1")
        source.write("CF.DEL", "rb_empty.chunks", "n0")
        source.write("CF.COMPACT", NAMES[0])
        output = run.end(1)
    finally:
        source.close()
    wait_until(lambda: source.acknowledged == len(source.stream))
    assert "1 writes were refused by the target, as CF.ADD of b'rb_fixed': Filter is full" in output
    assert "1 writes were refused by the target, as CF.INSERT of b'rb_fixed': CF.INSERT answered -1" in output
    assert "2 removals were replayed" in output and "4 filters moved" not in output
    all_exist(call, "rb_empty.chunks", items("n", 4999, 1) + [b"same"])
    all_exist(call, "rb_fixed", items("n", 1024))
    assert [call("CF.COUNT", *at) for at in (("rb_empty.chunks", "same"), ("rb_fixed", "n1"), ("rb_fixed", "n2"))] == [20, 2, 2]
    assert exist(call, "rb_empty.chunks", ["n0"]) == [0] and info(call, "rb_empty.chunks")["Error rate"] == b"0.0001"
    assert exist(call, NAMES[2], ["before the dump: its chunks have it", "of another database"]) == [0, 0]
    all_exist(call, NAMES[1], [item for item in remaining(fixture) if item != b"key-1"])
    assert dump(call, NAMES[2]) == chunks_of(fixture_named(NAMES[2]))


def test_a_wrong_dump_is_refused(server, call):
    """The probes give other results, so the filter does not become visible."""
    fixture = dict(fixture_named(NAMES[2]))
    fixture["probe_hits"] = fixture["probe_hits"][:-1]
    file = server.folder / "items"
    file.write_bytes(b"\n".join(items(fixture["probe_prefix"], fixture["probe_count"])) + b"\n")
    source = RedisBloom({"f": fixture})
    try:
        output = Run(source, server, "--until-idle", "0.1", "--probes", "0", "--items", str(file)).end(1)
    finally:
        source.close()
    assert "1 of 20000 probes are answered differently" in output and not call("EXISTS", "f")


def test_other_types_of_redisbloom_are_counted(server, call):
    fixture = fixture_named(NAMES[2])
    source = RedisBloom({"f": fixture}, others={"a": "MBbloom--", "b": "MBbloom--", "c": "TDIS-TYPE", "d": "string"})
    try:
        output = Run(source, server, "--until-idle", "0.1", "--probes", "0").end()
    finally:
        source.close()
    assert "about 3 keys of RedisBloom's other types stay at the source: 2 of BF.*, 1 of TDIGEST.*" in output
    all_exist(call, "f", remaining(fixture))


def test_into_a_cluster(source, binary):
    if binary is not found()[0] and not binary.is_at_least(valkey=(9, 0)):
        pytest.skip("testing the oldest and the newest server suffices")
    cluster = Cluster(binary)
    writer = Writer(source)
    try:
        for node in cluster.nodes:
            with node.connect() as call:
                call("CONFIG", "SET", "koel.error-rate", "0.0000001")
        writer.start()
        run = Run(source, cluster.nodes[0], "--until-idle", "0.3")
        run.wait_for("caught up")
        writer.wait_for_turns(100)
        writer.finish()
        run.end()
        client = cluster.client()
        for (key, item), copies in writer.present.items():
            assert not copies or client.execute_command("CF.EXISTS", key, item) == 1
        assert client.execute_command("CF.MEXISTS", "own", *items("early-", 3000)) == [1] * 3000
        client.close()
    finally:
        writer.stopping.set()
        cluster.close()


def test_an_append_only_file_of_redisbloom_opens(start):
    """A file that was written with `aof-use-rdb-preamble no` contains only commands."""
    server = start("appendonly yes")
    server.stop()
    (base,) = (server.folder / "appendonlydir").glob("*.base.*")
    commands = [encode("SELECT", 0)]
    for name in NAMES:
        commands += [encode("CF.LOADCHUNK", name, iterator, data) for iterator, data in chunks_of(fixture_named(name))]
    commands += [encode("CF.RESERVE", "f", 4, "BUCKETSIZE", 2, "EXPANSION", 1), encode("CF.ADDNX", NAMES[0], "later")]
    commands += [encode("CF.INSERT", "f", "CAPACITY", 100, "ITEMS", *range(100)), encode("CF.DEL", "f", 0)]
    base.write_bytes(b"".join(commands))
    server.start()
    with server.connect() as call:
        for name in NAMES:
            all_exist(call, name, remaining(fixture_named(name)))
        all_exist(call, "f", range(1, 100))
        assert call("CF.EXISTS", NAMES[0], "later") == 1
        call("BGREWRITEAOF")
        wait_until(lambda: b"aof_rewrite_in_progress:0" in call("INFO", "persistence"))
