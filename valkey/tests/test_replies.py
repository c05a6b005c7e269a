"""The same sequences of commands are sent to this module and to RedisBloom, in both protocols. All replies have the same types and
values, and errors begin with RedisBloom's words, except for DIFFERENCES. Those and test_differences.py are all rows of the table in
docs/VALKEY.md."""

import re

import pytest

from filters import INFO_FIELDS
from wire import Pairs, Refusal, encode, pairs

NUMBERS = [
    "0", "-1", "1", "2", "3", "4", "5", "16", "255", "256", "1000", "32767", "32768", "32769", "65535", "65536", "2147483648",
    "1099511627776", "1099511627777", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "x", "1.5", "", " 4", "4 ", "+4", "0x10", "1e3", "04", "00", "-0", "\0", "4\0",
]
"""Limits of ranges, and what is no integer for the server."""

ITEMS = ["", "\0", "a\0b", b"\xff\xfe", "\r\n", "x" * 10_000, "1", "01"]

COMMANDS = [
    "CF.RESERVE", "CF.ADD", "CF.ADDNX", "CF.INSERT", "CF.INSERTNX", "CF.EXISTS", "CF.MEXISTS", "CF.COUNT", "CF.DEL",
    "CF.SCANDUMP", "CF.LOADCHUNK", "CF.INFO", "CF.DEBUG", "CF.COMPACT",
]

TEXT = ("SET", "f", "text")
STATES = [[], [TEXT], [TEXT, ("EXPIRE", "f", 100)], [("CF.ADD", "f", "1")], [("CF.RESERVE", "f", 1000)]]
"""States of the key before a command: missing, of another type, a filter, an empty one."""

RESERVE_OPTIONS = [
    ["EXPANSION", "2", "MAXITERATIONS", "30", "BUCKETSIZE", "4"], ["BUCKETSIZE", "4", "EXPANSION", "2"],
    ["bucketsize", "4", "Expansion", "8", "maxIterations", "7"],
    ["UNKNOWN", "2"], ["UNKNOWN"], ["UNKNOWN", "2", "EXPANSION", "4"], ["", "2"],
    ["BUCKETSIZE", "x", "EXPANSION", "x"], ["EXPANSION", "x", "BUCKETSIZE", "x"],
    ["EXPANSION", "x", "BUCKETSIZE", "x", "MAXITERATIONS", "x"],
    ["ERROR", "2"], ["SEED", "-1"],
]

INSERT_OPTIONS = [
    ["ITEMS", "a"], ["items", "a", "b", "a"], ["Items", "a"], ["NOCREATE", "ITEMS", "a"], ["nocreate", "ITEMS", "a"],
    ["CAPACITY", "1000", "ITEMS", "a"], ["capacity", "1000", "items", "a"], ["NOCREATE", "CAPACITY", "1000", "ITEMS", "a"],
    ["CAPACITY", "1000", "NOCREATE", "ITEMS", "a"], ["CAPACITY", "1000", "CAPACITY", "2000", "ITEMS", "a"],
    ["CAPACITY", "1000", "CAPACITY", "x", "ITEMS", "a"], ["CAPACITY", "x", "CAPACITY", "1000", "ITEMS", "a"],
    ["NOCREATE", "NOCREATE", "ITEMS", "a"], ["CAPACITY", "ITEMS", "a"], ["CAPACITY"], ["CAPACITY", "1000"], ["NOCREATE"],
    ["NOCREATE", "a"], ["ITEMS"], ["a"], ["a", "b"], ["a", "ITEMS", "b"], ["UNKNOWN", "ITEMS", "a"],
    ["UNKNOWN", "1", "ITEMS", "a"], ["NOCREATE", "UNKNOWN"], ["ITEMS", "NOCREATE"], ["ITEMS", "ITEMS"],
    ["ITEMS", "CAPACITY", "1000"], ["CAPACITY", "1000", "ITEMS"], ["NOCREATE", "ITEMS"], ["", "ITEMS", "a"], ["ITEM", "a"],
    ["I", "a"], ["c", "1000", "i", "a"], ["n", "i", "a"], ["Cap", "1000", "ITEMS", "a"], ["EXPANSION", "2", "ITEMS", "a"],
    ["BUCKETSIZE", "2", "ITEMS", "a"], ["MAXITERATIONS", "2", "ITEMS", "a"], ["ERROR", "2", "ITEMS", "a"],
    ["CAPACITY", "1000", "a", "b"], ["ITEMS", ""], ["ITEMS", *ITEMS],
]


def sequences():
    """Yields lists of commands, each for a server without keys."""
    for number in NUMBERS:
        yield [("CF.RESERVE", "f", number)]
        for option in ("BUCKETSIZE", "MAXITERATIONS", "EXPANSION"):
            yield [("CF.RESERVE", "f", 1000, option, number), ("CF.INFO", "f"), ("CF.ADD", "f", "a")]
    for option in ("BUCKETSIZE", "MAXITERATIONS", "EXPANSION"):
        for words in (["4", option, "5"], ["4", option, "x"], ["x", option, "4"], [option], [], ["4", "4"]):
            yield [("CF.RESERVE", "f", 1000, option, *words), ("CF.INFO", "f")]
        for words in ([option, "4"], [option, "4", "1000"], [option]):
            yield [("CF.RESERVE", "f", *words)]
        yield [("CF.RESERVE", "f", "x", option, "x")]
        yield [("CF.RESERVE", "f", "1", option, "x")]
        yield [("CF.RESERVE", option, 1000)]
    for words in RESERVE_OPTIONS:
        yield [("CF.RESERVE", "f", 1000, *words), ("CF.INFO", "f")]
    for capacity, bucket_size in ((9, 5), (10, 5), (1, 1), (2, 1), (3, 2), (4, 2), (509, 255), (510, 255), (65535, 255)):
        yield [("CF.RESERVE", "f", capacity, "BUCKETSIZE", bucket_size), ("CF.ADD", "f", "a"), ("CF.EXISTS", "f", "a")]
    for state in STATES:
        yield [*state, ("CF.RESERVE", "f", 1000), ("CF.RESERVE", "f", 1), ("CF.RESERVE", "f", "x")]
        for command in COMMANDS:
            for count in range(6):
                arguments = ["f", "1", "2", "3", "4"][:count]
                yield [*state, (command, *arguments)]
                yield [*state, (command.lower(), *arguments)]
        for command in ("CF.INSERT", "CF.INSERTNX"):
            for words in INSERT_OPTIONS:
                yield [*state, (command, "f", *words)]
            for number in NUMBERS:
                yield [*state, (command, "f", "CAPACITY", number, "ITEMS", "a")]
        for number in NUMBERS:
            yield [*state, ("CF.SCANDUMP", "f", number)]
            for data in ("", "a", "x" * 38):
                yield [*state, ("CF.LOADCHUNK", "f", number, data)]
    for item in ITEMS:
        for command in ("CF.ADD", "CF.ADDNX", "CF.EXISTS", "CF.COUNT", "CF.DEL", "CF.MEXISTS"):
            asked = [("CF.EXISTS", "f", item), ("CF.COUNT", "f", item)]
            yield [(command, "f", item), *asked, (command, "f", item), *asked, *[("CF.DEL", "f", item)] * 3, *asked]
        yield [("CF.ADD", item, "a"), ("CF.EXISTS", item, "a"), ("CF.INFO", item)]
    yield [("CF.INSERT", "f", "ITEMS", *ITEMS), ("CF.INSERTNX", "f", "ITEMS", *ITEMS), ("CF.MEXISTS", "f", *ITEMS, "\0\0")]
    described = [("CF.INFO", "f"), ("CF.COMPACT", "f"), ("CF.SCANDUMP", "f", 0)]
    yield [("CF.ADD", "f", "a"), *[("CF.DEL", "f", "a")] * 2, ("CF.DEL", "f", "b"), *described]
    yield [("CF.INSERT", "f", "ITEMS", "x" * 1_000_000), ("CF.MEXISTS", "f", "x" * 1_000_000, "x" * 999_999)]
    yield [("CF.ADD", "f", "a"), ("TYPE", "f")]
    yield [("CF.ADD", "f", "a")] * 600
    yield [("CF.RESERVE", "f", 4, "EXPANSION", 0), *[("CF.ADD", "f", n) for n in range(12)]]
    yield [("CF.RESERVE", "f", 4, "EXPANSION", 0), *[(name, "f", "ITEMS", *range(12)) for name in ("CF.INSERT", "CF.INSERTNX")]]
    yield [("CF.RESERVE", "f", 4, "EXPANSION", 0), *[("CF.ADD", "f", "a")] * 5]
    yield [("CF.SNAPSHOT", "f")]
    yield [("CF.UNION", "f", "g")]
    yield [("CF.ADD", "g", "a"), ("COPY", "g", "f")]
    yield [("CF.ADD", "g", "a"), ("RENAME", "g", "f"), ("CF.EXISTS", "f", "a"), ("CF.EXISTS", "g", "a")]


CAPACITIES = "-Capacity must be in the range .*"
MEMORY = r"-ERR Insufficient memory to create filter"
UNKNOWN = "-Unknown argument received"

DIFFERENCES = [
    # The row in docs/VALKEY.md, the commands, RedisBloom's reply, and this module's: regular expressions.
    ("copies of an item", "CF.ADD", "-Maximum expansions reached", "1|True"),
    ("EXPANSION 0", "CF.ADD", "-Filter is full", "1|True"),
    ("EXPANSION that is no power of two", "CF.INFO", r".*'Expansion rate', \d+.*", r".*'Expansion rate', \d+.*"),
    ("a key of another type", "CF.DEL|CF.COMPACT", "-Not found|-Cuckoo filter was not found", "-WRONGTYPE .*"),
    ("unknown options of `CF.RESERVE`", "CF.RESERVE", "'OK'|-Capacity must be at least .*", UNKNOWN),
    ("unknown options of `CF.RESERVE`", "CF.RESERVE", "-(BUCKETSIZE|EXPANSION|MAXITERATIONS): .*|-Capacity must be .*", "'OK'"),
    ("several errors in one `CF.RESERVE`", "CF.RESERVE", "-Couldn't parse [BM].*", "-Couldn't parse EXPANSION"),
    ("options of `CF.INSERT`", "CF.INSERT(NX)?", r"\[.*\]|-ERR not found|-WRONGTYPE .*", UNKNOWN),
    ("values out of range", "CF.RESERVE", "-[A-Z]+: value must be an integer between .*", r"-[A-Z]+: value must be in the range .*"),
    ("values out of range", "CF.(RESERVE|INSERT(NX)?)", r"-Capacity must be at least \(BucketSize \* 2\)", CAPACITIES),
    ("values out of range", "CF.(RESERVE|INSERT(NX)?)", rf"{MEMORY}|\[.*\]|-WRONGTYPE .*", CAPACITIES),
    ("a huge capacity", "CF.(RESERVE|INSERT(NX)?)", r"'OK'|\[.*\]", f"{MEMORY}: .* koel.max-bytes .*"),
    ("ERROR and SEED", "CF.(RESERVE|INSERT(NX)?)", f"'OK'|{UNKNOWN}", "-(ERROR|SEED): value must be in the range .*"),
    ("ERROR and SEED", "CF.LOADCHUNK", "-ERR wrong number of arguments .*", f"{UNKNOWN}|-ERR item exists|-WRONGTYPE .*"),
    ("`CF.LOADCHUNK` into a complete filter", "CF.LOADCHUNK", "'OK'", "-Couldn't load chunk!"),
    ("`CF.SCANDUMP` of a filter that changed", "CF.SCANDUMP", r"\[\d+, (None|bytes)\]", "-Invalid position.*"),
    ("`CF.SNAPSHOT`, `CF.UNION`", "CF.(SNAPSHOT|UNION)", "-ERR unknown command .*", "None|-ERR not found"),
    ("`COPY`", "COPY", "-ERR not supported for this module key", "1"),
    ("RDB", "TYPE", "'MBbloomCF'", "'koel-cuck'"),
]


def shown(command, reply):
    """Returns the parts of a reply that both must have in common, as text."""
    name = command[0].upper()
    if isinstance(reply, Refusal):
        # Redis writes the name as it was registered.
        return re.sub("(wrong number of arguments for ').*(')", lambda match: match[0].lower(), f"-{reply}")
    if name == "CF.SCANDUMP" and reply[0]:
        return f"[{type(reply[0]).__name__}, {type(reply[1]).__name__}]".replace("int", "1")
    if name == "CF.INFO":
        fields = pairs(reply)[: len(INFO_FIELDS)]
        values = {name if isinstance(name, str) else name.decode(): value for name, value in fields}
        same_names = ("Number of items inserted", "Number of items deleted", "Expansion rate")
        same_values = [(name, values.get(name)) for name in same_names]
        return repr((isinstance(reply, Pairs), [(name, type(value)) for name, value in fields], *same_values))
    if name == "CF.DEBUG":
        # A koel filter has two more words at the end (test_differences.py).
        return f"{type(reply).__name__} {re.findall('[a-z_]+:', reply.decode())[:7]}"
    return repr(reply)


def is_alike(theirs, ours):
    """An error may go on after RedisBloom's words."""
    return ours == theirs or theirs.startswith("-") and ours.startswith(theirs)


def difference(command, theirs, ours):
    """Returns the listed difference that these replies show."""
    return next(
        (one for one in DIFFERENCES if all(map(re.fullmatch, one[1:], (command[0].upper(), theirs, ours)))), None
    )


@pytest.fixture
def both(server, bloom_server, protocol):
    with bloom_server.connect(protocol) as theirs, server.connect(protocol) as ours:
        yield theirs, ours


def test_replies(both):
    found, unlisted, compared = set(), [], 0
    for sequence in sequences():
        commands = [("FLUSHALL",), *sequence, ("DBSIZE",), ("PTTL", "f")]
        data = b"".join(encode(*command) for command in commands)
        for call in both:
            call.send(data)
        replies = [[call.read() for _ in commands] for call in both]
        for command, *pair in list(zip(commands, *replies))[1:]:
            theirs, ours = (shown(command, reply) for reply in pair)
            if command[0] == "PTTL":
                theirs, ours = (str(min(int(left), 0)) for left in (theirs, ours))
            compared += 1
            if not is_alike(theirs, ours):
                # The commands that follow depend on this one.
                one = difference(command, theirs, ours)
                if one:
                    found.add(one)
                else:
                    sent = [tuple(str(word)[:40] for word in each) for each in sequence]
                    unlisted.append(f"{sent}: {theirs[:200]}, not {ours[:200]}")
                break
    assert not unlisted, "\n".join([f"{len(unlisted)} of {compared} replies differ:", *unlisted[:40]])
    gone = [one for one in DIFFERENCES if one not in found]
    assert not gone, f"these differences are listed, and do not exist: {gone}"
    assert compared > 5000
