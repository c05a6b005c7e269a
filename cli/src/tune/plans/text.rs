//! The plans as text, 80 columns wide.

use tabled::{
    builder::Builder,
    settings::{Alignment, Padding, Style, object::Columns, style::HorizontalLine},
};

use super::Plans;
use crate::{
    figures::{counted, narrow, size},
    tune::text::{trimmed, wrapped},
};

const HEADER: [&str; 7] = ["plan", "now", "at the end", "at most", "\u{3b5} now", "\u{3b5} at the end", "buckets"];

impl Plans<'_> {
    pub(super) fn text(&self) -> String {
        let mut parts = vec![self.question()];
        if self.found.is_empty() {
            parts.push(String::from("No plan meets these requirements.\n"));
            parts.extend(self.nearest());
        } else {
            parts.push(self.table());
        }
        if !self.rejected.is_empty() {
            let lines = self.rejected.iter().map(|(name, reason)| wrapped(&format!("- {name}: {reason}.")));
            parts.push(format!("Left out:\n{}", lines.collect::<String>()));
        }
        let commands = self.found.iter().map(|plan| format!("{}:\n  {}\n", plan.name, plan.command));
        parts.extend((!self.found.is_empty()).then(|| commands.collect()));
        parts.join("\n")
    }

    fn question(&self) -> String {
        let limit = self.asked.bytes.map(|bytes| format!(", at most {}", counted(bytes, "byte"))).unwrap_or_default();
        wrapped(&format!(
            "{} now and {} at most, a false-positive rate \u{3b5} of at most {:?}{limit}.",
            counted(self.now, "item"),
            self.most,
            self.rate
        ))
    }

    /// The nearest values, each of which is enough.
    fn nearest(&self) -> Option<String> {
        let (bytes, rate) = self.nearest;
        let mut ways: Vec<_> = bytes.map(|bytes| format!("  --bytes {bytes}\n")).into_iter().collect();
        ways.extend(rate.map(|rate| format!("  --fpr {rate:?}\n")));
        (!ways.is_empty()).then(|| format!("Nearest values, any one of which is enough:\n{}", ways.concat()))
    }

    fn table(&self) -> String {
        let mut table = Builder::new();
        table.push_record(HEADER);
        for plan in &self.found {
            let [now, end, most] = [plan.bytes_now, plan.bytes_at_end, plan.most_bytes].map(|bytes| size(bytes as f64));
            let (rate_now, rate_at_end) = (narrow(plan.rate_now), narrow(plan.rate_at_end));
            table.push_record([plan.name.to_owned(), now, end, most, rate_now, rate_at_end, plan.buckets_per_lookup.to_string()]);
        }
        let mut table = table.build();
        table
            .with(Style::empty().horizontals([(1, HorizontalLine::new('-'))]))
            .modify(Columns::new(..), Padding::new(0, 2, 0, 0))
            .modify(Columns::last(), Padding::zero())
            .modify(Columns::new(1..), Alignment::right());
        let courses = self.found.iter().map(|plan| wrapped(&format!("- {}: {}.", plan.name, plan.course)));
        let note =
            wrapped("At most: the most memory at any time, of tables and directories. Buckets: those that a look-up asks.");
        format!("{}\n{}{note}", trimmed(&table.to_string()), courses.collect::<String>())
    }
}
