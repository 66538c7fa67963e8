//! Sample strings of a pattern, read from its syntax alone: for patterns that are too large for an automaton.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The maximum length of a sample in bytes.
const MAX_LENGTH: usize = 100_000;

/// Which of several possibilities a sample has.
#[derive(Clone, Copy)]
struct SampleWay {
    /// The alternative of each choice, and the part of each class.
    choice: usize,
    /// Repetitions beyond the least number, where the pattern allows them.
    more: u32,
}

/// Strings that the pattern probably matches; nothing is certain about them. Empty if it does not parse.
pub fn samples_of(pattern: &str) -> Vec<String> {
    let Ok(hir) = super::parse(pattern) else { return Vec::new() };
    let ways = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (3, 2), (0, u32::MAX)];
    let mut samples: Vec<String> = Vec::new();
    for (choice, more) in ways {
        let mut text = String::new();
        if add(&hir, SampleWay { choice, more }, &mut text).is_some() && !samples.contains(&text) {
            samples.push(text);
        }
    }
    samples
}

fn add(hir: &Hir, way: SampleWay, text: &mut String) -> Option<()> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            // A letter is simpler than what is before the letters.
            let range = ranges.get(way.choice).or(ranges.last())?;
            let letter = ['a', 'A', '0'].into_iter().find(|c| range.start() <= *c && *c <= range.end());
            text.push(letter.unwrap_or_else(|| range.start()));
        }
        HirKind::Class(Class::Bytes(class)) => {
            let byte = class.ranges().iter().map(|range| range.start()).find(u8::is_ascii)?;
            text.push(char::from(byte));
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            let times = match way.more {
                u32::MAX => repetition.max.unwrap_or(repetition.min.saturating_add(1)),
                more => repetition.min.saturating_add(more).min(most),
            };
            for _ in 0..times {
                add(&repetition.sub, way, text)?;
                if text.len() > MAX_LENGTH {
                    return None;
                }
            }
        }
        HirKind::Capture(capture) => add(&capture.sub, way, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| add(part, way, text))?,
        HirKind::Alternation(parts) => add(parts.get(way.choice).or(parts.last())?, way, text)?,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_k8s_cel::re2;

    #[test]
    fn samples_match_the_pattern_they_are_of() {
        for pattern in
            [r"^[a-z]{3,9}(:[0-9]+)?$", r"^\p{L}{1,10}$", "^(a|b|cd)+$", "", "x{0}", r"^([^/]{1,1000}/)?[a-z]$"]
        {
            let compiled = re2::compile(pattern).expect("a pattern");
            let samples = samples_of(pattern);
            assert!(!samples.is_empty(), "{pattern}");
            for sample in samples {
                assert!(compiled.is_match(&sample), "{pattern}: {sample:?}");
            }
        }
        assert!(samples_of("(").is_empty());
    }
}
