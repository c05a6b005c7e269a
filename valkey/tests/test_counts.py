"""The module's section of INFO, whose counts always match the keys; and RedisBloom's module arguments."""

import subprocess

import pytest

from filters import add_all, chunks_of, dump, fixture_named, info, insert, is_refused, items, load, make_large, make_zoo, refused
from servers import COMMAND, MODULE, Server, wait_until
from test_imports import remaining
from test_persistence import WAYS, field, rewrite
from test_replication import follow, wait_for_sync
from wire import same

FREED = ["filters", "items", "filters_with_imported_items", "half_loaded_filters", "bytes"]


def section(call):
    lines = call("INFO", "koel").decode().split()
    assert lines[:2] == ["#", "koel"]
    return {name.removeprefix("koel_"): int(value) for name, value in (line.split(":") for line in lines[2:])}


def expected_counts(call):
    """Returns the counts of all keys, from the description of each."""
    counts = dict.fromkeys(FREED[:4], 0)
    for key in call("KEYS", "*"):
        if call("TYPE", key) != "koel-cuck":
            continue
        if is_refused(call, "CF.INFO", key):
            counts["half_loaded_filters"] += 1
            continue
        found = info(call, key)
        counts["filters"] += 1
        counts["items"] += found["Number of items inserted"]
        counts["filters_with_imported_items"] += found["Imported items"] > 0
    return counts


def counts_match(call):
    seen = section(call)
    return {name: seen[name] for name in FREED[:4]} == expected_counts(call)


def settled_counts(call):
    wait_until(lambda: counts_match(call), 10, lambda: f"{section(call)}, but {expected_counts(call)}")
    return section(call)


def test_counts_match_the_keys(call):
    empty = wait_until(lambda: not any(section(call)[name] for name in FREED) and section(call))
    rest = make_zoo(call)
    seen = settled_counts(call)
    assert seen["filters"] == 8 and seen["filters_with_imported_items"] == 3 and seen["half_loaded_filters"] == 2
    usages = sum(call("MEMORY", "USAGE", key) for key in call("KEYS", "*"))
    assert usages * 0.99 - 4096 < seen["bytes"] < usages
    assert seen["growths"] > empty["growths"]
    for command in [
        ("COPY", "plain", "copy"), ("COPY", "mixed", "copy 2"), ("COPY", "copy", "plain", "REPLACE"), ("RENAME", "copy", "copy 2"),
        ("DEL", "sharp"), ("UNLINK", "large"), ("RESTORE", "r", 0, call("DUMP", "mixed")), ("SET", "fixed", "a text"),
        ("RESTORE", "half", 0, call("DUMP", "half large")), ("DEL", "half large"), ("CF.COMPACT", "plain"),
        ("CF.ADD", "new", "a"), ("CF.INSERTNX", "new", "ITEMS", "a", "b", "c"), ("CF.DEL", "new", "b"), ("MOVE", "new", 1),
        ("SWAPDB", 0, 1), ("SWAPDB", 0, 1), ("CF.UNION", "union", "plain"), ("PEXPIRE", "plain", 1), ("DEBUG", "RELOAD"),
    ]:
        call(*command)
        if command[0] in ("MOVE", "SWAPDB"):
            continue
        if command[0] == "PEXPIRE":
            wait_until(lambda: call("EXISTS", "plain") == 0)
        call("SELECT", 1)
        others = expected_counts(call)
        call("SELECT", 0)
        wait_until(
            lambda: {name: section(call)[name] - others[name] for name in FREED[:4]} == expected_counts(call), 10,
            lambda: f"after {command}: {section(call)}, but {expected_counts(call)} and {others}",
        )
    load(call, "half imported", rest["half imported"])
    call("SELECT", 1)
    call("FLUSHDB")
    call("SELECT", 0)
    settled_counts(call)
    call("FLUSHALL", "ASYNC")
    wait_until(lambda: not any(section(call)[name] for name in FREED), 10, lambda: str(section(call)))


@pytest.mark.parametrize("way", WAYS)
def test_counts_after_a_restart(start, way):
    server = start(*WAYS[way])
    with server.connect() as call:
        make_zoo(call)
        if way.startswith("RDB"):
            call("SAVE")
        elif way != "AOF":
            rewrite(call)
        before = settled_counts(call)
    server.restart()
    with server.connect() as call:
        after = settled_counts(call)
    assert [after[name] for name in FREED[:4]] == [before[name] for name in FREED[:4]]


def test_counts_of_a_replica(start):
    """After a full sync that replaces the replica's keys, and after commands."""
    primary, replica = start(tcp=True), start(tcp=True)
    with primary.connect() as call, replica.connect() as call_replica:
        make_zoo(call)
        add_all(call_replica, "its own", items("x", 100))
        follow(primary, replica)
        wait_for_sync(primary, replica)
        for _ in range(2):
            expected = settled_counts(call)
            seen = settled_counts(call_replica)
            assert [seen[name] for name in FREED[:4]] == [expected[name] for name in FREED[:4]]
            add_all(call, "plain", items("more-", 5000))
            call("DEL", "large", "half large")
            wait_for_sync(primary, replica)


def test_the_largest_filter_and_those_beyond_their_plan(call, tmp_path):
    """They follow growth, compaction and removal of keys. The largest one may be stated up to an eighth too large."""
    wait_until(lambda: not any(section(call)[name] for name in FREED))
    # The module plans no filter for as few items.
    command = [COMMAND, "build", "--grow", "--max-capacity", "1000", "--fpr", "0.01", "-o", tmp_path / "small", "-"]
    subprocess.run(command, input=b"a", check=True, capture_output=True, timeout=60)
    small = (tmp_path / "small").read_bytes()

    def matches():
        usages = [call("MEMORY", "USAGE", key) for key in call("KEYS", "*")]
        beyond = sum(info(call, key)["Buckets per lookup"] > 2 for key in call("KEYS", "*"))
        largest = section(call)["largest_filter_bytes"]
        is_right = max(usages, default=0) - 256 <= largest <= max(usages, default=0) * 9 / 8
        return is_right and section(call)["filters_beyond_plan"] == beyond

    def check():
        wait_until(matches, 10, lambda: str((section(call), [(key, info(call, key)) for key in call("KEYS", "*")])))
        return section(call)["filters_beyond_plan"]

    assert section(call)["largest_filter_bytes"] == 0
    call("CF.ADD", "one", "a")
    assert check() == 0
    call("CF.RESERVE", "fixed", 20_000)
    assert check() == 0
    call("CF.RESERVE", "planned", 4_000_000)
    assert check() == 0
    call("DEL", "planned")
    assert check() == 0
    for n, batch in enumerate([items("item-", 60_000, 60_000 * n) for n in range(4)]):
        add_all(call, "grown", batch)
        for item in batch[:500]:
            call("CF.ADD", "single", item)
        check()
    load(call, "beyond", [(len(small), small)])
    assert check() == 0
    add_all(call, "beyond", items("item-", 10_000))
    assert check() == 1
    call("COPY", "beyond", "copy")
    assert check() == 2
    call("RENAME", "copy", "copy 2")
    call("DEBUG", "RELOAD")
    assert check() == 2
    call.pipeline([("CF.DEL", "grown", item) for item in items("item-", 230_000)])
    call("CF.COMPACT", "grown")
    check()
    call("DEL", "grown", "beyond")
    assert check() == 1
    call("FLUSHALL")
    assert check() == 0 and section(call)["largest_filter_bytes"] == 0


def test_growths_and_refusals(call):
    before = section(call)
    call("CF.RESERVE", "f", 100_000)
    add_all(call, "f", items("item-", 50_000))
    assert section(call)["growths"] == before["growths"]
    assert insert(call, "copies", ["a"] * 1000) == [1] * 1000
    call("CF.RESERVE", "fixed", 100, "EXPANSION", 0)
    insert(call, "fixed", items("item-", 150))
    refused("Filter is full", call, "CF.ADDNX", "fixed", "one more")
    same(call("CF.ADD", "fixed", "item-1"), 1)
    call("CONFIG", "SET", "koel.max-bytes", "40kb")
    refused_items = insert(call, "grown", items("item-", 50_000)).count(-1)
    refused("ERR Insufficient memory", call, "CF.RESERVE", "large", 1_000_000)
    call("CONFIG", "SET", "koel.max-bytes", "1gb", "maxmemory", "100mb")
    refused("ERR Insufficient memory", call, "CF.RESERVE", "large", 500_000_000)
    after = section(call)
    refusals = {name: after[name] - before[name] for name in after if name.startswith("refused")}
    assert refusals == {
        "refused_capacity": 51, "refused_max_bytes": refused_items + 1, "refused_growth": 0, "refused_out_of_memory": 1,
    }
    assert after["growths"] > before["growths"] and refused_items > 0


NO_OPS = [
    ("CF.DEL", "f", "absent"), ("CF.DEL", "missing", "a"), ("CF.ADDNX", "f", "a"), ("CF.INSERTNX", "f", "ITEMS", "a", "b"),
    ("CF.ADD", "full", "a"), ("CF.INSERT", "full", "ITEMS", "x", "y"), ("CF.INSERT", "missing", "NOCREATE", "ITEMS", "a"),
    ("CF.RESERVE", "f", 1000), ("CF.COMPACT", "f"), ("CF.COMPACT", "compacted"), ("CF.COMPACT", "missing"),
    ("CF.UNION", "f", "part"), ("CF.UNION", "f", "missing"), ("CF.LOADCHUNK", "f", 1, "x"), ("CF.LOADCHUNK", "missing", 1, "x"),
    ("CF.LOADCHUNK", "half", 5, "x"), ("CF.EXISTS", "f", "a"), ("CF.SCANDUMP", "f", 0), ("CF.INFO", "f"), ("CF.ADD", "half", "a"),
]
CHANGES = [
    ("CF.DEL", "f", "a"), ("CF.ADD", "f", "a"), ("CF.ADD", "full", "b"), ("CF.INSERT", "f", "ITEMS", "a"), ("CF.ADDNX", "missing", "a"),
    ("CF.INSERTNX", "f", "ITEMS", "a", "c"), ("CF.RESERVE", "missing", 1000), ("CF.UNION", "part", "f"), ("CF.LOADCHUNK", "half"),
    ("CF.UNION", "missing", "f"), ("CF.COMPACT", "deleted"), ("CF.COMPACT", "imported"), ("DEL", "half"),
]


def make_watched(call):
    """Creates the keys of these commands. Returns the chunk that `half` lacks."""
    call("CF.INSERT", "f", "ITEMS", "a", "b")
    call("CF.RESERVE", "full", 4, "EXPANSION", 0)
    call("CF.INSERT", "full", "ITEMS", *"bcde")
    call("CF.INSERT", "part", "ITEMS", "a")
    add_all(call, "deleted", items("x", 20))
    call("CF.DEL", "deleted", "x1")
    for key in ("imported", "compacted"):
        load(call, key, chunks_of(fixture_named("rb_grown_e2.chunks")))
    call("CF.DEL", "imported", "key-1")
    # Each compaction moves items to the room that others left, until none is left.
    for _ in range(5):
        call("CF.COMPACT", "compacted")
    make_large(call, "large")
    chunks = dump(call, "large")
    load(call, "half", chunks[:1])
    return chunks[1]


@pytest.mark.parametrize("command", NO_OPS + CHANGES, ids=lambda command: " ".join(map(str, command)))
def test_only_changes_break_a_watch(server, call, command):
    """Only commands that change a key break a watch, and the server counts the same ones as changes of the data."""
    chunk, expected = make_watched(call), command in CHANGES
    if command == ("CF.LOADCHUNK", "half"):
        command = (*command, *chunk)
    with server.connect() as other:
        other("WATCH", "f", "full", "part", "missing", "half", "deleted", "imported", "compacted")
        before = field(call, "persistence", "rdb_changes_since_last_save")
        is_refused(call, *command)
        is_change = field(call, "persistence", "rdb_changes_since_last_save") != before
        other("MULTI")
        other("PING")
        is_broken = other("EXEC") is None
    assert (is_change, is_broken) == (expected, expected)


def log_messages(server):
    return [line.split("> ", 1)[1] for line in server.log().splitlines() if "<koel> " in line or "<module> " in line]


@pytest.fixture
def with_arguments(binary):
    """Starts servers that load the module with these arguments."""
    own = []

    def start_one(arguments, *options):
        own.append(Server(binary, f"loadmodule {MODULE} {arguments}", *options, module=None))
        return own[-1]

    yield start_one
    for server in own:
        server.close()


def test_arguments_of_redisbloom(with_arguments):
    """Both spellings are accepted, and arguments for Bloom filters, too. The configuration takes precedence."""
    server = with_arguments(
        "CF_INITIAL_SIZE 5000 cf-expansion-factor 7 CF_BUCKET_SIZE 4 CF_MAX_ITERATIONS 500 cf_max_expansions 4 ERROR_RATE 0.1 "
        "INITIAL_SIZE 99 BF_ERROR_RATE 0.1 BF_INITIAL_SIZE 99 BF_EXPANSION_FACTOR 2", "koel.expansion 3",
    )
    with server.connect() as call:
        call("CF.ADD", "f", "a")
        found = info(call, "f")
        assert (found["Capacity"], found["Expansion rate"], found["Bucket size"]) == (5000, 3, 4)
    messages = log_messages(server)
    assert "RedisBloom's CF_INITIAL_SIZE 5000 is the default of koel.initial-size" in messages
    assert sum("CF_EXPANSION_FACTOR 7 is the default of koel.expansion" in line for line in messages) == 1
    assert sum("has no effect" in line for line in messages) == 8, messages


@pytest.mark.parametrize("arguments, expected", [
    ("WRONG 5", "WRONG is no argument that koel knows: those of RedisBloom are CF_INITIAL_SIZE, CF_EXPANSION_FACTOR"),
    ("CF_INITIAL_SIZE", "CF_INITIAL_SIZE has no value"), ("CF_INITIAL_SIZE 3", "must be in the range [4,"),
    ("CF_INITIAL_SIZE many", "must be in the range [4,"), ("CF_EXPANSION_FACTOR 40000", "must be in the range [0, 32768]"),
    ("CF_BUCKET_SIZE 4 koel.expansion 3", "belong into the server's configuration"),
])
def test_invalid_arguments(with_arguments, arguments, expected):
    with pytest.raises(AssertionError, match="ended with") as caught:
        with_arguments(arguments)
    assert expected in str(caught.value)


def test_settings_of_redisbloom(start, binary):
    """Redis 8 allows settings without the module's prefix."""
    options = ["cf-initial-size 4000", "cf-expansion-factor 5", "cf-bucket-size 4", "cf-max-iterations 9", "cf-max-expansions 2"]
    if not binary.is_at_least(redis=(8, 0)):
        with pytest.raises(AssertionError, match="Bad directive"):
            start(*options)
        return
    server = start(*options)
    with server.connect() as call:
        call("CF.ADD", "f", "a")
        assert (info(call, "f")["Capacity"], info(call, "f")["Expansion rate"]) == (4000, 5)
        same(call("CONFIG", "GET", "koel.initial-size"), [b"koel.initial-size", b"4000"])
        call("CONFIG", "SET", "cf-initial-size", 77)
        same(call("CONFIG", "GET", "koel.initial-size"), [b"koel.initial-size", b"77"])
    messages = log_messages(server)
    assert sum("has no effect" in line for line in messages) == 3 and any("cf-initial-size" in line for line in messages)


def test_debug(call):
    """The beginning has RedisBloom's format. For an own filter, the values are those of CF.INFO."""
    fixture = fixture_named("rb_grown_e2.chunks")
    load(call, "f", chunks_of(fixture))
    call("CF.ADD", "g", "a")
    call("CF.ADD", "h", "b")
    own_fields = {name: info(call, "f")[name] for name in ("Number of distinct items", "Buckets per lookup")}
    for key, fields in [("f", {**fixture["info"], **own_fields}), ("g", info(call, "g"))]:
        same(call("CF.DEBUG", key), (
            "bktsize:{Bucket size} buckets:{Number of buckets} items:{Number of items inserted} deletes:{Number of items deleted} "
            "filters:{Number of filters} max_iterations:{Max iterations} expansion:{Expansion rate} distinct:{Number of distinct items} "
            "buckets_per_lookup:{Buckets per lookup}"
        ).format(**fields).encode())
    same(call("CF.DEBUG", "h"), call("CF.DEBUG", "g"))
    refused("ERR not found", call, "CF.DEBUG", "missing")
    refused("ERR wrong number", call, "CF.DEBUG")


def test_the_largest_filter_after_removals_that_only_free_memory(call):
    """RedisBloom's removals compact a filter: they free sub-filters, and allocate nothing."""
    wait_until(lambda: section(call)["filters"] == 0)
    chunks = fixture_named("rb_grown_e2.chunks")
    load(call, "f", chunks_of(chunks))
    before = call("MEMORY", "USAGE", "f")
    for item in remaining(chunks):
        call("CF.DEL", "f", item)
    after = call("MEMORY", "USAGE", "f")
    assert after < before / 2
    assert after - 256 <= section(call)["largest_filter_bytes"] <= after * 9 / 8
