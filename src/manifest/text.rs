//! Text from manifests as part of a message: it may be hostile, and a message is one line of a terminal.

/// The most characters of a user's text that a message repeats.
const MOST: usize = 120;

/// `text` on one line, without control characters, and not too long.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    for character in characters.by_ref().take(MOST) {
        if is_harmless(character) {
            out.push(character);
        } else {
            out.extend(character.escape_unicode());
        }
    }
    if characters.next().is_some() {
        out.push('…');
    }
    out
}

/// Control characters steer a terminal; the directional ones make text look like other text.
fn is_harmless(character: char) -> bool {
    let directional = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !(character.is_control() || directional || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_becomes_harmless() {
        assert_eq!(shown("a\u{1b}[2Jb\nc"), r"a\u{1b}[2Jb\u{a}c");
        assert_eq!(shown("\u{202e}abc"), r"\u{202e}abc");
        assert_eq!(shown("Zürich 😀"), "Zürich 😀");
        assert_eq!(shown(&"x".repeat(5000)).chars().count(), MOST + 1);
    }
}
