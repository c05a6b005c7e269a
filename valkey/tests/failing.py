"""Servers in which allocations of the module fail when a test says so."""

import functools
import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

from servers import MODULE, ROOT, Server

SOURCE = Path(__file__).with_name("failing.c")
WRAPPER = ROOT / "target/valkey/failing.so"
FIELDS = ("least", "most", "passed", "failing", "chance", "random", "failed")
ALWAYS = 1 << 16
ANY_NUMBER = (1 << 64) - 1


@functools.cache
def wrapper():
    """The module that wraps another one; `None` without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return None
    # Tests run in several processes: each builds its own, and renames it.
    built = WRAPPER.with_name(f"failing-{os.getpid()}.so")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(built), str(SOURCE), "-ldl"], check=True, timeout=60)
    built.rename(WRAPPER)
    return WRAPPER


class FailingServer(Server):
    """`with server.failing(...)`: allocations fail meanwhile."""

    def __init__(self, binary, *options, **keywords):
        self.orders = None
        super().__init__(binary, *options, module=wrapper(), **keywords)

    def environment(self):
        path = self.folder / "failing"
        if not path.exists():
            path.write_bytes(bytes(8 * len(FIELDS)))
        if self.orders is None:
            with open(path, "r+b") as file:
                self.orders = mmap.mmap(file.fileno(), 8 * len(FIELDS))
        self.order()
        return {"KOEL_VALKEY_FAILING": str(path), "KOEL_VALKEY_WRAPPED": str(MODULE)}

    def order(self, least=0, most=0, passed=0, failing=ANY_NUMBER, chance=ALWAYS, random=1):
        """Of allocations of these sizes, so many pass, and so many then fail with this chance of 65536."""
        self.orders[:] = struct.pack("<7Q", least, most, passed, failing, chance, random, 0)

    def failed(self):
        """How many have failed since."""
        return struct.unpack_from("<Q", self.orders, 8 * FIELDS.index("failed"))[0]

    def failing(self, **orders):
        return Failing(self, {"most": ANY_NUMBER, **orders})


class Failing:
    """While it is entered, allocations fail."""

    def __init__(self, server, orders):
        self.server, self.orders, self.failed = server, orders, 0

    def __enter__(self):
        self.server.order(**self.orders)
        return self

    def __exit__(self, *_):
        self.failed = self.server.failed()
        self.server.order()
