"""The samples in valkey/deploy work on the servers that they are made for."""

import hashlib
import re
import shutil
import subprocess

import pytest

from filters import refused
from servers import MODULE, ROOT, found, wait_until
from test_migration import Run, fill
from wire import same

FOLDER = ROOT / "valkey/deploy"
SECRET = "secret"


@pytest.fixture
def deployed(binary, start, tmp_path):
    """A server with the sample configuration, except for folders and port."""
    users = (FOLDER / "users.acl").read_text().replace("#SHA256", "#" + hashlib.sha256(SECRET.encode()).hexdigest())
    (tmp_path / "users.acl").write_text(users.replace("user default off", "user default on nopass +ping"))
    text = (FOLDER / f"{binary.kind}.conf").read_text()
    for path, own in (("/usr/local/lib/libkoel_valkey.so", MODULE), ("/etc/koel-valkey", tmp_path), ("/var/lib/koel-valkey", tmp_path)):
        assert path in text
        text = text.replace(path, str(own))
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "port ", "bind "))]
    return start(*lines, module=None)


def metrics_of_alerts():
    """Returns the names of the metrics that the alerts use."""
    rules = (FOLDER / "alerts.yml").read_text()
    return set(re.findall(r"\bredis_\w+", "\n".join(re.findall(r"^ +expr: (.*)$", rules, re.M))))


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


def test_users(deployed):
    writer, reader = connect(deployed, "writer"), connect(deployed, "reader")
    same(writer("CF.INSERT", "seen:1", "ITEMS", "a", "b"), [1, 1])
    same(writer("CF.DEL", "seen:1", "b"), 1)
    same(reader("CF.MEXISTS", "seen:1", "a", "b"), [1, 0])
    for call, command in (
        (writer, ("CF.ADD", "other", "a")), (writer, ("CF.RESERVE", "seen:2", 100)), (writer, ("CF.LOADCHUNK", "seen:2", 1, "a")),
        (writer, ("FLUSHALL",)), (reader, ("CF.ADD", "seen:1", "a")), (reader, ("CF.EXISTS", "other", "a")), (reader, ("CF.SCANDUMP", "seen:1", 0)),
    ):
        refused("NOPERM", call, *command)


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


def test_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "koel-valkey.service"
    unit.write_text((FOLDER / unit.name).read_text().replace("/usr/bin/valkey-server", found()[0].path))
    result = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=30, check=False)
    assert unit.name not in result.stderr, result.stderr
