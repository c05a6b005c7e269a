// A small cuckoo table that inserts as the library does (docs/DESIGN.md, "Insertion"), and records its steps.

import { addressings, permuted } from "./picture.js";

export class CuckooTable {
    #address;

    // m buckets of b slots, for fingerprints of f bits. Empty slots are 0.
    constructor(m, b, f, addressing = "any-size") {
        this.buckets = Array.from({ length: m }, () => Array(b).fill(0n));
        this.#address = addressings[addressing](BigInt(m), BigInt(f));
    }

    // Returns the fingerprint and the two buckets of an item, from its hash.
    locate(hash) {
        const { fingerprint, buckets } = this.#address.locate(permuted(hash));
        return { fingerprint, buckets: buckets.map(Number) };
    }

    #other = (bucket, fingerprint) => Number(this.#address.other(BigInt(bucket), fingerprint));
    #room = bucket => this.buckets[bucket].filter(slot => slot === 0n).length;

    // Inserts an item by its hash. Returns its place, and the steps in their order: which fingerprint goes into which slot, from
    // where. There is one without `from`, the last: that of the item. There are none if no bucket with room is within reach.
    insert(hash) {
        const { fingerprint, buckets } = this.locate(hash);
        const [first, second] = buckets;
        const path = this.#room(first) + this.#room(second) > 0
            ? [{ fingerprint, to: this.#room(second) > this.#room(first) ? second : first }]
            : this.#walk(fingerprint, buckets);
        const steps = path.map(({ fingerprint, from, to }) => {
            const step = { fingerprint, to, slot: this.buckets[to].indexOf(0n) };
            if (from !== undefined) Object.assign(step, { from, fromSlot: this.buckets[from].indexOf(fingerprint) });
            this.apply(step);
            return step;
        });
        return { fingerprint, buckets, steps };
    }

    // Moves or stores one fingerprint.
    apply({ fingerprint, to, slot, from, fromSlot }) {
        this.buckets[to][slot] = fingerprint;
        if (from !== undefined) this.buckets[from][fromSlot] = 0n;
    }

    // Searches breadth-first for the nearest bucket with room. Returns the moves on the path to it, the last one first.
    #walk(fingerprint, starts) {
        const nodes = starts.map(bucket => ({ bucket, incoming: fingerprint }));
        const visited = new Set(starts);
        for (const node of nodes) {
            for (const resident of this.buckets[node.bucket]) {
                const bucket = this.#other(node.bucket, resident);
                if (visited.has(bucket)) continue;
                visited.add(bucket);
                nodes.push({ bucket, incoming: resident, parent: node });
                if (this.#room(bucket) > 0) return moves(nodes.at(-1));
            }
        }
        return [];
    }
}

const moves = node =>
    node ? [{ fingerprint: node.incoming, from: node.parent?.bucket, to: node.bucket }, ...moves(node.parent)] : [];
