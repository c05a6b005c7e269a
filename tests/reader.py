"""Reads the snapshots of koel's filters, version 1, in the least code that docs/FORMAT.md allows.

It needs to know nothing that is not in that document, and is meant to be read beside it by the author of a reader in
another language. `tests/growing_reader.py` has the filters that grow; `tests/reader_check.py` compares both with the
library.

    pip install xxhash
    python3 tests/reader.py tests/data/packed_f13_any_tiny.koel item-0 item-3
"""

import struct
import sys
from itertools import combinations_with_replacement

from xxhash import xxh3_64_intdigest

MAGIC = b"KOEL\r\n\x1a\n"
HEADER = struct.Struct("<8sHBBBBHQQQQQQ")  # 64 bytes, little-endian, no gaps
SINGLE, PACKED = 0, 1  # 2 and 3 in a filter that grows.
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


def redisbloom(data, seed):
    """RedisBloom's hash, as docs/FORMAT.md spells it out: MurmurHash64A, arranged for the formulas of powers of two."""
    h = murmurhash64a(data, seed)
    return (h % 2**32) << 32 | h % (2**32 - 1)


def murmurhash64a(data, seed):
    k = 0xC6A4A7935BD1E995
    h, end = seed ^ len(data) * k & WORD, len(data) // 8 * 8
    for (w,) in struct.iter_unpack("<Q", data[:end]):
        w = w * k & WORD
        h = (h ^ (w ^ w >> 47) * k & WORD) * k & WORD
    if data[end:]:
        h = (h ^ int.from_bytes(data[end:], "little")) * k & WORD
    h = (h ^ h >> 47) * k & WORD
    return h ^ h >> 47


def spread(t):
    """g(t) of docs/FORMAT.md."""
    u = t * C & WORD
    return u * (u >> 32) & WORD


def of_number(h, addressing):
    """The hash x of an item that was given as the number h, as docs/FORMAT.md has it."""
    if addressing == POWER_OF_TWO:
        return h
    p = (h ^ h >> 31) * C & WORD
    return (p ^ p >> 32) * C & WORD


# A hasher of one's own is added here, under its id.
HASHERS = {1: lambda data, seed: xxh3_64_intdigest(data, seed=seed), 2: metrohash64, 3: redisbloom}


def check_header(data, kinds):
    """All that comes before the fields; `kinds` are those of the tables that the caller can read."""
    need(data[:8] == MAGIC[: len(data)], "magic", "these bytes do not begin as a snapshot does")
    need(len(data) >= 64, "length", f"{len(data)} bytes are no header")
    _, version, kind, f, b = struct.unpack_from("<8sHBBB", data)
    need(version == 1, "version", f"this reader knows version 1, not {version}")
    check_sum("header checksum", int.from_bytes(data[56:64], "little"), data[:56], 0)
    need(kind in range(4), "parameter", f"table kind {kind}")
    need(kind in kinds, "other type", f"table kind {kind}")
    least_f, sizes = (4, (4,)) if kind % 2 == PACKED else (2, range(1, 17))
    need(b in sizes, "parameter", f"b = {b}")
    need(least_f <= f <= 32, "parameter", f"f = {f}")


def check_sum(kind, stored, data, seed):
    computed = xxh3_64_intdigest(data, seed=seed)
    need(stored == computed, kind, f"{stored:#018x} is stored, {computed:#018x} computed")


def bits_of_bucket(kind, f, b):
    return 4 * (f - 1) if kind % 2 == PACKED else b * f


def bytes_of(bits):
    return (bits + 7) // 8


class Table:
    """m buckets of b fingerprints, read from the bytes of the table: f bits of each, and in a column behind it `above` further ones."""

    def __init__(self, data, kind, f, b, m, above=0):
        self._bytes, self.f, self.b, self.above, self.bucket_bits = data, f, b, above, bits_of_bucket(kind, f, b)
        self.column = 8 * bytes_of(m * self.bucket_bits)
        self.buckets = [self._packed(i) if kind % 2 == PACKED else self._single(i) for i in range(m)]
        for end, used in ((self.column, m * self.bucket_bits), (8 * len(data), self.column + m * b * above)):
            need(self._field(used, end - used) == 0, "table", "bits beyond the last bucket are set")
        self.items = sum(t != 0 for bucket in self.buckets for t in bucket)

    def _field(self, bit, width):
        """The field of that many bits at that bit of the table."""
        eight = int.from_bytes(self._bytes[bit // 8 : bit // 8 + 8], "little")
        return eight >> bit % 8 & (1 << width) - 1

    def _above(self, i, j):
        """What the column has of slot j of bucket i."""
        return self._field(self.column + (i * self.b + j) * self.above, self.above)

    def _single(self, i):
        return [self._field((i * self.b + j) * self.f, self.f) | self._above(i, j) << self.f for j in range(self.b)]

    def _packed(self, i):
        bit, high = i * self.bucket_bits, self.f - 4
        codeword = self._field(bit, 12)
        need(codeword < len(CODEBOOK), "table", f"bucket {i} has the codeword {codeword}, which does not occur")
        parts = [self._field(bit + 12 + j * high, high) | self._above(i, j) << high for j in range(4)]
        slots = list(zip(CODEBOOK[codeword], parts))
        need(slots == sorted(slots), "table", f"the fingerprints of bucket {i} are not in order")
        return [part << 4 | low for low, part in slots]


class Filter:
    """What both types of filter have: `item in filter` asks it, of an item that is bytes, or a number."""

    def hash(self, item):
        return HASHERS[self.hasher](item, self.seed)

    def locate(self, x):
        """The two buckets and the fingerprint, the low one of a filter that grows, of an item with that hash."""
        m, fingerprints = self.m, 2**self.f - 1
        if self.addressing == ANY_SIZE:
            i, rest = divmod(x * m, 2**64)
            t = ((rest >> 32) * fingerprints >> 32) + 1
            return i, ((spread(t) * m >> 64 | 1) - i) % m, t
        i, t = (x >> 32) % m, (x & 0xFFFFFFFF) % fingerprints + 1
        return i, (i ^ t * 0x5BD1E995 & 0xFFFFFFFF) % m, t

    def __contains__(self, item):
        return self.contains_hash(of_number(item, self.addressing) if isinstance(item, int) else self.hash(item))


class Snapshot(Filter):
    """A filter, read from all the bytes of its snapshot."""

    def __init__(self, data):
        self._read_header(data)
        end = 64 + self.table_bytes
        need(len(data) >= end + 8, "length", f"there are {len(data)} bytes, and there should be {end + 8}")
        need(len(data) == end + 8, "trailing bytes", f"the snapshot ends at byte {end + 8} of {len(data)}")
        check_sum("table checksum", int.from_bytes(data[end:], "little"), data[64:end], self.checksum)
        table = Table(data[64:end], self.kind, self.f, self.b, self.m)
        need(table.items == self.items, "count", f"the table holds {table.items} items, the header says {self.items}")
        self.table = table.buckets

    def _read_header(self, data):
        check_header(data, (SINGLE, PACKED))
        _, _, self.kind, self.f, self.b, self.addressing, self.hasher, self.seed, *fields = HEADER.unpack_from(data)
        self.m, self.items, self.table_bytes, reserved, self.checksum = fields
        need(self.addressing in (ANY_SIZE, POWER_OF_TWO), "parameter", f"addressing {self.addressing}")
        self.bucket_bits = bits_of_bucket(self.kind, self.f, self.b)
        if self.addressing == ANY_SIZE:
            works = self.m % 2 == 0 and 2 <= self.m <= 2 ** (64 - self.f)
        else:
            works = self.m & (self.m - 1) == 0 < self.m <= 2**32
        need(works and self.m * self.bucket_bits <= 2**64 - 8, "parameter", f"m = {self.m}")
        need(self.items <= self.m * self.b, "parameter", f"{self.items} items in {self.m * self.b} slots")
        need(self.table_bytes == (self.m * self.bucket_bits + 7) // 8, "parameter", f"L = {self.table_bytes}")
        need(reserved == 0, "parameter", "reserved bytes are not zero")
        need(self.hasher in HASHERS, "hasher", f"this reader does not know hasher {self.hasher:#06x}")

    def contains_hash(self, x):
        i, other, t = self.locate(x)
        return t in self.table[i] or t in self.table[other]

    def summary(self):
        return f"f = {self.f}, b = {self.b}, m = {self.m}, {self.items} items"

    def explain(self, x):
        i, other, t = self.locate(x)
        return f"t = {t:#x}, g(t) = {spread(t):#018x}, buckets {i} and {other}"


def main(read, path, *items):
    with open(path, "rb") as file:
        snapshot = read(file.read())
    print(snapshot.summary())
    for item in items:
        x = snapshot.hash(item.encode())
        answer = "maybe" if snapshot.contains_hash(x) else "no"
        print(f"{item}: x = {x:#018x}, {snapshot.explain(x)}: {answer}")


if __name__ == "__main__":
    # It reads both types, and imports this file as a module, whose names are others than those of this program.
    from growing_reader import SnapshotError, main, read

    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SNAPSHOT [ITEM ...]")
    try:
        main(read, *sys.argv[1:])
    except (OSError, SnapshotError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
