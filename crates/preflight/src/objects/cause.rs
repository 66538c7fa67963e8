//! The cause of an effect, in words that are the same for all affected objects.
//!
//! The server's errors contain indices, keys and values of one object. The cause is the part that comes from the
//! schema.

use std::io;

use serde_json::Value;

use super::place::{self, ObjectPlace};
use gantry_core::resource::Step;
use gantry_schema::{FieldError, FieldErrorKind, RefusedBy};

/// The maximum number of characters shown of a value.
const LONGEST_VALUE: usize = 100;
/// The maximum number of characters quoted from a rule or its message.
const LONGEST_RULE: usize = 300;

/// The keyword that causes an effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CausingKeyword {
    /// The steps from the root of the schema to it: …, `maximum`, or …, `x-kubernetes-validations`, 2.
    pub at: Vec<Step>,
    /// The cause in words, without values of the object: `Required value`.
    pub words: String,
}

/// The keyword in `schema` that causes the server's error about a value at `place`.
pub fn find_cause(error: &FieldError, place: &ObjectPlace, schema: &Value) -> CausingKeyword {
    let here = |words: &str| {
        let words = format!("{}: {}", error.kind.words(), gantry_core::text::cut(words, LONGEST_RULE));
        CausingKeyword { at: place.schema.clone(), words }
    };
    match &error.by {
        RefusedBy::Keyword(at) => CausingKeyword { at: at.clone(), words: words(error, at, schema) },
        RefusedBy::Evaluation(at) => CausingKeyword { at: at.clone(), words: unevaluated(error, at, schema) },
        RefusedBy::ObjectMeta(words) if words.is_empty() => {
            CausingKeyword { at: place.schema.clone(), words: error.kind.words().to_owned() }
        }
        RefusedBy::ObjectMeta(words) => here(words),
        RefusedBy::Scale(wanted) => here(&format!("{wanted}, because the scale subresource reads it")),
        RefusedBy::Definition | RefusedBy::RulesNotEvaluated => here(&error.detail),
    }
}

/// The words for the keyword at these steps, from the schema alone.
fn words(error: &FieldError, at: &[Step], schema: &Value) -> String {
    let found = place::value_at(schema, at);
    let text = || found.map(|value| show_value(value, false)).unwrap_or_default();
    let own = |kind: FieldErrorKind, words: String| format!("{}: {words}", kind.words());
    let Some(Step::Key(keyword)) = at.iter().rfind(|step| matches!(step, Step::Key(_))) else {
        return error.kind.words().to_owned();
    };
    match keyword.as_str() {
        "x-kubernetes-validations" => own(error.kind, rule(found)),
        "required" => FieldErrorKind::Required.words().to_owned(),
        "x-kubernetes-list-type" if error.kind == FieldErrorKind::Duplicate => {
            FieldErrorKind::Duplicate.words().to_owned()
        }
        "x-kubernetes-list-type" => own(error.kind, "must be an object for an array of list-type map".to_owned()),
        "enum" => own(FieldErrorKind::NotSupported, format!("supported values: {}", list(found))),
        "maxLength" => own(FieldErrorKind::TooLong, format!("may not be more than {} bytes", text())),
        "maxItems" => own(FieldErrorKind::TooMany, format!("must have at most {} items", text())),
        "maxProperties" => own(FieldErrorKind::TooMany, format!("must have at most {} entries", text())),
        "type" | "format" => own(FieldErrorKind::Invalid, format!("must be of type {}", expected_type(found))),
        "anyOf" | "oneOf" | "allOf" | "not" => own(FieldErrorKind::Invalid, format!("does not match {keyword}")),
        // The bound itself: see [`gantry_schema::can_be_bound`].
        "minimum" | "maximum" | "multipleOf" if error.detail.contains(" value must be of type ") => own(
            FieldErrorKind::Invalid,
            format!("no number is valid, because its type cannot represent {keyword} {}", text()),
        ),
        _ => own(FieldErrorKind::Invalid, format!("{keyword} is {}", text())),
    }
}

/// The server's words about a rule that it cannot evaluate. If they can contain a value of the object, only the rule is
/// named: see [`evaluation_error`].
fn unevaluated(error: &FieldError, at: &[Step], schema: &Value) -> String {
    let found = place::value_at(schema, at);
    let source = found.and_then(|rule| rule.get("rule")?.as_str()).unwrap_or_default();
    let is_plain = ["'no such overload", "division by zero", "modulus by zero", "integer overflow", "unsigned integer"];
    // Keys and indexes can come from the object, unless the rule itself has them.
    let is_of_rule = ["no such key: ", "index out of bounds: "].iter().any(|prefix| {
        let rest = error.detail.strip_prefix(prefix).and_then(|rest| rest.split_once(" evaluating rule"));
        rest.is_some_and(|(name, _)| source.contains(name))
    });
    if is_of_rule || is_plain.iter().any(|prefix| error.detail.starts_with(prefix)) {
        return gantry_core::text::cut(&error.body(), LONGEST_RULE).into_owned();
    }
    format!("{}: the rule cannot be evaluated: {}", error.kind.words(), rule(found))
}

/// The server's error for a rule that it cannot evaluate on this object, in which values of the object can occur.
pub fn evaluation_error(error: &FieldError) -> Option<&str> {
    matches!(error.by, RefusedBy::Evaluation(_)).then_some(&error.detail)
}

/// A type or a format. A node without one is an int-or-string.
fn expected_type(found: Option<&Value>) -> &str {
    found.and_then(Value::as_str).unwrap_or("integer,string")
}

/// The message of a rule, or its expression if it has none or uses `messageExpression`.
fn rule(found: Option<&Value>) -> String {
    let text = |key: &str| found.and_then(|rule| rule.get(key)?.as_str()).unwrap_or_default().trim().to_owned();
    let words = match text("message") {
        message if !message.is_empty() => message,
        _ => format!("failed rule: {}", text("rule")),
    };
    gantry_core::text::cut(&words, LONGEST_RULE).into_owned()
}

fn list(values: Option<&Value>) -> String {
    let values = values.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Vec<String> = values.iter().take(10).map(|value| show_value(value, false)).collect();
    let more = if values.len() > 10 { ", …" } else { "" };
    format!("{}{more}", words.join(", "))
}

/// A value as JSON on one line, cut if it is long; with `redact` only its type.
pub fn show_value(value: &Value, redact: bool) -> String {
    let kind = match value {
        _ if !redact => {
            let mut text = Bounded(Vec::new());
            // The only possible error means that the buffer is full.
            let _ = serde_json::to_writer(&mut text, value);
            return gantry_core::text::cut(&String::from_utf8_lossy(&text.0), LONGEST_VALUE).into_owned();
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

/// A buffer for the shown part of a value, with some room beyond it to detect that the value was cut.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() > 4 * (LONGEST_VALUE + 1) {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // A single write can be one long string.
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

    /// The causes of the errors of a `spec` under this schema.
    fn causes(schema: Value, spec: Value) -> Vec<(String, String)> {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let object = json!({"metadata": {"name": "x"}, "spec": spec});
        let outcome = Schema::compile(&schema).unwrap().validate(&object, None);
        let say = |error: &FieldError| {
            let place = place::find_place(&error.at, &schema);
            let keyword = find_cause(error, &place, &schema);
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
            (
                json!({"type": "integer", "maximum": 3.5}),
                json!(1),
                "^/maximum",
                "Invalid value: no number is valid, because its type cannot represent maximum 3.5",
            ),
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
    fn a_keyword_below_all_of_is_found_in_its_branch() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^s"}},
            "allOf": [{}, {"properties": {"a": {"pattern": "^a"}}, "required": ["b"]}],
            "anyOf": [{"required": ["c"]}]});
        let found = causes(schema, json!({"a": "s3"}));
        let wanted = [
            ("^/allOf/1/properties/a/pattern", "Invalid value: pattern is \"^a\""),
            ("^/allOf/1/required", "Required value"),
            ("^/allOf", "Invalid value: does not match allOf"),
            ("^/anyOf", "Invalid value: does not match anyOf"),
            ("^/anyOf/0/required", "Required value"),
        ];
        let mut found: Vec<(&str, &str)> = found.iter().map(|(at, words)| (at.as_str(), words.as_str())).collect();
        found.sort_unstable_by_key(|(at, _)| wanted.iter().position(|(wanted, _)| wanted == at));
        assert_eq!(found, wanted);
    }

    #[test]
    fn rules_with_a_field_path_are_located_and_reported_without_the_value() {
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
    fn values_are_shortened_or_only_their_type_is_shown() {
        assert_eq!(show_value(&json!({"a": [1, "b"]}), false), r#"{"a":[1,"b"]}"#);
        assert_eq!(show_value(&json!("x".repeat(5000)), false).chars().count(), LONGEST_VALUE);
        assert_eq!(show_value(&json!(vec!["é"; 5000]), false).chars().count(), LONGEST_VALUE);
        assert_eq!(show_value(&json!({"password": "x"}), true), "object");
    }
}
