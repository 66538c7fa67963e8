//! Functions on strings.

use super::budget::CelBudget;
use super::fault::{CelResult, EvaluationError};
use super::lib_string_format::format;
use super::library::{Function, OverloadResult};
use super::release::KubernetesRelease;
use super::value::CelValue;

/// The first release in which searching from an offset beyond the end of a string finds nothing. Before, it is an
/// error.
const OFFSETS_BEYOND_END: KubernetesRelease = KubernetesRelease::minor(32);
/// The first release in which searching an empty string backwards finds nothing. Before, it is an error.
const LAST_IN_EMPTY: KubernetesRelease = KubernetesRelease::minor(34);
/// The first release in which an empty string is not found beyond the end.
const OFFSETS_OF_EMPTY: KubernetesRelease = KubernetesRelease::minor(37);

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("size", 1, size),
    Function::member("size", 1, size),
    Function::member("contains", 2, |args, budget| test(args, budget, |text, part| text.contains(part))),
    Function::member("startsWith", 2, |args, budget| test(args, budget, |text, part| text.starts_with(part))),
    Function::member("endsWith", 2, |args, budget| test(args, budget, |text, part| text.ends_with(part))),
    Function::member("charAt", 2, char_at),
    Function::member("indexOf", 2, index_of).or_one_more(),
    Function::member("lastIndexOf", 2, last_index_of).or_one_more(),
    Function::member("lowerAscii", 1, |args, budget| map(args, budget, str::to_ascii_lowercase)),
    Function::member("upperAscii", 1, |args, budget| map(args, budget, str::to_ascii_uppercase)),
    Function::member("replace", 3, replace).or_one_more(),
    Function::member("split", 2, split).or_one_more(),
    Function::member("substring", 2, substring).or_one_more(),
    Function::member("trim", 1, |args, budget| map(args, budget, |text| text.trim().to_owned())),
    Function::member("join", 1, join).or_one_more(),
    Function::member("format", 2, format),
    Function::global("strings.quote", 1, quote),
];

/// Charges the cost of reading a string.
fn charge_reading(budget: &mut CelBudget, text: &str) -> CelResult<()> {
    budget.take(text.len() as u64 / 10)
}

fn length<'a>(count: usize) -> CelValue<'a> {
    CelValue::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn out_of_range(index: i64) -> EvaluationError {
    EvaluationError::error(format!("index out of range: {index}"))
}

fn size<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    Some(match args {
        [CelValue::String(text)] => charge_reading(budget, text).map(|()| length(text.chars().count())),
        [CelValue::Bytes(bytes)] => Ok(length(bytes.len())),
        [CelValue::List(list)] => Ok(length(list.len())),
        [CelValue::Map(map)] => Ok(length(map.len())),
        _ => return None,
    })
}

fn test<'a>(args: &[CelValue<'a>], budget: &mut CelBudget, test: fn(&str, &str) -> bool) -> OverloadResult<'a> {
    let [CelValue::String(text), CelValue::String(part)] = args else { return None };
    Some(charge_reading(budget, text).map(|()| CelValue::Bool(test(text, part))))
}

fn char_at<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text), CelValue::Int(index)] = args else { return None };
    Some(charge_reading(budget, text).and_then(|()| {
        let position = usize::try_from(*index).map_err(|_| out_of_range(*index))?;
        match text.chars().nth(position) {
            Some(c) => Ok(CelValue::from(c.to_string())),
            None if text.chars().count() == position => Ok(CelValue::from("")),
            None => Err(out_of_range(*index)),
        }
    }))
}

fn index_of<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let (text, part, from) = match args {
        [CelValue::String(text), CelValue::String(part)] => (text, part, 0),
        [CelValue::String(text), CelValue::String(part), CelValue::Int(from)] => (text, part, *from),
        _ => return None,
    };
    Some(charge_reading(budget, text).and_then(|()| {
        if part.is_empty() {
            return find_empty(text, from, budget);
        }
        let start = usize::try_from(from).map_err(|_| out_of_range(from))?;
        let Some((at, _)) = text.char_indices().nth(start) else { return beyond_end(from, OFFSETS_BEYOND_END, budget) };
        Ok(text[at..].find(&**part).map_or(CelValue::Int(-1), |found| length(text[..at + found].chars().count())))
    }))
}

/// An empty string is found at the offset. Up to 1.36 also where there is none in the text.
fn find_empty<'a>(text: &str, offset: i64, budget: &CelBudget) -> CelResult<CelValue<'a>> {
    if budget.release() < OFFSETS_OF_EMPTY {
        return Ok(CelValue::Int(offset));
    }
    let offset = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    Ok(length(offset.min(text.chars().count())))
}

/// The result of a search from an offset at which there is no character, which is an error before `since`.
fn beyond_end<'a>(offset: i64, since: KubernetesRelease, budget: &CelBudget) -> CelResult<CelValue<'a>> {
    if budget.release() < since { Err(out_of_range(offset)) } else { Ok(CelValue::Int(-1)) }
}

fn last_index_of<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let (text, part, from) = match args {
        [CelValue::String(text), CelValue::String(part)] => (text, part, None),
        [CelValue::String(text), CelValue::String(part), CelValue::Int(from)] => (text, part, Some(*from)),
        _ => return None,
    };
    Some(charge_reading(budget, text).and_then(|()| {
        let chars = text.chars().count();
        if part.is_empty() {
            return from.map_or(Ok(length(chars)), |from| find_empty(text, from, budget));
        }
        let last = match from {
            None if text.is_empty() => return beyond_end(-1, LAST_IN_EMPTY, budget),
            None => chars.saturating_sub(1),
            Some(from) => usize::try_from(from).map_err(|_| out_of_range(from))?,
        };
        if last >= chars {
            return beyond_end(from.unwrap_or_default(), OFFSETS_BEYOND_END, budget);
        }
        // The match must begin at character `last` or earlier.
        let starts = text.char_indices().take(last + 1).map(|(at, _)| at);
        let found = starts.collect::<Vec<_>>().into_iter().rposition(|at| text[at..].starts_with(&**part));
        Ok(found.map_or(CelValue::Int(-1), length))
    }))
}

fn map<'a>(args: &[CelValue<'a>], budget: &mut CelBudget, map: fn(&str) -> String) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    Some(charge_reading(budget, text).map(|()| CelValue::from(map(text))))
}

fn replace<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let (text, old, new, times) = match args {
        [CelValue::String(text), CelValue::String(old), CelValue::String(new)] => (text, old, new, -1),
        [CelValue::String(text), CelValue::String(old), CelValue::String(new), CelValue::Int(times)] => {
            (text, old, new, *times)
        }
        _ => return None,
    };
    // An empty `old` matches before every character and at the end.
    let longest = (text.len() as u64).saturating_mul(new.len() as u64 + 1);
    Some(budget.take(text.len() as u64 / 10).and_then(|()| {
        if old.is_empty() {
            budget.take(longest / 10)?;
        } else {
            // A few replacements in a row can exceed all memory, so the result is charged before it is built.
            let added = (text.matches(&**old).count() as u64).saturating_mul(new.len() as u64);
            budget.take(added / 10)?;
        }
        Ok(CelValue::from(match usize::try_from(times) {
            Ok(times) => text.replacen(&**old, new, times),
            Err(_) => text.replace(&**old, new),
        }))
    }))
}

fn split<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let (text, separator, parts) = match args {
        [CelValue::String(text), CelValue::String(separator)] => (text, separator, -1),
        [CelValue::String(text), CelValue::String(separator), CelValue::Int(parts)] => (text, separator, *parts),
        _ => return None,
    };
    Some(charge_reading(budget, text).and_then(|()| {
        let most = usize::try_from(parts).unwrap_or(usize::MAX);
        if most == 0 {
            return Ok(CelValue::strings([]));
        }
        if !separator.is_empty() {
            return Ok(CelValue::strings(text.splitn(most, &**separator).map(str::to_owned)));
        }
        // Without a separator, the parts are the characters, and the last part is the rest.
        budget.take(text.len() as u64)?;
        let cut = text.char_indices().nth(most - 1).map_or(text.len(), |(at, _)| at);
        let (head, tail) = text.split_at(cut);
        let tail = (!tail.is_empty()).then(|| tail.to_owned());
        Ok(CelValue::strings(head.chars().map(String::from).chain(tail)))
    }))
}

fn substring<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let (text, start, end) = match args {
        [CelValue::String(text), CelValue::Int(start)] => (text, *start, None),
        [CelValue::String(text), CelValue::Int(start), CelValue::Int(end)] => (text, *start, Some(*end)),
        _ => return None,
    };
    Some(charge_reading(budget, text).and_then(|()| {
        if let Some(end) = end.filter(|end| start > *end) {
            return Err(EvaluationError::error(format!("invalid substring range. start: {start}, end: {end}")));
        }
        // The byte offset of each position, including the end.
        let at = |position: i64| {
            let index = usize::try_from(position).ok()?;
            text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
        };
        let from = at(start).ok_or_else(|| out_of_range(start))?;
        let to = match end {
            Some(end) => at(end).ok_or_else(|| out_of_range(end))?,
            None => text.len(),
        };
        Ok(CelValue::from(&text[from..to]))
    }))
}

fn join<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let (list, separator) = match args {
        [CelValue::List(list)] => (list, ""),
        [CelValue::List(list), CelValue::String(separator)] => (list, &**separator),
        _ => return None,
    };
    // The type of the list is determined by its first element.
    if list.len() > 0 && matches!(list.get(0), Ok(first) if !matches!(first, CelValue::String(_))) {
        return None;
    }
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        let item = match item {
            Ok(CelValue::String(item)) => item,
            Ok(other) => {
                let shown = super::lib_convert::display(&other);
                return Some(Err(EvaluationError::error(format!("join: invalid input: {shown}"))));
            }
            Err(fault) => return Some(Err(fault)),
        };
        if let Err(fault) = budget.take(1 + (item.len() + separator.len()) as u64 / 10) {
            return Some(Err(fault));
        }
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(&item);
    }
    Some(Ok(CelValue::from(out)))
}

fn quote<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    map(args, budget, |text| {
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                '\u{7}' => out.push_str("\\a"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{b}' => out.push_str("\\v"),
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                c => out.push(c),
            }
        }
        out.push('"');
        out
    })
}
