//! Translates RE2 patterns to the syntax of the `regex` crate, character by character.

use std::fmt::Write;

use super::UnsupportedPattern;

/// The maximum length of a pattern in bytes.
pub(super) const MAX_LENGTH: usize = 64 << 10;

/// Translates the RE2 pattern `pattern` to the syntax of the `regex` crate.
///
/// # Errors
/// Go rejects the pattern, or the crate has nothing that means the same.
pub fn translate(pattern: &str) -> Result<String, UnsupportedPattern> {
    if pattern.len() > MAX_LENGTH {
        return Err("the pattern is too long".to_owned().into());
    }
    let groups = vec![Repeats { most: 1, last: 1 }];
    let mut translator = Translator { rest: pattern, out: String::with_capacity(pattern.len() * 2), groups };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// The open groups, innermost last; the first is the pattern itself.
    groups: Vec<Repeats>,
}

/// The maximum product of nested counted repetitions in a group.
struct Repeats {
    most: u64,
    /// The same for the last item only, to which a repetition would apply.
    last: u64,
}

/// Go's limit for that product.
const MAX_REPEATS: u64 = 1_000;

const DIGITS: &str = "0-9";
const SPACES: &str = r"\t\n\x0C\r ";
const WORDS: &str = "0-9A-Za-z_";

impl<'a> Translator<'a> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let c = characters.next();
        self.rest = characters.as_str();
        c
    }

    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn write_literal(&mut self, c: char) {
        if c.is_alphanumeric() {
            self.out.push(c);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(self.out, "\\x{{{:X}}}", u32::from(c));
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let mut is_repeated = false;
        while !self.rest.is_empty() {
            if let Some(repetition) = self.repetition()? {
                if std::mem::replace(&mut is_repeated, true) {
                    return Err(format!("the repetition {repetition} follows another repetition"));
                }
                self.out.push_str(repetition);
                continue;
            }
            is_repeated = false;
            let Some(c) = self.next() else { break };
            let last = match c {
                ')' if self.groups.len() > 1 => self.groups.pop().map_or(1, |inner| inner.most.max(inner.last)),
                _ => 1,
            };
            if let Some(group) = self.groups.last_mut() {
                group.most = group.most.max(group.last);
                group.last = last;
            }
            match c {
                '^' | '$' | '.' | '|' | ')' => self.out.push(c),
                '(' => self.translate_group()?,
                '[' => self.translate_class()?,
                '\\' => self.escape()?,
                c => self.write_literal(c),
            }
        }
        Ok(())
    }

    /// Consumes `*`, `+`, `?` or a counted repetition, with an optional `?` that makes it lazy.
    fn repetition(&mut self) -> Result<Option<&'a str>, String> {
        let before = self.rest;
        if self.rest.starts_with('{') {
            let Some((low, high)) = self.take_repetition() else { return Ok(None) };
            // The upper bound counts; without one, the lower bound does.
            let (low, high) = (times(low), high.map(|high| if high.is_empty() { times(low) } else { times(high) }));
            let times = high.unwrap_or(low);
            if let Some(group) = self.groups.last_mut() {
                group.last = if times == 0 { 1 } else { group.last.saturating_mul(times) };
                if group.last.max(low) > MAX_REPEATS {
                    return Err(format!("a repetition count exceeds {MAX_REPEATS}"));
                }
            }
        } else if !(self.take("*") || self.take("+") || self.take("?")) {
            return Ok(None);
        }
        self.take("?");
        Ok(Some(&before[..before.len() - self.rest.len()]))
    }

    /// Consumes `{2}`, `{2,}` or `{2,3}` and returns the bounds. Any other text that begins with a brace is literal.
    fn take_repetition(&mut self) -> Option<(&'a str, Option<&'a str>)> {
        let end = self.rest.find('}')?;
        let (low, high) = match self.rest[1..end].split_once(',') {
            Some((low, high)) => (low, Some(high)),
            None => (&self.rest[1..end], None),
        };
        // A number has no leading zeros.
        let is_number =
            |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) && (s.len() == 1 || !s.starts_with('0'));
        if !is_number(low) || high.is_some_and(|high| !high.is_empty() && !is_number(high)) {
            return None;
        }
        self.rest = &self.rest[end + 1..];
        Some((low, high))
    }

    fn translate_group(&mut self) -> Result<(), String> {
        // The parenthesis is already consumed.
        if self.take("?P<") || self.take("?<") {
            let Some((name, rest)) = self.rest.split_once('>') else {
                return Err("unterminated group name".to_owned());
            };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("the group name {name:?} is not allowed"));
            }
            self.rest = rest;
            self.out.push_str("(?:");
        } else if self.take("?") {
            let Some(end) = self.rest.find([':', ')']) else { return Err("unterminated group".to_owned()) };
            let flags = &self.rest[..=end];
            let (on, off) = flags[..end].split_once('-').map_or((&flags[..end], None), |(on, off)| (on, Some(off)));
            let are_flags = |flags: &str| flags.chars().all(|c| "imsU".contains(c));
            if !are_flags(on) || off.is_some_and(|off| off.is_empty() || !are_flags(off)) {
                return Err(format!("(?{} is not a valid group", &flags[..end]));
            }
            self.write_flags(on, off.unwrap_or_default(), flags.ends_with(':'));
            self.rest = &self.rest[end + 1..];
            if flags.ends_with(')') {
                return Ok(());
            }
        } else {
            self.out.push_str("(?:");
        }
        self.groups.push(Repeats { most: 1, last: 1 });
        Ok(())
    }

    /// Writes flags for a new group or for the rest of the current one: each flag once, and nothing if none is set.
    fn write_flags(&mut self, on: &str, off: &str, opens: bool) {
        let set = |flags: &str, but: &str| -> String {
            "imsU".chars().filter(|c| flags.contains(*c) && !but.contains(*c)).collect()
        };
        let (on, off) = (set(on, off), set(off, ""));
        if !opens && on.is_empty() && off.is_empty() {
            return;
        }
        let dash = if off.is_empty() { "" } else { "-" };
        let _ = write!(self.out, "(?{on}{dash}{off}{}", if opens { ':' } else { ')' });
    }

    /// Translates an escape outside a class; the backslash is already consumed.
    fn escape(&mut self) -> Result<(), String> {
        if self.take("Q") {
            let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
            self.rest = rest;
            quoted.chars().for_each(|c| self.write_literal(c));
            return Ok(());
        }
        // A lone `\E` has no matching `\Q`.
        if self.take("E") {
            return Err("\\E without \\Q".to_owned());
        }
        for (letter, written) in [("A", "\\A"), ("z", "\\z"), ("b", "(?-u:\\b)"), ("B", "(?-u:\\B)")] {
            if self.take(letter) {
                self.out.push_str(written);
                return Ok(());
            }
        }
        if self.class_escape("[", "]")? {
            return Ok(());
        }
        let c = self.escaped_character()?;
        self.write_literal(c);
        Ok(())
    }

    /// Translates a class escape such as `\d` or `\pN`, written between `open` and `close`. False if there is none.
    fn class_escape(&mut self, open: &str, close: &str) -> Result<bool, String> {
        for (letter, set) in [("d", DIGITS), ("s", SPACES), ("w", WORDS)] {
            if self.take(letter) {
                let _ = write!(self.out, "{open}{set}{close}");
                return Ok(true);
            }
            if self.take(&letter.to_ascii_uppercase()) {
                let _ = write!(self.out, "[^{set}]");
                return Ok(true);
            }
        }
        let mut negated = if self.take("p") {
            false
        } else if self.take("P") {
            true
        } else {
            return Ok(false);
        };
        let name = if self.take("{") {
            let Some((name, rest)) = self.rest.split_once('}') else { return Err("unterminated \\p{".to_owned()) };
            self.rest = rest;
            name
        } else {
            let length = self.rest.chars().next().map_or(0, char::len_utf8);
            let (name, rest) = self.rest.split_at(length);
            self.rest = rest;
            name
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                negated = !negated;
                name
            }
            None => name,
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("\\p{{{name}}} is not a Unicode class"));
        }
        let _ = write!(self.out, "\\{}{{{name}}}", if negated { 'P' } else { 'p' });
        Ok(true)
    }

    /// The character that an escape represents; the backslash is already consumed.
    fn escaped_character(&mut self) -> Result<char, String> {
        let Some(c) = self.next() else { return Err("trailing backslash".to_owned()) };
        match c {
            'a' => Ok('\u{7}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\u{b}'),
            'x' => self.hexadecimal(),
            '0'..='7' => {
                let is_octal = |c: char| ('0'..='7').contains(&c);
                if c != '0' && !self.rest.starts_with(is_octal) {
                    return Err(format!("\\{c} is a backreference, which RE2 does not support"));
                }
                let mut value = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.rest.chars().next().filter(|c| is_octal(*c)) else { break };
                    self.next();
                    value = value * 8 + digit.to_digit(8).unwrap_or(0);
                }
                char::from_u32(value).ok_or_else(|| "an octal escape beyond Unicode".to_owned())
            }
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(c),
            c => Err(format!("\\{c} is not a valid escape")),
        }
    }

    fn hexadecimal(&mut self) -> Result<char, String> {
        let digits = if self.take("{") {
            let Some((digits, rest)) = self.rest.split_once('}') else { return Err("unterminated \\x{".to_owned()) };
            self.rest = rest;
            digits
        } else {
            let Some(digits) = self.rest.get(..2) else { return Err("\\x without two digits".to_owned()) };
            self.rest = &self.rest[2..];
            digits
        };
        let code =
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten();
        code.and_then(char::from_u32).ok_or_else(|| format!("\\x{{{digits}}} is not a character"))
    }

    /// Translates a class; the opening bracket is already consumed.
    fn translate_class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            if self.rest.is_empty() {
                return Err("unterminated character class".to_owned());
            }
            // A closing bracket in first position is literal.
            if !is_first && self.take("]") {
                break;
            }
            is_first = false;
            if self.rest.starts_with("[:") && self.posix_class()? {
                continue;
            }
            if let Some(after) = self.rest.strip_prefix('\\') {
                let before = self.rest;
                self.rest = after;
                if self.class_escape("", "")? {
                    continue;
                }
                self.rest = before;
            }
            let low = self.class_character()?;
            let mut high = low;
            // A dash before the closing bracket is literal.
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                high = self.class_character()?;
                if high < low {
                    return Err("the bounds of a character range are in the wrong order".to_owned());
                }
            }
            let _ = write!(self.out, "\\x{{{:X}}}-\\x{{{:X}}}", u32::from(low), u32::from(high));
        }
        self.out.push(']');
        Ok(())
    }

    fn class_character(&mut self) -> Result<char, String> {
        match self.next() {
            Some('\\') => self.escaped_character(),
            Some(c) => Ok(c),
            None => Err("unterminated character class".to_owned()),
        }
    }

    /// Translates `[:alpha:]` inside a class. False if the bracket is literal.
    fn posix_class(&mut self) -> Result<bool, String> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        let Some(end) = self.rest.find(":]") else { return Ok(false) };
        let name = self.rest.get(2..end).unwrap_or_default();
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("[:{name}:] is not a POSIX class"));
        }
        self.out.push_str(&self.rest[..end + 2]);
        self.rest = &self.rest[end + 2..];
        Ok(true)
    }
}

/// Parses a bound of a counted repetition, a number without leading zeros.
fn times(bound: &str) -> u64 {
    bound.parse().unwrap_or(u64::MAX)
}
