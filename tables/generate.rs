//! Generates the files of this folder, on standard output:
//!
//! ```text
//! cargo run --release --example tables -- codebook > tables/codebook.tsv
//! cargo run --release --example tables -- max_load > new.tsv     (about twenty minutes on two cores)
//! cargo run --release --example tables -- max_load 4 12          (only one bucket size and fingerprint length)
//! cargo run --release --example tables -- plan tables/max_load.tsv > new.tsv   (recomputes the safe loads from measured ones)
//! ```

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use std::{env, fs, process::ExitCode};

mod max_load;
mod plan;
#[path = "../tests/common/split_mix.rs"]
mod split_mix;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let file = match words[..] {
        ["codebook"] => codebook(),
        ["max_load"] => max_load::file(max_load::groups()),
        ["max_load", b, f] => match (b.parse(), f.parse()) {
            (Ok(b), Ok(f)) => max_load::file(max_load::ADDRESSINGS.map(|addressing| plan::Group { addressing, b, f }).to_vec()),
            _ => return usage(),
        },
        ["plan", file] => match fs::read_to_string(file).as_deref().map(plan::read) {
            Ok(Some((seed, groups))) => plan::file(seed, &groups),
            Ok(None) => return fail(&format!("{file} is not a table of loads")),
            Err(error) => return fail(&format!("{file}: {error}")),
        },
        _ => return usage(),
    };
    print!("{file}");
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    fail("usage: tables codebook | max_load [BUCKET_SIZE FINGERPRINT_BITS] | plan FILE")
}

fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}

fn codebook() -> String {
    let mut rows = Vec::new();
    for a in 0..16 {
        for b in a..16 {
            for c in b..16 {
                for d in c..16 {
                    rows.push(format!("{}\t{a}\t{b}\t{c}\t{d}\n", rows.len()));
                }
            }
        }
    }
    let about = "# The semi-sorted bucket codebook: the codeword of four sorted nibbles a <= b <= c <= d. See README.md. Never reordered.";
    format!("{about}\ncodeword\ta\tb\tc\td\n{}", rows.concat())
}
