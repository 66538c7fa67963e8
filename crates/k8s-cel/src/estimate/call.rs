//! The cost of calls and the size of their results: for the language, the Kubernetes libraries and the cel-go
//! extensions.

use super::place::{ITEMS, VALUES};
use super::size::{Size, scaled};
use super::sketch::{Id, Of};
use super::walk::{Entries, EstimateWalk, VisitedArgument};
use crate::signature::Signature;
use crate::typing::Ty;

/// The cost per character of traversing a string.
const PER_CHARACTER: f64 = 0.1;
/// The cost per character of a pattern, multiplied by the cost of traversing the string.
const PER_PATTERN_CHARACTER: f64 = 0.25;
/// The assumed lengths of the pattern of a named format, and of its name.
const FORMAT_PATTERN: f64 = 128.0;
const FORMAT_NAME: u64 = 64;
/// The size of an address in bytes.
const ADDRESS: u64 = 16;
/// The cost of creating a list, including the call.
const MAKE_LIST: u64 = 11;

/// The cost of a call without its arguments, and the size of its result.
type Estimate = (u64, Option<Size>);

/// The cost of the call `id`, including its arguments. The most expensive overload counts.
pub(super) fn cost<'e>(
    walk: &mut EstimateWalk<'_, 'e>,
    id: Id,
    target: Option<&VisitedArgument<'e>>,
    args: &[VisitedArgument<'e>],
    overloads: &[&'static Signature],
) -> u64 {
    let of_args = args.iter().fold(0, |cost: u64, arg| cost.saturating_add(walk.cost(arg.id)));
    let of_target = target.map_or(0, |target| walk.cost(target.id));
    let mut own = 0;
    let mut size = None;
    for overload in overloads {
        if overload.name == "dyn" && walk.model.follows_values {
            // `dyn` only bypasses the type checker.
            let (size, entries) = args.first().map_or((None, None), |arg| (walk.size(arg.id), walk.entries(arg.id)));
            walk.set_size(id, size);
            walk.set_entries(id, entries);
            return of_args.saturating_add(1);
        }
        let (cost, of_result) = match (overload.name, args) {
            ("_?_:_", [condition, one, other]) => conditional(walk, id, condition, one, other),
            _ => {
                let mut call = OverloadCall { walk, id, overload, target, args };
                let (cost, size) = call.estimate();
                (cost.saturating_add(of_args), size)
            }
        };
        own = own.max(cost);
        size = match (size, of_result) {
            (Some(before), Some(now)) => Some(Size::or(before, now)),
            (before, now) => before.or(now),
        };
        if let ("_[_]", [operand, _], Some(Ty::Of(container @ ("list" | "map"), _))) =
            (overload.name, args, overload.args.first())
        {
            size = walk.entries(operand.id).map(|entries| entries.value);
            let place = walk.place(operand.id).unwrap_or_default();
            let place = walk.then(&place, if *container == "list" { ITEMS } else { VALUES });
            walk.set_place(id, place);
        }
        if size.is_none() && walk.model.follows_values {
            size = walk.size(id);
        }
    }
    // Only the condition of loops and the selection of an optional field have no overload.
    if overloads.is_empty() && args.len() == 2 && !walk.model.optional_fields_cost {
        return 0;
    }
    if overloads.is_empty() {
        own = of_args.saturating_add(1);
        size = if walk.model.follows_values { walk.size(id) } else { None };
    }
    walk.set_size(id, size);
    own.saturating_add(of_target)
}

/// The estimate for a conditional, which has one of two values.
fn conditional(
    walk: &mut EstimateWalk,
    id: Id,
    condition: &VisitedArgument,
    one: &VisitedArgument,
    other: &VisitedArgument,
) -> Estimate {
    let known = |seen: &VisitedArgument| seen.size.unwrap_or(Size::UNKNOWN);
    let entries = Entries::or(walk.entries(one.id), walk.entries(other.id));
    walk.set_entries(id, entries);
    let cost = walk.cost(condition.id).saturating_add(walk.cost(one.id).max(walk.cost(other.id)));
    (cost, Some(known(one).or(known(other))))
}

/// A call of one overload.
struct OverloadCall<'w, 's, 'e> {
    walk: &'w mut EstimateWalk<'s, 'e>,
    id: Id,
    overload: &'static Signature,
    target: Option<&'w VisitedArgument<'e>>,
    args: &'w [VisitedArgument<'e>],
}

/// The estimate for a function that creates a list.
fn list(count: Size, cost: f64) -> Option<Estimate> {
    Some((scaled(count.max, cost).saturating_add(MAKE_LIST), Some(count)))
}

/// The type of a parameter.
fn parameter(overload: &'static Signature, at: usize) -> Option<&'static Ty> {
    overload.args.get(at)
}

fn is_text(ty: Option<&Ty>) -> bool {
    matches!(ty, Some(Ty::Scalar("string" | "bytes")))
}

fn is_list_of_texts(ty: Option<&Ty>) -> bool {
    matches!(ty, Some(Ty::Of("list", of)) if is_text(of.first()))
}

impl<'e> OverloadCall<'_, '_, 'e> {
    fn estimate(&mut self) -> Estimate {
        self.extension().or_else(|| self.kubernetes()).or_else(|| self.language()).unwrap_or((1, None))
    }

    /// The size of an argument, as libraries compute it.
    fn size(&mut self, seen: &VisitedArgument<'e>) -> Size {
        seen.size.or_else(|| self.walk.size_at(seen.place.as_ref())).unwrap_or(Size::UNKNOWN)
    }

    /// The size of an argument, as the language itself computes it.
    fn known(seen: &VisitedArgument) -> Size {
        seen.size.unwrap_or(Size::UNKNOWN)
    }

    fn int(&self, seen: &VisitedArgument, or: u64) -> u64 {
        match self.walk.nodes[seen.id].of {
            Of::Constant { int: Some(int), .. } => u64::try_from(int).unwrap_or_default(),
            _ => or,
        }
    }

    /// The functions on sets and lists that cel-go adds.
    fn extension(&mut self) -> Option<Estimate> {
        let name = self.overload.name;
        match (name, self.target, self.args) {
            ("sets.contains" | "sets.intersects" | "sets.equivalent", _, [one, other]) => {
                let both = self.size(one).times(self.size(other)).max;
                let cost = if name == "sets.equivalent" { 2.0 } else { 1.0 };
                Some((scaled(both, cost).saturating_add(1), None))
            }
            ("slice", Some(target), [start, end]) => {
                let size = self.size(target);
                let count = self.int(end, size.max).wrapping_sub(self.int(start, 0));
                list(Size::fixed(count), 1.0)
            }
            ("flatten", Some(target), args) => {
                let depth = args.first().map_or(1, |depth| self.int(depth, u64::MAX));
                list(self.size(target), depth as f64)
            }
            ("lists.range", None, [count]) => list(Size::fixed(self.int(count, u64::MAX)), 1.0),
            ("reverse", Some(target), []) => list(self.size(target), 1.0),
            ("distinct", Some(target), []) => {
                let size = self.size(target);
                list(size.times(size), 2.0)
            }
            ("sort", Some(target), []) => self.sorted(target, parameter(self.overload, 0)),
            ("@sortByAssociatedKeys", Some(_), [keys]) => self.sorted(keys, parameter(self.overload, 1)),
            _ => None,
        }
    }

    fn sorted(&mut self, of: &VisitedArgument<'e>, ty: Option<&Ty>) -> Option<Estimate> {
        let size = self.size(of);
        list(size.times(size), if is_list_of_texts(ty) { 2.0 + PER_CHARACTER } else { 2.0 })
    }

    /// Whether the elements of a list are strings, and their size; `None` if the value is not known to be a list.
    fn elements(&mut self, of: &VisitedArgument<'e>) -> Option<(bool, Size)> {
        let Ty::Of(_, params) = self.walk.ty(of.id) else { return None };
        let element = params.first()?;
        let is_text = is_text(Some(self.walk.head(element)));
        let place = of.place.as_ref().map(|place| self.walk.then(&place.without_spare_room(), ITEMS));
        let size = self.walk.size_at(place.as_ref());
        Some((is_text, size.unwrap_or(Size::UNKNOWN)))
    }

    /// The functions whose cost Kubernetes defines.
    fn kubernetes(&mut self) -> Option<Estimate> {
        let name = self.overload.name;
        let through = |size: Size, times: f64| scaled(size.max, times * PER_CHARACTER);
        match (name, self.target, self.args) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes", Some(target), _) => {
                let count = self.size(target).max;
                let cost = match self.elements(target) {
                    Some((true, size)) => count.saturating_mul(through(size, 1.0).saturating_add(1)),
                    Some((false, _)) => count,
                    None if name == "includes" => count,
                    None => scaled(count, PER_CHARACTER),
                };
                Some((cost, None))
            }
            ("url", _, [text]) => {
                let size = self.size(text);
                Some((through(size, 1.0), self.walk.model.types_cost.then_some(size)))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                let size = self.size(target);
                Some((through(size, 1.0), Some(size)))
            }
            ("replace", Some(target), [old, new, ..]) => {
                let (text, old, new) = (self.size(target), self.size(old), self.size(new));
                Some((through(text, 2.0), Some(replaced(text, old, new))))
            }
            ("split", Some(target), args) => {
                let size = self.size(target);
                let limit = args.get(1).and_then(|limit| match self.walk.nodes[limit.id].of {
                    Of::Constant { int, .. } => int.map(|int| int as u64),
                    _ => None,
                });
                Some((through(size, 2.0), Some(Size::up_to(limit.unwrap_or(size.max)))))
            }
            ("join", Some(target), args) => {
                let count = self.size(target);
                let mut size = match self.elements(target) {
                    Some((_, element)) => count.times(element),
                    None => Size::fixed(0),
                };
                if let Some(separator) = args.first() {
                    let between = Size { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                    size = size.add(self.size(separator).times(between));
                }
                Some((through(size, 1.0), Some(size)))
            }
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let size = self.size(target);
                let pattern = scaled(self.size(pattern).max, PER_PATTERN_CHARACTER);
                let text = through(size.add(Size::fixed(1)), 1.0);
                Some((text.saturating_mul(pattern), Some(Size::up_to(size.max))))
            }
            ("ip", Some(_), _) => Some((1, None)),
            ("quantity" | "isQuantity", ..) if !self.walk.model.quantities_cost => None,
            ("cidr" | "ip" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver", _, [text, ..]) => {
                Some((through(self.size(text), 1.0), None))
            }
            ("ip.isCanonical", _, [text]) => Some((through(self.size(text), 2.0), None)),
            ("containsIP" | "containsCIDR", Some(_), [of]) => {
                let mut cost = scaled(2 * ADDRESS, PER_CHARACTER);
                if name == "containsCIDR" {
                    cost += scaled(ADDRESS, PER_CHARACTER) + 1;
                }
                if is_text(parameter(self.overload, 1)) {
                    cost = cost.saturating_add(through(self.size(of), 1.0));
                }
                Some((cost, None))
            }
            ("validate", Some(_), [text]) => {
                let text = through(self.size(text), 1.0);
                Some((scaled(text, FORMAT_PATTERN * PER_PATTERN_CHARACTER), None))
            }
            ("_==_", _, [left, right]) if self.walk.model.types_cost => self.equal(left, right),
            _ => None,
        }
    }

    /// Searching a text for a pattern.
    fn matching(text: &VisitedArgument<'e>, pattern: &VisitedArgument<'e>) -> u64 {
        let text = scaled(Self::known(text).add(Size::fixed(1)).max, PER_CHARACTER);
        text.saturating_mul(scaled(Self::known(pattern).max, PER_PATTERN_CHARACTER))
    }

    /// Equality of two values of a type that Kubernetes adds.
    fn equal(&mut self, left: &VisitedArgument<'e>, right: &VisitedArgument<'e>) -> Option<Estimate> {
        let (Ty::Of(one, _), Ty::Of(other, _)) = (self.walk.ty(left.id), self.walk.ty(right.id)) else { return None };
        let cost = match *one {
            _ if one != other => return None,
            "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => 1,
            "kubernetes.NamedFormat" => scaled(FORMAT_NAME, PER_CHARACTER),
            "kubernetes.URL" => scaled(right.size.map_or(1, |size| size.max), PER_CHARACTER),
            _ => return None,
        };
        Some((cost, None))
    }

    /// The functions of the language itself.
    fn language(&mut self) -> Option<Estimate> {
        let first = parameter(self.overload, 0);
        let is_text = is_text(first);
        let through = |size: Size| scaled(size.max, PER_CHARACTER);
        match (self.overload.name, self.target, self.args) {
            ("format", Some(target), _) => Some((through(Self::known(target)), None)),
            ("bytes", _, [text]) if first == Some(&Ty::Scalar("string")) => {
                let size = Self::known(text);
                // Up to four bytes per character. As in the server, this can overflow.
                Some((through(size), Some(Size { min: size.min, max: size.max.wrapping_mul(4) })))
            }
            ("string", _, [bytes]) if first == Some(&Ty::Scalar("bytes")) => {
                let size = Self::known(bytes);
                Some((through(size), Some(Size { min: size.min / 4, max: size.max })))
            }
            ("strings.quote", _, [text]) => {
                let size = Self::known(text);
                let quoted = |of: u64, times: u64| of.wrapping_mul(times).wrapping_add(2);
                Some((through(size), Some(Size { min: quoted(size.min, 1), max: quoted(size.max, 2) })))
            }
            ("startsWith" | "endsWith", _, [part]) => Some((through(Self::known(part)), None)),
            ("@in", _, [_, list]) if matches!(parameter(self.overload, 1), Some(Ty::Of("list", _))) => {
                Some((Self::known(list).max, None))
            }
            ("matches", Some(target), [pattern]) => Some((Self::matching(target, pattern), None)),
            ("matches", None, [text, pattern]) if self.walk.model.global_matches_costs => {
                Some((Self::matching(text, pattern), None))
            }
            ("contains", Some(target), [part]) => {
                Some((through(Self::known(target)).saturating_mul(through(Self::known(part))), None))
            }
            ("_+_", _, [left, right]) if is_text || matches!(first, Some(Ty::Of("list", _))) => {
                let size = Self::known(left).add(Self::known(right));
                let entries = Entries::or(self.walk.entries(left.id), self.walk.entries(right.id));
                self.walk.set_entries(self.id, entries);
                Some((if is_text { through(size) } else { 1 }, Some(size)))
            }
            ("_<_" | "_<=_" | "_>_" | "_>=_", _, [left, right]) if is_text => {
                Some((through(Size::up_to(Self::known(left).max.min(Self::known(right).max))), None))
            }
            ("_==_" | "_!=_", _, [left, right]) => {
                Some((through(Size::up_to(Self::known(left).max.min(Self::known(right).max))), None))
            }
            _ => None,
        }
    }
}

/// The size of a string after replacing every occurrence of a substring.
fn replaced(text: Size, old: Size, new: Size) -> Size {
    // The number of replacements, and the length of the text that is kept.
    let times = |text: u64, old: u64| (text as f64 / old as f64).ceil() as u64;
    let (most, kept_at_most) = match old.min {
        // Before each character and at the end.
        0 => (text.max.saturating_add(1), text.max),
        _ if new.max <= old.min => (0, text.max),
        old => (times(text.max, old), 0),
    };
    let (least, kept_at_least) = match old.max {
        0 => (text.min.saturating_add(1), text.min),
        _ if old.max <= new.min => (0, text.min),
        old => (times(text.min, old), 0),
    };
    Size { min: least, max: most }.times(new).add(Size { min: kept_at_least, max: kept_at_most })
}
