//! The lines that are kept: changes, two lines around them, and the lines that they are in.

use std::collections::VecDeque;

use super::{Line, LineKind};
use crate::text;

/// Lines around a change.
const CONTEXT: usize = 2;
/// A longer field is folded to its first and last lines.
const LONGEST_FIELD: usize = 10;
const FIRST: usize = 4;
const LAST: usize = 3;
/// A longer line is cut off.
const LONGEST_LINE: usize = 240;

/// What is written line by line, of which the page keeps what matters.
pub struct Page {
    lines: Vec<Line>,
    /// Everything is wanted: nothing is folded or cut off.
    pub all: bool,
    /// How many lines there were.
    number: usize,
    /// The number of the last line that was kept.
    last: usize,
    /// The last lines that were not kept.
    before: VecDeque<(usize, String)>,
    /// The lines that the next one is in.
    around: Vec<(usize, String)>,
    /// How many lines after a change are still to be kept.
    after: usize,
}

impl Page {
    pub fn new(all: bool) -> Self {
        Page { lines: Vec::new(), all, number: 0, last: 0, before: VecDeque::new(), around: Vec::new(), after: 0 }
    }

    /// A line that is the same on both sides.
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

    /// A line that is the same on both sides, and that the next ones are in until [`Page::leave`].
    pub fn enter(&mut self, line: String) {
        self.context(line.clone());
        self.around.push((self.number, line));
    }

    /// The next lines are in the last one, which is kept already.
    pub fn enter_kept(&mut self) {
        self.around.push((self.number, String::new()));
    }

    pub fn leave(&mut self) {
        self.around.pop();
    }

    /// Lines of one field that are there on one side only.
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
            // What is folded is not missing.
            self.last = self.number;
        }
        self.after = CONTEXT;
    }

    /// Lines that are folded already.
    pub fn change_as_it_is(&mut self, kind: LineKind, lines: Vec<String>) {
        self.catch_up();
        for line in lines {
            self.number += 1;
            self.keep(kind, line, self.number);
        }
        self.after = CONTEXT;
    }

    /// How many lines are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Something to say of what the page is at.
    pub fn note(&mut self, note: String) {
        self.catch_up();
        self.number += 1;
        self.keep(LineKind::Note, note, self.number);
    }

    /// What is said at the end, of the whole object.
    pub fn close(mut self, notes: impl IntoIterator<Item = String>) -> Vec<Line> {
        self.lines.extend(notes.into_iter().map(|text| Line { is: LineKind::Note, text }));
        self.lines
    }

    /// Keeps the lines that a change needs before it.
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
        // From a line into what is below it nothing is missing that anybody looks for.
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
