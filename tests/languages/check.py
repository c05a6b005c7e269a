"""Runs the calls and programs of docs/FORMAT.md in one language. `just languages` calls it for each:

    python3 tests/languages/check.py c|go|java|javascript|python

A call is taken from the page's table, and hashes the page's example. A program is a block of code of the page; go/main.go and
java/Main.java ask it for items and probes of golden files. Compiled programs are in target/languages.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = ROOT / "tests/data"
TARGET = ROOT / "target/languages"
PAGE = (ROOT / "docs/FORMAT.md").read_text()
EXAMPLE = int(re.search(r"^item-0: x = (0x[0-9a-f]{16}),", PAGE, re.M)[1], 16)
JNA = "/usr/share/java/jna.jar"
# Where Debian's packages of Go, and those that .ci/install has unpacked, have their sources.
GO = f"{TARGET / 'go'}:{TARGET / 'debian/usr/share/gocode'}:/usr/share/gocode"

sys.path.insert(0, str(ROOT / "tests"))
from reader import mix
from reader_check import item

CALLS = {
    "C and C++": ("c", """
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>
int main(void) {{
    const char *bytes = "item-0";
    size_t length = 6;
    uint64_t seed = 7;
    printf("%" PRIu64, {call});
}}
"""),
    "Go": ("go", """
package main
import (
    "fmt"
    "{package}"
)
func main() {{
    bytes, seed := []byte("item-0"), uint64(7)
    fmt.Print({call})
}}
"""),
    "Java, with C's library": ("java", """
import com.sun.jna.Library;
import com.sun.jna.Native;
public class Call {{
    public {interface} {{
        {method};
    }}
    public static void main(String[] arguments) {{
        byte[] bytes = "item-0".getBytes();
        long length = bytes.length, seed = 7;
        System.out.print(Long.toUnsignedString({call}));
    }}
}}
"""),
    "JavaScript": ("javascript", """
import {{ xxhash3 }} from "{package}";
const [bytes, low, high] = [new TextEncoder().encode("item-0"), 7, 0];
console.log(BigInt("0x" + {call}).toString());
"""),
    "JavaScript, Node only": ("javascript", """
import {{ xxh3 }} from "{package}";
const [bytes, seed] = [new TextEncoder().encode("item-0"), 7n];
console.log({call}.toString());
"""),
    "Python": ("python", """
import {package}
bytes, seed = b"item-0", 7
print({call})
"""),
}


def run(*command, folder=TARGET, text=None, **variables):
    """Returns the output of a command that must succeed."""
    done = subprocess.run(
        command, cwd=folder, input=text, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command[:4]))} ended with {done.returncode}"
    return done.stdout


def program(language, folder, name, source):
    """Writes and builds a program, and returns the command that runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(source)
    if language == "c":
        run("cc", name, "-lxxhash", "-o", "program", folder=folder)
        return [folder / "program"]
    if language == "go":
        assert run("gofmt", "-l", str(HERE / "go"), folder=folder) == ""
        run("go", "build", "-o", "program", folder=folder, GO111MODULE="off", GOPATH=GO)
        return [folder / "program"]
    if language == "java":
        run("javac", "-Xlint:all", "-Werror", "-cp", f"{JNA}:..", "-d", ".", name, folder=folder)
        return ["java", "-cp", f"{JNA}:{folder}:{folder.parent}", Path(name).stem]
    return [{"javascript": "node", "python": sys.executable}[language], folder / name]


def check_call(language, row, package, call):
    _, template = CALLS[row]
    fields = {"call": call, "package": package}
    if row.startswith("Java,"):
        fields["interface"], fields["method"] = re.search(r"is an `(interface [^`]+)` with the\s+method `([^`]+)`", PAGE).groups()
    folder = TARGET / language / "src" / re.sub(r"\W+", "-", row.lower())
    name = {"c": "call.c", "go": "call.go", "java": "Call.java", "javascript": "call.mjs", "python": "call.py"}[language]
    command = program(language, folder, name, template.format(**fields).lstrip())
    assert int(run(*command)) == EXAMPLE, f"{call} gives another hash"


def calls():
    """Returns the rows of the page's table, as the language, the package and the call."""
    table = PAGE[PAGE.index("\n## Readers in other languages") :]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| `(.+?)`(.*) \|$", table[: table.index("\nFor JNA")], re.M)
    rows = [(row, re.search("`(.+?)`", package)[1].split()[-1], call) for row, package, call, rest in rows if "no test" not in rest]
    assert {row for row, _, _ in rows} == CALLS.keys(), f"the page has calls in {[row for row, _, _ in rows]}"
    return rows


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return found


def questions():
    """Returns lines for the programs, and the lines that they must answer with."""
    asked, expected = [], []
    for golden in json.loads((DATA / "goldens.json").read_text())["files"]:
        asked.append(f"open {DATA / golden['file']}")
        if golden["hasher"] != "xxh3":
            expected.append("a growing filter, or another hasher")
            continue
        expected.append("opened")
        items = [(item(golden, "item", n), True) for first, end, _ in golden["holds"] for n in range(first, end)]
        found = set(golden["found"])
        items += [(item(golden, "probe", n), n in found) for n in range(2000)]
        for it, is_found in items:
            asked.append(f"hash {mix(it)}" if isinstance(it, int) else f"item {it.hex()}")
            expected.append(str(is_found).lower())
    tiny = (DATA / "packed_f13_any_tiny.koel").read_bytes()
    damaged = {
        "not a snapshot": [b"", tiny[:71], b"K" + tiny],
        "another version of the format": [(DATA / "version_1/growing.koel").read_bytes()],
        "a growing filter, or another hasher": [(DATA / "growing/list.koel").read_bytes()],
        "the header was altered": [flipped(tiny, at) for at in range(10, 64)],
        "the table was altered, or is incomplete": [flipped(tiny, at) for at in range(64, len(tiny))] + [tiny[:-1], tiny + b"\0"],
    }
    for message, files in damaged.items():
        for number, data in enumerate(files):
            path = TARGET / f"damaged/{message.replace(' ', '-')}-{number}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            asked.append(f"open {path}")
            expected.append(message)
    return asked, expected


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def check_program(language):
    if language == "go":
        source, main = TARGET / "go/src/koel/koel.go", HERE / "go/main.go"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(block("go"))
        assert run("gofmt", "-l", str(source)) == "", "gofmt would change the program of docs/FORMAT.md"
        run("go", "vet", "koel", GO111MODULE="off", GOPATH=GO)
    else:
        source, main = TARGET / "java/src/Filter.java", HERE / "java/Main.java"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(block("java"))
        run("javac", "-Xlint:all", "-Werror", "-d", ".", source.name, folder=source.parent)
    command = program(language, TARGET / language / "src/main", main.name, main.read_text())
    asked, expected = questions()
    answers = run(*command, text="".join(f"{line}\n" for line in asked)).splitlines()
    differing = [f"{line[:60]}: {answer}, not {right}" for line, answer, right in zip(asked, answers, expected) if answer != right]
    assert len(answers) == len(expected) and not differing, f"{len(answers)} of {len(expected)} answers; {differing[:5]}"
    return len(expected)


def main(language):
    TARGET.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(TARGET / language / "src", ignore_errors=True)
    checked = [row for row in calls() if CALLS[row[0]][0] == language]
    for row in checked:
        check_call(language, *row)
    answers = check_program(language) if language in ("go", "java") else 0
    print(f"{language}: {len(checked)} calls and {answers} answers are right")


main(*sys.argv[1:])
