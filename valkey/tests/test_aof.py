"""valkey/aof.py: an append-only file without the keys at which the server stops."""

import contextlib
import io
import shutil
import struct
import subprocess
import sys

import redis

from filters import add_all, all_exist, chunks_of, fixture_named, info, items, load, states
from servers import ROOT
from test_imports import remaining
from test_loading import CHARACTERS, LOG, exit_code, warning, write_log
from test_page import PAGE, blocks
from test_persistence import rewrite, with_checksum
from wire import encode, same

SCRIPT = ROOT / "valkey/aof.py"
NAME = "rb_grown_e2.chunks"


def run(source, target, *options, code=0):
    done = subprocess.run(
        [sys.executable, SCRIPT, *options, source, target], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done
    return done.stdout + done.stderr


def replace(server, *options):
    """Replaces the folder of a stopped server by a copy."""
    folder = server.folder / "appendonlydir"
    output = run(folder, server.folder / "new/copy", *options)
    folder.rename(server.folder / "original")
    (server.folder / "new/copy").rename(folder)
    return output


def value_of(kind):
    """Returns the beginning of a value of a module's type, with the end of what DUMP returns."""
    name = 0
    for character in kind:
        name = name << 6 | CHARACTERS.index(character)
    value = b"\x07\x81" + (name << 10 | 2).to_bytes(8, "big") + b"\x02\x0a\x02\x08"
    return with_checksum(value + struct.pack("<HQ", 10, 0))


def of_redisbloom(koels_value):
    """Returns the commands of a file as RedisBloom 2.8.2 writes it, with keys of all its types."""
    others = [("BF.LOADCHUNK", "bloom", 1, b"\x01\x00"), ("BF.LOADCHUNK", "bloom", 145, b"\x00")]
    others += [("RESTORE", f"other {kind}", 0, value_of(kind)) for kind in ("TopK-TYPE", "CMSk-TYPE", "TDIS-TYPE")]
    own = [("CF.LOADCHUNK", NAME, *chunk) for chunk in chunks_of(fixture_named(NAME))]
    later = [("TOPK.ADD", "other TopK-TYPE", "a"), ("CMS.INCRBY", "other CMSk-TYPE", "a", 1), ("TDIGEST.ADD", "other TDIS-TYPE", 1)]
    later += [("BF.ADD", "bloom", "a"), ("bf.madd", "bloom", "a"), ("PEXPIREAT", "bloom", 1 << 42), ("DEL", "bloom", "missing")]
    return [*own, *others, ("RESTORE", "own", 0, koels_value), ("SET", "text", "t"), ("CF.ADDNX", NAME, "new"), *later]


def test_a_file_with_redisblooms_other_types(start):
    """The server does not start with it. Without the other types, it does, and has everything else."""
    server = start(*LOG)
    with server.connect() as call:
        call("CF.ADD", "own", "a")
        value = call("DUMP", "own")
    server.stop()
    commands = of_redisbloom(value)
    others = ("BF.", "TOPK.", "CMS.", "TDIGEST.", "RESTORE")
    for kept in ("BF.LOADCHUNK", "RESTORE", "TOPK.ADD"):
        write_log(server, [words for words in commands if words[0] == kept or not words[0].upper().startswith(others)])
        assert exit_code(server) == 1, kept
    write_log(server, commands)
    output = replace(server, "--without-other-types")
    assert "left out: 1 BF.ADD, 2 BF.LOADCHUNK, 1 BF.MADD, 1 CMS.INCRBY, 3 RESTORE, 1 TDIGEST.ADD, 1 TOPK.ADD" in output
    server.start()
    with server.connect() as call:
        assert set(call("KEYS", "*")) == {NAME.encode(), b"own", b"text"}
        all_exist(call, NAME, [*remaining(fixture_named(NAME)), b"new"])
        same(call("CF.EXISTS", "own", "a"), 1)


def test_the_page_beside_redisbloom(start_redisbloom, start, tmp_path):
    """The commands of docs/VALKEY.md find the keys of other types on a server with RedisBloom, and its file loads without them."""
    find, copy = [text for heading, _, text in blocks(PAGE.read_text()) if heading == "Keys of RedisBloom's other types"]
    old = start_redisbloom(*LOG)

    def found():
        printed = io.StringIO()
        with redis.Redis(unix_socket_path=old.address) as client, contextlib.redirect_stdout(printed):
            exec(find, {"old": client})  # pylint: disable=exec-used
        return printed.getvalue().split()

    with old.connect() as call:
        assert found() == []
        for command in (
            ("CF.ADD", "own", "a"), ("BF.ADD", "bloom", "a"), ("CMS.INITBYDIM", "sketch", 10, 2), ("TOPK.RESERVE", "top", 3),
            ("TDIGEST.CREATE", "digest"), ("SET", "text", "t"),
        ):
            call(*command)
        assert found() == ["b'bloom'", "b'sketch'", "b'top'", "b'digest'"]
        rewrite(call)
    old.stop()
    server = start(*LOG)
    server.stop()
    shutil.copytree(old.folder / "appendonlydir", tmp_path / "appendonlydir")
    command = copy.replace("python3 valkey/aof.py", f"'{sys.executable}' '{SCRIPT}'")
    subprocess.run(["bash", "-euc", command], cwd=tmp_path, timeout=60, check=True)
    shutil.rmtree(server.folder / "appendonlydir")
    (tmp_path / "new/appendonlydir").rename(server.folder / "appendonlydir")
    server.start()
    with server.connect() as call:
        assert set(call("KEYS", "*")) == {b"own", b"text"}
        same(call("CF.EXISTS", "own", "a"), 1)


def test_a_damaged_filter_is_left_out(start):
    """As the log says. All other keys are as before, in every file of the folder."""
    server = start(*LOG)
    with server.connect() as call:
        add_all(call, "bad \xff key", items("item-", 20_000))
        add_all(call, "good", items("item-", 20_000))
        load(call, NAME, chunks_of(fixture_named(NAME)))
        rewrite(call)
        call("CF.ADD", "bad \xff key", "later")
        call("CF.ADD", "good", "later")
        call("SELECT", 3)
        call("SET", "bad \xff key", "a text")
        call("SELECT", 0)
        expected = states(call)
    server.stop()
    (base,) = (server.folder / "appendonlydir").glob("*.base.aof")
    data = bytearray(base.read_bytes())
    # In the middle of the filter's first chunk.
    data[data.index(encode("CF.LOADCHUNK", "bad \xff key")[4:]) + 5000] ^= 1
    base.write_bytes(data)
    assert exit_code(server) == 1 and r'the key "bad \xc3\xbf key" failed' in warning(server)
    replace(server, "--without-key", "bad \xff key")
    server.start()
    with server.connect() as call:
        del expected["bad \xff key".encode()]
        assert states(call) == expected
        call("SELECT", 3)
        same(call("GET", "bad \xff key"), b"a text")


def test_what_depends_on_a_filter_that_is_left_out(start):
    """The rest of the file loads, the script names the keys that are missing or incomplete, and no other key changes."""
    server = start(*LOG)
    server.stop()
    rest = [("CF.ADD", key, item) for key in ("all", "other", "copied") for item in (key, "shared")]
    commands = [
        ("SELECT", 2), ("SET", "replaced", 1), ("SELECT", 0), ("CF.ADD", "seen", "lost"), ("CF.ADD", "seen", "shared"), *rest,
        # A union with one of two sources, and unions without any.
        ("CF.UNION", "all", "seen", "other"), ("CF.DEL", "all", "lost"), ("CF.UNION", "all", "seen"), ("CF.DEL", "other", "shared"),
        ("CF.UNION", "new", "seen"), ("CF.ADD", "new", "n"), ("CF.DEL", "new", "lost"), ("CF.UNION", "other", "new", "copied"),
        # Copies, with what they replace and what follows.
        ("COPY", "seen", "second"), ("CF.DEL", "second", "lost"), ("COPY", "seen", "copied", "REPLACE"), ("CF.DEL", "copied", "lost"),
        ("COPY", "second", "replaced", "DB", 2, "REPLACE"), ("RENAMENX", "second", "third"), ("CF.DEL", "third", "lost"),
        ("COPY", "all", "unions copy"), ("CF.DEL", "unions copy", "lost"),
        ("SET", "old", 1), ("RENAME", "seen", "old"), ("CF.DEL", "old", "lost"),
        # New values with these names.
        ("SET", "seen", "a text"), ("RENAME", "seen", "text"), ("DEL", "third"), ("CF.ADD", "third", "3"), ("PEXPIREAT", "third", 1 << 42),
        # A filter that gets the name, and loses it.
        ("CF.ADD", "late", "a"), ("RENAME", "late", "seen"), ("CF.DEL", "seen", "a"),
        # Another database.
        ("SELECT", 1), ("SET", "seen", "another text"), ("RENAME", "seen", "moved"), ("CF.ADD", "third", "3"), ("MOVE", "third", 3),
        ("SELECT", 3), ("CF.DEL", "third", "3"), ("CF.ADD", "third", "4"),
    ]  # fmt: skip
    write_log(server, commands)
    server.start()
    server.stop()
    write_log(server, [("CF.RESERVE", "seen", 0), *commands])
    assert exit_code(server) == 1
    mistyped = run(server.folder / "appendonlydir", server.folder / "mistyped", "--without-key", "sen", code=1)
    assert "--without-key: b'sen' given, but no command in these files is of a filter with this key" in mistyped
    output = replace(server, "--without-key", "seen")
    server.start()
    left_out = ("new", "second", "copied", "third", "old")
    for key in left_out:
        assert f'the key "{key}" of database 0 is left out, too' in output
    for key in ("all", "other", "unions copy"):
        assert f'the key "{key}" of database 0 is incomplete' in output
    assert 'the key "replaced" of database 2 is left out, too' in output
    assert len(output.splitlines()) == 10, output
    with server.connect() as call:
        assert set(call("KEYS", "*")) == {b"all", b"other", b"unions copy", b"text", b"third"}
        for key in ("all", "unions copy"):
            assert [call("CF.EXISTS", key, item) for item in ("all", "other", "shared", "lost")] == [1, 1, 1, 0]
        assert [call("CF.EXISTS", "other", item) for item in ("other", "copied", "n")] == [1, 1, 0]
        same(call("GET", "text"), b"a text")
        same(call("CF.EXISTS", "third", "3"), 1)
        call("SELECT", 1)
        assert call("KEYS", "*") == [b"moved"]
        call("SELECT", 2)
        assert call("KEYS", "*") == []
        call("SELECT", 3)
        assert [call("CF.EXISTS", "third", item) for item in ("3", "4")] == [0, 1]


def test_unions_without_a_filter_that_is_left_out(start):
    """A union goes on without it, however its destination came to be, and names that have new values are not left out."""
    server = start(*LOG)
    with server.connect() as call:
        call("CF.INSERT", "other", "ITEMS", *items("other-", 5))
        other = call("DUMP", "other")
    server.stop()
    commands = [
        *(("CF.ADD", "seen", item) for item in items("seen-", 3)), *(("CF.ADD", "other", item) for item in items("other-", 5)),
        # A missing destination that is its own source.
        ("CF.UNION", "only", "only", "seen"), ("CF.ADD", "only", "lost"),
        # Other sources follow, also on a copy.
        ("CF.UNION", "both", "both", "seen"), ("CF.UNION", "both", "seen"), ("CF.UNION", "both", "both", "other"),
        ("CF.ADD", "both", "own"), ("CF.UNION", "both", "both", "seen"),
        ("COPY", "seen", "copy"), ("CF.UNION", "copy", "seen"), ("CF.UNION", "copy", "other", "both"),
        # New values.
        ("COPY", "seen", "restored"), ("RESTORE", "restored", 0, other, "REPLACE"), ("CF.ADD", "restored", "new"),
        ("CF.UNION", "incomplete", "seen", "other"), ("RESTORE", "incomplete", 0, other, "REPLACE"), ("CF.UNION", "whole", "incomplete"),
        ("COPY", "seen", "text"), ("MSET", "unrelated", 1, "text", "value"), ("RENAME", "text", "renamed"),
    ]  # fmt: skip
    write_log(server, commands)
    server.start()
    server.stop()
    output = replace(server, "--without-key", "seen")
    server.start()
    expected = [("only", "left out, too"), ("both", "incomplete"), ("copy", "incomplete"), ("restored", "left out, too")]
    expected += [("incomplete", "incomplete"), ("text", "left out, too")]
    for line, (key, state) in zip(output.splitlines()[1:], expected, strict=True):
        assert line.startswith(f'the key "{key}" of database 0 is {state}'), line
    with server.connect() as call:
        filters = {b"other": 5, b"both": 6, b"copy": 6, b"restored": 6, b"incomplete": 5, b"whole": 5}
        assert set(call("KEYS", "*")) == {*filters, b"unrelated", b"renamed"}
        assert {key: info(call, key)["Number of items inserted"] for key in filters} == filters
        for key in filters:
            all_exist(call, key, items("other-", 5))
        assert [call("CF.EXISTS", key, "own") for key in ("both", "copy")] == [1, 1]
        assert call("CF.EXISTS", "restored", "new") == 1
        same(call("GET", "renamed"), b"value")


def test_a_key_that_only_a_renaming_names(start):
    server = start(*LOG)
    with server.connect() as call:
        call("CF.ADD", "late", "a")
        call("RENAME", "late", "seen")
        call("SET", "text", "t")
    server.stop()
    replace(server, "--without-key", "seen")
    server.start()
    with server.connect() as call:
        assert call("KEYS", "*") == [b"text"]


def test_nothing_else_changes(start):
    """Without options, the copy is equal, times and incomplete commands at the end apart."""
    server = start(*LOG, "aof-timestamp-enabled yes")
    with server.connect() as call:
        add_all(call, "f", items("item-", 3000))
        rewrite(call)
        add_all(call, "f", items("more-", 3000))
        call("SET", "binary", bytes(range(256)))
    server.stop()
    folder = server.folder / "appendonlydir"
    run(folder, server.folder / "copy")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(files) == 3 and {path.name: path.read_bytes() for path in (server.folder / "copy").iterdir()} == files
    (last,) = folder.glob("*.incr.aof")
    last.write_bytes(files[last.name] + encode("CF.ADD", "f", "cut off")[:-5])
    # What a crash leaves while the server replaces its manifest.
    (folder / "temp-appendonly.aof.manifest").write_text("file missing seq 1 type b\n")
    assert "a command is cut off" in run(folder, server.folder / "second")
    assert (server.folder / "second" / last.name).read_bytes() == files[last.name]
    # The file of a server before Redis 7.
    run(last, server.folder / "file")
    assert (server.folder / "file").read_bytes() == files[last.name]


def test_refusals(start, tmp_path):
    server = start("appendonly yes")
    with server.connect() as call:
        add_all(call, "f", items("item-", 300))
        rewrite(call)
    server.stop()
    folder = server.folder / "appendonlydir"
    assert "CONFIG SET aof-use-rdb-preamble no and BGREWRITEAOF" in run(folder, tmp_path / "copy", code=2)
    assert not (tmp_path / "copy").exists()
    assert "exists" in run(folder, tmp_path, code=2) and tmp_path.exists()
    assert "no manifest" in run(tmp_path, tmp_path / "other", code=2)
    file = tmp_path / "file"
    for content in (b"*1\r\n$4\r\nPING\r\nrubbish\r\n*1\r\n", b"*x\r\n" + b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$-1\r\n*1\r\n$4\r\nPING\r\n"):
        file.write_bytes(content)
        assert "redis-check-aof" in run(file, tmp_path / "target", code=2)
        assert not (tmp_path / "target").exists()
