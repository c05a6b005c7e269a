//! Generates the Rust tables that the library includes: the semi-sorted bucket codebook, and the measured
//! safe loads of `tables/max_load.tsv`. Nothing else happens here.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const MAX_LOAD: &str = "tables/max_load.tsv";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={MAX_LOAD}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write(&out.join("codebook.rs"), &codebook());
    let rows = fs::read_to_string(MAX_LOAD).unwrap_or_else(|error| panic!("{MAX_LOAD}: {error}"));
    write(&out.join("max_load.rs"), &max_load(&rows));
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Every sorted quadruple of nibbles a ≤ b ≤ c ≤ d, in lexicographic order: the codeword of a quadruple is its
/// place in this list. Paper: section 5.2, "semi-sorting buckets".
fn codebook() -> String {
    let mut words = Vec::new();
    for a in 0..16u16 {
        for b in a..16 {
            for c in b..16 {
                for d in c..16 {
                    words.push(a | b << 4 | c << 8 | d << 12);
                }
            }
        }
    }
    let mut text = format!(
        "/// The codeword's four nibbles, the smallest in the lowest bits.\nstatic NIBBLES: [u16; {}] = [\n",
        words.len()
    );
    for word in words {
        let _ = write!(text, "{word:#06x},");
    }
    text.push_str("\n];\n");
    text
}

/// Turns `tables/max_load.tsv` into an array of rows, in the order of the file.
fn max_load(tsv: &str) -> String {
    let mut text = String::from("static ROWS: &[Row] = &[\n");
    for (number, line) in tsv.lines().enumerate() {
        if line.starts_with('#') || line.starts_with("addressing\t") {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [addressing, b, f, log2_buckets, safe_load, ..] = fields[..] else {
            panic!("{MAX_LOAD}:{}: five columns or more expected", number + 1);
        };
        let load: f64 = safe_load.parse().unwrap_or_else(|error| panic!("{MAX_LOAD}:{}: {error}", number + 1));
        let _ = writeln!(
            text,
            "Row {{ addressing: Addressing::{addressing}, bucket_size: {b}, fingerprint_bits: {f}, log2_buckets: {log2_buckets}, load: {} }},",
            (load * 10_000.0).round(),
        );
    }
    text.push_str("];\n");
    text
}
