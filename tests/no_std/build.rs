//! Links the C library, whose start-up code calls `main`; Rust's start-up code is not linked.

fn main() {
    println!("cargo::rustc-link-arg=-lc");
    println!("cargo::rerun-if-changed=build.rs");
}
