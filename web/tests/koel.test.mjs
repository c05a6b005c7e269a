// What koel.js returns for the golden files, for batches, for values that are no items, and for bytes that are no snapshots.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { CuckooTable } from "../demo/cuckoo.js";
import { picture } from "../demo/picture.js";
import { KoelError, load, open } from "../koel.js";

// The memory of the instance that koel.js makes.
let memory;
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (...given) => {
    const instance = await instantiate(...given);
    if (instance.exports?.has_bytes) memory = instance.exports.memory;
    return instance;
};

const DATA = new URL("../../tests/data/", import.meta.url);
const WASM = new URL("../koel.wasm", import.meta.url);
// README.md has the figures.
const [MAX_BYTES, MAX_COMPRESSED] = [40 * 1024, 22 * 1024];

const read = file => readFileSync(new URL(file, DATA));
// A seed may be more than a number of JavaScript holds.
const list = file => JSON.parse(read(file).toString().replace(/"seed": (\d+)/g, '"seed": "$1"')).files;
const goldens = [
    ...list("goldens.json").map(golden => ({ ...golden, kind: "fixed" })),
    ...list("growing/growing.json").map(golden => ({ ...golden, file: `growing/${golden.file}`, kind: "growing" })),
];
const readable = goldens.filter(({ hasher }) => hasher !== "metrohash64");

// The types of items in the lists: an item by its number, and a probe, as docs/FORMAT.md says.
const long = (text, n) => text.repeat((n % 40) + 1);
const u32 = n => new Uint8Array(Uint32Array.of(n).buffer);
const types = {
    text: [n => `item-${n}`, n => `probe-${n}`],
    long: [n => long(`item-${n}`, n), n => long(`probe-${n}`, n)],
    keys: [n => `key-${n}`, n => `probe-${n}`],
    u32: [u32, n => u32(1_000_000 + n)],
    hash: [n => BigInt(n), n => BigInt(1_000_000 + n)],
};
const lookup = (filter, items) => item => (items === "hash" ? filter.hasHash(item) : filter.has(item));
const numbers = (first, end) => Array.from({ length: end - first }, (_, n) => first + n);
const held = ({ holds }) => holds.flatMap(([first, end, copies]) => numbers(first, end).map(n => [n, copies]));

test("golden files give the answers of Rust", async () => {
    assert.equal(readable.length, 31);
    for (const golden of readable) {
        const filter = await open(read(golden.file));
        const [anyItem, probe] = types[golden.items];
        // The first hashes of some files were chosen.
        const item = n => (golden.hashes?.[n] === undefined ? anyItem(n) : BigInt(golden.hashes[n]));
        const has = lookup(filter, golden.items);
        const items = held(golden);
        assert.ok(items.every(([n]) => has(item(n))), `${golden.file}: an item is not found`);
        const found = numbers(0, 2000).filter(n => has(probe(n)));
        assert.deepEqual(found, golden.found, golden.file);
        if (golden.items !== "hash") {
            assert.ok(items.every(([n, copies]) => filter.count(item(n)) >= copies), `${golden.file}: a count is too low`);
            const total = items.reduce((sum, [n]) => sum + filter.count(item(n)), 0);
            // Only collisions make counts too high, and these fingerprints are long.
            if (golden.f >= 16) assert.equal(total, filter.length, golden.file);
            assert.ok(items.every(([n]) => filter.hasHash(filter.hash(item(n)))));
        }
        filter.close();
    }
});

test("filters state their facts", async () => {
    for (const { file, kind, table, f, b, buckets, addressing, hasher, seed, ...golden } of readable) {
        const filter = await open(read(file));
        assert.equal(filter.kind, kind);
        assert.equal(filter.length, held(golden).reduce((sum, [, copies]) => sum + copies, 0), file);
        assert.equal(filter.bytes, read(file).length);
        const { parameters } = filter;
        assert.equal(parameters.seed, BigInt(seed));
        if (kind === "fixed") {
            assert.deepEqual({ ...parameters }, { table, f, b, buckets, addressing, seed: BigInt(seed), hasher });
        } else {
            assert.deepEqual([parameters.table, parameters.b], ["packed", 4]);
            assert.ok(filter.rate <= golden.rate, file);
        }
        // Each distinct item takes more than a bit, its other copies take none.
        const { bitsPerItem } = filter;
        assert.ok(filter.length === 0 ? bitsPerItem === Infinity : bitsPerItem * filter.length > held(golden).length, file);
        assert.ok(filter.load >= 0 && filter.load <= 1 && filter.rate >= 0 && filter.rate <= 1);
        filter.close();
    }
});

test("the demo's picture of a lookup has its result", async () => {
    for (const { file } of readable) {
        const [bytes, filter] = [new Uint8Array(read(file)), await open(read(file))];
        for (let n = 0; n < 600; n += 1) {
            const item = n % 2 ? `item-${n}` : u32(n);
            const { tables, lists } = picture(bytes, filter.hash(item));
            const isShown = tables.some(({ fingerprint, buckets }) => buckets.some(({ slots }) => slots.includes(fingerprint)));
            assert.equal(isShown || lists.some(({ isFound }) => isFound), filter.has(item), `${file}: ${n}`);
        }
        filter.close();
    }
});

test("the demo's small table inserts as the library does", async () => {
    const file = "single_f32_b8_pow2.koel";
    const [bytes, filter] = [new Uint8Array(read(file)), await open(read(file))];
    const { buckets, b, f, addressing } = filter.parameters;
    const same = new CuckooTable(buckets, b, f, addressing);
    let moves = 0;
    for (let n = 0; n < filter.length; n += 1) moves += same.insert(filter.hash(`item-${n}`)).steps.length - 1;
    assert.ok(moves > 0, "no item had to move");
    for (let n = 0; n < 200; n += 1) {
        const { tables } = picture(bytes, filter.hash(`item-${n}`));
        for (const { index, slots } of tables[0].buckets) assert.deepEqual(slots, same.buckets[index], `bucket ${index}`);
    }
    // Until it is full: a step moves a fingerprint to its other bucket, and a refusal changes nothing.
    const small = new CuckooTable(8, 2, 8);
    const inserted = [];
    for (let n = 0, refused = 0; refused < 5; n += 1) {
        const before = small.buckets.map(slots => [...slots]);
        const { steps } = small.insert(filter.hash(`word ${n}`));
        if (steps.length > 0) inserted.push(filter.hash(`word ${n}`));
        else assert.deepEqual(small.buckets, before, `refusal ${(refused += 1)}`);
        assert.ok(steps.slice(0, -1).every(({ from, to }, at) => from !== to && at < 7), `${n}`);
    }
    const stored = small.buckets.flat().filter(slot => slot !== 0n);
    assert.equal(stored.length, inserted.length);
    for (const hash of inserted) {
        const { fingerprint, buckets } = small.locate(hash);
        assert.ok(buckets.some(bucket => small.buckets[bucket].includes(fingerprint)), `${hash}`);
    }
    filter.close();
});

test("batches give the results of single lookups", async () => {
    for (const file of ["single_f2_b4_any_full.koel", "packed_f13_any.koel", "growing/staggered.koel", "growing/chosen_in_lists.koel"]) {
        const filter = await open(read(file));
        const same = items => assert.deepEqual([...filter.hasBatch(items)], Array.from(items, item => Number(filter.has(item))));
        const many = numbers(0, 20_000).map(n => n * 0x9e3779b9 - 2 ** 44);
        same(many);
        same(BigInt64Array.from(many, BigInt).subarray(1));
        same(BigUint64Array.from(many, BigInt));
        same(Int32Array.of(-1, 0, 1));
        same(["item-1", 7, 7n, u32(7), "", "ä", "😀".repeat(5000)]);
        assert.equal(filter.hasBatch([]).length, 0);
        for (const items of ["item-1", Uint8Array.of(1), new DataView(new ArrayBuffer(8)), null, { 0: "a" }]) {
            assert.throws(() => filter.hasBatch(items), { name: "TypeError", message: /pass \[item\]/ });
        }
        filter.close();
    }
});

test("an item has the bytes of its Rust type", async () => {
    const filter = await open(read("packed_f13_any.koel"));
    const bytesOf = integer => new Uint8Array(BigUint64Array.of(BigInt.asUintN(64, BigInt(integer))).buffer);
    const { MAX_SAFE_INTEGER, MIN_SAFE_INTEGER } = Number;
    const integers = [0, -0, 1, -1, 2 ** 32, -(2 ** 32) - 1, MAX_SAFE_INTEGER, MIN_SAFE_INTEGER, 2n ** 64n - 1n, -(2n ** 63n)];
    for (const integer of integers) assert.equal(filter.hash(integer), filter.hash(bytesOf(integer)), `${integer}`);
    for (const text of ["", "a", "ä", "€uro", "😀", "a".repeat(32), `${"a".repeat(32)}ä`]) {
        assert.equal(filter.hash(text), filter.hash(new TextEncoder().encode(text)), text);
    }
    filter.close();
    // A filter that finds a quarter of all items, so that a wrong half would show.
    const quarter = await open(read("growing/staggered.koel"));
    const items = [...integers, ...Array.from({ length: 2000 }, (_, n) => (n - 1000) * 0xfedcba987)];
    for (const item of items) assert.equal(quarter.has(item), quarter.hasHash(quarter.hash(item)), `${item}`);
    quarter.close();
});

test("values that are no items are refused, with a remedy", async () => {
    const filter = await open(read("packed_f13_any.koel"));
    const refused = (items, name, message) => {
        for (const item of items) {
            for (const use of ["has", "count", "hash"]) assert.throws(() => filter[use](item), { name, message });
            assert.throws(() => filter.hasBatch([item]), { name, message });
        }
    };
    refused([2n ** 64n, -(2n ** 63n) - 1n], "RangeError", /pass String/);
    refused([2 ** 53, -(2 ** 60)], "RangeError", /pass a BigInt/);
    refused([0.5, NaN, Infinity], "TypeError", /pass String/);
    refused([null, undefined, {}, true, [1]], "TypeError", /pass a string/);
    refused(["\ud83d", "\ude00 ", `${"a".repeat(40)}\ude00\ud83d`], "TypeError", /toWellFormed/);
    for (const pair of ["\ud83d\ude00", `${"a".repeat(40)}\ud83d\ude00`]) assert.equal(filter.count(pair), 0);
    assert.throws(() => filter.hasBatch(["a", 1, null]), { name: "TypeError", message: /^items\[2\]: null is not an item/ });
    const notHash = [["x", "TypeError"], [null, "TypeError"], [true, "TypeError"], [0.5, "TypeError"], [2n ** 64n, "RangeError"], [2 ** 60, "RangeError"]];
    for (const [hash, name] of notHash) assert.throws(() => filter.hasHash(hash), { name, message: /: pass what hash\(\) returns/ });
    assert.equal(filter.hasHash(7), filter.hasHash(7n));
    // Bytes of another window or context.
    const foreign = runInNewContext("Uint8Array.of(1, 2)");
    assert.equal(filter.hash(foreign), filter.hash(Uint8Array.of(1, 2)));
    assert.throws(() => filter.hasBatch(foreign), { name: "TypeError", message: /pass \[item\]/ });
    filter.close();
    filter[Symbol.dispose]();
    for (const [use, item] of Object.entries({ has: "a", count: 1, hash: 1n, hasHash: 1n, hasBatch: [] })) {
        assert.throws(() => filter[use](item), { name: "KoelError", kind: "Closed" });
    }
});

test("bytes that no memory of a module can hold are refused, with a remedy", async () => {
    // Zeros that are never read take no memory.
    const many = new Uint8Array(2 ** 31);
    const refusal = { name: "KoelError", kind: "OutOfMemory", message: /^2147483648 bytes are more than the 2147483647 .* Python$/ };
    await assert.rejects(open(many), refusal);
    const filter = await open(read(readable[0].file));
    assert.throws(() => filter.has(many), refusal);
    filter.close();
});

test("corrupt bytes give an error, and the module goes on", async () => {
    const kinds = new Set();
    const refused = async bytes => {
        const error = await open(bytes).then(filter => (filter.close(), null), error => error);
        assert.ok(error instanceof KoelError && /^[A-Z]\w+$/.test(error.kind) && error.message.length > 20, `${error?.stack}`);
        // Functions of Rust, which JavaScript does not have.
        assert.doesNotMatch(error.message, /::|View|_with|_prefix|read_from|feature/);
        // An offset, a text whose gaps are filled, and a remedy.
        assert.match(error.message, /^at byte \d+: [^{}:;]+(: [^{};]+)?; \w[^{};]+$/);
        kinds.add(error.kind);
    };
    for (const { file } of goldens) {
        const bytes = read(file);
        const step = Math.ceil(bytes.length / 60);
        for (let at = 0; at < bytes.length; at += at < 64 ? 1 : step) {
            const [cut, changed] = [bytes.subarray(0, at), Uint8Array.from(bytes)];
            changed[at] ^= 1 << at % 8;
            await refused(cut);
            await refused(changed);
            // Only `false` leaves them unverified.
            for (const verify of [null, "false", 0]) await assert.rejects(open(changed, { verify }), { name: "KoelError" });
            // Unverified, wrong bytes give wrong results at worst.
            const filter = await open(changed, { verify: false }).catch(() => null);
            filter?.hasBatch([1n, "a", 2n ** 63n]);
            filter?.count("a");
            filter?.close();
        }
        await refused(Buffer.concat([bytes, Buffer.of(0)]));
    }
    const corpus = new URL("../../fuzz/corpus/snapshot/", import.meta.url);
    for (const name of readdirSync(corpus)) {
        for (const verify of [true, false]) {
            const filter = await open(readFileSync(new URL(name, corpus)), { verify }).catch(error => error);
            assert.ok(filter instanceof KoelError || filter.hasBatch(["a", 1]).length === 2, `${filter}`);
            filter.close?.();
        }
    }
    await assert.rejects(open(read("packed_f4_pow2.koel")), { kind: "Hasher", message: /metrohash64.*build it again/ });
    const expected = ["Magic", "Version", "Length", "TrailingBytes", "HeaderChecksum", "Hasher", "BodyChecksum"];
    assert.deepEqual(expected.filter(kind => !kinds.has(kind)), []);
    const filter = await open(read("packed_f13_any.koel"));
    assert.ok(filter.has("item-0") && !filter.has("probe-0"));
    filter.close();
});

test("errors have the kinds of Rust, by their numbers", () => {
    const [, body] = readFileSync(new URL("../../src/snapshot/error.rs", import.meta.url), "utf8").match(/enum SnapshotErrorKind \{(.*?)\n\}/s);
    const kinds = [...body.matchAll(/^ {4}(\w+),$/gm)].map(([, kind]) => kind);
    const [, list] = readFileSync(new URL("../koel.js", import.meta.url), "utf8").match(/^const KINDS = \[(.*?)\n\];/ms);
    const ours = [...list.matchAll(/"(\w+)"|null/g)].map(([, kind]) => kind);
    const impossible = { Aliasing: undefined, Unsupported: undefined };
    assert.deepEqual([...ours, "Io"], kinds.map(kind => (kind in impossible ? impossible[kind] : kind)));
});

test("every text of an error in Rust is here", async () => {
    const texts = readFileSync(new URL("../messages.js", import.meta.url), "utf8");
    const sources = ["snapshot/error", "snapshot/format", "snapshot/read", "snapshot/verify", "elastic/plan", "params/error"];
    let found = 0;
    for (const source of sources) {
        const rust = readFileSync(new URL(`../../src/${source}.rs`, import.meta.url), "utf8");
        for (const [, text] of rust.matchAll(/\btext!\(\s*"(.+?)"\s*\)/g)) {
            // Remedies name functions of Rust.
            if (/^(read|write) it /.test(text)) continue;
            assert.ok(texts.includes(`"${text}",\n`), `${source}.rs: add this text to messages.js: ${text}`);
            found += 1;
        }
    }
    assert.ok(found > 50, `${found} texts`);
});

test("a second module is refused unless it is the same", async () => {
    const module = await load();
    const bytes = readFileSync(WASM);
    for (const same of [undefined, module, structuredClone(module), bytes, Uint8Array.from(bytes).buffer, WASM]) {
        assert.equal(await load(same), module);
    }
    const data = read("packed_f13_any.koel");
    for (const other of [bytes.subarray(1), data, new Blob([data])]) {
        await assert.rejects(load(other), { name: "KoelError", kind: "Loaded", message: /before the first open/ });
        await assert.rejects(open(data, { wasm: other }), { kind: "Loaded" });
    }
    await assert.rejects(load("koel.wasm"), TypeError);
    // The first module is none, or that of another program.
    const fresh = await import("../koel.js?fresh");
    const empty = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
    for (const other of [Uint8Array.of(1, 2, 3), empty, new WebAssembly.Module(empty)]) {
        await assert.rejects(fresh.load(other), { name: "KoelError", kind: "Module", message: /: pass that file/ });
    }
    (await fresh.open(data, { wasm: bytes })).close();
    (await open(data, { wasm: bytes })).close();
});

test("lookups, and filters that are closed or forgotten, take no memory", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc");
    const bytes = read("growing/generations_after_large_shards.koel");
    const once = async () => {
        const filter = await open(bytes);
        filter.has("x".repeat(10_000));
        filter.hasBatch(new BigUint64Array(10_000));
        filter.close();
    };
    await once();
    const before = memory.buffer.byteLength;
    for (let n = 0; n < 500; n += 1) await once();
    assert.equal(memory.buffer.byteLength, before);
    const filter = await open(bytes);
    for (let n = 0; n < 200_000; n += 1) filter.has(n % 2 ? n : "item-1");
    filter.close();
    for (let n = 1; n <= 1000; n += 1) {
        await open(bytes);
        if (n % 10 > 0) continue;
        collect();
        await new Promise(turn => setImmediate(turn));
    }
    assert.ok(1000 * bytes.length > 4 * before, "too little to tell whether it was freed");
    assert.ok(memory.buffer.byteLength <= 1.5 * before, `${memory.buffer.byteLength} bytes, of ${before}`);
});

test("bytes come from many sources", async context => {
    const bytes = new Uint8Array(read("packed_f13_any.koel"));
    const server = createServer((request, response) => {
        response.statusCode = request.url === "/words.koel" ? 200 : 404;
        response.end(response.statusCode === 200 ? bytes : "none");
    });
    await new Promise(listening => server.listen(0, "127.0.0.1", listening));
    context.after(() => server.close().closeAllConnections());
    const url = new URL(`http://127.0.0.1:${server.address().port}/words.koel`);
    const behind = new Uint8Array([...new Uint8Array(5), ...bytes]).subarray(5);
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
    shared.set(bytes);
    const foreign = runInNewContext("new Uint8Array(length)", { length: bytes.length });
    foreign.set(bytes);
    const views = [bytes, bytes.buffer, behind, new DataView(bytes.buffer), new Blob([bytes]), shared, shared.buffer, foreign.buffer];
    for (const source of [...views, url, fetch(url), new URL("packed_f13_any.koel", DATA)]) {
        const filter = await open(source);
        assert.ok(filter.has("item-92") && filter.bytes === bytes.length);
        filter.close();
    }
    await assert.rejects(open(new URL("/other", url)), { kind: "Response", message: /404/ });
    const nameless = { kind: "Response", message: "response: the server says 404; check the address" };
    await assert.rejects(open(new Response("", { status: 404 })), nameless);
    const refusal = { name: "TypeError", message: /pass a Uint8Array/ };
    for (const source of ["words.koel", null, 7]) await assert.rejects(open(source), refusal);
});

test("the module is small", () => {
    const bytes = readFileSync(WASM);
    const sizes = [bytes.length, gzipSync(bytes, { level: 9 }).length];
    assert.ok(sizes[0] <= MAX_BYTES && sizes[1] <= MAX_COMPRESSED, `${sizes} bytes, more than ${MAX_BYTES} or ${MAX_COMPRESSED}`);
});
