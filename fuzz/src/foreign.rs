//! Fuzz target: bytes as a file of Go's library or as a dump of RedisBloom.

use super::{go_files, redisbloom};

/// Checks the bytes in both formats. Inputs are short, so this is fast.
pub fn check(input: &[u8]) {
    go_files::check(input);
    redisbloom::check(input);
}
