//! Generates the tables that the library includes, as Rust source: the codebook of semi-sorted buckets, and the safe loads of
//! `tables/max_load.tsv`. Also sets the cfg names that combine features and target.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const MAX_LOAD: &str = "tables/max_load.tsv";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={MAX_LOAD}");
    set_cfgs();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write(&out.join("codebook.rs"), &codebook());
    let rows = fs::read_to_string(MAX_LOAD).unwrap_or_else(|error| panic!("{MAX_LOAD}: {error}"));
    write(&out.join("max_load.rs"), &max_load(&rows));
}

/// Sets a cfg for each condition that depends on both features and target.
fn set_cfgs() {
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

/// Returns the source of all sorted quadruples of nibbles a ≤ b ≤ c ≤ d, in lexicographic order: the codeword of a quadruple is
/// its index in this list. Paper: section 5.2, "semi-sorting buckets".
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

/// The number of table sizes that can have a load of their own. A size is the logarithm of the number of buckets, 0 to 40.
const SIZES: usize = 41;

/// Predicts a load from the one or two before it in the row. `predictor` selects the formula; `src/params/max_load.rs` has the
/// same two.
fn predicted(predictor: u32, before: u32, last: u32) -> u32 {
    if predictor == 0 { last } else { (last * last + before / 2) / before }
}

/// The last size of each part of a row. Each part has a predictor and a code of its own, because loads of small tables vary and
/// those of large tables are smooth.
const PARTS: [usize; 3] = [9, 19, SIZES - 1];

/// Returns the source of the loads of `tables/max_load.tsv`, in ten-thousandths. They are encoded as bits, in less than half of
/// the bytes that they would take as numbers, with the position at which each kind of table begins. A size between two rows has
/// the smaller load of the two. Kinds are numbers in the order of the file, from the highest bit: 1 bit of addressing, 5 of b, 6
/// of f.
///
/// The loads of a kind are in the order of sizes, for all sizes that any kind has. Each of the [`PARTS`] begins with 1 bit for
/// the predictor and 4 bits for the order k of the code; both are chosen so that the part takes the fewest bits. Then follow the
/// differences d between loads and predictions, as exponential Golomb codes of order k. The code of n = 2d, or n = −2d − 1 for
/// negative d, is the binary digits of n + 2ᵏ, after as many zeros as there are digits beyond k + 1.
fn max_load(tsv: &str) -> String {
    let kinds = kinds(tsv);
    let is_there = |size: &usize| kinds.iter().any(|(_, loads)| loads[*size].is_some());
    let sizes: Vec<usize> = (0..SIZES).filter(is_there).collect();
    let mut bits = String::new();
    let mut starts = Vec::new();
    for (_, loads) in &kinds {
        starts.push(bits.len());
        let loads = fill_gaps(loads);
        let (mut before, mut last, mut first) = (10_000, 10_000, 0);
        for end in PARTS {
            let part: Vec<u32> = sizes.iter().filter(|&&size| size >= first && size <= end).map(|&size| loads[size]).collect();
            let coded = |predictor: u32, order: u32| {
                let (mut before, mut last) = (before, last);
                let mut text = format!("{predictor:b}{order:04b}");
                for &load in &part {
                    let difference = i64::from(load) - i64::from(predicted(predictor, before, last));
                    let number = if difference < 0 { -2 * difference - 1 } else { 2 * difference } + (1 << order);
                    let digits = format!("{number:b}");
                    text.push_str(&"0".repeat(digits.len() - 1 - order as usize));
                    text.push_str(&digits);
                    (before, last) = (last, load);
                }
                text
            };
            let codes = (0..2).flat_map(|predictor| (0..16).map(move |order| (predictor, order)));
            let shortest = codes.map(|(predictor, order)| coded(predictor, order)).min_by_key(String::len);
            bits.push_str(&shortest.expect("there are 32 codes"));
            for &load in &part {
                (before, last) = (last, load);
            }
            first = end + 1;
        }
    }
    let bytes: Vec<u8> = bits
        .as_bytes()
        .chunks(8)
        .map(|bits| bits.iter().enumerate().fold(0, |byte, (place, &bit)| byte | (bit - b'0') << (7 - place)))
        // Padding: a window of eight bytes may begin at the last byte.
        .chain([0; 8])
        .collect();
    let kinds: Vec<u32> = kinds.iter().map(|(kind, _)| *kind).collect();
    let ends = PARTS.map(|end| sizes.iter().filter(|&&size| size <= end).count());
    format!(
        "static KINDS: [u16; {0}] = {kinds:?};\nstatic STARTS: [u16; {0}] = {starts:?};\nstatic SIZES: [u8; {1}] = {sizes:?};\n\
         const ENDS: [usize; 3] = {ends:?};\nstatic LOADS: [u8; {2}] = {bytes:?};\n",
        kinds.len(),
        sizes.len(),
        bytes.len(),
    )
}

/// Returns the kinds of tables in the file, and their loads by size.
fn kinds(tsv: &str) -> Vec<(u32, [Option<u32>; SIZES])> {
    let mut kinds: Vec<(u32, [Option<u32>; SIZES])> = Vec::new();
    let mut last = None;
    for (number, line) in tsv.lines().enumerate() {
        if line.starts_with('#') || line.starts_with("addressing\t") {
            continue;
        }
        let place = number + 1;
        let (kind, size, load) =
            row(line).unwrap_or_else(|| panic!("{MAX_LOAD}:{place}: expected addressing, b, f, log2_buckets, load"));
        assert!(last.replace((kind, size)) < Some((kind, size)), "{MAX_LOAD}:{place}: out of order");
        if kinds.last().is_none_or(|last| last.0 != kind) {
            kinds.push((kind, [None; SIZES]));
        }
        if let Some((_, loads)) = kinds.last_mut() {
            loads[size] = Some(load);
        }
    }
    kinds
}

/// Returns the load of each size: its own, or the smaller one of its neighbors.
fn fill_gaps(loads: &[Option<u32>; SIZES]) -> [u32; SIZES] {
    std::array::from_fn(|size| {
        let below = loads[..=size].iter().rev().find_map(|&load| load);
        let above = loads[size..].iter().find_map(|&load| load);
        below.into_iter().chain(above).min().expect("every kind has a row")
    })
}

/// Returns the kind, the size and the load of a row.
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
