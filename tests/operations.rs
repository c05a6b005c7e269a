//! Random operations of fixed filters, which must equal a multiset to the last bit, with every kernel: no false negatives, no lost
//! items, no effect of a refused operation, and only zeros in a drained table. The fuzz target `ops` runs the same code in
//! fuzz/src/ops.rs.

#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../fuzz/src/formulas.rs"]
pub(crate) mod formulas;
#[path = "../fuzz/src/ops.rs"]
pub(crate) mod ops;
#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../fuzz/src/sections.rs"]
pub(crate) mod sections;

use crate::common::{same_bits, sequences::Target, split_mix};
use koel::Kernel;
use ops::{HEADER, STEP, check, describe};

/// Steps that an input describes, and items of its lists.
const RECORDS: usize = 120;

const TARGET: Target = Target { header: HEADER, record: STEP, check, describe };

/// All fingerprint lengths of both tables, with both addressings, and the packed ones with each pair of kernels. Only here do fixed
/// filters of all these kinds run all operations, so this test alone finds a defect of one length or bucket size.
#[test]
fn random_sequences_of_operations_keep_every_promise() {
    let pairs = Kernel::available().count().pow(2);
    let packed = (0..29).flat_map(|f| (0..pairs).map(move |_| (1, f, 0)));
    let single = (0..31).flat_map(|f| [1, 2, 3, 4, 5, 8, 16].map(|b| (0, f, b - 1)));
    let kinds = packed.chain(single).flat_map(|(table, f, b)| (0..8).map(move |other| (table | other << 1, f, b)));
    let inputs = (0..).zip(kinds).map(|(seed, (kind, f, b))| {
        let mut input = TARGET.random(seed, RECORDS);
        input[..3].copy_from_slice(&[kind, f, b]);
        input
    });
    TARGET.check_all(inputs, RECORDS);
}
