//! Why something happens to an object, in words that are the same for all objects that it happens to.
//!
//! The server's errors name one object's indices, keys and values. What of them comes from the schema is the cause.

use std::io;

use serde_json::Value;

use super::place::{self, Place};
use crate::resource::Step;
use gantry_schema::{FieldError, Kind};

/// Values are shown up to this many characters.
const LONGEST_VALUE: usize = 100;
/// Rules of a schema are quoted up to this many.
const LONGEST_RULE: usize = 300;

/// The keyword that refuses a value, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Keyword {
    /// From the root of the schema to what refuses: …, `maximum`, or …, `x-kubernetes-validations`, 2.
    pub at: Vec<Step>,
    /// In words, without a value of the object: `Required value`.
    pub words: String,
}

/// What in `schema` refuses, by the server's error about a value at `place`.
pub fn of(error: &FieldError, place: &Place, schema: &Value) -> Keyword {
    let node = place::value_at(schema, &place.schema).filter(|_| place.is_described).unwrap_or(&Value::Null);
    let keyword = |name: &str, words: String| Keyword { at: below(place, &[name.into()]), words };
    let text = |name: &str| node.get(name).map(|value| shown(value, false)).unwrap_or_default();
    match error.kind {
        Kind::Required => {
            // A field that is missing needs no words; a rule that says so has some.
            if let Some(keyword) = rule_of(error, place, schema).filter(|_| !error.detail.is_empty()) {
                return keyword;
            }
            // Not the missing field asks for it, but what it is missing in.
            let mut at = place.schema.clone();
            if place.is_described && at.len() >= 2 {
                at.truncate(at.len() - if at[at.len() - 2] == "properties".into() { 2 } else { 1 });
            }
            at.push("required".into());
            Keyword { at, words: "Required value".into() }
        }
        Kind::NotSupported => {
            keyword("enum", format!("Unsupported value: supported values: {}", list(node.get("enum"))))
        }
        Kind::TooLong => {
            keyword("maxLength", format!("Too long: may not be more than {} characters", text("maxLength")))
        }
        Kind::TooMany if node.get("maxItems").is_some() => {
            keyword("maxItems", format!("Too many: must have at most {} items", text("maxItems")))
        }
        Kind::TooMany => {
            keyword("maxProperties", format!("Too many: must have at most {} entries", text("maxProperties")))
        }
        Kind::Duplicate => keyword("x-kubernetes-list-type", "Duplicate value".into()),
        Kind::TypeInvalid => {
            let wanted = error.detail.split_once("must be of type ").map_or("another type", |(_, rest)| rest);
            let wanted = wanted.split_once(": \"").map_or(wanted, |(wanted, _)| wanted);
            let is_type = node.get("type").and_then(Value::as_str).is_none_or(|own| wanted == own);
            keyword(if is_type { "type" } else { "format" }, format!("Invalid value: must be of type {wanted}"))
        }
        Kind::Invalid | Kind::Forbidden | Kind::Internal => invalid(error, place, schema, node),
    }
}

fn below(place: &Place, steps: &[Step]) -> Vec<Step> {
    place.schema.iter().chain(steps).cloned().collect()
}

fn invalid(error: &FieldError, place: &Place, schema: &Value, node: &Value) -> Keyword {
    let keyword = |name: &str, words: String| Keyword { at: below(place, &[name.into()]), words };
    let text = |name: &str| node.get(name).map(|value| shown(value, false)).unwrap_or_default();
    // Nothing else writes a path with a dot before it.
    if error.path.starts_with('.') {
        let wrong = match error.detail.rsplit_once(", expected ") {
            Some((_, "int64")) => "must be an integer",
            Some((_, "string")) => "must be a string",
            Some(_) => "must be within an object",
            None => &error.detail,
        };
        let words = format!("Invalid value: {wrong}, since the scale subresource reads it");
        return Keyword { at: place.schema.clone(), words };
    }
    // What the OpenAPI layer says stands behind `in body`; rules come in their author's words.
    let said = error.detail.split_once(" in body ").map_or("", |(_, said)| said);
    for (start, name) in [
        ("should match", "pattern"),
        ("should be at least", "minLength"),
        ("should have at least", if node.get("minItems").is_some() { "minItems" } else { "minProperties" }),
        ("should be greater than", "minimum"),
        ("should be less than", "maximum"),
        ("should be a multiple of", "multipleOf"),
    ] {
        if said.starts_with(start) && node.get(name).is_some() {
            return keyword(name, format!("Invalid value: {name} is {}", text(name)));
        }
    }
    for (name, mark) in [("anyOf", "(anyOf)"), ("oneOf", "(oneOf)"), ("allOf", "(allOf)"), ("not", "(not)")] {
        if error.detail.contains(mark) && error.path == "<nil>" {
            return keyword(name, format!("Invalid value: does not fit {name}"));
        }
    }
    if let Some(keyword) = rule_of(error, place, schema) {
        return keyword;
    }
    // Metadata, embedded resources, keywords below allOf: the words before any value.
    let said = if said.is_empty() { error.detail.as_str() } else { said };
    let said = said.split_once(['"', '\'']).map_or(said, |(words, _)| words.trim_end_matches([':', ' ']));
    Keyword { at: place.schema.clone(), words: format!("Invalid value: {}", crate::text::cut(said, LONGEST_RULE)) }
}

/// The rule that the error comes from: of the node itself, or of one above whose `fieldPath` leads to it. One with a
/// message of its own making cannot be told by it; where only one such rule is there it is that.
fn rule_of(error: &FieldError, place: &Place, schema: &Value) -> Option<Keyword> {
    let mut rules = Vec::new();
    rules_on_the_way(schema, &place.schema, &mut Vec::new(), &mut rules);
    rules.sort_by_key(|rule| rule.above);
    let text = |rule: &OnTheWay<'_>, key: &str| {
        rule.rule.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
    };
    let said = error.detail.trim();
    let by_words = rules.iter().position(|rule| {
        let (message, source) = (text(rule, "message"), text(rule, "rule"));
        (!message.is_empty() && said == message) || said.contains(&source) && !source.is_empty()
    });
    let index = by_words.or_else(|| rules.iter().position(|rule| !text(rule, "messageExpression").is_empty()))?;
    let rule = rules.swap_remove(index);
    let words = match text(&rule, "message") {
        message if !message.is_empty() => message,
        _ => format!("failed rule: {}", text(&rule, "rule")),
    };
    Some(Keyword { at: rule.at, words: format!("{}: {}", error.kind.words(), crate::text::cut(&words, LONGEST_RULE)) })
}

/// A rule that may have refused a value.
struct OnTheWay<'s> {
    /// How far above the value's node; 0 is the node itself.
    above: usize,
    at: Vec<Step>,
    rule: &'s Value,
}

/// Gathers the rules along `rest`, the way from `node`, which stands at `at`, down to the value's own.
fn rules_on_the_way<'s>(node: &'s Value, rest: &[Step], at: &mut Vec<Step>, found: &mut Vec<OnTheWay<'s>>) {
    let each = |name: &str| node.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    for (index, rule) in each("x-kubernetes-validations") {
        if rest.is_empty() || rule.get("fieldPath").is_some() {
            let at = at.iter().cloned().chain(["x-kubernetes-validations".into(), index.into()]).collect();
            found.push(OnTheWay { above: rest.len(), at, rule });
        }
    }
    for (index, branch) in each("allOf") {
        at.extend(["allOf".into(), index.into()]);
        rules_on_the_way(branch, rest, at, found);
        at.truncate(at.len() - 2);
    }
    if let Some((step, rest)) = rest.split_first()
        && let Some(below) = place::value_at(node, std::slice::from_ref(step))
    {
        at.push(step.clone());
        rules_on_the_way(below, rest, at, found);
        at.pop();
    }
}

fn list(values: Option<&Value>) -> String {
    let values = values.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Vec<String> = values.iter().take(10).map(|value| shown(value, false)).collect();
    let more = if values.len() > 10 { ", …" } else { "" };
    format!("{}{more}", words.join(", "))
}

/// A value as JSON on one line, not too long; with `redact` what kind of value it is.
pub fn shown(value: &Value, redact: bool) -> String {
    let kind = match value {
        _ if !redact => {
            let mut text = Bounded(Vec::new());
            // The only error is that there is enough.
            let _ = serde_json::to_writer(&mut text, value);
            return crate::text::cut(&String::from_utf8_lossy(&text.0), LONGEST_VALUE).into_owned();
        }
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    kind.to_owned()
}

/// Takes what is shown of a value, and a little more to see that it was cut.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() > 4 * (LONGEST_VALUE + 1) {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // No more than is shown is kept of one long text.
        self.0.extend(bytes.iter().take(8 * LONGEST_VALUE));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gantry_schema::Schema;

    /// The causes that a `spec` has under a schema of it.
    fn causes(schema: Value, spec: Value) -> Vec<(String, String)> {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let object = json!({"metadata": {"name": "x"}, "spec": spec});
        let outcome = Schema::compile(&schema).unwrap().validate(&object, None);
        let say = |error: &FieldError| {
            let place = place::of(error, &schema, &object);
            let keyword = of(error, &place, &schema);
            let at: Vec<String> = keyword
                .at
                .iter()
                .map(|step| match step {
                    Step::Key(key) => key.clone(),
                    Step::Index(index) => index.to_string(),
                })
                .collect();
            (at.join("/").replace("properties/spec", "^"), keyword.words)
        };
        outcome.errors.iter().map(say).collect()
    }

    fn cause(schema: Value, spec: Value) -> (String, String) {
        causes(schema, spec).remove(0)
    }

    #[test]
    fn the_keyword_is_named_and_the_value_is_not() {
        for (schema, spec, at, words) in [
            (json!({"maximum": 3}), json!(7), "^/maximum", "Invalid value: maximum is 3"),
            (json!({"minLength": 3}), json!("s3"), "^/minLength", "Invalid value: minLength is 3"),
            (json!({"pattern": "^a"}), json!("s3"), "^/pattern", "Invalid value: pattern is \"^a\""),
            (json!({"enum": ["a", "b"]}), json!("s3"), "^/enum", "Unsupported value: supported values: \"a\", \"b\""),
            (json!({"type": "integer"}), json!("s3"), "^/type", "Invalid value: must be of type integer"),
            (
                json!({"type": "string", "format": "date"}),
                json!("s3"),
                "^/format",
                "Invalid value: must be of type date",
            ),
            (json!({"required": ["r"]}), json!({}), "^/required", "Required value"),
            (
                json!({"type": "object", "required": ["r"], "properties": {"r": {"type": "string"}}}),
                json!({}),
                "^/required",
                "Required value",
            ),
            (json!({"maxItems": 1}), json!([1, 2]), "^/maxItems", "Too many: must have at most 1 items"),
            (
                json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 9"}, {"rule": "self > 9", "message": "big"}]}),
                json!(7),
                "^/x-kubernetes-validations/1",
                "Invalid value: big",
            ),
            (
                json!({"type": "string", "x-kubernetes-validations": [
                    {"rule": "self == 'a'", "messageExpression": "'not ' + self"}]}),
                json!("s3"),
                "^/x-kubernetes-validations/0",
                "Invalid value: failed rule: self == 'a'",
            ),
        ] {
            assert_eq!(cause(schema, spec), (at.to_owned(), words.to_owned()));
        }
    }

    #[test]
    fn rules_that_point_elsewhere_are_found_by_their_place_and_told_without_the_value() {
        let with = |rule: Value| {
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "true"}, rule],
                "properties": {"pin": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}}})
        };
        let at = "^/x-kubernetes-validations/1";
        for (rule, words) in [
            (
                json!({"rule": "self.pin != 's3'", "fieldPath": ".pin", "messageExpression": "'not ' + self.pin"}),
                "Invalid value: failed rule: self.pin != 's3'",
            ),
            (json!({"rule": "self.pin != 's3'", "fieldPath": ".pin", "message": "weak"}), "Invalid value: weak"),
            (
                json!({"rule": "self.pin != 's3'", "fieldPath": ".pin", "message": "weak", "reason": "FieldValueRequired"}),
                "Required value: weak",
            ),
            (
                json!({"rule": "self.pin != 's3'", "message": "weak", "reason": "FieldValueForbidden"}),
                "Forbidden: weak",
            ),
        ] {
            assert_eq!(cause(with(rule), json!({"pin": "s3"})), (at.to_owned(), words.to_owned()));
        }
        let branch = json!({"type": "string", "allOf": [
            {"x-kubernetes-validations": [{"rule": "self == 'a'", "messageExpression": "'not ' + self"}]}]});
        let at = "^/allOf/0/x-kubernetes-validations/0";
        assert_eq!(cause(branch, json!("s3")), (at.to_owned(), "Invalid value: failed rule: self == 'a'".to_owned()));
    }

    #[test]
    fn values_are_short_or_only_told_by_their_kind() {
        assert_eq!(shown(&json!({"a": [1, "b"]}), false), r#"{"a":[1,"b"]}"#);
        assert_eq!(shown(&json!("x".repeat(5000)), false).chars().count(), LONGEST_VALUE);
        assert_eq!(shown(&json!(vec!["é"; 5000]), false).chars().count(), LONGEST_VALUE);
        assert_eq!(shown(&json!({"password": "x"}), true), "object");
    }
}
