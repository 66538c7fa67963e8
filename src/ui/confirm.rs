//! The question before anything is written.

use std::io::{self, BufRead, Read, Write};

/// No answer that means yes is longer, and what comes down a pipe may have no end.
const LONGEST_ANSWER: u64 = 256;

/// Asks and reads one line. Only `y` and `yes` are a yes; an empty line, anything else and the end of input are a no.
pub fn confirm(question: &str, input: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<bool> {
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = Vec::new();
    input.take(LONGEST_ANSWER).read_until(b'\n', &mut answer)?;
    if !answer.ends_with(b"\n") {
        // No line break was typed, so the next output would go on in the line of the question.
        writeln!(out)?;
    }
    let answer = String::from_utf8_lossy(&answer).trim().to_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(mut input: &[u8]) -> (bool, String) {
        let mut out = Vec::new();
        let yes = confirm("Deploy 2 objects?", &mut input, &mut out).expect("in memory");
        (yes, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn only_yes_is_yes() {
        for yes in ["y\n", "Y\n", "yes\n", "YES\r\n", "  yEs \n", "y"] {
            assert!(answered(yes.as_bytes()).0, "{yes:?}");
        }
        for no in ["", "\n", "n\n", "no\n", "yess\n", "yes please\n", "1\n", "ja\n", "\u{1b}[Ay\n"] {
            assert!(!answered(no.as_bytes()).0, "{no:?}");
        }
        assert!(!answered(b"\xffy\n").0);
    }

    #[test]
    fn the_question_shows_the_default_and_the_end_of_input_ends_its_line() {
        assert_eq!(answered(b"n\n").1, "Deploy 2 objects? [y/N] ");
        assert_eq!(answered(b"").1, "Deploy 2 objects? [y/N] \n");
    }

    #[test]
    fn an_answer_without_end_is_a_no() {
        let mut input = io::BufReader::new(io::repeat(b'y'));
        assert!(!confirm("?", &mut input, &mut Vec::new()).expect("in memory"));
    }
}
