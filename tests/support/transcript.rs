//! Console transcripts in Markdown: the commands of a page, and the output that it shows for each.

use std::iter::Peekable;
use std::str::Lines;

/// A part of a page. The parts follow each other as on the page.
pub enum Piece<'p> {
    /// A line that is neither a command nor output.
    Line(&'p str),
    /// A block of code has ended. Its lines, without the indentation of the block, were pieces of their own.
    BlockEnd(Vec<&'p str>),
    /// A line of a block that begins with `$ `, with the lines below it.
    Command(Shown<'p>),
}

/// A command on a page, and the output that the page shows for it.
pub struct Shown<'p> {
    /// The indentation of the block.
    pub indent: &'p str,
    pub command: &'p str,
    /// Up to the next command or the end of the block, without the indentation of the block.
    pub output: Vec<&'p str>,
}

/// Splits a page into its parts.
pub fn pieces(page: &str) -> Vec<Piece<'_>> {
    let mut lines = page.lines().peekable();
    let mut pieces = Vec::new();
    while let Some(line) = lines.next() {
        pieces.push(Piece::Line(line));
        let unindented = line.trim_start();
        if unindented.starts_with("```") {
            let fence = unindented.trim_end_matches(|c| c != '`');
            add_block(&line[..line.len() - unindented.len()], fence, &mut lines, &mut pieces);
        }
    }
    pieces
}

fn add_block<'p>(indent: &'p str, fence: &str, lines: &mut Peekable<Lines<'p>>, pieces: &mut Vec<Piece<'p>>) {
    let mut content = Vec::new();
    let ends = |line: &str| line.trim_start() == fence;
    while let Some(line) = lines.next() {
        if ends(line) {
            pieces.extend([Piece::BlockEnd(content), Piece::Line(line)]);
            return;
        }
        let without_indent = |line: &'p str| line.strip_prefix(indent).unwrap_or(line);
        let Some(command) = without_indent(line).strip_prefix("$ ") else {
            content.push(without_indent(line));
            pieces.push(Piece::Line(line));
            continue;
        };
        let is_output = |line: &&'p str| !ends(line) && !without_indent(line).starts_with("$ ");
        let output = std::iter::from_fn(|| lines.next_if(is_output)).map(without_indent).collect();
        pieces.push(Piece::Command(Shown { indent, command, output }));
    }
}

impl Shown<'_> {
    /// Whether the page shows this output: a line `…` stands for any number of lines, and `…` in a line for any text.
    pub fn is_output(&self, output: &str) -> bool {
        let lines: Vec<&str> = output.lines().collect();
        are_shown(&self.output, &lines)
    }

    /// The lines of the page with this output.
    pub fn with_output(&self, output: &str) -> String {
        let command = format!("$ {}", self.command);
        let lines = std::iter::once(command.as_str()).chain(output.lines());
        lines.map(|line| format!("{}\n", format!("{}{line}", self.indent).trim_end())).collect()
    }
}

fn are_shown(shown: &[&str], lines: &[&str]) -> bool {
    match shown {
        [] => lines.is_empty(),
        ["…", shown @ ..] => (0..=lines.len()).any(|left_out| are_shown(shown, &lines[left_out..])),
        [first, shown @ ..] => {
            lines.split_first().is_some_and(|(line, lines)| is_shown(first, line.trim_end()) && are_shown(shown, lines))
        }
    }
}

fn is_shown(shown: &str, line: &str) -> bool {
    match shown.split_once('…') {
        None => shown == line,
        Some((start, end)) => {
            let rest = line.strip_prefix(start);
            rest.is_some_and(|rest| rest.char_indices().any(|(at, _)| is_shown(end, &rest[at..])) || end.is_empty())
        }
    }
}
