"""Ten million items in a filter that was created for a thousand: none is refused, and the error rate is as promised."""

import math

import pytest

import servers
from filters import exist, info, items
from servers import Server
from wire import encode

COUNT, BATCH, PROBES = 10_000_000, 1000, 100_000


@pytest.fixture(scope="module")
def newest():
    """One server suffices: the newest Valkey, or what is installed."""
    server = Server(servers.found()[-1], "slowlog-log-slower-than 2000", "slowlog-max-len 1000")
    yield server
    server.close()


def batches(key):
    """Yields commands with a thousand items of eight digits, which are fast to build."""
    head = encode("CF.INSERT", key, "ITEMS").replace(b"*3", b"*%d" % (3 + BATCH), 1)
    for start in range(0, COUNT, BATCH):
        yield head + b"".join([b"$8\r\n%08d\r\n" % n for n in range(start, start + BATCH)])


def insert_all(call, key):
    """Sends all batches, ten at a time, and compares the replies byte by byte."""
    all_added = b"*%d\r\n" % BATCH + b":1\r\n" * BATCH
    waiting = 0
    for command in batches(key):
        call.send(command)
        waiting += 1
        if waiting == 10:
            for _ in range(waiting):
                assert call.read_bytes(len(all_added)) == all_added
            waiting = 0
    assert waiting == 0


def test_ten_million(newest):
    with newest.connect() as call:
        call("CF.RESERVE", "f", 1000)
        insert_all(call, "f")
        found = info(call, "f")
        rate = float(found["False positive rate"])
        assert found["Number of items inserted"] == COUNT and rate <= float(found["Error rate"]) == 0.01
        hits = sum(exist(call, "f", items("absent-", PROBES)))
        # Five standard deviations of a binomial distribution.
        assert abs(hits - PROBES * rate) <= 5 * math.sqrt(PROBES * rate * (1 - rate)), (hits, rate)
        sampled = range(0, COUNT, 997)
        assert set(exist(call, "f", [b"%08d" % n for n in sampled])) == {1}
        print(f"{newest.binary}: {found['Size'] * 8 / COUNT:.2f} bits per item, {hits} of {PROBES} absent items found")
        report_slow_commands(call)


def report_slow_commands(call):
    """Prints times without checking them, because they depend on the machine."""
    slow = call("SLOWLOG", "GET", -1)
    names = sorted({entry[3][0].decode() for entry in slow})
    longest = max((entry[2] for entry in slow), default=0)
    print(f"commands above 2 ms: {len(slow)} ({', '.join(names) or 'none'}), the longest {longest / 1000:.1f} ms")
