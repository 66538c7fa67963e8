//! Compares gantry's result for an object with the server's, asks the server again about differences, and shows them.

use std::collections::BTreeMap;

use gantry_k8s_cel::{CelEnvironment, CelType, compile_expression};
use gantry_schema::{FieldError, FieldErrorKind, ObjectValidationResult};
use serde_json::{Map, Value, json};

use super::{ASKED_AGAIN, Subject, Tally};

impl Subject {
    fn ours(&self, object: &Value, old: Option<&Value>) -> (Value, ObjectValidationResult) {
        let mut object = object.clone();
        let processed = self.schema.process(&mut object, old);
        (object, processed.outcome)
    }

    /// The object without the undecodable fields, which hide the errors of all other fields; calls `again` with the
    /// rest.
    pub(super) fn decodable(&self, mut object: Value, again: impl FnOnce(&Value)) -> Value {
        let is_decodable = |field: &String| {
            let value = object.get(field).cloned().unwrap_or_default();
            self.schema.prepare(&mut self.object("x", &BTreeMap::from([(field.clone(), value)]))).is_ok()
        };
        let undecodable: Vec<&String> = self.fields.keys().filter(|field| !is_decodable(field)).collect();
        if let Some(map) = object.as_object_mut().filter(|_| !undecodable.is_empty()) {
            map.retain(|key, _| !undecodable.contains(&key));
            again(&object);
        }
        object
    }

    /// gantry's result for one field of the object alone.
    fn alone(&self, field: &str, object: &Value, old: Option<&Value>) -> ObjectValidationResult {
        let only = |object: &Value| -> Value {
            let part = |key: &str| key == field || matches!(key, "apiVersion" | "kind" | "metadata");
            let map = object.as_object().into_iter().flatten().filter(|(key, _)| part(key));
            map.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into()
        };
        self.ours(&only(object), old.map(only).as_ref()).1
    }

    /// The object without the fields that prevent the rules of all other fields from being evaluated.
    pub(super) fn ruled(&self, object: &Value, old: Option<&Value>) -> Value {
        let mut ruled = object.clone();
        for field in self.fields.keys() {
            let outcome = self.alone(field, object, old);
            let blocks = |error: &FieldError| {
                matches!(
                    error.kind,
                    FieldErrorKind::NotSupported
                        | FieldErrorKind::Required
                        | FieldErrorKind::TooLong
                        | FieldErrorKind::TooMany
                        | FieldErrorKind::TypeInvalid
                )
            };
            // Some rules have these kinds as their `reason`.
            if outcome.errors.iter().any(|error| error.path == "<nil>" || blocks(error))
                && let Some(map) = ruled.as_object_mut()
            {
                map.shift_remove(field);
            }
        }
        ruled
    }

    /// The object without the fields that gantry refuses.
    pub(super) fn accepted(&self, object: &Value, old: Option<&Value>, tally: &mut Tally) -> Value {
        let mut accepted = object.clone();
        for field in self.fields.keys() {
            // The default of another field can be invalid although the server accepts it; it is refused in any case.
            let is_ours = |text: &str| text.contains(field.as_str());
            let outcome = self.alone(field, object, old);
            let refused = outcome.errors.iter().any(|error| is_ours(&error.to_string()));
            if refused {
                tally.refused += 1;
                if let Some(map) = accepted.as_object_mut() {
                    map.shift_remove(field);
                }
            } else if old.is_some() && self.alone(field, object, None).errors.iter().any(|e| is_ours(&e.to_string())) {
                tally.tolerated += 1;
            }
        }
        accepted
    }

    /// Compares both results for an object. If they differ, the server is asked again. An answer that it does not
    /// repeat is not counted as a difference: the server iterates over the fields of compared objects in random order.
    pub(super) fn compare(
        &self,
        what: &str,
        object: &Value,
        old: Option<&Value>,
        ask: &dyn Fn() -> (u16, Value),
        tally: &mut Tally,
    ) {
        let (ours, outcome) = self.ours(object, old);
        for open in &outcome.undecided {
            tally.disagreements.push(format!("{what}: undecided at {}: {} ({})", open.path, open.rule, open.reason));
        }
        let first = ask();
        tally.undecodable += usize::from(first.0 == 400);
        let mut differences = self.differences(&ours, &outcome, first);
        let all = differences.len();
        for _ in 0..ASKED_AGAIN {
            if differences.is_empty() {
                break;
            }
            let again = self.differences(&ours, &outcome, ask());
            differences.retain(|difference| again.contains(difference));
        }
        tally.unsteady += all - differences.len();
        for text in differences {
            self.disagree(what, &text, object, old, tally);
        }
    }

    /// Compares the results of reading a stored object.
    pub(super) fn read(&self, path: &str, old: &Value, tally: &mut Tally) {
        let mut ours = old.clone();
        self.schema.prepare_stored(&mut ours).expect("what cannot be read was not stored");
        let (status, answer) = self.api.get(path);
        assert_eq!(status, 200, "{answer}");
        for text in self.differences(&ours, &ObjectValidationResult::default(), (status, answer)) {
            self.disagree("read", &text, old, None, tally);
        }
    }

    /// The errors that only the server reports, and those that only gantry reports.
    fn differences(
        &self,
        ours: &Value,
        outcome: &ObjectValidationResult,
        (status, answer): (u16, Value),
    ) -> Vec<String> {
        let mut differences = Vec::new();
        match status {
            200 | 201 => {
                differences.extend(outcome.errors.iter().map(|error| format!("only we refuse: {error}")));
                for field in self.fields.keys().filter(|_| outcome.errors.is_empty()) {
                    let (ours, theirs) = (decoded(ours.get(field)), decoded(answer.get(field)));
                    if ours != theirs {
                        differences.push(format!("{field} comes back as {theirs:?}, we make {ours:?}"));
                    }
                }
            }
            422 => {
                let mut balances: BTreeMap<(String, String), i32> = BTreeMap::new();
                for error in &outcome.errors {
                    let (path, said) = self.compared.said_by_us(error);
                    *balances.entry((path, comparable(&said))).or_default() += 1;
                }
                for (path, said) in self.compared.said_by_server(&answer) {
                    *balances.entry((path, comparable(&said))).or_default() -= 1;
                }
                for ((field, message), balance) in balances.into_iter().filter(|(_, balance)| *balance != 0) {
                    let who = if balance > 0 { "only we say" } else { "only the server says" };
                    differences.push(format!("{who} {field}: {message}"));
                }
            }
            400 if outcome.errors.len() != 1 => {
                differences.push(format!("the server cannot decode: {}", answer["message"]));
            }
            400 => {}
            _ => panic!("{status} {answer}"),
        }
        differences
    }

    fn disagree(&self, what: &str, text: &str, object: &Value, old: Option<&Value>, tally: &mut Tally) {
        let field = self.fields.keys().rev().find(|f| {
            text.match_indices(f.as_str())
                .any(|(at, _)| !text[at + f.len()..].starts_with(|c: char| c.is_ascii_digit()))
        });
        let part = |from: &Value| field.map(|f| from.get(f).cloned().unwrap_or_default());
        tally.disagreements.push(format!(
            "{what}: {text}\n  schema {}\n  value {}\n  before {}",
            json!(field.map(|f| &self.fields[f])),
            json!(part(object)),
            json!(old.map(part)),
        ));
    }
}

/// A message without the part that is not compared: Go's reason why a text that a rule reads does not have its format.
/// This occurs only in updates that leave the text unchanged.
fn comparable(message: &str) -> String {
    let reason = [
        "Invalid date-time formatted",
        "Invalid date formatted",
        "Invalid byte formatted",
        "Invalid duration",
        "unsupported conversion",
    ];
    let cut = reason.iter().filter_map(|reason| message.find(reason).map(|at| at + reason.len())).min();
    match (cut, message.find(" evaluating rule: ")) {
        (Some(cut), Some(tail)) if cut <= tail => format!("{}{}", &message[..cut], &message[tail..]),
        _ => message.to_owned(),
    }
}

/// Whether gantry cannot compile one of the rules of a schema.
pub(super) fn has_problem(schema: &Value, environment: CelEnvironment) -> bool {
    let below = |schema: &Value| has_problem(schema, environment);
    let is_uncompiled = |rule: &Value| {
        let is_optional = rule["optionalOldSelf"] == true;
        let of = CelType::compile(schema, false);
        let source = rule["rule"].as_str().unwrap_or_default();
        let compiled = compile_expression(source, &of, is_optional, environment);
        !source.trim().is_empty()
            && !compiled.is_ok_and(|compiled| compiled.program_error.is_none() && compiled.is_condition())
    };
    schema.get("x-kubernetes-validations").and_then(Value::as_array).is_some_and(|all| all.iter().any(is_uncompiled))
        || schema.get("properties").and_then(Value::as_object).is_some_and(|all| all.values().any(below))
        || schema.get("items").is_some_and(below)
        || schema.get("additionalProperties").is_some_and(below)
}

/// A value after it was written and read: `1.0` becomes `1`, and the order of keys does not matter.
fn decoded(value: Option<&Value>) -> Option<Value> {
    Some(match value? {
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 1e18 => json!(f as i64),
            Some(f) if !n.is_i64() => json!(f),
            _ => Value::Number(n.clone()),
        },
        Value::Array(items) => Value::Array(items.iter().filter_map(|item| decoded(Some(item))).collect()),
        Value::Object(map) => {
            let entries: Map<String, Value> =
                map.iter().filter_map(|(key, value)| Some((key.clone(), decoded(Some(value))?))).collect();
            Value::Object(entries)
        }
        other => other.clone(),
    })
}
