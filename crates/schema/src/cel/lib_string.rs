//! Functions on strings.

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::lib_string_format::format;
use super::library::Function;
use super::value::Value;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("size", 1, size),
    Function::member("size", 1, size),
    Function::member("contains", 2, contains),
    Function::member("startsWith", 2, starts_with),
    Function::member("endsWith", 2, ends_with),
    Function::member("charAt", 2, char_at),
    Function::member("indexOf", 2, index_of),
    Function::member("indexOf", 3, index_of),
    Function::member("lastIndexOf", 2, last_index_of),
    Function::member("lastIndexOf", 3, last_index_of),
    Function::member("lowerAscii", 1, lower),
    Function::member("upperAscii", 1, upper),
    Function::member("replace", 3, replace),
    Function::member("replace", 4, replace),
    Function::member("split", 2, split),
    Function::member("split", 3, split),
    Function::member("substring", 2, substring),
    Function::member("substring", 3, substring),
    Function::member("trim", 1, trim),
    Function::member("join", 1, join),
    Function::member("join", 2, join),
    Function::member("format", 2, format),
    Function::global("strings.quote", 1, quote),
];

type Answer<'a> = Option<Result<Value<'a>>>;

/// Charges the cost of reading a string.
fn cost(budget: &mut Budget, text: &str) -> Result<()> {
    budget.take(text.len() as u64 / 10)
}

fn length<'a>(count: usize) -> Value<'a> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn out_of_range(index: i64) -> Fault {
    Fault::error(format!("index out of range: {index}"))
}

fn size<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    Some(match args {
        [Value::String(text)] => cost(budget, text).map(|()| length(text.chars().count())),
        [Value::Bytes(bytes)] => Ok(length(bytes.len())),
        [Value::List(list)] => Ok(length(list.len())),
        [Value::Map(map)] => Ok(length(map.len())),
        _ => return None,
    })
}

fn test<'a>(args: &[Value<'a>], budget: &mut Budget, test: fn(&str, &str) -> bool) -> Answer<'a> {
    let [Value::String(text), Value::String(part)] = args else { return None };
    Some(cost(budget, text).map(|()| Value::Bool(test(text, part))))
}

fn contains<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    test(args, budget, |text, part| text.contains(part))
}

fn starts_with<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    test(args, budget, |text, part| text.starts_with(part))
}

fn ends_with<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    test(args, budget, |text, part| text.ends_with(part))
}

fn char_at<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::String(text), Value::Int(index)] = args else { return None };
    Some(cost(budget, text).and_then(|()| {
        let position = usize::try_from(*index).map_err(|_| out_of_range(*index))?;
        match text.chars().nth(position) {
            Some(c) => Ok(Value::from(c.to_string())),
            None if text.chars().count() == position => Ok(Value::from("")),
            None => Err(out_of_range(*index)),
        }
    }))
}

fn index_of<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        _ => return None,
    };
    Some(cost(budget, text).and_then(|()| {
        if part.is_empty() {
            return Ok(Value::Int(from));
        }
        let start = usize::try_from(from).map_err(|_| out_of_range(from))?;
        let Some((at, _)) = text.char_indices().nth(start) else { return Ok(Value::Int(-1)) };
        Ok(text[at..].find(&**part).map_or(Value::Int(-1), |found| length(text[..at + found].chars().count())))
    }))
}

fn last_index_of<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, None),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, Some(*from)),
        _ => return None,
    };
    Some(cost(budget, text).and_then(|()| {
        let chars = text.chars().count();
        if part.is_empty() {
            return Ok(from.map_or(length(chars), Value::Int));
        }
        let last = match from {
            None if text.len() < part.len() => return Ok(Value::Int(-1)),
            None => chars.saturating_sub(1),
            Some(from) => usize::try_from(from).map_err(|_| out_of_range(from))?,
        };
        if last >= chars {
            return Ok(Value::Int(-1));
        }
        // The match must begin at character `last` or earlier.
        let starts = text.char_indices().take(last + 1).map(|(at, _)| at);
        let found = starts.collect::<Vec<_>>().into_iter().rposition(|at| text[at..].starts_with(&**part));
        Ok(found.map_or(Value::Int(-1), length))
    }))
}

fn map<'a>(args: &[Value<'a>], budget: &mut Budget, map: fn(&str) -> String) -> Answer<'a> {
    let [Value::String(text)] = args else { return None };
    Some(cost(budget, text).map(|()| Value::from(map(text))))
}

fn lower<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    map(args, budget, str::to_ascii_lowercase)
}

fn upper<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    map(args, budget, str::to_ascii_uppercase)
}

fn trim<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    map(args, budget, |text| text.trim().to_owned())
}

fn replace<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let (text, old, new, times) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(times)] => (text, old, new, *times),
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
        Ok(Value::from(match usize::try_from(times) {
            Ok(times) => text.replacen(&**old, new, times),
            Err(_) => text.replace(&**old, new),
        }))
    }))
}

fn split<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let (text, separator, parts) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(parts)] => (text, separator, *parts),
        _ => return None,
    };
    Some(cost(budget, text).and_then(|()| {
        let most = usize::try_from(parts).unwrap_or(usize::MAX);
        if most == 0 {
            return Ok(Value::strings([]));
        }
        if !separator.is_empty() {
            return Ok(Value::strings(text.splitn(most, &**separator).map(str::to_owned)));
        }
        // Without a separator, the parts are the characters, and the last part is the rest.
        budget.take(text.len() as u64)?;
        let cut = text.char_indices().nth(most - 1).map_or(text.len(), |(at, _)| at);
        let (head, tail) = text.split_at(cut);
        let tail = (!tail.is_empty()).then(|| tail.to_owned());
        Ok(Value::strings(head.chars().map(String::from).chain(tail)))
    }))
}

fn substring<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return None,
    };
    Some(cost(budget, text).and_then(|()| {
        if let Some(end) = end.filter(|end| start > *end) {
            return Err(Fault::error(format!("invalid substring range. start: {start}, end: {end}")));
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
        Ok(Value::from(&text[from..to]))
    }))
}

fn join<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return None,
    };
    // The type of the list is determined by its first element.
    if list.len() > 0 && matches!(list.get(0), Ok(first) if !matches!(first, Value::String(_))) {
        return None;
    }
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        let item = match item {
            Ok(Value::String(item)) => item,
            Ok(other) => {
                let shown = super::lib_convert::display(&other);
                return Some(Err(Fault::error(format!("join: invalid input: {shown}"))));
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
    Some(Ok(Value::from(out)))
}

fn quote<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
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
