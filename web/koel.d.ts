/// <reference lib="esnext.disposable" />

/** An item: a string is looked up as its UTF-8, an integer of -2^63 … 2^64 - 1 as the 8 bytes of Rust's `i64` or `u64`. */
export type Item = string | bigint | number | Uint8Array;

/** Integers are looked up as 8 bytes each, whatever the type of the array. */
export type Batch =
    | readonly Item[]
    | BigUint64Array
    | BigInt64Array
    | Uint32Array
    | Int32Array
    | Uint16Array
    | Int16Array
    | Int8Array
    | Float64Array
    | Float32Array;

export type Bytes = ArrayBufferLike | ArrayBufferView;

/** Where bytes come from. `URL` objects are fetched; in Node, those of files are read. */
export type Source = Bytes | Response | Blob | URL;

export interface Parameters {
    readonly table: "single" | "packed";
    /** Bits per fingerprint; in a growing filter, of a low fingerprint. */
    readonly f: number;
    /** Slots per bucket. */
    readonly b: number;
    /** The number of buckets of a fixed filter. */
    readonly buckets?: number;
    /** The number of buckets in each shard of a growing filter. */
    readonly bucketsPerShard?: number;
    readonly addressing: "any-size" | "power-of-two";
    readonly seed: bigint;
    readonly hasher: "xxh3" | "redisbloom";
}

/** An open filter. `open` makes it. */
export interface Filter {
    readonly kind: "fixed" | "growing";
    /** The number of items, including copies. */
    readonly length: number;
    /** The expected false-positive rate at the current load, 0 to 1. */
    readonly rate: number;
    /** Infinite if the filter is empty. */
    readonly bitsPerItem: number;
    /** The fraction of slots that are occupied, 0 to 1. */
    readonly load: number;
    /** The length of the snapshot. */
    readonly bytes: number;
    readonly parameters: Parameters;

    /** False: the item is not in the filter. True: it probably is. */
    has(item: Item): boolean;
    /** Looks up each item: 1 at index i if `has(items[i])`, otherwise 0. Fastest with a BigUint64Array or BigInt64Array. */
    hasBatch(items: Batch): Uint8Array;
    /** The number of copies of an item: at least as many as were inserted and not removed. */
    count(item: Item): number;
    /** The hash of an item, the same as `Prehashed::of` in Rust, for any filter with this seed and hasher. */
    hash(item: Item): bigint;
    /** Looks up an item by its hash, or a number that was inserted as `Prehashed`. */
    hasHash(hash: bigint | number): boolean;
    /** Frees the filter's memory. Later lookups throw a KoelError. */
    close(): void;
    /** Does the same as `close` at the end of a block: `using filter = await open(…)`. */
    [Symbol.dispose](): void;
}

export interface Options {
    /** The module koel.wasm, if it is not beside koel.js. As for `load`. */
    wasm?: Source | WebAssembly.Module;
    /** False skips the checksums of tables: opening a large filter takes less time, and corrupt bytes can give wrong results. */
    verify?: boolean;
}

/** Opens a snapshot, fixed or growing. Rejects with a KoelError if the bytes are not valid. The bytes are copied. */
export function open(source: Source | Promise<Source>, options?: Options): Promise<Filter>;

/**
 * Loads koel.wasm, which `open` also does. The result can be posted to workers, as their option `wasm`. The first call decides;
 * a later one with other bytes rejects with a KoelError.
 */
export function load(wasm?: Source | WebAssembly.Module): Promise<WebAssembly.Module>;

/** `kind` is that of Rust's `SnapshotErrorKind`, such as "BodyChecksum", or "Response", "OutOfMemory", "Module", "Loaded" or "Closed". */
export class KoelError extends Error {
    readonly kind: string;
}
