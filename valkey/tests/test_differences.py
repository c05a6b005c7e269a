"""Each row of "Differences from RedisBloom" in docs/VALKEY.md is true of both: either test_replies.py sees it in replies, or a test
here does."""

import re

import pytest

from filters import add_all, dump, exist, info, insert, is_refused, items, load
from servers import ROOT
from test_replies import COMMANDS, DIFFERENCES
from wire import pairs


def rows():
    """Returns the first cells of the table."""
    text = (ROOT / "docs/VALKEY.md").read_text().split("\n## Differences from RedisBloom\n")[1].split("\n## ")[0]
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:]


def test_every_row_is_checked():
    assert sorted(rows()) == sorted({row for row, *_ in DIFFERENCES} | CHECKED_HERE)


CHECKED_HERE = set()


def row(name):
    """Marks a test of the row with this name."""
    CHECKED_HERE.add(name)
    return lambda test: test


def rate(call, key):
    return sum(exist(call, key, items("absent-", 50_000))) / 50_000


@row("error rate")
def test_error_rate(call, bloom):
    """RedisBloom's rate depends on how full a filter is, and adds up."""
    rates = []
    for both in (call, bloom):
        both("CF.RESERVE", "f", 8192)
        insert(both, "f", items("item-", 8000))
        both("CF.RESERVE", "grown", 1024)
        insert(both, "grown", items("item-", 8000))
        rates.append((rate(both, "f"), rate(both, "grown")))
    (own, grown), (theirs, theirs_grown) = rates
    assert own < 0.01 and grown < 0.01, rates
    assert 0.01 < theirs < 0.03 < theirs_grown, rates


@row("growth")
def test_growth(call, bloom):
    for both in (call, bloom):
        both("CF.RESERVE", "f", 1024)
        insert(both, "f", items("item-", 8000))
    assert info(call, "f")["Number of filters"] == 1 and info(bloom, "f")["Number of filters"] > 8


@row("size")
def test_size(call, bloom):
    sizes = []
    for both in (call, bloom):
        for key, capacity in (("more", 1_100_000), ("much more", 2_000_000)):
            both("CF.RESERVE", key, capacity)
        sizes.append([info(both, key)["Size"] for key in ("more", "much more")])
    assert sizes[0][0] < sizes[0][1] and sizes[1][0] == sizes[1][1], sizes


@row("`CF.COMPACT`")
def test_compaction(call, bloom):
    """After removals, RedisBloom has fewer sub-filters, and this module fewer tables."""
    for both, field in ((call, "Shards"), (bloom, "Number of filters")):
        both("CF.RESERVE", "f", 1024)
        insert(both, "f", items("item-", 20_000))
        both.pipeline([("CF.DEL", "f", item) for item in items("item-", 9000)])
        before = info(both, "f")[field]
        both("CF.COMPACT", "f")
        assert info(both, "f")[field] < before


@row("`CF.LOADCHUNK` on replicas")
def test_replicated_chunks(start, start_redisbloom):
    """RedisBloom writes only the header to replicas and append-only files."""
    after = []
    for server in (start("appendonly yes"), start_redisbloom("appendonly yes")):
        with server.connect() as call:
            insert(call, "f", items("item-", 1000))
            chunks = dump(call, "f")
            call("DEL", "f")
            load(call, "f", chunks)
            assert exist(call, "f", items("item-", 1000)) == [1] * 1000
        server.restart()
        with server.connect() as call:
            after.append(sum(exist(call, "f", items("item-", 1000))))
    assert after == [1000, 0]


@row("`CF.LOADCHUNK` of half a filter")
def test_half_a_filter(call, bloom):
    insert(bloom, "f", items("item-", 3000))
    (first, *_), chunks = dump(bloom, "f"), dump(bloom, "f")
    for both in (call, bloom):
        load(both, "half", [first])
    assert is_refused(call, "CF.EXISTS", "half", "item-1")
    assert bloom("CF.EXISTS", "half", "item-1") == 0 and info(bloom, "half")["Number of items inserted"] == 3000
    load(call, "half", chunks[1:])
    assert exist(call, "half", items("item-", 3000)) == [1] * 3000


@row("dump")
def test_dump(call, bloom):
    """A flipped bit is not noticed in RedisBloom's chunks."""
    for both in (call, bloom):
        insert(both, "f", items("item-", 500))
        *chunks, (iterator, data) = dump(both, "f")
        damaged = [*chunks, (iterator, data[:-100] + bytes([data[-100] ^ 1]) + data[-99:])]
        if both is bloom:
            load(both, "damaged", damaged)
        else:
            with pytest.raises(Exception, match="Couldn't load chunk!"):
                load(both, "damaged", damaged)
    (_, data), *_ = dump(call, "f")
    assert data.startswith(b"KOEL")


@row("`CF.DEBUG`")
def test_debug(call, bloom):
    """The same words with other figures, except for an imported filter."""
    lines = []
    for both in (call, bloom):
        insert(both, "f", items("item-", 500))
        lines.append(both("CF.DEBUG", "f").decode())
    words = [re.findall("([a-z_]+):", line) for line in lines]
    assert words[0] == [*words[1], "distinct", "buckets_per_lookup"] and not lines[0].startswith(lines[1])
    load(call, "imported", dump(bloom, "f"))
    assert call("CF.DEBUG", "imported").startswith(bloom("CF.DEBUG", "f") + b" distinct:")


@row("`CF.INFO`")
def test_info(call, bloom):
    """This module has more fields, and figures of its own about tables."""
    for both in (call, bloom):
        both("CF.RESERVE", "f", 1000, "BUCKETSIZE", 8, "MAXITERATIONS", 50)
    ours, theirs = (pairs(both("CF.INFO", "f")) for both in (call, bloom))
    assert [name for name, _ in ours[: len(theirs)]] == [name for name, _ in theirs] and len(ours) > len(theirs)
    assert [dict(theirs)[name] for name in ("Bucket size", "Max iterations")] == [8, 50]
    assert [dict(ours)[name] for name in ("Bucket size", "Max iterations")] == [4, 4096]


@row("`COMMAND INFO`")
def test_flags(call, bloom):
    """Except for this, the flags and the position of the key are the same: what ACLs, clusters and clients go by."""
    def facts(both, command):
        ((_, arity, flags, *positions, _), *_) = [reply[:7] for reply in both("COMMAND", "INFO", command)]
        return arity, set(flags) - {"fast"}, positions

    differing = {}
    for command in COMMANDS:
        (arity, *ours), (their_arity, *theirs) = facts(call, command), facts(bloom, command)
        assert their_arity == -1 != arity
        if ours != theirs:
            differing[command] = (ours[0], theirs[0])
    assert differing == {"CF.COMPACT": ({"write", "module"}, {"readonly", "module"})}
    results = []
    for both in (call, bloom):
        both("MULTI")
        at_once = is_refused(both, "CF.ADD", "f")
        both("CF.ADD", "f", "a")
        results.append((at_once, is_refused(both, "EXEC"), both("EXISTS", "f")))
    assert results == [(True, True, 0), (False, False, 1)]


@row("RDB")
def test_rdb(call, bloom):
    """The payload of DUMP, which is a part of an RDB file, does not load."""
    add_all(bloom, "f", items("item-", 100))
    assert is_refused(call, "RESTORE", "f", 0, bloom("DUMP", "f"))
