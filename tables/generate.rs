//! Generates the files of this folder, on standard output:
//!
//! ```text
//! cargo run --release --example tables -- codebook > tables/codebook.tsv
//! cargo run --release --example tables -- max_load > new.tsv     (about twenty minutes on two cores)
//! cargo run --release --example tables -- max_load 4 12          (only one bucket size and fingerprint length)
//! cargo run --release --example tables -- safe_loads > src/params/safe_loads.rs   (from tables/max_load.tsv)
//! cargo run --release --example tables -- loads                 (a Markdown table of planned loads)
//! ```

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use koel::{CuckooFilter, TableKind};
use std::{env, fmt::Write as _, process::ExitCode};

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
        ["safe_loads"] => match plan::read(include_str!("max_load.tsv")) {
            Some((_, groups)) => plan::source(&groups, max_load::ADDRESSINGS, &max_load::BUCKET_SIZES),
            None => return fail("tables/max_load.tsv is not a table of loads"),
        },
        ["loads"] => loads(),
        _ => return usage(),
    };
    print!("{file}");
    ExitCode::SUCCESS
}

/// Returns the loads of the smallest tables for a number of items, by bucket size and length of fingerprints.
fn loads() -> String {
    const ITEMS: [(usize, &str); 5] =
        [(100, "100"), (1000, "1000"), (10_000, "10,000"), (1_000_000, "1 M"), (10_000_000, "10 M")];
    let header = ITEMS.map(|(_, items)| format!(" {items} items |")).concat();
    let mut text = format!("% of the slots, any-size addressing.\n\n| b | f |{header}\n|---:|---:|---:|---:|---:|---:|---:|\n");
    for b in [1, 2, 3, 4, 8] {
        for f in [4, 5, 6, 7, 8, 12, 32] {
            let load = |items| {
                let builder = CuckooFilter::builder().table(TableKind::Single).bucket_size(b).fingerprint_bits(f);
                let slots = builder.capacity(items).params().expect("valid parameters").slots();
                format!(" {:.1} |", 100.0 * items as f64 / slots as f64)
            };
            let _ = writeln!(text, "| {b} | {f} |{}", ITEMS.map(|(items, _)| load(items)).concat());
        }
    }
    text
}

fn usage() -> ExitCode {
    fail("usage: tables codebook | max_load [BUCKET_SIZE FINGERPRINT_BITS] | safe_loads | loads")
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
