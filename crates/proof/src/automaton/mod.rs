//! Languages of patterns, decided: is there a string that some patterns match and others do not?
//!
//! Patterns are RE2 as in `pattern` of a schema: unanchored, over code points. Each is read by `regex-syntax` (after
//! the translation of [`gantry_schema::re2`]) and becomes a nondeterministic automaton; [`search`] walks the product of
//! all of them, made deterministic on the way, until it finds a shortest string or has seen everything. Since the
//! product is finite, finding nothing is a proof.
//!
//! Code points that no pattern distinguishes are one letter of the [`alphabet`], so `\p{L}` costs no more than `a`.

mod alphabet;
mod machine;
mod search;

use regex_syntax::hir::Hir;

use gantry_schema::{Patterns, re2};

pub use search::find;

/// Which strings to look for.
#[derive(Debug, Clone, Default)]
pub struct Query<'a> {
    /// All of these match.
    pub all: Vec<&'a str>,
    /// None of these matches.
    pub none: Vec<&'a str>,
    /// Bounds on the length in code points, both inclusive.
    pub min: u64,
    /// The longest length, in characters; `None` for no bound.
    pub max: Option<u64>,
}

/// Steps that a search may take before it gives up; one step is one automaton position looked at.
///
/// Patterns that are run beside the search are shared with other questions, and bounded by themselves.
#[derive(Debug, Clone)]
pub struct Budget {
    left: u64,
    patterns: Patterns,
}

impl Budget {
    /// A budget of so many steps, with patterns of its own.
    pub fn new(steps: u64) -> Self {
        Self::sharing(steps, &Patterns::default())
    }

    /// A budget of so many steps over patterns that others have compiled, too.
    pub fn sharing(steps: u64, patterns: &Patterns) -> Self {
        Budget { left: steps, patterns: patterns.clone() }
    }

    /// The patterns, to be shared with others.
    pub fn patterns(&self) -> Patterns {
        self.patterns.clone()
    }

    /// Steps that are left.
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

/// The pattern that matches exactly these strings.
pub fn alternatives<'a>(strings: impl IntoIterator<Item = &'a str>) -> String {
    let escaped: Vec<String> = strings.into_iter().map(regex_syntax::escape).collect();
    format!(r"\A(?:{})\z", escaped.join("|"))
}

/// Deepest nesting of a pattern that is taken on; reading it recurses.
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
