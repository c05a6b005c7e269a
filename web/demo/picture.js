// Where a snapshot has an item, by the formulas of docs/FORMAT.md: the buckets that a lookup reads, and what they contain.

// Of the generations after the first: the most buckets of a shard, the fewest bits that the second one knows more, and the most bits.
const [LATER_BUCKETS, EXTRA_BITS, KNOWN_BITS] = [268, 6, 48];
const [C, BITS_32, BITS_64] = [0x9e3779b97f4a7c15n, (1n << 32n) - 1n, (1n << 64n) - 1n];

// All quadruples of nibbles in order, which the codewords of packed buckets number.
const NIBBLES = Array.from({ length: 16 ** 4 }, (_, n) => [n >> 12, (n >> 8) & 15, (n >> 4) & 15, n & 15]).filter(
    ([a, b, c, d]) => a <= b && b <= c && c <= d,
);

// Returns the number whose bits select buckets and fingerprint.
export const permuted = h => {
    const p = ((h ^ (h >> 31n)) * C) & BITS_64;
    return ((p ^ (p >> 32n)) * C) & BITS_64;
};

function otherBucket(bucket, fingerprint, m) {
    const u = (fingerprint * C) & BITS_64;
    const a = ((((u * (u >> 32n)) & BITS_64) * m) >> 64n) | 1n;
    return (a - bucket + m) % m;
}

function anySize(x, m, f) {
    const [first, rest] = [(x * m) >> 64n, (x * m) & BITS_64];
    const fingerprint = (((rest >> 32n) * ((1n << f) - 1n)) >> 32n) + 1n;
    return { fingerprint, buckets: [first, otherBucket(first, fingerprint, m)] };
}

const otherByPower = (bucket, fingerprint, m) => (bucket ^ ((fingerprint * 0x5bd1e995n) & BITS_32)) % m;

function powerOfTwo(x, m, f) {
    const [first, fingerprint] = [(x >> 32n) % m, ((x & BITS_32) % ((1n << f) - 1n)) + 1n];
    return { fingerprint, buckets: [first, otherByPower(first, fingerprint, m)] };
}

// The places of items in m buckets with fingerprints of f bits, and the other bucket of a fingerprint.
export const addressings = {
    "any-size": (m, f) => ({ locate: x => anySize(x, m, f), other: (bucket, fingerprint) => otherBucket(bucket, fingerprint, m) }),
    "power-of-two": (m, f) => ({
        locate: x => powerOfTwo(x, m, f),
        other: (bucket, fingerprint) => otherByPower(bucket, fingerprint, m),
    }),
};

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

// The sizes of generation n of a growing filter: docs/FORMAT.md, "Generations".
function generation(view, n) {
    const [f, g, spare, first] = [view.getUint8(11), view.getUint8(29), view.getUint8(30), view.getUint32(24, true)];
    const halved = k => 2 * Math.ceil(Math.ceil(first / 2 ** k) / 2);
    let k = 0;
    while (n > 0 && halved(k) > LATER_BUCKETS) k += 1;
    const inserted = k > 0 ? k + 1 : 0;
    const second = Math.max(g + inserted + EXTRA_BITS, Math.min(g + k + 3, 27) + spare);
    return { n, f, k, inserted, m: halved(k), known: n > 0 ? Math.min(second + 4 * (n - 1), KNOWN_BITS) : g };
}

// The bytes of a record's body. Only keys of extra copies depend on the next generation.
function bodyBytes(view, record, { n, f, m, known, inserted }) {
    const [d, kind, countBytes] = [1, 2, 3].map(at => view.getUint8(record + at));
    const bytesOf = bits => Math.ceil(bits / 8);
    if (kind === 0) return bytesOf(m * 4 * (f - 1)) + bytesOf(m * 4 * (known - d));
    const next = generation(view, n + 1);
    const extra = kind === 2 ? Math.min(next.known - next.inserted + inserted - known, 16) : 0;
    return Number(view.getBigUint64(record + 8, true)) * (bytesOf(keyBits({ f, m, known }) + extra) + countBytes);
}

const keyBits = ({ f, m, known }) => f + (32 - Math.clz32(m - 1)) + known;

// Returns what a lookup reads: tables with the item's buckets, and lists.
export function picture(bytes, hash) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [kind, f, x] = [view.getUint8(10), view.getUint8(11), permuted(hash)];
    const table = { isPacked: kind > 0, b: view.getUint8(12) };
    if (kind < 2) {
        const m = view.getBigUint64(24, true);
        const addressing = view.getUint8(13) === 1 ? "power-of-two" : "any-size";
        const { fingerprint, buckets } = addressings[addressing](m, BigInt(f)).locate(x);
        const read = bucket => ({ index: Number(bucket), slots: slots(bytes, 64, table, f, bucket) });
        return { tables: [{ name: "the table", place: "", m: Number(m), f, fingerprint, buckets: buckets.map(read) }], lists: [] };
    }

    const [la, isStaggered] = [view.getUint8(13), view.getUint8(31)];
    const inFirst = anySize(x, BigInt(view.getUint32(24, true)), BigInt(f));
    const w = (x * 0xb504f333f9de6485n) & BITS_64;
    const [partition, v] = [Number(w >> BigInt(64 - la)), (w << BigInt(la)) & BITS_64];
    const five = Number(v >> 59n);
    const quarter = BigInt(isStaggered ? [6, 13, 22, 32].findIndex(end => five < end) : five >> 3);
    const rest = ((v << 5n) & BITS_64) >> 2n;

    let at = 64;
    for (let n = 0; n < partition; n += 1) at += 32 + Number(view.getBigUint64(at + 16, true));
    const records = at + 32 + 24 * Number(view.getBigUint64(at + 8, true));
    const [tables, lists] = [[], []];
    let start = records;
    for (let record = at + 32; record < records; record += 24) {
        const [n, d, body] = [0, 1, 2].map(offset => view.getUint8(record + offset));
        const prefix = view.getUint32(record + 4, true);
        const sizes = generation(view, n);
        const { t, buckets, stream } = inGeneration(sizes, inFirst, quarter, rest);
        if (body < 2 && stream >> BigInt(64 - d) === BigInt(prefix)) {
            const name = d > 0 ? `shard ${prefix.toString(2).padStart(d, "0")}` : "the only shard";
            const shard = { name, place: `, generation ${n}, partition ${partition}` };
            const known = stream >> BigInt(64 - sizes.known);
            if (body === 0) tables.push({ ...shard, ...readTable(bytes, start, sizes, d, t, buckets, known) });
            else lists.push({ ...shard, ...readList(view, start, record, sizes, t, buckets, known) });
        }
        start += 8 * Math.ceil(bodyBytes(view, record, sizes) / 8);
    }
    return { tables, lists };
}

// Returns the item's fingerprint, buckets and stream in a generation, from those in the first one.
function inGeneration({ k, inserted, m }, { fingerprint: t, buckets: inFirst }, quarter, rest) {
    if (k === 0) return { t, buckets: inFirst, stream: (quarter << 62n) | rest };
    const [i, dropped] = [inFirst[0] >> BigInt(k), inFirst[0] & ((1n << BigInt(k)) - 1n)];
    const buckets = [i, otherBucket(i, t, BigInt(m))];
    const bits = (dropped << 1n) | (i > buckets[1] ? 1n : 0n);
    return { t, buckets, stream: (quarter << 62n) | (bits << BigInt(62 - inserted)) | (rest >> BigInt(inserted)) };
}

// Reads two buckets. Lookups in the first generation do not need the column.
function readTable(bytes, start, { n, f, m, known: knownBits }, d, t, buckets, known) {
    const [table, upper] = [{ isPacked: true, b: 4 }, n === 0 ? 0 : knownBits - d];
    const column = start + Math.ceil((m * bucketBits(table, f)) / 8);
    const read = bucket => {
        const bits = slot => (upper > 0 ? field(bytes, column, (4 * Number(bucket) + slot) * upper, upper) : 0n);
        const all = slots(bytes, start, table, f, bucket).map((low, slot) => (bits(slot) << BigInt(f)) | low);
        return { index: Number(bucket), slots: all };
    };
    const fingerprint = ((known & ((1n << BigInt(upper)) - 1n)) << BigInt(f)) | t;
    return { m, f: f + upper, fingerprint, buckets: buckets.map(read) };
}

// Looks for the item's key in a list.
function readList(view, start, record, sizes, t, buckets, known) {
    const [keys, bits] = [Number(view.getBigUint64(record + 8, true)), keyBits(sizes)];
    const smaller = buckets[0] < buckets[1] ? buckets[0] : buckets[1];
    const sought = (((known << BigInt(bits - sizes.f - sizes.known)) | smaller) << BigInt(sizes.f)) | t;
    const size = Math.ceil(bits / 8);
    const key = n => {
        let value = 0n;
        for (let byte = size - 1; byte >= 0; byte -= 1) value = (value << 8n) | BigInt(view.getUint8(start + n * size + byte));
        return value;
    };
    return { keys, isFound: Array.from({ length: keys }, (_, n) => n).some(n => key(n) === sought) };
}
