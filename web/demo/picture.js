// Where a snapshot has an item, by the formulas of docs/FORMAT.md: the buckets that a lookup reads, and what they contain.

const [C, BITS_32, BITS_64] = [0x9e3779b97f4a7c15n, (1n << 32n) - 1n, (1n << 64n) - 1n];

// All quadruples of nibbles in order, which the codewords of packed buckets number.
const NIBBLES = Array.from({ length: 16 ** 4 }, (_, n) => [n >> 12, (n >> 8) & 15, (n >> 4) & 15, n & 15]).filter(
    ([a, b, c, d]) => a <= b && b <= c && c <= d,
);

const permuted = h => {
    const p = ((h ^ (h >> 31n)) * C) & BITS_64;
    return ((p ^ (p >> 32n)) * C) & BITS_64;
};

function anySize(x, m, f) {
    const [first, rest] = [(x * m) >> 64n, (x * m) & BITS_64];
    const fingerprint = (((rest >> 32n) * ((1n << f) - 1n)) >> 32n) + 1n;
    const u = (fingerprint * C) & BITS_64;
    const a = ((((u * (u >> 32n)) & BITS_64) * m) >> 64n) | 1n;
    return { fingerprint, buckets: [first, (a - first + m) % m] };
}

function powerOfTwo(x, m, f) {
    const [first, fingerprint] = [(x >> 32n) % m, ((x & BITS_32) % ((1n << f) - 1n)) + 1n];
    return { fingerprint, buckets: [first, (first ^ ((fingerprint * 0x5bd1e995n) & BITS_32)) % m] };
}

function field(bytes, start, at, bits) {
    let value = 0n;
    for (let byte = (at + bits - 1) >> 3; byte >= at >> 3; byte -= 1) value = (value << 8n) | BigInt(bytes[start + byte]);
    return (value >> BigInt(at & 7)) & ((1n << BigInt(bits)) - 1n);
}

const bucketBits = ({ isPacked, b }, f) => (isPacked ? 4 * (f - 1) : b * f);

function slots(bytes, start, table, f, bucket) {
    const at = Number(bucket) * bucketBits(table, f);
    if (!table.isPacked) return Array.from({ length: table.b }, (_, slot) => field(bytes, start, at + slot * f, f));
    const high = slot => (f > 4 ? field(bytes, start, at + 12 + slot * (f - 4), f - 4) : 0n);
    return NIBBLES[Number(field(bytes, start, at, 12))].map((low, slot) => (high(slot) << 4n) | BigInt(low));
}

// Returns the hash x, and for each table that a lookup reads its buckets; for a list without tables, its number of keys.
export function picture(bytes, hash) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [kind, f, x] = [view.getUint8(10), view.getUint8(11), permuted(hash)];
    const table = { isPacked: kind % 2 === 1, b: view.getUint8(12) };
    const read = (start, f, m, { fingerprint, buckets }, name, place = "") => ({
        ...{ name, place, m: Number(m), f, fingerprint },
        buckets: buckets.map(bucket => ({ index: Number(bucket), slots: slots(bytes, start, table, f, bucket) })),
    });
    if (kind < 2) {
        const m = view.getBigUint64(24, true);
        return { x, tables: [read(64, f, m, (view.getUint8(13) === 1 ? powerOfTwo : anySize)(x, m, BigInt(f)), "the table")] };
    }

    const [la, minDepth, maxDepth, spareBits, isStaggered] = [13, 28, 29, 30, 31].map(at => view.getUint8(at));
    const perShard = view.getUint32(24, true);
    const address = anySize(x, BigInt(perShard), BigInt(f));
    const w = (x * 0xb504f333f9de6485n) & BITS_64;
    const [partition, v] = [Number(w >> BigInt(64 - la)), (w << BigInt(la)) & BITS_64];
    const five = Number(v >> 59n);
    const quarter = isStaggered ? [6, 13, 22, 32].findIndex(end => five < end) : five >> 3;
    const stream = (BigInt(quarter) << 62n) | (((v << 5n) & BITS_64) >> 2n);
    const first = bits => stream >> BigInt(64 - bits);

    let at = 64;
    for (let n = 0; n < partition; n += 1) at += 32 + Number(view.getBigUint64(at + 16, true));
    const [items, shards] = [view.getBigUint64(at, true), Number(view.getBigUint64(at + 8, true))];
    if (shards === 0) return { x, tables: [], keys: items === 0n ? 0 : Number(view.getBigUint64(at + 32, true)) };
    let [start, s, least, D, generation] = [at + 32 + 24 * shards, 0, minDepth, maxDepth, 0];
    const tables = [];
    for (let record = at + 32; record < at + 32 + 24 * shards; record += 24) {
        for (; generation < view.getUint8(record); generation += 1) {
            const [before, G] = [D, 32 - f];
            s = Math.min(spareBits + Math.min(generation, 12), G);
            least = G - s > 5 ? Math.max(before - 3, 0) : before;
            D = Math.max(Math.min(least + G - s, before + 4, 27), least);
        }
        const [d, prefix] = [view.getUint8(record + 1), view.getUint32(record + 4, true)];
        if (first(d) === BigInt(prefix)) {
            const spare = first(D + s) & ((1n << BigInt(s)) - 1n);
            const sought = { ...address, fingerprint: (spare << BigInt(f)) | address.fingerprint };
            const name = d > 0 ? `shard ${prefix.toString(2).padStart(d, "0")}` : "the only shard";
            tables.push(read(start, f + s, perShard, sought, name, `, generation ${generation}, partition ${partition}`));
        }
        const bytesOf = bits => Math.ceil(bits / 8);
        start += 8 * Math.ceil((bytesOf(perShard * bucketBits(table, f + s)) + bytesOf(perShard * table.b * (D - d))) / 8);
    }
    return { x, tables };
}
