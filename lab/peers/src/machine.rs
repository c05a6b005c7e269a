//! The machine and the settings of a comparison, for the line below its table.

use std::env::consts;

use koel_lab::Machine;

/// The line below the table.
pub(crate) fn line(rate: f64, items: usize, rounds: u32) -> String {
    let Machine { processor, cores, kernel, optimized, .. } = Machine::here();
    let cores = match cores {
        1 => String::from("1 core"),
        cores => format!("{cores} cores"),
    };
    let rounds = if rounds == 1 { String::from("1 round") } else { format!("medians of {rounds} rounds") };
    let rustc = option_env!("PEERS_RUSTC").map_or_else(String::new, |rustc| format!(", {rustc}"));
    let unoptimized = if optimized { "" } else { ", WITHOUT OPTIMIZATION: add --release" };
    format!(
        "{processor}, {cores}, {}, koel's kernel {kernel}: ε = {rate}, {items} items, {rounds}{rustc}{unoptimized}",
        consts::OS
    )
}
