//! Decides questions about regular languages: is there a string that some patterns match and others do not?
//!
//! Patterns are RE2 as in a schema's `pattern`: unanchored, over code points. Each is parsed by `regex-syntax` (after
//! the translation of [`gantry_k8s_cel::re2`]) and becomes a nondeterministic automaton. [`search`] walks the product of
//! all automata, determinized on the fly, until it finds a shortest string or has visited every state. The product is
//! finite, so finding nothing is a proof.
//!
//! Code points that no pattern distinguishes are one letter of the [`alphabet`], so `\p{L}` costs no more than `a`.

mod alphabet;
mod machine;
mod samples;
mod search;

use regex_syntax::hir::Hir;

use gantry_k8s_cel::{re2, re2::Patterns};

pub use samples::samples_of;
pub use search::find;

/// Describes the strings to look for.
#[derive(Debug, Clone, Default)]
pub struct StringQuery<'a> {
    /// Patterns that must all match.
    pub all: Vec<&'a str>,
    /// Patterns of which none may match.
    pub none: Vec<&'a str>,
    /// The minimum length in code points, inclusive.
    pub min: u64,
    /// The maximum length in code points, inclusive; `None` for no bound.
    pub max: Option<u64>,
}

/// The number of steps that a search can take before it gives up. One step visits one position of an automaton.
///
/// The budget also holds a cache of compiled patterns, which is shared with other questions and has its own limit.
#[derive(Debug, Clone)]
pub struct SearchBudget {
    left: u64,
    patterns: Patterns,
}

impl SearchBudget {
    /// A budget of `steps` steps with its own pattern cache.
    pub fn new(steps: u64) -> Self {
        Self::sharing(steps, &Patterns::default())
    }

    /// A budget of `steps` steps that shares the pattern cache `patterns`.
    pub fn sharing(steps: u64, patterns: &Patterns) -> Self {
        SearchBudget { left: steps, patterns: patterns.clone() }
    }

    /// The pattern cache, for sharing.
    pub fn patterns(&self) -> Patterns {
        self.patterns.clone()
    }

    /// The number of steps left.
    pub fn left(&self) -> u64 {
        self.left
    }

    fn spend(&mut self, steps: usize) -> Result<(), String> {
        match self.left.checked_sub(steps as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err("the patterns are too large to compare within the step limit".to_owned())
            }
        }
    }
}

/// A pattern that matches exactly these strings.
pub fn alternatives<'a>(strings: impl IntoIterator<Item = &'a str>) -> String {
    let escaped: Vec<String> = strings.into_iter().map(regex_syntax::escape).collect();
    format!(r"\A(?:{})\z", escaped.join("|"))
}

/// The maximum nesting of a pattern; parsing it is recursive.
const MAX_NESTING: u32 = 100;

fn parse(pattern: &str) -> Result<Hir, String> {
    let translated = re2::translate(pattern)?;
    regex_syntax::ParserBuilder::new()
        .utf8(false)
        .nest_limit(MAX_NESTING)
        .build()
        .parse(&translated)
        .map_err(|error| error.to_string().lines().last().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests;
