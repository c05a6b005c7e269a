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
from reader import RECORD, GrowingSnapshot, Snapshot, SnapshotError, metrohash64, murmurhash64a
from xxhash import xxh3_64_intdigest

HERE = Path(__file__).resolve().parent
KINDS = {"single": reader.SINGLE, "packed": reader.PACKED}
ADDRESSINGS = {"any-size": reader.ANY_SIZE, "power-of-two": reader.POWER_OF_TWO}
HASHERS = {"xxh3": 1, "metrohash64": 2, "redisbloom": 3}
ERRORS = {"magic", "length", "version", "header checksum", "other type", "parameter", "hasher", "trailing bytes"}
ERRORS |= {"table checksum", "shards", "table", "count", "copies"}

# Forged snapshots share most tables with the original, so decoded tables are cached.
reader.Table = lru_cache(maxsize=1000)(reader.Table)


def item(items, prefix, n):
    """Returns item or probe n, as tests/common/golden.rs defines it."""
    number = n + (1_000_000 if prefix == "probe" else 0)
    if items == "hash":
        return number
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
            assert item(golden["items"], "item", n) in snapshot, f"item {n} is lost"
            assert snapshot.count(item(golden["items"], "item", n)) >= copies, f"copies of item {n} are lost"
    found = [n for n in range(probes) if item(golden["items"], "probe", n) in snapshot]
    assert found == golden["found"], "the probes found differ from the library's"


def check_growing_answers(golden, data, probes):
    snapshot = GrowingSnapshot(data)
    assert snapshot.kind == KINDS[golden["table"]] + 2 and snapshot.hasher == HASHERS["xxh3"]
    assert snapshot.b == golden["bucket_size"] and len(snapshot.partitions) == golden["partitions"]
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
    for version in (0, 2, 256, 65535):
        # The checksums do not matter: another version could have them elsewhere.
        refused(changed(data, 8, struct.pack("<H", version)), "version")
        refused(forge(changed(data, 8, struct.pack("<H", version))), "version")
    for hasher in (0, 4, 0x7FFF, 0x8000, 0xFFFF):
        refused(forge(changed(data, 14, struct.pack("<H", hasher))), "hasher")
    refused(forge(changed(data, 10, b"\2")), "other type")
    for at, new in ((10, b"\4"), (11, b"\1"), (11, b"\x21"), (12, b"\0"), (12, b"\x11"), (13, b"\2"), (55, b"\1")):
        refused(forge(changed(data, at, new)), "parameter")
    for at in (24, 40):
        for value in {0, 1, 2**64 - 1} - {int.from_bytes(data[at : at + 8], "little")}:
            refused(forge(changed(data, at, struct.pack("<Q", value))), "parameter")
    items = int.from_bytes(data[32:40], "little")
    refused(forge(changed(data, 32, struct.pack("<Q", items + 1))), "count", "parameter")
    refused(forge(changed(data, 32, struct.pack("<Q", 2**64 - 1))), "parameter")
    entries, table_bytes = (int.from_bytes(data[at : at + 8], "little") for at in (48, 40))
    refused(forge(changed(data, 48, struct.pack("<Q", entries + 1))), "length", "parameter")
    check_table_refusals(data)
    if entries == 0:
        check_bare_table(data, items, choose)
    else:
        check_list_refusals(data, 64 + table_bytes, entries)


def check_list_refusals(data, start, entries):
    """Checks that invalid lists of extra copies are refused."""
    refused(forge(changed(data, start, b"\xff" * 8)), "count")
    for at in range(start + 8, start + 8 + 12 * entries, 12):
        for offset, new in ((0, bytes(8)), (0, b"\xff" * 8), (8, bytes(4)), (8, b"\xff" * 4), (8, bytes([data[at + 8] ^ 1]))):
            refused(forge(changed(data, at + offset, new)), "copies")
    for at in range(start + 8, start + 8 + 12 * (entries - 1), 12):
        first, second = data[at : at + 12], data[at + 12 : at + 24]
        refused(forge(changed(data, at, second + first)), "copies")
        refused(forge(changed(data, at, first + first)), "copies")


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
    """Yields each partition's section offset, its record count, and the ranges of its extra copies and of its lists."""
    at, snapshot = 64, GrowingSnapshot(data)
    for listed, copies in zip(snapshot.listed, snapshot.copies):
        _, shards, length = struct.unpack_from("<QQQ", data, at)
        end = at + 32 + length
        entries = range(end - 8 - 16 * len(copies), end - 8) if copies else range(0)
        yield at, shards, entries, range(at + 40, end - 8) if listed else entries
        at = end


def seal(data, partitions):
    """Recomputes the checksums of the header, the sections and the trailer."""
    header, checksums = xxh3_64_intdigest(data[:56]), b""
    data = changed(data, 56, header.to_bytes(8, "little"))
    for partition, (at, _, _, lists) in enumerate(partitions):
        _, shards, length = struct.unpack_from("<QQQ", data, at)
        covered = data[at : at + 24] + data[at + 32 : at + 32 + (24 * shards if shards or not length else 8)]
        checksum = xxh3_64_intdigest(covered, seed=(header + partition) % 2**64).to_bytes(8, "little")
        data, checksums = changed(data, at + 24, checksum), checksums + checksum
        if lists:
            seed, covered = int.from_bytes(checksum, "little"), data[lists.start : lists.stop]
            data = changed(data, lists.stop, xxh3_64_intdigest(covered, seed=seed).to_bytes(8, "little"))
    return data[:-8] + xxh3_64_intdigest(checksums, seed=header).to_bytes(8, "little")


def check_growing_refusals(data, choose):
    """Checks that invalid variants of a growing filter's snapshot are refused."""
    partitions = list(sections(data))

    def refused_as(kinds, *changes):
        """Asserts that the snapshot with these changes, and valid checksums, is refused with one of `kinds`, joined by " or "."""
        forged = data
        for at, new in changes:
            forged = changed(forged, at, new)
        refused(seal(forged, partitions), *kinds.split(" or "), read=GrowingSnapshot)

    assert seal(data, partitions) == data, "seal differs from the library"
    # Table: a table's padding has no checksum. Length: a record count may exceed the bytes.
    damage = ("magic", "version", "header checksum", "length", "shards", "table checksum", "table")
    for bit in choose.sample(range(8 * len(data)), 60):
        refused(changed(data, bit // 8, bytes([data[bit // 8] ^ 1 << bit % 8])), *damage, read=GrowingSnapshot)
    for length in [0, 7, 8, 63, 64, len(data) - 8, len(data) - 1, *choose.sample(range(len(data)), 10)]:
        refused(data[:length], "length", read=GrowingSnapshot)
    for more in (b"\0", data):
        refused(data + more, "trailing bytes", read=GrowingSnapshot)
    for version in (0, 2, 65535):
        refused_as("version", (8, struct.pack("<H", version)))
    for hasher in (0, 4, 0x8000):
        refused_as("hasher", (14, struct.pack("<H", hasher)))
    refused_as("other type", (10, b"\0"))
    refused_as("other type", (10, b"\1"))
    for at, new in ((10, b"\4"), (11, b"\1"), (11, b"\x21"), (12, b"\0"), (12, b"\x11"), (13, b"\x09"), (24, b"\1")):
        refused_as("parameter", (at, new))
    for at, new in ((24, bytes(4)), (24, b"\2\0\0\x80"), (28, b"\x1c"), (29, b"\x1c"), (30, b"\x0d"), (31, b"\2")):
        refused_as("parameter", (at, new))
    refused_as("parameter", (32, struct.pack("<QQ", 2, 1)))
    for rate in (0.0, 1.0, -0.5, float("nan"), float("inf")):
        refused_as("parameter", (48, struct.pack("<d", rate)))
    if len(partitions) > 1:
        check_without_records(data, partitions)
    for at, shards, entries, lists in partitions:
        chosen = choose.sample(range(shards), min(shards, 4))
        check_section_refusals(GrowingSnapshot(data), data, refused_as, at, shards, chosen, entries)
        check_long_entries(data, refused_as, at, entries)
        if not shards and lists:
            check_listed_items(GrowingSnapshot(data), data, refused_as, at)


def check_without_records(data, partitions):
    """Checks that a last partition without records is refused if its section states items or a length."""
    start, *_ = partitions[-1]
    kinds = ("count", "shards", "table checksum")
    for items, length in ((2**64 - 1, 0), (1, 0), (0, 1)):
        forged = data[:start] + struct.pack("<QQQQ", items, 0, length, 0) + data[-8:]
        refused(seal(forged, [*partitions[:-1], (start, 0, range(0), range(0))]), *kinds, read=GrowingSnapshot)


def check_listed_items(snapshot, data, refused_as, at):
    """Checks that an invalid list of a partition without records is refused."""
    number, size = int.from_bytes(data[at + 32 : at + 40], "little"), snapshot._key_bytes()
    keys, end = at + 40, at + 40 + number * size
    refused_as("shards", (at + 32, bytes(8)))
    for other in (number - 1, number + 1, 2**64 - 1):
        refused_as("shards or count or table", (at + 32, struct.pack("<Q", other)))
    refused_as("count", (at + 16, bytes(8)))
    refused_as("table", (end - size, b"\xff" * size))
    if number > 1:
        refused_as("table", (keys, data[end - size : end]))
        refused_as("table", (keys, data[keys + size : keys + 2 * size]))
    if number * size % 8:
        refused_as("table", (end, b"\1"))


def check_long_entries(data, refused_as, at, entries):
    """Checks that invalid entries of extra copies of a partition are refused."""
    items = int.from_bytes(data[at : at + 8], "little")
    for start in {*entries[:1], *entries[-16:-15]}:
        number = int.from_bytes(data[start + 12 : start + 16], "little")
        for wrong in (0, number + 1, 2**32 - 1):
            refused_as("copies", (start + 12, struct.pack("<I", wrong)))
        refused_as("copies", (start, b"\xff" * 11))
        refused_as("copies", (start + 11, b"\xff"))
        if len(entries) > 16:
            other = entries.start if start > entries.start else start + 16
            refused_as("copies", (start, data[other : other + 12]))
    if entries:
        refused_as("copies", (at, struct.pack("<Q", items + 1)))
        refused_as("count", (at, struct.pack("<Q", 2**64 - 1)))
        refused_as("count", (at, bytes(8)))


def check_section_refusals(snapshot, data, refused_as, at, shards, chosen, entries):
    items, _, length = struct.unpack_from("<QQQ", data, at)
    # With entries, one more item could be an extra copy, so the entries' sum reveals the error.
    wrong = "copies" if entries else "count"
    refused_as(wrong, (at, struct.pack("<Q", items + 1)))
    # A section without shards but with a length has a list, so the bytes behind an empty section are read as a number of items.
    kinds = "count or shards" if entries else "shards" if length else "count or shards or table checksum"
    for other in (length + 8, length + 7, 2**64 - 1):
        refused_as(kinds, (at + 16, struct.pack("<Q", other)))
    if shards:
        refused_as("count or shards", (at + 16, bytes(8)))
    table = at + 32 + 24 * shards
    for n in range(shards):
        place = at + 32 + 24 * n
        generation, d, _, prefix, here, _, _ = RECORD.unpack_from(data, place)
        f, upper, size = snapshot.size(generation, d)
        this, table = table, table + size + -size % 8
        if n not in chosen:
            continue
        least, greatest, _ = snapshot.depths(generation)
        for depth in {least - 1, greatest + 1} - {-1}:
            refused_as("shards", (place + 1, bytes([depth])))
        refused_as("shards", (place + 2, b"\1"))
        refused_as("shards", (place + 4, struct.pack("<I", prefix + 1)))
        refused_as("shards", (place + 8, struct.pack("<I", snapshot.m * snapshot.b + 1)))
        refused_as("shards", (place + 12, b"\1"))
        refused_as("table checksum", (place + 16, bytes([data[place + 16] ^ 1])))
        if here < snapshot.m * snapshot.b:
            refused_as("count", (place + 8, struct.pack("<I", here + 1)))
            refused_as("count", (place + 8, struct.pack("<I", here + 1)), (at, struct.pack("<Q", items + 1)))
        if size % 8:
            refused_as("table", (this + size, b"\1"))
        # A fingerprint without low bits. The last bit of the first bucket, in the table or in the column, is an upper bit.
        bits = reader.bits_of_bucket(snapshot.kind, f, snapshot.b)
        column = 8 * reader.bytes_of(snapshot.m * bits)
        for last in [bits] * (f > snapshot.f) + [column + snapshot.b * upper] * (upper > 0):
            bucket = (1 << last - 1).to_bytes(size, "little")
            refused_as("table", (this, bucket), (place + 16, xxh3_64_intdigest(bucket).to_bytes(8, "little")))


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
