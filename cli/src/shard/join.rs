//! `koel shard join`

use std::{
    cell::{Cell, RefCell},
    io,
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;
use koel::{ElasticPart, MergeError, SnapshotErrorKind};

use crate::file::{self, Output};

/// Join the parts of a filter.
///
/// Checks everything while it copies. Takes the memory of one small table, however large the parts are.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 > all.txt
    for i in 1 2 3; do koel shard build all.txt --part $i/3 --capacity 300000 -o $i.koel; done
    koel shard join 1.koel 2.koel 3.koel -o all.koel
    koel query all.koel --item 42")]
pub(super) struct Join {
    /// The parts, all of them, in any order
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,

    /// The file to write the filter to; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

impl Join {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        for path in &self.parts {
            if file::is_dash(path) {
                bail!("standard input: cannot be a part; give files, all of which are read at the same time");
            }
        }
        // These stay open, also where the library opens them again.
        let files = self.parts.iter().map(|path| file::open_file(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let output = Output::new(&self.output)?;
        let (items, refused) = (Cell::new(0), RefCell::new(None));
        let keep = |result: Result<u64, MergeError>| match result {
            Ok(joined) => {
                items.set(joined);
                Ok(())
            }
            Err(MergeError::Io(error)) => Err(error),
            Err(error) => {
                let failed = io::Error::other(error.to_string());
                *refused.borrow_mut() = Some(error);
                Err(failed)
            }
        };
        let written = output.put(
            |path| keep(ElasticPart::join_files(&self.parts, path)),
            |writer| keep(ElasticPart::join_snapshots(&files, writer)),
        );
        if let Some(error) = refused.into_inner() {
            return Err(self.explain(error));
        }
        let (bytes, name) = (written?, output.name());
        let report = format!("{name}: {} items in {} parts, {bytes} bytes\n", items.get(), self.parts.len());
        output.report(&report)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The error with the names of files.
    fn explain(&self, error: MergeError) -> anyhow::Error {
        let name = |part: usize| file::name(&self.parts[part]);
        match error {
            MergeError::Part { part, error } => match error.kind() {
                SnapshotErrorKind::OtherType => {
                    anyhow::anyhow!("{}: is a filter of fixed size; give parts, which `koel shard build` writes", name(part))
                }
                _ => file::refused(&name(part), error),
            },
            MergeError::DifferentPart { part } => anyhow::anyhow!(
                "{} and {}: these are parts of different filters; build all parts with the same --capacity and other options",
                name(0),
                name(part)
            ),
            MergeError::SamePart { parts: [first, second] } => anyhow::anyhow!(
                "{} and {}: these have the same items; give each part once, all of the same N of `--part I/N`, and no whole filter",
                name(first),
                name(second)
            ),
            MergeError::MissingPart { .. } => {
                anyhow::anyhow!("a part is missing; give all parts, from 1/N to N/N of the same N of `--part I/N`")
            }
            error => error.into(),
        }
    }
}
