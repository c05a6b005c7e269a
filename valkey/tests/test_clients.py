"""The CF.* methods of redis-py and valkey-py, in both protocols."""

import pytest
import redis
import valkey

from filters import INFO_FIELDS, chunks_of, fixture_named, load
from wire import pairs

CLIENTS = {
    "redis-py": (redis.Redis, redis.ResponseError),
    "valkey-py": (valkey.Valkey, valkey.ResponseError),
}


@pytest.fixture(params=CLIENTS)
def connect(request, protocol):
    """Returns clients of a server, with their exception for refusals."""
    make, error = CLIENTS[request.param]
    clients = []

    def connect_one(server):
        clients.append(make(unix_socket_path=server.address, protocol=protocol, socket_timeout=30))
        clients[-1].refusal = error
        return clients[-1]

    yield connect_one
    for client in clients:
        client.close()


@pytest.fixture
def client(connect, server):
    return connect(server)


def results(client):
    """Calls every method, and returns what the client makes of the replies."""
    filters = client.cf()
    calls = [
        lambda: filters.create("f", 1000, expansion=2, bucket_size=4, max_iterations=30), lambda: filters.create("f", 1000),
        lambda: filters.create("g", 1), lambda: filters.create("fixed", 4, expansion=0),
        lambda: filters.add("f", "a"), lambda: filters.addnx("f", "a"), lambda: filters.insert("f", ["b", "c"], capacity=1000),
        lambda: filters.insert("f", ["b"], nocreate=True), lambda: filters.insert("missing", ["b"], nocreate=True),
        lambda: filters.insertnx("f", ["b", "d"]), lambda: filters.insert("fixed", list("012345")), lambda: filters.insertnx("fixed", list("012345")),
        lambda: filters.add("fixed", "9"), lambda: filters.exists("f", "a"), lambda: filters.exists("f", "x"), lambda: filters.exists("missing", "x"),
        lambda: filters.mexists("f", "a", "x"), lambda: filters.mexists("missing", "a", "x"), lambda: filters.count("f", "b"),
        lambda: filters.delete("f", "a"), lambda: filters.delete("f", "a"), lambda: filters.delete("missing", "a"),
        lambda: filters.info("missing"), lambda: shape_of(filters.info("f")), lambda: filters.scandump("missing", 0),
        lambda: list(map(type, filters.scandump("f", 0))), lambda: filters.loadchunk("g", 7, b"data"),
        lambda: client.execute_command("CF.COMPACT", "f"), lambda: type(client.execute_command("CF.DEBUG", "f")),
    ]
    found = []
    for call in calls:
        try:
            found.append(call())
        except client.refusal as refusal:
            found.append((type(refusal), str(refusal)))
    return found


def shape_of(information):
    """Returns the names and types of RedisBloom's fields, in the client's form."""
    fields = information if isinstance(information, dict) else vars(information)
    return [(name, type(value)) for name, value in list(fields.items())[: len(INFO_FIELDS)]]


def test_clients_see_what_redisbloom_replies(connect, server, bloom_server):
    ours, theirs = (results(connect(one)) for one in (server, bloom_server))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if not isinstance(other, tuple):
            assert repr(one) == repr(other), (number, one, other)
        elif other[1] != "Capacity must be at least (BucketSize * 2)":  # RedisBloom 8's words are used.
            assert one[0] == other[0] and one[1].startswith(other[1]), (number, one, other)


def test_every_method(client):
    filters = client.cf()
    assert filters.create("f", 1000, expansion=2, bucket_size=4, max_iterations=30)
    assert filters.add("f", "a") == 1
    assert filters.addnx("f", "a") == 0
    assert filters.insert("f", ["b", "c"], capacity=1000) == [1, 1]
    assert filters.insert("f", ["b"], nocreate=True) == [1]
    assert filters.insertnx("f", ["b", "d"]) == [0, 1]
    assert filters.exists("f", "a") == 1 and filters.exists("f", "x") == 0
    assert filters.mexists("f", "a", "x") == [1, 0]
    assert filters.count("f", "b") == 2
    assert filters.delete("f", "a") == 1 and filters.delete("f", "a") == 0
    with pytest.raises(client.refusal, match="item exists"):
        filters.create("f", 1000)
    with pytest.raises(client.refusal, match="not found"):
        filters.insert("missing", ["a"], nocreate=True)


def test_info(client):
    client.cf().insert("f", ["a", "b", "c"])
    client.cf().delete("f", "a")
    found = client.cf().info("f")
    if isinstance(found, dict):
        values = [found.get(name, found.get(name.encode())) for name in INFO_FIELDS]
    else:
        names = "size bucketNum filterNum insertedNum deletedNum bucketSize expansionRate maxIteration"
        values = [found.get(name) for name in names.split()]
    assert all(type(value) is int for value in values), values
    assert values[3:5] == [2, 1]


def test_dump_and_load(client):
    filters = client.cf()
    filters.insert("f", [f"item-{n}" for n in range(5000)], capacity=5000)
    iterator, chunks = 0, []
    while True:
        iterator, data = filters.scandump("f", iterator)
        if iterator == 0:
            break
        chunks.append((iterator, data))
    for iterator, data in chunks:
        assert filters.loadchunk("g", iterator, data) in ("OK", b"OK", True)
    assert filters.mexists("g", *[f"item-{n}" for n in range(5000)]) == [1] * 5000


def test_pipelines(client):
    pipeline = client.pipeline(transaction=False)
    for n in range(100):
        pipeline.execute_command("CF.ADD", "f", f"item-{n}")
    pipeline.execute_command("CF.MEXISTS", "f", *[f"item-{n}" for n in range(100)])
    *added, found = pipeline.execute()
    assert added == [1] * 100 and found == [1] * 100


@pytest.mark.parametrize("imported", [False, True])
def test_replies_have_the_types_that_lettuce_and_jedis_parse(server, protocol, imported):
    """Lettuce and Jedis cast to these types (docs/VALKEY.md). A value of another type would raise an exception there."""
    with server.connect(protocol) as call:
        if imported:
            load(call, "f", chunks_of(fixture_named("rb_b4_n4000.chunks")))
        else:
            call("CF.ADD", "f", "a")
        fields = pairs(call("CF.INFO", "f"))
        assert all(type(name) in (str, bytes) for name, _ in fields)
        assert [type(value) for _, value in fields[:8]] == [int] * 8
        names = [name if isinstance(name, str) else name.decode() for name, _ in fields]
        assert names[:8] == INFO_FIELDS and len(set(names)) == len(names)
        iterator = 0
        while True:
            reply = call("CF.SCANDUMP", "f", iterator)
            assert type(reply) is list and len(reply) == 2 and type(reply[0]) is int
            iterator = reply[0]
            if iterator == 0:
                assert reply[1] is None
                break
            assert type(reply[1]) is bytes
        results = call("CF.INSERTNX", "f", "ITEMS", "a", "b", "b")
        assert [type(result) for result in results] == [int] * 3 and results[1:] == [1, 0]
        assert {type(result) for result in call("CF.INSERT", "f", "ITEMS", "c")} == {bool if protocol == 3 else int}
