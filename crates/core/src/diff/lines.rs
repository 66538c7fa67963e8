//! Finds the common items of two lists, in the same order.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The maximum number of differing items that are compared. The time is quadratic, so if there are more, all of them
/// count as replaced.
const MOST_ITEMS: usize = 6_000;

/// A range of items in both lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineRange {
    /// The items are equal.
    Same(Range<usize>, Range<usize>),
    /// The items of the first list are replaced with those of the second; either range can be empty.
    Replaced(Range<usize>, Range<usize>),
}

/// Divides two lists into equal and replaced ranges.
pub fn parts<T: Eq + Hash>(live: &[T], next: &[T]) -> Vec<LineRange> {
    let start = live.iter().zip(next).take_while(|(one, other)| one == other).count();
    let (live_rest, next_rest) = (&live[start..], &next[start..]);
    let end = live_rest.iter().rev().zip(next_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (live_rest, next_rest) = (&live_rest[..live_rest.len() - end], &next_rest[..next_rest.len() - end]);

    let mut parts = vec![LineRange::Same(0..start, 0..start)];
    if live_rest.len() + next_rest.len() > MOST_ITEMS {
        parts.push(LineRange::Replaced(start..start + live_rest.len(), start..start + next_rest.len()));
    } else {
        // Replace items with numbers, because comparing long lines is slow.
        let mut numbers = HashMap::new();
        let mut number = |item| {
            let next = numbers.len();
            *numbers.entry(item).or_insert(next)
        };
        let live_rest: Vec<usize> = live_rest.iter().map(&mut number).collect();
        let next_rest: Vec<usize> = next_rest.iter().map(&mut number).collect();
        let shift = |range: Range<usize>| range.start + start..range.end + start;
        for op in capture_diff_slices(Algorithm::Myers, &live_rest, &next_rest) {
            let (live, next) = (shift(op.old_range()), shift(op.new_range()));
            parts.push(match op {
                DiffOp::Equal { .. } => LineRange::Same(live, next),
                _ => LineRange::Replaced(live, next),
            });
        }
    }
    parts.push(LineRange::Same(live.len() - end..live.len(), next.len() - end..next.len()));
    parts.retain(|part| {
        let (LineRange::Same(live, next) | LineRange::Replaced(live, next)) = part;
        !(live.is_empty() && next.is_empty())
    });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_kept_removed_and_added() {
        let of = |text: &'static str| text.chars().collect::<Vec<_>>();
        assert_eq!(
            parts(&of("abcdef"), &of("abXdYf")),
            [
                LineRange::Same(0..2, 0..2),
                LineRange::Replaced(2..3, 2..3),
                LineRange::Same(3..4, 3..4),
                LineRange::Replaced(4..5, 4..5),
                LineRange::Same(5..6, 5..6)
            ]
        );
        assert_eq!(parts(&of("ab"), &of("ab")), [LineRange::Same(0..2, 0..2)]);
        assert_eq!(parts(&of(""), &of("a")), [LineRange::Replaced(0..0, 0..1)]);
        assert_eq!(parts(&of("aa"), &of("a")), [LineRange::Same(0..1, 0..1), LineRange::Replaced(1..2, 1..1)]);
    }

    #[test]
    fn very_many_differences_are_one() {
        let live: Vec<usize> = (0..100_000).collect();
        let mut next: Vec<usize> = live.iter().map(|number| number * 7919 % 100_003 + 200_000).collect();
        (next[0], next[99_999]) = (0, 99_999);
        assert_eq!(
            parts(&live, &next),
            [
                LineRange::Same(0..1, 0..1),
                LineRange::Replaced(1..99_999, 1..99_999),
                LineRange::Same(99_999..100_000, 99_999..100_000)
            ]
        );
    }
}
