//! One page of everything that was found.
use std::path::Path;
/// Its name.
pub const FILE: &str = "report.html";

/// Todo
///
/// # Errors
/// no
pub fn write(_folder: &Path) -> anyhow::Result<()> {
    Ok(())
}
