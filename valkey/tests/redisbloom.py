"""A fake server with RedisBloom. It dumps what RedisBloom wrote (tests/data/redisbloom), and replicates commands as RedisBloom
does: verbatim, even if they changed nothing. As a server of Redis 6 does, it sends replicas a complete RDB file."""

import socket
import struct
import threading
from contextlib import suppress

from filters import INFO_FIELDS, chunks_of
from wire import READERS, Connection, encode

ID = "a" * 40
FILE = bytes(range(256)) * 1000
"""A fake RDB file, which nobody reads."""


class Accepted(Connection):
    """The server's side of a connection."""

    def __init__(self, accepted):
        self.socket = accepted
        self.stream = accepted.makefile("rb")

    def command(self):
        line = self.stream.readline()
        return READERS[line[:1]](self, line[1:-2]) if line else None

    def reply_with(self, reply):
        if reply is None:
            self.send(b"$-1\r\n")
        elif isinstance(reply, int):
            self.send(b":%d\r\n" % reply)
        elif isinstance(reply, str):
            self.send(b"%b\r\n" % reply.encode())
        elif isinstance(reply, bytes):
            self.send(b"$%d\r\n%b\r\n" % (len(reply), reply))
        else:
            self.send(b"*%d\r\n" % len(reply))
            for one in reply:
                self.reply_with(one)


class RedisBloom:
    """A server of filters, one fixture per key. `write` replicates a client's command. The filters themselves do not change, so
    they must be dumped first. `others` has the types of other keys."""

    def __init__(self, filters, ending=b"$EOF:", others=()):
        self.others = dict(others)
        self.filters, self.ending, self.stream, self.replicas = filters, ending, encode("SELECT", 0), []
        self.lock, self.dumped, self.acknowledged = threading.Lock(), set(), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(Accepted(accepted),), daemon=True).start()

    def serve(self, client):
        with suppress(OSError, ConnectionError):
            while words := client.command():
                self.execute(client, words[0].upper().decode(), words[1:])

    def execute(self, client, name, words):
        if name == "INFO":
            client.reply_with(b"run_id:fake\r\nmaster_repl_offset:%d\r\n" % len(self.stream))
        elif name == "SCAN":
            client.reply_with([b"0", [key.encode() for key in [*self.filters, *self.others]]])
        elif name == "TYPE":
            client.reply_with("+" + self.others.get(words[0].decode(), "MBbloomCF"))
        elif name == "EVAL":
            client.reply_with(self.dump(words[2].decode(), words[4:]))
        elif name == "REPLCONF" and words[0].upper() == b"ACK":
            self.acknowledged = int(words[1])
        elif name == "REPLCONF" and words[0] == b"rdb-filter-only":
            client.reply_with("-ERR Unrecognized REPLCONF option: rdb-filter-only")
        elif name == "PSYNC":
            self.begin(client)
        else:
            client.reply_with("+OK")

    def begin(self, client):
        client.reply_with("+FULLRESYNC %s 0" % ID)
        mark = b"b" * 40
        # An empty line keeps the connection alive. The beginning of the mark also occurs in the file.
        if self.ending == b"$EOF:":
            client.send(b"\n$EOF:" + mark + b"\r\n" + mark[:20] + FILE + mark)
        else:
            client.send(b"\n$%d\r\n" % len(FILE) + FILE)
        with self.lock:
            client.send(self.stream)
            self.replicas.append(client)

    def dump(self, key, probes):
        """Returns the reply of migrate.py's script, with the fixture's results."""
        fixture, offset = self.filters[key], str(len(self.stream)).encode()
        self.dumped.add(key)
        about = [part for name in INFO_FIELDS for part in ("+" + name, fixture["info"][name])]
        hits = {b"%b%d" % (fixture["probe_prefix"].encode(), n) for n in fixture["probe_hits"]}
        chunks = [part for iterator, data in chunks_of(fixture) for part in (str(iterator).encode(), data)]
        return [offset, b"MBbloomCF", about, [int(probe in hits) for probe in probes], chunks, b"-1"]

    def write(self, *words):
        with self.lock:
            self.stream += encode(*words)
            for replica in self.replicas:
                replica.send(encode(*words))

    def close(self):
        self.listener.close()
        for replica in self.replicas:
            replica.close()
