"""Measures the module on every server that is installed, and prints Markdown: memory, time per command, pauses while a
filter grows, dumping and loading. Times are the server's own (INFO commandstats, SLOWLOG): the client does not count.

    .ci/install; just module -k test_growth   # installs servers, and builds the module
    target/python/bin/python valkey/bench.py [--items 1000000] [--grown 10000000] [--pauses] [SERVER...]

SERVER is the beginning of a name such as valkey-9. RedisBloom's figures are published ones, not measured here.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # No __pycache__ among the sources.
sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))

import servers
from filters import info
from servers import Server, wait_until
from wire import encode, refuse

BATCH = 1000
AT_A_TIME = 500
ROUNDS = 3
DUMPS = 9


def single(name, key, numbers):
    """Commands of an item each."""
    head = encode(name, key, b"").removesuffix(b"$0\r\n\r\n")
    return (b"%b$10\r\n%010d\r\n" % (head, n) for n in numbers)


def batches(key, name, words, numbers):
    """Commands of a thousand items each."""
    head = encode(name, key, *words).split(b"\r\n", 1)[1]
    for start in range(numbers.start, numbers.stop, BATCH):
        some = range(start, min(start + BATCH, numbers.stop))
        yield b"*%d\r\n" % (2 + len(words) + len(some)) + head + b"".join([b"$10\r\n%010d\r\n" % n for n in some])


def run(call, commands, at_a_time=AT_A_TIME):
    """Sends the commands in pipelines, and adds up the replies: the number of items that were added or found."""
    total, some = 0, []

    def flush():
        call.send(b"".join(some))
        replies = [refuse(call.read()) for _ in some]
        some.clear()
        return sum(sum(reply) if isinstance(reply, list) else reply for reply in replies)

    for command in commands:
        some.append(command)
        if len(some) == at_a_time:
            total += flush()
    return total + flush()


def insert(call, key, numbers):
    added = run(call, batches(key, "CF.INSERT", ["ITEMS"], numbers), 8)
    assert added == len(numbers), f"{len(numbers) - added} items were refused"


def command_stat(call, name, field):
    """Of all calls since the last CONFIG RESETSTAT."""
    for line in call("INFO", "commandstats").decode().splitlines():
        if line.lower().startswith(f"cmdstat_{name.lower()}:"):
            return float(line.split(f"{field}=")[1].split(",")[0])
    raise AssertionError(f"no {name} was called")


def usec_per_call(call, name):
    return command_stat(call, name, "usec_per_call")


def total_ms(call, name):
    return command_stat(call, name, "usec") / 1000


def measured_rate(call, key, count):
    """The share of absent items that are found."""
    return run(call, batches(key, "CF.MEXISTS", [], range(5_000_000_000, 5_000_000_000 + count)), 8) / count


def memory(call, capacity, count):
    """Size by INFO, bytes by MEMORY USAGE, bits per item, and the measured rate."""
    call("FLUSHALL")
    call("CF.RESERVE", "f", capacity)
    insert(call, "f", range(count))
    size, usage = info(call, "f")["Size"], call("MEMORY", "USAGE", "f")
    rate = measured_rate(call, "f", count)
    return f"{size:,} B; {usage:,} B; {8 * usage / count:.2f} bits per item; {100 * rate:.3f} %"


def time_of(call, name, commands_of_round, items_per_call=1):
    """The median of the rounds."""
    times = []
    for number in range(ROUNDS):
        call("CONFIG", "RESETSTAT")
        run(call, commands_of_round(number), AT_A_TIME if items_per_call == 1 else 8)
        times.append(usec_per_call(call, name) / items_per_call)
    return statistics.median(times)


def singles(call, count):
    """Each round adds to a new filter, as large as it needs, and looks its items up."""
    call("FLUSHALL")
    for number in range(ROUNDS):
        call("CF.RESERVE", f"f{number}", count)
    add = time_of(call, "CF.ADD", lambda number: single("CF.ADD", f"f{number}", range(count)))
    present = time_of(call, "CF.EXISTS", lambda number: single("CF.EXISTS", f"f{number}", range(count)))
    absent = range(5_000_000_000, 5_000_000_000 + count)
    find = time_of(call, "CF.EXISTS", lambda number: single("CF.EXISTS", f"f{number}", absent))
    # What the server takes for a command of a module that finds no key.
    return add, present, find, time_of(call, "CF.EXISTS", lambda number: single("CF.EXISTS", "missing", range(count)))


def thousands(call, count):
    """Nanoseconds an item."""
    call("FLUSHALL")
    for number in range(ROUNDS):
        call("CF.RESERVE", f"f{number}", count)
    words = ["ITEMS"]
    add = time_of(call, "CF.INSERT", lambda number: batches(f"f{number}", "CF.INSERT", words, range(count)), BATCH)
    find = time_of(call, "CF.MEXISTS", lambda number: batches(f"f{number}", "CF.MEXISTS", [], range(count)), BATCH)
    return 1000 * add, 1000 * find


def pauses(call, capacity, count, in_batches):
    """While a filter grows beyond its capacity: milliseconds of each command above half a millisecond, by its first item."""
    call("FLUSHALL")
    call("CONFIG", "SET", "slowlog-log-slower-than", 500, "slowlog-max-len", 100_000)
    call("SLOWLOG", "RESET")
    call("CF.RESERVE", "f", capacity)
    if in_batches:
        insert(call, "f", range(count))
    else:
        assert run(call, single("CF.ADD", "f", range(count))) == count
    slow = {entry[3][3 if in_batches else 2]: entry[2] / 1000 for entry in call("SLOWLOG", "GET", -1)}
    call("CONFIG", "SET", "slowlog-log-slower-than", -1)
    return slow


def describe_pauses(call, capacity, count, in_batches):
    """What the module itself does for long, it does for the same items in every round; the rest is the machine's."""
    rounds = [pauses(call, capacity, count, in_batches) for _ in range(ROUNDS)]
    longest = ", ".join(f"{max(slow.values()):.2f}" if slow else "below 0.5" for slow in rounds)
    again = {item: min(slow[item] for slow in rounds) for item in set.intersection(*map(set, rounds))}
    same = f"{max(again.values()):.2f} ms" if again else "below 0.5 ms"
    return f"{longest} ms in {ROUNDS} rounds; for the same item in each of them {same}"


def used_memory(call):
    text = call("INFO", "memory").decode()
    return int(text.split("\r\nused_memory:")[1].split("\r\n")[0])


def dump_and_load(call, count, after_chunk=lambda: None):
    """Of the filter `f`, as the pauses left it: a dump whose chunks are loaded as they come, into another key. Bytes."""
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


def memory_of_a_dump(call, count):
    """The most memory besides both filters."""
    empty = used_memory(call) - call("MEMORY", "USAGE", "f")
    used = []
    dump_and_load(call, count, lambda: used.append(used_memory(call)))
    return max(used) - sum(call("MEMORY", "USAGE", key) for key in ("f", "g")) - empty


def times_of_dumps(call, count):
    """MB/s as the client sees it; then milliseconds of the server for a megabyte, dumping and loading."""
    rounds = []
    for _ in range(DUMPS):
        call("DEL", "g")
        call("CONFIG", "RESETSTAT")
        start = time.perf_counter()
        megabytes = dump_and_load(call, count) / 1e6
        speed = megabytes / (time.perf_counter() - start)
        rounds.append([speed, *(total_ms(call, name) / megabytes for name in ("CF.SCANDUMP", "CF.LOADCHUNK"))])
    return [sorted(row) for row in zip(*rounds)]


def least(call, name, act, rounds=5):
    """Milliseconds of the one call of a command that `act` makes: the least of some rounds."""
    times = []
    for _ in range(rounds):
        call("CONFIG", "RESETSTAT")
        act()
        times.append(total_ms(call, name))
    return min(times)


def batch_times(call, capacity, count):
    """Microseconds of each CF.INSERT of 1000 items, the least of the rounds of the same call."""
    call("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 100_000)
    rounds = []
    for _ in range(ROUNDS):
        call("FLUSHALL")
        call("CF.RESERVE", "f", capacity)
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

    return f"{least(call, 'CF.RESERVE', again):.2f} ms"


def freeing(call, *command):
    """Milliseconds of a command that frees all of database 1, which has a copy of the filter `f`."""
    times = []
    for _ in range(ROUNDS):
        call("COPY", "f", "f", "DB", 1)
        call("SELECT", 1)
        call("CONFIG", "RESETSTAT")
        call(*command)
        times.append(total_ms(call, command[0]))
        call("SELECT", 0)
    return f"{min(times):.2f} ms"


def saving(call):
    """What is copied while a BGSAVE runs and nobody writes: all that the child has written to."""
    call("BGSAVE")
    wait_until(lambda: "rdb_bgsave_in_progress:0" in call("INFO", "persistence").decode())
    text = call("INFO", "persistence").decode()
    assert "rdb_last_bgsave_status:ok" in text
    return f"{int(text.split('rdb_last_cow_size:')[1].split()[0]) / 1e6:.2f} MB"


def pause_rows(call, count, grown):
    """Name and figure."""
    most = call("CONFIG", "GET", "koel.max-bytes")[1]
    call("CONFIG", "SET", "koel.max-bytes", 3 << 30)
    rows = [(f"`CF.RESERVE` {millions} M", reserving(call, millions * 10**6)) for millions in (10, 100, 500)]
    longest = max(batch_times(call, count, count * 5 // 4)[count // BATCH :])
    rows.append((f"`CF.INSERT` of 1000, the longest just beyond RESERVE {count:,}", f"{longest / 1000:.2f} ms"))
    for last in (count, grown):
        times = batch_times(call, 1000, last)
        name = f"`CF.INSERT` of 1000 while growing from 1000 to {last:,}: median; longest"
        rows.append((name, f"{statistics.median(times):.0f}; {max(times):.0f} µs"))
    rows.append((f"memory then, by `MEMORY USAGE`; `CF.INFO`, {grown:,} items", grown_memory(call)))
    call("FLUSHALL")
    equal = least(call, "CF.INSERT", lambda: call("CF.INSERT", "f", "ITEMS", *["item"] * 100_000))
    rows.append(("`CF.INSERT` of 100,000 equal items", f"{equal:.2f} ms"))
    call("FLUSHALL")
    call("CF.RESERVE", "f", grown)
    insert(call, "f", range(grown))
    for command in (("DEL", "f"), ("UNLINK", "f"), ("FLUSHDB",), ("FLUSHDB", "ASYNC"), ("PEXPIRE", "f", "0")):
        rows.append((f"`{' '.join(command).replace(' f', ' key')}`, {grown:,} items", freeing(call, *command)))
    rows.append((f"`BGSAVE`, {grown:,} items: copied on write", saving(call)))
    call("FLUSHALL")
    call("CONFIG", "SET", "koel.max-bytes", most)
    return rows


def grown_memory(call):
    rate = 100 * measured_rate(call, "f", 1_000_000)
    return f"{call('MEMORY', 'USAGE', 'f') / 1e6:.2f} MB; {info(call, 'f')['Size'] / 1e6:.2f} MB, ε {rate:.2f} %"


def measure_pauses(binary, count, grown):
    server = Server(binary, tcp=True)
    try:
        with server.connect(timeout=300) as call:
            return pause_rows(call, count, grown)
    finally:
        server.close()


def measure(binary, count, grown):
    """The rows of a server: name and figure."""
    server = Server(binary, tcp=True)
    try:
        with server.connect(timeout=300) as call:
            rows = [(f"RESERVE {count:,}, {count:,} items: Size; MEMORY USAGE; measured ε", memory(call, count, count))]
            rows.append((f"RESERVE 1000, {count:,} items: the same", memory(call, 1000, count)))
            add, present, absent, missing = singles(call, count)
            rows.append(("CF.ADD", f"{add:.2f} µs"))
            rows.append(("CF.EXISTS, present; absent; without the key", f"{present:.2f}; {absent:.2f}; {missing:.2f} µs"))
            add, find = thousands(call, count)
            rows.append(("CF.INSERT of 1000 items, per item", f"{add:.0f} ns"))
            rows.append(("CF.MEXISTS of 1000 items, per item", f"{find:.0f} ns"))
            name = "longest command, growing from RESERVE"
            beyond = 4 * count
            rows.append((f"{name} {count:,} to {beyond:,} items by CF.ADD", describe_pauses(call, count, beyond, False)))
            name = f"{name} 1000 to {grown:,} items"
            rows.append((f"{name} by CF.ADD", describe_pauses(call, 1000, grown, False)))
            rows.append((f"{name} by CF.INSERT of 1000", describe_pauses(call, 1000, grown, True)))
            above = memory_of_a_dump(call, grown)
            speed, dump, load = times_of_dumps(call, grown)
            rows.append((
                f"SCANDUMP to LOADCHUNK, {grown:,} items: speed, median of {DUMPS} and best; most memory besides both filters",
                f"{statistics.median(speed):.0f}, {speed[-1]:.0f} MB/s; {above / 1e6:.2f} MB; server "
                f"{statistics.median(dump):.2f} + {statistics.median(load):.2f} ms a MB",
            ))
        return rows
    finally:
        server.close()


REDISBLOOM = ["2,097,256 B; 1.5 – 3 %", "", "0.30 µs", "0.26 – 0.30 µs", *[""] * 6]
"""After RESERVE 1,000,000 and a million items, and by commandstats, on a similar machine."""

PAUSES_OF_REDISBLOOM = ["", "", "0.1 ms", "1.6 ms", "77 – 89 µs", "", "16.8 MB, ε 17 %", *[""] * 7]
"""Its module, built from source, on a similar machine; the memory of 10 M items with EXPANSION 1."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--grown", type=int, default=10_000_000)
    parser.add_argument("--pauses", action="store_true", help="the table of pauses instead")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    binaries = [one for one in servers.found() if not options.names or one.name.startswith(tuple(options.names))]
    measured, beside = (measure_pauses, PAUSES_OF_REDISBLOOM) if options.pauses else (measure, REDISBLOOM)
    columns = []
    for binary in binaries:
        print(f"measuring {binary} …", file=sys.stderr)
        columns.append(measured(binary, options.items, options.grown))
    print(f"| {' | '.join(['', *map(repr, binaries), 'RedisBloom'])} |")
    print(f"|{'---|' * (len(binaries) + 2)}")
    for row, published in zip(zip(*columns), beside):
        print(f"| {' | '.join([row[0][0], *(figure for _, figure in row), published])} |")


if __name__ == "__main__":
    main()
