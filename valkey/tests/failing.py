"""Servers in which the module's allocations fail on demand."""

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
    """Returns the path of a module that wraps another one, or `None` without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return None
    # Tests run in several processes. Each builds its own file, and renames it.
    built = WRAPPER.with_name(f"failing-{os.getpid()}.so")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(built), str(SOURCE), "-ldl"], check=True, timeout=60)
    built.rename(WRAPPER)
    return WRAPPER


class FailingServer(Server):
    """A server whose allocations fail inside `with server.failing(...)`, and as `failures_at_start` says until then."""

    def __init__(self, binary, *options, **keywords):
        self.settings, self.failures_at_start = None, {}
        super().__init__(binary, *options, module=wrapper(), **keywords)

    def environment(self):
        path = self.folder / "failing"
        if not path.exists():
            path.write_bytes(bytes(8 * len(FIELDS)))
        if self.settings is None:
            with open(path, "r+b") as file:
                self.settings = mmap.mmap(file.fileno(), 8 * len(FIELDS))
        self.set_failures(**self.failures_at_start)
        return {"KOEL_VALKEY_FAILING": str(path), "KOEL_VALKEY_WRAPPED": str(MODULE)}

    def set_failures(self, least=0, most=0, passed=0, failing=ANY_NUMBER, chance=ALWAYS, random=1):
        """Sets which allocations fail. Of those with `least` to `most` bytes, the first `passed` succeed. Then up to `failing`
        of them fail, each with a probability of `chance` / 65536."""
        self.settings[:] = struct.pack("<7Q", least, most, passed, failing, chance, random, 0)

    def failed(self):
        """Returns how many allocations have failed since."""
        return struct.unpack_from("<Q", self.settings, 8 * FIELDS.index("failed"))[0]

    def failing(self, **settings):
        return Failing(self, {"most": ANY_NUMBER, **settings})


class Failing:
    """A context in which allocations fail."""

    def __init__(self, server, settings):
        self.server, self.settings, self.failed = server, settings, 0

    def __enter__(self):
        self.server.set_failures(**self.settings)
        return self

    def __exit__(self, *_):
        self.failed = self.server.failed()
        self.server.set_failures()
