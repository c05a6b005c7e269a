"""What the server tells clients, proxies and administrators: keys, flags and categories of commands, and the module."""

import pytest

from filters import refused
from servers import MODULE
from test_counts import CHANGES, NO_OPS
from test_dumps import DESCRIPTIONS, LOOKUPS, WRITES as WHILE_LOADING
from test_errors import ON_A_STRING, REPLIES_TO_A_STRING, WRONG_ARITIES
from test_migration import migrate
from wire import same

WRITES = {
    "cf.reserve", "cf.add", "cf.addnx", "cf.insert", "cf.insertnx", "cf.del", "cf.compact", "cf.loadchunk",
    "cf.union",
}
READS = {"cf.exists", "cf.mexists", "cf.count", "cf.info", "cf.debug", "cf.scandump", "cf.snapshot"}
NEED_MEMORY = {"cf.reserve", "cf.add", "cf.addnx", "cf.insert", "cf.insertnx", "cf.loadchunk", "cf.union"}
FAST = {"cf.exists", "cf.count"}
"""Commands that must be fast: they use one item, and split or merge no table."""

# What follows the key: "a", unless a command takes others.
ARGUMENTS = {
    "cf.reserve": [1000], "cf.insert": ["ITEMS", "a"], "cf.insertnx": ["NOCREATE", "ITEMS", "a", "b"], "cf.compact": [],
    "cf.info": [], "cf.debug": [], "cf.snapshot": [], "cf.scandump": [0], "cf.loadchunk": [1, "bytes"], "cf.mexists": ["a", "b"],
}


OPTIONS = {b"EXPANSION", b"ERROR", b"SEED"}
TOKENS = {
    "cf.reserve": OPTIONS | {b"BUCKETSIZE", b"MAXITERATIONS"}, "cf.loadchunk": OPTIONS,
    "cf.insert": {b"CAPACITY", b"ERROR", b"NOCREATE", b"ITEMS"},
    "cf.insertnx": {b"CAPACITY", b"ERROR", b"NOCREATE", b"ITEMS"},
}


def commands(call):
    """Returns for every command: arity, flags, first key, last key, step, ACL categories, …"""
    every = {entry[0].decode(): entry[1:] for entry in call("COMMAND")}
    every = {name: entry for name, entry in every.items() if name.startswith("cf.")}
    every.pop("cf.panic", None)
    return every


def test_the_list_of_commands(call):
    assert set(commands(call)) == WRITES | READS


OTHER_LISTS = {
    "test_counts.NO_OPS": (NO_OPS, WRITES), "test_counts.CHANGES": (CHANGES, WRITES),
    "test_dumps.WRITES": (WHILE_LOADING, WRITES - {"cf.loadchunk"}),
    "test_dumps.LOOKUPS or DESCRIPTIONS": (LOOKUPS + DESCRIPTIONS, READS),
    "test_errors.ON_A_STRING or REPLIES_TO_A_STRING": ([*ON_A_STRING, *REPLIES_TO_A_STRING], (WRITES | READS) - {"cf.loadchunk"}),
    "test_errors.WRONG_ARITIES": (WRONG_ARITIES, WRITES | READS),
    "migrate.REPLAYED_COMMANDS": ([(name.decode(),) for name in migrate.REPLAYED_COMMANDS], WRITES - {"cf.loadchunk", "cf.union"}),
}
"""Lists of commands elsewhere, and those that must be in each."""


@pytest.mark.parametrize("name", OTHER_LISTS)
def test_commands_are_in_the_other_lists(name):
    commands, needed = OTHER_LISTS[name]
    assert needed - {command[0].lower() for command in commands} == set(), f"add them to {name}"


def test_flags(call):
    for name, (_, flags, *_) in commands(call).items():
        assert ("write" in flags) == (name in WRITES) and ("readonly" in flags) == (name in READS), name
        assert ("denyoom" in flags) == (name in NEED_MEMORY), name
        assert "fast" in flags or name not in FAST, name


def test_keys(call):
    for name, (_, _, first, last, step, *_) in commands(call).items():
        arguments = ARGUMENTS.get(name, ["a"])
        keys = [b"the key", b"a"] if name == "cf.union" else [b"the key"]
        assert (first, last, step) == (1, -1 if name == "cf.union" else 1, 1), name
        same(call("COMMAND", "GETKEYS", name, "the key", *arguments), keys)


def test_key_specifications(call):
    for name in commands(call):
        (key, flags), *sources = call("COMMAND", "GETKEYSANDFLAGS", name, "k", *ARGUMENTS.get(name, ["a"]))
        assert [(key, "RO" in flags) for key, flags in sources] == ([(b"a", True)] if name == "cf.union" else []), name
        assert key == b"k" and ("RO" in flags) == (name in READS), (name, flags)


def test_documentation(call):
    """Every command documents what clients show as hints: the key, and the options that the summary names."""
    for name, entry in commands(call).items():
        (_, fields), = zip(*[iter(call("COMMAND", "DOCS", name))] * 2)
        docs = fields_of(fields)
        assert docs[b"summary"] and docs[b"complexity"], name
        arguments = [fields_of(argument) for argument in docs[b"arguments"]]
        assert (arguments[0][b"name"], arguments[0][b"type"]) == (b"key", b"key"), name
        tokens = {argument[b"token"] for argument in arguments if b"token" in argument}
        assert tokens == TOKENS.get(name, set()), name
        # The arity requires at least this many words.
        needed = [argument for argument in arguments if "optional" not in argument.get(b"flags", [])]
        words = 1 + sum(2 if b"token" in argument else 1 for argument in needed)
        arity = entry[0]
        assert words == abs(arity), (name, arity, words)


def fields_of(reply):
    """Returns a map from its form in RESP2."""
    return dict(zip(reply[::2], reply[1::2]))


def need_categories_of_modules(binary):
    """Skips the test on servers without categories for modules."""
    if not binary.is_at_least(redis=(7, 4), valkey=(8, 0)):
        pytest.skip("this server has no categories for modules")


def test_categories(call, binary):
    need_categories_of_modules(binary)
    for name, (_, _, _, _, _, categories, *_) in commands(call).items():
        assert ("@write" if name in WRITES else "@read") in categories, (name, categories)
        assert "@cuckoo" in categories, (name, categories)


@pytest.mark.parametrize("rule", ["+cf.exists", "+@read"])
def test_users_who_may_only_read(server, call, binary, rule):
    if "@" in rule:
        need_categories_of_modules(binary)
    call("CF.ADD", "f", "a")
    call("ACL", "SETUSER", "reader", "reset", "on", "nopass", "~f", rule)
    try:
        with server.connect() as reader:
            reader("AUTH", "reader", "any")
            same(reader("CF.EXISTS", "f", "a"), 1)
            refused("NOPERM", reader, "CF.ADD", "f", "b")
            refused("NOPERM", reader, "CF.EXISTS", "g", "a")
    finally:
        call("ACL", "DELUSER", "reader")


def test_users_who_may_only_use_filters(server, call, binary):
    need_categories_of_modules(binary)
    call("ACL", "SETUSER", "gardener", "reset", "on", "nopass", "~*", "+@cuckoo")
    try:
        with server.connect() as gardener:
            gardener("AUTH", "gardener", "any")
            same(gardener("CF.ADD", "f", "a"), 1)
            refused("NOPERM", gardener, "SET", "s", "value")
    finally:
        call("ACL", "DELUSER", "gardener")


def test_the_module(call):
    modules = [dict(zip(module[::2], module[1::2])) for module in call("MODULE", "LIST")]
    (module,) = [module for module in modules if module[b"name"] == b"koel"]
    assert module[b"ver"] >= 1 and module[b"path"] == str(MODULE).encode()


def test_settings(call):
    settings = call("CONFIG", "GET", "koel.*")
    assert dict(zip(settings[::2], settings[1::2])) == {
        b"koel.initial-size": b"1024", b"koel.error-rate": b"0.01", b"koel.expansion": b"1",
        b"koel.max-bytes": b"1073741824", b"koel.seed": b"0",
        b"koel.absent-while-loading": b"no",
    }


def test_the_smallest_sizes_of_the_setting_and_of_reserve(call):
    """Both accept the same ones."""
    for size in (2, 3, 4, 5, 1 << 40, (1 << 40) + 1):
        replies = call.pipeline([("CONFIG", "SET", "koel.initial-size", size), ("CF.RESERVE", "f", size, "EXPANSION", 0)])
        accepted = ["Insufficient memory" in str(reply) or reply == "OK" for reply in replies]
        assert accepted == [4 <= size <= 1 << 40] * 2, (size, replies)
        call("DEL", "f")
    call("CONFIG", "SET", "koel.initial-size", 4)
    same(call("CF.ADD", "f", "a"), 1)
    same(call("CF.RESERVE", "g", 4), "OK")


def test_names_in_statistics(call):
    """As RedisBloom has them."""
    call("CONFIG", "RESETSTAT")
    call("CF.ADD", "f", "a")
    call("cf.exists", "f", "a")
    assert b"cmdstat_cf.add:calls=1" in call("INFO", "commandstats") and b"cmdstat_cf.exists:calls=1" in call("INFO", "commandstats")
    assert b"CF." not in call("INFO", "commandstats")
    call("ACL", "SETUSER", "reader", "reset", "on", "nopass", "~f", "+CF.EXISTS")
    try:
        assert b"+cf.exists" in dict(zip(*[iter(call("ACL", "GETUSER", "reader"))] * 2))[b"commands"]
    finally:
        call("ACL", "DELUSER", "reader")


def test_settings_out_of_range(call):
    for name, value in [
        *(("initial-size", size) for size in (0, -1, 2, 3, (1 << 40) + 1)), ("initial-size", "x"), ("error-rate", 0), ("error-rate", 1),
        ("error-rate", "low"), ("error-rate", "nan"), ("error-rate", -0.01), ("expansion", -1), ("expansion", 32769),
        ("max-bytes", -1), ("max-bytes", "x"), ("seed", "x"), ("absent-while-loading", "x"),
    ]:
        refused("", call, "CONFIG", "SET", f"koel.{name}", value)
    test_settings(call)


def test_keyspace_events(server, call):
    """The module's commands send none; those of the server are sent for filters, too."""
    call("CONFIG", "SET", "notify-keyspace-events", "KEA")
    try:
        with server.connect() as listener:
            listener("PSUBSCRIBE", "__keyevent*")
            call("CF.ADD", "f", "a")
            call("CF.DEL", "f", "a")
            call("DEL", "f")
            same(listener.read(), [b"pmessage", b"__keyevent*", b"__keyevent@0__:del", b"f"])
    finally:
        call("CONFIG", "SET", "notify-keyspace-events", "")
