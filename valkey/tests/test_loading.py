"""A file that cannot be loaded completely: the server ends, and its log names the key, the reason and the remedy. The same
commands from a client or from the primary's stream are errors, and the server goes on."""

import hashlib
import re
import socket
import threading
from collections import Counter

import pytest

from failing import ANY_NUMBER, FailingServer, wrapper
from filters import (
    add_all, all_exist, chunks_of, differences, fixture_named, info, insert, items, load, refused, states,
)
from servers import Server, free_port, wait_until
from test_replication import replication
from wire import Refusal, encode, same

# Otherwise a server that ends by itself may lose what it has acknowledged in the last seconds.
LOG = ["appendonly yes", "appendfsync always", "aof-use-rdb-preamble no"]
ITEMS = items("item-", 40_000)
PIECE = 16 << 10


def write_log(server, commands, rdb=None):
    """Replaces the append-only file of a stopped server. It begins with the RDB file if one is given."""
    folder = server.folder / "appendonlydir"
    for path in folder.glob("*"):
        path.unlink()
    (folder / "appendonly.aof.1.incr.aof").write_bytes(b"".join(encode(*command) for command in [("SELECT", 0), *commands]))
    manifest = "file appendonly.aof.1.incr.aof seq 1 type i\n"
    if rdb is not None:
        (folder / "appendonly.aof.1.base.rdb").write_bytes(rdb)
        manifest = "file appendonly.aof.1.base.rdb seq 1 type b\n" + manifest
    (folder / "appendonly.aof.manifest").write_text(manifest)


def exit_code(server):
    """Starts a server that must end, and returns its exit code."""
    (server.folder / "log").unlink(missing_ok=True)
    with pytest.raises(AssertionError, match="ended with"):
        server.start()
    return server.stop()


def warning(server):
    """Returns the module's warning in the log."""
    lines = [line for line in server.log().splitlines() if "koel: the server ends, because" in line]
    assert len(lines) == 1, server.log()
    return lines[0]


@pytest.fixture(scope="module")
def pieces(binary):
    """The CF.LOADCHUNK commands of a filter with many tables, without the command's name and the key."""
    server = Server(binary)
    try:
        with server.connect() as call:
            add_all(call, "f", ITEMS)
            data = call("CF.SNAPSHOT", "f")
    finally:
        server.close()
    ends = [*range(PIECE, len(data), PIECE), len(data)]
    assert len(ends) > 3
    return [[end, data[start:end]] for start, end in zip([0, *ends], ends)]


def chunks(key, pieces, *options):
    """Returns the commands that load a filter."""
    first, *rest = pieces
    return [("CF.LOADCHUNK", key, *first, *options), *(("CF.LOADCHUNK", key, *piece) for piece in rest)]


def flipped(pieces, number, at):
    """Returns the pieces with one bit of one of them changed."""
    changed = bytearray(pieces[number][1])
    changed[at] ^= 1
    return [*pieces[:number], [pieces[number][0], bytes(changed)], *pieces[number + 1 :]]


DAMAGES = {
    "magic": (lambda p: chunks("f", flipped(p, 0, 2)), "this is not the first chunk of a dump"),
    "header": (lambda p: chunks("f", flipped(p, 0, 30)), "the header was altered"),
    "table": (lambda p: chunks("f", flipped(p, 1, 5000)), "was altered"),
    "last byte": (lambda p: chunks("f", flipped(p, len(p) - 1, -1)), "was altered"),
    "newer snapshot": (lambda p: chunks("f", flipped(p, 0, 9)), "install that version of koel-valkey, or a later one"),
    "iterator": (lambda p: chunks("f", [[p[0][0] + 1, p[0][1]], *p[1:]]), "Invalid position"),
    "number in an option": (lambda p: chunks("f", p, "EXPANSION", "1e"), "Couldn't parse EXPANSION"),
    "unknown option": (lambda p: chunks("f", p, "AGE", "1"), "Unknown argument received"),
    "option without a value": (lambda p: chunks("f", p, "SEED"), "wrong number of arguments"),
    "missing chunk": (lambda p: chunks("f", p[:1] + p[2:]), "Invalid position"),
    "missing first chunk": (lambda p: chunks("f", p)[1:], "not found"),
    "chunk twice": (lambda p: chunks("f", p[:2] + p[1:]), "Invalid position"),
    "filter twice": (lambda p: chunks("f", p) * 2, "item exists"),
    "missing last chunk": (lambda p: [*chunks("f", p[:-1]), ("CF.ADD", "f", "a")], "a filter is being loaded"),
    "RedisBloom's chunk": (lambda p: [("CF.LOADCHUNK", "f", i, d) for i, d in chunks_of(fixture_named("rb_grown_e2.chunks"))[1:]], "not found"),
    "reservation twice": (lambda p: [("CF.RESERVE", "f", 1000)] * 2, "item exists"),
    "impossible reservation": (lambda p: [("CF.RESERVE", "f", 0)], "Capacity must be in the range"),
    "removal": (lambda p: [("CF.DEL", "f", "a")], "Not found"),
    "insertion": (lambda p: [("CF.INSERT", "f", "NOCREATE", "ITEMS", "a")], "not found"),
    "unique insertion": (lambda p: [("CF.INSERTNX", "f", "NOCREATE", "ITEMS", "a")], "not found"),
    "compaction": (lambda p: [("CF.COMPACT", "f")], "Cuckoo filter was not found"),
    "union": (lambda p: [("CF.ADD", "g", "a"), ("CF.UNION", "f", "g", "h")], "not found"),
    "other type": (lambda p: [("SET", "f", "text"), ("CF.ADD", "f", "a")], "WRONGTYPE"),
}


def test_a_damaged_log_stops_the_start(start, pieces):
    server = start(*LOG)
    server.stop()
    # Intact, the file loads.
    write_log(server, [("SET", "before", 1), *chunks("f", pieces, "EXPANSION", 1, "DELETED", 3), ("CF.ADD", "f", "a")])
    server.start()
    with server.connect() as call:
        all_exist(call, "f", ITEMS + ["a"])
        assert info(call, "f")["Number of items deleted"] == 3
    server.stop()
    for name, (commands, reason) in DAMAGES.items():
        write_log(server, [("SET", "before", 1), *commands(pieces), ("SET", "after", 1)])
        assert exit_code(server) == 1, name
        line = warning(server)
        assert 'of the key "f" failed: ' in line and reason in line, (name, line)
        assert ("start that version" in line) == (name == "newer snapshot") == ("Use a backup" not in line), line


def test_a_command_that_lacks_arguments_stops_the_start(start):
    """Valkey 9 finds this itself."""
    server = start(*LOG)
    server.stop()
    for command in [("CF.ADD", "f"), ("CF.ADD",), ("CF.INSERT", "f", "ITEMS")]:
        write_log(server, [command])
        assert exit_code(server) == 1 and "wrong number of arguments" in server.log(), command


def test_a_long_or_binary_name_in_the_log(start):
    server = start(*LOG)
    server.stop()
    for key, shown in [(b"\x00\n\"\xff", r'"\x00\n\"\xff"'), (b"k" * 5000, '"' + "k" * 100 + '…"')]:
        write_log(server, [("CF.DEL", key, "a")])
        assert exit_code(server) == 1 and shown in warning(server)
        assert warning(server).endswith('"A file that cannot be loaded".')


def test_debug_loadaof(start, pieces):
    server = start(*LOG)
    (path,) = (server.folder / "appendonlydir").glob("*.incr.aof")
    with server.connect() as call:
        add_all(call, "f", ITEMS[:100])
        same(call("DEBUG", "LOADAOF"), "OK")
        all_exist(call, "f", ITEMS[:100])
        with open(path, "ab") as file:
            file.write(b"".join(encode(*command) for command in chunks("g", flipped(pieces, 1, 5000))))
        with pytest.raises((ConnectionError, OSError)):
            call("DEBUG", "LOADAOF")
    server.process.wait(20)
    assert server.stop() == 1 and 'of the key "g" failed: ' in warning(server)


def test_a_half_loaded_filter_stays(start, pieces):
    """Clients may leave a load unfinished, so a file that ends in one is loaded. The load can be completed."""
    server = start(*LOG)
    server.stop()
    write_log(server, chunks("f", pieces[:-1]))
    server.start()
    with server.connect() as call:
        refused("ERR a filter is being loaded", call, "CF.EXISTS", "f", "item-1")
        assert b"koel_half_loaded_filters:1" in call("INFO", "koel")
        load(call, "f", pieces[-1:])
        all_exist(call, "f", ITEMS)


@pytest.fixture
def start_failing(binary):
    if wrapper() is None:
        pytest.skip("there is no C compiler for failing.c")
    own = []

    def start_one(*options):
        own.append(FailingServer(binary, *options))
        return own[-1]

    yield start_one
    for server in own:
        server.close()


LARGE = {
    "CF.LOADCHUNK": lambda pieces: chunks("f", pieces),
    "CF.RESERVE": lambda _: [("CF.RESERVE", "f", 100_000)],
    "CF.INSERT": lambda _: [("CF.RESERVE", "f", 1000), *(("CF.INSERT", "f", "ITEMS", *ITEMS[n : n + 500]) for n in range(0, 40_000, 500))],
    "CF.INSERTNX": lambda _: [("CF.RESERVE", "f", 1000), ("CF.INSERTNX", "f", "ITEMS", *ITEMS)],
    "CF.ADD": lambda _: [("CF.RESERVE", "f", 1000), *(("CF.ADD", "f", item) for item in ITEMS)],
    "CF.ADDNX": lambda _: [("CF.RESERVE", "f", 1000), *(("CF.ADDNX", "f", item) for item in ITEMS)],
}


@pytest.mark.parametrize("command", LARGE)
def test_too_little_memory_stops_the_start(start_failing, pieces, command):
    """With enough memory, the same file is loaded."""
    server = start_failing(*LOG)
    server.stop()
    write_log(server, LARGE[command](pieces))
    for least in (1000, 1400):
        server.failures_at_start = {"least": least, "most": ANY_NUMBER}
        code = exit_code(server)
        line = warning(server)
        assert code == 1 and f'{command.lower()} of the key "f" failed: ' in line and "give the server more memory" in line, line
        assert "Use a backup" not in line
    server.failures_at_start = {}
    server.start()
    with server.connect() as call:
        if command == "CF.RESERVE":
            assert info(call, "f")["Capacity"] == 100_000
        elif command.endswith("NX"):
            # Some new items collide with one that is present.
            assert 39_000 <= info(call, "f")["Number of items inserted"] <= 40_000
        else:
            all_exist(call, "f", ITEMS)


@pytest.mark.parametrize("command", ["RELOAD", "LOADAOF"])
def test_too_little_memory_to_load_again(start_failing, command):
    server = start_failing(*LOG)
    with server.connect() as call:
        add_all(call, "f", ITEMS)
        with server.failing(least=1400), pytest.raises((ConnectionError, OSError)):
            call("DEBUG", command)
            server.process.wait(20)
    assert server.process.wait(20) == 1 and "give the server more memory" in warning(server)
    server.start()
    with server.connect() as call:
        all_exist(call, "f", ITEMS)


def test_too_little_memory_for_copies(start_failing, binary):
    """COPY and RESTORE are in the file, too."""
    server = start_failing(*LOG)
    with server.connect() as call:
        call("CF.RESERVE", "f", 100_000)
        add_all(call, "f", ITEMS[:100])
        same(call("COPY", "f", "g"), 1)
        same(call("RESTORE", "h", 0, call("DUMP", "f")), "OK")
        before = states(call)
    reasons = Counter()
    for passed in range(1000):
        server.stop()
        server.failures_at_start = {"least": 1000, "most": ANY_NUMBER, "passed": passed, "failing": 1}
        try:
            server.start()
        except AssertionError:
            assert server.stop() == 1
            line = warning(server)
            assert "give the server more memory" in line, line
            reasons.update(re.findall('cf.reserve of the key "f"|"f" cannot be copied|"h" cannot be read', line))
            (server.folder / "log").unlink()
            continue
        if not server.failed():
            break
        # The filter was loaded without the memory that failed.
        with server.connect() as call:
            assert not differences(states(call), before)
    assert len(reasons) == 3 and not server.failed(), reasons


def test_the_same_commands_of_a_client(server, call, pieces):
    """A client gets an error for each, and the server goes on."""
    for name, (commands, reason) in DAMAGES.items():
        call("FLUSHALL")
        replies = [reply for reply in call.pipeline(commands(pieces)) if isinstance(reply, Refusal)]
        assert any(reason in str(reply) for reply in replies), (name, replies)
    assert server.process.poll() is None


class Primary:
    """A primary that sends any bytes as its RDB file, and any commands after it. It closes the connection after `most` bytes of the
    file, if that is a number."""

    def __init__(self, rdb, commands=(), most=None):
        self.rdb, self.stream, self.most = rdb, b"".join(encode(*command) for command in commands), most
        self.port, self.syncs = free_port(), 0
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                replica, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(replica,), daemon=True).start()

    def serve(self, replica):
        with replica, replica.makefile("rb") as lines:
            try:
                while True:
                    count = int(lines.readline()[1:] or 0)
                    words = [lines.read(int(lines.readline()[1:]) + 2)[:-2] for _ in range(count)]
                    if not words:
                        return
                    if words[0].upper() == b"PSYNC":
                        self.syncs += 1
                        name = hashlib.sha1(b"primary").hexdigest()
                        replica.sendall(b"+FULLRESYNC %b 0\r\n$%d\r\n" % (name.encode(), len(self.rdb)))
                        if self.most is not None:
                            replica.sendall(self.rdb[: self.most])
                            return
                        replica.sendall(self.rdb + self.stream)
                    elif words[:2] != [b"REPLCONF", b"ACK"]:
                        replica.sendall(b"+PONG\r\n" if words[0] == b"PING" else b"+OK\r\n")
            except (OSError, ValueError):
                return

    def close(self):
        self.listener.close()


@pytest.fixture
def primary_with():
    own = []

    def make(*arguments):
        own.append(Primary(*arguments))
        return own[-1]

    yield make
    for primary in own:
        primary.close()


def rdb_file(start):
    """Returns an RDB file with one filter, without checksum and compression."""
    server = start("rdbchecksum no", "rdbcompression no")
    with server.connect() as call:
        add_all(call, "f", ITEMS)
        call("SAVE")
    return (server.folder / "dump.rdb").read_bytes()


CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def newer(rdb):
    """Returns the RDB file with the next version of the module's format. The version is in the last bits of the type's id."""
    name = 0
    for character in "koel-cuck":
        name = name << 6 | CHARACTERS.index(character)
    old, new = ((name << 10 | version).to_bytes(8, "big") for version in (1, 2))
    assert rdb.count(old) == 1
    return rdb.replace(old, new)


def damaged(rdb):
    changed = bytearray(rdb)
    changed[len(rdb) // 2] ^= 1
    return bytes(changed)


RDB_DAMAGES = {"table": (damaged, "was altered"), "newer format": (newer, "install that version of koel-valkey, or a later one")}


@pytest.mark.parametrize("damage", RDB_DAMAGES)
@pytest.mark.parametrize("way", ["start", "preamble", "disabled", "swapdb", "on-empty-db"])
def test_a_damaged_value(start, primary_with, damage, way):
    """In an RDB file, in an append-only file that begins with one, and in the full copy of a primary, which a replica reads from a
    file or from its socket. (Without the module, some servers would end with exit code 0.)"""
    change, reason = RDB_DAMAGES[damage]
    rdb = rdb_file(start)
    options = ["appendonly yes"] if way == "preamble" else [f"repl-diskless-load {way}"]
    server = start("rdbchecksum no", *options if way != "start" else [])
    if way in ("start", "preamble"):
        server.stop()
        write_log(server, [], change(rdb)) if way == "preamble" else (server.folder / "dump.rdb").write_bytes(change(rdb))
        assert exit_code(server) == 1
    else:
        primary = primary_with(change(rdb))
        with server.connect() as call:
            call("REPLICAOF", "127.0.0.1", primary.port)
        assert server.process.wait(30) == 1
    line = warning(server)
    assert 'the cuckoo filter of the key "f" cannot be read: ' in line and reason in line
    assert ("start that version" in line) == (damage == "newer format")
    if way in ("start", "preamble"):
        assert "cannot load its file completely" in line
        return
    assert "cannot load the copy of its primary completely" in line and ("another copy" in line) == (damage == "table")
    server.stop()
    # As the message says: a copy that was received as a file is still there.
    (server.folder / "dump.rdb").unlink(missing_ok=True)
    primary.rdb = rdb
    server.start()
    with server.connect() as call:
        call("REPLICAOF", "127.0.0.1", primary.port)
        wait_until(lambda: is_linked(server), 30, server.log)
        all_exist(call, "f", ITEMS)


@pytest.mark.parametrize("way", ["disabled", "swapdb", "on-empty-db"])
def test_a_connection_that_breaks_while_a_filter_is_copied(start, primary_with, way):
    """The replica tries again until it has the whole copy. With swapdb, the server stores the copy in a file, too: a module must
    support its alternative."""
    rdb = rdb_file(start)
    primary = primary_with(rdb, (), len(rdb) // 2)
    server = start(f"repl-diskless-load {way}")
    with server.connect() as call:
        call("REPLICAOF", "127.0.0.1", primary.port)
    wait_until(lambda: primary.syncs >= 3 or server.process.poll() is not None, 30, server.log)
    assert server.process.poll() is None, server.log()
    assert ('the cuckoo filter of the key "f" cannot be read' in server.log()) == (way == "on-empty-db")
    primary.most = None
    wait_until(lambda: is_linked(server), 30, server.log)
    with server.connect() as call:
        all_exist(call, "f", ITEMS)
    assert "koel: the server ends" not in server.log()


def of_another_kind(rdb):
    """Returns the RDB file with one changed byte: a number of the filter is marked as signed. The server finds that out when the
    module reads it, but its own check of the file does not."""
    at = rdb.index(b"KOEL\r\n\x1a\n")
    # The length of the snapshot as an unsigned number, then its first piece as a string; both numbers have four bytes.
    assert rdb[at - 12 : at - 10] == b"\x02\x80" and rdb[at - 6 : at - 4] == b"\x05\x80", rdb[at - 16 : at]
    return rdb[: at - 12] + b"\x01" + rdb[at - 11 :]


UNREADABLE = [("truncated", "start"), ("truncated", "disabled"), ("kind", "start"), ("kind", "disabled"), ("kind", "on-empty-db")]


@pytest.mark.parametrize("damage, way", UNREADABLE)
def test_an_rdb_file_that_the_server_cannot_read(start, primary_with, damage, way):
    """It is the server that reports the damage to the module. The exit code is 1, and the log names the key. A file that the server
    has received whole is no broken connection."""
    rdb = rdb_file(start)
    rdb = rdb[: len(rdb) // 2] if damage == "truncated" else of_another_kind(rdb)
    server = start("rdbchecksum no", *([] if way == "start" else [f"repl-diskless-load {way}"]))
    if way == "start":
        server.stop()
        (server.folder / "dump.rdb").write_bytes(rdb)
        assert exit_code(server) == 1
    else:
        primary = primary_with(rdb)
        with server.connect() as call:
            call("REPLICAOF", "127.0.0.1", primary.port)
        assert server.process.wait(30) == 1
    line = server.log() if way == "on-empty-db" else warning(server)
    assert 'the cuckoo filter of the key "f" cannot be read: ' in line
    assert ("unexpected end of file" if damage == "truncated" else "it is cut off") in line


def is_linked(server):
    try:
        with server.connect() as call:
            return replication(call)["master_link_status"] == "up"
    except (OSError, Refusal):
        return False


def test_the_same_commands_in_the_stream_of_a_primary(start, primary_with, pieces):
    """A replica logs each error, and goes on."""
    commands = [command for _, (each, _) in DAMAGES.items() for command in [("FLUSHALL",), *each(pieces)]]
    primary = primary_with(rdb_file(start), [("SELECT", 0), *commands, ("SET", "last", 1)])
    server = start()
    with server.connect() as call:
        call("REPLICAOF", "127.0.0.1", primary.port)
        wait_until(lambda: is_linked(server) and call("EXISTS", "last"), 30, server.log)
    assert server.process.poll() is None


def test_the_smallest_capacities_are_loaded_and_replicated(start):
    """BUCKETSIZE is not replicated, so the capacity is not compared with it again."""
    server = start(*LOG)
    with server.connect() as call:
        same(call("CF.RESERVE", "f", 2, "BUCKETSIZE", 1, "EXPANSION", 0), "OK")
        assert insert(call, "f", ["a", "b", "c"]) == [1, 1, -1]
        before = states(call)
    server.restart()
    with server.connect() as call:
        assert states(call) == before
