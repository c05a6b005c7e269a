//! How far along: a bar on standard error if that is a terminal, nothing otherwise.

use indicatif::{ProgressBar, ProgressStyle};

/// Gone from the screen as soon as it is dropped, whatever the reason.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Counts bytes of a known total; otherwise items, of which there may be any number.
    by_bytes: bool,
}

impl Progress {
    pub(crate) fn none() -> Self {
        Self { bar: ProgressBar::hidden(), by_bytes: false }
    }

    /// For input of so many bytes, if that is known.
    pub(crate) fn reading(bytes: Option<u64>) -> Self {
        let bar = match bytes {
            Some(bytes) => ProgressBar::new(bytes).with_style(style("{wide_bar} {bytes} of {total_bytes}, {eta} left")),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {human_pos} items")),
        };
        Self { bar, by_bytes: bytes.is_some() }
    }

    /// For work on so many items.
    pub(crate) fn inserting(items: usize) -> Self {
        let bar = ProgressBar::new(items as u64);
        let style = style("{wide_bar} {human_pos} of {human_len} items in the filter, {eta} left");
        Self { bar: bar.with_style(style), by_bytes: false }
    }

    /// To be called at every large piece of input, not at every item.
    pub(crate) fn at(&self, bytes: u64, items: u64) {
        self.bar.set_position(if self.by_bytes { bytes } else { items });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The templates are constants; should one of them be wrong, the plain bar does.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
