//! The texts of error messages. A build with `KOEL_SIZE=smallest` has only their numbers: the npm package has the texts in JavaScript.

use core::fmt;

/// The text of a message, or of a part of it, with a gap, `{}`, for each of its numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text(#[cfg(not(smallest))] &'static str, #[cfg(smallest)] u32);

/// Makes a [`Text`] at compile time, so that a program without texts does not contain it.
macro_rules! text {
    ($text:literal) => {
        const { $crate::message::Text::new($text) }
    };
}
pub(crate) use text;

impl Text {
    #[cfg(not(smallest))]
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    #[cfg(smallest)]
    pub const fn new(text: &'static str) -> Self {
        Self(number(text))
    }

    /// Returns the number that stands for the text.
    pub const fn number(self) -> u32 {
        #[cfg(smallest)]
        return self.0;
        #[cfg(not(smallest))]
        number(self.0)
    }

    /// Writes the text from the byte `start` on, with a number in each of its gaps.
    #[cfg(not(smallest))]
    pub fn write_from(self, start: usize, numbers: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The search for a string would be linked for this alone.
        let mut pieces = self.0[start..].split(['{', '}']).step_by(2);
        f.write_str(pieces.next().unwrap_or_default())?;
        pieces.zip(numbers).try_for_each(|(piece, number)| write!(f, "{number}{piece}"))
    }

    #[cfg(smallest)]
    pub fn write_from(self, _: usize, numbers: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {:#010x} {numbers:?}", self.0)
    }

    pub fn is_empty(self) -> bool {
        self.number() == const { number("") }
    }

    /// Writes the text as it is. It may have braces that are no gaps.
    pub fn write_all(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(not(smallest))]
        return f.write_str(self.0);
        #[cfg(smallest)]
        self.write(&[], f)
    }

    /// Writes the text with a number in each of its gaps.
    pub fn write(self, numbers: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_from(0, numbers, f)
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

/// The FNV-1a hash of a text's UTF-8.
const fn number(text: &str) -> u32 {
    let (bytes, mut hash, mut at) = (text.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}
