//! A progress bar, if standard error is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar. Dropping it removes it from the screen.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Whether it shows bytes, of a known total, or items.
    by_bytes: bool,
}

impl Progress {
    pub(crate) fn none() -> Self {
        Self { bar: ProgressBar::hidden(), by_bytes: false }
    }

    /// For an input of this many bytes, if that is known.
    pub(crate) fn reading(bytes: Option<u64>) -> Self {
        let bar = match bytes {
            Some(bytes) => ProgressBar::new(bytes).with_style(style("{wide_bar} {bytes} of {total_bytes}, {eta} left")),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {human_pos} items")),
        };
        Self { bar, by_bytes: bytes.is_some() }
    }

    /// For inserting this many items.
    pub(crate) fn inserting(items: usize) -> Self {
        let bar = ProgressBar::new(items as u64);
        let style = style("{wide_bar} {human_pos} of {human_len} items inserted, {eta} left");
        Self { bar: bar.with_style(style), by_bytes: false }
    }

    /// For this many measurements.
    pub(crate) fn measuring(measurements: usize) -> Self {
        let bar = ProgressBar::new(measurements as u64);
        let style = style("{wide_bar} {human_pos} of {human_len} measurements, {eta} left");
        Self { bar: bar.with_style(style), by_bytes: false }
    }

    /// Updates the bar. To be called once for every large piece of input, not for every item.
    pub(crate) fn at(&self, bytes: u64, items: u64) {
        self.bar.set_position(if self.by_bytes { bytes } else { items });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The templates are constants; if one of them is invalid, the default bar is shown.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
