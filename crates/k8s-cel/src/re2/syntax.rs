//! Whether Go accepts a pattern, and otherwise its error: Go's parser without the tree.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The normalized names of the Unicode classes that Go supports.
static CLASSES: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| include_str!("classes.txt").split_ascii_whitespace().collect());

/// The largest bound of a counted repetition, and the largest product of nested bounds.
const MAX_REPEATS: u64 = 1_000;
/// Go rejects patterns that are too large or too deeply nested. Patterns well below its limits are not measured
/// exactly.
const SURE_HEIGHT: usize = 400;
const SURE_SIZE: u64 = 1_000_000;

/// The reason a pattern is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Go rejects the pattern with this text.
    #[error("{0}")]
    Refused(String),
    /// The pattern is so large that only counting exactly like Go could decide.
    #[error("the pattern is too large to be measured")]
    Undecided,
}

type PatternResult<T> = Result<T, PatternError>;

fn refused<T>(what: &str, expression: &str) -> PatternResult<T> {
    Err(PatternError::Refused(format!("error parsing regexp: {what}: `{expression}`")))
}

const INVALID_RANGE: &str = "invalid character class range";
const INVALID_ESCAPE: &str = "invalid escape sequence";
const MISSING_ARGUMENT: &str = "missing argument to repetition operator";

/// An entry of the parser's stack.
enum RegexStackEntry {
    Open,
    Bar,
    /// An expression and its measure.
    Whole(Measure),
}

#[derive(Clone, Copy)]
struct Measure {
    /// The maximum product of nested counted repetitions in the expression.
    repeats: u64,
    height: usize,
    size: u64,
}

const LEAF: Measure = Measure { repeats: 1, height: 1, size: 1 };

/// Checks a pattern.
pub fn check(pattern: &str) -> PatternResult<()> {
    let mut parser = RegexParser { whole: pattern, rest: pattern, stack: Vec::new() };
    parser.run()
}

struct RegexParser<'p> {
    whole: &'p str,
    rest: &'p str,
    stack: Vec<RegexStackEntry>,
}

/// The part of `from` before `rest`, which is a suffix of it.
fn text_before<'t>(from: &'t str, rest: &str) -> &'t str {
    &from[..from.len() - rest.len()]
}

fn next(rest: &mut &str) -> Option<char> {
    let mut characters = rest.chars();
    let c = characters.next();
    *rest = characters.as_str();
    c
}

impl RegexParser<'_> {
    fn run(&mut self) -> PatternResult<()> {
        let mut last_repeat = "";
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            let mut is_repeat = false;
            match c {
                '(' if before.starts_with("(?") => self.perl_group()?,
                '(' => {
                    self.stack.push(RegexStackEntry::Open);
                    self.rest = &before[1..];
                }
                '|' => {
                    self.concatenate();
                    self.stack.push(RegexStackEntry::Bar);
                    self.rest = &before[1..];
                }
                ')' => {
                    self.close()?;
                    self.rest = &before[1..];
                }
                '[' => {
                    self.parse_class()?;
                    self.push(LEAF)?;
                }
                '*' | '+' | '?' => {
                    self.rest = &before[1..];
                    self.repeat(1, None, before, last_repeat)?;
                    is_repeat = true;
                }
                '{' => match parse_repetition(before) {
                    None => {
                        self.rest = &before[1..];
                        self.push(LEAF)?;
                    }
                    Some((low, high, rest)) => {
                        self.rest = rest;
                        let is_backwards = high.is_some_and(|high| low > high);
                        if low > MAX_REPEATS || high.is_some_and(|high| high > MAX_REPEATS) || is_backwards {
                            return refused("invalid repeat count", text_before(before, rest));
                        }
                        self.repeat(high.unwrap_or(low), Some((low, high)), before, last_repeat)?;
                        is_repeat = true;
                    }
                },
                '\\' => self.escape()?,
                _ => {
                    next(&mut self.rest);
                    self.push(LEAF)?;
                }
            }
            last_repeat = if is_repeat { before } else { "" };
        }
        self.concatenate();
        self.alternate();
        match self.stack.len() {
            1 => Ok(()),
            _ => refused("missing closing )", self.whole),
        }
    }

    fn push(&mut self, measure: Measure) -> PatternResult<()> {
        if measure.height > SURE_HEIGHT || measure.size > SURE_SIZE {
            return Err(PatternError::Undecided);
        }
        self.stack.push(RegexStackEntry::Whole(measure));
        Ok(())
    }

    /// Merges the expressions above the last `(` or `|` into one.
    fn concatenate(&mut self) {
        self.gather(|part| matches!(part, RegexStackEntry::Whole(_)));
    }

    /// Merges the alternatives above the last `(` into one.
    fn alternate(&mut self) {
        self.gather(|part| !matches!(part, RegexStackEntry::Open));
    }

    fn gather(&mut self, is_part: impl Fn(&RegexStackEntry) -> bool) {
        let from = self.stack.iter().rposition(|part| !is_part(part)).map_or(0, |at| at + 1);
        let parts: Vec<Measure> = self
            .stack
            .drain(from..)
            .filter_map(|part| if let RegexStackEntry::Whole(measure) = part { Some(measure) } else { None })
            .collect();
        let measure = match parts.as_slice() {
            [] => LEAF,
            [one] => *one,
            many => Measure {
                repeats: many.iter().map(|of| of.repeats).max().unwrap_or(1),
                height: many.iter().map(|of| of.height).max().unwrap_or(0) + 1,
                size: many.iter().map(|of| of.size + 1).fold(0, u64::saturating_add),
            },
        };
        self.stack.push(RegexStackEntry::Whole(measure));
    }

    fn close(&mut self) -> PatternResult<()> {
        self.concatenate();
        self.alternate();
        let inner = self.stack.pop();
        match (self.stack.pop(), inner) {
            (Some(RegexStackEntry::Open), Some(RegexStackEntry::Whole(of))) => {
                self.push(Measure { height: of.height + 1, size: of.size + 2, ..of })
            }
            _ => refused("unexpected )", self.whole),
        }
    }

    /// Parses a repetition operator; `bounds` are those of a counted one.
    fn repeat(
        &mut self,
        times: u64,
        bounds: Option<(u64, Option<u64>)>,
        before: &str,
        last_repeat: &str,
    ) -> PatternResult<()> {
        self.rest = self.rest.strip_prefix('?').unwrap_or(self.rest);
        if !last_repeat.is_empty() {
            return refused("invalid nested repetition operator", text_before(last_repeat, self.rest));
        }
        let Some(RegexStackEntry::Whole(of)) = self.stack.last() else {
            return refused(MISSING_ARGUMENT, text_before(before, self.rest));
        };
        let mut measure = Measure { height: of.height + 1, size: of.size.saturating_add(2), ..*of };
        if let Some((low, high)) = bounds {
            measure.repeats = if high == Some(0) { 1 } else { times.max(1).saturating_mul(of.repeats) };
            measure.size = times.max(1).saturating_mul(of.size.saturating_add(1));
            if (low >= 2 || high.is_some_and(|high| high >= 2)) && measure.repeats > MAX_REPEATS {
                return refused("invalid repeat count", text_before(before, self.rest));
            }
        }
        self.stack.pop();
        self.push(measure)
    }

    /// Parses `(?…`: a named group, flags, or a non-capturing group.
    fn perl_group(&mut self) -> PatternResult<()> {
        let all = self.rest;
        let name = (all.len() > 4).then(|| all.strip_prefix("(?P<")).flatten();
        if let Some(named) = name.or_else(|| (all.len() > 3).then(|| all.strip_prefix("(?<")).flatten()) {
            let Some(end) = named.find('>') else { return refused("invalid named capture", all) };
            let (name, rest) = (&named[..end], &named[end + 1..]);
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return refused("invalid named capture", text_before(all, rest));
            }
            self.stack.push(RegexStackEntry::Open);
            self.rest = rest;
            return Ok(());
        }
        let mut rest = &all[2..];
        let (mut is_negated, mut has_flag) = (false, false);
        while let Some(c) = next(&mut rest) {
            match c {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_negated => {
                    is_negated = true;
                    has_flag = false;
                }
                ':' | ')' if !is_negated || has_flag => {
                    if c == ':' {
                        self.stack.push(RegexStackEntry::Open);
                    }
                    self.rest = rest;
                    return Ok(());
                }
                _ => break,
            }
        }
        refused("invalid or unsupported Perl syntax", text_before(all, rest))
    }

    /// Parses an escape outside a class.
    fn escape(&mut self) -> PatternResult<()> {
        let all = self.rest;
        match all.as_bytes().get(1) {
            Some(b'A' | b'b' | b'B' | b'z') => {
                self.rest = &all[2..];
                return self.push(LEAF);
            }
            Some(b'C') => return refused(INVALID_ESCAPE, &all[..2]),
            Some(b'Q') => {
                let (quoted, rest) = all[2..].split_once("\\E").unwrap_or((&all[2..], ""));
                self.rest = rest;
                return quoted.chars().try_for_each(|_| self.push(LEAF));
            }
            _ => {}
        }
        if !class_escape(&mut self.rest)? {
            character_escape(&mut self.rest)?;
        }
        self.push(LEAF)
    }

    /// Parses a class in brackets.
    fn parse_class(&mut self) -> PatternResult<()> {
        let all = self.rest;
        let mut rest = &all[1..];
        rest = rest.strip_prefix('^').unwrap_or(rest);
        let mut is_first = true;
        while is_first || !rest.starts_with(']') {
            is_first = false;
            if rest.len() > 2
                && rest.starts_with("[:")
                && let Some(end) = rest[2..].find(":]")
            {
                let name = &rest[..end + 4];
                if !is_posix_class(&rest[2..end + 2]) {
                    return refused(INVALID_RANGE, name);
                }
                rest = &rest[end + 4..];
                continue;
            }
            if class_escape(&mut rest)? {
                continue;
            }
            let range = rest;
            let low = class_character(&mut rest, all)?;
            if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
                rest = &rest[1..];
                if class_character(&mut rest, all)? < low {
                    return refused(INVALID_RANGE, text_before(range, rest));
                }
            }
        }
        self.rest = &rest[1..];
        Ok(())
    }
}

/// Parses `{2}`, `{2,}` or `{2,3}` and returns the rest. Bounds that are too large are all equivalent.
fn parse_repetition(text: &str) -> Option<(u64, Option<u64>, &str)> {
    let (low, rest) = integer(text.strip_prefix('{')?)?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((low, Some(low), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((low, None, rest));
    }
    let (high, rest) = integer(rest)?;
    Some((low, Some(high), rest.strip_prefix('}')?))
}

fn integer(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}

fn is_posix_class(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
        "word", "xdigit",
    ];
    NAMES.contains(&name.strip_prefix('^').unwrap_or(name))
}

/// Consumes a class escape such as `\d` or `\pN`. False if there is none.
fn class_escape(rest: &mut &str) -> PatternResult<bool> {
    let all = *rest;
    match all.strip_prefix('\\').and_then(|after| after.chars().next()) {
        Some('d' | 'D' | 's' | 'S' | 'w' | 'W') => {
            *rest = &all[2..];
            return Ok(true);
        }
        Some('p' | 'P') => {}
        _ => return Ok(false),
    }
    let mut after = &all[2..];
    let (sequence, name) = match next(&mut after) {
        None => return refused(INVALID_RANGE, all),
        Some('{') => {
            let Some(end) = all.find('}') else { return refused(INVALID_RANGE, all) };
            after = &all[end + 1..];
            (&all[..=end], &all[3..end])
        }
        Some(_) => (text_before(all, after), &text_before(all, after)[2..]),
    };
    *rest = after;
    let name: String =
        name.strip_prefix('^').unwrap_or(name).chars().filter(|c| !matches!(c, '_' | '-' | ' ')).collect();
    let mut plain = name.to_ascii_lowercase();
    if let Some(first) = plain.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if CLASSES.contains(plain.as_str()) { Ok(true) } else { refused(INVALID_RANGE, sequence) }
}

fn class_character(rest: &mut &str, class: &str) -> PatternResult<char> {
    if rest.starts_with('\\') {
        return character_escape(rest);
    }
    next(rest).map_or_else(|| refused("missing closing ]", class), Ok)
}

/// Parses an escape for a single character.
fn character_escape(rest: &mut &str) -> PatternResult<char> {
    let all = *rest;
    *rest = &all[1..];
    let Some(c) = next(rest) else {
        return refused("trailing backslash at end of expression", "");
    };
    let octal = |rest: &str| rest.chars().next().and_then(|c| c.to_digit(8));
    match c {
        'a' => return Ok('\u{7}'),
        'f' => return Ok('\u{c}'),
        'n' => return Ok('\n'),
        'r' => return Ok('\r'),
        't' => return Ok('\t'),
        'v' => return Ok('\u{b}'),
        '0'..='7' if c == '0' || octal(rest).is_some() => {
            let mut value = c.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                let Some(digit) = octal(rest) else { break };
                value = value * 8 + digit;
                *rest = &rest[1..];
            }
            return Ok(char::from_u32(value).unwrap_or('\0'));
        }
        'x' => {
            if let Some(c) = hexadecimal(rest)? {
                return Ok(c);
            }
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok(c),
        _ => {}
    }
    refused(INVALID_ESCAPE, text_before(all, rest))
}

/// Parses the digits after `\x`. `None` if they are invalid; the inspected characters are consumed.
fn hexadecimal(rest: &mut &str) -> PatternResult<Option<char>> {
    let Some(first) = next(rest) else { return Ok(None) };
    if first != '{' {
        // Go reads two characters before it validates them.
        let second = next(rest);
        let value = first.to_digit(16).zip(second.and_then(|c| c.to_digit(16))).map(|(high, low)| high * 16 + low);
        return Ok(value.and_then(char::from_u32));
    }
    let (mut value, mut is_empty) = (0_u32, true);
    loop {
        match next(rest) {
            Some('}') if !is_empty => break,
            Some(c) => {
                let Some(digit) = c.to_digit(16) else { return Ok(None) };
                value = value * 16 + digit;
                if value > 0x10_ffff {
                    return Ok(None);
                }
                is_empty = false;
            }
            None => return Ok(None),
        }
    }
    // Go accepts a surrogate as a character; Rust does not.
    Ok(Some(char::from_u32(value).unwrap_or('\u{fffd}')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_go_refuses_have_the_errors_of_go() {
        for (pattern, words) in [
            ("a**", "invalid nested repetition operator: `**`"),
            ("a+?*", "invalid nested repetition operator: `+?*`"),
            ("a{1}{2}", "invalid nested repetition operator: `{1}{2}`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("(|+)", "missing argument to repetition operator: `+`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            ("(?-)a", "invalid or unsupported Perl syntax: `(?-)`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?", "invalid or unsupported Perl syntax: `(?`"),
            ("(?P<n", "invalid named capture: `(?P<n`"),
            ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
            ("(a", "missing closing ): `(a`"),
            ("a)b", "unexpected ): `a)b`"),
            ("x[a", "missing closing ]: `[a`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Nope}x", r"invalid character class range: `\p{Nope}`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            (r"\C", r"invalid escape sequence: `\C`"),
            (r"\1a", r"invalid escape sequence: `\1`"),
            (r"\x4", r"invalid escape sequence: `\x4`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            ("a\\", "trailing backslash at end of expression: ``"),
        ] {
            let words = format!("error parsing regexp: {words}");
            assert_eq!(check(pattern), Err(PatternError::Refused(words)), "{pattern}");
        }
        for pattern in ["", "a|b", "(?i)a", "(?i:a)", "[]a]", "a{,2}", r"\p{greek}", r"\Q*\E", "(a{10}){0}", "a{2}?"] {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
        }
        assert_eq!(check(&"(".repeat(500).replace('(', "(a")), refused("missing closing )", &"(a".repeat(500)));
        assert_eq!(check(&format!("{}{}", "(a".repeat(500), ")".repeat(500))), Err(PatternError::Undecided));
    }
}
