"""A stand-in for a server with RedisBloom: it dumps what RedisBloom wrote (tests/data/redisbloom), and replicates commands as
RedisBloom does, word for word, also those that changed nothing. As a server of Redis 6, it sends replicas a whole RDB file."""

import socket
import struct
import threading
from contextlib import suppress

from filters import INFO_FIELDS, chunks_of
from wire import READERS, Connection, encode

ID = "a" * 40
FILE = bytes(range(256)) * 1000
"""What stands for an RDB file: nobody reads it."""


class Accepted(Connection):
    """The server's side of a connection."""

    def __init__(self, accepted):
        self.socket = accepted
        self.stream = accepted.makefile("rb")

    def command(self):
        line = self.stream.readline()
        return READERS[line[:1]](self, line[1:-2]) if line else None

    def answer(self, reply):
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
                self.answer(one)


class RedisBloom:
    """Serves filters: a fixture for each key. `write` is what a client does; the filters stay as they were, as long as they are
    dumped before."""

    def __init__(self, filters, ending=b"$EOF:"):
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
            client.answer(b"run_id:fake\r\nmaster_repl_offset:%d\r\n" % len(self.stream))
        elif name == "SCAN":
            client.answer([b"0", [key.encode() for key in self.filters]])
        elif name == "TYPE":
            client.answer("+MBbloomCF")
        elif name == "EVAL":
            client.answer(self.dump(words[2].decode(), words[4:]))
        elif name == "REPLCONF" and words[0].upper() == b"ACK":
            self.acknowledged = int(words[1])
        elif name == "REPLCONF" and words[0] == b"rdb-filter-only":
            client.answer("-ERR Unrecognized REPLCONF option: rdb-filter-only")
        elif name == "PSYNC":
            self.begin(client)
        else:
            client.answer("+OK")

    def begin(self, client):
        client.answer("+FULLRESYNC %s 0" % ID)
        mark = b"b" * 40
        # An empty line keeps the connection alive; the beginning of the mark stands in the file, too.
        if self.ending == b"$EOF:":
            client.send(b"\n$EOF:" + mark + b"\r\n" + mark[:20] + FILE + mark)
        else:
            client.send(b"\n$%d\r\n" % len(FILE) + FILE)
        with self.lock:
            client.send(self.stream)
            self.replicas.append(client)

    def dump(self, key, probes):
        """The reply of the script in migrate.py: answers as the fixture has them."""
        fixture, place = self.filters[key], str(len(self.stream)).encode()
        self.dumped.add(key)
        about = [part for name in INFO_FIELDS for part in ("+" + name, fixture["info"][name])]
        hits = {b"%b%d" % (fixture["probe_prefix"].encode(), n) for n in fixture["probe_hits"]}
        chunks = [part for iterator, data in chunks_of(fixture) for part in (str(iterator).encode(), data)]
        return [place, b"MBbloomCF", about, [int(probe in hits) for probe in probes], chunks, b"-1"]

    def write(self, *words):
        with self.lock:
            self.stream += encode(*words)
            for replica in self.replicas:
                replica.send(encode(*words))

    def close(self):
        self.listener.close()
        for replica in self.replicas:
            replica.close()
