//! `koel add` and `koel remove`, which read a filter, change it, and replace the file.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use crate::{
    errors::Inserting,
    file::{self, Output, Snapshot},
    items::{ItemArgs, Items},
    terminal,
};

/// Add items to a filter.
///
/// The file is replaced atomically once all items are added. If they do not all fit, it stays unchanged. Other koel commands that
/// change the file wait in the meantime. If another program moves, removes or replaces it, that is an error, and nothing is
/// written.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel --capacity 100
    koel add fruit.koel --item cherry
    printf 'cherry\\nfig\\n' | koel add fruit.koel --unique")]
pub(crate) struct Add {
    /// The filter, a koel snapshot
    filter: PathBuf,

    #[command(flatten)]
    items: ItemArgs,

    /// Store an item once: skip it if the filter has it, or mistakes it for one that it has, which happens to new items at most at
    /// the filter's false-positive rate. A filter that grows compares more bits here than `koel query` does, and so skips fewer new
    /// items than `koel query` would print, unless the list is much larger than the filter: its items are compared with each other,
    /// too
    #[arg(short, long)]
    unique: bool,

    /// Print a JSON object: `filter`, the numbers of `added` and `skipped` items, `items` for those in the filter now, and `left_out`
    /// for lines without the field of --key
    #[arg(long)]
    json: bool,
}

/// Remove items from a filter. Remove only what was added.
///
/// A filter stores a short fingerprint of each item, which another item may share. So removing an item that was never added may
/// remove the fingerprint of another one, which is then no longer found. Remove an item twice if it was added twice, and do not
/// remove an item that `--unique` skipped.
///
/// Items that are not found are counted; the others are removed, and the file is replaced atomically. Exit status: 0 if all items
/// were found, 1 if some were not, 2 on error. Other koel commands that change the file wait in the meantime. If another program
/// moves, removes or replaces it, that is an error, and nothing is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\ncherry\\n' | koel build - -o fruit.koel
    koel remove fruit.koel --item apple
    printf 'banana\\ncherry\\n' | koel remove fruit.koel")]
pub(crate) struct Remove {
    /// The filter, a koel snapshot
    filter: PathBuf,

    #[command(flatten)]
    items: ItemArgs,

    /// Print a JSON object: `filter`, the numbers of `removed` and `not_found` items, `items` for those in the filter now, and `left_out`
    /// for lines without the field of --key
    #[arg(long)]
    json: bool,
}

/// A filter that is being changed, and the items to add or remove.
struct Edit {
    output: Output,
    filter: Snapshot,
    items: Items,
}

impl Edit {
    fn open(path: &Path, items: ItemArgs) -> anyhow::Result<Self> {
        if file::is_dash(path) {
            bail!("standard input: cannot be replaced by the changed filter; give a file");
        }
        file::slice::refuse_window(path)?;
        let output = Output::existing(path)?;
        if items.path().is_some_and(|items| output.is_file_of(items)) {
            bail!("{}: cannot be both the filter and the items; give another file for one of them", output.name());
        }
        let filter = output.load()?;
        Ok(Self { output, filter, items: items.open(true)? })
    }

    /// Replaces the file if the filter changed, and reports what was done: as text or, if there are any, as these fields.
    fn save(self, changed: bool, done: &str, fields: Option<Value>) -> anyhow::Result<()> {
        if changed {
            self.output.save_snapshot(&self.filter)?;
        }
        let (len, name) = (self.filter.len(), self.output.name());
        let report = if let Some(mut object) = fields {
            object["filter"] = name.into();
            object["items"] = len.into();
            object["left_out"] = self.items.short().into();
            format!("{object}\n")
        } else {
            let short = self.items.short_lines().map(|lines| format!("; {lines}")).unwrap_or_default();
            format!("{done}; {len} in {name} now ({}){short}\n", self.filter.extent())
        };
        if changed { self.output.report(&report) } else { terminal::print(&report) }
    }
}

impl Add {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut edit = Edit::open(&self.filter, self.items)?;
        let end = format!("{} is unchanged", edit.output.name());
        let added = edit.items.add_to(&mut edit.filter, self.unique, Inserting::Add, &end)?;
        let skipped = edit.items.count() - added;
        let fields = self.json.then(|| json!({ "added": added, "skipped": skipped }));
        let skipped = if self.unique { format!(", {skipped} skipped as already present") } else { String::new() };
        edit.save(added > 0, &format!("{added} added{skipped}"), fields)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Remove {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut edit = Edit::open(&self.filter, self.items)?;
        let mut removed = 0;
        while let Some(item) = edit.items.advance()? {
            removed += u64::from(edit.filter.remove(item));
        }
        let missing = edit.items.count() - removed;
        let fields = self.json.then(|| json!({ "removed": removed, "not_found": missing }));
        edit.save(removed > 0, &format!("{removed} removed, {missing} not found"), fields)?;
        Ok(ExitCode::from(u8::from(missing > 0)))
    }
}
