//! Structural schemas and values for them, from a seed: valid, nearly valid, and as unusual as real ones.
//!
//! The API server accepts most of these schemas; the caller drops the others. A value follows its schema closely enough
//! to reach nested keywords, and is then broken in one or two places.

// Each test binary uses its own part of this module.
#![allow(dead_code, unused_imports)]

mod broken;
mod broken_rules;
pub mod crds;
mod edits;
mod grammar;
mod reshapes;
mod rules;
mod schemas;
mod texts;
mod values;

pub use broken::break_crd;
pub use edits::{edited, rule};
pub use rules::{ruled_schema, ruled_value};
pub use schemas::{EVERYDAY_FORMATS, FORMATS, PATTERNS, schema};
pub use texts::{PATTERNS_OF_RE2, TEXTS};
pub use values::{broken, text_like, value};

/// A small random number generator (splitmix64): the same seed gives the same run everywhere.
#[derive(Clone)]
pub struct Random {
    state: u64,
    /// Decisions that were made in advance, in reverse order.
    decided: Vec<u8>,
    /// Whether schema features that are rare in real CRDs are rare here, too.
    everyday: bool,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed, decided: Vec::new(), everyday: false }
    }

    /// Like real CRDs: lists and objects in an `enum`, `multipleOf`, unusual formats and similar features are rare.
    pub fn everyday(seed: u64) -> Self {
        Self { everyday: true, ..Self::new(seed) }
    }

    /// Uses the decisions of a fuzzer, so that the fuzzer learns their effect.
    pub fn deciding(bytes: &[u8]) -> Self {
        Self { decided: bytes.iter().rev().copied().collect(), ..Self::new(0) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        if let Some(byte) = self.decided.pop() {
            return usize::from(byte) % limit.max(1);
        }
        (self.next() % limit.max(1) as u64) as usize
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Like `chance`, for features that almost never occur in real CRDs.
    pub fn rare(&mut self, percent: usize) -> bool {
        let percent = if self.everyday { percent.div_ceil(8) } else { percent };
        self.chance(percent)
    }

    /// The name of a format.
    pub fn format(&mut self) -> &'static str {
        match self.everyday && self.chance(85) {
            true => EVERYDAY_FORMATS[self.below(EVERYDAY_FORMATS.len())],
            false => FORMATS[self.below(FORMATS.len())].0,
        }
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
