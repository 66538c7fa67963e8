//! Selects the lines to show: changes, two lines around them, and their parents.

use std::collections::VecDeque;

use super::{Line, LineKind};
use crate::text;

/// The number of context lines before and after a change.
const CONTEXT: usize = 2;
/// The maximum number of lines for one field. A longer one is folded to its first and last lines.
const LONGEST_FIELD: usize = 10;
const FIRST: usize = 4;
const LAST: usize = 3;
/// The maximum length of a line in characters; a longer one is truncated.
const LONGEST_LINE: usize = 240;

/// Receives all lines and keeps those to show.
pub struct Page {
    lines: Vec<Line>,
    /// Whether everything is requested: then nothing is folded or truncated.
    pub all: bool,
    /// The number of lines so far.
    number: usize,
    /// The number of the last line that was kept.
    last: usize,
    /// The last lines that were not kept.
    before: VecDeque<(usize, String)>,
    /// The parents of the next line.
    around: Vec<(usize, String)>,
    /// The number of lines after a change that are still to be kept.
    after: usize,
}

impl Page {
    pub fn new(all: bool) -> Self {
        Page { lines: Vec::new(), all, number: 0, last: 0, before: VecDeque::new(), around: Vec::new(), after: 0 }
    }

    /// Adds a line that is the same on both sides.
    pub fn context(&mut self, line: String) {
        self.number += 1;
        if self.after > 0 {
            self.after -= 1;
            self.keep(LineKind::Context, line, self.number);
        } else {
            self.before.push_back((self.number, line));
            if self.before.len() > CONTEXT {
                self.before.pop_front();
            }
        }
    }

    /// Adds a line that is the same on both sides, and is the parent of the next ones until [`Page::leave`].
    pub fn enter(&mut self, line: String) {
        self.context(line.clone());
        self.around.push((self.number, line));
    }

    /// Makes the last line, which was kept already, the parent of the next ones.
    pub fn enter_kept(&mut self) {
        self.around.push((self.number, String::new()));
    }

    pub fn leave(&mut self) {
        self.around.pop();
    }

    /// Adds the lines of one field that exist on one side only.
    pub fn change(&mut self, kind: LineKind, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        self.catch_up();
        let folded = if self.all || lines.len() <= LONGEST_FIELD { 0 } else { lines.len() - FIRST - LAST };
        for (index, line) in lines.into_iter().enumerate() {
            self.number += 1;
            if folded == 0 || index < FIRST || index >= FIRST + folded {
                self.keep(kind, line, self.number);
                continue;
            }
            if index == FIRST {
                let indent = indent_of(&line);
                let note = format!("{}# … {}", " ".repeat(indent), text::count(folded, "more line"));
                self.keep(kind, note, self.number);
            }
            // Folded lines do not count as missing.
            self.last = self.number;
        }
        self.after = CONTEXT;
    }

    /// Adds lines on one side only that are already folded.
    pub fn change_as_it_is(&mut self, kind: LineKind, lines: Vec<String>) {
        self.catch_up();
        for line in lines {
            self.number += 1;
            self.keep(kind, line, self.number);
        }
        self.after = CONTEXT;
    }

    /// The number of lines that are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Adds a note at the current position.
    pub fn note(&mut self, note: String) {
        self.catch_up();
        self.number += 1;
        self.keep(LineKind::Note, note, self.number);
    }

    /// Ends the page with notes about the whole object.
    pub fn close(mut self, notes: impl IntoIterator<Item = String>) -> Vec<Line> {
        self.lines.extend(notes.into_iter().map(|text| Line { is: LineKind::Note, text }));
        self.lines
    }

    /// Keeps the context and parent lines before a change.
    fn catch_up(&mut self) {
        let last = self.last;
        let mut missing: Vec<(usize, String)> = self.before.drain(..).collect();
        missing.extend(self.around.iter().filter(|(number, _)| *number > last).cloned());
        missing.sort();
        missing.dedup();
        for (number, line) in missing {
            self.keep(LineKind::Context, line, number);
        }
    }

    fn keep(&mut self, is: LineKind, text: String, number: usize) {
        let is_inside = self.around.iter().any(|(around, _)| *around == self.last);
        // A gap directly below a parent line needs no mark.
        if self.last > 0 && number > self.last + 1 && !is_inside {
            let indent = " ".repeat(indent_of(&text));
            self.lines.push(Line { is: LineKind::Note, text: format!("{indent}# …") });
        }
        self.last = number;
        let text = if self.all { text } else { text::cut(&text, LONGEST_LINE).into_owned() };
        self.lines.push(Line { is, text });
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}
