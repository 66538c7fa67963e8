//! The lines that are kept: headings, changes, and what is around a change where the order counts.

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
    /// Nothing is folded or cut off.
    pub all: bool,
    /// Unchanged lines that may come before a change.
    before: VecDeque<String>,
    /// How many unchanged lines after a change are still to be kept.
    after: usize,
    /// Lines were left out since the last one that was kept.
    has_gap: bool,
    /// There was no change yet in this text or list: the heading is all that has to be above the first one.
    is_first: bool,
}

impl Page {
    pub fn new(all: bool) -> Self {
        Page { lines: Vec::new(), all, before: VecDeque::new(), after: 0, has_gap: false, is_first: true }
    }

    /// The path of what follows. Nothing before it is around that.
    pub fn heading(&mut self, line: String) {
        self.end_context();
        self.push(LineKind::Context, line);
    }

    /// An unchanged line beside a change: of a text, or of a list whose order counts.
    pub fn context(&mut self, line: String) {
        if self.after > 0 {
            self.after -= 1;
            self.push(LineKind::Context, line);
            return;
        }
        self.before.push_back(line);
        if self.before.len() > CONTEXT {
            self.before.pop_front();
            self.has_gap = true;
        }
    }

    /// The next line is not of the same text or list.
    pub fn end_context(&mut self) {
        self.before.clear();
        self.after = 0;
        self.has_gap = false;
        self.is_first = true;
    }

    /// Lines of one field that are there on one side only.
    pub fn change(&mut self, kind: LineKind, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        self.catch_up();
        let folded = if self.all || lines.len() <= LONGEST_FIELD { 0 } else { lines.len() - FIRST - LAST };
        for (index, line) in lines.into_iter().enumerate() {
            if folded == 0 || index < FIRST || index >= FIRST + folded {
                self.push(kind, line);
            } else if index == FIRST {
                let indent = line.len() - line.trim_start_matches(' ').len();
                self.push(kind, format!("{}# … {}", " ".repeat(indent), text::count(folded, "more line")));
            }
        }
        self.after = CONTEXT;
    }

    /// Lines of one field that are folded already.
    pub fn change_as_it_is(&mut self, kind: LineKind, lines: Vec<String>) {
        self.catch_up();
        lines.into_iter().for_each(|line| self.push(kind, line));
        self.after = CONTEXT;
    }

    /// How many lines are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// A comment about what follows.
    pub fn note(&mut self, note: String) {
        self.catch_up();
        self.push(LineKind::Note, note);
    }

    pub fn close(self) -> Vec<Line> {
        self.lines
    }

    /// Keeps the unchanged lines before a change.
    fn catch_up(&mut self) {
        if self.has_gap && !self.is_first {
            let indent = self.before.front().map_or(0, |line| line.len() - line.trim_start_matches(' ').len());
            self.push(LineKind::Note, format!("{}# …", " ".repeat(indent)));
        }
        self.is_first = false;
        self.has_gap = false;
        for line in std::mem::take(&mut self.before) {
            self.push(LineKind::Context, line);
        }
    }

    fn push(&mut self, is: LineKind, text: String) {
        let text = if self.all { text } else { text::cut(&text, LONGEST_LINE).into_owned() };
        self.lines.push(Line { is, text });
    }
}
