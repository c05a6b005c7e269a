"""A proxy in front of a server. It shows a client another server than there is: one that refuses a command, or gets another one."""

import socket
import threading
from contextlib import suppress

from wire import Connection, encode


class Proxy:
    """Forwards connections to a server. `alter` takes the words of each command, and returns those to send instead, or the bytes of
    a reply."""

    def __init__(self, server, alter):
        self.server, self.alter, self.open = server, alter, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.run(self.listen)

    def run(self, act, *arguments):
        def until_closed():
            with suppress(OSError, ConnectionError, ValueError):
                act(*arguments)

        threading.Thread(target=until_closed, daemon=True).start()

    def listen(self):
        while True:
            client, there = Client(self.listener.accept()[0]), self.server.connect()
            self.open += [client, there]
            self.run(self.forward, client, there)
            self.run(self.send_back, client, there)

    def forward(self, client, there):
        while True:
            instead = self.alter(client.read())
            if isinstance(instead, bytes):
                client.send(instead)
            else:
                there.send(encode(*instead))

    def send_back(self, client, there):
        while data := there.stream.read1(1 << 16):
            client.send(data)
        # The client notices that the server is gone.
        client.socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        for one in self.open:
            with suppress(OSError):
                one.socket.shutdown(socket.SHUT_RDWR)


class Client(Connection):
    """The server's side of a connection."""

    def __init__(self, accepted):
        self.socket = accepted
        self.stream = accepted.makefile("rb")
