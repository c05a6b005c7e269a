"""Reads snapshots of koel's filters, version 2, with as little code as docs/FORMAT.md allows.

It relies on that document alone, and is meant to be read beside it by authors of readers in other languages.
`tests/reader_check.py` compares it with the library.

    pip install xxhash
    python3 tests/reader.py tests/data/packed_f13_any_tiny.koel item-0 item-3
    python3 tests/reader.py tests/data/growing/staggered.koel item-0 probe-0
"""

import struct
import sys
from itertools import combinations_with_replacement

from xxhash import xxh3_64_intdigest

MAGIC = b"KOEL\r\n\x1a\n"
# Little-endian, without gaps. The header has 24 bytes that both types of filter share, 32 bytes of its type, and a checksum.
COMMON, FIXED, GROWING = struct.Struct("<8sHBBBBHQ"), struct.Struct("<QQQQ"), struct.Struct("<IBBBBQQd")
SECTION, RECORD = struct.Struct("<QQQQ"), struct.Struct("<BBBBIQQ")
SINGLE, PACKED, GROWING_KIND = 0, 1, 2  # kinds of tables in headers
TABLE, LIST, COPIES = 0, 1, 2  # kinds of bodies in records
ANY_SIZE, POWER_OF_TWO = 0, 1
# Later generations: at most this many buckets per shard, at least this many bits more in the second one, and at most this many bits.
LATER_BUCKETS, EXTRA_BITS, KNOWN_BITS = 268, 6, 48
CODEBOOK = list(combinations_with_replacement(range(16), 4))  # in lexicographic order: the codeword is the index
WORD = 2**64 - 1
C = 0x9E3779B97F4A7C15


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


def other_of_any_size(i, t, m):
    """Returns the other bucket of a fingerprint in bucket i, with the addressing "any size"."""
    return ((spread(t) * m >> 64 | 1) - i) % m


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
    return b * f if kind == SINGLE else 4 * (f - 1)


def bytes_of(bits):
    return (bits + 7) // 8


class Table:
    """m buckets of b fingerprints: f bits of each from the table, and `upper` bits from the column behind it."""

    def __init__(self, data, kind, f, b, m, upper=0):
        self._bytes, self.f, self.b, self.upper, self.bucket_bits = data, f, b, upper, bits_of_bucket(kind, f, b)
        self.column = 8 * bytes_of(m * self.bucket_bits)
        self.buckets = [self._single(i) if kind == SINGLE else self._packed(i) for i in range(m)]
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


def without_last_bits(m, k):
    """Returns the number of buckets that are left of m if their numbers lose the last k bits: the next even number."""
    buckets = -(-m // 2**k)
    return buckets + buckets % 2


def read_list(kind, body, key_bytes, entries, width):
    """Returns the counts of a list by their keys. Errors have this kind."""
    def numbers(data, size):
        return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]

    keys = numbers(body[: entries * key_bytes], key_bytes)
    counts = numbers(body[entries * key_bytes :], width) if width else [1] * entries
    need(all(first < second for first, second in zip(keys, keys[1:])), kind, "keys are out of order")
    most = max(counts, default=1)
    need(min(counts, default=1) > 0, kind, "a count is 0")
    shortest = 0 if most == 1 else 1 if most < 2**8 else 2 if most < 2**16 else 4
    need(width == shortest, kind, f"counts of {width} bytes, where {shortest} would do")
    return dict(zip(keys, counts))


class Filter:
    """The base of both types of filter. `item in filter` looks an item up: bytes, or a prehashed number."""

    def __init__(self, data):
        need(data[:8] == MAGIC[: len(data)], "magic", "these bytes do not begin as a snapshot does")
        need(len(data) >= 64, "length", f"{len(data)} bytes are too short for a header")
        _, version, self.kind, self.f, self.b, self.byte_13, self.hasher, self.seed = COMMON.unpack_from(data)
        need(version == 2, "version", f"this reader knows version 2, not {version}")
        self.checksum = int.from_bytes(data[56:64], "little")
        verify_checksum("header checksum", self.checksum, data[:56], 0)
        need(self.kind <= GROWING_KIND, "parameter", f"table kind {self.kind}")
        need((self.kind == GROWING_KIND) == self.grows, "other type", f"table kind {self.kind}")
        least_f, sizes = (2, range(1, 17)) if self.kind == SINGLE else (4, (4,))
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
            return other_of_any_size(i, t, self.m)
        return (i ^ t * 0x5BD1E995 & 0xFFFFFFFF) % self.m

    def __contains__(self, item):
        return self.contains_hash(mix(item) if isinstance(item, int) else self.hash(item))

    def count(self, item):
        return self.count_hash(mix(item) if isinstance(item, int) else self.hash(item))


class Snapshot(Filter):
    """A fixed filter, read from a complete snapshot."""

    grows = False

    def read_header(self, data):
        self.addressing, self.bucket_bits = self.byte_13, bits_of_bucket(self.kind, self.f, self.b)
        self.m, self.items, self.listed_bytes, reserved = FIXED.unpack_from(data, COMMON.size)
        need(self.addressing in (ANY_SIZE, POWER_OF_TWO), "parameter", f"addressing {self.addressing}")
        if self.addressing == ANY_SIZE:
            works = self.m % 2 == 0 and 2 <= self.m <= 2 ** (64 - self.f)
        else:
            works = self.m & (self.m - 1) == 0 < self.m <= 2**32
        need(works and self.m * self.bucket_bits <= 2**64 - 8, "parameter", f"m = {self.m}")
        slots = self.m * self.b
        self.table_bytes = bytes_of(self.m * self.bucket_bits)
        self.key_bytes = bytes_of(self.f + (self.m - 1).bit_length())
        entries = max(self.listed_bytes - 9, 0) // self.key_bytes
        fits = self.listed_bytes <= 9 + slots * (self.key_bytes + 4) and (entries > 0 or self.listed_bytes == 0)
        need(fits, "parameter", f"{self.listed_bytes} bytes of extra copies in {slots} slots")
        need(self.items <= slots + min(entries, slots) * (2**32 - 1), "parameter", f"{self.items} items in {slots} slots")
        need(reserved == 0, "parameter", f"{reserved} in a reserved field")

    def read_tables(self, data):
        """Returns the end of the table and the list of extra copies, and the bytes that the trailer covers."""
        self._table = data[64 : 64 + self.table_bytes]
        end = 64 + self.table_bytes + self.listed_bytes
        self._copies = data[64 + self.table_bytes : end]
        return end, data[64:end]

    def check_tables(self):
        table = Table(self._table, self.kind, self.f, self.b, self.m)
        self.table = table.buckets
        total = struct.unpack("<Q", self._copies[:8])[0] if self._copies else 0
        need(table.items + total == self.items, "count", f"{table.items} items in the table, {total} extra copies")
        self.copies, bits = {}, self.f + (self.m - 1).bit_length()
        width = self._copies[8] if self._copies else 0
        entries, rest = divmod(max(len(self._copies) - 9, 0), self.key_bytes + width)
        need(width in (0, 1, 2, 4) and rest == 0, "copies", f"{len(self._copies)} bytes of extra copies with counts of {width}")
        listed = read_list("copies", self._copies[9:], self.key_bytes, entries, width)
        for key, copies in listed.items():
            i, t = key >> self.f, key % 2**self.f
            need(key < 2**bits and t > 0 and i < self.m, "copies", f"key {key:#x}")
            other = self.alternate(i, t)
            here = self.table[i].count(t) + (self.table[other].count(t) if other != i else 0)
            need(i <= other and 0 < here and here + copies < 2**32, "copies", f"{copies} extra copies, {here} in the table")
            self.copies[i, t] = copies
        need(total == sum(listed.values()), "copies", f"{sum(listed.values())} extra copies, given as {total}")

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
    _, _, kind, f, b, *_ = COMMON.unpack_from(header)
    end = bytes_of(FIXED.unpack_from(header, COMMON.size)[0] * bits_of_bucket(kind, f, b))
    need(len(data) >= end + 4, "length", f"there are {len(data)} bytes, and there should be {end + 4}")
    checksum = struct.pack("<Q", xxh3_64_intdigest(data[:end], seed))
    need(checksum[:4] == data[end : end + 4], "table checksum", "the table was altered, or is another filter's")
    return Snapshot(header + struct.pack("<Q", seed) + data[:end] + checksum)


class Generation:
    """The sizes of generation n of a growing filter, as the header determines them: of its shards, and of what it knows of an item."""

    def __init__(self, header, n):
        self.n, self.f, self.first_buckets = n, header.f, header.m
        self.k = next(k for k in range(32) if without_last_bits(header.m, k) <= LATER_BUCKETS) if n > 0 else 0
        self.m, self.inserted = without_last_bits(header.m, self.k), self.k + 1 if self.k > 0 else 0
        self.greatest = min(header.g + self.k + 3 * n, 27)
        second = max(header.g + self.inserted + EXTRA_BITS, min(header.g + self.k + 3, 27) + header.sp)
        self.known = min(second + 4 * (n - 1), KNOWN_BITS) if n > 0 else header.g
        self.least = max(0 if n > 0 else header.d0, self.known - 32)
        self.bucket_bits = (self.m - 1).bit_length()
        self.key_bits = self.known + self.bucket_bits + self.f
        self.extra = 0  # What `GrowingSnapshot.generation` returns has the number of extra bits.

    def other_bucket(self, i, t):
        return other_of_any_size(i, t, self.m)

    def item(self, i, other, t, stream):
        """Returns the buckets, the low fingerprint and the stream in this generation of an item that has these in generation 0."""
        if self.k == 0:
            return i, other, t, stream
        i, dropped = divmod(i, 2**self.k)
        other = self.other_bucket(i, t)
        inserted = 2 * dropped + (i > other)
        rest = stream % 2**62
        return i, other, t, stream - rest | inserted << 62 - self.inserted | rest >> self.inserted

    def key(self, i, other, t, stream):
        return (stream >> 64 - self.known << self.bucket_bits | min(i, other)) << self.f | t

    def item_of(self, key):
        """Returns the item with this key as `item` does, with zeros for the unknown bits of the stream; None if no item has it."""
        known, t = key >> self.bucket_bits + self.f, key % 2**self.f
        i, stream = (key >> self.f) % 2**self.bucket_bits, known << 64 - self.known
        if known >= 2**self.known or i >= self.m or t == 0:
            return None
        other = self.other_bucket(i, t)
        inserted = stream % 2**62 >> 62 - self.inserted
        first = (max(i, other) if inserted % 2 else i) << self.k | inserted // 2
        return (i, other, t, stream) if i < other and first < self.first_buckets else None

    def extra_bits(self, stream):
        return max((stream >> 64 - self.known - self.extra) % 2**self.extra, 1) if self.extra else 0

    def size(self, kind, d, entries, count_bytes):
        """Returns the bytes of a body."""
        if kind == TABLE:
            return bytes_of(self.m * bits_of_bucket(PACKED, self.f, 4)) + bytes_of(self.m * 4 * (self.known - d))
        return entries * (self.key_bytes(kind) + count_bytes)

    def key_bytes(self, kind):
        return bytes_of(self.key_bits + (self.extra if kind == COPIES else 0))


class Shards:
    """The shards of a generation in one partition, by depth and prefix: the buckets of a table, or the counts of a list by key."""

    def __init__(self, generation):
        self.generation, self.shards, self.copies = generation, {}, {}

    def find(self, stream):
        return next(place for d in range(28) if (place := (d, stream >> 64 - d)) in self.shards)

    def count_in_shard(self, i, other, t, stream):
        """Returns the copies of an item in its table or its list, and whether it is a table."""
        (d, prefix), g = self.find(stream), self.generation
        shard = self.shards[d, prefix]
        if isinstance(shard, dict):
            return shard.get(g.key(i, other, t, stream), 0), False
        stored = (stream >> 64 - g.known) % 2 ** (g.known - d) << g.f | t
        return shard[i].count(stored) + shard[other].count(stored), True

    def count(self, i, other, t, stream):
        here, is_table = self.count_in_shard(i, other, t, stream)
        key, bits = self.generation.key(i, other, t, stream), self.generation.extra_bits(stream)
        return here + sum(self.copies.get((key, extra), 0) for extra in {0, bits}) if here and is_table else here

    def contains(self, i, other, t, stream):
        shard = self.shards[self.find(stream)]
        if self.generation.n == 0 and not isinstance(shard, dict):
            return any(stored % 2**self.generation.f == t for stored in shard[i] + shard[other])
        return self.count_in_shard(i, other, t, stream)[0] > 0


class GrowingSnapshot(Filter):
    """A growing filter, read from a complete snapshot."""

    grows = True
    addressing = ANY_SIZE

    def read_header(self, data):
        self.la = self.byte_13
        self.m, self.d0, self.g, self.sp, self.staggered, *fields = GROWING.unpack_from(data, COMMON.size)
        self.capacity, self.max_capacity, self.rate = fields
        need(self.la <= 8, "parameter", f"2^{self.la} partitions")
        need(self.m % 2 == 0 and 2 <= self.m <= 2**31, "parameter", f"m = {self.m}")
        need(self.staggered in (0, 1), "parameter", f"st = {self.staggered}")
        need(self.d0 <= self.g <= 27, "parameter", f"depths from {self.d0} to {self.g}")
        need(self.g + Generation(self, 1).inserted + EXTRA_BITS <= KNOWN_BITS, "parameter", f"m = {self.m} and g = {self.g}")
        need(self.sp <= 7, "parameter", f"{self.sp} spare bits")
        need(self.capacity <= self.max_capacity, "parameter", f"capacity {self.capacity}, at most {self.max_capacity}")
        need(0 < self.rate < 1, "parameter", f"the rate {self.rate}")

    def generation(self, n):
        this, following = Generation(self, n), Generation(self, n + 1)
        this.extra = min(following.known - following.inserted + this.inserted - this.known, 16)
        return this

    def read_tables(self, data):
        """Returns the end of the last section, and the bytes that the trailer covers."""
        self.items, self.partitions, at, checksums = 0, [], 64, b""
        for partition in range(2**self.la):
            generations, end = self._section(data, at, partition)
            self.partitions.append(generations)
            checksums, at = checksums + data[at + 24 : at + 32], end
        return at, checksums

    def check_tables(self):
        """Does nothing: each body was checked when it was read."""

    def _section(self, data, at, partition):
        """Returns the generations of a partition, and the end of its section."""
        need(len(data) >= at + 32, "length", f"there is no section {partition}")
        items, number, length, checksum = SECTION.unpack_from(data, at)
        need(24 * number < 2**64, "shards", f"{number} records")
        end = at + 32 + 24 * number
        need(len(data) >= end, "length", f"section {partition} has no room for {number} records")
        covered = data[at : at + 24] + data[at + 32 : end]
        verify_checksum("table checksum", checksum, covered, (self.checksum + partition) % 2**64)
        records = list(RECORD.iter_unpack(data[at + 32 : end]))
        plans = self._plans(records)
        sizes = [plans[n].size(kind, d, entries, width) for n, d, kind, width, _, entries, _ in records]
        need(length == end - at - 32 + sum(size + -size % 8 for size in sizes), "shards", f"section {partition} has {length} bytes")
        least, listed = sum(record[5] for record in records), sum(record[5] for record in records if record[2] != TABLE)
        # The limits of Rust's reader, whose sums end at 2**64 - 1.
        most = min(least + min(listed * (2**32 - 2), WORD), WORD)
        need(min(least, WORD) <= items <= most, "count", f"section {partition} says {items} items, and has {least} to {most}")
        generations, found = [Shards(plan) for plan in plans], 0
        for (n, d, kind, width, prefix, entries, checksum), size in zip(records, sizes):
            start, end = end, end + size + -size % 8
            need(len(data) >= end, "length", f"a body ends at byte {end}")
            body = data[start : start + size]
            verify_checksum("table checksum", checksum, body, 0)
            need(not any(data[start + size : end]), "table", "the padding of a body is not zero")
            if kind == TABLE:
                found += self._table(generations[n], d, prefix, body, entries)
            elif kind == LIST:
                found += self._list(generations[n], d, prefix, body, entries, width)
            else:
                found += self._copies(generations[n], body, entries, width)
        need(found == items, "count", f"section {partition} says {items} items, and has {found}")
        self.items += items
        return generations, end

    def _plans(self, records):
        """Returns the generations of a partition, whose records it checks."""
        plans, end, last = [self.generation(0)], 0, None
        for n, d, kind, width, prefix, entries, _ in records:
            if n == len(plans) and end == 2**32:
                plans, end, last = [*plans, self.generation(n)], 0, None
            plan = plans[-1]
            need(n == plan.n, "shards", f"generation {n} follows generation {plan.n}")
            need(kind <= COPIES and width in ((0, 1, 2, 4) if kind else (0,)), "shards", f"kind {kind} with counts of {width} bytes")
            if kind == COPIES:
                follows = end == 2**32 and last in (TABLE, LIST) and entries > 0
                need(follows and d == prefix == 0, "shards", "a record of extra copies is not behind those of its shards")
            else:
                need(plan.least <= d <= plan.greatest, "shards", f"depth {d} in generation {n}")
                need(prefix << 32 - d == end, "shards", f"prefix {prefix} of depth {d} is not the next one")
                most = 4 * plan.m if kind == TABLE else 2**32 - 1
                need(entries <= most, "shards", f"{entries} entries, at most {most}")
                need(kind == TABLE or plan.least < plan.greatest, "shards", f"a list in generation {n}, which does not grow")
                end += 2 ** (32 - d)
            last = kind
        need(end == 2**32, "shards", "some streams have no shard")
        return plans

    def _table(self, generation, d, prefix, body, entries):
        """Reads a table. Returns the number of its items."""
        plan = generation.generation
        table = Table(body, PACKED, plan.f, 4, plan.m, plan.known - d)
        low = all(t == 0 or t % 2**plan.f for bucket in table.buckets for t in bucket)
        need(low, "table", "a low fingerprint is 0")
        need(table.items == entries, "count", f"a table holds {table.items} items, its record says {entries}")
        generation.shards[d, prefix] = table.buckets
        return entries

    def _list(self, generation, d, prefix, body, entries, width):
        """Reads the list of a shard's items. Returns their number, copies included."""
        plan = generation.generation
        counts = read_list("table", body, plan.key_bytes(LIST), entries, width)
        for key in counts:
            need(plan.item_of(key) and key >> plan.key_bits - d == prefix, "table", f"the shard has no item with the key {key:#x}")
        generation.shards[d, prefix] = counts
        return sum(counts.values())

    def _copies(self, generation, body, entries, width):
        """Reads the extra copies of a generation. Returns their number."""
        plan = generation.generation
        counts = read_list("copies", body, plan.key_bytes(COPIES), entries, width)
        for entry, copies in counts.items():
            key, extra = divmod(entry, 2**plan.extra)
            item = plan.item_of(key)
            here, is_table = generation.count_in_shard(*item) if item else (0, False)
            need(is_table and 0 < here and here + copies < 2**32, "copies", f"{copies} extra copies of {key:#x}, {here} in the table")
            generation.copies[key, extra] = copies
        return sum(counts.values())

    def partition_and_stream(self, x):
        """Returns the partition, and the stream as a number of 64 bits."""
        w = x * 0xB504F333F9DE6485 & WORD
        partition, v = w >> 64 - self.la, w << self.la & WORD
        five = v >> 59
        quarter = (five >= 6) + (five >= 13) + (five >= 22) if self.staggered else five // 8
        return partition, quarter << 62 | v % 2**59 << 3

    def places(self, x):
        """Yields the generations of the item's partition, and the item in each."""
        partition, stream = self.partition_and_stream(x)
        for shards in self.partitions[partition]:
            yield shards, shards.generation.item(*self.locate(x), stream)

    def contains_hash(self, x):
        return any(shards.contains(*item) for shards, item in self.places(x))

    def count_hash(self, x):
        return sum(shards.count(*item) for shards, item in self.places(x))

    def summary(self):
        partitions = ", ".join(" + ".join(str(len(shards.shards)) for shards in generations) for generations in self.partitions)
        return f"f = {self.f}, b = {self.b}, m = {self.m}, {self.items} items, shards: {partitions}"

    def explain(self, x):
        def place(shards, item):
            (d, prefix), (i, other, t, stream) = shards.find(item[3]), item
            where = "list" if isinstance(shards.shards[d, prefix], dict) else f"table, buckets {i} and {other}, t = {t:#x}"
            return f"generation {shards.generation.n}, stream {stream:#018x}, depth {d}, prefix {prefix:#x}: {where}"

        partition, _ = self.partition_and_stream(x)
        return f"partition {partition}; " + "; ".join(place(shards, item) for shards, item in self.places(x))


def read(data):
    """Reads a filter of either type."""
    return (GrowingSnapshot if data[10:11] == bytes([GROWING_KIND]) else Snapshot)(data)


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
