//! Generates the codebook of semi-sorted buckets, which the library includes as Rust source. Also sets the cfg names that combine
//! features and target.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=KOEL_SIZE");
    set_cfgs();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let path = out.join("codebook.rs");
    fs::write(&path, codebook()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Sets a cfg for each condition that depends on both features and target.
fn set_cfgs() {
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|given| given == value);
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    for (name, holds) in [
        // The npm package has one piece of code for all kinds of tables, and the texts of messages in JavaScript.
        ("smallest", is("KOEL_SIZE", "smallest")),
        // x86-64 has instructions that the portable kernel cannot use. Vectors load pointers as numbers of 64 bits.
        ("x86_kernels", has("KERNELS") && is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_POINTER_WIDTH", "64")),
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
