//! The question before anything is written.
//!
//! Asking and reading are two steps, because the read blocks, and the caller must also wait for an interrupt.

use std::io::{self, BufRead, Read, Write};

use crate::text;

/// The maximum number of bytes of an answer. No valid answer is longer, and a pipe may be endless.
const LONGEST_ANSWER: u64 = 256;

/// The answer of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserAnswer {
    /// Whether the user agrees. No answer, such as the end of input, is a no.
    pub yes: bool,
    /// Whether the answer ended with a line feed. If not, the next output would continue the line of the question.
    pub line_ended: bool,
}

/// Shows the question with its default, no.
pub fn ask(question: &str, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{} [y/N] ", text::sanitize(question))?;
    out.flush()
}

/// Reads one line. Only `y` and `yes` are a yes; an empty line, anything else and the end of input are a no.
pub fn answer(input: &mut dyn BufRead) -> io::Result<UserAnswer> {
    let mut line = Vec::new();
    input.take(LONGEST_ANSWER).read_until(b'\n', &mut line)?;
    let word = String::from_utf8_lossy(&line).trim().to_lowercase();
    Ok(UserAnswer { yes: matches!(word.as_str(), "y" | "yes"), line_ended: line.ends_with(b"\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(mut input: &[u8]) -> UserAnswer {
        answer(&mut input).expect("in memory")
    }

    #[test]
    fn only_yes_confirms() {
        for yes in ["y\n", "Y\n", "yes\n", "YES\r\n", "  yEs \n", "y"] {
            assert!(answered(yes.as_bytes()).yes, "{yes:?}");
        }
        for no in ["", "\n", "n\n", "no\n", "yess\n", "yes please\n", "1\n", "ja\n", "\u{1b}[Ay\n"] {
            assert!(!answered(no.as_bytes()).yes, "{no:?}");
        }
        assert!(!answered(b"\xffy\n").yes);
    }

    #[test]
    fn the_question_shows_the_default_and_is_harmless() {
        let mut out = Vec::new();
        ask("Deploy to \u{1b}[2J?", &mut out).expect("in memory");
        assert_eq!(String::from_utf8(out).expect("text"), "Deploy to \\u{1b}[2J? [y/N] ");
    }

    #[test]
    fn an_answer_records_whether_its_line_ended() {
        assert!(answered(b"n\n").line_ended);
        assert!(!answered(b"").line_ended);
        assert!(!answered(b"y").line_ended);
    }

    #[test]
    fn an_endless_answer_is_a_no() {
        let mut input = io::BufReader::new(io::repeat(b'y'));
        assert!(!answer(&mut input).expect("in memory").yes);
    }
}
