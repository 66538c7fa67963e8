//! RE2 patterns, parsed as Go does it, matched by the `regex` crate.
//!
//! The two dialects differ. Go takes `{` and `[[]` literally where `regex` rejects them; its `\d`, `\w`, `\s` and `\b`
//! are ASCII; it supports `\Q…\E` and octal escapes, and it has no set operations in classes. Therefore a pattern is
//! parsed by Go's rules and written out again without ambiguity: every literal as a code point, every class item
//! separately. Patterns that Go rejects or `regex` does not support are undecided.

pub mod syntax;
mod translate;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

pub use translate::translate;

/// A pattern that Go rejects or that `regex` does not support. Displays the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedPattern(String);

impl From<String> for UnsupportedPattern {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<UnsupportedPattern> for String {
    fn from(error: UnsupportedPattern) -> Self {
        error.0
    }
}

/// A pattern of a schema, compiled on first use.
pub struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, UnsupportedPattern>>,
    /// The remaining weight budget, shared by all patterns that are compiled together.
    left: Arc<AtomicU64>,
}

/// A shared set of patterns, such as those of one schema: each is compiled once, and their total weight is bounded.
#[derive(Clone)]
pub struct Patterns {
    known: Arc<Mutex<HashMap<Box<str>, Arc<Pattern>>>>,
    left: Arc<AtomicU64>,
}

/// The maximum weight of one pattern: the number of states of its automaton, estimated before it is built. A thousand
/// states take about a millisecond and 32 KiB.
const MAX_WEIGHT: u64 = 500_000;
/// The fixed weight of each pattern, in addition to its states.
const BASE: u64 = 500;
/// The default for the total weight of a set of patterns.
const MAX_TOTAL_WEIGHT: u64 = 2_000_000;
/// A second limit, in bytes, in case the weight of a pattern is underestimated.
const SIZE_LIMIT: usize = 32 << 20;

impl Default for Patterns {
    fn default() -> Self {
        Self::with_limit(MAX_TOTAL_WEIGHT)
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns").finish_non_exhaustive()
    }
}

impl Patterns {
    /// A set of patterns with this total weight limit; a unit takes about a microsecond and 32 bytes.
    pub fn with_limit(weight: u64) -> Self {
        Self { known: Arc::default(), left: Arc::new(AtomicU64::new(weight)) }
    }

    /// The pattern with this source. The same source always returns the same pattern.
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
    /// The output does not depend on whether the pattern is already compiled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.source).finish()
    }
}

impl Pattern {
    /// The pattern as it is written in the schema.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The compiled pattern; the error is the reason why it could not be compiled.
    pub fn regex(&self) -> Result<&Regex, &UnsupportedPattern> {
        self.compiled.get_or_init(|| compile_within(&self.source, &self.left)).as_ref()
    }

    /// Whether the pattern occurs anywhere in `text`; the error is the reason why that is undecided.
    pub fn is_match(&self, text: &str) -> Result<bool, &UnsupportedPattern> {
        self.regex().map(|regex| regex.is_match(text))
    }
}

fn compile_within(pattern: &str, left: &AtomicU64) -> Result<Regex, UnsupportedPattern> {
    let (translated, weight) = weighed(pattern)?;
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(weight + BASE));
    if taken.is_err() {
        return Err("the patterns together are too large".to_owned().into());
    }
    Ok(built(&translated)?)
}

/// Compiles an RE2 pattern for text, not bytes: on bytes, a lone `\B` would also match inside a character.
///
/// # Errors
/// Go rejects the pattern, or `regex` does not support it.
pub fn compile(pattern: &str) -> Result<Regex, UnsupportedPattern> {
    Ok(built(&weighed(pattern)?.0)?)
}

/// Whether the pattern can be compiled, as far as that is known without compiling it.
///
/// # Errors
/// See [`compile`].
pub fn check(pattern: &str) -> Result<(), UnsupportedPattern> {
    Ok(weighed(pattern).map(|_| ())?)
}

/// The approximate number of states in the automaton of a pattern.
///
/// # Errors
/// See [`compile`].
pub fn weight(pattern: &str) -> Result<u64, UnsupportedPattern> {
    Ok(weighed(pattern).map(|(_, weight)| weight)?)
}

fn built(translated: &str) -> Result<Regex, String> {
    RegexBuilder::new(translated).size_limit(SIZE_LIMIT).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => TOO_LARGE.to_owned(),
        other => last_line(&other),
    })
}

const TOO_LARGE: &str = "the pattern is too large to compile";

/// The pattern in the syntax of `regex`, and its weight.
fn weighed(pattern: &str) -> Result<(String, u64), String> {
    let translated = translate(pattern)?;
    let parsed = regex_syntax::Parser::new().parse(&translated).map_err(|error| last_line(&error))?;
    let weight = weight_of(&parsed);
    if weight > MAX_WEIGHT { Err(TOO_LARGE.to_owned()) } else { Ok((translated, weight)) }
}

fn last_line(error: &dyn fmt::Display) -> String {
    error.to_string().lines().last().unwrap_or_default().to_owned()
}

/// The automaton works on bytes: a range of characters needs a state for each byte of each encoded length.
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

#[cfg(test)]
mod tests {
    use super::translate::MAX_LENGTH;
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
            // `\B` does not match between the bytes of a character.
            (r"\B", "-é", "aéa"),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c", "-a"),
        ] {
            let regex = compile(pattern).unwrap_or_else(|reason| panic!("{pattern}: {reason}"));
            assert!(regex.is_match(yes), "{pattern} should match {yes:?}");
            assert!(!regex.is_match(no), "{pattern} should not match {no:?}");
        }
    }

    #[test]
    fn patterns_that_go_refuses_are_undecided() {
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
    fn the_size_of_a_pattern_is_estimated_before_it_is_compiled() {
        for (pattern, fits) in [
            (r"^\p{L}{1,63}$", true),
            (r"^.{1,1000}$", true),
            (r"^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$", true),
            (r"^\p{L}{1,1000}$", false),
            (r"\p{L}{1000}.{1000}", false),
            (r"^(\p{L}{1,30}){1,30}$", false),
        ] {
            assert_eq!(compile(pattern).err().map(String::from).as_deref(), (!fits).then_some(TOO_LARGE), "{pattern}");
        }
        assert!(compile(&"a".repeat(MAX_LENGTH + 1)).is_err());
    }

    #[test]
    fn patterns_are_bounded_together_and_compiled_once() {
        let of = |n: usize| format!("^[a-z]{{{n}}}$");
        let patterns = Patterns::with_limit((weight(&of(100)).unwrap() + BASE) * 3 / 2);
        assert_eq!(patterns.get(&of(100)).is_match("a"), Ok(false));
        assert_eq!(patterns.get(&of(99)).is_match("a"), Err(&"the patterns together are too large".to_owned().into()));
        // The first one is still available.
        assert_eq!(patterns.get(&of(100)).is_match(&"a".repeat(100)), Ok(true));
    }
}
