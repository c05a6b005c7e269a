//! Tables with a column that are split: all slots of a bucket at once, which is faster than one fingerprint at a time.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::{Column, Keys as _, Narrow, PackedGeometry, SLOTS, keys::QUARTER};
use crate::{
    bits::{Fields, Writer, index, low_half, mask},
    table::{Instructions, Task},
};

/// A split: copies the fingerprints of a table whose bits in the column begin with `prefix` to an empty table of as many buckets,
/// whose column lacks these bits. The tables are [narrow](Narrow), and a bucket's fields [fit into a word](Column::fits_a_word).
pub(crate) struct FillPart<'a> {
    /// The layout of the buckets, which is the same in both tables.
    pub geometry: PackedGeometry,
    /// The table that is split, and its column.
    pub whole: (&'a [u8], Column),
    pub buckets: u64,
    pub part: (&'a mut [u8], Column),
    pub prefix: u32,
}

impl Task for FillPart<'_> {
    type Output = usize;

    /// Returns how many fingerprints were copied. Filtering keeps the order of the slots, so nothing is sorted again.
    ///
    /// A bucket with two of its four slots in this part, where the prefix is 1 and k is a key; lowest slots on the left:
    ///
    /// ```text
    /// keys, a quarter each      k0    k1    k2    k3         0     0     k1    k3
    /// fields in the column     0.a   1.b   0.c   1.d   ──▶   0     0      b     d
    /// marks                      0     1     0     1
    /// ```
    #[inline(always)]
    fn run<I: Instructions>(self, i: I) -> usize {
        let Self { ref geometry, whole: (bytes, whole_column), buckets, part: (part, column), prefix } = self;
        let (width, kept) = (whole_column.width(), column.width());
        let fields = Fields::new(width, SLOTS);
        let (prefixes, prefix) = (fields.splat(low_half(mask(width) & !mask(kept))), fields.splat(prefix << kept));
        let (mut low, mut upper) = (Writer::new(0), Writer::new(column.first_bit()));
        let mut items = 0;
        for bucket in 0..buckets {
            let (keys, above) = (Narrow::load(geometry, bytes, i, bucket), whole_column.word(bytes, bucket).word);
            // Marks each slot to keep with the lowest bit of its field. Empty slots, the first ones, have the field 0.
            let occupied = !mask(keys.free() * width);
            let marks = (fields.zero((above ^ prefix) & prefixes) & occupied) >> (width - 1);
            let count = marks.count_ones();
            // Packs the keys and the fields of the slots to keep.
            let quarters = i.extract(keys.0, i.spread(marks, width) * 0xffff);
            let above = i.extract(above, marks * mask(kept)) << ((SLOTS - count) * kept);
            // Moves the slots behind the empty ones. Shifts twice, because four quarters are 64 bits, which one shift cannot
            // take.
            let half_of_empty = QUARTER / 2 * (SLOTS - count);
            let keys = Narrow(quarters << half_of_empty << half_of_empty);
            low.push(part, geometry.bucket_bits(), keys.encode(geometry, i));
            upper.push(part, SLOTS * kept, above);
            items += index(count.into());
        }
        low.finish(part);
        upper.finish(part);
        items
    }
}
