"""A small client of the Redis protocol, versions 2 and 3, that keeps the exact types of replies: `+OK` is a `str`, a bulk
string is `bytes`, `:1` an `int`, `#t` a `bool`. It sends many commands at once, which other clients do slowly.
"""

import socket


class Refusal(Exception):
    """An error reply."""

    def __repr__(self):
        return f"-{self}"


class Pairs(list):
    """A map of RESP3, in the order of the reply."""


class Connection:
    """A connection that is called with a command: returns the reply, or raises `Refusal`. The address is a path, or a host and
    a port."""

    def __init__(self, address, protocol=2, timeout=60):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.stream = self.socket.makefile("rb", buffering=1 << 16)
        if protocol == 3:
            self("HELLO", 3)

    def __call__(self, *arguments):
        self.send(encode(*arguments))
        return raise_refusal(self.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def pipeline(self, commands, at_a_time=500):
        """Returns the replies to all commands, refusals among them. Sends at most `at_a_time` commands at once, so that all
        buffers have room."""
        commands, replies = list(commands), []
        for start in range(0, len(commands), at_a_time):
            batch = commands[start : start + at_a_time]
            self.send(b"".join(encode(*command) for command in batch))
            replies += [self.read() for _ in batch]
        return replies

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        """Returns the next reply. A refusal is returned, not raised."""
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        return READERS[line[:1]](self, line[1:-2])

    def read_bytes(self, count):
        data = self.stream.read(count)
        if len(data) != count:
            raise ConnectionError("the server closed the connection")
        return data

    def read_bulk(self, length):
        return None if length == b"-1" else self.read_bytes(int(length) + 2)[:-2]

    def read_array(self, length):
        return None if length == b"-1" else [self.read() for _ in range(int(length))]

    def read_map(self, length):
        return Pairs((self.read(), self.read()) for _ in range(int(length)))

    def close(self):
        self.stream.close()
        self.socket.close()


READERS = {
    b"+": lambda _, text: text.decode(),
    b"-": lambda _, text: Refusal(text.decode()),
    b":": lambda _, text: int(text),
    b"_": lambda _, text: None,
    b"#": lambda _, text: {b"t": True, b"f": False}[text],
    b",": lambda _, text: float(text),
    b"$": Connection.read_bulk,
    b"=": lambda self, length: self.read_bulk(length)[4:],
    b"*": Connection.read_array,
    b"~": Connection.read_array,
    b">": Connection.read_array,
    b"%": Connection.read_map,
}


def raise_refusal(reply):
    if isinstance(reply, Refusal):
        raise reply
    return reply


def encode(*arguments):
    """Returns the bytes of a command."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        if not isinstance(argument, bytes):
            argument = str(argument).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(argument), argument))
    return b"".join(parts)


def same(reply, expected):
    """Asserts that both are equal and have the same types: 1 is not True, and a simple string is not a bulk string."""
    assert repr(reply) == repr(expected)


def pairs(reply):
    """Returns a reply of names and values as a list of pairs, in either protocol."""
    if isinstance(reply, Pairs):
        return list(reply)
    return list(zip(reply[::2], reply[1::2]))
