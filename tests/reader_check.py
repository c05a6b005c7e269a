"""Compares tests/reader.py with the library. `just reader` passes it folders of snapshots.

    cargo run --release --features redisbloom --example goldens -- random target/reader
    python3 tests/reader_check.py tests/data target/reader

Each folder has a list, goldens.json, of its snapshots, with their items and the probes found. In the second folder, the list also has
damaged snapshots with the library's errors. The subfolder `growing` has such a list of growing filters, growing.json.
"""

import json
import random
import struct
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

sys.dont_write_bytecode = True  # No __pycache__ in tests.

import reader
from reader import RECORD, SECTION, GrowingSnapshot, Snapshot, SnapshotError, metrohash64, murmurhash64a
from xxhash import xxh3_64_intdigest

HERE = Path(__file__).resolve().parent
KINDS = {"single": reader.SINGLE, "packed": reader.PACKED}
ADDRESSINGS = {"any-size": reader.ANY_SIZE, "power-of-two": reader.POWER_OF_TWO}
HASHERS = {"xxh3": 1, "metrohash64": 2, "redisbloom": 3}
ERRORS = {"magic", "length", "version", "header checksum", "other type", "parameter", "hasher", "trailing bytes"}
ERRORS |= {"table checksum", "shards", "table", "count", "copies"}

# Forged snapshots share most tables with the original, so decoded tables are cached.
reader.Table = lru_cache(maxsize=1000)(reader.Table)


def item(golden, prefix, n):
    """Returns item or probe n of a golden file, as tests/common/golden.rs and growing.rs define it."""
    items, number = golden["items"], n + (1_000_000 if prefix == "probe" else 0)
    if items == "hash":
        hashes = golden.get("hashes", ()) if prefix == "item" else ()
        return int(hashes[n]) if n < len(hashes) else number
    if items == "u32":
        return struct.pack("<I", number)
    if items == "keys" and prefix == "item":
        prefix = "key"
    return f"{prefix}-{n}".encode() * (n % 40 + 1 if items == "long" else 1)


def check_answers(golden, data, probes):
    snapshot = Snapshot(data)
    assert snapshot.kind == KINDS[golden["table"]] and snapshot.addressing == ADDRESSINGS[golden["addressing"]]
    assert snapshot.hasher == HASHERS[golden["hasher"]] and snapshot.m == golden["buckets"]
    assert [snapshot.f, snapshot.b, snapshot.seed] == [golden[name] for name in ("f", "b", "seed")]
    check_contents(golden, snapshot, probes)


def check_contents(golden, snapshot, probes):
    assert snapshot.items == sum((end - first) * copies for first, end, copies in golden["holds"])
    for first, end, copies in golden["holds"]:
        for n in range(first, end):
            assert item(golden, "item", n) in snapshot, f"item {n} is lost"
            assert snapshot.count(item(golden, "item", n)) >= copies, f"copies of item {n} are lost"
    found = [n for n in range(probes) if item(golden, "probe", n) in snapshot]
    assert found == golden["found"], "the probes found differ from the library's"


def check_growing_answers(golden, data, probes):
    snapshot = GrowingSnapshot(data)
    assert snapshot.kind == reader.GROWING_KIND and snapshot.b == 4 and snapshot.hasher == HASHERS["xxh3"]
    assert len(snapshot.partitions) == golden["partitions"]
    for name in ("seed", "rate", "capacity", "max_capacity"):
        assert getattr(snapshot, name) == golden[name], name
    check_contents(golden, snapshot, probes)


def verdict(data, read):
    try:
        read(data)
        return "none"
    except SnapshotError as error:
        return error.kind


def forge(data):
    """Recomputes both checksums."""
    header = xxh3_64_intdigest(data[:56])
    data = data[:56] + header.to_bytes(8, "little") + data[64:-8]
    return data + xxh3_64_intdigest(data[64:], seed=header).to_bytes(8, "little")


def changed(data, at, new):
    return data[:at] + new + data[at + len(new) :]


def refused(data, *kinds, read=Snapshot):
    """Asserts that the reader refuses the bytes with one of these errors."""
    assert verdict(data, read) in kinds, f"{verdict(data, read)} instead of {' or '.join(kinds)}"


def check_refusals(data, choose):
    """Checks that invalid variants of a snapshot are refused."""
    damage = ("magic", "version", "header checksum", "table checksum")
    for bit in choose.sample(range(8 * len(data)), 60):
        refused(changed(data, bit // 8, bytes([data[bit // 8] ^ 1 << bit % 8])), *damage)
    for length in [0, 7, 8, 63, 64, len(data) - 8, len(data) - 1, *choose.sample(range(len(data)), 10)]:
        refused(data[:length], "length")
    refused(data + b"\0", "trailing bytes")
    refused(data + data, "trailing bytes")
    version, = struct.unpack_from("<H", data, 8)
    for version in (0, version - 1, version + 1, 256, 65535):
        # The checksums do not matter: another version could have them elsewhere.
        refused(changed(data, 8, struct.pack("<H", version)), "version")
        refused(forge(changed(data, 8, struct.pack("<H", version))), "version")
    for hasher in (0, 4, 0x7FFF, 0x8000, 0xFFFF):
        refused(forge(changed(data, 14, struct.pack("<H", hasher))), "hasher")
    refused(forge(changed(data, 10, b"\2")), "other type")
    for at, new in ((10, b"\3"), (11, b"\1"), (11, b"\x21"), (12, b"\0"), (12, b"\x11"), (13, b"\2"), (55, b"\1")):
        refused(forge(changed(data, at, new)), "parameter")
    for at in (24, 40):
        for value in {24: {0, 3, 2**64 - 1}, 40: {1, 9, 2**64 - 1}}[at] - {int.from_bytes(data[at : at + 8], "little")}:
            refused(forge(changed(data, at, struct.pack("<Q", value))), "parameter")
    items = int.from_bytes(data[32:40], "little")
    refused(forge(changed(data, 32, struct.pack("<Q", items + 1))), "count", "parameter")
    refused(forge(changed(data, 32, struct.pack("<Q", 2**64 - 1))), "parameter")
    listed = int.from_bytes(data[40:48], "little")
    refused(forge(changed(data, 40, struct.pack("<Q", listed + 12))), "length", "parameter")
    check_table_refusals(data)
    if listed == 0:
        check_bare_table(data, items, choose)
    else:
        check_list_refusals(data, len(data) - 8 - listed, Snapshot(data).key_bytes)


def check_list_refusals(data, start, size):
    """Checks that invalid lists of extra copies are refused."""
    refused(forge(changed(data, start, b"\xff" * 8)), "count")
    width, end = data[start + 8], len(data) - 8
    entries = (end - start - 9) // (size + width)
    for other in {0, 1, 2, 3, 4, 255} - {width}:
        refused(forge(changed(data, start + 8, bytes([other]))), "copies")
    keys = [start + 9 + size * n for n in range(entries)]
    for at in keys:
        refused(forge(changed(data, at, bytes(size))), "copies")
        refused(forge(changed(data, at, b"\xff" * size)), "copies")
    for at in keys[:-1]:
        first, second = data[at : at + size], data[at + size : at + 2 * size]
        refused(forge(changed(data, at, second + first)), "copies")
        refused(forge(changed(data, at, first + first)), "copies")
    for at in range(end - width * entries, end, width or 1):
        refused(forge(changed(data, at, bytes(width))), "copies")
        refused(forge(changed(data, at, bytes([data[at] ^ 1]))), "copies")


def check_bare_table(data, items, choose):
    """Checks that the bare table of a snapshot is read with a header of equal parameters, and that damage is refused."""
    header = changed(data[:64], 32, bytes(8))
    bare = data[64:-4]
    assert reader.read_bare_table(header, items, bare).table == Snapshot(data).table
    reader.read_bare_table(header, items, bare + b"what follows")
    for bit in choose.sample(range(8 * len(bare)), 20):
        damaged = changed(bare, bit // 8, bytes([bare[bit // 8] ^ 1 << bit % 8]))
        refused(damaged, "table checksum", read=lambda bytes: reader.read_bare_table(header, items, bytes))
    refused(bare, "table checksum", read=lambda bytes: reader.read_bare_table(header, items + 1, bytes))
    refused(bare[:-1], "length", read=lambda bytes: reader.read_bare_table(header, items, bytes))


def check_table_refusals(data):
    snapshot = Snapshot(data)
    table, used = int.from_bytes(data[64 : 64 + snapshot.table_bytes], "little"), snapshot.m * snapshot.bucket_bits

    def with_table(bits):
        return forge(changed(data, 64, bits.to_bytes(snapshot.table_bytes, "little")))

    if snapshot.kind == reader.PACKED:
        rest = table >> snapshot.bucket_bits << snapshot.bucket_bits
        for codeword in (3876, 4000, 4095):
            refused(with_table(rest | codeword), "table")
        if snapshot.f > 4:
            # The first of four equal nibbles has the largest high part.
            refused(with_table(rest | 1 << 12), "table")
    for bit in range(used, 8 * snapshot.table_bytes):
        refused(with_table(table | 1 << bit), "table")


def sections(data):
    """Returns each partition's section: its offset, and the offset, the fields, the generation and the body of each of its records."""
    at, snapshot, found = 64, GrowingSnapshot(data), []
    for generations in snapshot.partitions:
        _, number, length, _ = SECTION.unpack_from(data, at)
        records, end = [], at + 32 + 24 * number
        for place in range(at + 32, end, 24):
            n, d, kind, width, prefix, entries, _ = fields = RECORD.unpack_from(data, place)
            plan = generations[n].generation
            size = plan.size(kind, d, entries, width)
            records.append((place, fields, plan, range(end, end + size)))
            end += size + -size % 8
        found.append((at, records))
        at += 32 + length
    return found


def seal(data, partitions, bodies=True):
    """Recomputes the checksums of the header, the bodies, the sections and the trailer. Lengths must be as before."""
    header, checksums = xxh3_64_intdigest(data[:56]), b""
    data = changed(data, 56, header.to_bytes(8, "little"))
    for partition, (at, records) in enumerate(partitions):
        for place, _, _, body in records if bodies else []:
            data = changed(data, place + 16, xxh3_64_intdigest(data[body.start : body.stop]).to_bytes(8, "little"))
        covered = data[at : at + 24] + data[at + 32 : at + 32 + 24 * len(records)]
        checksum = xxh3_64_intdigest(covered, seed=(header + partition) % 2**64).to_bytes(8, "little")
        data, checksums = changed(data, at + 24, checksum), checksums + checksum
    return data[:-8] + xxh3_64_intdigest(checksums, seed=header).to_bytes(8, "little")


def check_growing_refusals(data, choose):
    """Checks that invalid variants of a growing filter's snapshot are refused."""
    partitions = sections(data)

    def refused_as(kinds, *changes, bodies=True):
        """Asserts that the snapshot with these changes, and valid checksums, is refused with one of `kinds`, joined by " or "."""
        forged = data
        for at, new in changes:
            forged = changed(forged, at, new)
        refused(seal(forged, partitions, bodies), *kinds.split(" or "), read=GrowingSnapshot)

    assert seal(data, partitions) == data, "seal differs from the library"
    # Table: padding has no checksum. Length: a record count may exceed the bytes.
    damage = ("magic", "version", "header checksum", "length", "shards", "table checksum", "table")
    for bit in choose.sample(range(8 * len(data)), 60):
        refused(changed(data, bit // 8, bytes([data[bit // 8] ^ 1 << bit % 8])), *damage, read=GrowingSnapshot)
    for length in [0, 7, 8, 63, 64, len(data) - 8, len(data) - 1, *choose.sample(range(len(data)), 10)]:
        refused(data[:length], "length", read=GrowingSnapshot)
    for more in (b"\0", data):
        refused(data + more, "trailing bytes", read=GrowingSnapshot)
    version, = struct.unpack_from("<H", data, 8)
    for version in (0, version - 1, version + 1, 65535):
        refused_as("version", (8, struct.pack("<H", version)))
    for hasher in (0, 4, 0x8000):
        refused_as("hasher", (14, struct.pack("<H", hasher)))
    refused_as("other type", (10, b"\0"))
    refused_as("other type", (10, b"\1"))
    for at, new in ((10, b"\3"), (11, b"\1"), (11, b"\x21"), (12, b"\0"), (12, b"\x03"), (13, b"\x09"), (24, b"\1")):
        refused_as("parameter", (at, new))
    for at, new in ((24, bytes(4)), (24, b"\2\0\0\x80"), (28, b"\x1c"), (29, b"\x1c"), (30, b"\x08"), (31, b"\2")):
        refused_as("parameter", (at, new))
    refused_as("parameter", (24, struct.pack("<IBB", 2**25, 0, 27)))
    refused_as("parameter", (32, struct.pack("<QQ", 2, 1)))
    for rate in (0.0, 1.0, -0.5, float("nan"), float("inf")):
        refused_as("parameter", (48, struct.pack("<d", rate)))
    for at, records in partitions:
        check_section_refusals(data, refused_as, at, records)
        for place, fields, plan, body in choose.sample(records, min(len(records), 4)):
            check_record_refusals(data, refused_as, place, fields, plan)
            if len(body) % 8:
                refused_as("table", (body.stop, b"\1"))
            if fields[2] == reader.TABLE:
                check_shard_refusals(refused_as, plan, plan.known - fields[1], body)
            else:
                check_entry_refusals(data, refused_as, fields, plan, body)


def check_section_refusals(data, refused_as, at, records):
    """Checks that a section with a wrong number of items, or a wrong length, is refused."""
    items, _, length, _ = SECTION.unpack_from(data, at)
    refused_as("count", (at, struct.pack("<Q", items + 1)))
    refused_as("count", (at, struct.pack("<Q", 2**64 - 1)))
    for other in (length + 8, length + 7, 0, 2**64 - 1):
        refused_as("shards", (at + 16, struct.pack("<Q", other)))
    # Without records, or with fewer or more of them, streams have no shard, or bodies are taken for records.
    for number in (0, len(records) - 1):
        covered = struct.pack("<QQQ", items, number, length) + data[at + 32 : at + 32 + 24 * number]
        partition = next(n for n, (start, _) in enumerate(sections(data)) if start == at)
        seed = (xxh3_64_intdigest(data[:56]) + partition) % 2**64
        forged = changed(data, at, covered[:24] + xxh3_64_intdigest(covered, seed=seed).to_bytes(8, "little"))
        refused(forged, "shards", read=GrowingSnapshot)
    refused(changed(data, at + 8, struct.pack("<Q", 2**63)), "shards", read=GrowingSnapshot)
    refused(changed(data, at + 8, struct.pack("<Q", 2**40)), "length", read=GrowingSnapshot)


def check_record_refusals(data, refused_as, place, fields, plan):
    """Checks that an invalid record is refused."""
    n, d, kind, width, prefix, entries, _ = fields
    for generation in (n + 1, 255):
        refused_as("shards", (place, bytes([generation])))
    for depth in {plan.least - 1, plan.greatest + 1, 255} - {-1}:
        refused_as("shards", (place + 1, bytes([depth])))
    refused_as("shards", (place + 2, b"\3"))
    refused_as("shards", (place + 3, b"\1" if kind == reader.TABLE else b"\3"))
    refused_as("shards", (place + 4, struct.pack("<I", prefix + 1)))
    refused_as("shards", (place + 8, struct.pack("<Q", 2**64 - 1)))
    refused_as("table checksum", (place + 16, bytes([data[place + 16] ^ 1])), bodies=False)
    if kind == reader.COPIES:
        refused_as("shards", (place + 1, b"\1"))
        refused_as("shards", (place + 8, bytes(8)))
        return
    refused_as("shards", (place + 2, bytes([reader.COPIES])))
    if kind == reader.TABLE:
        refused_as("shards", (place + 8, struct.pack("<Q", 4 * plan.m + 1)))
        if entries < 4 * plan.m:
            refused_as("count", (place + 8, struct.pack("<Q", entries + 1)))


def check_shard_refusals(refused_as, plan, upper, body):
    """Checks that a table is refused if it has a fingerprint without low bits: the last bit of the first bucket's column."""
    column = 8 * reader.bytes_of(plan.m * reader.bits_of_bucket(reader.PACKED, plan.f, 4))
    if upper > 0:
        refused_as("table", (body.start, (1 << column + 4 * upper - 1).to_bytes(len(body), "little")))


def check_entry_refusals(data, refused_as, fields, plan, body):
    """Checks that an invalid list is refused."""
    _, _, kind, width, _, entries, _ = fields
    error, size, start = "table" if kind == reader.LIST else "copies", plan.key_bytes(kind), body.start
    if entries == 0:
        return
    counts = start + entries * size
    # A key above all, and one that no item has: its low fingerprint is 0.
    refused_as(error, (counts - size, b"\xff" * size))
    first = int.from_bytes(data[start : start + size], "little") >> plan.extra * (kind == reader.COPIES)
    without_fingerprint = first >> plan.f << plan.f + plan.extra * (kind == reader.COPIES)
    refused_as(error, (start, without_fingerprint.to_bytes(size, "little")))
    if entries > 1:
        one, two = data[start : start + size], data[start + size : start + 2 * size]
        refused_as(error, (start, two + one))
        refused_as(error, (start, one + one))
    if width > 0:
        refused_as(error, (counts, bytes(width)))
        # Another number of copies than the section has. If it is 0, the count itself is invalid.
        flipped = int.from_bytes(data[counts : counts + width], "little") ^ 1
        refused_as("count" if flipped > 0 else error, (counts, flipped.to_bytes(width, "little")))
        # Counts of one are as many as keys, and take no bytes.
        refused_as(error, (counts, (1).to_bytes(width, "little") * entries))
    if kind == reader.COPIES and width == 4:
        refused_as(error, (counts, b"\xff" * 4))


def check_metrohash():
    for vector in json.loads((HERE / "data/go/metro64.json").read_text()):
        assert metrohash64(bytes.fromhex(vector["key_hex"]), 1337) == int(vector["metro64_seed1337"], 16), vector


def check_murmurhash():
    """Checks SMHasher's verification value: the hash of the hashes of 256 keys, each with a different seed."""
    key = bytes(range(256))
    hashes = b"".join(murmurhash64a(key[:n], 256 - n).to_bytes(8, "little") for n in range(256))
    assert murmurhash64a(hashes, 0) % 2**32 == 0x1F0D3804


def check_document():
    """Checks the example in docs/FORMAT.md: the bytes of the file, and the output of this reader."""
    document = (HERE.parent / "docs/FORMAT.md").read_text()
    path = HERE / "data/packed_f13_any_tiny.koel"
    example = path.read_bytes().hex(" ")
    shown = " ".join(line.split("│")[1].strip() for line in document.splitlines() if "│" in line and line[:1].isdigit())
    assert shown == example, f"docs/FORMAT.md has {shown}, the file {example}"
    command = [sys.executable, HERE / "reader.py", path, "item-0", "item-3", "probe-882"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in printed.splitlines():
        assert line in document, f"docs/FORMAT.md lacks: {line}"


def check_development_version():
    """Checks that a snapshot of version 1 is refused as one of another version."""
    data = (HERE / "data/version_1/growing.koel").read_bytes()
    for read in (Snapshot, GrowingSnapshot):
        refused(data, "version", read=read)


def check_folder(path, read, check_answers, check_refusals, choose, counts):
    """Checks all snapshots of a list."""
    manifest = json.loads(path.read_text())
    for golden in manifest["files"]:
        data = (path.parent / golden["file"]).read_bytes()
        try:
            check_answers(golden, data, manifest["probes"])
            check_refusals(data, choose)
        except (AssertionError, SnapshotError) as error:
            sys.exit(f"{path.parent / golden['file']}: {error}")
        counts["snapshots"] += 1
        counts["probes"] += manifest["probes"]
    for damaged in manifest.get("damaged", []):
        data = bytes.fromhex(damaged["hex"])
        if verdict(data, read) != damaged["kind"]:
            sys.exit(f"the library says {damaged['kind']}, this reader {verdict(data, read)}: {damaged['hex']}")
        counts[damaged["kind"]] += 1


def main(*folders):
    choose, counts = random.Random(1), Counter()
    check_metrohash()
    check_murmurhash()
    check_document()
    check_development_version()
    for folder in map(Path, folders):
        check_folder(folder / "goldens.json", Snapshot, check_answers, check_refusals, choose, counts)
        growing = folder / "growing/growing.json"
        check_folder(growing, GrowingSnapshot, check_growing_answers, check_growing_refusals, choose, counts)
    if "none" in counts:
        missing = ERRORS - set(counts)
        assert not missing, f"no damaged snapshot has the error {missing}"
    print("The readers agree with the library:", ", ".join(f"{count} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    main(*sys.argv[1:])
