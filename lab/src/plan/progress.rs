//! The progress bar: on standard error if that is a terminal, otherwise nothing.

use std::{fmt, time::Duration};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// A progress bar, removed from the screen when it is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for work of this total effort.
    pub(super) fn new(name: &'static str, effort: u64) -> Self {
        let style = ProgressStyle::with_template("{prefix:8} {wide_bar} {percent:>3} %, {elapsed} so far, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key("percent", whole);
        let bar = ProgressBar::new(effort).with_style(style).with_prefix(name);
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar }
    }

    pub(super) fn add(&self, effort: u64) {
        self.bar.inc(effort);
    }
}

/// Whole per cent, rounded down: 100 only when all work is done.
fn whole(state: &ProgressState, text: &mut dyn fmt::Write) {
    // The bar's buffer takes everything.
    text.write_fmt(format_args!("{:.0}", (100.0 * state.fraction()).floor())).ok();
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
