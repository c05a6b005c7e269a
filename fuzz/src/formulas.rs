//! The formulas of docs/FORMAT.md: where an item belongs, and what the bits of a table say, without the library's arithmetic.

#![allow(clippy::cast_possible_truncation, reason = "halves and fields of known width")]

use super::split_mix::{mixed, unmixed};
use koel::{Addressing, Params, TableKind};
use std::{collections::BTreeMap, sync::OnceLock};

pub const MAGIC: [u8; 8] = *b"KOEL\r\n\x1a\n";
pub const HEADER: usize = 64;

/// 2⁶⁴ divided by the golden ratio, made odd.
const C: u64 = 0x9e37_79b9_7f4a_7c15;

/// A fingerprint and the smaller of its two buckets. A filter cannot tell items with the same key apart.
pub type Key = (u32, u64);

/// The parameters of a table.
#[derive(Clone, Copy, Debug)]
pub struct Formulas {
    pub is_packed: bool,
    pub f: u32,
    pub b: u32,
    pub m: u64,
    pub is_power_of_two: bool,
}

impl Formulas {
    pub fn of(params: &Params) -> Self {
        Self {
            is_packed: params.table() == TableKind::Packed,
            f: params.fingerprint_bits(),
            b: params.bucket_size(),
            m: params.buckets(),
            is_power_of_two: params.addressing() == Addressing::PowerOfTwo,
        }
    }

    pub fn bucket_bits(&self) -> u32 {
        if self.is_packed { 4 * self.f.saturating_sub(1) } else { self.b * self.f }
    }

    /// Returns L of docs/FORMAT.md, or `None` if it exceeds 64 bits.
    pub fn table_bytes(&self) -> Option<u64> {
        Some(self.m.checked_mul(self.bucket_bits().into())?.div_ceil(8))
    }

    pub fn alternate(&self, bucket: u64, fingerprint: u32) -> u64 {
        let t = u64::from(fingerprint);
        if self.is_power_of_two {
            return (bucket ^ ((t * 0x5bd1_e995) & 0xffff_ffff)) % self.m;
        }
        let u = t.wrapping_mul(C);
        let g = u.wrapping_mul(u >> 32);
        let s = upper(g, self.m) | 1;
        ((u128::from(s) + u128::from(self.m) - u128::from(bucket)) % u128::from(self.m)) as u64
    }

    /// Returns the first bucket and the fingerprint of a prehashed item.
    pub fn locate(&self, hash: u64) -> (u64, u32) {
        let most = (1u64 << self.f) - 1;
        let x = mixed(hash);
        if self.is_power_of_two {
            return ((x >> 32) % self.m, ((x & 0xffff_ffff) % most + 1) as u32);
        }
        let r = x.wrapping_mul(self.m) >> 32;
        (upper(x, self.m), (((r * most) >> 32) + 1) as u32)
    }

    pub fn key(&self, hash: u64) -> Key {
        let (bucket, fingerprint) = self.locate(hash);
        self.key_in(bucket, fingerprint)
    }

    pub fn key_in(&self, bucket: u64, fingerprint: u32) -> Key {
        (fingerprint, bucket.min(self.alternate(bucket, fingerprint)))
    }

    /// Returns a hash that has this key.
    pub fn hash(&self, (fingerprint, bucket): Key) -> u64 {
        let t = u64::from(fingerprint) - 1;
        if self.is_power_of_two {
            return unmixed(bucket << 32 | t);
        }
        // The smallest x whose product with m has the bucket as its upper half, and the fingerprint in its lower half.
        let r = (t << 32).div_ceil((1 << self.f) - 1);
        let x = (u128::from(bucket) << 64 | u128::from(r) << 32).div_ceil(self.m.into()) as u64;
        unmixed(x)
    }

    /// Returns the items in a snapshot with these parameters, or `None` if its table, its list of copies or its item count is
    /// invalid. Whether the header is valid, and which error an invalid snapshot gives, is for tests/reader.py to say.
    pub fn contents(&self, snapshot: &[u8]) -> Option<BTreeMap<Key, u32>> {
        let body = &snapshot[HEADER..snapshot.len() - 8];
        let (table, listed) = body.split_at_checked(usize::try_from(self.table_bytes()?).ok()?)?;
        let mut items = self.items(&self.table(table)?);
        let is_valid = self.add_copies(&mut items, listed);
        let total: u64 = items.values().map(|&copies| u64::from(copies)).sum();
        (is_valid && total == number(snapshot, 32)).then_some(items)
    }

    /// Adds the copies in a list to `items`. Returns false if the list is invalid.
    fn add_copies(&self, items: &mut BTreeMap<Key, u32>, listed: &[u8]) -> bool {
        let Some((total, list)) = listed.split_at_checked(8) else { return true };
        let Some((&[width], entries)) = list.split_first_chunk() else { return false };
        let (key_bytes, width) = (self.list_key_bytes(), usize::from(width));
        let len = entries.len() / (key_bytes + width);
        if len == 0 || entries.len() != len * (key_bytes + width) || ![0, 1, 2, 4].contains(&width) {
            return false;
        }
        let (list_keys, counts) = entries.split_at(len * key_bytes);
        let (mut last, mut sum, mut largest) = (None, 0, 0);
        let keys: BTreeMap<u64, Key> = items.keys().map(|&key| (self.list_key(key), key)).collect();
        for (at, key) in list_keys.chunks_exact(key_bytes).enumerate() {
            let list_key = short_number(key);
            let more = if width == 0 { 1 } else { short_number(&counts[at * width..][..width]) as u32 };
            let copies = keys.get(&list_key).and_then(|key| items.get_mut(key));
            let Some((copies, more)) = copies.and_then(|copies| copies.checked_add(more).map(|sum| (copies, sum))) else {
                return false;
            };
            if last >= Some(list_key) || *copies == more {
                return false;
            }
            largest = largest.max(more - *copies);
            (last, sum) = (Some(list_key), sum + u64::from(more - *copies));
            *copies = more;
        }
        let needed = [1, 0xff, 0xffff].iter().position(|&most| largest <= most).map_or(4, |width| width);
        sum == number(total, 0) && width == needed
    }

    /// Gives the entries of a list the keys of the first items in these buckets, and sets the total, which it returns. The list
    /// stays invalid if there are fewer items than entries, or an entry has no copies.
    pub fn repair_copies(&self, buckets: &[Vec<u32>], listed: &mut [u8]) -> u64 {
        let Some((total, list)) = listed.split_at_mut_checked(8) else { return 0 };
        let Some((&mut [width], entries)) = list.split_first_chunk_mut() else { return 0 };
        let (key_bytes, width) = (self.list_key_bytes(), usize::from(width));
        let len = entries.len() / (key_bytes + width);
        let (list_keys, counts) = entries.split_at_mut(len * key_bytes);
        let mut keys: Vec<u64> = self.items(buckets).keys().map(|&key| self.list_key(key)).collect();
        keys.sort_unstable();
        let mut sum = 0_u64;
        for (at, (entry, key)) in list_keys.chunks_exact_mut(key_bytes).zip(keys).enumerate() {
            entry.copy_from_slice(&key.to_le_bytes()[..key_bytes]);
            let count = counts.get(at * width..(at + 1) * width).unwrap_or_default();
            sum = sum.wrapping_add(if width == 0 { 1 } else { short_number(&count[..width.min(8)]) });
        }
        total.copy_from_slice(&sum.to_le_bytes());
        sum
    }

    /// Returns the key of an item in the list of copies.
    fn list_key(&self, (fingerprint, bucket): Key) -> u64 {
        bucket << self.f | u64::from(fingerprint)
    }

    /// Returns the length of such a key.
    pub fn list_key_bytes(&self) -> usize {
        (self.f + (u64::BITS - self.m.saturating_sub(1).leading_zeros())).div_ceil(8).max(1) as usize
    }

    /// Returns the parameters in a header, valid or not.
    pub fn of_header(header: &[u8]) -> Self {
        Self {
            is_packed: header[10] == 1,
            f: header[11].into(),
            b: header[12].into(),
            m: number(header, 24),
            is_power_of_two: header[13] == 1,
        }
    }

    /// Returns whether the parameters are valid.
    pub fn is_possible(&self) -> bool {
        let Self { f, b, m, .. } = *self;
        let is_valid_table =
            if self.is_packed { (4..=32).contains(&f) && b == 4 } else { (2..=32).contains(&f) && (1..=16).contains(&b) };
        let is_valid_addressing = if self.is_power_of_two {
            m.is_power_of_two() && m <= 1 << 32
        } else {
            is_valid_table && m >= 2 && m % 2 == 0 && m <= 1 << (64 - f)
        };
        is_valid_table && is_valid_addressing && u128::from(m) * u128::from(self.bucket_bits()) <= (1 << 64) - 8
    }

    /// Returns the slots of every bucket, or `None` if the table is invalid.
    pub fn table(&self, bytes: &[u8]) -> Option<Vec<Vec<u32>>> {
        let in_order = |slots: &Vec<u32>| !self.is_packed || slots.is_sorted_by_key(|&slot| (slot & 15, slot >> 4));
        self.slots(bytes).filter(|buckets| buckets.iter().all(in_order))
    }

    /// Like [`table`](Self::table), but accepts the high parts of packed buckets in any order.
    pub fn slots(&self, bytes: &[u8]) -> Option<Vec<Vec<u32>>> {
        let mut bits = Bits { bytes, at: 0 };
        let mut buckets = Vec::new();
        for _ in 0..self.m {
            let slots = if self.is_packed { self.packed(&mut bits)? } else { (0..self.b).map(|_| bits.take(self.f)).collect() };
            buckets.push(slots);
        }
        let rest = (8 * bytes.len() - bits.at) as u32;
        (bits.take(rest) == 0).then_some(buckets)
    }

    fn packed(&self, bits: &mut Bits<'_>) -> Option<Vec<u32>> {
        let nibbles = codebook().get(bits.take(12) as usize)?;
        Some(nibbles.iter().map(|&nibble| bits.take(self.f - 4) << 4 | u32::from(nibble)).collect())
    }

    /// Changes the bytes so that they are a valid table. The slots of a packed bucket are sorted by their low nibbles, and with
    /// `all_in_order` then by their high parts.
    pub fn repair(&self, bytes: &mut [u8], all_in_order: bool) {
        let last = bytes.len() - 1;
        let used = (self.m * u64::from(self.bucket_bits()) % 8) as u32;
        if used != 0 {
            bytes[last] &= (1 << used) - 1;
        }
        if !self.is_packed {
            return;
        }
        let (mut from, mut to) = (0, 0);
        for _ in 0..self.m {
            let mut bits = Bits { bytes, at: from };
            let nibbles = codebook()[bits.take(12) as usize % codebook().len()];
            let mut slots = nibbles.map(|nibble| bits.take(self.f - 4) << 4 | u32::from(nibble));
            from = bits.at;
            if all_in_order {
                slots.sort_unstable_by_key(|&slot| (slot & 15, slot >> 4));
            }
            let nibbles = slots.map(|slot| (slot & 15) as u8);
            let codeword = codebook().binary_search(&nibbles).expect("the nibbles ascend") as u32;
            put(bytes, &mut to, 12, codeword);
            slots.iter().for_each(|slot| put(bytes, &mut to, self.f - 4, slot >> 4));
        }
    }

    /// Returns the items in these buckets, with the count of each.
    pub fn items(&self, buckets: &[Vec<u32>]) -> BTreeMap<Key, u32> {
        let mut items = BTreeMap::new();
        for (bucket, slots) in (0..).zip(buckets) {
            for &fingerprint in slots.iter().filter(|&&fingerprint| fingerprint != 0) {
                *items.entry(self.key_in(bucket, fingerprint)).or_default() += 1;
            }
        }
        items
    }
}

/// Reads consecutive bit fields.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, bits: u32) -> u32 {
        let start = self.at;
        self.at += bits as usize;
        (start..self.at).rev().fold(0, |value, n| value << 1 | u32::from(self.bytes[n / 8] >> (n % 8) & 1))
    }
}

/// Writes a bit field at `at`, and advances `at`.
fn put(bytes: &mut [u8], at: &mut usize, bits: u32, value: u32) {
    for n in 0..bits {
        bytes[*at / 8] = bytes[*at / 8] & !(1 << (*at % 8)) | ((value >> n & 1) as u8) << (*at % 8);
        *at += 1;
    }
}

/// Reads the little-endian number in the eight bytes at `at`.
pub fn number(bytes: &[u8], at: usize) -> u64 {
    (0..8).fold(0, |value, n| value | u64::from(bytes[at + n]) << (8 * n))
}

fn upper(x: u64, y: u64) -> u64 {
    ((u128::from(x) * u128::from(y)) >> 64) as u64
}

/// The ascending quadruples of nibbles in lexicographic order.
fn codebook() -> &'static [[u8; 4]] {
    static CODEBOOK: OnceLock<Vec<[u8; 4]>> = OnceLock::new();
    CODEBOOK.get_or_init(|| {
        let nibbles = |word: u16| [12, 8, 4, 0].map(|shift| (word >> shift & 15) as u8);
        (0..=u16::MAX).map(nibbles).filter(|nibbles| nibbles.is_sorted()).collect()
    })
}

/// Reads a little-endian number of at most eight bytes.
pub fn short_number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
