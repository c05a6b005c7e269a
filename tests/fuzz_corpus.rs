//! What fuzzing found worth keeping: its corpora, and the inputs that once crashed, all run again without a fuzzer.
//!
//! docs/CONTRIBUTING.md says where they come from.

#[path = "../fuzz/src/go_files.rs"]
mod go_files;
#[path = "../fuzz/src/growing.rs"]
mod growing;
#[path = "../fuzz/src/model.rs"]
mod model;
#[path = "../fuzz/src/ops.rs"]
mod ops;
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

use crate::{
    common::split_mix,
    elastic::composed::{
        self,
        operations::{Size, check},
    },
};
use std::{fs, path::Path};

/// Calls `check` with every input there is.
fn replay(target: &str, check: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut inputs = 0;
    for folder in ["fuzz/corpus", "fuzz/crashes"] {
        // A target that never crashed has no folder of crashes.
        let Ok(files) = fs::read_dir(root.join(folder).join(target)) else { continue };
        for file in files {
            let path = file.expect("the folder can be read").path();
            let input = fs::read(&path).expect("the file can be read");
            // Shown if it fails.
            println!("{}", path.display());
            check(&input);
            inputs += 1;
        }
    }
    assert!(inputs > 0, "there are no inputs of {target}");
}

#[test]
fn snapshots() {
    replay("snapshot", snapshot::check);
}

#[test]
fn operations() {
    replay("ops", ops::check);
}

#[test]
fn operations_of_growing_filters() {
    replay("growing", |input| check(input, Size::SMALL, composed::FORMATS));
}

#[test]
fn files_of_go() {
    replay("foreign", go_files::check);
}

#[cfg(feature = "redisbloom")]
#[test]
fn dumps_of_redisbloom() {
    replay("foreign", redisbloom::check);
}

#[cfg(feature = "serde")]
#[test]
fn formats_of_serde() {
    replay("serde", serde::check);
}
