// Opens koel's filters and looks up items. The types are in koel.d.ts, and the module that it calls in src.

// The least size of the buffer, and the size that no memory of a 32-bit module can have in one piece.
const [MIN_BYTES, MOST_BYTES] = [2 ** 12, 2 ** 31];
const BATCH = 1 << 13;
const [MIN_INTEGER, MAX_INTEGER] = [-(2n ** 63n), 2n ** 64n - 1n];
const NO_BYTES = new Uint8Array(0);
const encoder = new TextEncoder();

// The offsets of fields in a snapshot's header (docs/FORMAT.md), and what their numbers mean.
const [TABLE_AT, FINGERPRINT_BITS_AT, BUCKET_SIZE_AT, ADDRESSING_AT] = [10, 11, 12, 13];
const [HASHER_AT, SEED_AT, BUCKETS_AT] = [14, 16, 24];
const [SINGLE, GROWING] = [0, 2];
const POWER_OF_TWO = 1;
const HASHERS = { 1: "xxh3", 3: "redisbloom" };

// The kinds of errors by their numbers, in the order of Rust's SnapshotErrorKind; null for those that cannot occur here.
const KINDS = [
    "Magic", "Version", "OtherType", "Length", "TrailingBytes", "HeaderChecksum", "Parameter", "Hasher", "BodyChecksum",
    "Table", "Count", "Copies", "Shards", null, null, "OutOfMemory",
];

// What `property` returns for each number from 0.
const PROPERTIES = ["length", "rate", "bitsPerItem", "load"];

// The WebAssembly module, once it is loaded: its functions, and its buffer, whose length is 0 when it must be fetched again.
let wasm;
let buffer = NO_BYTES;
let loading;

// Unicode matches half of a surrogate pair only where the other half is missing.
const LONE_SURROGATE = /\p{Surrogate}/u;

export class KoelError extends Error {
    constructor(kind, message) {
        super(message);
        this.name = "KoelError";
        this.kind = kind;
    }
}

// Returns the name of a value's type, which is the same for values of another window or context.
const typeName = value => Object.prototype.toString.call(value).slice(8, -1);
const isBytes = value => value instanceof Uint8Array || (ArrayBuffer.isView(value) && typeName(value) === "Uint8Array");

async function readAll(source) {
    if (["ArrayBuffer", "SharedArrayBuffer"].includes(typeName(source)) || ArrayBuffer.isView(source)) return source;
    if (source instanceof URL && source.protocol === "file:" && globalThis.process?.getBuiltinModule) {
        return process.getBuiltinModule("node:fs").promises.readFile(source);
    }
    if (source instanceof URL) source = await fetch(source);
    if (typeName(source) === "Response" && !source.ok) {
        throw new KoelError(
            "Response",
            `${source.url || "response"}: the server says ${source.status} ${source.statusText}`.trimEnd() + "; check the address",
        );
    }
    if (typeof source?.arrayBuffer === "function") return source.arrayBuffer();
    throw new TypeError(
        `${describe(source)} has no bytes: pass a Uint8Array, an ArrayBuffer, a Response, a Blob or a URL object`,
    );
}

const describe = value => (typeof value === "string" ? JSON.stringify(value) : value === null ? "null" : typeof value);

const isModule = source => source instanceof WebAssembly.Module;

// Returns a copy, since the caller may change its bytes.
async function readModule(source) {
    const bytes = await readAll(source);
    return ArrayBuffer.isView(bytes)
        ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).slice()
        : new Uint8Array(bytes).slice();
}

// Loads the module. The result is what later calls compare theirs with.
async function loadFirst(source) {
    const bytes = isModule(source) ? undefined : await readModule(source);
    const refused = () => {
        throw new KoelError("Module", "the bytes are not koel.wasm: pass that file, of the same version as koel.js");
    };
    const module = bytes ? await WebAssembly.compile(bytes).catch(refused) : source;
    const { exports } = await WebAssembly.instantiate(module).catch(refused);
    if (!exports.has_bytes) refused();
    wasm = exports;
    return { source, module, bytes };
}

export async function load(source) {
    if (!loading) {
        loading = loadFirst(source === undefined ? new URL("./koel.wasm", import.meta.url) : source);
        loading.catch(() => (loading = undefined));
        return (await loading).module;
    }
    const { source: first, module, bytes } = await loading;
    // A module that was posted is another object each time. Bytes that were read once are not read again.
    const isSame = source === first || (source instanceof URL && source.href === first.href);
    if (source === undefined || isModule(source) || isSame) return module;
    const others = await readModule(source);
    if (others.length === bytes?.length && others.every((byte, at) => byte === bytes[at])) return module;
    throw new KoelError("Loaded", "koel.wasm is loaded already, from other bytes: call load(wasm) once, before the first open");
}

// Makes the buffer at least `len` bytes long. It is a view of memory, which is replaced when the memory grows.
function reserve(len) {
    if (buffer.length >= len) return;
    if (len >= MOST_BYTES) {
        throw new KoelError(
            "OutOfMemory",
            `${len} bytes are more than the ${MOST_BYTES - 1} that this package can hold; query such a file with the command or in Python`,
        );
    }
    const start = wasm.buffer(Math.max(len, MIN_BYTES)) >>> 0;
    if (start === 0) throw new KoelError("OutOfMemory", `cannot allocate ${len} bytes; close filters that are not needed`);
    buffer = new Uint8Array(wasm.memory.buffer, start, Math.max(len, MIN_BYTES));
}

// Writes a string or bytes into the buffer. Returns their number.
function write(item) {
    if (typeof item === "string") {
        reserve(3 * item.length);
        // Most strings are short ASCII, which needs no call of the encoder.
        if (item.length <= 32) {
            let at = 0;
            for (let code; at < item.length && (code = item.charCodeAt(at)) < 128; at += 1) buffer[at] = code;
            if (at === item.length) return at;
        }
        // Engines check this faster than they search, if they can.
        const lone = item.isWellFormed?.() ? -1 : item.search(LONE_SURROGATE);
        if (lone >= 0) {
            throw new TypeError(
                `half of a surrogate pair at index ${lone} of the string, which UTF-8 does not have: pass item.toWellFormed() or bytes`,
            );
        }
        return encoder.encodeInto(item, buffer).written;
    }
    if (isBytes(item)) {
        reserve(item.length);
        buffer.set(item);
        return item.length;
    }
    throw new TypeError(`${describe(item)} is not an item: pass a string, a BigInt, an integer or a Uint8Array`);
}

// Returns a number that is an item as a BigInt.
function integer(item) {
    if (typeof item === "number") {
        if (!Number.isInteger(item)) {
            throw new TypeError(
                `${item} is not an integer: pass String(item) if text was inserted, or its bytes as a Uint8Array`,
            );
        }
        if (!Number.isSafeInteger(item))
            throw new RangeError(`${item} is beyond ±(2^53 - 1), where numbers are inexact: pass a BigInt`);
        return BigInt(item);
    }
    if (item < MIN_INTEGER || item > MAX_INTEGER) {
        throw new RangeError(
            `${item} is not between -2^63 and 2^64 - 1, the range of i64 and u64: pass String(item) or its bytes`,
        );
    }
    return item;
}

function writeAny(item) {
    if (typeof item !== "bigint" && typeof item !== "number") return write(item);
    reserve(8);
    new DataView(buffer.buffer, buffer.byteOffset).setBigUint64(0, BigInt.asUintN(64, integer(item)), true);
    return 8;
}

const forgotten = globalThis.FinalizationRegistry && new FinalizationRegistry(handle => wasm.close(handle));

class Filter {
    #handle;

    constructor(handle, header) {
        const table = header.getUint8(TABLE_AT);
        const isGrowing = table === GROWING;
        this.#handle = handle;
        this.kind = isGrowing ? "growing" : "fixed";
        this.bytes = header.byteLength;
        const hasher = header.getUint16(HASHER_AT, true);
        const buckets = isGrowing
            ? { bucketsPerShard: header.getUint32(BUCKETS_AT, true) }
            : { buckets: Number(header.getBigUint64(BUCKETS_AT, true)) };
        this.parameters = Object.freeze({
            table: table === SINGLE ? "single" : "packed",
            f: header.getUint8(FINGERPRINT_BITS_AT),
            b: header.getUint8(BUCKET_SIZE_AT),
            ...buckets,
            addressing: !isGrowing && header.getUint8(ADDRESSING_AT) === POWER_OF_TWO ? "power-of-two" : "any-size",
            seed: header.getBigUint64(SEED_AT, true),
            hasher: HASHERS[hasher],
        });
        PROPERTIES.forEach((name, number) => (this[name] = wasm.property(handle, number)));
        forgotten?.register(this, handle, this);
        Object.freeze(this);
    }

    get #open() {
        if (this.#handle < 0) throw new KoelError("Closed", "the filter is closed: call close() after the last lookup");
        return this.#handle;
    }

    has(item) {
        const handle = this.#open;
        if (Number.isSafeInteger(item)) return wasm.has_halves(handle, item, Math.floor(item / 2 ** 32)) === 1;
        if (typeof item === "bigint" || typeof item === "number") return wasm.has_integer(handle, integer(item)) === 1;
        return wasm.has_bytes(handle, write(item)) === 1;
    }

    hasBatch(items) {
        const handle = this.#open;
        if (items instanceof BigUint64Array || items instanceof BigInt64Array) return this.#hasIntegers(handle, items);
        if (isBytes(items) || items instanceof Uint8ClampedArray || !(Array.isArray(items) || ArrayBuffer.isView(items)) || items instanceof DataView) {
            throw new TypeError(
                "a batch is an array of items, or a typed array of integers: pass [item] to look up the bytes of one item",
            );
        }
        const found = new Uint8Array(items.length);
        let at = 0;
        try {
            for (; at < items.length; at += 1) found[at] = this.has(items[at]) ? 1 : 0;
        } catch (error) {
            error.message = `items[${at}]: ${error.message}`;
            throw error;
        }
        return found;
    }

    #hasIntegers(handle, items) {
        const found = new Uint8Array(items.length);
        reserve(8 * Math.min(BATCH, items.length));
        for (let start = 0; start < items.length; start += BATCH) {
            const part = items.subarray(start, start + BATCH);
            buffer.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
            wasm.has_batch(handle, part.length);
            found.set(buffer.subarray(0, part.length), start);
        }
        return found;
    }

    count(item) {
        return wasm.count(this.#open, writeAny(item)) >>> 0;
    }

    hash(item) {
        return BigInt.asUintN(64, wasm.hash(this.#open, writeAny(item)));
    }

    hasHash(hash) {
        const handle = this.#open;
        const number = Number.isSafeInteger(hash) ? BigInt(hash) : hash;
        if (Number.isInteger(number)) {
            throw new RangeError(`${hash} is beyond ±(2^53 - 1), where numbers are inexact: pass what hash() returns`);
        }
        if (typeof number !== "bigint") {
            throw new TypeError(`${describe(hash)} is not a hash: pass what hash() returns, or a BigInt`);
        }
        if (number < MIN_INTEGER || number > MAX_INTEGER) {
            throw new RangeError(`${hash} has more than the 64 bits of a hash: pass what hash() returns`);
        }
        return wasm.has_hash(handle, number) === 1;
    }

    close() {
        if (this.#handle < 0) return;
        forgotten?.unregister(this);
        wasm.close(this.#handle);
        this.#handle = -1;
    }
}

// Older browsers have no such symbol.
if (Symbol.dispose) Filter.prototype[Symbol.dispose] = Filter.prototype.close;

// Returns the message of an error. The texts are loaded when they are needed, which may fail.
async function message(kind, [text, offset, ...numbers]) {
    const texts = await import("./messages.js").catch(() => undefined);
    return texts?.describe(kind, text, offset, ...numbers)
        ?? `at byte ${offset}: this is no snapshot that can be opened (${kind}); serve messages.js beside koel.js to read why`;
}

export async function open(source, { wasm: module, verify = true } = {}) {
    const [data] = await Promise.all([Promise.resolve(source).then(readAll), load(module)]);
    const bytes = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
    // The filter keeps the memory of the buffer, so it gets one of its own length.
    reserve(bytes.length);
    buffer.set(bytes);
    buffer = NO_BYTES;
    const handle = wasm.open(bytes.length, verify !== false);
    if (handle < 0) {
        const start = wasm.buffer(0) >>> 0;
        const error = new DataView(wasm.memory.buffer.slice(start, start + wasm.error_len()));
        const [number, ...parts] = Array.from({ length: 6 }, (_, at) => error.getBigUint64(8 * at, true));
        throw new KoelError(KINDS[number], await message(KINDS[number], parts));
    }
    return new Filter(handle, new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
}
