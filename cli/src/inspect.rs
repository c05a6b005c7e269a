//! `koel info` and `koel verify`, which read all of a filter and describe it.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::json;

use crate::{
    facts::{self, Facts},
    file, options,
    terminal::{self, Stream},
    window::Contents,
};

/// Show a filter's parameters and how full it is.
///
/// Reads and checks the whole file: a koel snapshot, a file of Go's linvon/cuckoo-filter, or a RedisBloom dump (see `koel query
/// --help`); or the folder of `koel uniq --forget`. For several filters, prints one line each. If one cannot be read, reports it on
/// standard error and continues; the exit status is then 2.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel info fruit.koel
    koel info fruit.koel --json
    seq 1000 | koel build - -o numbers.koel --grow
    koel info *.koel")]
pub(crate) struct Info {
    /// The filters: koel snapshots, Go files or RedisBloom dumps; `-` for standard input
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Print a JSON object, with numbers as numbers; for several filters, one object per line, with the filter's name as `filter`.
    /// `format` is "koel", "koel-growing", "go" or "redisbloom", or "koel-window" for a folder of `koel uniq --forget`;
    /// `bits_per_item` is null if there are no items; Go files have `victim`, which is true if one of the items is stored outside
    /// the table
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let [path] = &self.filters[..] {
            let facts = load(path)?;
            let text = if self.json { format!("{:#}\n", facts.object) } else { facts::aligned(&facts.lines) };
            terminal::print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let line = |name: &str, mut facts: Facts| {
            if self.json {
                facts.object["filter"] = name.into();
                return format!("{}\n", facts.object);
            }
            format!("{name}: {}\n", facts.summary)
        };
        let failed = |_: &str, error| {
            terminal::failure(&error);
            Ok(())
        };
        load_each(&self.filters, Some(&line), failed)
    }
}

/// Reads and checks a filter, or a folder of filters that forget.
fn load(path: &Path) -> anyhow::Result<Facts> {
    // The file is read, not mapped, because an I/O error in a map would kill this process.
    if file::slice::is_window(path) {
        return Ok(Facts::window(&Contents::read(path)?));
    }
    file::load(path).map(|(filter, bytes)| Facts::stored(&filter, bytes))
}

/// Returns the line about a filter with this name.
type Line<'a> = dyn Fn(&str, Facts) -> String + 'a;

/// Reads filters one after another, and prints the line that `line` returns for each. Calls `report` for failures, and continues.
fn load_each(
    paths: &[PathBuf],
    line: Option<&Line<'_>>,
    report: impl Fn(&str, anyhow::Error) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    // An invalid kernel is not an error in the files, so it is reported once.
    options::kernel()?;
    if line.is_some() {
        Stream::Stdout.check()?;
    }
    let mut failed = 0;
    for path in paths {
        match load(path) {
            Ok(facts) => {
                if let Some(line) = line {
                    terminal::print(&line(&file::name(path), facts))?;
                }
            }
            Err(error) => {
                report(&file::name(path), error)?;
                failed += 1;
            }
        }
    }
    match (failed, paths.len()) {
        (0, _) => return Ok(ExitCode::SUCCESS),
        (_, 1) => {}
        (failed, all) => terminal::say(format_args!("koel: {failed} of {all} files failed\n")),
    }
    Ok(ExitCode::from(terminal::FAILED))
}

/// Check filters for damage.
///
/// Reads each file to its end: a koel snapshot, a file of Go's linvon/cuckoo-filter, or a RedisBloom dump (see `koel query
/// --help`); or the folder of `koel uniq --forget`. For a good file, prints "ok" and a summary in one line on standard output. For a
/// damaged one, prints what is wrong and at which byte on standard error, and continues with the next file. Exit status: 0 if all
/// files are good, 2 if one is damaged or cannot be read.
///
/// Snapshots have checksums, so any altered byte is detected. Files of other programs have none: only contradictions are
/// detected, and some damage goes unnoticed.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel verify fruit.koel
    koel verify -q *.koel && echo 'all good'
    koel verify - < fruit.koel")]
pub(crate) struct Verify {
    /// The filters; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print nothing for good files
    #[arg(short, long)]
    quiet: bool,

    /// Print a JSON object per file: its name as `filter`, and `ok`. For a good file, it has the fields of `koel info --json`, too; for
    /// any other, `error`, which is then not printed on standard error
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let line = |name: &str, mut facts: Facts| {
            if !self.json {
                return format!("{name}: ok: {}\n", facts.summary);
            }
            facts.object["filter"] = name.into();
            facts.object["ok"] = true.into();
            format!("{}\n", facts.object)
        };
        let failed = |name: &str, error: anyhow::Error| {
            if self.json {
                let object = json!({ "filter": name, "ok": false, "error": format!("{error:#}") });
                return terminal::print(&format!("{object}\n"));
            }
            terminal::failure(&error);
            Ok(())
        };
        load_each(&self.files, (!self.quiet).then_some(&line), failed)
    }
}
