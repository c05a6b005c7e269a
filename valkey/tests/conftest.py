"""Fixtures. Every test that uses `server`, `call` or `start` runs with every installed server."""

import functools
import sys

import pytest

sys.dont_write_bytecode = True  # No __pycache__ in valkey/tests.

import redisbloom
import servers
from servers import Server


def pytest_generate_tests(metafunc):
    if "binary" in metafunc.fixturenames:
        metafunc.parametrize("binary", servers.found(), ids=repr, scope="session")
    if "protocol" in metafunc.fixturenames:
        metafunc.parametrize("protocol", [2, 3], ids=["RESP2", "RESP3"])


def pytest_sessionstart():
    if not servers.MODULE.exists():
        pytest.exit(f"{servers.MODULE} is missing: cargo build --release -p koel-valkey", 2)
    if not servers.found():
        pytest.exit("no server is installed: valkey/tests/servers.py says where it looks for one", 2)


def pytest_report_header():
    others = [f"RedisBloom on {redisbloom.binary()}"] if redisbloom.is_installed() else []
    return f"servers: {', '.join([*map(repr, servers.found()), *others])}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for server in servers.started:
            report.sections.append((f"log of {server.binary} on {server.address}", server.log()))


def pytest_sessionfinish():
    for server in list(servers.started):
        server.close()


@pytest.fixture(scope="session")
def shared(binary):
    """One server for all tests that do not stop or reconfigure it for good."""
    server = Server(binary)
    yield server
    server.close()


DEFAULTS = {
    "koel.initial-size": "1024", "koel.error-rate": "0.01", "koel.expansion": "1", "koel.max-bytes": "1gb",
    "koel.seed": "0", "koel.absent-while-loading": "no", "maxmemory": "0", "rdbcompression": "yes",
}


@pytest.fixture
def server(shared):
    """A server without keys, with the default configuration. The test must not stop it."""
    with shared.connect() as call:
        for name, value in DEFAULTS.items():
            call("CONFIG", "SET", name, value)
        call("FLUSHALL", "SYNC")
    yield shared
    assert shared.process.poll() is None, f"the server ended:\n{shared.log()}"


@pytest.fixture
def call(server):
    """A connection to `server`, in protocol 2."""
    with server.connect() as connection:
        yield connection


@pytest.fixture
def call3(server):
    """A connection to `server`, in protocol 3."""
    with server.connect(protocol=3) as connection:
        yield connection


@pytest.fixture
def start(binary):
    """Starts servers for this test only: `start("appendonly yes")`."""
    yield from starting(functools.partial(Server, binary))


def starting(start):
    own = []

    def start_one(*options, **keywords):
        own.append(start(*options, **keywords))
        return own[-1]

    yield start_one
    for server in own:
        server.close()


@pytest.fixture(scope="session")
def has_redisbloom():
    """Skips the test if RedisBloom is not installed. `just module` then notes that this is not checked."""
    if not redisbloom.is_installed():
        pytest.skip("RedisBloom is not installed: .ci/install")


@pytest.fixture
def start_redisbloom(has_redisbloom):
    """Starts servers with RedisBloom for this test only."""
    yield from starting(redisbloom.start)


@pytest.fixture(scope="session")
def shared_redisbloom(has_redisbloom):
    server = redisbloom.start()
    yield server
    server.close()


@pytest.fixture
def bloom_server(shared_redisbloom):
    """A server with RedisBloom, without keys. The test must not stop it."""
    with shared_redisbloom.connect() as bloom:
        bloom("FLUSHALL", "SYNC")
    yield shared_redisbloom
    assert shared_redisbloom.process.poll() is None, f"RedisBloom ended:\n{shared_redisbloom.log()}"


@pytest.fixture
def bloom(bloom_server):
    """A connection to RedisBloom, in protocol 2."""
    with bloom_server.connect() as connection:
        yield connection
