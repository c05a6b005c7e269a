//! Replays the fuzz corpora, and the inputs that once crashed, without a fuzzer.
//!
//! docs/CONTRIBUTING.md says where these inputs come from.

#[path = "../fuzz/src/go_files.rs"]
mod go_files;
#[path = "../fuzz/src/growing.rs"]
mod growing;
#[path = "../fuzz/src/pieces.rs"]
mod pieces;
#[cfg(feature = "redisbloom")]
#[path = "../fuzz/src/redisbloom.rs"]
mod redisbloom;
#[path = "../fuzz/src/repair.rs"]
mod repair;
#[cfg(feature = "serde")]
#[path = "../fuzz/src/serde.rs"]
mod serde;
#[path = "../fuzz/src/snapshot.rs"]
mod snapshot;

#[cfg(feature = "serde")]
use crate::elastic::composed::{
    FORMATS,
    operations::{Size, check},
};
use crate::{
    common::{same_bits, split_mix},
    operations::{formulas, ops, sections},
};
use koel::{CuckooFilter, ElasticFilter, hash::AnyHasher};
use std::{fs, path::Path};

/// Calls `check` with each input of the target.
fn replay(target: &str, mut check: impl FnMut(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for folder in ["fuzz/corpus", "fuzz/crashes"] {
        // A target that never crashed has no folder in `fuzz/crashes`.
        let Ok(files) = fs::read_dir(root.join(folder).join(target)) else { continue };
        for file in files {
            let path = file.expect("the folder can be read").path();
            let input = fs::read(&path).expect("the file can be read");
            // The test harness shows this line if the test fails.
            println!("{}", path.display());
            check(&input);
            inputs += 1;
        }
    }
    assert!(inputs > 0, "{target} has no inputs");
}

#[test]
fn snapshot_inputs_pass() {
    replay("snapshot", snapshot::check);
}

/// Enough inputs are snapshots once they are repaired: with the number of another version, for example, none would be.
#[test]
fn repaired_inputs_are_read() {
    let (mut fixed, mut growing) = (0, 0);
    replay("snapshot", |input| {
        let (bytes, _) = repair::snapshot(input);
        fixed += usize::from(CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id).is_ok());
        growing += usize::from(ElasticFilter::from_bytes_with(&bytes, AnyHasher::from_id).is_ok());
    });
    assert!(fixed >= 15 && growing >= 9, "{fixed} filters of fixed size and {growing} growing ones");
}

#[test]
fn operation_inputs_pass() {
    replay("ops", ops::check);
}

/// Without these formats, an input would run other operations than in the fuzzer.
#[cfg(feature = "serde")]
#[test]
fn growing_filter_inputs_pass() {
    replay("growing", |input| check(input, Size::SMALL, FORMATS));
}

#[test]
fn go_file_inputs_pass() {
    replay("foreign", go_files::check);
}

#[cfg(feature = "redisbloom")]
#[test]
fn redisbloom_dump_inputs_pass() {
    replay("foreign", redisbloom::check);
}

#[cfg(feature = "serde")]
#[test]
fn serde_inputs_pass() {
    replay("serde", serde::check);
}
