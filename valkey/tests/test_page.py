"""The blocks of code in docs/VALKEY.md do what the page says, on every server.

An operator works through the page: one shell, the archive of a release, one machine. Only paths, ports and passwords are replaced, and
systemctl, which the machine may lack. A block that no test runs is in NOT_RUN."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import textwrap
import urllib.request

import pytest

from filters import chunks_of, fixture_named, load
from servers import ALLOCATOR, COMMAND, MAX_MEMORY, MODULE, ROOT, free_port, tool, wait_until
from test_deploy import metrics_of_alerts
from wire import Connection, Refusal

PAGE = ROOT / "docs/VALKEY.md"
BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
ARCHIVE = re.compile(r"tar -xzf (koel-valkey-[\d.]+)(-\w+-linux)\.tar\.gz")
HEADING = re.compile(r"^##+ (.*)$", re.M)
SECONDS = 60

NOT_RUN = {
    "cargo build": "`just module` runs this command",
    "just module-portable": "takes a compiler of its own: `just artifacts-check` tests that file",
    "python3 valkey/migrate.py redis://old:6379": "runs until Ctrl-C: test_migration.py and test_deploy.py run the script",
    "old.scan_iter(": "asks a server with RedisBloom: test_aof.py runs it",
    "valkey/aof.py --without-other-types": "needs the file of a server with RedisBloom: test_aof.py runs it",
    "valkey/aof.py --without-key": "needs a damaged file: test_aof.py runs the script with the same options",
    "koel: the server ends, because": "a line of the log, which test_loading.py compares",
}
"""Parts of blocks that no operator runs here, and why."""


def blocks(text):
    """Yields the heading, the language and the text of each block, without its indentation."""
    for match in BLOCK.finditer(text):
        heading = HEADING.findall(text, 0, match.start())[-1]
        yield heading, match["language"], textwrap.dedent(match["text"])


def is_run(text):
    return not any(part in text for part in NOT_RUN)


def sessions(text):
    """Yields the commands of a session, and the lines that follow each."""
    for part in re.split(r"^> ", text, flags=re.M)[1:]:
        command, _, reply = part.partition("\n")
        yield command, reply.rstrip("\n")


def shown(reply):
    """Returns a reply as redis-cli shows it."""
    if reply is None:
        return "(nil)"
    if isinstance(reply, Refusal):
        return f"(error) {reply}"
    if isinstance(reply, int):
        return f"(integer) {reply}"
    if isinstance(reply, bytes):
        return f'"{reply.decode()}"'
    if isinstance(reply, list):
        return "\n".join(f"{number}) {shown(one)}" for number, one in enumerate(reply, 1))
    return reply


PROGRAMS = {
    # A server in the foreground would keep the shell.
    "{kind}-server": """
ulimit -v {memory}
{allocator} exec {server} "$@" --port {port} --dir $PWD --daemonize yes --pidfile {root}/pid --logfile {root}/log
""",
    "systemctl": """
stop() {{
    [ ! -e {root}/pid ] || {{ kill $(cat {root}/pid); timeout 20 sh -c 'while [ -e {root}/pid ]; do sleep 0.02; done'; }}
}}
start() {{
    command=$(sed -n 's/--supervised systemd --daemonize no$//; s/^ExecStart=//p' {root}/etc/systemd/system/koel-valkey.service)
    mkdir -p {root}/var/lib/koel-valkey; cd {root}/var/lib/koel-valkey; $command
    # As with Type=notify.
    timeout 20 bash -c 'until (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.02; done'
}}
case "$*" in
    daemon-reload) ;;
    "stop koel-valkey") stop ;;
    "start koel-valkey") start ;;
    "restart koel-valkey" | "enable --now koel-valkey") stop; start ;;
    *) echo "systemctl $*: unknown"; exit 1 ;;
esac
""",
    "koel": 'exec {koel} "$@"',
    "{kind}-cli": 'exec {cli} -p {port} "$@"',
    "prometheus-redis-exporter": """
{exporter} --web.listen-address=127.0.0.1:{metrics} "$@" >{root}/exporter.log 2>&1 &
echo $! >{root}/exporter.pid
""",
}


class Operator:
    """A person at a shell on a machine, whose folders are in `root`."""

    def __init__(self, binary, root):
        self.binary, self.root, self.port, self.metrics = binary, root, free_port(), free_port()
        release, machine = ARCHIVE.search(PAGE.read_text()).groups()
        self.folder, self.unpacked, self.names = root / "folder", root / "folder" / release, {}
        self.cli, self.exporter = tool("redis-cli") or tool("valkey-cli"), tool("prometheus-redis-exporter")
        for name in ("bin", "etc/systemd/system", "usr/local/lib", "folder"):
            (root / name).mkdir(parents=True)
        names = {"kind": binary.kind}
        values = {
            "memory": MAX_MEMORY >> 10, "server": binary.path,
            "allocator": " ".join(f"{name}={value}" for name, value in ALLOCATOR.items()),
            "port": self.port, "root": root, "koel": COMMAND, "cli": self.cli, "exporter": self.exporter, "metrics": self.metrics,
        }
        for name, script in PROGRAMS.items():
            program = root / "bin" / name.format(**names)
            program.write_text(f"#!/usr/bin/env bash\nset -eu\n{script.format(**values)}\n")
            program.chmod(0o755)
        shutil.copytree(ROOT / "valkey/deploy", root / release / "valkey/deploy")
        for path in (root / release / "valkey/deploy").iterdir():
            path.write_text(self.adapt(path.read_text()))
        shutil.copy(MODULE, root / release / "libkoel_valkey.so")
        shutil.make_archive(self.folder / (release + machine), "gztar", root, release)
        environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"}
        self.shell = subprocess.Popen(
            ["bash", "-euo", "pipefail"], cwd=self.folder, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def adapt(self, text):
        """Replaces paths, the port, and the names of Valkey's programs."""
        for path in ("/usr/local/lib", "/etc/koel-valkey", "/etc/systemd/system", "/var/lib/koel-valkey"):
            text = re.sub(rf"{path}(?=[/\s.]|$)", f"{self.root}{path}", text, flags=re.M)
        text = text.replace("/usr/bin/", f"{self.root}/bin/").replace("6379", str(self.port)).replace("-o valkey -g valkey ", "")
        for name in ("valkey-server", "valkey-cli", "valkey.conf"):
            text = text.replace(name, name.replace("valkey", self.binary.kind))
        return text

    def run(self, text):
        """Types the text into the shell, and returns what it prints. Raises an error if a command fails."""
        self.shell.stdin.write(f"{self.adapt(text)}\necho; echo --done--\n")
        self.shell.stdin.flush()
        printed = ""
        while not printed.endswith("\n--done--\n"):
            line = self.shell.stdout.readline()
            assert line, f"a command failed:\n{text}\n{printed}\n{self.log()}"
            printed += line
        return printed.removesuffix("\n--done--\n")

    def run_python(self, text):
        """Runs the text in the interpreter of all such blocks, and returns what it prints."""
        printed, before = io.StringIO(), os.getcwd()
        os.chdir(self.unpacked)
        try:
            with contextlib.redirect_stdout(printed):
                exec(self.adapt(text).replace("PASSWORD", self.password("admin")), self.names)
        finally:
            os.chdir(before)
        return printed.getvalue()

    def check_session(self, text):
        with self.connect() as call:
            for command, expected in sessions(text):
                (reply,) = call.pipeline([command.split()])
                assert shown(reply) == expected, command

    def password(self, user):
        path = self.root / "etc/koel-valkey/passwords"
        return dict(line.split() for line in path.read_text().splitlines())[user] if path.exists() else None

    def connect(self):
        def attempt():
            try:
                call = Connection(("127.0.0.1", self.port))
                if password := self.password("admin"):
                    call("AUTH", "admin", password)
                return call("PING") == "PONG" and call
            except (OSError, Refusal):
                return None

        return wait_until(attempt, 20, self.log)

    def log(self):
        path = self.root / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def close(self):
        self.shell.stdin.close()
        self.shell.wait(SECONDS)
        for name in ("exporter.pid", "pid"):
            path = self.root / name
            if path.exists():
                os.kill(int(path.read_text()), signal.SIGTERM)
                if name == "pid":
                    wait_until(lambda path=path: not path.exists(), 20)


@pytest.fixture
def operator(binary, tmp_path):
    if not (tool("redis-cli") or tool("valkey-cli")) or not shutil.which("openssl"):
        pytest.skip("redis-cli or openssl is missing: .ci/install")
    one = Operator(binary, tmp_path)
    yield one
    one.close()


def test_every_block_of_the_page(operator, start):
    """Runs all blocks in order. What a block needs, or what it must have done, is in the functions before and after it."""
    text = PAGE.read_text()
    for heading, language, block in blocks(text):
        if not is_run(block):
            continue
        before, after = STEPS.get(heading, (None, None))
        if before:
            before(operator, start, block)
        if "prometheus-redis-exporter" in block and not operator.exporter:
            continue
        printed = ""
        if language == "sh":
            printed = operator.run(block)
        elif language == "python":
            printed = operator.run_python(block)
        else:
            assert language == "text" and block.startswith("> "), f"no way to run this block; add its reason to NOT_RUN:\n{block}"
            operator.check_session(block)
        if after:
            after(operator, start, block, printed)


def after_service(operator, start, block, printed):
    if "INFO koel" in block:
        assert "koel_filters:0" in printed


def is_about_half_loads(block):
    return "redis.ResponseError" in block


def before_monitor(operator, start, block):
    with operator.connect() as call:
        if is_about_half_loads(block):
            load(call, "half", chunks_of(fixture_named("rb_default.chunks"))[:1])
        else:
            call("CF.ADD", "whole", "a")


def after_monitor(operator, start, block, printed):
    if is_about_half_loads(block):
        assert "b'half' a filter is being loaded into this key" in printed
    else:
        assert re.search(r"b'whole' \d+ 2\n", printed)
    with operator.connect() as call:
        call("DEL", "half", "whole")


def after_alerts(operator, start, block, printed):
    """The rules use only metrics that the exporter has."""
    url = f"http://127.0.0.1:{operator.metrics}/metrics"

    def fetch():
        try:
            return urllib.request.urlopen(url, timeout=5).read().decode()
        except OSError:
            return None

    metrics = wait_until(fetch, 20, (operator.root / "exporter.log").read_text)
    names = {re.split("[{ ]", line)[0] for line in metrics.splitlines() if not line.startswith("#")}
    # A primary has no link to a primary.
    assert metrics_of_alerts() - names <= {"redis_master_link_up"}
    with operator.connect() as call:
        fields = dict(line.split(":") for line in call("INFO", "koel").decode().splitlines() if ":" in line)
    for name, value in fields.items():
        assert re.search(rf'^redis_script_values{{.*key="{name}".*}} {value}$', metrics, re.M) or name == "koel_bytes", name


def before_upgrade(operator, start, block):
    with operator.connect() as call:
        call("CF.ADD", "seen", "alice")
    if "FAILOVER" in block:
        with operator.connect() as call:
            call("CONFIG", "SET", "repl-diskless-sync-delay", 0)
        options = ("masteruser replica", f"masterauth {operator.password('replica')}", f"replicaof 127.0.0.1 {operator.port}")
        operator.replica = start(*options, tcp=True)
        with operator.replica.connect() as call:
            wait_until(lambda: b"master_link_status:up" in call("INFO", "replication"), 20)


def after_upgrade(operator, start, block, printed):
    if "FAILOVER" in block:
        with operator.replica.connect() as call:
            wait_until(lambda: call("ROLE")[0] == b"master", 20)
            assert call("CF.EXISTS", "seen", "alice") == 1
        # The page goes on with this server alone.
        with operator.connect() as call:
            wait_until(lambda: call("ROLE")[0] == b"slave", 20)
            call("REPLICAOF", "NO", "ONE")


def after_roll_back(operator, start, block, printed):
    with operator.connect() as call:
        assert call("CF.EXISTS", "seen", "alice") == 1, operator.log()


def before_remove(operator, start, block):
    shutil.copytree(operator.root / "etc", operator.root / "kept", dirs_exist_ok=True)
    if "SAVE" in block or "systemctl" in block:
        with operator.connect() as call:
            assert call("DBSIZE") == 0
            wait_until(lambda: b"aof_rewrite_in_progress:0" in call("INFO", "persistence"), 20)


def after_remove(operator, start, block, printed):
    if "systemctl" in block:
        with operator.connect() as call:
            assert all(module[1] != b"koel" for module in call("MODULE", "LIST"))
        # The rest of the page needs the module again.
        shutil.copytree(operator.root / "kept", operator.root / "etc", dirs_exist_ok=True)
        operator.run("install libkoel_valkey.so /usr/local/lib/; systemctl restart koel-valkey")


def before_dumps(operator, start, block):
    with operator.connect() as call:
        call("CF.ADDNX", "seen", "alice")


def after_dumps(operator, start, block, printed):
    if "CF.LOADCHUNK" in block:
        with operator.connect() as call:
            assert call("CF.SNAPSHOT", "loaded") == call("CF.SNAPSHOT", "seen")


def after_spread(operator, start, block, printed):
    if "koel merge" in block:
        assert "alice" in operator.run("echo alice | koel query all.koel")


STEPS = {
    "As a service": (None, after_service),
    "Monitor": (before_monitor, after_monitor),
    "Alerts": (None, after_alerts),
    "Upgrade": (before_upgrade, after_upgrade),
    "Roll back": (None, after_roll_back),
    "Remove": (before_remove, after_remove),
    "Dumps": (before_dumps, after_dumps),
    "One set in many keys": (None, after_spread),
}


def test_the_list_of_blocks_that_are_not_run_is_true():
    text = PAGE.read_text()
    assert all(part in text for part in NOT_RUN)
    assert {heading for heading, *_ in blocks(text)} >= STEPS.keys()
