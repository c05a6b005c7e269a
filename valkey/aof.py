#!/usr/bin/env python3
"""Copies an append-only file without keys that the server could not load, so that it starts with all others.

--without-other-types leaves out the keys of RedisBloom's other types (BF, CMS, TOPK, TDIGEST), and values of any other module: a server
that has only koel stops at them. --without-key leaves out the filter of a key, in every database: a server stops at a damaged one. What
depends on it is printed: its copies, also by RENAME, are left out, too, and a CF.UNION goes on without it. The union is incomplete: fill
it again.

FROM is the folder `appendonlydir` of a server that has been stopped, or of a copy; for Redis before 7, the file. The source is not
changed. TO is new. All other commands are copied byte for byte, and a summary is printed. The file must
contain commands only: before, run CONFIG SET aof-use-rdb-preamble no and BGREWRITEAOF.

Exit code: 0 if the copy is complete; 1 if it is, but has no filter of a key that was given; 2 if there is no copy.
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


EXPIRY = (b"EXPIRE", b"EXPIREAT", b"PEXPIRE", b"PEXPIREAT", b"PERSIST")
"""The commands that change a key, but not its value."""

COMPLETE, INCOMPLETE, LEFT_OUT = range(3)


class Choice:
    """Decides which commands are left out or replaced, and counts them."""

    def __init__(self, keys, without_other_types):
        self.keys, self.without_other_types = set(keys), without_other_types
        self.missing = set(keys)
        """Those of the keys that no command of a filter has named."""
        self.left_out, self.copied = collections.Counter(), 0
        self.database, self.values = b"0", {}
        self.notes = {}
        """The last that became of each key that was not named."""

    def instead(self, words):
        """Returns the commands that take the place of this one: `[words]` if it stays."""
        kept = self.choose(words[0].upper(), words)
        self.copied += len(kept)
        if not kept:
            self.left_out[words[0].upper().decode(errors="replace")] += 1
        return kept

    def choose(self, name, words):
        place = (self.database, words[1]) if len(words) > 1 else None
        kind = module_type(words[3]) if name == b"RESTORE" and len(words) > 3 else None
        if name == b"SELECT" and place:
            self.database = words[1]
        elif name.startswith(OTHER_COMMANDS) or kind not in (None, OWN_TYPE):
            if self.without_other_types or kind and words[1] in self.keys:
                self.values[place] = LEFT_OUT
                return []
        elif place and (name.startswith(b"CF.") or kind):
            return self.choose_filter(name, words, place)
        elif name in (b"COPY", b"RENAME", b"RENAMENX", b"MOVE") and len(words) > 2:
            return self.choose_copy(name, words, place)
        elif name in (b"DEL", b"UNLINK"):
            for key in words[1:]:
                self.values.pop((self.database, key), None)
        elif name == b"FLUSHALL":
            self.values.clear()
        elif name == b"FLUSHDB":
            self.values = {other: state for other, state in self.values.items() if other[0] != self.database}
        elif name == b"SWAPDB" and len(words) > 2:
            swapped = {words[1]: words[2], words[2]: words[1]}
            self.values = {(swapped.get(database, database), key): state for (database, key), state in self.values.items()}
        elif name in (b"MSET", b"MSETNX"):
            for key in words[1::2]:
                self.values.pop((self.database, key), None)
        elif name not in EXPIRY:
            # Only a new value of another type takes other commands.
            self.values.pop(place, None)
        return [words]

    def choose_filter(self, name, words, place):
        state = self.values.get(place)
        self.missing.discard(words[1])
        if words[1] in self.keys:
            self.values[place] = LEFT_OUT
            return []
        if name == b"CF.UNION":
            return self.choose_union(words, place)
        if name == b"RESTORE" or state is None:
            self.values[place] = COMPLETE
        elif state == LEFT_OUT:
            return []
        return [words]

    def choose_union(self, words, place):
        """A union goes on without the sources that are left out. A destination that is left out is created by the first union with
        another source."""
        destination = words[1]
        states = {key: self.values.get((self.database, key)) for key in words[1:]}
        if LEFT_OUT not in states.values() and INCOMPLETE not in states.values():
            self.values[place] = COMPLETE
            return [words]
        sources = [source for source in words[2:] if source != destination and states[source] != LEFT_OUT]
        if not sources and states[destination] in (None, LEFT_OUT):
            if states[destination] is None:
                self.note(place, "is left out, too: it was a union of such filters only")
            self.values[place] = LEFT_OUT
            return []
        self.note(place, "is incomplete: it was a union with a filter that is left out; fill it again")
        self.values[place] = INCOMPLETE
        return [[*words[:2], *sources]] if sources else []

    def choose_copy(self, name, words, place):
        """COPY, RENAME or MOVE of a filter that is left out is replaced by the removal of what was there before."""
        options = [word.upper() for word in words[3:]]
        database, key = (words[2], words[1]) if name == b"MOVE" else (self.database, words[2])
        if b"DB" in options[:-1]:
            database = words[3:][options.index(b"DB") + 1]
        target, state = (database, key), self.values.get(place)
        if target == place:
            return [words]
        if name != b"COPY":
            self.values.pop(place, None)
        self.values.pop(target, None)
        if state is None:
            return [words]
        self.missing.discard(key)
        self.values[target] = LEFT_OUT if key in self.keys else state
        if key not in self.keys and state == LEFT_OUT:
            self.note(target, "is left out, too: it was a copy of such a filter, or had its name before")
        elif key not in self.keys and state == INCOMPLETE:
            self.note(target, "is incomplete: it was a copy of such a filter, or had its name before; fill it again")
        if self.values[target] != LEFT_OUT:
            return [words]
        removals = [[b"DEL", place[1]]] if state != LEFT_OUT and name != b"COPY" else []
        if name == b"RENAME" or b"REPLACE" in options:
            removal = [b"DEL", key]
            is_here = database == self.database
            removals += [removal] if is_here else [[b"SELECT", database], removal, [b"SELECT", self.database]]
        return removals

    def note(self, place, text):
        database, key = (word.decode("utf-8", "backslashreplace") for word in place)
        self.notes[place] = f'the key "{key}" of database {database} {text}'


def encode(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


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
            for command in choice.instead(words) if words else [words]:
                writer.writelines(parts if command is words else [encode(command)])
            at += sum(map(len, parts))


def copy_folder(source, target, choice):
    # A crash may leave a temporary one.
    (manifest,) = [path for path in source.glob("*.manifest") if not path.name.startswith("temp-")] or [None]
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
    print(f"{choice.copied} commands copied; left out: {names or 'none'}", *choice.notes.values(), sep="\n")
    for key in sorted(choice.missing):
        print(f"--without-key: {key!r} given, but no command in these files is of a filter with this key", file=sys.stderr)
    return 1 if choice.missing else 0


if __name__ == "__main__":
    sys.exit(main())
