//! How far along, and how long still: a bar on standard error if that is a terminal, nothing otherwise.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Gone from the screen as soon as it is dropped, whatever the reason.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// For work of so much effort in all.
    pub(super) fn new(name: &'static str, effort: u64) -> Self {
        let style = ProgressStyle::with_template("{prefix:8} {wide_bar} {percent:>3} %, {elapsed} so far, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(effort).with_style(style).with_prefix(name);
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar }
    }

    pub(super) fn add(&self, effort: u64) {
        self.bar.inc(effort);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
