//! Selects the lines to show: headings, changes, and the lines around a change where the order matters.

use std::collections::VecDeque;

use super::{Line, LineKind};
use crate::text;

/// The number of context lines before and after a change.
const CONTEXT: usize = 2;
/// The maximum number of lines of a field. A longer one is folded to its first and last lines.
const LONGEST_FIELD: usize = 10;
const FIRST: usize = 4;
const LAST: usize = 3;
/// The maximum length of a line. A longer line is truncated.
const LONGEST_LINE: usize = 240;

/// Receives the lines in order and keeps those to show.
pub struct DiffPage {
    lines: Vec<Line>,
    /// Nothing is folded or truncated.
    pub all: bool,
    /// The last unchanged lines: the context of the next change.
    before: VecDeque<String>,
    /// The number of context lines still to keep after the last change.
    after: usize,
    /// Lines were dropped since the last kept line.
    has_gap: bool,
    /// No change yet in this text or list: no gap is shown between the heading and the first change.
    is_first: bool,
}

impl DiffPage {
    pub fn new(all: bool) -> Self {
        DiffPage { lines: Vec::new(), all, before: VecDeque::new(), after: 0, has_gap: false, is_first: true }
    }

    /// Writes the path of the lines that follow, and ends the context of the lines before.
    pub fn heading(&mut self, line: String) {
        self.end_context();
        self.push(LineKind::Context, line);
    }

    /// An unchanged line of a text, or of a list whose order matters.
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

    /// Ends a text or list: its lines are not context of what follows.
    pub fn end_context(&mut self) {
        self.before.clear();
        self.after = 0;
        self.has_gap = false;
        self.is_first = true;
    }

    /// Lines of one field that exist on one side only.
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

    /// Already folded lines of one field.
    pub fn change_as_it_is(&mut self, kind: LineKind, lines: Vec<String>) {
        self.catch_up();
        lines.into_iter().for_each(|line| self.push(kind, line));
        self.after = CONTEXT;
    }

    /// The number of kept lines.
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

    /// Keeps the context lines before a change.
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
