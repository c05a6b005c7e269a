//! Passes the version of the compiler to the program, for the line below its table.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let Some(rustc) = env::var_os("RUSTC") else { return };
    // Without a version, the line does not name the compiler.
    let Ok(output) = Command::new(rustc).arg("--version").output() else { return };
    if let Ok(version) = String::from_utf8(output.stdout) {
        println!("cargo::rustc-env=PEERS_RUSTC={}", version.trim());
    }
}
