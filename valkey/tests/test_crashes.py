"""The server is killed, as by a power failure. Afterwards, everything acknowledged that was to be saved is present."""

import threading

import pytest

from filters import add_all, all_exist, differences, items, make_zoo, refused, states
from servers import FAILPOINT_MODULE, wait_until
from wire import same


def test_acknowledged_items_survive_a_kill(start):
    """With `appendfsync always`, every acknowledged item is present after the restart."""
    server = start("appendonly yes", "appendfsync always")
    acknowledged, enough = [], threading.Event()
    writer = threading.Thread(target=write_until_killed, args=(server, acknowledged, enough))
    writer.start()
    try:
        assert enough.wait(60)
    finally:
        server.kill()
        writer.join(60)
    assert not writer.is_alive()
    server.start()
    with server.connect() as call:
        for key in ("f", "g"):
            all_exist(call, key, [item for name, item in acknowledged if name == key])
        same(call("CF.ADD", "f", "afterwards"), 1)


def write_until_killed(server, acknowledged, enough):
    """Alternates single additions and batches, until the server is gone."""
    n = 0
    try:
        with server.connect() as call:
            while True:
                single, batch = items("single-", 20, n), items("batch-", 50, n)
                replies = call.pipeline([("CF.ADD", "f", item) for item in single])
                assert replies == [1] * 20
                acknowledged += [("f", item) for item in single]
                assert call("CF.INSERT", "g", "ITEMS", *batch) == [1] * 50
                acknowledged += [("g", item) for item in batch]
                n += 50
                if n >= 5000:
                    enough.set()
    except (ConnectionError, OSError):
        enough.set()


def test_a_kill_during_a_save_keeps_the_old_file(start):
    """The server then loads the old file."""
    server = start("rdb-key-save-delay 200000")
    with server.connect() as call:
        call("CONFIG", "SET", "rdb-key-save-delay", 0)
        make_zoo(call)
        call("SAVE")
        before = states(call)
        call("CONFIG", "SET", "rdb-key-save-delay", 200_000)
        add_all(call, "plain", items("lost-", 20_000))
        call("BGSAVE")
        wait_until(server.children)
    server.kill()
    server.options.clear()
    server.start()
    with server.connect() as call:
        assert not differences(states(call), before)


def test_a_kill_during_a_rewrite_keeps_the_old_aof(start):
    """The server then loads the old AOF, with everything that was written since."""
    server = start("appendonly yes", "appendfsync always", "rdb-key-save-delay 200000")
    with server.connect() as call:
        make_zoo(call)
        call("BGREWRITEAOF")
        wait_until(server.children)
        add_all(call, "plain", items("meanwhile-", 5000))
        before = states(call)
    server.kill()
    server.start()
    with server.connect() as call:
        assert not differences(states(call), before)


def test_a_truncated_aof(start):
    """The file ends in the middle of a command, as after a power failure. The server loads all complete commands."""
    server = start("appendonly yes", "aof-use-rdb-preamble no")
    added = items("item-", 1000)
    with server.connect() as call:
        for item in added:
            call("CF.ADD", "f", item)
    server.stop()
    path = next((server.folder / "appendonlydir").glob("*.incr.aof"))
    path.write_bytes(path.read_bytes()[:-7])
    server.start()
    with server.connect() as call:
        all_exist(call, "f", added[:-1])
        same(call("CF.COUNT", "f", added[-1]), 0)


def test_a_panic_is_an_error(start):
    """A command that only the test build has panics in the module. The server survives and logs it."""
    if not FAILPOINT_MODULE.exists():
        pytest.skip(f"{FAILPOINT_MODULE} is missing: `just module` builds it")
    server = start(module=FAILPOINT_MODULE)
    with server.connect() as call:
        add_all(call, "f", items("item-", 1000))
        before = states(call)
        for _ in range(3):
            refused("ERR internal error", call, "CF.PANIC", "f")
        assert not differences(states(call), before)
        refused("ERR internal error", call, "EVAL", "return redis.call('CF.PANIC', KEYS[1])", 1, "f")
        add_all(call, "f", items("more-", 1000))
    assert "panic" in server.log().lower()
