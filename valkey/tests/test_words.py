"""Errors are in the words of commands, options and settings. The library's functions and parameters, which no client knows, are in
none of them."""

import re
import struct
import subprocess

import pytest
import xxhash

from filters import add_all, chunks_of, dump, fixture_named, insert, items, load, make_large, refused
from servers import COMMAND
from test_loading import newer
from test_persistence import with_checksum
from wire import Refusal, same

WORDS_OF_THE_LIBRARY = re.compile(
    r"max_capacity|(?<!koel\.)max[_ -]bytes|builder?\b.*\bwith\b|Builder|Elastic|CuckooFilter|FilterView|SharedFilter|insert_unique|insert_"
    r"|from_bytes|over_prefix|over_with|read_from|load_with|from_id|AnyHasher|Xxh3|the given hasher|generation|this release of koel reads"
)
HEADER_BYTES = 64


def with_field(data, at, value):
    """Returns the snapshot with another byte in its header, and the header's checksum computed anew."""
    changed = bytearray(data)
    changed[at] = value
    checksum_at = next(
        at for at in range(0, 128, 8) if struct.unpack_from("<Q", data, at)[0] == xxhash.xxh3_64_intdigest(data[:at]) and at
    )
    struct.pack_into("<Q", changed, checksum_at, xxhash.xxh3_64_intdigest(bytes(changed[:checksum_at])))
    return bytes(changed)


def built(tmp_path, *options):
    """Returns a file that the command `koel` has built."""
    path = tmp_path / "built.koel"
    path.unlink(missing_ok=True)
    subprocess.run([COMMAND, "build", *options, "-o", path, "-"], input=b"a\nb\n", check=True, capture_output=True, timeout=60)
    return path.read_bytes()


def errors(call, commands):
    """Returns the errors of the commands. Asserts that there is one."""
    found = [str(reply) for reply in call.pipeline(commands) if isinstance(reply, Refusal)]
    assert found, commands
    return found


def loading(key, data, parts=1):
    ends = [len(data) * part // parts for part in range(1, parts + 1)]
    return [("CF.LOADCHUNK", key, end, data[start:end]) for start, end in zip([0, *ends], ends)]


def test_dumps(call, tmp_path):
    """One error of each kind that reading a snapshot has."""
    add_all(call, "f", items("item-", 5000) + items("item-", 100) * 20)
    data = call("CF.SNAPSHOT", "f")
    imported = chunks_of(fixture_named("rb_grown_e2.chunks"))
    found = []
    for at in range(HEADER_BYTES):
        for value in (data[at] ^ 1, data[at] ^ 0x80, 255):
            if value == data[at]:
                continue
            changed = bytearray(data)
            changed[at] = value
            for bytes_ in (bytes(changed), with_field(data, at, value)):
                call("DEL", "g")
                found += [str(reply) for reply in call.pipeline(loading("g", bytes_)) if isinstance(reply, Refusal)]
    for at in range(HEADER_BYTES, len(data), len(data) // 300):
        call("DEL", "g")
        changed = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        found += [str(reply) for reply in call.pipeline(loading("g", changed)) if isinstance(reply, Refusal)]
    fixed, grown = built(tmp_path, "--capacity", "1000"), built(tmp_path, "--grow")
    for commands in [
        loading("g", data + bytes(100)), loading("g", fixed), loading("g", grown[:-1] + b"x"), loading("g", b""),
        [("CF.LOADCHUNK", "g", iterator, chunk) for iterator, chunk in imported[1:]],
        [("CF.LOADCHUNK", "h", iterator, chunk) for iterator, chunk in imported + imported[-1:]],
        [("CF.LOADCHUNK", "i", iterator, chunk[:-1]) for iterator, chunk in imported],
        [("CF.LOADCHUNK", "j", iterator + n, chunk) for n, (iterator, chunk) in enumerate(imported)],
        [("CF.LOADCHUNK", "k", 1, b"x" * length) for length in (1, 37, 38, 39)],
        loading("l", b"KOEL+CF\n" + b"\xff" * 8), loading("l", b"KOEL+CF\n\x10"),
        loading("m", b"KOEL+CF\n" + struct.pack("<Q", 40) + bytes(40) + data),
    ]:
        call("DEL", "g")
        found += errors(call, commands)
    kinds = {re.sub(r"\b(0x[0-9a-f]+|[0-9]+)\b", "n", error) for error in found}
    assert len(kinds) > 20, kinds
    for error in kinds:
        assert not WORDS_OF_THE_LIBRARY.search(error), error
    for words in (
        "its hash function is not xxh3; build the filter anew with: koel build --grow",
        "a filter of fixed size; the module loads filters that grow",
        "install that version of koel-valkey, or a later one", "the table of a shard was altered", "the header was altered",
    ):
        assert any(words in error for error in kinds), (words, kinds)


def test_the_remedies_for_dumps(call, tmp_path):
    """`koel build --grow` builds a file that is loaded."""
    for command in loading("f", built(tmp_path, "--grow")):
        same(call(*command), "OK")
    same(call("CF.MEXISTS", "f", "a", "b"), [1, 1])


def test_values(server, call):
    """Messages in the log about RESTORE."""
    add_all(call, "f", items("item-", 1000))
    payload = call("DUMP", "f")
    for changed in (with_checksum(newer(payload)), with_checksum(payload[:400] + payload[410:])):
        refused("", call, "RESTORE", "g", 0, changed)
        (line,) = [line for line in (server.folder / "log").read_text(errors="replace").splitlines() if 'key "g" cannot be read' in line][-1:]
        assert not WORDS_OF_THE_LIBRARY.search(line), line
    call("CONFIG", "SET", "rdbcompression", "no")
    payload = bytearray(call("DUMP", "f"))
    # The library's version, after its magic number.
    payload[payload.index(b"KOEL\r\n\x1a\n") + 8] = 9
    refused("", call, "RESTORE", "h", 0, with_checksum(bytes(payload)))
    line = (server.folder / "log").read_text(errors="replace").splitlines()[-1]
    assert "install that version of koel-valkey" in line and not WORDS_OF_THE_LIBRARY.search(line)


def test_plans(call):
    """Rates that are too low: the error names the lowest one, which is then accepted. And filters that are too large."""
    call("CONFIG", "SET", "koel.max-bytes", 1 << 50)
    found = []
    for rate in ("0", "1", "1e-30", "1e-10", "1.5e-9"):
        for expansion in (0, 1, 32768):
            plan = ("CF.RESERVE", "f", 1000, "EXPANSION", expansion, "ERROR")
            (error,) = errors(call, [(*plan, rate)])
            lowest = re.search("rates from ([0-9.e-]+)", error)
            if rate not in "01":
                same(call(*plan, lowest[1]), "OK")
                call("DEL", "f")
            found.append(error)
    for capacity in (1 << 36, 1 << 40):
        for rate in ("0.5", "1e-7"):
            for expansion in (0, 1, 32768):
                (error,) = errors(call, [("CF.RESERVE", "f", capacity, "EXPANSION", expansion, "ERROR", rate)])
                assert error.startswith("ERR Insufficient memory to create filter: ") and "cannot be allocated" in error
                found.append(error)
    for error in found:
        assert not WORDS_OF_THE_LIBRARY.search(error), error


def test_insertions(call):
    call("CONFIG", "SET", "koel.max-bytes", "20kb")
    insert(call, "f", items("item-", 50_000))
    found = errors(call, [("CF.ADD", "f", item) for item in items("other-", 2000)])
    call("CONFIG", "SET", "koel.max-bytes", "1gb")
    call("CF.RESERVE", "fixed", 4, "EXPANSION", 0)
    found += errors(call, [("CF.ADD", "fixed", n) for n in range(5)])
    make_large(call, "large")
    load(call, "half", dump(call, "large")[:1])
    found += errors(call, [("CF.ADD", "half", "a"), ("CF.UNION", "half", "large"), ("CF.UNION", "large", "fixed"), ("CF.UNION", "f", "fixed")])
    call("CONFIG", "SET", "koel.max-bytes", "20kb")
    found += errors(call, [("CF.UNION", "new", "large"), ("CF.RESERVE", "new", 100_000), ("CF.INSERT", "new", "CAPACITY", 100_000, "ITEMS", "a")])
    for error in found:
        assert not WORDS_OF_THE_LIBRARY.search(error), error


@pytest.mark.parametrize("setting, value", [("koel.error-rate", "1e-12"), ("koel.error-rate", "0"), ("koel.initial-size", "3")])
def test_settings(call, setting, value):
    error = refused("ERR", call, "CONFIG", "SET", setting, value)
    assert not WORDS_OF_THE_LIBRARY.search(error), error
