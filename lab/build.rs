//! Tells the program what it was built from and how: the commit, the compiler, the flags. `src/provenance.rs` reads it, and every
//! result has it.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// What the measured code depends on, relative to the repository's root. The command is not among them: it only calls the
/// laboratory, and would compile it anew with each of its own changes.
const SOURCES: [&str; 6] = ["build.rs", "Cargo.toml", "Cargo.lock", "src", "tables", "lab"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    if let Some(version) = env::var_os("RUSTC").and_then(|rustc| output(Command::new(rustc).arg("--version"))) {
        tell("COMPILER", &version);
    }
    tell("TARGET", &env::var("TARGET").unwrap_or_default());
    tell("FLAGS", &flags());
    commit();
}

fn tell(name: &str, text: &str) {
    println!("cargo::rustc-env=LAB_{name}={}", text.trim());
}

/// The standard output of a command. `None` if it cannot run, or fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

/// How it is compiled: the profile's level of optimization, whatever the environment changes in profiles, and `RUSTFLAGS`.
fn flags() -> String {
    let known = |name| env::var(name).unwrap_or_default();
    let profile = if known("PROFILE") == "release" { "CARGO_PROFILE_RELEASE_" } else { "CARGO_PROFILE_DEV_" };
    for setting in ["CODEGEN_UNITS", "LTO", "PANIC"] {
        println!("cargo::rerun-if-env-changed={profile}{setting}");
    }
    let changes = env::vars().filter(|(name, _)| name.starts_with(profile)).map(|(name, value)| format!(" {name}={value}"));
    let changes: String = changes.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    // Cargo separates them by this character.
    let flags = known("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    format!("opt-level={}{changes} {flags}", known("OPT_LEVEL")).trim_end().to_owned()
}

/// The commit of a checkout, and whether the sources differ from it. Says nothing outside of one, or without git.
fn commit() {
    let git = |arguments: &[&str]| output(Command::new("git").args(["--no-optional-locks", "-C", ".."]).args(arguments));
    // A copy of this package may lie in a repository that does not track it.
    if git(&["ls-files", "--error-unmatch", "lab/Cargo.toml"]).is_none() {
        return;
    }
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return };
    tell("COMMIT", &commit);
    let status = ["status", "--porcelain", "--"].into_iter().chain(SOURCES).collect::<Vec<_>>();
    if let Some(changes) = git(&status) {
        tell("MODIFIED", if changes.trim().is_empty() { "no" } else { "yes" });
    }
    let sources = SOURCES.iter().map(|source| Path::new("..").join(source));
    // Each commit changes this file.
    let commits = git(&["rev-parse", "--git-path", "logs/HEAD"]).map(|path| Path::new("..").join(path.trim()));
    for path in sources.chain(commits).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
