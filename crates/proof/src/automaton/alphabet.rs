//! The letters of a search: sets of code points that none of its patterns distinguishes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::SearchBudget;

/// A set of code points as sorted, disjoint ranges.
type CodePointRanges = Vec<RangeInclusive<u32>>;

/// A letter of the alphabet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letter {
    /// The code point that represents the letter in an answer.
    pub shown: char,
    /// Whether its code points are in `[0-9A-Za-z_]`, which is what `\b` distinguishes.
    pub is_word: bool,
    pub is_newline: bool,
}

/// All letters of a search.
#[derive(Debug)]
pub struct Alphabet {
    pub letters: Vec<Letter>,
    /// For each set of code points that occurs in the patterns, which letters it consists of.
    sets: BTreeMap<Vec<(u32, u32)>, Vec<bool>>,
}

/// The maximum number of intervals times sets.
const MAX_CELLS: usize = 8_000_000;
/// The number of cells that cost one step.
const CELLS: usize = 4;

/// The characters that are most readable in an answer, best first.
const PREFERENCE: [RangeInclusive<char>; 6] =
    ['a'..='z', '0'..='9', 'A'..='Z', '!'..='~', ' '..=' ', '\u{a1}'..='\u{24f}'];

impl Alphabet {
    pub fn from_patterns(patterns: &[Hir], budget: &mut SearchBudget) -> Result<Self, String> {
        let mut sets = BTreeSet::new();
        sets.insert(key(&word()));
        sets.insert(key(&[newline()]));
        for pattern in patterns {
            collect(pattern, &mut sets)?;
        }
        let mut borders: BTreeSet<u32> = [0, 0xd800, 0xe000, 0x11_0000].into();
        for (start, end) in sets.iter().flatten() {
            borders.extend([*start, end + 1]);
        }
        let borders: Vec<u32> = borders.into_iter().collect();
        // Every interval is looked up in every set.
        if borders.len().saturating_mul(sets.len()) > MAX_CELLS {
            return Err("the patterns have too many classes to compare".to_owned());
        }
        budget.spend(borders.len() * sets.len() / CELLS)?;

        // Intervals that belong to the same sets are one letter.
        let sets: Vec<Vec<(u32, u32)>> = sets.into_iter().collect();
        let mut groups: BTreeMap<Vec<bool>, Vec<(u32, u32)>> = BTreeMap::new();
        for interval in borders.windows(2) {
            let &[start, end] = interval else { continue };
            if (0xd800..0xe000).contains(&start) {
                continue;
            }
            let signature: Vec<bool> = sets.iter().map(|set| contains(set, start)).collect();
            groups.entry(signature).or_default().push((start, end - 1));
        }
        let mut groups: Vec<(Vec<bool>, char)> = groups
            .into_iter()
            .filter_map(|(signature, intervals)| Some((signature, most_readable(&intervals)?)))
            .collect();
        groups.sort_by_key(|(_, shown)| preference(*shown));

        let letters = groups.iter().map(|(_, shown)| Letter {
            shown: *shown,
            is_word: contains(&key(&word()), u32::from(*shown)),
            is_newline: *shown == '\n',
        });
        let letters = letters.collect();
        let sets = sets
            .into_iter()
            .enumerate()
            .map(|(index, set)| (set, groups.iter().map(|(signature, _)| signature[index]).collect()))
            .collect();
        Ok(Alphabet { letters, sets })
    }

    /// For each letter, whether it belongs to `set`, which must occur in the patterns of this alphabet.
    pub fn members(&self, set: &[RangeInclusive<u32>]) -> Vec<bool> {
        self.sets.get(&key(set)).cloned().unwrap_or_else(|| vec![false; self.letters.len()])
    }
}

/// The code points of a class.
pub fn ranges(class: &Class) -> Result<CodePointRanges, String> {
    match class {
        Class::Unicode(class) => Ok(class.iter().map(|r| u32::from(r.start())..=u32::from(r.end())).collect()),
        Class::Bytes(class) if class.iter().all(|r| r.end() < 0x80) => {
            Ok(class.iter().map(|r| u32::from(r.start())..=u32::from(r.end())).collect())
        }
        Class::Bytes(_) => Err("the pattern matches single bytes".to_owned()),
    }
}

/// The code points of a literal.
pub fn characters(literal: &[u8]) -> Result<impl Iterator<Item = RangeInclusive<u32>>, String> {
    let text = std::str::from_utf8(literal).map_err(|_| "the pattern matches single bytes".to_owned())?;
    Ok(text.chars().map(|c| u32::from(c)..=u32::from(c)))
}

fn collect(pattern: &Hir, sets: &mut BTreeSet<Vec<(u32, u32)>>) -> Result<(), String> {
    match pattern.kind() {
        HirKind::Empty => {}
        HirKind::Look(
            Look::Start | Look::End | Look::StartLF | Look::EndLF | Look::WordAscii | Look::WordAsciiNegate,
        ) => {}
        HirKind::Look(_) => return Err("the pattern has a look-around that is not compared".to_owned()),
        HirKind::Literal(literal) => sets.extend(characters(&literal.0)?.map(|c| key(&[c]))),
        HirKind::Class(class) => {
            sets.insert(key(&ranges(class)?));
        }
        HirKind::Repetition(repetition) => collect(&repetition.sub, sets)?,
        HirKind::Capture(capture) => collect(&capture.sub, sets)?,
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            for part in parts {
                collect(part, sets)?;
            }
        }
    }
    Ok(())
}

fn key(set: &[RangeInclusive<u32>]) -> Vec<(u32, u32)> {
    set.iter().map(|range| (*range.start(), *range.end())).collect()
}

fn word() -> CodePointRanges {
    [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')].map(|(a, z)| u32::from(a)..=u32::from(z)).into()
}

fn newline() -> RangeInclusive<u32> {
    u32::from('\n')..=u32::from('\n')
}

fn contains(set: &[(u32, u32)], c: u32) -> bool {
    let after = set.partition_point(|(start, _)| *start <= c);
    after > 0 && c <= set[after - 1].1
}

fn preference(c: char) -> (usize, char) {
    (PREFERENCE.iter().position(|range| range.contains(&c)).unwrap_or(PREFERENCE.len()), c)
}

/// The most readable code point of the intervals.
fn most_readable(intervals: &[(u32, u32)]) -> Option<char> {
    let of_preference = PREFERENCE.iter().find_map(|range| {
        let (first, last) = (u32::from(*range.start()), u32::from(*range.end()));
        intervals
            .iter()
            .filter(|(start, end)| *start <= last && first <= *end)
            .find_map(|(start, _)| char::from_u32(*start.max(&first)))
    });
    of_preference.or_else(|| intervals.iter().find_map(|(start, _)| char::from_u32(*start)))
}
