#!/usr/bin/env python3
"""Moves cuckoo filters from a server with RedisBloom (or koel) to one with koel, while clients go on writing.

For each filter:
  1. One script on the source dumps it with CF.SCANDUMP, looks up probes in it, and returns the replication offset of that moment.
  2. CF.LOADCHUNK loads the dump into a shadow key on the target, which must give the same results for all probes.
  3. The writes that the source executed after that offset are replayed there, in the source's order.
  4. RENAMENX makes it visible. Writes are replayed until the application writes to the target.

The writes come from the source's replication stream: this program connects as a replica does (PSYNC). It asks for an RDB file
without keys; a source older than Redis 7 sends a complete one, which is skipped. Each batch of writes is one transaction on the
target, together with the offset after it. So an interrupted migration continues when the program is run again, and loses or
repeats no write, as long as the source's replication backlog (repl-backlog-size) still has all writes since then.

URLs: redis://[user[:password]@]host[:port][/database], rediss://… with TLS, unix:///path/of/socket[?db=n]. Passwords may also be
given in SOURCE_PASSWORD and TARGET_PASSWORD. If the target is a cluster, its MOVED replies are followed. If the source is a
cluster, run this program once for each of its primaries, or once for a replica of each.

The user of the source needs: +psync +replconf +info +scan +type +eval +cf.info +cf.scandump +cf.exists +pttl +time +select,
and ~* for the keys; also +cf.snapshot if the source has koel, and +readonly if it is a replica in a cluster. Use a replica as the
source to keep dumps off its primary. The rights at the target are those of the user mover in valkey/deploy/users.acl.

Exit code: 0 if all checks passed, 1 if some failed (the report says which), 2 if the migration could not continue.
"""

import argparse
import binascii
import collections
import functools
import itertools
import os
import random
import re
import signal
import socket
import ssl
import sys
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit

REDISBLOOM = b"MBbloomCF"
FILTER_TYPES = (REDISBLOOM, b"koel-cuck")
OTHER_TYPES = {b"MBbloom--": "BF.*", b"CMSk-TYPE": "CMS.*", b"TopK-TYPE": "TOPK.*", b"TDIS-TYPE": "TDIGEST.*"}
"""RedisBloom's other types, with their commands."""
SUFFIX = b":koel-migrate"
COPIED, RENAMING, LIVE = b"copied", b"renaming", b"live"
"""What has become of a filter, as its state at the target says: it has a shadow key, is being made visible, or is visible."""
REMOVING_COMMANDS = {b"DEL", b"UNLINK"}
REPLAYED_COMMANDS = {b"CF.ADD", b"CF.ADDNX", b"CF.INSERT", b"CF.INSERTNX", b"CF.DEL", b"CF.COMPACT", b"CF.RESERVE"}
RESERVE_OPTIONS = {b"BUCKETSIZE", b"MAXITERATIONS", b"EXPANSION"}
LEAST_RATE = 1.93e-9
"""The lowest ERROR that the target takes."""
INSERT_OPTIONS = {option[:1]: option for option in (b"CAPACITY", b"ERROR", b"NOCREATE", b"ITEMS")}
EXPIRY_COMMANDS = {b"PEXPIREAT", b"EXPIREAT", b"PEXPIRE", b"EXPIRE", b"PERSIST"}
CHANGED_KEYS = {
    b"RENAME": slice(1, 3), b"RENAMENX": slice(1, 3), b"COPY": slice(2, 3), b"BITOP": slice(2, 3),
    b"MSET": slice(1, None, 2), b"MSETNX": slice(1, None, 2), b"MSETEX": slice(2, None, 2),
}
"""Where the keys are that a command changes; others change only the first key."""
STORING_COMMANDS = {b"SORT", b"GEORADIUS", b"GEORADIUSBYMEMBER"}
"""Commands that change the key behind STORE or STOREDIST."""
MADE_KEY = {b"RENAME": 2, b"RENAMENX": 2, b"COPY": 2, b"RESTORE": 1, b"MOVE": 1}
"""Where the key is that may become a filter."""
ALL_KEY_COMMANDS = {b"FLUSHDB", b"FLUSHALL", b"SWAPDB"}
UNBOUND_COMMANDS = {b"SELECT", b"PING", b"MULTI", b"EXEC", b"PUBLISH", b"SPUBLISH"}
"""Commands in the stream that change no key, and need no selected database."""
PATTERN_PART = re.compile(rb"\\(.)|(\[)(\^?)((?:\\.|[^\]]-.|[^\]])*)\]?|(.)", re.DOTALL)
PATTERN_MEMBER = re.compile(rb"\\(.)|(.)-(.)|(.)", re.DOTALL)
"""What a pattern of SCAN's MATCH consists of, and what its brackets contain."""
RDB_HEAD = 4096
"""The bytes of an RDB file in which its fields are."""
BATCH = 512
"""The most writes that are replayed together."""
MAX_SAMPLED = 10_000
"""The most added items that are looked up at the end."""
MAX_COPIES = 5
"""The most attempts to copy a key that other commands change."""

DUMP = """
local key, info = KEYS[1], redis.call('INFO', 'replication')
local offset, kind = string.match(info, 'master_repl_offset:(%d+)'), redis.call('TYPE', KEYS[1]).ok
if kind ~= 'MBbloomCF' and kind ~= 'koel-cuck' then return {offset, kind} end
local about = redis.call('CF.INFO', key)
if tonumber(about[2]) > tonumber(ARGV[1]) then return {offset, kind, about} end
local answers, chunks, at = {}, {}, 0
for n = 2, #ARGV do answers[n - 1] = redis.call('CF.EXISTS', key, ARGV[n]) end
while true do
    local reply = redis.call('CF.SCANDUMP', key, string.format('%.0f', at))
    at = tonumber(reply[1])
    if at == 0 then break end
    chunks[#chunks + 1] = string.format('%.0f', at)
    chunks[#chunks + 1] = reply[2]
end
if #chunks == 0 and kind == 'koel-cuck' then
    chunks[2] = redis.call('CF.SNAPSHOT', key)
    chunks[1] = tostring(#chunks[2])
end
local now, left = redis.call('TIME'), redis.call('PTTL', key)
if left >= 0 then left = left + now[1] * 1000 + math.floor(now[2] / 1000) end
return {offset, kind, about, answers, chunks, string.format('%.0f', left)}
"""


class Failure(Exception):
    """A message for the operator."""


class Refusal(Exception):
    """An error reply."""


class Connection:
    """A connection to one server, in protocol 2."""

    def __init__(self, url, password=None, address=None):
        parts = urlsplit(url)
        if parts.scheme not in ("redis", "rediss", "valkey", "valkeys", "unix"):
            raise Failure(f"{url!r} is no address of a server; give one as in redis://localhost:6379/0")
        self.url, self.password = url, password
        number = parse_qs(parts.query).get("db", ["0"])[0] if parts.scheme == "unix" else parts.path.strip("/") or "0"
        if not number.isdigit():
            raise Failure(f"the database {number!r} in {parts.hostname or parts.path} is no number; give one from 0 on")
        self.database = int(number)
        self.name = parts.path if parts.scheme == "unix" else "%s:%d" % (address or (parts.hostname or "localhost", parts.port or 6379))
        try:
            if parts.scheme == "unix":
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.settimeout(60)
                self.socket.connect(parts.path)
            else:
                self.socket = socket.create_connection(address or (parts.hostname or "localhost", parts.port or 6379), 60)
                if parts.scheme in ("rediss", "valkeys"):
                    self.socket = ssl.create_default_context().wrap_socket(self.socket, server_hostname=parts.hostname)
        except OSError as error:
            raise Failure(f"{self.name} does not answer: {error}") from error
        self.stream = self.socket.makefile("rb", buffering=1 << 18)
        password = password or (unquote(parts.password) if parts.password else None)
        if password:
            self.call("AUTH", *([unquote(parts.username)] if parts.username else []), password)
        if self.database:
            self.call("SELECT", self.database)

    def call(self, *words):
        self.send([words])
        reply = self.read()
        if isinstance(reply, Refusal):
            raise reply
        return reply

    def pipeline(self, commands):
        """Returns the replies to all commands, refusals among them."""
        self.send(commands)
        return [self.read() for _ in commands]

    def send(self, commands):
        parts = []
        for words in commands:
            parts.append(b"*%d\r\n" % len(words))
            for word in words:
                word = word if isinstance(word, bytes) else str(word).encode()
                parts += [b"$%d\r\n" % len(word), word, b"\r\n"]
        try:
            self.socket.sendall(b"".join(parts))
        except OSError as error:
            raise self.broken(error) from error

    def broken(self, error):
        return Failure(f"the connection to {self.name} broke: {error}; run this again to go on")

    def line(self):
        try:
            line = self.stream.readline()
        except OSError as error:
            raise self.broken(error) from error
        if not line.endswith(b"\n"):
            raise Failure(f"{self.name} closed the connection; run this again to go on")
        return line

    def bytes(self, count):
        try:
            data = self.stream.read(count)
        except OSError as error:
            raise self.broken(error) from error
        if len(data) != count:
            raise Failure(f"{self.name} closed the connection; run this again to go on")
        return data

    def peek(self):
        """Returns bytes that `bytes` will return, one at least unless the connection is closed."""
        try:
            return self.stream.peek(1)
        except OSError as error:
            raise self.broken(error) from error

    def read(self):
        line = self.line()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else self.bytes(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        if kind == b":":
            return int(rest)
        return Refusal(rest.decode(errors="replace")) if kind == b"-" else rest

    def info(self, section):
        lines = self.call("INFO", section).decode(errors="replace").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


class Stream(threading.Thread):
    """The source's replication stream. Commands wait in `queue`, each with the place after it and the number of its bytes. A place is
    an offset, and the database that is selected there."""

    def __init__(self, source, most_queued):
        super().__init__(daemon=True)
        self.source, self.most_queued = source, most_queued
        self.queue, self.failure = collections.deque(), None
        self.put = self.taken = 0  # Bytes of the queue. Each number is written by one thread only.
        self.place = self.applied = (0, None)
        self.acknowledged, self.has_begun, self.lock = 0, False, threading.Lock()

    @property
    def queued(self):
        return self.put - self.taken

    def open(self, position):
        """Continues after a position (replication id, offset, database), or begins if it is None. Returns false if the source
        no longer has the writes after that position."""
        self.source.call("REPLCONF", "capa", "eof", "capa", "psync2")
        try:
            self.source.call("REPLCONF", "rdb-filter-only", "")
        except Refusal:
            say("the source cannot leave its keys out of the RDB file: it writes and sends a whole one (Redis before 7.0)")
        self.source.send([("PSYNC", *((position[0], int(position[1]) + 1) if position else ("?", -1)))])
        words = self.reply().split()
        if words[0] == b"+CONTINUE" and position:
            self.id = words[1] if len(words) > 1 else position[0]
            self.place = (int(position[1]), int(position[2]) if int(position[2]) >= 0 else None)
        elif words[0] == b"+FULLRESYNC" and not position:
            self.id, self.place = words[1], (int(words[2]), stream_database(self.skip_file()))
        elif words[0] == b"+FULLRESYNC":
            return False
        else:
            raise Failure(
                f"{self.source.name} refuses PSYNC: {b' '.join(words).decode(errors='replace')}; grant +psync and +replconf, or let "
                "the application write to both servers (docs/VALKEY.md)"
            )
        self.applied = self.place
        self.source.socket.settimeout(120)
        self.acknowledge()
        self.start()
        return True

    def reply(self):
        """Returns the next line that is not empty. Empty lines keep the connection alive while the source saves."""
        while True:
            line = self.source.line().strip()
            if line:
                return line

    def skip_file(self):
        """Reads the RDB file, and returns its beginning."""
        length, head = self.reply(), b""
        if length.startswith(b"$EOF:"):
            mark, before, at = length[5:], b"", -1
            while at < 0:
                data = before + self.source.peek()
                at = data.find(mark)
                read = self.source.bytes((len(data) if at < 0 else at + len(mark)) - len(before) or 1)
                before = data[1 - len(mark):]
                head = (head + read)[:RDB_HEAD]
        else:
            left = int(length[1:])
            while left:
                read = self.source.bytes(min(left, 1 << 20))
                left -= len(read)
                head = (head + read)[:RDB_HEAD]
        return head

    def run(self):
        try:
            while True:
                self.read_command()
        except Exception as failure:  # `take_batch` raises it again.
            self.failure = failure

    def read_command(self):
        line = self.source.line()
        read, words = len(line), []
        for _ in range(int(line[1:])):
            line = self.source.line()
            word = self.source.bytes(int(line[1:]) + 2)
            read += len(line) + len(word)
            words.append(word[:-2])
        name, (offset, database) = words[0].upper(), self.place
        if name == b"SELECT":
            database = int(words[1])
        place = (offset + read, database)
        if name == b"REPLCONF":
            self.acknowledge()
        elif name in UNBOUND_COMMANDS:
            pass
        elif database is None:
            raise Failure(f"{self.source.name} does not tell for which database its writes are; give the address of its primary as the source")
        elif changes(self.source.database, database, name, words):
            self.queue.append((place, read, name, words))
            self.put += read
            if self.queued > self.most_queued:
                raise Failure(
                    f"{self.queued} bytes of writes wait to be replayed, and --most-queued is {self.most_queued}: the source is written "
                    "faster than the target takes it. Migrate fewer keys at a time with --match, or when there is less to do"
                )
        self.has_begun = True
        self.place = place  # Set last: `take_batch` relies on all earlier commands being in the queue.
        self.acknowledge(1)

    def acknowledge(self, seconds=0):
        """Acknowledges the replayed offset if the last time was at least `seconds` ago. That keeps the connection alive, shows
        the lag in the source's INFO, and starts the stream: otherwise the source may wait for the end of the process that wrote
        the file."""
        with self.lock:
            if time.monotonic() - self.acknowledged < seconds:
                return
            self.acknowledged = time.monotonic()
            self.source.send([("REPLCONF", "ACK", self.applied[0])])

    def take_batch(self, limit):
        """Returns at most `limit` commands, and a place. All commands up to it have been returned."""
        self.acknowledge(1 if self.has_begun else 0.05)
        place, batch = self.place, []
        while self.queue and len(batch) < limit:
            batch.append(self.queue.popleft())
            self.taken += batch[-1][1]
        if self.failure and not batch:
            raise self.failure
        if batch and (len(batch) == limit or batch[-1][0][0] > place[0]):
            place = batch[-1][0]
        return batch, place

    def position(self):
        """Returns where the next run goes on. A primary does not repeat the SELECT of an earlier write to it."""
        offset, database = self.applied
        return b"%b %d %d" % (self.id, offset, -1 if database is None else database)


class Target:
    """The target: one server, or a cluster whose MOVED replies are followed."""

    def __init__(self, url, password):
        self.first = Connection(url, password)
        self.nodes, self.node_of_key = {}, {}

    def call(self, key, *words):
        (reply,) = self.batch(key, [words])
        if isinstance(reply, Refusal):
            raise reply
        return reply

    def batch(self, key, commands):
        """Returns the replies to commands that all use this key, or keys of its slot."""
        for _ in range(5):
            replies = self.node_of_key.get(key, self.first).pipeline(commands)
            moved = next((str(reply) for reply in replies if isinstance(reply, Refusal) and str(reply).startswith("MOVED ")), None)
            if not moved:
                return replies
            host, _, port = moved.split()[2].rpartition(":")
            address = (host or self.first.name.rpartition(":")[0], int(port))
            if address not in self.nodes:
                self.nodes[address] = Connection(self.first.url, self.first.password, address)
            self.node_of_key[key] = self.nodes[address]
        raise Failure(f"the slot of {key!r} moves; wait until the target cluster is at rest, and run this again")

    def transaction(self, key, commands):
        """Returns the replies to commands that are executed together or not at all."""
        *queued, replies = self.batch(key, [("MULTI",), *commands, ("EXEC",)])
        if isinstance(replies, Refusal):
            reason = next((reply for reply in queued if isinstance(reply, Refusal)), replies)
            raise Failure(f"the target refused writes: {reason}. Raise maxmemory, or give what the error asks for, and run this again")
        return replies


class Filter:
    """A key that moves."""

    def __init__(self, key):
        self.key, self.offset, self.is_copied, self.is_live, self.copies, self.problem = key, 0, False, False, 0, None
        self.shadow = same_slot(key) + SUFFIX
        self.state = self.shadow + b":state"

    def name(self):
        """Returns the filter's current key at the target."""
        return self.key if self.is_live else self.shadow


class Migration:
    def __init__(self, options):
        self.options = options
        self.source = Connection(options.source, os.environ.get("SOURCE_PASSWORD"))
        self.target = Target(options.target, os.environ.get("TARGET_PASSWORD"))
        self.stream = Stream(Connection(options.source, os.environ.get("SOURCE_PASSWORD")), options.most_queued)
        self.progress = b"koel-migrate:%b:%d" % (self.source.name.encode(), self.source.database)
        self.filters, self.waiting, self.ready, self.stopping = {}, collections.deque(), [], threading.Event()
        self.counts, self.sample = collections.Counter(), {}
        self.rate = [b"ERROR", str(options.error_rate).encode()] if options.error_rate else []
        self.bytes = self.probed = 0
        self.lost, self.refusals, self.others = [], {}, {}
        self.last_write = self.last_report = self.began = time.monotonic()
        self.has_caught_up = self.is_idle = False

    # The keys.

    def check_target(self):
        if b"koel.max-bytes" not in (self.target.first.call("CONFIG", "GET", "koel.max-bytes") or []):
            raise Failure(f"{self.target.first.name} has no module koel; load libkoel_valkey.so there")
        if self.source.info("server").get("run_id") == self.target.first.info("server").get("run_id"):
            raise Failure("source and target are the same server; give two")

    def prepare_source(self):
        """Lets a replica in a cluster tell of its keys. Otherwise, it redirects to its primary."""
        if self.source.info("cluster").get("cluster_enabled") == "1" and self.source.info("replication").get("role") == "slave":
            self.source.call("READONLY")

    def types(self, keys):
        """Returns the types of keys of the source."""
        kinds = self.source.pipeline([("TYPE", key) for key in keys]) if keys else []
        for key, kind in zip(keys, kinds):
            if isinstance(kind, Refusal):
                remedy = "grant the rights that --help names, or leave such keys out by --match"
                if str(kind).startswith(("MOVED", "ASK")):
                    remedy = "run this again when no slots of the source's cluster move"
                raise Failure(f"{self.source.name} does not tell the type of {key!r}: {kind}; {remedy}")
        return kinds

    def find(self):
        """Adds all filters of the source to the list. Returns how many are new. Records keys of RedisBloom's other types."""
        cursor, found, self.others = b"0", 0, {}
        while True:
            cursor, keys = self.source.call("SCAN", cursor, "MATCH", self.options.match, "COUNT", 1000)
            for key, kind in zip(keys, self.types(keys)):
                if kind in FILTER_TYPES and key not in self.filters and not is_internal(key):
                    self.add(key)
                    found += 1
                elif kind in OTHER_TYPES:
                    self.others.setdefault(OTHER_TYPES[kind], []).append(key)
            if cursor == b"0":
                return found

    def other_keys(self):
        """Returns a line about the keys of RedisBloom's other types."""
        named = ", ".join(f"{len(keys)} of {commands}, as {keys[0]!r}" for commands, keys in sorted(self.others.items()))
        return f"keys of other types of RedisBloom are not moved: {named}. Keep a server with RedisBloom for them, or fill replacements " \
            "from the original data"

    def add(self, key):
        self.filters[key] = Filter(key)
        self.waiting.append(key)
        self.target.call(self.progress, "HSET", self.progress, b"key:" + key, "")

    def resume(self):
        """Restores the state of an interrupted run, if any. Returns the position of its stream."""
        known = self.target.call(self.progress, "HGETALL", self.progress)
        known = dict(zip(known[::2], known[1::2]))
        position = known.pop(b"place", b"").split()
        for name in known:
            key = name[len(b"key:"):]
            entry = self.filters[key] = Filter(key)
            offset, _, phase = (self.target.call(key, "GET", entry.state) or b"0 ").partition(b" ")
            if phase == RENAMING:
                phase = COPIED if self.target.call(key, "EXISTS", entry.shadow) else LIVE
            entry.offset, entry.is_live, entry.is_copied = int(offset), phase == LIVE, phase in (LIVE, COPIED)
            (self.ready if entry.is_copied else self.waiting).append(entry if entry.is_copied else key)
        return position

    # Copying.

    def copy(self, entry):
        key, probes = entry.key, self.options.items + [b"koel-probe-%d" % random.getrandbits(64) for _ in range(self.options.probes)]
        entry.copies += 1
        try:
            offset, kind, *rest = self.source.call("EVAL", DUMP, 1, key, self.options.most_at_once, *probes)
        except Refusal as refusal:
            return self.fail(entry, f"the source does not dump it: {refusal}")
        entry.offset, entry.is_copied = int(offset), True
        if kind not in FILTER_TYPES:
            if kind != b"none":
                return self.fail(entry, f"it is of the type {kind.decode()} now")
            # It was removed meanwhile. If the source creates it again, that is replayed.
            self.target.call(key, "DEL", entry.shadow)
            return self.store(entry)
        fields = {decode(name): value for name, value in zip(rest[0][::2], rest[0][1::2])}
        if len(rest) == 1:
            return self.fail(
                entry, f"it has {fields['Size']} bytes, and --most-at-once is {self.options.most_at_once}: the source would stop for a dump in one "
                "piece, for 2 to 6 ms for each MiB. Raise the option, or give the address of a replica as the source"
            )
        _, answers, chunks, expiry = rest
        if kind == REDISBLOOM and chunks:
            counted, stored = int.from_bytes(chunks[1][:8], "little"), sum(len(data) - data.count(0) for data in chunks[3::2])
            if counted != stored:
                return self.fail(
                    entry, f"it has {stored} of its {counted} items: chunks of CF.LOADCHUNK are missing, which RedisBloom does not replicate. Load them "
                    "all at the source, or give the server that has them as the source, and run this again"
                )
        if self.target.call(key, "EXISTS", key):
            return self.fail(entry, "the target has this key already; delete it there, or leave it out by --match")
        try:
            self.load(entry, fields, chunks)
        except Refusal as refusal:
            return self.fail(entry, f"the target does not load it: {refusal}")
        differing = [probe for probe, old, new in zip(probes, answers, self.exist(key, entry.shadow, probes)) if old != new]
        if differing:
            return self.fail(entry, f"{len(differing)} of {len(probes)} probes are answered differently after loading, as {differing[0]!r}")
        self.probed += len(probes)
        self.bytes += sum(map(len, chunks[1::2]))
        if int(expiry) >= 0:
            self.target.call(key, "PEXPIREAT", entry.shadow, expiry)
        return self.store(entry)

    def load(self, entry, fields, chunks):
        options = self.rate
        self.target.call(entry.key, "DEL", entry.shadow)
        if not chunks:
            slots = max(fields["Number of buckets"] * fields["Bucket size"], 2 * fields["Bucket size"])
            words = ("BUCKETSIZE", fields["Bucket size"], "EXPANSION", fields["Expansion rate"])
            self.target.call(entry.key, "CF.RESERVE", entry.shadow, slots, *words, *options)
        if chunks and chunks[1].startswith(b"KOEL"):
            # Its snapshot has everything else. Imported chunks before new items have RedisBloom's rate of expansion.
            options = ("EXPANSION", fields["Expansion rate"])
        for at in range(0, len(chunks), 2):
            self.target.call(entry.key, "CF.LOADCHUNK", entry.shadow, chunks[at], chunks[at + 1], *(options if at == 0 else ()))

    def exist(self, key, name, items):
        parts = [items[at:at + 500] for at in range(0, len(items), 500)]
        replies = self.target.batch(key, [("CF.MEXISTS", name, *part) for part in parts])
        for reply in replies:
            if isinstance(reply, Refusal):
                raise Failure(f"the target does not look up items of {name!r}: {reply}")
        return [answer for reply in replies for answer in reply]

    def store(self, entry):
        self.target.call(entry.key, "SET", entry.state, self.state(entry, entry.offset))
        self.ready.append(entry)

    def state(self, entry, offset):
        return b"%d %b" % (offset, LIVE if entry.is_live else COPIED)

    def fail(self, entry, reason):
        """Gives up a filter, which the next run copies again."""
        entry.problem = reason
        self.target.call(entry.key, "DEL", entry.shadow, entry.state)
        say(f"{entry.key!r} is not moved: {reason}")

    # Replaying.

    def replay(self):
        """Replays one batch of writes. Returns true if there are no more."""
        batch, end = self.stream.take_batch(BATCH)
        commands_of = {}
        for (offset, _), _, name, words in batch:
            for entry, command, items in self.translate(name, words, offset):
                if entry.is_copied and not entry.problem and offset > entry.offset:
                    commands_of.setdefault(entry, []).append((offset, name, command, items))
        for entry, commands in commands_of.items():
            # A later command of this batch may have deleted the filter's state, which `apply` would write again.
            if entry.is_copied and not entry.problem:
                self.apply(entry, commands)
        if end[0] > self.stream.applied[0]:
            self.stream.applied = end
            self.target.call(self.progress, "HSET", self.progress, "place", self.stream.position())
        return len(batch) < BATCH

    def apply(self, entry, commands):
        entry.offset = commands[-1][0]
        replies = self.target.transaction(
            entry.key, [command for _, _, command, _ in commands] + [("SET", entry.state, self.state(entry, entry.offset))]
        )
        for (_, name, _, items), reply in zip(commands, replies):
            self.counts[name.decode()] += 1
            is_refused = isinstance(reply, Refusal)
            if is_refused or isinstance(reply, list) and -1 in reply:
                reason = str(reply) if is_refused else "CF.INSERT answered -1 for an item: EXPANSION 0 or koel.max-bytes left no room for it"
                count, _ = self.refusals.get(reason, (0, None))
                self.refusals[reason] = (count + 1, (name.decode(), entry.key))
            if name in REPLAYED_COMMANDS:
                self.last_write = time.monotonic()
                self.sample_items(entry, name, items, reply)
            elif name in REMOVING_COMMANDS:
                self.forget_items(entry)

    def sample_items(self, entry, name, items, reply):
        """Records some items that must be present at the end."""
        for at, item in enumerate(items):
            answer = reply[at] if isinstance(reply, list) else reply
            if name == b"CF.DEL":
                self.sample.pop((entry.key, item), None)
            elif answer in (0, 1) and (len(self.sample) < MAX_SAMPLED or random.random() < 0.01):
                if len(self.sample) >= MAX_SAMPLED:
                    self.sample.pop(next(iter(self.sample)))
                self.sample[entry.key, item] = True

    def forget_items(self, entry):
        self.sample = {at: True for at in self.sample if at[0] != entry.key}

    def translate(self, name, words, offset):
        """Translates a command for the target. Returns a list of filters, the commands to send, and the items in them."""
        key = words[1] if len(words) > 1 else b""
        if name.startswith(b"CF.") and key not in self.filters and not is_internal(key) and matches(self.options.match, key):
            self.add(key)  # A new filter, whose dump will contain the writes until then.
        made = words[MADE_KEY[name]] if name in MADE_KEY else b""
        if made and made not in self.filters and not is_internal(made) and matches(self.options.match, made):
            if self.types([made])[0] in FILTER_TYPES:
                self.add(made)
        if name in REMOVING_COMMANDS:
            return [(self.filters[key], (b"DEL", self.filters[key].name()), []) for key in words[1:] if key in self.filters]
        entry = self.filters.get(key)
        if entry and name in REPLAYED_COMMANDS:
            name, arguments, items = self.replayed(name, words)
            return [(entry, (name, entry.name(), *arguments), items)]
        if entry and name in EXPIRY_COMMANDS:
            return [(entry, (name, entry.name(), *words[2:]), [])]
        if entry and name == b"CF.LOADCHUNK" and not entry.problem and self.types([key]) == [REDISBLOOM]:
            # Even a dump from now on may be of half a filter.
            self.fail(
                entry, "CF.LOADCHUNK writes it at the source, and RedisBloom does not replicate that in whole; when all chunks are there, delete the "
                "key at the target and run this again"
            )
            return []
        if name == b"SWAPDB":
            self.find()  # The other database may have filters.
        for key in list(self.filters) if name in ALL_KEY_COMMANDS else filter(self.filters.get, changed_keys(name, words)):
            other = self.filters[key]
            if other.is_copied and offset > other.offset:
                self.invalidate(other, name.decode())
        return []

    def replayed(self, name, words):
        """Returns the command that has the same effect at the target, its arguments after the key, and the items in them."""
        if name in (b"CF.INSERT", b"CF.INSERTNX"):
            return name, *insertion(words, self.rate)
        if name in (b"CF.ADD", b"CF.ADDNX") and self.rate:
            # It may create the filter, and takes no ERROR itself.
            return name.replace(b"ADD", b"INSERT"), [*self.rate, b"ITEMS", *words[2:]], words[2:]
        if name == b"CF.RESERVE":
            return name, reservation(words, self.rate), []
        return name, words[2:], words[2:] if name in (b"CF.ADD", b"CF.ADDNX", b"CF.DEL") else []

    def invalidate(self, entry, reason):
        """Handles a command that cannot be replayed. The key is copied again, if possible."""
        if entry.problem:
            return
        if entry.is_live or entry.copies >= MAX_COPIES:
            self.fail(entry, f"{reason} changed it at the source, which cannot be replayed; delete it at the target and run this again")
        else:
            entry.is_copied = False
            self.forget_items(entry)
            self.target.call(entry.key, "DEL", entry.shadow, entry.state)
            self.waiting.append(entry.key)

    # Making visible.

    def switch_over(self):
        ready, self.ready = self.ready, []
        for entry in ready:
            if entry.is_copied and not entry.is_live and not entry.problem:
                self.make_visible(entry)

    def make_visible(self, entry):
        key, offset = entry.key, max(entry.offset, self.stream.applied[0])
        if self.target.call(key, "EXISTS", entry.shadow):
            # If this run is killed now, the shadow key tells the next one whether it was renamed.
            self.target.transaction(key, [("SET", entry.state, b"%d %b" % (offset, RENAMING))])
            (renamed,) = self.target.batch(key, [("RENAMENX", entry.shadow, key)])
            if renamed != 1:
                return self.fail(entry, "meanwhile somebody else made this key at the target; delete it there, or leave it out by --match")
        entry.is_live = True
        self.target.transaction(key, [("SET", entry.state, self.state(entry, offset))])

    # The whole.

    def run(self):
        self.check_target()
        if self.options.forget:
            return self.forget()
        self.prepare_source()
        position = self.resume()
        if position:
            if not self.stream.open(position):
                raise Failure(
                    f"the source no longer has the writes behind offset {position[1].decode()} (repl-backlog-size is too small for the pause, or it was "
                    "restarted), so that the target may lack some. Remove what was moved at the target, run this with --forget, and start anew"
                )
            say(f"goes on behind offset {position[1].decode()}, {sum(entry.is_copied for entry in self.filters.values())} filters are there")
        else:
            self.stream.open(None)
            self.target.call(self.progress, "HSET", self.progress, "place", self.stream.position())
        say(f"{self.find()} filters found on {self.source.name}")
        if self.others:
            say(self.other_keys())
        while not self.stopping.is_set():
            if self.waiting:
                entry = self.filters[self.waiting.popleft()]
                if not entry.is_copied and not entry.problem:
                    self.copy(entry)
            has_all = self.replay()
            if has_all and not self.waiting:
                self.switch_over()
                self.is_idle = self.is_finished()
                if self.is_idle:
                    break
                time.sleep(0.005)
            self.report_progress(has_all)
        while not self.replay():
            pass
        self.stream.acknowledge()
        return self.report()

    def is_finished(self):
        if not self.has_caught_up:
            self.has_caught_up, self.last_write = True, time.monotonic()
            moved = sum(entry.is_live for entry in self.filters.values())
            say(f"caught up: {moved} filters are at {self.target.first.name}, and follow the source. Let the writers change over now")
        idle = self.options.until_idle
        return idle is not None and time.monotonic() - self.last_write > idle and \
            int(self.source.info("replication")["master_repl_offset"]) <= self.stream.applied[0]

    def report_progress(self, has_all):
        now = time.monotonic()
        if now - self.last_report < (2 if sys.stderr.isatty() else 10):
            return
        self.last_report = now
        there = sum(entry.is_copied for entry in self.filters.values())
        say(
            f"{now - self.began:.0f} s: {there} of {len(self.filters)} filters, {self.bytes >> 20} MiB; {sum(self.counts.values())} writes replayed, "
            f"{self.stream.queued} bytes wait" + ("" if has_all else ", and more come")
        )

    def verify(self):
        by_key = {}
        for key, item in self.sample:
            by_key.setdefault(key, []).append(item)
        for key, items in by_key.items():
            entry = self.filters[key]
            if not entry.problem:
                self.lost += [(key, item) for item, answer in zip(items, self.exist(key, entry.name(), items)) if not answer]

    def report(self):
        self.verify()
        moved = [entry for entry in self.filters.values() if entry.is_live and not entry.problem]
        troubled = [entry for entry in self.filters.values() if entry.problem]
        unfinished = len(self.filters) - len(moved) - len(troubled)
        print(f"{len(moved)} filters moved, {self.bytes} bytes in dumps; {self.probed} probes answered as at the source when dumped")
        print(f"{sum(self.counts.values())} writes replayed: " + (", ".join(f"{n} {name}" for name, n in sorted(self.counts.items())) or "none"))
        print(f"{len(self.sample) - len(self.lost)} of {len(self.sample)} sampled items that were added meanwhile are found at the target")
        print("not guaranteed:")
        for reason, (count, (name, key)) in self.refusals.items():
            print(f"- {count} writes were refused by the target, as {name} of {key!r}: {reason}")
        for key, item in self.lost[:10]:
            print(f"- {item!r} was added to {key!r}, and is not found")
        for entry in troubled:
            print(f"- {entry.key!r} is not right at the target: {entry.problem}")
        if self.others:
            print(f"- {self.other_keys()}")
        if unfinished:
            print(f"- {unfinished} filters are not visible at the target yet; run this again to go on")
        if self.counts["CF.DEL"]:
            print(
                f"- {self.counts['CF.DEL']} removals were replayed: one of an item that RedisBloom had may have hit a newer item of the same fingerprint, "
                "at most at the target's error rate (--error-rate)"
            )
        print("- writes to the source after this report; and removals that reached the target before the addition that they take back")
        is_complete = not (troubled or unfinished or self.lost or self.refusals)
        if is_complete and self.is_idle:
            self.forget()
        else:
            print("state is kept at the target: run this again to go on, or with --forget to end the migration")
        return 0 if is_complete else 1

    def forget(self):
        """Removes the state of a migration, but not the filters that moved."""
        self.resume()
        for entry in self.filters.values():
            self.target.batch(entry.key, [("DEL", entry.state), ("DEL", entry.shadow)])
        self.target.call(self.progress, "DEL", self.progress)
        return 0


def insertion(words, rate):
    """Returns the arguments after the key of CF.INSERT or CF.INSERTNX, and the items in them. The options are in full: RedisBloom reads
    only the first letter, and replicates what it was sent. `rate` has the option ERROR, unless it is empty."""
    rest, options = words[2:], []
    while rest:
        option = INSERT_OPTIONS.get(rest[0][:1].upper(), rest[0])
        if option == b"ITEMS":
            return [*([] if b"ERROR" in options else rate), *options, option, *rest[1:]], rest[1:]
        count = 1 if option == b"NOCREATE" else 2
        options += [option, *rest[1:count]]
        rest = rest[count:]
    return options, []


def reservation(words, rate):
    """Returns the arguments after the key of CF.RESERVE, without the options that RedisBloom ignores and the target refuses. `rate` as in
    `insertion`."""
    pairs = [pair for pair in zip(words[3::2], words[4::2]) if is_option_of_reserve(*pair)]
    return [words[2], *itertools.chain(*pairs), *([] if any(name.upper() == b"ERROR" for name, _ in pairs) else rate)]


def is_option_of_reserve(name, value):
    """Returns true if the target takes this option. A source with RedisBloom takes any value of ERROR and SEED, which it ignores."""
    name = name.upper()
    if name == b"SEED":
        return value.isdigit() and int(value) < 1 << 63 and value == b"%d" % int(value)
    if name == b"ERROR":
        try:
            return LEAST_RATE <= float(value) < 1
        except ValueError:
            return False
    return name in RESERVE_OPTIONS


def changes(database, selected, name, words):
    """Returns true if a command that runs while `selected` is the database may change keys of `database`."""
    if name == b"FLUSHALL":
        return True
    if name == b"SWAPDB":
        return database in map(int, words[1:3])
    if name == b"MOVE":
        return database in (selected, int(words[2]))
    if name == b"COPY":
        options = [word.upper() for word in words[3:]]
        return database == (int(words[4 + options.index(b"DB")]) if b"DB" in options else selected)
    return database == selected


def changed_keys(name, words):
    """Returns the keys that a command changes, if it does not change all."""
    if name in STORING_COMMANDS:
        return [key for word, key in zip(words, words[1:]) if word.upper() in (b"STORE", b"STOREDIST")]
    return words[CHANGED_KEYS.get(name, slice(1, 2))]


def stream_database(head):
    """Returns the database that is selected where the stream begins, from the beginning of the RDB file before it, or `None`. A
    primary selects one at once, but a replica passes on the stream of its primary."""
    _, _, rest = head.partition(b"\x0erepl-stream-db")
    if not rest:
        return None
    if rest[0] >> 6 == 3:
        return int.from_bytes(rest[1:1 + (1 << (rest[0] & 3))], "little")
    return int(rest[1:1 + rest[0]])


def same_slot(key):
    """Returns a name to which anything can be appended, in the slot of the key."""
    _, _, rest = key.partition(b"{")
    tag, brace, _ = rest.partition(b"}")
    if tag and brace:
        return key
    if key and b"}" not in key:
        return b"{%b}" % key
    return b"{%d}%b" % (tag_of(slot(key)), key)  # The whole key cannot be a tag.


def slot(tag):
    return binascii.crc_hqx(tag, 0) % 16384


@functools.lru_cache(maxsize=None)
def tag_of(number):
    """Returns the first number that is a tag of this slot."""
    return next(tag for tag in itertools.count() if slot(b"%d" % tag) == number)


def is_internal(key):
    return key.endswith((SUFFIX, SUFFIX + b":state"))


def matches(pattern, key):
    """Returns true if the pattern matches the key, as in SCAN's MATCH."""
    return expression(pattern).fullmatch(key) is not None


@functools.lru_cache(maxsize=None)
def expression(pattern):
    """Returns the regular expression for a pattern of SCAN's MATCH."""
    parts = []
    for escaped, bracket, caret, members, one in PATTERN_PART.findall(pattern.encode()):
        if not bracket:
            parts.append({b"*": b".*", b"?": b"."}.get(one, re.escape(escaped or one)))
        elif not members:  # Nothing matches [], and anything [^].
            parts.append(b"." if caret else b"(?!)")
        else:
            parts.append(b"[%b%b]" % (caret, b"".join(map(member, PATTERN_MEMBER.findall(members)))))
    return re.compile(b"".join(parts), re.DOTALL)


def member(part):
    """Returns a character or a range within brackets as a regular expression has it."""
    escaped, first, last, one = part
    return b"-".join(map(re.escape, sorted([first, last]))) if first else re.escape(escaped or one)


def decode(name):
    return name.decode()


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse_options():
    about, _, _ = __doc__.partition("\n\nExit code")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="URL of the server with RedisBloom")
    parser.add_argument("target", help="URL of the server with koel")
    parser.add_argument("--match", default="*", metavar="PATTERN", help="only keys of this pattern, as in SCAN (default: all)")
    parser.add_argument(
        "--until-idle", type=float, metavar="SECONDS",
        help="end, and remove the migration's state, when no filter of the source was written for so long. Without it: until Ctrl-C or SIGTERM, "
        "after which another run goes on",
    )
    parser.add_argument("--probes", type=int, default=1000, metavar="N", help="random items that both must answer alike, 0 to 100000 (default: 1000)")
    parser.add_argument("--items", metavar="FILE", help="items to ask for besides, one a line, such as some that are known to be there")
    parser.add_argument(
        "--error-rate", type=float, metavar="RATE",
        help="of the filter for new items, above 0 and below 1 (default: the target's koel.error-rate). Choose 0.0001 if items are removed",
    )
    parser.add_argument(
        "--most-at-once", type=int, default=64 << 20, metavar="BYTES",
        help="the largest filter that is dumped: the source does nothing else meanwhile, and needs as much memory again (default: 67108864)",
    )
    parser.add_argument("--most-queued", type=int, default=1 << 30, metavar="BYTES", help="of writes that wait in this program (default: 1073741824)")
    parser.add_argument("--forget", action="store_true", help="remove the state of a migration from the target, and what is not yet visible")
    options = parser.parse_args()
    if not 0 <= options.probes <= 100_000:
        parser.error(f"--probes {options.probes} is not from 0 to 100000")
    if options.error_rate is not None and not 0 < options.error_rate < 1:
        parser.error(f"--error-rate {options.error_rate} is not above 0 and below 1")
    try:
        options.items = open(options.items, "rb").read().splitlines() if options.items else []
    except OSError as error:
        parser.error(f"--items cannot be read: {error}")
    return options


def main():
    try:
        migration = Migration(parse_options())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: migration.stopping.set())
        return migration.run()
    except (Failure, Refusal) as failure:
        say(f"error: {failure}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
