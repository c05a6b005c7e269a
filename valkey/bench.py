#!/usr/bin/env python3
"""Measures the module on every installed server, and RedisBloom beside it, and prints tables of docs/VALKEY.md in Markdown. Times are
the server's own (INFO commandstats, SLOWLOG), without the client's.

    .ci/install; cargo build --release -p koel-valkey
    target/python/bin/python valkey/bench.py [--items 1000000] [--grown 10000000] [TABLE...] [SERVER...]

TABLE is speed, pauses, memory, sizes or blocking; without one, the first three are measured. SERVER is a prefix of names such as
valkey-9 or redisbloom. `docs/measure` writes the tables into the page.
"""

import argparse
import functools
import statistics
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # No __pycache__ among the sources.
sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))

import redisbloom
import servers
from filters import info
from servers import Server, wait_until
from wire import encode, raise_refusal

BATCH = 1000
AT_A_TIME = 500
ROUNDS = 3
TRIES = 9
"""Long calls are repeated this often, and the shortest time counts: other programs interrupt most of them."""
DUMPS = 5
ABSENT = 5_000_000_000
"""Items from this number on are in no filter."""

MAX_SUB_FILTERS = 32
"""RedisBloom's filters have no more. By default, all have the same size."""


def single(name, key, numbers):
    """Yields commands with one item each."""
    head = encode(name, key, b"").removesuffix(b"$0\r\n\r\n")
    return (b"%b$10\r\n%010d\r\n" % (head, n) for n in numbers)


def batches(key, name, words, numbers):
    """Yields commands with a thousand items each."""
    head = encode(name, key, *words).split(b"\r\n", 1)[1]
    for start in range(numbers.start, numbers.stop, BATCH):
        batch = range(start, min(start + BATCH, numbers.stop))
        yield b"*%d\r\n" % (2 + len(words) + len(batch)) + head + b"".join([b"$10\r\n%010d\r\n" % n for n in batch])


def run(call, commands, at_a_time=AT_A_TIME):
    """Sends the commands in pipelines, and returns the sum of the replies: the number of items added or found."""
    total, batch = 0, []

    def flush():
        call.send(b"".join(batch))
        replies = [raise_refusal(call.read()) for _ in batch]
        batch.clear()
        return sum(sum(reply) if isinstance(reply, list) else reply for reply in replies)

    for command in commands:
        batch.append(command)
        if len(batch) == at_a_time:
            total += flush()
    return total + flush()


def is_koel(call):
    return bool(call("CONFIG", "GET", "koel.seed"))


def reserve(call, key, capacity, count):
    """Reserves a filter for `capacity` items that will grow to `count`."""
    needs_larger_ones = count > capacity * MAX_SUB_FILTERS and not is_koel(call)
    call("CF.RESERVE", key, capacity, *(["EXPANSION", 2] if needs_larger_ones else []))


def insert(call, key, numbers):
    added = run(call, batches(key, "CF.INSERT", ["ITEMS"], numbers), 8)
    assert added == len(numbers), f"{len(numbers) - added} items were refused"


def command_stat(call, name, field):
    """Returns a statistic of all calls of a command since the last CONFIG RESETSTAT."""
    for line in call("INFO", "commandstats").decode().splitlines():
        if line.lower().startswith(f"cmdstat_{name.lower()}:"):
            return float(line.split(f"{field}=")[1].split(",")[0])
    raise AssertionError(f"{name} was not called")


def measured_rate(call, key, count=1_000_000):
    """Returns the fraction of absent items that are found."""
    return run(call, batches(key, "CF.MEXISTS", [], range(ABSENT, ABSENT + count)), 8) / count


# Speed.


def time_of(call, name, commands_of_round, items_per_call=1):
    """Returns the time per item in microseconds, the median of the rounds."""
    times = []
    for number in range(ROUNDS):
        call("CONFIG", "RESETSTAT")
        run(call, commands_of_round(f"f{number}"), AT_A_TIME if items_per_call == 1 else 8)
        times.append(command_stat(call, name, "usec_per_call") / items_per_call)
    return statistics.median(times)


def reserve_for_rounds(call, count):
    """Reserves a filter of the final size for each round, which adds items and looks them up."""
    call("FLUSHALL")
    for number in range(ROUNDS):
        call("CF.RESERVE", f"f{number}", count)


def speed(call, count, grown, _):
    """Yields the rows of the table: the label and the figure."""
    present, absent = range(count), range(ABSENT, ABSENT + count)
    reserve_for_rounds(call, count)
    add = time_of(call, "CF.ADD", lambda key: single("CF.ADD", key, present))
    found, not_found = (time_of(call, "CF.EXISTS", lambda key: single("CF.EXISTS", key, batch)) for batch in (present, absent))
    missing = time_of(call, "CF.EXISTS", lambda _: single("CF.EXISTS", "missing", present))
    yield "`CF.ADD`, µs", f"{add:.2f}"
    yield "`CF.EXISTS`, present; absent, µs", f"{found:.2f}; {not_found:.2f}"
    yield "`CF.EXISTS` without the key, which is the server's own time, µs", f"{missing:.2f}"
    reserve_for_rounds(call, count)
    insert_time = time_of(call, "CF.INSERT", lambda key: batches(key, "CF.INSERT", ["ITEMS"], present), BATCH)
    find_time = time_of(call, "CF.MEXISTS", lambda key: batches(key, "CF.MEXISTS", [], present), BATCH)
    yield "`CF.INSERT` of 1000 items, ns per item", f"{1000 * insert_time:.0f}"
    yield "`CF.MEXISTS` of 1000 items, ns per item", f"{1000 * find_time:.0f}"
    call("FLUSHALL")
    reserve(call, "f", 1000, grown)
    insert(call, "f", range(grown))
    # The peak of the memory besides both filters.
    used, empty = [], used_memory(call) - call("MEMORY", "USAGE", "f")
    dump_and_load(call, grown, lambda: used.append(used_memory(call)))
    above = max(used) - sum(call("MEMORY", "USAGE", key) for key in ("f", "g")) - empty
    speeds = []
    for _ in range(DUMPS):
        call("DEL", "g")
        start = time.perf_counter()
        megabytes = dump_and_load(call, grown) / 1e6
        speeds.append(megabytes / (time.perf_counter() - start))
    yield f"`CF.SCANDUMP` and `CF.LOADCHUNK` in turn, {grown:,} items, MB/s", f"{statistics.median(speeds):.0f}"
    yield "memory besides both filters meanwhile, MB", f"{above / 1e6:.1f}"


def dump_and_load(call, count, after_chunk=lambda: None):
    """Dumps `f` and loads each chunk into `g` as it arrives. Returns the number of bytes."""
    iterator, total = 0, 0
    while True:
        iterator, data = call("CF.SCANDUMP", "f", iterator)
        if iterator == 0:
            break
        call("CF.LOADCHUNK", "g", iterator, data)
        total += len(data)
        after_chunk()
    assert info(call, "g")["Number of items inserted"] == count
    return total


def used_memory(call):
    text = call("INFO", "memory").decode()
    return int(text.split("\r\nused_memory:")[1].split("\r\n")[0])


# Pauses.


def minimum_time(call, name, act, rounds=5):
    """Returns the time of the one call of a command that `act` makes, in milliseconds: the minimum of several rounds."""
    times = []
    for _ in range(rounds):
        call("CONFIG", "RESETSTAT")
        act()
        times.append(command_stat(call, name, "usec") / 1000)
    return min(times)


def batch_times(call, capacity, count):
    """Returns the microseconds of each CF.INSERT of 1000 items. Each is the minimum of the rounds of the same call, which
    excludes the machine's own pauses."""
    call("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 100_000)
    rounds = []
    for _ in range(ROUNDS):
        call("FLUSHALL")
        reserve(call, "f", capacity, count)
        call("SLOWLOG", "RESET")
        insert(call, "f", range(count))
        entries = reversed(call("SLOWLOG", "GET", -1))
        rounds.append([entry[2] for entry in entries if entry[3][0] == b"CF.INSERT"])
    call("CONFIG", "SET", "slowlog-log-slower-than", -1)
    return [min(times) for times in zip(*rounds)]


def reserving(call, capacity):
    def again():
        call("DEL", "f")
        call("CF.RESERVE", "f", capacity)

    return f"{minimum_time(call, 'CF.RESERVE', again):.1f}"


def freeing(call, *command):
    """Returns the milliseconds of a command that frees all of database 1, which has a copy of the filter `f`."""
    payload, times = call("DUMP", "f"), []
    call("SELECT", 1)
    for _ in range(ROUNDS):
        call("RESTORE", "f", 0, payload)
        call("CONFIG", "RESETSTAT")
        call(*command)
        times.append(command_stat(call, command[0], "usec") / 1000)
    call("SELECT", 0)
    return f"{min(times):.2f}"


def saving(call):
    """Returns the megabytes copied on write during a BGSAVE without writes: the pages that the child process wrote to. Pages that the
    server has freed before and gives back meanwhile count, too; the minimum of the rounds excludes them."""
    sizes = []
    for _ in range(ROUNDS):
        call("BGSAVE")
        wait_until(lambda: "rdb_bgsave_in_progress:0" in call("INFO", "persistence").decode())
        text = call("INFO", "persistence").decode()
        assert "rdb_last_bgsave_status:ok" in text
        sizes.append(int(text.split("rdb_last_cow_size:")[1].split()[0]))
    return f"{min(sizes) / 1e6:.1f}"


def pauses(call, count, grown, _):
    """Yields the rows of the table, as `speed` does."""
    most = call("CONFIG", "GET", "koel.max-bytes")
    if most:
        call("CONFIG", "SET", "koel.max-bytes", 3 << 30)
    yield "`CF.RESERVE` 10 M; 100 M; 500 M, ms", "; ".join(reserving(call, n * 10**6) for n in (10, 100, 500))
    if most:
        call("CONFIG", "SET", *most)
    longest = max(batch_times(call, count, count * 5 // 4)[count // BATCH :])
    yield f"`CF.INSERT` of 1000, the longest just beyond RESERVE {count:,}, ms", f"{longest / 1000:.1f}"
    for last in (count, grown):
        times = batch_times(call, 1000, last)
        figures = f"{statistics.mean(times):.0f}; {max(times):.0f}"
        yield f"`CF.INSERT` of 1000 while growing from 1000 to {last:,} items, average; longest, µs", figures
    if most:
        equal = minimum_time(call, "CF.INSERT", lambda: call("CF.INSERT", "equal", "ITEMS", *["item"] * 100_000))
        call("DEL", "equal")
    yield "`CF.INSERT` of 100,000 equal items, ms", f"{equal:.1f}" if most else "a sub-filter for every few copies"
    commands = (("DEL", "f"), ("UNLINK", "f"), ("FLUSHDB",), ("PEXPIRE", "f", "0"))
    figures = "; ".join(freeing(call, *command) for command in commands)
    yield f"with {grown:,} items: `DEL`; `UNLINK`; `FLUSHDB`; `PEXPIRE key 0`, ms", figures
    yield f"`BGSAVE` of {grown:,} items: copied on write, MB", saving(call)


# Memory.


def memory(call, count, grown, _):
    """Yields the rows of the table, as `speed` does."""
    for capacity, items in ((count, count), (1000, count), (1000, grown)):
        call("FLUSHALL")
        reserve(call, "f", capacity, items)
        insert(call, "f", range(items))
        bytes_used, rate = call("MEMORY", "USAGE", "f"), measured_rate(call, "f")
        yield f"RESERVE {capacity:,}, {items:,} items", f"{bytes_used / 1e6:.2f} MB; {100 * rate:.2f} %"


# Sizes: what one key takes, and what a filter takes beyond its plan.


def bytes_per_key(call, keys, items):
    """Returns what each of many keys takes in the server, the key itself and the server's own records included."""
    call("FLUSHALL", "SYNC")
    before = used_memory(call)
    for start in range(0, keys, AT_A_TIME):
        batch = (("CF.ADD", f"user:{key}", f"item-{n}") for key in range(start, min(start + AT_A_TIME, keys)) for n in range(items))
        for reply in call.pipeline(batch):
            assert reply == 1, reply
    return (used_memory(call) - before) / keys


def empty_bytes(call, capacity, *options):
    call("DEL", "f")
    call("CF.RESERVE", "f", capacity, *options)
    return call("MEMORY", "USAGE", "f")


def sizes(call, count, *_):
    """Yields the rows of the table: the label, and the figure."""
    for keys, items in ((100_000, 1), (100_000, 5), (10_000, 100), (1_000, 1000)):
        label = f"{keys:,} keys that `CF.ADD` creates, {items:,} {'item' if items == 1 else 'items'} in each: bytes per key"
        yield label, f"{bytes_per_key(call, keys, items):,.0f}"
    call("FLUSHALL", "SYNC")
    for rate in (0.01, 0.0001, 0.000001):
        options = ("ERROR", rate) if is_koel(call) else ()
        capacities = (1000, 100_000, 10_000_000)
        figures = "; ".join(f"{empty_bytes(call, capacity, *options):,}" for capacity in capacities)
        label = f"empty after RESERVE {'; '.join(f'{capacity:,}' for capacity in capacities)}, ERROR {rate:g}: bytes"
        yield label, figures if is_koel(call) or rate == 0.01 else ""
    call("DEL", "f")
    call("CF.RESERVE", "f", count)
    last = 0
    for factor in (1.0, 1.02, 1.1, 1.5, 2.0, 4.0):
        insert(call, "f", range(last, last := round(count * factor)))
        figure = f"{call('MEMORY', 'USAGE', 'f') / 1e6:.2f} MB; {100 * measured_rate(call, 'f'):.2f} %"
        yield f"RESERVE {count:,}, then {factor:g} × as many items: memory; false positives", figure


# Commands that block the server: their time grows with the number of items, or with the size of the filter.


def one_insert(call, size):
    """Returns the milliseconds of a CF.INSERT of `size` new items into a filter that was reserved for them."""
    words = [b"%010d" % n for n in range(size)]

    def act():
        call("DEL", "f")
        call("CF.RESERVE", "f", size)
        call("CF.INSERT", "f", "ITEMS", *words)

    return minimum_time(call, "CF.INSERT", act, TRIES)


def one_lookup(call, size):
    """Returns the milliseconds of a CF.MEXISTS of `size` items, which `one_insert` has added."""
    words = [b"%010d" % n for n in range(size)]
    return minimum_time(call, "CF.MEXISTS", lambda: call("CF.MEXISTS", "f", *words), TRIES)


def one_union(call, size):
    """Returns the milliseconds of a CF.UNION of two filters with `size` items each. They share half of them."""
    call("FLUSHALL", "SYNC")
    for key, start in (("original", 0), ("other", size // 2)):
        # Reserves room for the items of both, so that neither filter has full tables.
        call("CF.RESERVE", key, 2 * size)
        insert(call, key, range(start, start + size))

    def act():
        call("COPY", "original", "f", "REPLACE")
        call("CF.UNION", "f", "other")

    return minimum_time(call, "CF.UNION", act, TRIES)


def one_dump(call, size, other):
    """Yields the label and the figure of DUMP and MIGRATE with either value of `rdbcompression`."""
    call("FLUSHALL", "SYNC")
    call("CF.RESERVE", "f", size)
    insert(call, "f", range(size))
    figures = {}
    for value in ("yes", "no"):
        call("CONFIG", "SET", "rdbcompression", value)
        megabytes = len(call("DUMP", "f")) / 1e6
        dump = minimum_time(call, "DUMP", lambda: call("DUMP", "f"), TRIES) / megabytes

        def move():
            call("MIGRATE", *other.address, "f", 0, 60_000, "COPY", "REPLACE")

        figures[value] = f"{dump:.1f}", f"{minimum_time(call, 'MIGRATE', move, TRIES) / megabytes:.1f}", f"{megabytes:.2f}"
    call("CONFIG", "SET", "rdbcompression", "yes")
    labels = (f"`DUMP` of {size:,} items, ms per MB", f"`MIGRATE` of {size:,} items, ms per MB", "the dump, MB")
    for label, pair in zip(labels, zip(*figures.values())):
        yield f"{label}: `rdbcompression yes`; `no`", "; ".join(pair)


def milliseconds(time):
    return f"{time:.2f}" if time < 1 else f"{time:.1f}"


def blocking(call, count, _, start):
    """Yields the rows of the table, as `sizes` does."""
    batches_of = [n for n in (1000, 10_000, 100_000) if n <= count]
    inserts, lookups = zip(*((one_insert(call, size), one_lookup(call, size)) for size in batches_of))
    names = "; ".join(f"{size:,}" for size in batches_of)
    yield f"`CF.INSERT` of {names} new items, ms", "; ".join(map(milliseconds, inserts))
    yield f"`CF.MEXISTS` of {names} items, ms", "; ".join(map(milliseconds, lookups))
    united = (count // 10, count)
    label = f"`CF.UNION` of two filters with {'; '.join(f'{size:,}' for size in united)} items each, ms"
    if is_koel(call):
        yield label, "; ".join(f"{one_union(call, size):.0f}" for size in united)
    else:
        yield label, ""
    other = start()
    try:
        yield from one_dump(call, count, other)
    finally:
        other.close()


TABLES = {"speed": speed, "pauses": pauses, "memory": memory, "sizes": sizes, "blocking": blocking}


class Subject:
    """A column of the tables: a name, a title, and how to start a server."""

    def __init__(self, name, title, start):
        self.name, self.title, self.start = name, title, start

    def measure(self, table, count, grown):
        print(f"{table.__name__}: {self.name} …", file=sys.stderr)
        server = self.start()
        try:
            with server.connect(timeout=300) as call:
                return list(table(call, count, grown, self.start))
        finally:
            server.close()


def subjects():
    every = [Subject(one.name, one.title, functools.partial(Server, one, tcp=True)) for one in servers.found()]
    if redisbloom.is_installed():
        title = f"RedisBloom 2.8.2, {redisbloom.binary().title}"
        every.append(Subject("redisbloom", title, functools.partial(redisbloom.start, tcp=True)))
    return every


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--grown", type=int, default=10_000_000)
    parser.add_argument("names", nargs="*", metavar="TABLE|SERVER")
    options = parser.parse_args()
    tables = [name for name in options.names if name in TABLES] or ["speed", "pauses", "memory"]
    prefixes = tuple(name for name in options.names if name not in TABLES)
    for name in tables:
        columns = [one for one in subjects() if not prefixes or one.name.startswith(prefixes)]
        if name == "sizes":
            # The memory of keys does not depend on the server, apart from a few bytes of its own records.
            same = repr(redisbloom.binary() or servers.found()[-1])
            columns = [one for one in columns if one.name in (same, "redisbloom")]
        measured = [one.measure(TABLES[name], options.items, options.grown) for one in columns]
        print(f"<!-- valkey-{name} -->\n\n| {' | '.join(['', *(one.title for one in columns)])} |")
        print(f"|---|{'---:|' * len(columns)}")
        for row in zip(*measured):
            print(f"| {' | '.join([row[0][0], *(figure for _, figure in row)])} |")
        print()


if __name__ == "__main__":
    main()
