//! Where and how the figures came about: without it they mean little.

use std::{env::consts, fs, thread};

/// The line below the table.
pub(crate) fn line(rate: f64, items: usize, rounds: u32) -> String {
    let cpu = cpu().unwrap_or_else(|| String::from(consts::ARCH));
    let cores = match thread::available_parallelism().map_or(1, std::num::NonZero::get) {
        1 => String::from("1 core"),
        cores => format!("{cores} cores"),
    };
    let rounds = if rounds == 1 { String::from("1 round") } else { format!("medians of {rounds} rounds") };
    let rustc = option_env!("PEERS_RUSTC").map_or_else(String::new, |rustc| format!(", {rustc}"));
    let unoptimized = if cfg!(debug_assertions) { ", WITHOUT OPTIMIZATION: add --release" } else { "" };
    let kernel = koel::Kernel::best();
    format!("{cpu}, {cores}, {}, koel's kernel {kernel}: ε = {rate}, {items} items, {rounds}{rustc}{unoptimized}", consts::OS)
}

/// The processor's name, where Linux has it.
fn cpu() -> Option<String> {
    let facts = fs::read_to_string("/proc/cpuinfo").ok()?;
    let (_, name) = facts.lines().find(|line| line.starts_with("model name"))?.split_once(':')?;
    Some(name.trim().to_owned())
}
