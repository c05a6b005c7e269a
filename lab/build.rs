//! Records what the program is built from, and how: the commit, the compiler and the flags. `src/provenance.rs` reads this and
//! adds it to every result.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// The sources that the measured code depends on, relative to the repository's root. The command is not one of them: it only
/// calls the laboratory, and each change of it would rebuild the laboratory.
const SOURCES: [&str; 6] = ["build.rs", "Cargo.toml", "Cargo.lock", "src", "tables", "lab"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    if let Some(version) = env::var_os("RUSTC").and_then(|rustc| output(Command::new(rustc).arg("--version"))) {
        set_variable("COMPILER", &version);
    }
    set_variable("TARGET", &env::var("TARGET").unwrap_or_default());
    set_variable("FLAGS", &flags());
    commit();
}

fn set_variable(name: &str, text: &str) {
    println!("cargo::rustc-env=LAB_{name}={}", text.trim());
}

/// Returns the standard output of a command, or `None` if it cannot run or fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

/// Returns the compiler's flags: the optimization level, the profile's settings from environment variables, and `RUSTFLAGS`.
fn flags() -> String {
    let variable = |name| env::var(name).unwrap_or_default();
    let profile = if variable("PROFILE") == "release" { "CARGO_PROFILE_RELEASE_" } else { "CARGO_PROFILE_DEV_" };
    for setting in ["CODEGEN_UNITS", "LTO", "PANIC"] {
        println!("cargo::rerun-if-env-changed={profile}{setting}");
    }
    let changes = env::vars().filter(|(name, _)| name.starts_with(profile)).map(|(name, value)| format!(" {name}={value}"));
    let changes: String = changes.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    // Cargo separates flags by this character. Those that only rename folders of the machine change no code.
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let flags: Vec<&str> = flags.split('\u{1f}').filter(|flag| !flag.starts_with("--remap-path-prefix=")).collect();
    let flags = flags.join(" ");
    format!("opt-level={}{changes} {flags}", variable("OPT_LEVEL")).trim_end().to_owned()
}

/// Sets the commit of a checkout, and whether the sources differ from it. Outside of a checkout, or without git, it sets neither.
fn commit() {
    let git = |arguments: &[&str]| output(Command::new("git").args(["--no-optional-locks", "-C", ".."]).args(arguments));
    // A copy of this package may be inside a repository that does not track it.
    if git(&["ls-files", "--error-unmatch", "lab/Cargo.toml"]).is_none() {
        return;
    }
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return };
    set_variable("COMMIT", &commit);
    let status = ["status", "--porcelain", "--"].into_iter().chain(SOURCES).collect::<Vec<_>>();
    if let Some(changes) = git(&status) {
        set_variable("MODIFIED", if changes.trim().is_empty() { "no" } else { "yes" });
    }
    let sources = SOURCES.iter().map(|source| Path::new("..").join(source));
    // Each commit changes this file.
    let commits = git(&["rev-parse", "--git-path", "logs/HEAD"]).map(|path| Path::new("..").join(path.trim()));
    for path in sources.chain(commits).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
