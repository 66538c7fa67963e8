//! Keywords of a schema written as rules, and rules of one node written as rules of a node above.
//!
//! `oneOf: [{required: [a]}, {required: [b]}]` accepts the same objects as a rule about `has(self.a)` and
//! `has(self.b)`. So what live's keywords guarantee can be used like a live rule, and whether live's rules imply a
//! keyword of desired is a question about a rule.

use serde_json::{Value, json};

use crate::cel::{RuleSet, is_typing_format};
use crate::keywords as kw;
use crate::product::ValueStep;
use gantry_k8s_cel::{escape, parse_rule};

/// The keywords that are used as rules.
const PREMISES: &[&str] = &[
    "allOf",
    "anyOf",
    "enum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "not",
    "oneOf",
    "pattern",
    "required",
];
/// The maximum number of combinations that are spelled out for one keyword.
const MAX_COMBINATIONS: usize = 40;
/// The maximum length of an expression for one keyword.
const MAX_LENGTH: usize = 8 << 10;
/// The maximum depth of the nodes below whose keywords and rules are used.
const MAX_DEPTH: usize = 4;
/// The maximum number of rules that are made for one node.
const MAX_RULES: usize = 48;
/// Beyond this number, the server may lose the precision of a bound.
const MAX_BOUND: i64 = 1 << 53;

/// A condition that `schema` accepts a value, for every value that `structure` accepts: `at` is the expression for the
/// value. None if it cannot be written so, or if the evaluation could end in an error.
pub fn condition(schema: &Value, structure: &Value, at: &str) -> Option<String> {
    Restater { depth: 0 }.all(schema, structure, at).filter(|text| text.len() <= MAX_LENGTH)
}

/// Rules that hold wherever live accepts a value of the node: its keywords, and the keywords and rules of the nodes
/// below whose fields `asked` mentions.
pub fn premises(live: &RuleSet<'_>, asked: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    if !live.is_root && !live.keeps {
        of_node(live.schema, "self", &mut Vec::new(), asked, &mut found);
    }
    found.into_iter().map(|rule| json!({ "rule": rule })).collect()
}

/// Adds the rules about the node at the expression `at`; `guards` are the conditions under which it is there.
fn of_node(schema: &Value, at: &str, guards: &mut Vec<String>, asked: &[&str], found: &mut Vec<String>) {
    let guarded = |text: String| {
        let mut parts: Vec<String> = guards.iter().map(|guard| format!("!{guard}")).collect();
        parts.push(format!("({text})"));
        parts.join(" || ")
    };
    let is_below = at != "self";
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let is_wanted = PREMISES.contains(&keyword.as_str());
        if !is_wanted {
            continue;
        }
        let mut alone: Vec<Value> = match (keyword.as_str(), value) {
            ("allOf", Value::Array(branches)) => branches.clone(),
            // Each field alone: one that cannot be written says nothing about the others.
            ("required", Value::Array(names)) => names.iter().map(|name| json!({"required": [name]})).collect(),
            _ => vec![json!({ keyword: value })],
        };
        for bound in ["exclusiveMinimum", "exclusiveMaximum"] {
            if let (Some(is_exclusive), true) = (schema.get(bound), keyword == "minimum" || keyword == "maximum") {
                alone[0][bound] = is_exclusive.clone();
            }
        }
        for schema_alone in &alone {
            if found.len() < MAX_RULES
                && let Some(text) = condition(schema_alone, schema, at)
                && text != "true"
            {
                found.push(guarded(text));
            }
        }
    }
    if is_below {
        for rule in kw::list(schema, "x-kubernetes-validations") {
            if found.len() < MAX_RULES
                && let Some(text) = rule.get("rule").and_then(Value::as_str)
                && let Some(moved) = moved(text, at)
            {
                found.push(guarded(moved));
            }
        }
    }
    if guards.len() >= MAX_DEPTH {
        return;
    }
    for (name, field) in kw::properties(schema).into_iter().flatten() {
        if is_plain(field)
            && asked.iter().any(|text| text.contains(name.as_str()))
            && let Some(escaped) = escape(name)
        {
            let below = format!("{at}.{escaped}");
            guards.push(format!("has({below})"));
            of_node(field, &below, guards, asked, found);
            guards.pop();
        }
    }
}

/// The condition that a rule of a field sets, as an expression of a rule of a node above, where the field is `at`. None
/// if it is a transition rule, or cannot be rewritten with certainty.
pub fn moved(rule: &str, at: &str) -> Option<String> {
    renamed(rule, |word, _| match word {
        "oldSelf" => None,
        _ => Some((at.to_owned(), 0)),
    })
}

/// The same for a transition rule of a field, which is evaluated if there is an old value: the steps lead through
/// fields.
pub fn moved_transition(rule: &str, steps: &[&ValueStep], around: &Value) -> Option<String> {
    let (mut now, mut before) = ("self".to_owned(), "oldSelf".to_owned());
    let mut parts = Vec::new();
    let mut schema = around;
    for step in steps {
        let ValueStep::Field(name) = step else { return None };
        schema = kw::property(schema, name).filter(|own| is_plain(own))?;
        let name = escape(name)?;
        now = format!("{now}.{name}");
        before = format!("{before}.{name}");
        parts.push(format!("!has({now}) || !has({before})"));
    }
    let moved = renamed(rule, |word, _| match word {
        "oldSelf" => Some((before.clone(), 0)),
        _ => Some((now.clone(), 0)),
    })?;
    parts.push(format!("({moved})"));
    Some(parts.join(" || "))
}

/// A rule with `optionalOldSelf` as it is evaluated if there is an old value, or if there is none: the calls of
/// `hasValue` and `value` are replaced, and the optional is written as what it is then.
pub fn without_optional(rule: &str, has_value: bool) -> Option<String> {
    const HAS_VALUE: &str = ".hasValue()";
    const VALUE: &str = ".value()";
    renamed(rule, |word, rest| match word {
        "self" => Some((word.to_owned(), 0)),
        _ if rest.starts_with(HAS_VALUE) => Some((format!("({has_value})"), HAS_VALUE.len())),
        _ if rest.starts_with(VALUE) && has_value => Some((word.to_owned(), VALUE.len())),
        _ if has_value => Some(("optional.of(oldSelf)".to_owned(), 0)),
        _ => Some(("optional.none()".to_owned(), 0)),
    })
}

/// The rule with other texts in place of `self` and `oldSelf`: `replace` is called with the variable and what follows,
/// and returns the new text and how much of what follows it replaces, too. None if it does, or if a variable of that
/// name may be another one.
fn renamed(rule: &str, replace: impl Fn(&str, &str) -> Option<(String, usize)>) -> Option<String> {
    let mut text = String::with_capacity(rule.len() + 64);
    let mut rest = rule;
    while let Some(c) = rest.chars().next() {
        if c == '\'' || c == '"' {
            let end = end_of_literal(rest, c)?;
            // Raw strings have other escapes, and triple quotes are rare.
            let is_raw = text.ends_with(['r', 'R', 'b', 'B']) && rest[..end].contains('\\');
            if is_raw || end == 2 && rest[2..].starts_with(c) {
                return None;
            }
            text.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            if rest.starts_with("//") || c == '`' {
                return None;
            }
            text.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(end);
        let before = text.trim_end();
        let is_selected = before.ends_with('.') || before.ends_with(".?");
        rest = after;
        if is_selected || !matches!(word, "self" | "oldSelf") {
            text.push_str(word);
            continue;
        }
        // It may be the variable of a macro.
        if after.trim_start().starts_with(',') && before.ends_with(['(', ',']) {
            return None;
        }
        let (new, replaced) = replace(word, after)?;
        text.push_str(&new);
        rest = &after[replaced..];
    }
    parse_rule(&text).ok()??;
    Some(text)
}

/// Where the string literal ends that the text begins with.
fn end_of_literal(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// A rule that says that every value at the end of the path, which begins at `at`, satisfies `last`, a condition on
/// its argument. None if something cannot be written in a rule.
pub fn absence(at: &str, steps: &[&ValueStep], last: &dyn Fn(&str) -> Option<String>, depth: usize) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else { return last(at) };
    Some(match step {
        ValueStep::Field(name) => {
            let name = gantry_k8s_cel::escape(name)?;
            let below = absence(&format!("{at}.{name}"), rest, last, depth)?;
            format!("!has({at}.{name}) || ({below})")
        }
        ValueStep::Item => {
            let item = format!("v{depth}");
            format!("{at}.all({item}, {})", absence(&item, rest, last, depth + 1)?)
        }
        ValueStep::Entry(_) => {
            let key = format!("v{depth}");
            format!("{at}.all({key}, {})", absence(&format!("{at}[{key}]"), rest, last, depth + 1)?)
        }
    })
}

/// Whether rules see a value of the node as it is: never null, and of a type that the schema names.
fn is_plain(schema: &Value) -> bool {
    kw::has_type(schema) && !kw::flag(schema, "nullable") && !kw::flag(schema, "x-kubernetes-int-or-string")
}

struct Restater {
    /// The number of variables that are bound.
    depth: usize,
}

impl Restater {
    /// The condition that all keywords of `schema` accept the value.
    fn all(&mut self, schema: &Value, structure: &Value, at: &str) -> Option<String> {
        if kw::flag(structure, "x-kubernetes-int-or-string") || kw::embedded(structure) {
            return None;
        }
        let kind = kw::type_name(structure)?;
        let mut parts: Vec<String> = Vec::new();
        for (keyword, value) in schema.as_object()? {
            if value.is_null() {
                continue;
            }
            match keyword.as_str() {
                "description" | "title" | "example" | "externalDocs" | "exclusiveMinimum" | "exclusiveMaximum" => {}
                "type" if value.as_str() == Some(kind) => {}
                "nullable" => {}
                "format" if structure.get("format") == Some(value) => {}
                _ => parts.push(self.keyword(keyword, value, schema, structure, at)?),
            }
        }
        parts.retain(|part| part != "true");
        Some(joined(parts, "&&", "true"))
    }

    fn keyword(&mut self, keyword: &str, value: &Value, schema: &Value, structure: &Value, at: &str) -> Option<String> {
        let kind = kw::type_name(structure)?;
        // Such a text is no string to a rule.
        let is_text = kind == "string" && !is_typing_format(structure);
        let is_closed = kind == "object"
            && !kw::preserves(structure)
            && structure.get("additionalProperties").is_none_or(|more| more == &Value::Bool(false));
        let is_map = kw::properties(structure).is_none() && kw::get(structure, "additionalProperties").is_some();
        let sized = |operator: &str| kw::count(schema, keyword).map(|count| format!("size({at}) {operator} {count}"));
        match (keyword, kind) {
            ("allOf" | "anyOf" | "oneOf", _) => {
                let branches = value.as_array()?;
                if branches.is_empty() {
                    return Some("true".to_owned());
                }
                let mut written = Vec::with_capacity(branches.len());
                for branch in branches {
                    written.push(self.all(branch, structure, at)?);
                }
                match keyword {
                    "allOf" => Some(joined(written, "&&", "true")),
                    "anyOf" => Some(joined(written, "||", "false")),
                    _ => one_of(written),
                }
            }
            ("not", _) => Some(format!("!({})", self.all(value, structure, at)?)),
            ("maxLength", "string") if is_text => sized("<="),
            ("minLength", "string") if is_text => sized(">="),
            ("pattern", "string") if is_text => match value.as_str()? {
                "" => Some("true".to_owned()),
                pattern => Some(format!("{at}.matches({})", quoted(pattern))),
            },
            ("maxItems", "array") => sized("<="),
            ("minItems", "array") => sized(">="),
            ("enum", "string") if is_text => {
                let options: Vec<String> = value.as_array()?.iter().filter_map(Value::as_str).map(quoted).collect();
                one_among(at, &options, value)
            }
            ("enum", "integer") => {
                let numbers: Option<Vec<String>> = value
                    .as_array()?
                    .iter()
                    .filter(|option| option.is_number())
                    .map(|option| option.as_i64().filter(|number| *number > i64::MIN).map(|number| number.to_string()))
                    .collect();
                one_among(at, &numbers?, value)
            }
            ("minimum" | "maximum", "integer") => {
                let bound = value.as_i64().filter(|bound| bound.abs() <= MAX_BOUND)?;
                let (exclusive, strict, other) = match keyword {
                    "minimum" => ("exclusiveMinimum", ">", ">="),
                    _ => ("exclusiveMaximum", "<", "<="),
                };
                let operator = if kw::flag(schema, exclusive) { strict } else { other };
                Some(format!("{at} {operator} {bound}"))
            }
            ("required", "object") => {
                let names = value.as_array()?.iter().map(|name| presence(structure, name.as_str()?, at));
                Some(joined(names.collect::<Option<Vec<String>>>()?, "&&", "true"))
            }
            ("minProperties", "object") if is_map => sized(">="),
            ("maxProperties", "object") if is_map => sized("<="),
            ("minProperties" | "maxProperties", "object") if is_closed => {
                let count = usize::try_from(kw::count(schema, keyword)?).ok()?;
                let fields = kw::properties(structure).into_iter().flatten();
                let fields: Option<Vec<String>> = fields.map(|(name, _)| presence(structure, name, at)).collect();
                match keyword {
                    "minProperties" => at_least(&fields?, count),
                    _ => Some(format!("!({})", at_least(&fields?, count + 1)?)),
                }
            }
            ("properties", "object") => {
                let mut parts = Vec::new();
                for (name, below) in value.as_object()? {
                    let there = presence(structure, name, at)?;
                    let own = kw::property(structure, name)?;
                    let written = self.all(below, own, &format!("{at}.{}", escape(name)?))?;
                    if written != "true" {
                        parts.push(format!("!{there} || ({written})"));
                    }
                }
                Some(joined(parts, "&&", "true"))
            }
            // Such a list keeps unknown fields of its items.
            ("items", "array") if !kw::preserves(structure) => {
                let own = kw::get(structure, "items").filter(|own| is_plain(own))?;
                let item = format!("w{}", self.depth);
                self.depth += 1;
                let written = self.all(value, own, &item);
                self.depth -= 1;
                match written?.as_str() {
                    "true" => Some("true".to_owned()),
                    written => Some(format!("{at}.all({item}, {written})")),
                }
            }
            _ => None,
        }
    }
}

/// `has(at.name)`, if the presence of the field to a rule is its presence to a keyword.
fn presence(structure: &Value, name: &str, at: &str) -> Option<String> {
    kw::property(structure, name).filter(|own| kw::has_type(own) && !kw::flag(own, "nullable"))?;
    Some(format!("has({at}.{})", escape(name)?))
}

/// The `enum` of a value that is one of `options`, those of its type.
fn one_among(at: &str, options: &[String], all: &Value) -> Option<String> {
    match options.is_empty() {
        true if all.as_array().is_some_and(Vec::is_empty) => Some("true".to_owned()),
        true => Some("false".to_owned()),
        false => Some(joined(options.iter().map(|option| format!("{at} == {option}")).collect(), "||", "false")),
    }
}

fn joined(parts: Vec<String>, operator: &str, none: &str) -> String {
    match parts.len() {
        0 => none.to_owned(),
        1 => parts.into_iter().next().unwrap_or_default(),
        _ => parts.iter().map(|part| format!("({part})")).collect::<Vec<_>>().join(&format!(" {operator} ")),
    }
}

/// Exactly one of the conditions.
fn one_of(conditions: Vec<String>) -> Option<String> {
    let twice = at_least(&conditions, 2)?;
    Some(format!("({}) && !({twice})", joined(conditions, "||", "false")))
}

/// At least `count` of the conditions.
fn at_least(conditions: &[String], count: usize) -> Option<String> {
    let mut chosen: Vec<Vec<&String>> = vec![Vec::new()];
    for (at, condition) in conditions.iter().enumerate() {
        let left = conditions.len() - at - 1;
        let with: Vec<Vec<&String>> = chosen
            .iter()
            .filter(|some| some.len() < count)
            .map(|some| some.iter().copied().chain([condition]).collect())
            .collect();
        chosen.retain(|some| some.len() + left >= count);
        chosen.extend(with.into_iter().filter(|some| some.len() + left >= count));
        if chosen.len() > MAX_COMBINATIONS {
            return None;
        }
    }
    let all = |some: &Vec<&String>| joined(some.iter().map(|part| (*part).clone()).collect(), "&&", "true");
    Some(joined(chosen.iter().filter(|some| some.len() >= count).map(all).collect(), "||", "false"))
}

/// The text as a literal of a rule.
pub fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '\'' | '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_written_as_conditions_only_if_they_mean_the_same() {
        let text = || json!({"type": "string"});
        let pair = json!({"type": "object", "properties": {"a": text(), "b": text(), "n": {"type": "string", "nullable": true}}});
        let closed = json!({"type": "object", "properties": {"a": text(), "x-y": text()}});
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": text()}});
        let number = json!({"type": "integer"});
        for (schema, structure, expected) in [
            (
                json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                &pair,
                Some("((has(self.a)) || (has(self.b))) && !((has(self.a)) && (has(self.b)))"),
            ),
            (json!({"not": {"required": ["a", "b"]}}), &pair, Some("!((has(self.a)) && (has(self.b)))")),
            (json!({"minProperties": 1}), &closed, Some("(has(self.a)) || (has(self.x__dash__y))")),
            (json!({"maxProperties": 1}), &closed, Some("!((has(self.a)) && (has(self.x__dash__y)))")),
            (json!({"maxProperties": 2}), &closed, Some("!(false)")),
            (json!({"minProperties": 0}), &closed, Some("true")),
            (json!({"properties": {"a": {"enum": ["x"]}}}), &pair, Some("!has(self.a) || (self.a == 'x')")),
            (json!({"minimum": 3, "exclusiveMinimum": true}), &number, Some("self > 3")),
            (json!({"enum": [1, "x"]}), &number, Some("self == 1")),
            (json!({"enum": ["x"]}), &number, Some("false")),
            (json!({"type": "string", "pattern": "^'\\d$"}), &text(), Some(r"self.matches('^\'\\d$')")),
            // A null, an unknown field, a field that nothing describes, a bound that is not an integer.
            (json!({"required": ["n"]}), &pair, None),
            (json!({"minProperties": 1}), &pair, None),
            (json!({"minProperties": 1}), &open, None),
            (json!({"required": ["c"]}), &pair, None),
            (json!({"minimum": 1.5}), &number, None),
            (json!({"multipleOf": 2}), &number, None),
            (json!({"maxLength": 3}), &json!({"type": "string", "format": "byte"}), None),
        ] {
            assert_eq!(condition(&schema, structure, "self").as_deref(), expected, "{schema}");
        }
    }

    #[test]
    fn an_optional_has_a_value_or_none() {
        let same = "!oldSelf.hasValue() || self == oldSelf.value()";
        assert_eq!(without_optional(same, true).as_deref(), Some("!(true) || self == oldSelf"));
        assert_eq!(without_optional(same, false).as_deref(), Some("!(false) || self == optional.none().value()"));
        let other = "self == oldSelf.orValue('oldSelf.value()')";
        assert_eq!(
            without_optional(other, true).as_deref(),
            Some("self == optional.of(oldSelf).orValue('oldSelf.value()')")
        );
    }

    #[test]
    fn a_rule_moves_to_a_node_above_only_if_it_reads_one_value() {
        for (rule, expected) in [
            ("self != 'self'", Some("self.a != 'self'")),
            ("has(self.self) && self . self > 1", Some("has(self.a.self) && self.a . self > 1")),
            ("self.all(x, x.self == self)", Some("self.a.all(x, x.self == self.a)")),
            ("self.?self.hasValue()", Some("self.a.?self.hasValue()")),
            ("self == 'it\\'s self'", Some("self.a == 'it\\'s self'")),
            ("oldSelf == self", None),
            ("self.all(self, self > 1)", None),
            ("self == r'\\'", None),
            ("self == '''x'''", None),
            ("self > 1 // self", None),
        ] {
            assert_eq!(moved(rule, "self.a").as_deref(), expected, "{rule}");
        }
    }

    #[test]
    fn a_rule_says_that_a_path_leads_to_no_value_or_an_accepted_one() {
        let field = |name: &str| ValueStep::Field(name.to_owned());
        let steps = [field("a"), ValueStep::Item, field("x-y"), ValueStep::Entry("k".to_owned())];
        let steps: Vec<&ValueStep> = steps.iter().collect();
        let rule = absence("self", &steps, &|at| Some(format!("size({at}) <= 3")), 0);
        let expected = "!has(self.a) || (self.a.all(v0, !has(v0.x__dash__y) || (v0.x__dash__y.all(v1, \
                        size(v0.x__dash__y[v1]) <= 3))))";
        assert_eq!(rule.as_deref(), Some(expected));
    }
}
