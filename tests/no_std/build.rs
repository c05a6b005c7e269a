//! The C runtime calls `main`; nothing of Rust's own start-up is linked.

fn main() {
    println!("cargo::rustc-link-arg=-lc");
    println!("cargo::rerun-if-changed=build.rs");
}
