#!/usr/bin/env python3
"""Measures by how much programs grow when they link the library, and compares the sizes with benches/code_size.tsv.

python3 benches/code_size.py             prints Markdown, and fails if a size is more than 3 % above its baseline
python3 benches/code_size.py --update    writes today's sizes into the file

The programs are in benches/code_size, and are built with link-time optimization and one codegen unit, without unwinding and
symbols. A size is the number of bytes of code and data beyond those of the program `empty`. The WebAssembly module and the
firmware are measured whole. Panics name source files: their paths begin at this checkout or at cargo's folder, so that sizes do not
depend on where these are.
"""

import os
import struct
import subprocess
import sys
from pathlib import Path

from baselines import ROOT, TOLERANCE, compiler, end, is_comparable, output, read

PACKAGE = ROOT / "benches" / "code_size"
BASELINES = ROOT / "benches" / "code_size.tsv"
UPDATE = "python3 benches/code_size.py --update"
WASM = "wasm32-unknown-unknown"
THUMB = "thumbv7em-none-eabihf"

# Name, program, features, goal (largest size in KiB), and description.
PROGRAMS = [
    ("view", "view", "koel", 32, "koel: queries a snapshot in place, without default features"),
    ("fixed", "fixed", "koel", 48, "koel: builds a `CuckooFilter`, changes it and writes it, without default features"),
    ("fixed, default features", "fixed", "koel-default", 80, "koel: the same with default features"),
    ("growing", "growing", "koel", 64, "koel: builds an `ElasticFilter`, changes it and writes it, without default features"),
    ("qfilter", "qfilter", "qfilter", None, "qfilter: builds a filter and changes it"),
    ("cuckoofilter", "cuckoofilter", "cuckoofilter", None, "cuckoofilter: builds a filter and changes it"),
    (
        "scalable_cuckoo_filter",
        "scalable_cuckoo_filter",
        "scalable_cuckoo_filter",
        None,
        "scalable_cuckoo_filter: builds a filter and changes it",
    ),
    ("fastbloom", "fastbloom", "fastbloom", None, "fastbloom: builds a filter and inserts"),
    (
        "growable-bloom-filter",
        "growable-bloom-filter",
        "growable-bloom-filter",
        None,
        "growable-bloom-filter: builds a filter and inserts",
    ),
    ("xorf", "xorf", "xorf", None, "xorf: builds a filter"),
]
# Programs that are optimized for size and measured whole: name, target, what to build, goal in KiB, and description.
WHOLE = [
    ("page", WASM, ["--lib"], 24, "koel: queries a snapshot in place, WebAssembly optimized for size; the whole file"),
    ("firmware", THUMB, ["--bin", "firmware"], 9, "koel: queries a snapshot in place, ARMv7E-M optimized for size; all of it"),
]

# The features of crates, from their documentation: program, crate and type, structure, and whether it removes items, grows, merges,
# lets threads write, can be queried in borrowed bytes, and works without std.
FEATURES = [
    ("fixed", "koel, `CuckooFilter`", "cuckoo filter, semi-sorted", "yes", "–", "yes", "–", "as a view", "yes"),
    ("growing", "koel, `ElasticFilter`", "shards of the same", "yes", "and shrinks", "yes", "`SharedFilter`", "as a view", "yes"),
    ("view", "koel, `FilterView`", "a snapshot of the same", "–", "–", "–", "–", "yes", "yes"),
    ("qfilter", "qfilter 0.3.1", "quotient filter", "yes", "and shrinks", "yes", "–", "yes", "–"),
    ("cuckoofilter", "cuckoofilter 0.5.0", "cuckoo filter, 8-bit fingerprints", "yes", "–", "–", "–", "–", "–"),
    ("scalable_cuckoo_filter", "scalable_cuckoo_filter 0.5.1", "list of cuckoo filters", "yes", "and shrinks", "–", "–", "–", "–"),
    ("fastbloom", "fastbloom 0.17.0", "Bloom filter", "–", "–", "yes", "yes", "–", "yes"),
    ("growable-bloom-filter", "growable-bloom-filter 2.1.1", "list of Bloom filters", "–", "yes", "–", "–", "–", "–"),
    ("xorf", "xorf 0.13.0", "binary fuse filter, built once", "–", "–", "–", "–", "yes", "yes"),
]

HEADER = f"""\
# Bytes of code and data by which programs in benches/code_size grow. `just code-size` compares them; this command updates the file:
#     {UPDATE}
# Compilers give different sizes. These were measured with
# {{compiler}}
program\tbytes
"""


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target" / "code_size").absolute()


def build(*arguments):
    manifest = ["--manifest-path", PACKAGE / "Cargo.toml", "--target-dir", target()]
    command = ["cargo", "build", "--quiet", "--locked", *manifest, *arguments]
    folders = [ROOT, Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").absolute()]
    flags = "\x1f".join(f"--remap-path-prefix={folder}=" for folder in folders)
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True, env={**os.environ, "CARGO_ENCODED_RUSTFLAGS": flags})


def sections(path):
    """Returns the bytes of an ELF file that are loaded into memory and stored in the file: code, constants and initial values."""
    data = path.read_bytes()
    assert data[:4] == b"\x7fELF" and data[4] in (1, 2) and data[5] == 1, f"{path} is not a little-endian ELF file"
    # The offset of the section table, the offset of its sizes, and the fields of a section, in files of 32 and of 64 bits.
    offset, counts, fields = (("<I", 0x20), 0x2E, "<IIIIII") if data[4] == 1 else (("<Q", 0x28), 0x3A, "<IIQQQQ")
    table, = struct.unpack_from(offset[0], data, offset[1])
    size, count = struct.unpack_from("<HH", data, counts)
    headers = (struct.unpack_from(fields, data, table + size * number) for number in range(count))
    return sum(length for _, kind, flags, _, _, length in headers if flags & 2 and kind != 8)  # SHF_ALLOC, SHT_NOBITS


def program(name, *arguments):
    build("--release", "--bin", name, *arguments)
    return sections(target() / "release" / name)


def measure():
    empty = program("empty")
    sizes = {name: program(binary, "--features", features) - empty for name, binary, features, *_ in PROGRAMS}
    installed = output("rustup", "target", "list", "--installed").split()
    for name, triple, arguments, *_ in WHOLE:
        if triple not in installed:
            print(f"{name} is not measured: rustup target add {triple}", file=sys.stderr)
            continue
        build("--profile", "page", *arguments, "--features", "koel", "--target", triple)
        folder = target() / triple / "page"
        sizes[name] = (folder / "page.wasm").stat().st_size if triple == WASM else sections(folder / name)
    return sizes


def kib(size):
    return f"{size / 1024:.1f}"


def compare(sizes, baselines):
    """Prints every size. Returns descriptions of the problems."""
    goals = {name: most for name, *_, most, _ in PROGRAMS + WHOLE}
    descriptions = {name: description for name, *_, description in PROGRAMS + WHOLE}
    problems = []
    print("<!-- code-size -->\n\nKiB of code and data by which a program grows; *goal*: at most.\n\n| program | KiB | goal |\n|---|---:|---:|")
    for name, size in sizes.items():
        if (baseline := baselines.get(name)) is None:
            problems.append(f"{name} takes {size:,} bytes, and has no baseline.")
            continue
        change = size / baseline - 1
        print(f"| {descriptions[name]} | {kib(size)} | {goals[name] or '–'} |")
        if change > TOLERANCE:
            problems.append(f"{name} takes {size:,} bytes, {change * 100:.1f} % more than its baseline, {baseline:,}.")
        elif change < -TOLERANCE:
            print(f"{name} is smaller than its baseline; to keep the gain: {UPDATE}", file=sys.stderr)
    print("\n<!-- features -->\n\n| crate | structure | removes | grows | merges | threads write | in borrowed bytes | `no_std` | KiB |")
    print("|---|---|---|---|---|---|---|---|---:|")
    for name, *cells in FEATURES:
        print(f"| {' | '.join(cells)} | {kib(sizes[name])} |")
    return problems


def main():
    if sys.argv[1:] not in ([], ["--update"]):
        sys.exit(__doc__)
    sys.stdout.reconfigure(line_buffering=True)  # in step with what cargo says on the other stream
    this = compiler()
    update = sys.argv[1:] == ["--update"]
    baselines, theirs = ({}, this) if update else read(BASELINES)
    if not is_comparable(this, theirs):
        return
    sizes = measure()
    if update:
        if not all(name in sizes for name, *_ in WHOLE):
            sys.exit("The file is not updated: it needs the sizes of all programs.")
        BASELINES.write_text(HEADER.format(compiler=this) + "".join(f"{name}\t{size}\n" for name, size in sizes.items()))
        for name, size in sizes.items():
            print(f"{name:<26}{kib(size):>8}")
        return
    end(compare(sizes, baselines), "size", UPDATE)


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"Failed: {' '.join(map(str, error.cmd))}")
