//! All targets in one program. So it is linked once, and all targets share the edges of the library.
//!
//! The variable `KOEL_FUZZ` names the target. Without it, the first byte of each input is the digit of its target, and the rest is
//! the target's input. `fuzz/keep` runs the program in this way, to compare the inputs of all targets with each other.

#![no_main]

use koel_fuzz::{
    composed::{self, Size},
    foreign,
    formats::FORMATS,
    ops, serde, snapshot,
};
use std::{env, sync::LazyLock};

type Check = fn(&[u8]);

const TARGETS: [(&str, Check); 5] = [
    ("snapshot", snapshot::check),
    ("ops", ops::check),
    ("growing", |input| composed::check(input, Size::SMALL, FORMATS)),
    ("foreign", foreign::check),
    ("serde", serde::check),
];

static CHOSEN: LazyLock<Option<Check>> = LazyLock::new(|| {
    let name = env::var("KOEL_FUZZ").ok()?;
    let chosen = TARGETS.iter().find(|(target, _)| *target == name);
    Some(chosen.unwrap_or_else(|| panic!("KOEL_FUZZ={name}: there is no such target")).1)
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| match (*CHOSEN, input) {
    (Some(check), _) => check(input),
    (None, [digit, rest @ ..]) => {
        if let Some((_, check)) = TARGETS.get(usize::from(digit.wrapping_sub(b'0'))) {
            check(rest);
        }
    }
    (None, []) => {}
});
