//! Fuzz target: bytes as a file of another program.

use super::{go_files, redisbloom};

/// Tries both programs. Inputs are short, so this is fast.
pub fn check(input: &[u8]) {
    go_files::check(input);
    redisbloom::check(input);
}
