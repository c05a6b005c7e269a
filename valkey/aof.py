#!/usr/bin/env python3
"""Copies an append-only file without keys that the server could not load, so that it starts with all others.

--without-other-types leaves out the keys of RedisBloom's other types (BF, CMS, TOPK, TDIGEST), and values of any other module: a server
that has only koel stops at them. --without-key leaves out the filter of a key, in every database: a server stops at a damaged one.

FROM is the folder `appendonlydir` of a server that has been stopped, or of a copy; for Redis before 7, the file. The source is not
changed. TO is new. All commands but the ones that are left out are copied byte for byte, and a summary is printed. The file must
contain commands only: before, run CONFIG SET aof-use-rdb-preamble no and BGREWRITEAOF.

Exit code: 0 if the copy is complete, 2 if there is none.
"""

import argparse
import collections
import shutil
import sys
from pathlib import Path

OTHER_COMMANDS = (b"BF.", b"CMS.", b"TOPK.", b"TDIGEST.")
OWN_TYPE = "koel-cuck"
CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""The characters in the name of a module's type, six bits each."""

MODULE_VALUE = b"\x07\x81"
"""The first bytes of DUMP's payload for a module's value; the type and the version follow in eight bytes."""


class Failure(Exception):
    """A message for the operator."""


def module_type(payload):
    """Returns the name of the type of a module's value, or `None` for one of the server's own types."""
    if not payload.startswith(MODULE_VALUE) or len(payload) < 10:
        return None
    number = int.from_bytes(payload[2:10], "big") >> 10
    return "".join(CHARACTERS[number >> 6 * at & 63] for at in reversed(range(9)))


class Choice:
    """Decides which commands are left out, and counts them."""

    def __init__(self, keys, without_other_types):
        self.keys, self.without_other_types = set(keys), without_other_types
        self.left_out, self.copied = collections.Counter(), 0

    def keeps(self, words):
        name, key = words[0].upper(), words[1] if len(words) > 1 else None
        is_other = name.startswith(OTHER_COMMANDS)
        if name == b"RESTORE" and len(words) > 3:
            is_other = module_type(words[3]) not in (None, OWN_TYPE)
        is_named = key in self.keys and (name.startswith(b"CF.") or name == b"RESTORE")
        if is_named or is_other and self.without_other_types:
            self.left_out[name.decode(errors="replace")] += 1
            return False
        self.copied += 1
        return True


def read_number(line, sign, at):
    if line[:1] != sign or not line[1:-2].isdigit() or not line.endswith(b"\r\n"):
        raise Failure(f"at byte {at}: {line[:40]!r} is not the beginning of a command")
    return int(line[1:])


def copy(source, target, choice, may_be_cut_off):
    """Copies the commands of a file. Its last one may be incomplete, as after a crash: the server ignores it, too."""
    with open(source, "rb") as reader, open(target, "xb") as writer:
        if reader.peek(6)[:6].startswith((b"REDIS", b"VALKEY")):
            raise Failure(
                f"{source} begins with an RDB file. Start the server that wrote it, run CONFIG SET aof-use-rdb-preamble no and "
                "BGREWRITEAOF, stop it, and try again"
            )
        at = 0
        while line := reader.readline():
            if line.startswith(b"#"):  # A time.
                writer.write(line)
                at += len(line)
                continue
            parts, words = [line], []
            try:
                for _ in range(read_number(line, b"*", at)):
                    parts.append(reader.readline())
                    length = read_number(parts[-1], b"$", at)
                    parts.append(reader.read(length + 2))
                    if len(parts[-1]) != length + 2:
                        raise Failure(f"at byte {at}: a command is cut off")
                    words.append(parts[-1][:-2])
            except Failure as failure:
                if may_be_cut_off and not reader.peek(1):
                    print(f"{source}: {failure}; it is left out")
                    return
                raise Failure(f"{source}: {failure}; check the file with redis-check-aof") from None
            if not words or choice.keeps(words):
                writer.writelines(parts)
            at += sum(map(len, parts))


def copy_folder(source, target, choice):
    (manifest,) = list(source.glob("*.manifest")) or [None]
    if not manifest:
        raise Failure(f"{source} has no manifest; give the folder appendonlydir of a server")
    target.mkdir(parents=True)
    shutil.copyfile(manifest, target / manifest.name)
    entries = [line.split() for line in manifest.read_text().splitlines() if line]
    # Files of type h are old ones, which the server deletes.
    names = [words[1] for words in entries if words[words.index("type") + 1] in "bi"]
    for name in names:
        copy(source / name, target / name, choice, name == names[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="FROM", type=Path)
    parser.add_argument("target", metavar="TO", type=Path)
    parser.add_argument("--without-other-types", action="store_true", help="leave out keys of RedisBloom's other types")
    parser.add_argument("--without-key", metavar="KEY", action="append", default=[], help="leave out the filter of this key; may be repeated")
    options = parser.parse_args()
    # As the shell passes them, so that a key may have any bytes.
    keys = [key.encode("utf-8", "surrogateescape") for key in options.without_key]
    choice = Choice(keys, options.without_other_types)
    if options.target.exists():
        print(f"{options.target} exists; give a new name", file=sys.stderr)
        return 2
    try:
        if options.source.is_dir():
            copy_folder(options.source, options.target, choice)
        else:
            copy(options.source, options.target, choice, True)
    except (Failure, OSError) as failure:
        print(failure, file=sys.stderr)
        remove = shutil.rmtree if options.target.is_dir() else Path.unlink
        if options.target.exists():
            remove(options.target)
        return 2
    names = ", ".join(f"{count} {name}" for name, count in sorted(choice.left_out.items()))
    print(f"{choice.copied} commands copied; left out: {names or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
