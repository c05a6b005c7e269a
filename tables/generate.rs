//! Writes the files of this folder anew, on standard output:
//!
//! ```text
//! cargo run --release --example tables -- codebook > tables/codebook.tsv
//! cargo run --release --example tables -- max_load > tables/max_load.tsv    (half an hour on two cores)
//! cargo run --release --example tables -- max_load 4 12                     (one bucket size and fingerprint length)
//! ```

use std::{env, process::ExitCode};

mod max_load;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["codebook"] => codebook(),
        ["max_load"] => max_load::print(&max_load::BUCKET_SIZES, &max_load::FINGERPRINT_BITS),
        ["max_load", b, f] => match (b.parse(), f.parse()) {
            (Ok(b), Ok(f)) => max_load::print(&[b], &[f]),
            _ => return usage(),
        },
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: tables codebook | tables max_load [BUCKET_SIZE FINGERPRINT_BITS]");
    ExitCode::from(2)
}

fn codebook() {
    println!(
        "# The semi-sorted bucket codebook: the codeword of four sorted nibbles a <= b <= c <= d. See README.md. Never reordered."
    );
    println!("codeword\ta\tb\tc\td");
    let mut codeword = 0;
    for a in 0..16 {
        for b in a..16 {
            for c in b..16 {
                for d in c..16 {
                    println!("{codeword}\t{a}\t{b}\t{c}\t{d}");
                    codeword += 1;
                }
            }
        }
    }
}
