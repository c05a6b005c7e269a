"""Reads snapshots of koel's filters, version 1, with as little code as docs/FORMAT.md allows.

It relies on that document alone, and is meant to be read beside it by authors of readers in other languages.
`tests/reader_check.py` compares it with the library.

    pip install xxhash
    python3 tests/reader.py tests/data/packed_f13_any_tiny.koel item-0 item-3
    python3 tests/reader.py tests/data/growing/packed_staggered.koel item-0 probe-0
"""

import struct
import sys
from itertools import combinations_with_replacement

from xxhash import xxh3_64_intdigest

MAGIC = b"KOEL\r\n\x1a\n"
# Little-endian, without gaps. The header has 24 bytes that both types of filter share, 32 bytes of its type, and a checksum.
COMMON, FIXED, GROWING = struct.Struct("<8sHBBBBHQ"), struct.Struct("<QQQQ"), struct.Struct("<IBBBBQQd")
SECTION, RECORD = struct.Struct("<QQQQ"), struct.Struct("<BBHIIIQ")
SINGLE, PACKED, GROWS = 0, 1, 2  # A growing filter has kind 2 or 3.
ANY_SIZE, POWER_OF_TWO = 0, 1
CODEBOOK = list(combinations_with_replacement(range(16), 4))  # in lexicographic order: the codeword is the index
WORD = 2**64 - 1
C = 0x9E3779B97F4A7C15
INVERSE_OF_C = 0xED9DE798E8AE70A5F1DE83E19937733D  # modulo 2**128


class SnapshotError(ValueError):
    """The bytes are not a snapshot, or cannot be read here. `kind` is an error of docs/FORMAT.md."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind


def need(condition, kind, message):
    if not condition:
        raise SnapshotError(kind, message)


def metrohash64(data, seed):
    """MetroHash64, as docs/FORMAT.md defines it."""
    k0, k1, k2, k3 = 0xD6D018F5, 0xA2AA033B, 0x62992FC1, 0x30BC5B29

    def rotate(x, n):
        x &= WORD
        return x >> n | x << (64 - n) & WORD

    def words(count):
        return struct.unpack_from(f"<{count}Q", data, at)

    h, at = (seed + k2) * k0, 0
    if len(data) >= 32:
        v0 = v1 = v2 = v3 = h
        while len(data) - at >= 32:
            w0, w1, w2, w3 = words(4)
            v0 = rotate(v0 + w0 * k0, 29) + v2
            v1 = rotate(v1 + w1 * k1, 29) + v3
            v2 = rotate(v2 + w2 * k2, 29) + v0
            v3 = rotate(v3 + w3 * k3, 29) + v1
            at += 32
        v2 ^= rotate((v0 + v3) * k0 + v1, 37) * k1
        v3 ^= rotate((v1 + v2) * k1 + v0, 37) * k0
        v0 ^= rotate((v0 + v2) * k0 + v3, 37) * k1
        v1 ^= rotate((v1 + v3) * k1 + v2, 37) * k0
        h += v0 ^ v1
    if len(data) - at >= 16:
        w0, w1 = words(2)
        a, b = rotate(h + w0 * k2, 29) * k3, rotate(h + w1 * k2, 29) * k3
        a ^= rotate(a * k0, 21) + b
        b ^= rotate(b * k3, 21) + a
        h, at = h + b, at + 16
    for size, n in ((8, 55), (4, 26), (2, 48), (1, 37)):
        if len(data) - at >= size:
            h += int.from_bytes(data[at : at + size], "little") * k3
            h, at = h ^ rotate(h, n) * k1, at + size
    h = (h ^ rotate(h, 28)) * k0 & WORD
    return h ^ rotate(h, 29)


def redisbloom(data, seed):
    """RedisBloom's hash, as docs/FORMAT.md defines it: MurmurHash64A, arranged for power-of-two addressing."""
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


def mix(h):
    """Returns the hash x of a prehashed item with the number h, as docs/FORMAT.md defines it."""
    p = (h ^ h >> 31) * C & WORD
    return (p ^ p >> 32) * C & WORD


# Add a custom hasher here, under its id.
HASHERS = {1: lambda data, seed: xxh3_64_intdigest(data, seed=seed), 2: metrohash64, 3: redisbloom}


def verify_checksum(kind, stored, data, seed):
    computed = xxh3_64_intdigest(data, seed=seed)
    need(stored == computed, kind, f"{stored:#018x} is stored, {computed:#018x} computed")


def bits_of_bucket(kind, f, b):
    return 4 * (f - 1) if kind % 2 == PACKED else b * f


def bytes_of(bits):
    return (bits + 7) // 8


class Table:
    """m buckets of b fingerprints: f bits of each from the table, and `upper` bits from the column behind it."""

    def __init__(self, data, kind, f, b, m, upper=0):
        self._bytes, self.f, self.b, self.upper, self.bucket_bits = data, f, b, upper, bits_of_bucket(kind, f, b)
        self.column = 8 * bytes_of(m * self.bucket_bits)
        self.buckets = [self._packed(i) if kind % 2 == PACKED else self._single(i) for i in range(m)]
        for end, used in ((self.column, m * self.bucket_bits), (8 * len(data), self.column + m * b * upper)):
            need(self._field(used, end - used) == 0, "table", "bits beyond the last bucket are set")
        self.items = sum(t != 0 for bucket in self.buckets for t in bucket)

    def _field(self, bit, width):
        """Returns the field of `width` bits at this bit of the table."""
        eight = int.from_bytes(self._bytes[bit // 8 : bit // 8 + 8], "little")
        return eight >> bit % 8 & (1 << width) - 1

    def _upper(self, i, j):
        """Returns the upper bits of slot j of bucket i."""
        return self._field(self.column + (i * self.b + j) * self.upper, self.upper)

    def _single(self, i):
        return [self._field((i * self.b + j) * self.f, self.f) | self._upper(i, j) << self.f for j in range(self.b)]

    def _packed(self, i):
        bit, high = i * self.bucket_bits, self.f - 4
        codeword = self._field(bit, 12)
        need(codeword < len(CODEBOOK), "table", f"bucket {i} has the codeword {codeword}, which does not occur")
        slots = [(CODEBOOK[codeword][j], self._field(bit + 12 + j * high, high), self._upper(i, j)) for j in range(4)]
        need(slots == sorted(slots), "table", f"the fingerprints of bucket {i} are not in order")
        return [upper << self.f | part << 4 | low for low, part, upper in slots]


class Filter:
    """The base of both types of filter. `item in filter` looks an item up: bytes, or a prehashed number."""

    def __init__(self, data):
        need(data[:8] == MAGIC[: len(data)], "magic", "these bytes do not begin as a snapshot does")
        need(len(data) >= 64, "length", f"{len(data)} bytes are too short for a header")
        _, version, self.kind, self.f, self.b, self.byte_13, self.hasher, self.seed = COMMON.unpack_from(data)
        need(version == 1, "version", f"this reader knows version 1, not {version}")
        self.checksum = int.from_bytes(data[56:64], "little")
        verify_checksum("header checksum", self.checksum, data[:56], 0)
        need(self.kind < 4, "parameter", f"table kind {self.kind}")
        need(self.kind & GROWS == self.grows, "other type", f"table kind {self.kind}")
        least_f, sizes = (4, (4,)) if self.kind % 2 == PACKED else (2, range(1, 17))
        need(self.b in sizes, "parameter", f"b = {self.b}")
        need(least_f <= self.f <= 32, "parameter", f"f = {self.f}")
        self.read_header(data)
        need(self.hasher in HASHERS, "hasher", f"this reader does not know hasher {self.hasher:#06x}")
        end, covered = self.read_tables(data)
        need(len(data) >= end + 8, "length", f"there are {len(data)} bytes, and there should be {end + 8}")
        # The order of the library's checks: the header of a fixed filter states the length of the snapshot.
        need(self.grows or len(data) == end + 8, "trailing bytes", f"the snapshot ends at byte {end + 8} of {len(data)}")
        verify_checksum("table checksum", int.from_bytes(data[end : end + 8], "little"), covered, self.checksum)
        need(len(data) == end + 8, "trailing bytes", f"the snapshot ends at byte {end + 8} of {len(data)}")
        self.check_tables()

    def hash(self, item):
        return HASHERS[self.hasher](item, self.seed)

    def locate(self, x):
        """Returns the two buckets and the fingerprint of an item with this hash, in a growing filter the low fingerprint."""
        m, fingerprints = self.m, 2**self.f - 1
        if self.addressing == ANY_SIZE:
            i, rest = divmod(x * m, 2**64)
            t = ((rest >> 32) * fingerprints >> 32) + 1
        else:
            i, t = (x >> 32) % m, (x & 0xFFFFFFFF) % fingerprints + 1
        return i, self.alternate(i, t), t

    def alternate(self, i, t):
        """Returns the other bucket of a fingerprint in bucket i."""
        if self.addressing == ANY_SIZE:
            return ((spread(t) * self.m >> 64 | 1) - i) % self.m
        return (i ^ t * 0x5BD1E995 & 0xFFFFFFFF) % self.m

    def __contains__(self, item):
        return self.contains_hash(mix(item) if isinstance(item, int) else self.hash(item))

    def count(self, item):
        return self.count_hash(mix(item) if isinstance(item, int) else self.hash(item))


class Snapshot(Filter):
    """A fixed filter, read from a complete snapshot."""

    grows = 0

    def read_header(self, data):
        self.addressing, self.bucket_bits = self.byte_13, bits_of_bucket(self.kind, self.f, self.b)
        self.m, self.items, self.table_bytes, self.entries = FIXED.unpack_from(data, COMMON.size)
        need(self.addressing in (ANY_SIZE, POWER_OF_TWO), "parameter", f"addressing {self.addressing}")
        if self.addressing == ANY_SIZE:
            works = self.m % 2 == 0 and 2 <= self.m <= 2 ** (64 - self.f)
        else:
            works = self.m & (self.m - 1) == 0 < self.m <= 2**32
        need(works and self.m * self.bucket_bits <= 2**64 - 8, "parameter", f"m = {self.m}")
        slots = self.m * self.b
        need(self.entries <= slots, "parameter", f"{self.entries} items with extra copies in {slots} slots")
        need(self.items <= slots + self.entries * (2**32 - 1), "parameter", f"{self.items} items in {slots} slots")
        need(self.table_bytes == bytes_of(self.m * self.bucket_bits), "parameter", f"L = {self.table_bytes}")

    def read_tables(self, data):
        """Returns the end of the table and the list of extra copies, and the bytes that the trailer covers."""
        self._table = data[64 : 64 + self.table_bytes]
        end = 64 + self.table_bytes + (8 + 12 * self.entries if self.entries else 0)
        self._copies = data[64 + self.table_bytes : end]
        return end, data[64:end]

    def check_tables(self):
        table = Table(self._table, self.kind, self.f, self.b, self.m)
        self.table = table.buckets
        total = struct.unpack("<Q", self._copies[:8])[0] if self.entries else 0
        need(table.items + total == self.items, "count", f"{table.items} items in the table, {total} extra copies")
        self.copies, last, extra = {}, -1, 0
        bits = self.f + (self.m - 1).bit_length()
        for key, copies in struct.iter_unpack("<QI", self._copies[8:]):
            number = key * 0xF1DE83E19937733D % 2**bits
            i, t = number >> self.f, number % 2**self.f
            need(last < key < 2**bits and copies > 0 and t > 0 and i < self.m, "copies", f"key {key:#x}")
            other = self.alternate(i, t)
            here = self.table[i].count(t) + (self.table[other].count(t) if other != i else 0)
            need(i <= other and 0 < here and here + copies < 2**32, "copies", f"{copies} extra copies, {here} in the table")
            self.copies[i, t], last, extra = copies, key, extra + copies
        need(total == extra, "copies", f"{extra} extra copies, given as {total}")

    def count_hash(self, x):
        i, other, t = self.locate(x)
        here = self.table[i].count(t) + (self.table[other].count(t) if other != i else 0)
        return here + self.copies.get((min(i, other), t), 0)

    def contains_hash(self, x):
        i, other, t = self.locate(x)
        return t in self.table[i] or t in self.table[other]

    def summary(self):
        return f"f = {self.f}, b = {self.b}, m = {self.m}, {self.items} items"

    def explain(self, x):
        i, other, t = self.locate(x)
        return f"t = {t:#x}, g(t) = {spread(t):#018x}, buckets {i} and {other}"


def read_bare_table(header, items, data):
    """Reads a bare table, whose parameters and hasher the caller gives as the header of another snapshot."""
    header = header[:32] + struct.pack("<Q", items) + header[40:56]
    seed = xxh3_64_intdigest(header, 0)
    end = FIXED.unpack_from(header, COMMON.size)[2]
    need(len(data) >= end + 4, "length", f"there are {len(data)} bytes, and there should be {end + 4}")
    checksum = struct.pack("<Q", xxh3_64_intdigest(data[:end], seed))
    need(checksum[:4] == data[end : end + 4], "table checksum", "the table was altered, or is another filter's")
    return Snapshot(header + struct.pack("<Q", seed) + data[:end] + checksum)


class GrowingSnapshot(Filter):
    """A growing filter, read from a complete snapshot."""

    grows = GROWS
    addressing = ANY_SIZE

    def read_header(self, data):
        self.la = self.byte_13
        self.m, self.d0, self.g, self.sp, self.staggered, *fields = GROWING.unpack_from(data, COMMON.size)
        self.capacity, self.max_capacity, self.rate = fields
        need(self.la <= 8, "parameter", f"2^{self.la} partitions")
        need(self.m % 2 == 0 and 2 <= self.m <= 2**31, "parameter", f"m = {self.m}")
        need(self.staggered in (0, 1), "parameter", f"st = {self.staggered}")
        works = self.d0 <= self.g <= 27 and self.f + self.g - self.d0 <= 32
        need(works, "parameter", f"depths from {self.d0} to {self.g}")
        need(self.sp <= 12, "parameter", f"{self.sp} spare bits")
        need(self.capacity <= self.max_capacity, "parameter", f"capacity {self.capacity}, at most {self.max_capacity}")
        need(0 < self.rate < 1, "parameter", f"the rate {self.rate}")

    def read_tables(self, data):
        """Returns the end of the last section, and the bytes that the trailer covers."""
        self.items, self.partitions, self.listed, self.copies, at, checksums = 0, [], [], [], 64, b""
        for partition in range(2**self.la):
            generations, end = self._section(data, at, partition)
            self.partitions.append(generations)
            checksums, at = checksums + data[at + 24 : at + 32], end
        return at, checksums

    def check_tables(self):
        """Does nothing: each table was checked when it was read."""

    def _section(self, data, at, partition):
        """Returns the shards of each generation of a partition, none if it has a list, and the end of its section."""
        need(len(data) >= at + 32, "length", f"there is no section {partition}")
        items, shards, length, checksum = SECTION.unpack_from(data, at)
        need(24 * shards < 2**64, "shards", f"{shards} records")
        # A partition without shards has the item count of its list instead of records.
        end = at + 32 + (24 * shards if shards or not length else 8)
        need(len(data) >= end, "length", f"section {partition} has no room for {shards} records")
        covered = data[at : at + 24] + data[at + 32 : end]
        verify_checksum("table checksum", checksum, covered, (self.checksum + partition) % 2**64)
        records = list(RECORD.iter_unpack(data[at + 32 : end])) if shards else []
        # A partition that would begin with few shards and grow may have none. It then has a list of its items, or is empty.
        may_have_none = self.d0 <= 3 and self.d0 < self.g
        has_none = may_have_none and not shards
        listed = int.from_bytes(data[at + 32 : end], "little") if has_none else 0
        generations = {} if has_none else self._generations(records)
        taken = listed + sum(here for *_, here, _, _ in records)
        need(not may_have_none or taken or not length, "shards", f"partition {partition} has shards or a list, but no items")
        need(listed < 2**32, "count", f"partition {partition} has {listed} items in a list")
        sizes = [self.size(generation, d)[2] for generation, d, *_ in records]
        more = at + 32 + length - end - sum(size + -size % 8 for size in sizes)
        keys = listed * self._key_bytes()
        padded = keys + -keys % 8
        entries = max(more - padded - 8, 0) // 16
        fits = more == (padded + 16 * entries + 8 if keys + entries else 0) and entries <= taken
        entries = entries if fits else 0
        extra = items - taken
        need(entries <= extra <= entries * (2**32 - 1), "count", f"section {partition} says {items} items, and has {taken} without extra copies")
        need(fits, "shards", f"section {partition} has {more} bytes behind records and tables")
        for generation, d, _, prefix, here, _, table_checksum in records:
            table, end = self._table(data, end, generation, d, table_checksum)
            need(table.items == here, "count", f"a table holds {table.items} items, its record says {here}")
            generations[generation][d, prefix] = table.buckets
        start, end = end, end + padded + 16 * entries
        need(not start < end or len(data) >= end + 8, "length", f"there are no {listed} keys and {entries} entries of extra copies")
        if start < end:
            verify_checksum("table checksum", int.from_bytes(data[end : end + 8], "little"), data[start:end], checksum)
        self.listed.append(self._listed_items(data[start : start + keys]))
        need(not any(data[start + keys : start + padded]), "table", "the padding of a list is not zero")
        copies = self._copies(data[start + padded : end], generations)
        end += 8 if start < end else 0
        need(sum(copies.values()) == extra, "copies", f"partition {partition} should have {extra} extra copies")
        self.copies.append(copies)
        self.items += items
        return generations, end

    def _key_bytes(self):
        """Returns the length of a key in a list, in bytes."""
        return (self.f + self.g + (self.m - 1).bit_length() + 7) // 8

    def _listed_items(self, data):
        """Returns the items of a list: the smaller bucket of each, and its stored bits."""
        known_bits, size = self.f + self.g, self._key_bytes()
        key_bits = known_bits + (self.m - 1).bit_length()
        keys = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
        listed, last = set(), -1
        for key in keys:
            need(last < key, "table", "keys are out of order")
            last = key
            number = key * INVERSE_OF_C % 2**key_bits
            i, item = number >> known_bits, number % 2**known_bits
            t = item % 2**self.f
            need(key < 2**key_bits and t > 0 and i < self.m, "table", f"key {key:#x}")
            need(i <= self.alternate(i, t), "table", f"key {key:#x} has the larger bucket")
            listed.add((i, item))
        return listed

    def _copies(self, data, generations):
        """Returns the extra copies, by generation, smaller bucket and stored bits of the item."""
        found, last = {}, (-1, -1)
        for start in range(0, len(data), 16):
            entry = data[start : start + 16]
            key, generation, copies = int.from_bytes(entry[:11], "little"), entry[11], int.from_bytes(entry[12:], "little")
            exists = generation in generations or generation == 0 and not generations
            need(last < (generation, key) and copies > 0 and exists, "copies", f"key {key:#x} in generation {generation}")
            last = generation, key
            known = self.f + self.depths(generation)[2]
            bits = known + (self.m - 1).bit_length()
            number = key * INVERSE_OF_C % 2**bits
            i, item = number >> known, number % 2**known
            need(key < 2**bits and item % 2**self.f > 0 and i < self.m, "copies", f"key {key:#x}")
            need(i <= self.alternate(i, item % 2**self.f), "copies", f"key {key:#x} has the larger bucket")
            here = self._count_in(generations[generation], generation, i, item) if generations else int((i, item) in self.listed[-1])
            need(0 < here and here + copies < 2**32, "copies", f"{copies} extra copies, {here} in the table")
            found[generation, i, item] = copies
        return found

    def _count_in(self, shards, generation, i, item):
        """Returns the copies of an item, given by a bucket and its stored bits, in the tables of a generation."""
        u, t = self.depths(generation)[2], item % 2**self.f
        d = next(d for d in range(u + 1) if (d, item >> self.f + u - d) in shards)
        buckets, other = shards[d, item >> self.f + u - d], self.alternate(i, t)
        stored = item % 2 ** (self.f + u - d)
        return buckets[i].count(stored) + buckets[other].count(stored)

    def count_hash(self, x):
        partition, stream = self.partition_and_stream(x)
        i, other, t = self.locate(x)
        copies = 0
        for generation, shards in self.partitions[partition].items():
            u = self.depths(generation)[2]
            item = stream >> 61 - u << self.f | t
            copies += self._count_in(shards, generation, i, item) + self.copies[partition].get((generation, min(i, other), item), 0)
        if self.is_listed(x):
            copies += 1 + self.copies[partition].get((0, min(i, other), stream >> 61 - self.g << self.f | t), 0)
        return copies

    def is_listed(self, x):
        """Returns whether the item is in the list of its partition."""
        partition, stream = self.partition_and_stream(x)
        i, other, t = self.locate(x)
        return (min(i, other), stream >> 61 - self.g << self.f | t) in self.listed[partition]

    def _table(self, data, at, generation, d, checksum):
        """Returns the table at this offset, and the offset of the next one."""
        f, upper, size = self.size(generation, d)
        end = at + size + -size % 8
        need(len(data) >= end, "length", f"a table ends at byte {end}")
        verify_checksum("table checksum", checksum, data[at : at + size], 0)
        need(not any(data[at + size : end]), "table", "the padding of a table is not zero")
        table = Table(data[at : at + size], self.kind, f, self.b, self.m, upper)
        low = all(t == 0 or t % 2**self.f for bucket in table.buckets for t in bucket)
        need(low, "table", "a low fingerprint is 0")
        return table, end

    def _generations(self, records):
        generations, ends = {}, {}
        for generation, d, zero, prefix, items, also_zero, _ in records:
            need(generation <= self.last_generation(), "shards", f"generation {generation} is beyond the last one, {self.last_generation()}")
            least, greatest, _ = self.depths(generation)
            need(least <= d <= greatest, "shards", f"depth {d} in generation {generation}, which has {least} to {greatest}")
            need(zero == also_zero == 0, "shards", "reserved bytes are not zero")
            need(items <= self.m * self.b, "shards", f"{items} items in {self.m * self.b} slots")
            need(generation in (last := max(generations, default=0), last + 1), "shards", f"generation {generation} follows generation {last}")
            need(prefix << 32 - d == ends.get(generation, 0), "shards", f"prefix {prefix} of depth {d} is not the next one")
            ends[generation] = (prefix + 1) << 32 - d
            generations[generation] = {}
        need(0 in generations and set(ends.values()) == {2**32}, "shards", "some streams have no shard")
        return generations

    def last_generation(self):
        """Returns the last generation: a later one would need more spare bits than fit beside a low fingerprint."""
        left = 32 - self.f - self.sp
        return 0 if left < 0 else 255 if left >= 12 else left + 1

    def depths(self, generation):
        """Returns the least and the greatest depth of a generation, and u."""
        least, greatest, spare, most = self.d0, self.g, 0, 32 - self.f
        for n in range(1, generation + 1):
            spare = min(self.sp + min(n - 1, 12), most)
            before = greatest
            least = max(before - 3, 0) if most - spare > 5 else before
            greatest = max(min(least + most - spare, before + 4, 27), least)
        return least, greatest, greatest + spare

    def size(self, generation, d):
        """Returns the bits of a fingerprint in the table and in the column of a shard of this depth, and the bytes of both."""
        _, greatest, u = self.depths(generation)
        f, upper = self.f + u - greatest, greatest - d
        return f, upper, bytes_of(self.m * bits_of_bucket(self.kind, f, self.b)) + bytes_of(self.m * self.b * upper)

    def partition_and_stream(self, x):
        """Returns the partition, and the stream as a number of 61 bits."""
        w = x * 0xB504F333F9DE6485 & WORD
        partition, v = w >> 64 - self.la, w << self.la & WORD
        five = v >> 59
        quarter = (five >= 6) + (five >= 13) + (five >= 22) if self.staggered else five // 8
        return partition, quarter << 59 | v & 2**59 - 1

    def places(self, x):
        """Yields, for each generation, the shard's depth and prefix, and the fingerprint to look up with its length."""
        partition, stream = self.partition_and_stream(x)
        *_, low = self.locate(x)
        for generation, shards in self.partitions[partition].items():
            _, greatest, u = self.depths(generation)
            d = next(d for d in range(greatest + 1) if (d, stream >> 61 - d) in shards)
            spare = u - greatest
            yield generation, d, stream >> 61 - d, (stream >> 61 - u) % 2**spare << self.f | low, self.f + spare

    def contains_hash(self, x):
        partition, _ = self.partition_and_stream(x)
        i, other, _ = self.locate(x)
        found = self.is_listed(x)
        for generation, d, prefix, t, bits in self.places(x):
            buckets = self.partitions[partition][generation][d, prefix]
            found |= any(stored % 2**bits == t for stored in buckets[i] + buckets[other])
        return found

    def summary(self):
        partitions = ", ".join(" + ".join(str(len(shards)) for shards in generations.values()) for generations in self.partitions)
        return f"f = {self.f}, b = {self.b}, m = {self.m}, {self.items} items, shards: {partitions}"

    def explain(self, x):
        partition, stream = self.partition_and_stream(x)
        i, other, _ = self.locate(x)
        places = [f"generation {generation}, depth {d}, prefix {prefix:#x}, t = {t:#x}" for generation, d, prefix, t, _ in self.places(x)]
        return f"partition {partition}, stream {stream:#x}, buckets {i} and {other}, " + "; ".join(places)


def read(data):
    """Reads a filter of either type."""
    return (GrowingSnapshot if data[10:11] in (b"\2", b"\3") else Snapshot)(data)


def main(path, *items):
    with open(path, "rb") as file:
        snapshot = read(file.read())
    print(snapshot.summary())
    for item in items:
        x = snapshot.hash(item.encode())
        answer = "maybe" if snapshot.contains_hash(x) else "no"
        print(f"{item}: x = {x:#018x}, {snapshot.explain(x)}: {answer}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SNAPSHOT [ITEM ...]")
    try:
        main(*sys.argv[1:])
    except (OSError, SnapshotError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
