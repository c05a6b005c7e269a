//! The machine and the settings of a comparison, for the line below its table.

use std::env::consts;

use koel_lab::{Build, Machine};

/// The line below the table.
pub(crate) fn line(rate: f64, items: usize, rounds: u32) -> String {
    let Machine { processor, cores, kernel, optimized, .. } = Machine::here();
    let cores = match cores {
        1 => String::from("1 core"),
        cores => format!("{cores} cores"),
    };
    let rounds = if rounds == 1 { String::from("1 round") } else { format!("medians of {rounds} rounds") };
    let build = Build::here();
    let compiler = build.compiler.as_ref().map_or_else(String::new, |compiler| format!(", {compiler}"));
    let unoptimized = if optimized { "" } else { ", WITHOUT OPTIMIZATION: add --release" };
    format!(
        "{processor}, {cores}, {}, koel's kernel {kernel}: ε = {rate}, {items} items, {rounds}, {}{compiler}{unoptimized}",
        consts::OS,
        build.source()
    )
}
