//! The words of errors. A text for which memory runs out ends early: an error that is shorter than it could be is still reported,
//! where `format!` would abort the program.

use alloc::string::String;
use core::fmt::{self, Display as _, Write};

/// `format!`, as far as there is memory.
macro_rules! text {
    ($($arguments:tt)*) => {
        $crate::text::formatted(::core::format_args!($($arguments)*)).0
    };
}

/// A text, and whether there was memory for all of it.
pub(crate) fn formatted(arguments: fmt::Arguments<'_>) -> (String, bool) {
    let mut text = Text(String::new());
    let is_whole = text.write_fmt(arguments).is_ok();
    (text.0, is_whole)
}

/// Writes words, with a number between every two pieces of them. What is kept so takes no code where nothing is displayed.
pub(crate) fn filled(f: &mut fmt::Formatter<'_>, pieces: &[&str], numbers: &[usize]) -> fmt::Result {
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            numbers[at - 1].fmt(f)?;
        }
        f.write_str(piece)?;
    }
    Ok(())
}

struct Text(String);

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.0.try_reserve(more.len()).map_err(|_| fmt::Error)?;
        self.0.push_str(more);
        Ok(())
    }
}

/// The items of a list, in words: "a, b and c".
pub(crate) struct Listed<I>(pub(crate) I);

impl<I: Iterator<Item: fmt::Display> + Clone> fmt::Display for Listed<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = self.0.clone().peekable();
        let Some(first) = items.next() else { return Ok(()) };
        write!(f, "{first}")?;
        while let Some(item) = items.next() {
            write!(f, "{}{item}", if items.peek().is_some() { ", " } else { " and " })?;
        }
        Ok(())
    }
}

/// The words about a filter that another program cannot have.
#[cfg(any(go_files, feature = "redisbloom"))]
pub(crate) fn other_wanted(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    given: &dyn fmt::Display,
    but: &str,
    with: &str,
) -> fmt::Result {
    write!(f, "{what}: {given} given, but {but}; build the filter with {with}")
}

/// The error of a system call or of bytes that are wrong, in words.
///
/// `std` boxes them, and aborts the program where it cannot. So it is not asked to unless there is memory: without, the error is
/// its kind.
#[cfg(feature = "std")]
pub(crate) fn io_error(kind: std::io::ErrorKind, arguments: fmt::Arguments<'_>) -> std::io::Error {
    match formatted(arguments) {
        (text, true) => boxed_io_error(kind, text),
        (_, false) => kind.into(),
    }
}

/// The same of an error, which keeps it.
#[cfg(feature = "std")]
pub(crate) fn boxed_io_error<E>(kind: std::io::ErrorKind, error: E) -> std::io::Error
where
    E: Into<alloc::boxed::Box<dyn core::error::Error + Send + Sync>>,
{
    // A box of the error, one of the pair of its kind and that box, and what an allocator needs besides.
    let boxes = size_of::<(E, [usize; 8])>();
    if crate::storage::reserved::<u8>(boxes).is_ok() { std::io::Error::new(kind, error) } else { kind.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_aloud() {
        let listed = |items: &[u8]| text!("{}", Listed(items.iter()));
        assert_eq!([listed(&[]), listed(&[1]), listed(&[1, 2]), listed(&[1, 2, 3])], ["", "1", "1 and 2", "1, 2 and 3"]);
    }
}
