//! RE2 patterns, as Go reads them, on the `regex` crate.
//!
//! The two speak dialects of one language. Go takes `{` and `[[]` literally where `regex` refuses them, its `\d`, `\w`,
//! `\s` and `\b` are ASCII, it knows `\Q…\E` and octal escapes, and has no set operations in classes. So a pattern is
//! read by Go's rules and written out again with nothing left to interpretation: every literal as a code point, every
//! class item by itself. What Go would refuse, or `regex` cannot do, is left undecided.

pub(crate) mod syntax;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

/// A pattern of a schema, compiled when it is first asked.
pub struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
    /// What all patterns that are compiled together may still weigh.
    left: Arc<AtomicU64>,
}

/// The patterns of one use, such as a schema: each is compiled once, and together they are bounded.
#[derive(Clone)]
pub struct Patterns {
    known: Arc<Mutex<HashMap<Box<str>, Arc<Pattern>>>>,
    left: Arc<AtomicU64>,
}

/// The longest pattern that is read.
const MAX_LENGTH: usize = 64 << 10;
/// The largest pattern that is compiled, in states of its machine, as far as can be told before it is built. A thousand
/// of them take about a millisecond and 32 KiB.
const MAX_WEIGHT: u64 = 500_000;
/// What a pattern weighs beside its states.
const BASE: u64 = 500;
/// What the patterns of one use may weigh together.
const MAX_TOGETHER: u64 = 2_000_000;
/// And should what was told be wrong.
const SIZE_LIMIT: usize = 32 << 20;

impl Default for Patterns {
    fn default() -> Self {
        Self::within(MAX_TOGETHER)
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns").finish_non_exhaustive()
    }
}

impl Patterns {
    /// Patterns that may weigh so much together: about a microsecond and 32 bytes each.
    pub fn within(weight: u64) -> Self {
        Self { known: Arc::default(), left: Arc::new(AtomicU64::new(weight)) }
    }

    pub fn get(&self, source: &str) -> Arc<Pattern> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pattern) = known.get(source) {
            return Arc::clone(pattern);
        }
        let pattern = Pattern { source: source.into(), compiled: OnceLock::new(), left: Arc::clone(&self.left) };
        let pattern = Arc::new(pattern);
        known.insert(source.into(), Arc::clone(&pattern));
        pattern
    }
}

impl fmt::Debug for Pattern {
    /// The same whether or not the pattern was asked already.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.source).finish()
    }
}

impl Pattern {
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The compiled pattern; an error says why there is none.
    pub fn regex(&self) -> Result<&Regex, &str> {
        self.compiled.get_or_init(|| compile_within(&self.source, &self.left)).as_ref().map_err(String::as_str)
    }

    /// Whether the pattern occurs anywhere in `text`; an error says why that is undecided.
    pub fn is_match(&self, text: &str) -> Result<bool, &str> {
        self.regex().map(|regex| regex.is_match(text))
    }
}

fn compile_within(pattern: &str, left: &AtomicU64) -> Result<Regex, String> {
    let (translated, weight) = weighed(pattern)?;
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(weight + BASE));
    if taken.is_err() {
        return Err("the patterns are too large together".to_owned());
    }
    built(&translated)
}

/// Compiles an RE2 pattern. For text, not bytes: there a `\B` alone would match inside of a character, too.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    built(&weighed(pattern)?.0)
}

/// Whether the pattern is one that can be compiled, as far as can be told without doing it.
pub fn check(pattern: &str) -> Result<(), String> {
    weighed(pattern).map(|_| ())
}

/// How many states the machine of a pattern has, about.
pub fn weight(pattern: &str) -> Result<u64, String> {
    weighed(pattern).map(|(_, weight)| weight)
}

fn built(translated: &str) -> Result<Regex, String> {
    RegexBuilder::new(translated).size_limit(SIZE_LIMIT).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => TOO_LARGE.to_owned(),
        other => last_line(&other),
    })
}

const TOO_LARGE: &str = "the pattern is too large to compile";

/// The pattern as `regex` writes it, and its weight.
fn weighed(pattern: &str) -> Result<(String, u64), String> {
    let translated = translate(pattern)?;
    let parsed = regex_syntax::Parser::new().parse(&translated).map_err(|error| last_line(&error))?;
    let weight = weight_of(&parsed);
    if weight > MAX_WEIGHT { Err(TOO_LARGE.to_owned()) } else { Ok((translated, weight)) }
}

fn last_line(error: &dyn fmt::Display) -> String {
    error.to_string().lines().last().unwrap_or_default().to_owned()
}

/// The machine works on bytes: a range of characters is a state for each length of their encoding, and each of its bytes.
fn weight_of(pattern: &Hir) -> u64 {
    let sum = |parts: &[Hir]| parts.iter().fold(0, |sum: u64, part| sum.saturating_add(1 + weight_of(part)));
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => {
            let states = |(start, end): (usize, usize)| (start..=end).sum::<usize>() as u64;
            class.iter().map(|range| states((range.start().len_utf8(), range.end().len_utf8()))).sum()
        }
        HirKind::Class(Class::Bytes(class)) => class.iter().count() as u64,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min + 1).max(1);
            weight_of(&repetition.sub).saturating_add(2).saturating_mul(times.into())
        }
        HirKind::Capture(capture) => weight_of(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// Writes the RE2 pattern `pattern` in the syntax of the `regex` crate.
pub fn translate(pattern: &str) -> Result<String, String> {
    if pattern.len() > MAX_LENGTH {
        return Err("the pattern is too long".to_owned());
    }
    let groups = vec![Repeats { most: 1, last: 1 }];
    let mut translator = Translator { rest: pattern, out: String::with_capacity(pattern.len() * 2), groups };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// The groups that are open, the innermost last; the first is the pattern itself.
    groups: Vec<Repeats>,
}

/// How many times counted repetitions repeat something in a group at most: those inside of each other are multiplied.
struct Repeats {
    most: u64,
    /// The same of what comes last, which a repetition would be about.
    last: u64,
}

/// How many times Go lets counted repetitions repeat anything.
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

    fn literal(&mut self, c: char) {
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
                    return Err(format!("the repetition {repetition} of a repetition"));
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
                '(' => self.group()?,
                '[' => self.class()?,
                '\\' => self.escape()?,
                c => self.literal(c),
            }
        }
        Ok(())
    }

    /// `*`, `+`, `?` or a counted repetition, with the `?` that makes it lazy, consumed.
    fn repetition(&mut self) -> Result<Option<&'a str>, String> {
        let before = self.rest;
        if self.rest.starts_with('{') {
            let Some((low, high)) = self.counted() else { return Ok(None) };
            // The higher bound counts; without it the lower one does.
            let (low, high) = (times(low), high.map(|high| if high.is_empty() { times(low) } else { times(high) }));
            let times = high.unwrap_or(low);
            if let Some(group) = self.groups.last_mut() {
                group.last = if times == 0 { 1 } else { group.last.saturating_mul(times) };
                if group.last.max(low) > MAX_REPEATS {
                    return Err(format!("something is repeated more than {MAX_REPEATS} times"));
                }
            }
        } else if !(self.take("*") || self.take("+") || self.take("?")) {
            return Ok(None);
        }
        self.take("?");
        Ok(Some(&before[..before.len() - self.rest.len()]))
    }

    /// The bounds of `{2}`, `{2,}` or `{2,3}`, consumed. Anything else that begins with a brace is literal.
    fn counted(&mut self) -> Option<(&'a str, Option<&'a str>)> {
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

    fn group(&mut self) -> Result<(), String> {
        // The parenthesis itself is consumed.
        if self.take("?P<") || self.take("?<") {
            let Some((name, rest)) = self.rest.split_once('>') else {
                return Err("a group name without end".to_owned());
            };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("the group name {name:?} is not allowed"));
            }
            self.rest = rest;
            self.out.push_str("(?:");
        } else if self.take("?") {
            let Some(end) = self.rest.find([':', ')']) else { return Err("a group without end".to_owned()) };
            let flags = &self.rest[..=end];
            let (on, off) = flags[..end].split_once('-').map_or((&flags[..end], None), |(on, off)| (on, Some(off)));
            let are_flags = |flags: &str| flags.chars().all(|c| "imsU".contains(c));
            if !are_flags(on) || off.is_some_and(|off| off.is_empty() || !are_flags(off)) {
                return Err(format!("(?{} is no group", &flags[..end]));
            }
            self.flags(on, off.unwrap_or_default(), flags.ends_with(':'));
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

    /// Flags for a group that is opened, or for what follows: each once, and none of them if none is set.
    fn flags(&mut self, on: &str, off: &str, opens: bool) {
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

    /// An escape outside of a class; the backslash is consumed.
    fn escape(&mut self) -> Result<(), String> {
        if self.take("Q") {
            let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
            self.rest = rest;
            quoted.chars().for_each(|c| self.literal(c));
            return Ok(());
        }
        // A lone `\E` ends nothing.
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
        self.literal(c);
        Ok(())
    }

    /// `\d`, `\pN` and the like, written between `open` and `close`. False where it is another escape.
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
            let Some((name, rest)) = self.rest.split_once('}') else { return Err("\\p{ without end".to_owned()) };
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
            return Err(format!("\\p{{{name}}} is no Unicode class"));
        }
        let _ = write!(self.out, "\\{}{{{name}}}", if negated { 'P' } else { 'p' });
        Ok(true)
    }

    /// The character that an escape stands for; the backslash is consumed.
    fn escaped_character(&mut self) -> Result<char, String> {
        let Some(c) = self.next() else { return Err("a backslash at the end".to_owned()) };
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
                    return Err(format!("\\{c} is a back-reference"));
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
            c => Err(format!("\\{c} is no escape")),
        }
    }

    fn hexadecimal(&mut self) -> Result<char, String> {
        let digits = if self.take("{") {
            let Some((digits, rest)) = self.rest.split_once('}') else { return Err("\\x{ without end".to_owned()) };
            self.rest = rest;
            digits
        } else {
            let Some(digits) = self.rest.get(..2) else { return Err("\\x without two digits".to_owned()) };
            self.rest = &self.rest[2..];
            digits
        };
        let code =
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten();
        code.and_then(char::from_u32).ok_or_else(|| format!("\\x{{{digits}}} is no character"))
    }

    /// A class; the opening bracket is consumed.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            if self.rest.is_empty() {
                return Err("a class without end".to_owned());
            }
            // A bracket that comes first is literal.
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
                    return Err("a range from high to low".to_owned());
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
            None => Err("a class without end".to_owned()),
        }
    }

    /// `[:alpha:]` inside a class. False where the bracket is literal.
    fn posix_class(&mut self) -> Result<bool, String> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        let Some(end) = self.rest.find(":]") else { return Ok(false) };
        let name = self.rest.get(2..end).unwrap_or_default();
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("[:{name}:] is no class"));
        }
        self.out.push_str(&self.rest[..end + 2]);
        self.rest = &self.rest[end + 2..];
        Ok(true)
    }
}

/// A bound of a counted repetition, a number without leading zeros.
fn times(bound: &str) -> u64 {
    bound.parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pattern with a text that Go's `regexp` matches and one that it does not.
    #[test]
    fn patterns_match_what_go_matches() {
        for (pattern, yes, no) in [
            (r"^[\w-\.]+$", "a-b.c", "a,b"),
            (r"^[[]$", "[", "]"),
            (r"^[]a]$", "]", "b"),
            (r"^[^]a]$", "b", "]"),
            (r"^\Qa.b\E+$", "a.bbb", "axb"),
            (r"^\Q[", "[", "a"),
            (r"^a{$", "a{", "a"),
            (r"^a{,3}$", "a{,3}", "aa"),
            (r"^{a}$", "{a}", "a"),
            (r"^a{2}$", "aa", "a"),
            (r"^a{2,}$", "aaa", "a"),
            (r"^a{02}$", "a{02}", "aa"),
            (r"^\d+$", "12", "١"),
            (r"^\w$", "_", "é"),
            (r"^\W$", "é", "a"),
            (r"^\s$", "\t", "\u{b}"),
            (r"^[^\s\d]$", "a", " "),
            (r"^[\D]$", "a", "1"),
            (r"\bfoo\b", "éfooé", "xfoo"),
            (r"^é\Bé$", "éé", "é é"),
            (r"^[a&&b]$", "&", "c"),
            (r"^[a~~-]$", "-", "b"),
            (r"^[+--]$", ",", "."),
            (r"^[~~]$", "~", "a"),
            (r"^\<a\>$", "<a>", "a"),
            (r"\Aa\z", "a", "a\n"),
            (r"^a$", "a", "a\n"),
            (r"(?i)^k$", "\u{212a}", "j"),
            (r"^(?i:a)b$", "Ab", "AB"),
            (r"^(?s).$", "\n", ""),
            (r"^.$", "é", "\n"),
            (r"(?m)^b$", "a\nb", "ab"),
            (r"^(?P<x>a)(?<y>b)$", "ab", "a"),
            (r"^\pN\p{Greek}\P{L}\p{^L}$", "1α11", "a111"),
            (r"^[\pN\p{^L}]$", "1", "a"),
            (r"^[[:alpha:]-]$", "-", "é"),
            (r"^[[:^alpha:]]$", "é", "a"),
            (r"^\x41\x{e9}\101\0$", "AéA\0", "A"),
            (r"^\/\_\-\#\ $", "/_-# ", "a"),
            (r"^\a\f\v$", "\u{7}\u{c}\u{b}", "a"),
            (r"^(|a)$", "", "b"),
            (r"^a#b $", "a#b ", "ab"),
            (r"^(?)a$", "a", "A"),
            (r"^(?ii)a$", "A", "b"),
            (r"^(?i-i:a)$", "a", "A"),
            (r"^a{1000}?$", &"a".repeat(1000), "a"),
            (r"^(a{10}){0}(b{500}){2}$", &"b".repeat(1000), "b"),
            (r"^(a{500}|b){2}$", "bb", "a"),
            // Not between the bytes of a character.
            (r"\B", "-é", "aéa"),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c", "-a"),
        ] {
            let regex = compile(pattern).unwrap_or_else(|reason| panic!("{pattern}: {reason}"));
            assert!(regex.is_match(yes), "{pattern} should match {yes:?}");
            assert!(!regex.is_match(no), "{pattern} should not match {no:?}");
        }
    }

    #[test]
    fn what_go_refuses_is_undecided() {
        for pattern in [
            "a{1001}",
            "a{1,1001}",
            "a{1001,}",
            "(a{100}){11}",
            "(b|(a{2}c){2}d){251}",
            "a**",
            "a+?*",
            "a{1}{2}",
            "a??+",
            "(?-)a",
            "(?i-)a",
            r"\C",
            r"\Z",
            r"\1",
            r"(?=a)",
            r"(?x)a",
            r"[a",
            r"[b-a]",
            r"[[:foo:]]",
            r"\p{Nope}",
            "a\\",
            r"\E",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        assert!(Patterns::default().get(r"(?!a)").is_match("b").is_err());
    }

    #[test]
    fn patterns_are_weighed_before_they_are_built() {
        for (pattern, fits) in [
            (r"^\p{L}{1,63}$", true),
            (r"^.{1,1000}$", true),
            (r"^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$", true),
            (r"^\p{L}{1,1000}$", false),
            (r"\p{L}{1000}.{1000}", false),
            (r"^(\p{L}{1,30}){1,30}$", false),
        ] {
            assert_eq!(compile(pattern).err().as_deref(), (!fits).then_some(TOO_LARGE), "{pattern}");
        }
        assert!(compile(&"a".repeat(MAX_LENGTH + 1)).is_err());
    }

    #[test]
    fn patterns_are_bounded_together_and_compiled_once() {
        let of = |n: usize| format!("^[a-z]{{{n}}}$");
        let patterns = Patterns::within((weight(&of(100)).unwrap() + BASE) * 3 / 2);
        assert_eq!(patterns.get(&of(100)).is_match("a"), Ok(false));
        assert_eq!(patterns.get(&of(99)).is_match("a"), Err("the patterns are too large together"));
        // The first one is there still.
        assert_eq!(patterns.get(&of(100)).is_match(&"a".repeat(100)), Ok(true));
    }
}
