//! Parts of the table of filters, to which trials and replays add their own.

use koel::Params;

/// Columns of the table that fit the width of the text. The columns of the next part follow below, after the same names.
pub(super) struct Part {
    pub(super) header: Vec<&'static str>,
    /// The cells of the first filters of the table.
    pub(super) rows: Vec<Vec<String>>,
}

impl Part {
    pub(super) fn new(header: &[&'static str], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self { header: header.to_vec(), rows: rows.into_iter().collect() }
    }
}

/// Returns the name of a filter in tables.
pub(super) fn label(params: &Params) -> String {
    format!("{} f={} b={}", params.table(), params.fingerprint_bits(), params.bucket_size())
}
