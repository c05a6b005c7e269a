//! Buckets that fit into a word: fingerprints of up to 16 bits, decoded into four lanes of 16.

use core::{hint::select_unpredictable, marker::PhantomData};

use super::{Form, Keys, Packed};
use crate::{
    bits,
    bits::Fields,
    bits::{low_half, low_quarter},
    storage::Storage,
    table::Fingerprint,
    table::codebook::{self, CODEWORD_BITS},
};

const LANE: u32 = u16::BITS;
const LANES: Fields = Fields::new(LANE, 4);

/// How fields of a word are moved to lanes, and back.
pub(crate) trait Spread {
    /// The four lowest fields of `width` bits as the lowest bits of the lanes.
    fn spread(fields: u64, width: u32) -> u64;
    /// The reverse. Nothing is asked of the lanes' other bits.
    fn gather(lanes: u64, width: u32) -> u64;
    /// The four lowest nibbles as the highest of the lanes.
    fn spread_nibbles(nibbles: u16) -> u64;
    /// The reverse.
    fn gather_nibbles(lanes: u64) -> u16;
}

/// By shifts and masks.
pub(crate) struct Shifts;

impl Spread for Shifts {
    #[inline(always)]
    fn spread(fields: u64, width: u32) -> u64 {
        let mask = (1 << width) - 1;
        let (second, third, fourth) = (fields >> width, fields >> (2 * width), fields >> (3 * width));
        fields & mask | (second & mask) << LANE | (third & mask) << (2 * LANE) | (fourth & mask) << (3 * LANE)
    }

    #[inline(always)]
    fn gather(lanes: u64, width: u32) -> u64 {
        let mask = (1 << width) - 1;
        let (second, third, fourth) = (lanes >> LANE, lanes >> (2 * LANE), lanes >> (3 * LANE));
        lanes & mask | (second & mask) << width | (third & mask) << (2 * width) | (fourth & mask) << (3 * width)
    }

    #[inline(always)]
    fn spread_nibbles(nibbles: u16) -> u64 {
        let pairs = u64::from(nibbles);
        let pairs = (pairs | pairs << 24) & 0x0000_00ff_0000_00ff;
        (pairs | pairs << 12) << 12 & 0xf000_f000_f000_f000
    }

    #[inline(always)]
    fn gather_nibbles(lanes: u64) -> u16 {
        let nibbles = lanes >> 12 & 0x000f_000f_000f_000f;
        let pairs = (nibbles | nibbles >> 12) & 0x0000_00ff_0000_00ff;
        low_quarter(pairs | pairs >> 24)
    }
}

/// The form of narrow buckets.
pub(crate) struct Narrow<S>(PhantomData<S>);

impl<S: Spread> Form for Narrow<S> {
    type Keys = Quad;

    #[inline(always)]
    fn load<M: Storage>(table: &Packed<M>, bucket: u64) -> Quad {
        let word = table.word(bucket);
        Quad(S::spread(word >> CODEWORD_BITS, table.high_bits) | S::spread_nibbles(codebook::decode(word)))
    }

    #[inline(always)]
    fn store(table: &mut Packed, bucket: u64, Quad(lanes): Quad) {
        let codeword = u64::from(codebook::encode(S::gather_nibbles(lanes)));
        let (bit, width) = (table.bit(bucket), table.bucket_bits);
        bits::set(&mut table.memory, bit, width, S::gather(lanes, table.high_bits) << CODEWORD_BITS | codeword);
    }
}

/// Four keys, in ascending order from the lowest lane: the high part in the lower bits, the low nibble in the highest four.
#[derive(Clone, Copy)]
pub(crate) struct Quad(u64);

impl Quad {
    /// The bits of the first `lanes` lanes.
    #[inline(always)]
    fn first(lanes: u32) -> u64 {
        // Up to all four, which is more than one shift can do.
        (1u64 << (LANE / 2 * lanes) << (LANE / 2 * lanes)).wrapping_sub(1)
    }
}

impl Keys for Quad {
    type Key = u64;

    #[inline(always)]
    fn key(fingerprint: Fingerprint) -> u64 {
        u64::from(fingerprint.get() >> 4 | (fingerprint.get() & 15) << 12)
    }

    #[inline(always)]
    fn free(self) -> u32 {
        self.0.trailing_zeros() / LANE
    }

    #[inline(always)]
    fn holds(self, key: u64) -> bool {
        LANES.equal(self.0, low_half(key)) != 0
    }

    #[inline(always)]
    fn insert(self, key: u64) -> Self {
        let lane = |n: u32| u32::from((self.0 >> (n * LANE) & 0xffff) < key);
        // As many lanes move down as are less, into the empty one and after it.
        let less = lane(1) + lane(2) + lane(3);
        let (moved, kept) = (Self::first(less), !Self::first(less + 1));
        Self(self.0 >> LANE & moved | key << (less * LANE) | self.0 & kept)
    }

    #[inline(always)]
    fn remove(self, key: u64) -> Self {
        // Everything before it moves up.
        let place = LANES.equal(self.0, low_half(key)).trailing_zeros() / LANE;
        let (moved, kept) = (Self::first(place), !Self::first(place + 1));
        Self((self.0 & moved) << LANE | self.0 & kept)
    }

    #[inline(always)]
    fn select(condition: bool, keys: Self, others: Self) -> Self {
        Self(select_unpredictable(condition, keys.0, others.0))
    }

    #[inline(always)]
    fn values(self) -> [u32; 4] {
        let value = |n: u32| u32::from(low_quarter(self.0 >> (n * LANE)).rotate_left(4));
        [value(0), value(1), value(2), value(3)]
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        // Each lane from the one above it, all at once: with the highest bit of the greater set and that of the less cleared, no
        // lane borrows from the next. Where the highest bits differ they decide, where they do not the borrow does.
        let (less, greater) = (self.0 & Self::first(3), self.0 >> LANE);
        let tops = LANES.tops();
        let rest = (greater | tops) - (less & !tops);
        !(greater & !less | !(greater ^ less) & rest) & tops
    }
}
