"""Upgrade, rollback and removal, as docs/VALKEY.md describes them."""

import shutil
import signal
import socket
import subprocess
import threading

import pytest

from filters import add_all, all_exist, items
from servers import MODULE, wait_until
from wire import READERS, Connection, Refusal, same

NAME = b"koel-cuck"
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture
def module(tmp_path):
    """A copy of the module's file, which a test may replace."""
    return shutil.copy(MODULE, tmp_path / "module.so")


def fails_to_start(server, *options, module=None):
    """Starts the server again with other options. Returns its exit code and its log."""
    server.stop()
    for name in ("log", "output"):
        (server.folder / name).unlink(missing_ok=True)
    server.options, server.module = list(options), module
    with pytest.raises(AssertionError, match="ended with"):
        server.start()
    return server.process.returncode, server.log()


def test_replicas_first(start, module):
    """Each node restarts with the new file, and no acknowledged item is missing."""
    old = start(tcp=True, module=module)
    new = start(f"replicaof 127.0.0.1 {old.port}", tcp=True, module=module)
    with old.connect() as call:
        add_all(call, "f", items("before-", 5000))
        same(call("WAIT", 1, 10_000), 1)
    subprocess.run(["install", "-m", "755", MODULE, module], check=True)
    new.restart()
    with old.connect() as call, new.connect() as other:
        wait_until(lambda: b"master_link_status:up" in other("INFO", "replication"), 30, new.log)
        add_all(call, "f", items("between-", 500))
        same(call("FAILOVER"), "OK")
        wait_until(lambda: other("ROLE")[0] == b"master", 30, new.log)
        add_all(other, "f", items("after-", 500))
    old.restart(f"replicaof 127.0.0.1 {new.port}")
    with old.connect() as call:
        wait_until(lambda: b"master_link_status:up" in call("INFO", "replication"), 30, old.log)
        all_exist(call, "f", items("before-", 5000) + items("between-", 500) + items("after-", 500))


def test_a_loaded_file_is_replaced_by_install_but_not_by_cp(start, module):
    server = start(module=module)
    with server.connect() as call:
        subprocess.run(["install", "-m", "755", MODULE, module], check=True)
        same(call("CF.ADD", "f", "a"), 1)
    server.restart()
    with server.connect() as call:
        # As `cp` does: the same file gets other content, here the same bytes.
        subprocess.run(["cp", MODULE, module], check=True)
        with pytest.raises((OSError, AssertionError)):
            for n in range(1000):
                call("CF.ADD", "f", n)
    assert server.process.wait(20) == -signal.SIGSEGV


def test_unloading_is_refused(start):
    with start().connect() as call:
        with pytest.raises(Refusal, match="the module exports one or more module-side data types, can't unload"):
            call("MODULE", "UNLOAD", "koel")


def type_id(version):
    """Returns the bytes of the type and its version in RDB files."""
    number = 0
    for letter in NAME:
        number = number << 6 | LETTERS.index(letter)
    return b"\x81" + (number << 10 | version).to_bytes(8, "big")


def newer_file(server):
    """Makes the server save a file, and returns it as if a newer module had written it. The server must write no checksum."""
    with server.connect() as call:
        add_all(call, "f", items("item-", 1000))
        call("SAVE")
    data = (server.folder / "dump.rdb").read_bytes()
    assert data.count(type_id(1)) >= 1
    return data.replace(type_id(1), type_id(2))


REFUSAL = 'the cuckoo filter of the key "f" cannot be read: its format has version 2, and this release reads version 1'


def test_a_newer_file_is_refused(start):
    """The server ends, and the file stays as it is."""
    server = start("rdbchecksum no")
    data = newer_file(server)
    server.stop()
    (server.folder / "dump.rdb").write_bytes(data)
    code, log = fails_to_start(server, "rdbchecksum no", module=MODULE)
    assert code == 1 and REFUSAL in log, log
    assert (server.folder / "dump.rdb").read_bytes() == data


def test_a_newer_primary_is_refused(start):
    """The replica ends."""
    replica = start("rdbchecksum no")
    data = newer_file(replica)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, data), daemon=True).start()
        with replica.connect() as call:
            call("REPLICAOF", "127.0.0.1", listener.getsockname()[1])
        assert replica.process.wait(30) == 1
    assert REFUSAL in replica.log()


class Accepted(Connection):
    """The server's side of a connection."""

    def __init__(self, accepted):
        self.socket, self.stream = accepted, accepted.makefile("rb")

    def command(self):
        line = self.stream.readline()
        while line == b"\n":  # A replica that is loading keeps the connection alive.
            line = self.stream.readline()
        return READERS[line[:1]](self, line[1:-2]) if line else None


def serve(listener, data):
    """Plays a primary: sends every replica the file."""
    try:
        while True:
            client = Accepted(listener.accept()[0])
            while words := client.command():
                if words[0].upper() == b"PSYNC":
                    client.send(b"+FULLRESYNC %b 0\r\n$%d\r\n%b" % (b"a" * 40, len(data), data))
                else:
                    client.send(b"+PONG\r\n" if words[0].upper() == b"PING" else b"+OK\r\n")
    except OSError:
        pass


NO_TYPE = "The RDB file contains module data I can't load: no matching module type 'koel-cuck'"


@pytest.mark.parametrize("preamble", [None, "yes", "no"])
def test_files_without_the_module(start, preamble):
    """The log names the cause. With an RDB file, the exit code is 0. The files stay, and a server with the module reads them."""
    options = [f"aof-use-rdb-preamble {preamble}", "appendonly yes"] if preamble else []
    server = start(*options)
    with server.connect() as call:
        call("CF.ADD", "f", "a")
        call("SET", "s", "1")
        if preamble:
            call("BGREWRITEAOF")
            wait_until(lambda: all(b"aof_rewrite_%b:0" % word in call("INFO", "persistence") for word in (b"in_progress", b"scheduled")))
        else:
            call("SAVE")
    code, log = fails_to_start(server, *options)
    assert code == (1 if preamble else 0)
    assert (NO_TYPE if preamble != "no" else "nknown command 'CF.LOADCHUNK'") in log, log
    server.module = MODULE
    server.start()
    with server.connect() as call:
        same(call("CF.EXISTS", "f", "a"), 1)


def test_a_command_of_a_deleted_key_without_the_module(start):
    server = start("appendonly yes")
    with server.connect() as call:
        call("CF.ADD", "f", "a")
        call("DEL", "f")
    code, log = fails_to_start(server, "appendonly yes")
    assert code == 1 and "nknown command 'CF.RESERVE'" in log, log


@pytest.mark.parametrize("option, words", [
    ("koel.max-bytes 1gb", "Module Configuration detected without loadmodule directive"),
    ("aclfile {}", "Unknown command or category name in ACL"),
])
def test_settings_and_users_without_the_module(start, tmp_path, option, words):
    users = tmp_path / "users.acl"
    users.write_text("user default on nopass ~* &* +@all\nuser writer on nopass ~* -@all +cf.add\n")
    code, log = fails_to_start(start(), option.format(users))
    assert code == 1 and words in log, log
