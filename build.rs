//! Generates the tables that the library includes, as Rust source: the codebook of semi-sorted buckets, and the measured safe
//! loads of `tables/max_load.tsv`. Also sets the cfg names that combine features and target.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const MAX_LOAD: &str = "tables/max_load.tsv";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={MAX_LOAD}");
    conditions();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write(&out.join("codebook.rs"), &codebook());
    let rows = fs::read_to_string(MAX_LOAD).unwrap_or_else(|error| panic!("{MAX_LOAD}: {error}"));
    write(&out.join("max_load.rs"), &max_load(&rows));
}

/// Gives one name to each condition that depends on both features and target.
fn conditions() {
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|given| given == value);
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    for (name, holds) in [
        // x86-64 has instructions that the portable kernel cannot use.
        ("x86_kernels", has("KERNELS") && is("CARGO_CFG_TARGET_ARCH", "x86_64")),
        // The `metrohash` crate reads words in native byte order, but hashes must not depend on the machine.
        ("go_files", has("METROHASH") && is("CARGO_CFG_TARGET_ENDIAN", "little")),
        // Linux provides huge pages of 2 MiB through `madvise`.
        ("huge_pages", has("HUGE_PAGES") && is("CARGO_CFG_TARGET_OS", "linux")),
    ] {
        println!("cargo::rustc-check-cfg=cfg({name})");
        if holds {
            println!("cargo::rustc-cfg={name}");
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// All sorted quadruples of nibbles a ≤ b ≤ c ≤ d, in lexicographic order: the codeword of a quadruple is its index in this list.
/// Paper: section 5.2, "semi-sorting buckets".
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
    let mut text =
        format!("/// The codeword's four nibbles, the smallest in the lowest bits.\nconst NIBBLES: [u16; {}] = [\n", words.len());
    for word in words {
        let _ = write!(text, "{word:#06x},");
    }
    text.push_str("\n];\n");
    text
}

/// The sizes of tables with a load of their own, as logarithms of the number of buckets: 0 to 40, as far as the file goes.
const SIZES: usize = 41;

/// Two arrays: the kinds of tables in `tables/max_load.tsv`, in its order, and their loads by size, in ten-thousandths. A size
/// between two rows has the smaller load of the two. A kind is a number, from the highest bit: 1 bit of addressing, 5 of b, 6 of
/// f.
fn max_load(tsv: &str) -> String {
    let mut kinds: Vec<(u32, [Option<u32>; SIZES])> = Vec::new();
    let mut last = None;
    for (number, line) in tsv.lines().enumerate() {
        if line.starts_with('#') || line.starts_with("addressing\t") {
            continue;
        }
        let place = number + 1;
        let (kind, size, load) =
            row(line).unwrap_or_else(|| panic!("{MAX_LOAD}:{place}: addressing, b, f, log2_buckets, load expected"));
        assert!(last.replace((kind, size)) < Some((kind, size)), "{MAX_LOAD}:{place}: out of order");
        if kinds.last().is_none_or(|last| last.0 != kind) {
            kinds.push((kind, [None; SIZES]));
        }
        if let Some((_, loads)) = kinds.last_mut() {
            loads[size] = Some(load);
        }
    }
    let mut text = format!("static KINDS: [u16; {}] = [\n", kinds.len());
    for (kind, _) in &kinds {
        let _ = write!(text, "{kind:#06x},");
    }
    let _ = write!(text, "\n];\nstatic LOADS: [[u16; {SIZES}]; {}] = [\n", kinds.len());
    for (_, loads) in &kinds {
        let _ = writeln!(text, "{:?},", every_size(loads));
    }
    text.push_str("];\n");
    text
}

/// The load of each size: its own, or the smaller one of its neighbours.
fn every_size(loads: &[Option<u32>; SIZES]) -> [u32; SIZES] {
    std::array::from_fn(|size| {
        let below = loads[..=size].iter().rev().find_map(|&load| load);
        let above = loads[size..].iter().find_map(|&load| load);
        below.into_iter().chain(above).min().expect("every kind has a row")
    })
}

/// The kind, the size and the load of a row.
fn row(line: &str) -> Option<(u32, usize, u32)> {
    let mut fields = line.split('\t');
    let addressing = match fields.next()? {
        "AnySize" => 0,
        "PowerOfTwo" => 1,
        _ => return None,
    };
    let mut number = |most: usize| fields.next()?.parse().ok().filter(|&number: &usize| number <= most);
    let (b, f, log2_buckets) = (number(16)?, number(32)?, number(SIZES - 1)?);
    let load: f64 = fields.next()?.parse().ok()?;
    let load = (load * 10_000.0).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 10,000")]
    (load > 0.0 && load <= 10_000.0).then_some(((addressing << 11 | b << 6 | f) as u32, log2_buckets, load as u32))
}
