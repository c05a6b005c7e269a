//! Bytes as a file of another program.

use super::{go_files, redisbloom};

/// Bytes are hardly ever a file of both programs, and few enough that trying both takes no time.
pub fn check(input: &[u8]) {
    go_files::check(input);
    redisbloom::check(input);
}
