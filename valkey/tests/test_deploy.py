"""The samples in valkey/deploy work on the servers that they are made for."""

import hashlib
import re
import shutil
import subprocess

import pytest

from filters import is_refused, refused
from servers import MODULE, ROOT, found, tool, wait_until
from test_failover import NAME, Watcher
from test_migration import Run, fill
from wire import Refusal, same

FOLDER = ROOT / "valkey/deploy"
SECRET = "secret"


def samples(binary, folder):
    """Returns the lines of the sample configuration, except for folders and ports, and writes the users, all with one password."""
    users = (FOLDER / "users.acl").read_text().replace("SHA256", hashlib.sha256(SECRET.encode()).hexdigest())
    (folder / "users.acl").write_text(users)
    text = (FOLDER / f"{binary.kind}.conf").read_text()
    for path, own in (("/usr/local/lib/libkoel_valkey.so", MODULE), ("/etc/koel-valkey", folder), ("dir /var/lib/koel-valkey\n", "")):
        assert path in text
        text = text.replace(path, str(own))
    return [line for line in text.splitlines() if line and not line.startswith(("#", "port ", "bind "))]


@pytest.fixture
def start_deployed(binary, start, tmp_path):
    """Starts servers with the samples."""
    return lambda *options, **keywords: start(*samples(binary, tmp_path), *options, module=None, login=("admin", SECRET), **keywords)


@pytest.fixture
def deployed(start_deployed):
    return start_deployed()


def expressions():
    return "\n".join(re.findall(r"^ +expr: (.*)$", (FOLDER / "alerts.yml").read_text(), re.M))


def metrics_of_alerts():
    """Returns the names of the metrics that the alerts use."""
    return set(re.findall(r"\bredis_\w+", expressions()))


def connect(server, user):
    call = server.connect()
    same(call("AUTH", user, SECRET), "OK")
    return call


def test_configuration(deployed):
    call = connect(deployed, "admin")
    for line in deployed.options:
        name, value = line.split(" ", 1)
        if name not in ("loadmodule", "dir", "save", "client-output-buffer-limit", "aclfile"):
            actual = call("CONFIG", "GET", name)[1].decode()
            units = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
            size = re.fullmatch("([0-9]+)([kmg]b)", value)
            assert actual == value or size and actual in (value, str(int(size[1]) * units[size[2]])), name
    same(call("CF.ADD", "f", "a"), 1)
    wait_until(lambda: b"aof_enabled:1" in call("INFO", "persistence"))


def test_the_samples_differ_only_in_names():
    one, other = ((FOLDER / f"{kind}.conf").read_text().splitlines()[1:] for kind in ("valkey", "redis"))
    assert [line.replace("valkey.conf", "redis.conf") for line in one] == other


RIGHTS = {
    "writer": (
        [("CF.INSERT", "seen:1", "ITEMS", "a", "b"), ("CF.DEL", "seen:1", "b"), ("CF.MEXISTS", "seen:1", "a", "b"), ("CF.INFO", "seen:1")],
        [("CF.ADD", "other", "a"), ("CF.RESERVE", "seen:2", 100), ("CF.LOADCHUNK", "seen:2", 1, "a"), ("FLUSHALL",), ("DEL", "seen:1")],
    ),
    "reader": (
        [("CF.EXISTS", "seen:1", "a"), ("CF.COUNT", "seen:1", "a"), ("CF.INFO", "seen:1")],
        [("CF.ADD", "seen:1", "a"), ("CF.EXISTS", "other", "a"), ("CF.SCANDUMP", "seen:1", 0), ("INFO",), ("KEYS", "*")],
    ),
    "monitor": (
        [
            ("INFO", "everything"), ("CF.INFO", "seen:1"), ("SCAN", 0, "TYPE", "koel-cuck"), ("SLOWLOG", "GET"), ("LATENCY", "LATEST"),
            ("LATENCY", "HISTOGRAM"), ("MODULE", "LIST"), ("CLIENT", "SETNAME", "exporter"),
        ],
        [
            ("CF.ADD", "seen:1", "a"), ("CF.EXISTS", "seen:1", "a"), ("CF.SNAPSHOT", "seen:1"), ("CONFIG", "GET", "*"), ("GET", "s"),
            ("EVAL", "return redis.call('FLUSHALL')", 0), ("CONFIG", "RESETSTAT"), ("SLOWLOG", "RESET"), ("SHUTDOWN",), ("MONITOR",),
        ],
    ),
    "mover": ([("CF.RESERVE", "other", 100), ("SET", "s", "1")], [("FLUSHALL",), ("CONFIG", "SET", "appendonly", "no"), ("SHUTDOWN",)]),
    "replica": (
        [("PING",), ("REPLCONF", "listening-port", 1)],
        [("CF.EXISTS", "seen:1", "a"), ("GET", "s"), ("INFO",), ("REPLICAOF", "NO", "ONE")],
    ),
    "sentinel": (
        [("INFO",), ("ROLE",), ("PUBLISH", "__sentinel__:hello", "a"), ("CLIENT", "SETNAME", "sentinel")],
        [("CF.EXISTS", "seen:1", "a"), ("GET", "s"), ("FLUSHALL",), ("CONFIG", "GET", "*"), ("PUBLISH", "news", "a"), ("EVAL", "return 1", 0)],
    ),
}
"""What each user may and may not do."""


def test_users(deployed):
    """Each user may do what is documented, and nothing else; without a password, nothing works."""
    users = re.findall(r"^user (\w+) on ", (FOLDER / "users.acl").read_text(), re.M)
    assert sorted(users) == sorted(["admin", *RIGHTS])
    connect(deployed, "admin")("CF.ADD", "seen:1", "a")
    for user, (allowed, denied) in RIGHTS.items():
        call = connect(deployed, user)
        for command in allowed:
            call(*command)
        for command in denied:
            with pytest.raises(Refusal, match="NOPERM|can't run this command|No permissions|ACL failure"):
                call(*command)
    with deployed.connect() as call:
        refused("NOAUTH", call, "CF.EXISTS", "seen:1", "a")
        refused("WRONGPASS", call, "AUTH", "default", "any")


def test_categories_of_old_servers(call, binary):
    """On Redis 7.0, commands of modules are in no category, so rules must name them."""
    call("ACL", "SETUSER", "some", "reset", "on", "nopass", "~*", "+@all", "-@write")
    try:
        reply = call("ACL", "DRYRUN", "some", "CF.ADD", "f", "a")
        assert (reply == "OK") == (binary.is_at_least(redis=(7, 0)) and not binary.is_at_least(redis=(7, 4))), reply
        call("ACL", "SETUSER", "some", "reset", "on", "nopass", "~*", "-@all", "+cf.exists")
        assert call("ACL", "DRYRUN", "some", "CF.EXISTS", "f", "a") == "OK"
        assert b"no permissions" in call("ACL", "DRYRUN", "some", "CF.ADD", "f", "a").lower()
    finally:
        call("ACL", "DELUSER", "some")


def test_filters_outlive_a_restart(deployed):
    """A command that creates a filter is a transaction in the append-only file, which some servers replay with the rights of
    `default`."""
    with connect(deployed, "admin") as call:
        same(call("CF.ADD", "created", "a"), 1)
        call("CONFIG", "SET", "save", "")
    deployed.restart()
    same(connect(deployed, "admin")("CF.EXISTS", "created", "a"), 1)


def is_primary(server):
    try:
        return connect(server, "admin")("ROLE")[0] == b"master"
    except OSError:  # Sentinel ends the connections of clients.
        return False


def test_replicas_and_sentinel(start_deployed, binary, tmp_path):
    """A replica follows as the user `replica`; Sentinel, as `sentinel`, makes it the primary."""
    options = (f"masterauth {SECRET}", "masteruser replica", "shutdown-timeout 0")
    primary = start_deployed(*options, tcp=True)
    replica = start_deployed(*options, f"replicaof 127.0.0.1 {primary.port}", tcp=True)
    one, other = (connect(server, "admin") for server in (primary, replica))
    wait_until(lambda: b"master_link_status:up" in other("INFO", "replication"), 30, replica.log)
    same(one("CF.ADD", "f", "a"), 1)
    same(one("WAIT", 1, 5000), 1)
    sentinel = Watcher(binary, primary, tmp_path, f"sentinel auth-user {NAME} sentinel", f"sentinel auth-pass {NAME} {SECRET}")
    try:
        with sentinel.connect() as call:
            wait_until(lambda: len(call("SENTINEL", "REPLICAS", NAME)) == 1, 30, sentinel.log)
            # Sentinel connects to the replica before it can promote it.
            wait_until(lambda: b"ok" in call("SENTINEL", "REPLICAS", NAME)[0] and not is_refused(call, "SENTINEL", "FAILOVER", NAME), 30, sentinel.log)
            wait_until(lambda: is_primary(replica), 60, sentinel.log)
    finally:
        sentinel.close()
    same(connect(replica, "admin")("CF.EXISTS", "f", "a"), 1)


def test_the_mover_can_migrate_filters(deployed, start):
    source = start()
    with source.connect() as call:
        fill(call)
    Run(source, f"unix://mover:{SECRET}@{deployed.address}", "--until-idle", "0.1").end()
    same(connect(deployed, "admin")("CF.EXISTS", "own", "early-1"), 1)


def test_the_category(call, binary):
    """Only some servers allow modules to have categories of commands."""
    if not binary.is_at_least(redis=(7, 4), valkey=(8, 0)):
        assert "Unknown command or category name" in refused("ERR", call, "ACL", "SETUSER", "some", "+@cuckoo")
        pytest.skip("this server has no categories for modules: users.acl names the commands")
    call("ACL", "SETUSER", "some", "on", "nopass", "~*", "-@all", "+@cuckoo")
    try:
        same(call("ACL", "DRYRUN", "some", "CF.ADD", "f", "a"), "OK")
        assert b"no permissions" in call("ACL", "DRYRUN", "some", "GET", "f")
    finally:
        call("ACL", "DELUSER", "some")


FIELDS = {
    "redis_up": "", "redis_memory_used_bytes": "used_memory", "redis_memory_max_bytes": "maxmemory",
    "redis_evicted_keys_total": "evicted_keys", "redis_rdb_last_bgsave_status": "rdb_last_bgsave_status", "redis_aof_last_write_status": "aof_last_write_status",
    "redis_aof_last_bgrewrite_status": "aof_last_bgrewrite_status", "redis_master_link_up": "master_link_status", "redis_script_values": "",
}
"""The metrics of redis_exporter that the alerts use, and the fields of INFO that it reads. test_page.py compares them with the program."""


def test_the_fields_of_alerts(deployed):
    call = connect(deployed, "monitor")
    assert metrics_of_alerts() == FIELDS.keys()
    every = fields(call("INFO", "all"))
    assert {field for field in FIELDS.values() if field} - {"master_link_status"} <= every.keys()
    own = fields(call("INFO", "koel"))
    # The script returns all fields.
    flat = call("EVAL", (FOLDER / "koel.lua").read_text(), 0)
    assert dict(zip(flat[::2], flat[1::2])).keys() == {name.encode() for name in own}
    for pattern in re.findall(r'key=~?"([^"]*)"', expressions()):
        assert any(re.fullmatch(pattern, name) for name in own), pattern


def fields(text):
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


ALERTS = {
    "KoelServerDown": {"redis_up": 0}, "KoelNotLoaded": {"redis_up": 1},
    "KoelMemory": {"redis_memory_used_bytes": 95, "redis_memory_max_bytes": 100},
    "KoelRefused": {'redis_script_values{key="koel_refused_growth"}': "0+1x30"},
    "KoelHalfLoaded": {'redis_script_values{key="koel_half_loaded_filters"}': 1},
    "KoelBeyondPlan": {'redis_script_values{key="koel_filters_beyond_plan"}': 2},
    "KoelEvicted": {"redis_evicted_keys_total": "0+1x30"}, "KoelNotSaved": {"redis_aof_last_write_status": 0},
    "KoelReplicaDisconnected": {"redis_master_link_up": 0},
}
"""What makes each alert fire."""

QUIET = {
    "redis_up": 1, 'redis_script_values{key="koel_filters"}': 3, 'redis_script_values{key="koel_refused_growth"}': 7,
    "redis_memory_max_bytes": 0, 'redis_script_values{key="koel_half_loaded_filters"}': 0, "redis_memory_used_bytes": 95, "redis_evicted_keys_total": 0,
    'redis_script_values{key="koel_filters_beyond_plan"}': 0,
    "redis_aof_last_write_status": 1, "redis_rdb_last_bgsave_status": 1, "redis_aof_last_bgrewrite_status": 1, "redis_master_link_up": 1,
}
"""A server without a problem."""


def test_alerts(tmp_path):
    """Each alert fires when it should, and none for a server without a problem."""
    promtool = tool("promtool")
    if not promtool:
        pytest.skip("promtool is not installed: .ci/install")
    rules = FOLDER / "alerts.yml"
    assert re.findall(r"alert: (\w+)", rules.read_text()) and set(re.findall(r"alert: (\w+)", rules.read_text())) == ALERTS.keys()

    def check(series, alert, fires):
        values = {name: value if isinstance(value, str) else f"{value}x30" for name, value in series.items()}
        inputs = "".join(f"      - {{series: '{name}', values: '{value}'}}\n" for name, value in values.items())
        expected = "        exp_alerts: [{exp_labels: {}, exp_annotations: {}}]\n" if fires else ""
        path = tmp_path / "test.yml"
        path.write_text(
            f"rule_files: ['{rules}']\ntests:\n  - interval: 1m\n    input_series:\n{inputs}    alert_rule_test:\n"
            f"      - eval_time: 25m\n        alertname: {alert}\n{expected}"
        )
        return subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True, timeout=30, check=False)

    for alert, series in ALERTS.items():
        # The labels and texts differ, so what promtool got is in its output.
        got = check(series, alert, True)
        assert f'alertname="{alert}"' in (got.stdout + got.stderr).split("got:")[-1], got.stdout + got.stderr
        quiet = check(QUIET, alert, False)
        assert quiet.returncode == 0, quiet.stdout + quiet.stderr


def test_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "koel-valkey.service"
    unit.write_text((FOLDER / unit.name).read_text().replace("/usr/bin/valkey-server", found()[0].path))
    result = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=30, check=False)
    assert unit.name not in result.stderr, result.stderr
