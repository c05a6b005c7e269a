//! The width of text. Nobody knows which font the reader has, so these are the widths of the widest common ones (Verdana,
//! `DejaVu` Sans); others leave some room free.

/// The width of a letter, in thousandths of its height.
fn share(letter: char) -> u32 {
    match letter {
        'i' | 'j' | 'l' | 'I' => 300,
        ' ' | '.' | ',' | ':' | ';' | '\'' | '/' | '|' | '!' | 'f' | 't' | '-' => 400,
        'r' | '(' | ')' | '⁰'..='⁹' | '⁻' | '²' | '³' | '¹' => 470,
        'm' | 'w' | 'M' | 'W' | '%' | '…' | '—' | '@' => 1080,
        '=' | '<' | '>' | '+' | '×' | '≈' | '≤' | '≥' | '→' => 840,
        'A'..='Z' => 790,
        _ => 650,
    }
}

/// The width of text in letters of this height, in pixels.
pub(super) fn width(text: &str, height: f64) -> i32 {
    let thousandths: u32 = text.chars().map(share).sum();
    #[allow(clippy::cast_possible_truncation, reason = "far fewer pixels than an i32 holds; a cast saturates")]
    let pixels = (f64::from(thousandths) * height / 1000.0).ceil() as i32;
    pixels
}

/// Breaks text between words into lines no wider than `most` pixels. A word that is wider has a line of its own.
pub(super) fn lines(text: &str, height: f64, most: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, height) + width(" ", height) + width(word, height) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_there_is_room() {
        assert_eq!(lines("", 10.0, 100), [""; 0]);
        assert_eq!(lines("one two", 10.0, 1000), ["one two"]);
        assert_eq!(lines("one  two three", 10.0, width("one two", 10.0) + 1), ["one two", "three"]);
        assert_eq!(lines("one two", 10.0, width("one two", 10.0) - 2), ["one", "two"]);
        // A word is not broken.
        assert_eq!(lines("immeasurable a", 10.0, 5), ["immeasurable", "a"]);
    }
}
