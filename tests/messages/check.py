"""Checks that no program in src/bin compiles, and that the compiler's messages contain each line of the program's header."""

import json
import pathlib
import subprocess
import sys

folder = pathlib.Path(__file__).parent
command = ["cargo", "check", "--quiet", "--keep-going", "--bins", "--message-format", "json", "--manifest-path", folder / "Cargo.toml"]
lines = subprocess.run(command + sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines()
messages = {}
for message in map(json.loads, lines):
    if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
        messages.setdefault(message["target"]["name"], []).append(message["message"]["rendered"])

programs = sorted((folder / "src/bin").glob("*.rs"))
failures = []
for program in programs:
    # The compiler breaks no lines within its messages.
    text = "\n".join(messages.get(program.stem, []))
    expected = [line[4:] for line in program.read_text(encoding="utf-8").splitlines() if line.startswith("//! ")]
    missing = [phrase for phrase in expected if phrase not in text]
    if missing or not expected:
        failures.append(f"{program.name}: the compiler does not say {missing}; it says:\n{text or 'nothing: it compiles'}")
print("\n".join(failures) or f"{len(programs)} programs do not compile, each with the expected message")
sys.exit(bool(failures) or not programs)
