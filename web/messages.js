// The messages of errors in snapshots. The WebAssembly module has only the numbers of their texts (src/message.rs of the library).

// In the order of Rust's sources. `{}` is a gap for a number.
const TEXTS = [
    "a snapshot of version {}, written by a development version of this library, but this release reads version {}",
    "a snapshot of version {}, but this release reads version {}",
    "header",
    "table kind {}: 0 is single, 1 is packed, 2 is that of filters that grow",
    "this is a filter of fixed size",
    "this is a filter that grows",
    "addressing {}: 0 is any size, 1 is powers of two",
    "{} items in {} slots, and {} bytes of extra copies",
    "a reserved field is {}; it must be 0",
    "buckets of {} slots, but those of filters that grow have {}",
    "staggered {}: 0 is no, 1 is yes",
    "these bytes do not begin as a koel snapshot does",
    "the bytes end too early: there are {}, and the header alone has {}",
    "end",
    "partition {} has {} records, more than this machine can address",
    "header of a partition, or its list of shards,",
    "table of a shard",
    "list of a shard's items",
    "list of extra copies",
    "the bytes behind a table or a list are not zero",
    "shards of depth {} need a directory that is far larger than the filter",
    "partition {} takes {} bytes, but its header says {}",
    "partition {} holds {} items, but its header says {}",
    "a record is neither that of a table nor that of a list",
    "the list of shards ends before every hash has a shard",
    "the generation of a record is not the next one",
    "the record of extra copies is not behind those of the shards",
    "the record of a shard: its depth is out of range",
    "the record of a shard: its prefix is not the next one",
    "the record of a shard: it has more items than slots",
    "the record of a shard: it is a list, but the filter does not grow",
    "the record of a shard: its list has 2³² items or more",
    "the table holds {} items, but the header says {}",
    "table",
    "the table of a shard holds {} items, but the list says {}",
    "bucket {} has the codeword {}, which is not in the codebook",
    "the fingerprints of bucket {} are not in order",
    "a fingerprint of bucket {} has upper bits only",
    "the buckets changed while they were read",
    "the counts of extra copies have a wrong length",
    "an item has extra copies, but the table does not have it",
    "the entries have {} extra copies, but the list says {}",
    "an item has extra copies, but no table has it",
    "an entry of extra copies is out of order, or has no copies",
    "an item has more than 2³² − 1 copies",
    "the items of a shard's list are not in order",
    "an item of a shard's list is one that the shard cannot have",
    "an item of a shard's list has no copies",
    "the counts of a list are longer than they need to be",
    "bits beyond the last bucket are set",
    "the bytes end too early: there are {}, and there should be at least {}",
    "the snapshot ends here, and {} more bytes follow it",
    "the false-positive rate is not between 0 and 1",
    "the capacity is more than the maximum capacity",
    "the table does not have fingerprints of this length",
    "there are too many partitions",
    "the number of buckets is odd or out of range",
    "the depths are out of range",
    "the shards are too large for their depth",
    "there are too many spare bits",
    "a shard is larger than the address space",
    "buckets: {} given, but any-size addressing takes even numbers from {} to {}",
    "buckets: {} given, but power-of-two addressing takes powers of two from {} to {}",
    "fingerprint bits: {} given, but the single table takes {} to {}",
    "fingerprint bits: {} given, but the packed table takes {} to {}",
    "bucket size: {} given, but the single table takes {} to {}",
    "bucket size: {} given, but the packed table takes {}",
];

const CORRUPT = "the snapshot is corrupt, use another copy";
const REMEDIES = {
    Magic: "pass a whole snapshot, as koel writes it",
    TrailingBytes: "pass exactly one snapshot",
    Hasher: "build it again with the default hasher",
    OutOfMemory: "close filters that are not needed",
};
const HASHERS = { 1: "xxh3", 2: "metrohash64", 3: "redisbloom" };

const hex = (number, digits) => `0x${number.toString(16).padStart(digits, "0")}`;

const hasherName = id => HASHERS[id] ?? hex(id, 4);

// Returns the number that stands for a text: the FNV-1a hash of its UTF-8.
const numberOf = text =>
    new TextEncoder().encode(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5) >>> 0;

// Returns the message of an error of a kind, from the number of its text, its offset, and three numbers for the gaps.
export function describe(kind, textNumber, offset, ...numbers) {
    const [given, known] = numbers;
    const text = TEXTS.find(text => numberOf(text) === Number(textNumber)) ?? "";
    const at = `at byte ${offset}: `;
    switch (kind) {
        case "OutOfMemory":
            return `cannot allocate ${given} bytes; ${REMEDIES[kind]}`;
        case "Hasher":
            return `${at}the filter was built with ${hasherName(given)}, which this package does not have; ${REMEDIES[kind]}`;
        case "HeaderChecksum":
        case "BodyChecksum": {
            const sums = `the checksum stored is ${hex(given, 16)}, the one computed ${hex(known, 16)}`;
            return `${at}the ${text} was altered: ${sums}; ${CORRUPT}`;
        }
        case "Version": {
            const remedy = given < known ? "build it again with a later koel" : "use a later release of this package";
            return `${at}${text.replace(/\{\}/g, () => numbers.shift())}; ${remedy}`;
        }
        default:
            return `${at}${text.replace(/\{\}/g, () => numbers.shift())}; ${REMEDIES[kind] ?? CORRUPT}`;
    }
}
