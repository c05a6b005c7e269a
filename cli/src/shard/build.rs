//! `koel shard build`

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;

use super::not_built;
use crate::{
    file::Output,
    items::{Items, Separator},
    messages, numbers,
    options::Kind,
};

/// Build one part of a filter.
///
/// Reads a list once, stores the items of this part, and leaves out those of others. OUT is replaced atomically, as by
/// `koel build`. A part cannot be queried before it is joined with the others.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 | koel shard build - --part 1/3 --capacity 300000 -o 1.koel")]
pub(super) struct Build {
    /// The items, one per line; `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Which part of how many, such as 1/3
    #[arg(long, value_name = "I/N", value_parser = part, allow_hyphen_values = true)]
    part: (usize, usize),

    /// IN is the list that `koel shard split` wrote for this part: an item of another part is an error, and is not left out
    #[arg(long)]
    split: bool,

    /// The file to write the part to; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    separator: Separator,

    /// The number of items in all parts together
    #[arg(long, value_name = "N", value_parser = numbers::capacity, allow_negative_numbers = true)]
    capacity: usize,

    /// The number of items, in all parts together, up to which a look-up reads two buckets; more items cost two more
    /// [default: the capacity, which takes the least space]
    #[arg(long, value_name = "N", value_parser = numbers::capacity, allow_negative_numbers = true)]
    max_capacity: Option<usize>,

    #[command(flatten)]
    kind: Kind,

    /// Skip items that the part already reports as present
    #[arg(long)]
    unique: bool,
}

impl Build {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (number, parts) = self.part;
        let builder = self.kind.growing(Some(self.capacity), Some(self.max_capacity.unwrap_or(self.capacity)))?;
        let mut part = builder.build_part(number - 1, parts).map_err(not_built)?;
        let output = Output::new(&self.output)?;
        if output.is(&self.input) {
            bail!("{}: cannot be both the list and the part; give another name for one of them", output.name());
        }
        let mut items = Items::open(&self.input, self.separator, true)?;
        while let Some(item) = items.advance()? {
            if self.split && part.part_of(item) != part.part() {
                let belongs = part.part_of(item) + 1;
                bail!(
                    "{}: this item belongs to part {belongs}/{parts}; give the list that `koel shard split` wrote for this part, with \
                     the same --parts, --hasher and --seed; nothing was written",
                    items.place()
                );
            }
            let stored = if self.unique { part.insert_unique(item) } else { part.insert(item) };
            if let Err(error) = stored {
                bail!("{}; nothing was written", messages::grow(&items.place(), &error));
            }
        }
        let bytes = output.save_part(&part)?;
        let (of, name) = (items.count(), output.name());
        let report = format!("{name}: part {number} of {parts}, {} of {of} items, {bytes} bytes\n", part.len());
        output.report(&report)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The number of a part, from 1, and that of all parts.
fn part(text: &str) -> Result<(usize, usize), String> {
    let pair = text.split_once('/').and_then(|(part, parts)| Some((super::parts(part).ok()?, super::parts(parts).ok()?)));
    let part = pair.filter(|(part, parts)| part <= parts);
    part.ok_or_else(|| {
        format!("it takes the number of a part and of all parts, which are {} at most, such as 1/3", super::MOST_PARTS)
    })
}
