//! How much room text takes. Which letters a reader's machine has is not known; this is for the widest that are in common use
//! (Verdana, `DejaVu` Sans), so that others leave some room free.

/// Of the letter's height, in thousandths.
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

/// Of text in letters of that height, in pixels.
pub(super) fn width(text: &str, height: f64) -> i32 {
    let thousandths: u32 = text.chars().map(share).sum();
    #[allow(clippy::cast_possible_truncation, reason = "pixels, far fewer than an i32 holds; if not, it is as wide as it gets")]
    let pixels = (f64::from(thousandths) * height / 1000.0).ceil() as i32;
    pixels
}

/// Lines no wider than that, broken between words.
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
        // A word has no place to break it.
        assert_eq!(lines("immeasurable a", 10.0, 5), ["immeasurable", "a"]);
    }
}
