"""One set in many keys (docs/VALKEY.md): the ranges of hashes are those of `koel shard`, and dumps join into one filter."""

import subprocess

import pytest

from filters import add_all, all_exist, dump, info, items
from servers import COMMAND

xxhash = pytest.importorskip("xxhash", reason="the package xxhash is missing")

PARTS, SEED = 8, 7


def part(item):
    """As in docs/VALKEY.md."""
    spread = xxhash.xxh3_64_intdigest(item, SEED) * 0xB504F333F9DE6485 % 2**64
    return spread * PARTS >> 64


def key(number):
    return b"seen:{%d}" % number


def command(*arguments, given=None):
    return subprocess.run([COMMAND, *arguments], input=given, capture_output=True, timeout=60, check=True).stdout


def test_parts_are_those_of_the_command(tmp_path):
    some = items("item-", 20_000)
    for number in range(PARTS):
        own = [item for item in some if part(item) == number]
        options = ["--part", f"{number + 1}/{PARTS}", "--capacity", str(len(some)), "--seed", str(SEED)]
        told = command("shard", "build", "-", *options, "-o", tmp_path / "part.koel", given=b"\n".join(own) + b"\n")
        # It would have skipped items of other parts.
        assert own and f", {len(own)} of {len(own)} items, ".encode() in told, told


def test_dumps_of_all_parts_join(call, tmp_path):
    some = items("item-", 80_000)
    for number in range(PARTS):
        call("CF.RESERVE", key(number), 1024, "EXPANSION", 1000, "SEED", SEED)
        add_all(call, key(number), [item for item in some if part(item) == number])
    # Not much more than in one key, though each key has items of an eighth of all hashes only.
    call("CF.RESERVE", "whole", 1024, "EXPANSION", 1000, "SEED", SEED)
    add_all(call, "whole", some)
    sizes = [info(call, key(number))["Size"] for number in range(PARTS)]
    assert sum(sizes) < 1.5 * info(call, "whole")["Size"], sizes
    files = []
    for number in range(PARTS):
        files.append(tmp_path / f"{number}.koel")
        files[-1].write_bytes(b"".join(data for _, data in dump(call, key(number))))
    command("merge", *files, "-o", tmp_path / "all.koel")
    assert command("query", tmp_path / "all.koel", given=b"\n".join(some) + b"\n").split() == some
    # And back into one key.
    data = (tmp_path / "all.koel").read_bytes()
    for start in range(0, len(data), 100_000):
        piece = data[start : start + 100_000]
        call("CF.LOADCHUNK", "joined", start + len(piece), piece)
    all_exist(call, "joined", some)
    assert info(call, "joined")["Number of items inserted"] == len(some)
