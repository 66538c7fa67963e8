//! Keeps untrusted text from being read as a command by the CI host that shows the log.
//!
//! CI hosts look for commands in what a job prints: GitHub and its relatives for `::name …::` at the start of a line,
//! after any blanks, and for `##[name]` anywhere; Azure for `##vso[…]`, TeamCity for `##teamcity[…]`, Buildkite for
//! `--- title` and its kin. A manifest, a file name, or the message of a server or a program could end the
//! annotations, hide lines, or set variables of later steps. So everything that gantry prints passes [`Guarded`], which
//! escapes one character of each such text. It looks at what is written, and not at single values, because a command
//! can also be made by gantry's own wrapping and indentation.
//!
//! GitLab's section markers need a carriage return, which [`crate::text::sanitize`] escapes.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// Variables that CI hosts set for each job.
const VARIABLES: [&str; 8] = [
    "CI",
    "GITHUB_ACTIONS",
    "GITEA_ACTIONS",
    "FORGEJO_ACTIONS",
    "TF_BUILD",
    "GITLAB_CI",
    "TEAMCITY_VERSION",
    "BUILDKITE",
];

/// Whether gantry runs in a job of a CI host.
pub fn is_detected(environment: &BTreeMap<String, String>) -> bool {
    VARIABLES.iter().any(|name| environment.get(*name).is_some_and(|value| !value.is_empty() && value != "false"))
}

/// The language of the written text, which determines how a character is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSyntax {
    /// Text for people, also Markdown: as [`crate::text::sanitize`] escapes.
    Text,
    /// JSON, whose value stays the same.
    Json,
    /// XML or HTML, whose content stays the same.
    Xml,
    /// Commands of GitHub, one per line, each of which starts with `::`.
    Commands,
}

impl OutputSyntax {
    /// The syntax of the answer of a command: JSON, or text for people.
    pub fn detect(text: &str) -> Self {
        if text.starts_with(['{', '[']) { OutputSyntax::Json } else { OutputSyntax::Text }
    }

    fn escaped(self, byte: u8) -> String {
        match self {
            OutputSyntax::Text | OutputSyntax::Commands => format!("\\u{{{byte:x}}}"),
            OutputSyntax::Json => format!("\\u{byte:04x}"),
            OutputSyntax::Xml => format!("&#{byte};"),
        }
    }
}

/// A writer that escapes the commands of CI hosts. The parts of a command can come in several writes.
pub struct Guarded<W> {
    inner: W,
    syntax: OutputSyntax,
    line: CiLineState,
    marker: Marker,
}

/// What the line consists of so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CiLineState {
    /// Nothing.
    Empty,
    /// Blanks, control sequences of a terminal, and characters that some host could count as blanks.
    Blank,
    /// A control sequence that is not complete.
    Sequence,
    /// A colon after blanks.
    Colon,
    /// A number of equal signs, such as `--`, without blanks before them.
    Signs(u8, usize),
    /// Something that ends the chance of a command.
    Text,
}

/// How much of `##name[` was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marker {
    Nothing,
    OneHash,
    TwoHashes,
}

impl<W: Write> Guarded<W> {
    /// Writes to `inner`; `syntax` says which commands the log's host would read there.
    pub fn new(inner: W, syntax: OutputSyntax) -> Self {
        Guarded { inner, syntax, line: CiLineState::Empty, marker: Marker::Nothing }
    }

    /// Takes note of the next byte. Returns whether it would complete the start of a command.
    fn completes_a_command(&mut self, byte: u8) -> bool {
        let starts = self.completes_a_line_start(byte) && self.syntax != OutputSyntax::Commands;
        self.completes_a_marker(byte) || starts
    }

    fn completes_a_marker(&mut self, byte: u8) -> bool {
        let (next, completes) = match (self.marker, byte) {
            (Marker::OneHash | Marker::TwoHashes, b'#') => (Marker::TwoHashes, false),
            (Marker::Nothing, b'#') => (Marker::OneHash, false),
            (Marker::TwoHashes, b'[') => (Marker::Nothing, true),
            // The name of the command, in any letters.
            (Marker::TwoHashes, byte) if !byte.is_ascii_whitespace() && byte != b']' => (Marker::TwoHashes, false),
            _ => (Marker::Nothing, false),
        };
        self.marker = next;
        completes
    }

    fn completes_a_line_start(&mut self, byte: u8) -> bool {
        let (next, completes) = match (self.line, byte) {
            (_, b'\n' | b'\r') => (CiLineState::Empty, false),
            (CiLineState::Sequence, b'@'..=b'Z' | b'a'..=b'~') => (CiLineState::Blank, false),
            (CiLineState::Sequence, _) => (CiLineState::Sequence, false),
            (CiLineState::Colon, b':') => (CiLineState::Text, true),
            (CiLineState::Empty, b'-' | b'+' | b'~' | b'^') => (CiLineState::Signs(byte, 1), false),
            (CiLineState::Signs(sign, count), byte) if sign == byte => (CiLineState::Signs(sign, count + 1), false),
            (CiLineState::Signs(_, 3), b' ' | b'\t') => (CiLineState::Text, true),
            (CiLineState::Empty | CiLineState::Blank, 0x1b) => (CiLineState::Sequence, false),
            (CiLineState::Empty | CiLineState::Blank, b':') => (CiLineState::Colon, false),
            (CiLineState::Empty | CiLineState::Blank, 0..=b' ' | 0x7f..) => (CiLineState::Blank, false),
            _ => (CiLineState::Text, false),
        };
        self.line = next;
        completes
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.completes_a_command(*byte) {
                self.inner.write_all(&bytes[written..at])?;
                self.inner.write_all(self.syntax.escaped(*byte).as_bytes())?;
                written = at + 1;
            }
        }
        self.inner.write_all(&bytes[written..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The whole text, guarded.
pub fn escape(text: &str, syntax: OutputSyntax) -> String {
    let mut out = Vec::with_capacity(text.len());
    // Writing to memory does not fail, and only whole ASCII characters are replaced.
    let _ = Guarded::new(&mut out, syntax).write_all(text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_each_command_is_escaped() {
        let cases = [
            ("::error::x", r":\u{3a}error::x"),
            ("a\n  \t::add-mask::x", "a\n  \t:\\u{3a}add-mask::x"),
            ("\u{a0}\u{3000}::x", "\u{a0}\u{3000}:\\u{3a}x"),
            ("\u{1b}[1m\u{1b}[31m::x", "\u{1b}[1m\u{1b}[31m:\\u{3a}x"),
            ("a ##[error]b", r"a ##\u{5b}error]b"),
            ("####[group]", r"####\u{5b}group]"),
            ("x##vso[task.setvariable a=b]", r"x##vso\u{5b}task.setvariable a=b]"),
            ("##teamcity[buildStop]", r"##teamcity\u{5b}buildStop]"),
            (
                "--- a\n+++ b\n~~~ c\n^^^ +++",
                r"---\u{20}a
+++\u{20}b
~~~\u{20}c
^^^\u{20}+++",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(escape(text, OutputSyntax::Text), expected);
            assert_eq!(escape(expected, OutputSyntax::Text), expected, "escaped twice");
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let text = "---\na: b::c\n  # x [1]\n## Heading [link]\n - ::\n #[a]\n--- \n".replace("--- \n", "----\n");
        assert_eq!(escape(&text, OutputSyntax::Text), text);
        assert_eq!(escape("::error file=a::b", OutputSyntax::Commands), "::error file=a::b");
        assert_eq!(escape("<a>\n ::error::x", OutputSyntax::Xml), "<a>\n :&#58;error::x");
    }

    #[test]
    fn a_command_in_pieces_is_escaped() {
        let hostile = "a\n \u{e9}::stop-commands::x ##[error] ##vso[y]\r::z";
        let whole = escape(hostile, OutputSyntax::Text);
        for size in 1..6 {
            let mut out = Vec::new();
            let mut guarded = Guarded::new(&mut out, OutputSyntax::Text);
            hostile.as_bytes().chunks(size).for_each(|piece| guarded.write_all(piece).unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), whole, "{size}");
        }
    }

    #[test]
    fn the_content_of_json_stays_the_same() {
        let value = serde_json::json!({"##[a]": ["::b", "##vso[c]", "\\##[d]"]});
        let text = escape(&serde_json::to_string_pretty(&value).unwrap(), OutputSyntax::Json);
        assert!(!text.contains("##[") && !text.contains("##vso["), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_job_is_known_by_its_variables() {
        let with = |name: &str, value: &str| is_detected(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert!(with("GITHUB_ACTIONS", "true") && with("TF_BUILD", "True") && with("GITLAB_CI", "1"));
        assert!(!with("CI", "") && !with("CI", "false") && !with("HOME", "/"));
    }
}
