"""Reads the snapshots of koel's filters that grow, as docs/FORMAT.md has them, with the tables of tests/reader.py.

    python3 tests/reader.py tests/data/growing/packed_staggered.koel item-0 probe-0
"""

import struct

from reader import ANY_SIZE, HASHERS, PACKED, SINGLE, WORD
from reader import Filter, Snapshot, SnapshotError, Table, bits_of_bucket, bytes_of, check_header, check_sum, main, need

__all__ = ["GrowingSnapshot", "SnapshotError", "main", "read"]

HEADER = struct.Struct("<8sHBBBBHQIBBBBQQdQ")  # 64 bytes, little-endian, no gaps
SECTION, RECORD = struct.Struct("<QQQQ"), struct.Struct("<BBHIIIQ")


class GrowingSnapshot(Filter):
    """A filter that grows, read from all the bytes of its snapshot."""

    addressing = ANY_SIZE

    def __init__(self, data):
        self._read_header(data)
        self.items, self.lanes, at, checksums = 0, [], 64, b""
        for lane in range(2**self.la):
            layers, end = self._section(data, at, lane)
            self.lanes.append(layers)
            checksums, at = checksums + data[at + 24 : at + 32], end
        need(len(data) >= at + 8, "length", f"there are {len(data)} bytes, and there should be {at + 8}")
        check_sum("table checksum", int.from_bytes(data[at : at + 8], "little"), checksums, self.checksum)
        need(len(data) == at + 8, "trailing bytes", f"the snapshot ends at byte {at + 8} of {len(data)}")

    def _read_header(self, data):
        check_header(data, (SINGLE + 2, PACKED + 2))
        _, _, self.kind, self.f, self.b, self.la, self.hasher, self.seed, self.m, *fields = HEADER.unpack_from(data)
        self.d0, self.g, self.sp, self.staggered, self.capacity, self.max_capacity, self.rate, self.checksum = fields
        need(self.la <= 8, "parameter", f"2^{self.la} lanes")
        need(self.m % 2 == 0 and 2 <= self.m <= 2**31, "parameter", f"m = {self.m}")
        need(self.staggered in (0, 1), "parameter", f"st = {self.staggered}")
        works = 2 * self.staggered <= self.d0 <= self.g <= 27 and self.f + self.g - self.d0 <= 32
        need(works, "parameter", f"depths from {self.d0} to {self.g}")
        need(self.sp <= 12, "parameter", f"{self.sp} spare bits")
        need(self.capacity <= self.max_capacity, "parameter", f"capacity {self.capacity}, at most {self.max_capacity}")
        need(0 < self.rate < 1, "parameter", f"the rate {self.rate}")
        need(self.hasher in HASHERS, "hasher", f"this reader does not know hasher {self.hasher:#06x}")

    def _section(self, data, at, lane):
        """The shards of each layer of a lane, and where its section ends."""
        need(len(data) >= at + 32, "length", f"there is no section {lane}")
        items, shards, length, checksum = SECTION.unpack_from(data, at)
        need(24 * shards < 2**64, "shards", f"{shards} records")
        end = at + 32 + 24 * shards
        need(len(data) >= end, "length", f"section {lane} has no room for {shards} records")
        covered = data[at : at + 24] + data[at + 32 : end]
        check_sum("table checksum", checksum, covered, (self.checksum + lane) % 2**64)
        records = list(RECORD.iter_unpack(data[at + 32 : end]))
        layers = self._layers(records) if records else {}
        taken = sum(here for *_, here, _, _ in records)
        need(taken == items, "count", f"section {lane} says {items} items, its records {taken}")
        sizes = [self.size(layer, d)[2] for layer, d, *_ in records]
        told = 24 * shards + sum(size + -size % 8 for size in sizes)
        need(told == length, "shards", f"records and tables have {told} bytes, the section says {length}")
        need(records, "part", f"lane {lane} is in another part")
        for layer, d, _, prefix, here, _, checksum in records:
            table, end = self._table(data, end, layer, d, checksum)
            need(table.items == here, "count", f"a table holds {table.items} items, its record says {here}")
            layers[layer][d, prefix] = table.buckets
        self.items += items
        return layers, end

    def _table(self, data, at, layer, d, checksum):
        """The table there, and where the next one begins."""
        f, above, size = self.size(layer, d)
        end = at + size + -size % 8
        need(len(data) >= end, "length", f"a table ends at byte {end}")
        check_sum("table checksum", checksum, data[at : at + size], 0)
        need(not any(data[at + size : end]), "table", "a table is filled up with something else than zeros")
        table = Table(data[at : at + size], self.kind, f, self.b, self.m, above)
        low = all(t == 0 or t % 2**self.f for bucket in table.buckets for t in bucket)
        need(low, "table", "a low fingerprint is 0")
        return table, end

    def _layers(self, records):
        layers, ends = {}, {}
        for layer, d, zero, prefix, items, also_zero, _ in records:
            need(layer <= self.last_layer(), "shards", f"layer {layer} has no bits to spare; the last one is {self.last_layer()}")
            least, greatest, _ = self.depths(layer)
            need(least <= d <= greatest, "shards", f"depth {d} in layer {layer}, where {least} to {greatest} can be")
            need(zero == also_zero == 0, "shards", "reserved bytes are not zero")
            need(items <= self.m * self.b, "shards", f"{items} items in {self.m * self.b} slots")
            need(layer >= max(layers, default=0), "shards", "layers are not in order")
            need(prefix << 32 - d == ends.get(layer, 0), "shards", f"prefix {prefix} of depth {d} is not the next one")
            ends[layer] = (prefix + 1) << 32 - d
            layers[layer] = {}
        need(0 in layers and set(ends.values()) == {2**32}, "shards", "some streams have no shard")
        return layers

    def last_layer(self):
        """The last layer with bits to spare for the rate."""
        left = 32 - self.f - self.sp
        return 0 if left < 0 else 255 if left >= 12 else left + 1

    def depths(self, layer):
        """The least and the greatest depth of a layer, and u."""
        least, greatest, spare, most = self.d0, self.g, 0, 32 - self.f
        for n in range(1, layer + 1):
            spare = min(self.sp + min(n - 1, 12), most)
            before = greatest
            least = max(before - 3, 2 * self.staggered) if most - spare > 5 else before
            greatest = max(min(least + most - spare, before + 4, 27), least)
        return least, greatest, greatest + spare

    def size(self, layer, d):
        """Of a shard of that layer and depth: the bits of a fingerprint in the table and in the column, and the bytes of both."""
        _, greatest, u = self.depths(layer)
        f, above = self.f + u - greatest, greatest - d
        return f, above, bytes_of(self.m * bits_of_bucket(self.kind, f, self.b)) + bytes_of(self.m * self.b * above)

    def lane_and_stream(self, x):
        """The stream as a number of 61 bits."""
        w = x * 0xB504F333F9DE6485 & WORD
        lane, v = w >> 64 - self.la, w << self.la & WORD
        five = v >> 59
        quarter = (five >= 6) + (five >= 13) + (five >= 22) if self.staggered else five // 8
        return lane, quarter << 59 | v & 2**59 - 1

    def places(self, x):
        """In each layer, the shard's depth and prefix, the fingerprint that is looked for, and its length."""
        lane, stream = self.lane_and_stream(x)
        *_, low = self.locate(x)
        for layer, shards in self.lanes[lane].items():
            _, greatest, u = self.depths(layer)
            d = next(d for d in range(greatest + 1) if (d, stream >> 61 - d) in shards)
            spare = u - greatest
            yield layer, d, stream >> 61 - d, (stream >> 61 - u) % 2**spare << self.f | low, self.f + spare

    def contains_hash(self, x):
        lane, _ = self.lane_and_stream(x)
        i, other, _ = self.locate(x)
        found = False
        for layer, d, prefix, t, bits in self.places(x):
            buckets = self.lanes[lane][layer][d, prefix]
            found |= any(stored % 2**bits == t for stored in buckets[i] + buckets[other])
        return found

    def summary(self):
        lanes = ", ".join(" + ".join(str(len(shards)) for shards in layers.values()) for layers in self.lanes)
        return f"f = {self.f}, b = {self.b}, m = {self.m}, {self.items} items, shards: {lanes}"

    def explain(self, x):
        lane, stream = self.lane_and_stream(x)
        i, other, _ = self.locate(x)
        places = [f"layer {layer}, depth {d}, prefix {prefix:#x}, t = {t:#x}" for layer, d, prefix, t, _ in self.places(x)]
        return f"lane {lane}, stream {stream:#x}, buckets {i} and {other}, " + "; ".join(places)


def read(data):
    """A filter of either type."""
    return (GrowingSnapshot if data[10:11] in (b"\2", b"\3") else Snapshot)(data)
