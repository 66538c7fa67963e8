//! Positions in a line that is very long, such as a manifest in one line of JSON.
//!
//! Thousands of findings can be in one such line. To find the place of each from the start of the line would take time
//! in proportion to the square of its length.

use super::excerpt::names_secret;

/// Shorter lines are searched from their start.
const LONG: usize = 4096;
/// The number of characters between two known positions.
const STEP: usize = 256;

/// What is known about a long line.
#[derive(Debug, PartialEq, Eq)]
pub struct LineIndex {
    /// The byte offset of every [`STEP`]th character.
    offsets: Vec<usize>,
    names_secret: bool,
}

impl LineIndex {
    /// The index of a line; `None` if the line is short.
    pub fn of_long(line: &str) -> Option<Self> {
        let index = || LineIndex {
            offsets: line.char_indices().step_by(STEP).map(|(at, _)| at).collect(),
            names_secret: names_secret(line),
        };
        (line.len() > LONG).then(index)
    }

    /// The byte offset of a character of this line, counted from 0; `None` if the line is shorter.
    pub fn offset_of(&self, line: &str, character: usize) -> Option<usize> {
        let from = *self.offsets.get(character / STEP)?;
        line.get(from..)?.char_indices().nth(character % STEP).map(|(at, _)| from + at)
    }

    /// Whether the line contains `kind: Secret`.
    pub fn names_secret(&self) -> bool {
        self.names_secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_the_characters() {
        let line: String = (0..5000).map(|number| if number % 3 == 0 { 'é' } else { 'x' }).collect();
        let index = LineIndex::of_long(&line).expect("the line is long");
        let offsets: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
        for character in [0, 1, STEP - 1, STEP, STEP + 1, 4999] {
            assert_eq!(index.offset_of(&line, character), Some(offsets[character]), "{character}");
        }
        assert_eq!((index.offset_of(&line, 5000), index.offset_of(&line, usize::MAX)), (None, None));
        assert_eq!(LineIndex::of_long(&line[..LONG]), None);
    }

    #[test]
    fn a_secret_at_the_end_of_a_long_line_is_seen() {
        let line = |kind: &str| format!("{{\"list\":[{}],\"kind\":\"{kind}\"}}", "1,".repeat(LONG));
        let names_secret = |kind| LineIndex::of_long(&line(kind)).map(|index| index.names_secret());
        assert_eq!((names_secret("Secret"), names_secret("ConfigMap")), (Some(true), Some(false)));
    }
}
