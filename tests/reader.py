"""Reads the snapshots of koel's filters, version 1, in the least code that docs/FORMAT.md allows.

It needs to know nothing that is not in that document, and is meant to be read beside it by the author of a reader in
another language. `tests/reader_check.py` compares it with the library.

    pip install xxhash
    python3 tests/reader.py tests/data/packed_f13_any_tiny.koel item-0 item-3
"""

import struct
import sys
from itertools import combinations_with_replacement

from xxhash import xxh3_64_intdigest

MAGIC = b"KOEL\r\n\x1a\n"
HEADER = struct.Struct("<8sHBBBBHQQQQQQ")  # 64 bytes, little-endian, no gaps
SINGLE, PACKED = 0, 1
ANY_SIZE, POWER_OF_TWO = 0, 1
CODEBOOK = list(combinations_with_replacement(range(16), 4))  # in lexicographic order: the codeword is the index
WORD = 2**64 - 1
C = 0x9E3779B97F4A7C15


class SnapshotError(ValueError):
    """Bytes that are no snapshot, or none that can be read here. `kind` is one of those in docs/FORMAT.md."""

    def __init__(self, kind, what):
        super().__init__(f"{kind}: {what}")
        self.kind = kind


def need(condition, kind, what):
    if not condition:
        raise SnapshotError(kind, what)


def metrohash64(data, seed):
    """MetroHash64, as docs/FORMAT.md spells it out."""
    k0, k1, k2, k3 = 0xD6D018F5, 0xA2AA033B, 0x62992FC1, 0x30BC5B29

    def turn(x, n):
        x &= WORD
        return x >> n | x << (64 - n) & WORD

    def words(count):
        return struct.unpack_from(f"<{count}Q", data, at)

    h, at = (seed + k2) * k0, 0
    if len(data) >= 32:
        v0 = v1 = v2 = v3 = h
        while len(data) - at >= 32:
            w0, w1, w2, w3 = words(4)
            v0 = turn(v0 + w0 * k0, 29) + v2
            v1 = turn(v1 + w1 * k1, 29) + v3
            v2 = turn(v2 + w2 * k2, 29) + v0
            v3 = turn(v3 + w3 * k3, 29) + v1
            at += 32
        v2 ^= turn((v0 + v3) * k0 + v1, 37) * k1
        v3 ^= turn((v1 + v2) * k1 + v0, 37) * k0
        v0 ^= turn((v0 + v2) * k0 + v3, 37) * k1
        v1 ^= turn((v1 + v3) * k1 + v2, 37) * k0
        h += v0 ^ v1
    if len(data) - at >= 16:
        w0, w1 = words(2)
        a, b = turn(h + w0 * k2, 29) * k3, turn(h + w1 * k2, 29) * k3
        a ^= turn(a * k0, 21) + b
        b ^= turn(b * k3, 21) + a
        h, at = h + b, at + 16
    for size, n in ((8, 55), (4, 26), (2, 48), (1, 37)):
        if len(data) - at >= size:
            h += int.from_bytes(data[at : at + size], "little") * k3
            h, at = h ^ turn(h, n) * k1, at + size
    h = (h ^ turn(h, 28)) * k0 & WORD
    return h ^ turn(h, 29)


def spread(t):
    """g(t) of docs/FORMAT.md."""
    u = t * C & WORD
    return u * (u >> 32) & WORD


def of_number(h, addressing):
    """The hash x of an item that was given as the number h, as docs/FORMAT.md has it."""
    if addressing == POWER_OF_TWO:
        return h
    p = h * C & WORD
    return (p ^ p >> 32) * C & WORD


# A hasher of one's own is added here, under its id.
HASHERS = {1: lambda data, seed: xxh3_64_intdigest(data, seed=seed), 2: metrohash64}


class Snapshot:
    """A filter, read from all the bytes of its snapshot. `item in snapshot` asks it."""

    def __init__(self, data):
        self._read_header(data)
        end = 64 + self.table_bytes
        need(len(data) >= end + 8, "length", f"there are {len(data)} bytes, and there should be {end + 8}")
        need(len(data) == end + 8, "trailing bytes", f"the snapshot ends at byte {end + 8} of {len(data)}")
        stored, computed = int.from_bytes(data[end:], "little"), xxh3_64_intdigest(data[64:end], seed=self.checksum)
        need(stored == computed, "table checksum", f"{stored:#018x} is stored, {computed:#018x} computed")
        # The trailer makes up for what a field at the end lacks to whole bytes.
        self._bytes = data[64:]
        self.table = [self._packed(i) if self.kind == PACKED else self._single(i) for i in range(self.m)]
        used = self.m * self.bucket_bits
        need(self._field(used, 8 * self.table_bytes - used) == 0, "table", "bits beyond the last bucket are set")
        taken = sum(t != 0 for bucket in self.table for t in bucket)
        need(taken == self.items, "count", f"the table holds {taken} items, the header says {self.items}")

    def _read_header(self, data):
        need(data[:8] == MAGIC[: len(data)], "magic", "these bytes do not begin as a snapshot does")
        need(len(data) >= 64, "length", f"{len(data)} bytes are no header")
        fields = HEADER.unpack_from(data)
        _, version, self.kind, self.f, self.b, self.addressing, self.hasher, self.seed = fields[:8]
        self.m, self.items, self.table_bytes, reserved, self.checksum = fields[8:]
        need(version == 1, "version", f"this reader knows version 1, not {version}")
        computed = xxh3_64_intdigest(data[:56])
        need(self.checksum == computed, "header checksum", f"{self.checksum:#018x} is stored, {computed:#018x} computed")
        need(self.kind in (SINGLE, PACKED), "parameter", f"table kind {self.kind}")
        need(self.addressing in (ANY_SIZE, POWER_OF_TWO), "parameter", f"addressing {self.addressing}")
        least_f, sizes = (4, (4,)) if self.kind == PACKED else (2, range(1, 17))
        need(self.b in sizes, "parameter", f"b = {self.b}")
        need(least_f <= self.f <= 32, "parameter", f"f = {self.f}")
        self.bucket_bits = 4 * (self.f - 1) if self.kind == PACKED else self.b * self.f
        if self.addressing == ANY_SIZE:
            works = self.m % 2 == 0 and 2 <= self.m <= 2 ** (64 - self.f)
        else:
            works = self.m & (self.m - 1) == 0 < self.m <= 2**32
        need(works and self.m * self.bucket_bits <= 2**64 - 8, "parameter", f"m = {self.m}")
        need(self.items <= self.m * self.b, "parameter", f"{self.items} items in {self.m * self.b} slots")
        need(self.table_bytes == (self.m * self.bucket_bits + 7) // 8, "parameter", f"L = {self.table_bytes}")
        need(reserved == 0, "parameter", "reserved bytes are not zero")
        need(self.hasher in HASHERS, "hasher", f"this reader does not know hasher {self.hasher:#06x}")

    def _field(self, bit, width):
        """The field of that many bits at that bit of the table."""
        eight = int.from_bytes(self._bytes[bit // 8 : bit // 8 + 8], "little")
        return eight >> bit % 8 & (1 << width) - 1

    def _single(self, i):
        return [self._field((i * self.b + j) * self.f, self.f) for j in range(self.b)]

    def _packed(self, i):
        bit, high = i * self.bucket_bits, self.f - 4
        codeword = self._field(bit, 12)
        need(codeword < len(CODEBOOK), "table", f"bucket {i} has the codeword {codeword}, which does not occur")
        slots = [(low, self._field(bit + 12 + j * high, high)) for j, low in enumerate(CODEBOOK[codeword])]
        need(slots == sorted(slots), "table", f"the fingerprints of bucket {i} are not in order")
        return [part << 4 | low for low, part in slots]

    def hash(self, item):
        return HASHERS[self.hasher](item, self.seed)

    def locate(self, x):
        """The two buckets and the fingerprint of an item with that hash."""
        m, fingerprints = self.m, 2**self.f - 1
        if self.addressing == ANY_SIZE:
            i, rest = divmod(x * m, 2**64)
            t = ((rest >> 32) * fingerprints >> 32) + 1
            return i, ((spread(t) * m >> 64 | 1) - i) % m, t
        i, t = (x >> 32) % m, (x & 0xFFFFFFFF) % fingerprints + 1
        return i, (i ^ t * 0x5BD1E995 & 0xFFFFFFFF) % m, t

    def contains_hash(self, x):
        i, other, t = self.locate(x)
        return t in self.table[i] or t in self.table[other]

    def __contains__(self, item):
        """Of an item that is bytes, or a number."""
        return self.contains_hash(of_number(item, self.addressing) if isinstance(item, int) else self.hash(item))


def main(path, *items):
    with open(path, "rb") as file:
        snapshot = Snapshot(file.read())
    print(f"f = {snapshot.f}, b = {snapshot.b}, m = {snapshot.m}, {snapshot.items} items")
    for item in items:
        x = snapshot.hash(item.encode())
        i, other, t = snapshot.locate(x)
        answer = "maybe" if item.encode() in snapshot else "no"
        print(f"{item}: x = {x:#018x}, t = {t:#x}, g(t) = {spread(t):#018x}, buckets {i} and {other}: {answer}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SNAPSHOT [ITEM ...]")
    try:
        main(*sys.argv[1:])
    except (OSError, SnapshotError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
