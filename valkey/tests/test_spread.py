"""One set in many keys (docs/VALKEY.md). Their dumps are merged into one filter."""

import subprocess
import zlib

from filters import add_all, all_exist, dump, info, items
from servers import COMMAND

KEYS, SEED = 8, 7


def key(number):
    return b"seen:{%d}" % number


def command(*arguments, stdin=None):
    return subprocess.run([COMMAND, *arguments], input=stdin, capture_output=True, timeout=60, check=True).stdout


def test_dumps_of_all_keys_are_merged(call, tmp_path):
    added = items("item-", 80_000)
    for number in range(KEYS):
        call("CF.RESERVE", key(number), 1024, "EXPANSION", 1000, "SEED", SEED)
        add_all(call, key(number), [item for item in added if zlib.crc32(item) % KEYS == number])
    # All keys together take little more than one key.
    call("CF.RESERVE", "whole", 1024, "EXPANSION", 1000, "SEED", SEED)
    add_all(call, "whole", added)
    sizes = [info(call, key(number))["Size"] for number in range(KEYS)]
    assert sum(sizes) < 1.5 * info(call, "whole")["Size"], sizes
    files = []
    for number in range(KEYS):
        files.append(tmp_path / f"{number}.koel")
        files[-1].write_bytes(b"".join(data for _, data in dump(call, key(number))))
    command("merge", *files, "-o", tmp_path / "all.koel")
    assert command("query", tmp_path / "all.koel", stdin=b"\n".join(added) + b"\n").split() == added
    # The merged filter is loaded into one key.
    data = (tmp_path / "all.koel").read_bytes()
    for start in range(0, len(data), 100_000):
        piece = data[start : start + 100_000]
        call("CF.LOADCHUNK", "merged", start + len(piece), piece)
    all_exist(call, "merged", added)
    assert info(call, "merged")["Number of items inserted"] == len(added)
