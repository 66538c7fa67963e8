//! The scale subresource: in every write of the whole object, the fields that it reads must have the types that it
//! requires.
//!
//! These errors are never ratcheted. A missing field is valid.

use serde_json::{Map, Value, json};

use super::error::{FieldError, FieldErrorKind, RefusedBy};
use crate::Step;
use gantry_k8s_cel::Num;
use gantry_k8s_cel::gotext;

/// The paths that the scale subresource of a version reads, such as `.spec.replicas`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    spec_replicas: Option<String>,
    status_replicas: Option<String>,
    label_selector: Option<String>,
}

impl ScalePaths {
    /// Reads `subresources.scale` of a version.
    pub fn from_subresource(subresource: &Value) -> Self {
        Self::with_paths(|name| subresource.get(name).and_then(Value::as_str))
    }

    /// Builds a `Scale` from the values of `specReplicasPath`, `statusReplicasPath` and `labelSelectorPath`.
    pub fn with_paths<'v>(path_of: impl Fn(&str) -> Option<&'v str>) -> Self {
        let path = |name| path_of(name).filter(|path| !path.is_empty()).map(str::to_owned);
        Self {
            spec_replicas: path("specReplicasPath"),
            status_replicas: path("statusReplicasPath"),
            label_selector: path("labelSelectorPath"),
        }
    }

    /// The paths that `other` does not have in the same role.
    pub fn without_paths_of(&self, other: &ScalePaths) -> Self {
        let new = |own: &Option<String>, other: &Option<String>| own.clone().filter(|_| own != other);
        Self {
            spec_replicas: new(&self.spec_replicas, &other.spec_replicas),
            status_replicas: new(&self.status_replicas, &other.status_replicas),
            label_selector: new(&self.label_selector, &other.label_selector),
        }
    }

    /// The paths that `other` does not have in the same role, and those into a field of the object of which `changes`
    /// says that its schema changes: a new default there can be a value that the scale subresource refuses.
    pub fn to_check_beside(&self, other: &ScalePaths, changes: impl Fn(&str) -> bool) -> Self {
        let check = |own: &Option<String>, other: &Option<String>| {
            let is_changed = |path: &String| steps(path).next().is_some_and(&changes);
            own.clone().filter(|path| Some(path) != other.as_ref() || is_changed(path))
        };
        Self {
            spec_replicas: check(&self.spec_replicas, &other.spec_replicas),
            status_replicas: check(&self.status_replicas, &other.status_replicas),
            label_selector: check(&self.label_selector, &other.label_selector),
        }
    }

    /// The paths that `other` has in the same role.
    pub fn common(&self, other: &ScalePaths) -> Self {
        let same = |own: &Option<String>, other: &Option<String>| own.clone().filter(|_| own == other);
        Self {
            spec_replicas: same(&self.spec_replicas, &other.spec_replicas),
            status_replicas: same(&self.status_replicas, &other.status_replicas),
            label_selector: same(&self.label_selector, &other.label_selector),
        }
    }

    /// Restricts the declared fields of a schema to the values that the scale subresource accepts, as far as keywords
    /// can say it. Every object that can be written satisfies this anyway.
    pub fn restrict_schema(&self, schema: &mut Value) {
        for (path, wanted) in self.expected_types() {
            let node = steps(path).try_fold(&mut *schema, |node, step| node.get_mut("properties")?.get_mut(step));
            if let Some(node) = node.and_then(Value::as_object_mut)
                && !restrict(node, wanted)
            {
                refuse_all(node, wanted);
            }
        }
    }

    /// The paths, each with the type that its value must have.
    fn expected_types(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let paths =
            [(&self.spec_replicas, "integer"), (&self.status_replicas, "integer"), (&self.label_selector, "string")];
        paths.into_iter().filter_map(|(path, wanted)| Some((path.as_deref()?, wanted)))
    }

    /// Restricts a schema to the values that the scale subresource accepts, of any type: unlike [`ScalePaths::restrict_schema`], for
    /// a subresource that objects did not have to satisfy until now.
    pub fn require(&self, schema: &mut Value) {
        for (path, wanted) in self.expected_types() {
            let Some(node) = schema.as_object_mut() else { return };
            let steps: Vec<&str> = steps(path).collect();
            if let Some((first, rest)) = steps.split_first() {
                require_below(node, first, rest, wanted);
            }
        }
    }

    /// The nodes of a schema that can have values which the scale subresource refuses: the role of each path
    /// (`specReplicasPath`), and the steps to the node. The opposite is not certain: rules of the schema can exclude
    /// such values.
    pub fn unbounded(&self, schema: &Value) -> Vec<(&'static str, Vec<Step>)> {
        let paths = [
            ("specReplicasPath", &self.spec_replicas, "integer"),
            ("statusReplicasPath", &self.status_replicas, "integer"),
            ("labelSelectorPath", &self.label_selector, "string"),
        ];
        let of_path = |(role, path, wanted): (&'static str, &Option<String>, &str)| {
            Some((role, unbounded_at(schema, path.as_deref()?, wanted)?))
        };
        paths.into_iter().filter_map(of_path).collect()
    }

    /// Whether there are no paths.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a path begins with this field of the object.
    pub fn looks_at(&self, field: &str) -> bool {
        let paths = [&self.spec_replicas, &self.status_replicas, &self.label_selector];
        paths.into_iter().flatten().any(|path| steps(path).next() == Some(field))
    }

    pub(super) fn check(&self, object: &Value) -> Vec<FieldError> {
        let replicas = [&self.spec_replicas, &self.status_replicas].into_iter().flatten();
        let mut errors: Vec<FieldError> = replicas.filter_map(|path| check_replicas(object, path)).collect();
        if let Some(path) = &self.label_selector {
            let wrong = match value_at(object, path) {
                Ok(None | Some(Value::String(_))) => None,
                Ok(Some(other)) => Some((STRING, type_error(path, other, "string"))),
                Err(detail) => Some((WITHIN, detail)),
            };
            errors.extend(wrong.map(|(wanted, detail)| invalid(path, wanted, Value::String(String::new()), detail)));
        }
        errors
    }
}

/// Restricts a node to the values of this type that the scale subresource accepts. Returns whether keywords can say it;
/// otherwise the node stays as it is.
fn restrict(node: &mut Map<String, Value>, wanted: &str) -> bool {
    let has = |keyword: &&str| node.contains_key(*keyword);
    let is_plain = !["allOf", "oneOf", "not", "x-kubernetes-validations"].iter().any(has);
    // An integer cannot be bounded by a fraction: see `can_be_bound`.
    let is_whole = |keyword: &&str| node.get(*keyword).and_then(Value::as_f64).is_none_or(|bound| bound.fract() == 0.0);
    match type_of(node) {
        Some(own) if own == wanted => {}
        Some("number")
            if wanted == "integer"
                && is_plain
                && !has(&"anyOf")
                && ["minimum", "maximum", "multipleOf"].iter().all(is_whole) =>
        {
            node.shift_remove("format");
        }
        None if is_plain && (is_true(node, INT_OR_STRING) || is_true(node, PRESERVE)) => {
            let both_types = json!([{"type": "integer"}, {"type": "string"}]);
            if node.get("anyOf").is_some_and(|any_of| !is_true(node, INT_OR_STRING) || *any_of != both_types) {
                return false;
            }
            for keyword in ["anyOf", "format", INT_OR_STRING, PRESERVE] {
                node.shift_remove(keyword);
            }
        }
        // Rules and combined schemas can depend on the type.
        _ => return false,
    }
    node.insert("type".to_owned(), wanted.into());
    node.shift_remove("nullable");
    if wanted == "integer" {
        bound(node);
    }
    true
}

/// Makes a node of another type than the scale subresource accepts refuse every value, where bounds can say it.
fn refuse_all(node: &mut Map<String, Value>, wanted: &str) {
    let [least, most] = match type_of(node) {
        Some("object") => ["minProperties", "maxProperties"],
        Some("array") => ["minItems", "maxItems"],
        Some("string") => ["minLength", "maxLength"],
        Some("integer" | "number") if wanted != "integer" => ["minimum", "maximum"],
        _ => return,
    };
    node.insert(least.to_owned(), 1.into());
    node.insert(most.to_owned(), 0.into());
    node.shift_remove("nullable");
}

/// Adds the bounds that the scale subresource imposes on an integer.
fn bound(node: &mut Map<String, Value>) {
    let least = node.get("minimum").and_then(Value::as_f64);
    if least.is_none_or(|least| least < 0.0) {
        node.insert("minimum".to_owned(), 0.into());
        node.shift_remove("exclusiveMinimum");
    }
    let most = node.get("maximum").and_then(Value::as_f64);
    if most.is_none_or(|most| most > f64::from(i32::MAX)) {
        node.insert("maximum".to_owned(), i32::MAX.into());
        node.shift_remove("exclusiveMaximum");
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

fn is_true(node: &Map<String, Value>, keyword: &str) -> bool {
    node.get(keyword) == Some(&Value::Bool(true))
}

fn type_of(node: &Map<String, Value>) -> Option<&str> {
    node.get("type").and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// Restricts the field `step` of this node, and what is below it, to what the scale subresource accepts.
fn require_below(node: &mut Map<String, Value>, step: &str, rest: &[&str], wanted: &str) {
    let is_kept = is_true(node, PRESERVE) || is_true(node, "additionalProperties");
    let known = node.get("properties").and_then(|fields| fields.get(step));
    let entry = || node.get("additionalProperties").filter(|entry| entry.is_object());
    let any = || is_kept.then(|| json!({PRESERVE: true, "nullable": true}));
    // A field that the server prunes has no value.
    let Some(mut field) = known.or_else(entry).cloned().or_else(any) else { return };
    let Some(below) = field.as_object_mut() else { return };
    match rest.split_first() {
        Some((next, rest)) => {
            let is_nullable = is_true(below, "nullable") || type_of(below).is_none();
            match type_of(below) {
                Some("object") => require_below(below, next, rest, wanted),
                None if is_true(below, PRESERVE) => {
                    below.insert("type".to_owned(), "object".into());
                    require_below(below, next, rest, wanted);
                }
                _ => *below = Map::from_iter([("type".to_owned(), "object".into())]),
            }
            below.insert("nullable".to_owned(), is_nullable.into());
        }
        None => {
            if !restrict(below, wanted) {
                *below = Map::from_iter([("type".to_owned(), wanted.into())]);
                restrict(below, wanted);
            }
        }
    }
    let fields = node.entry("properties").or_insert_with(|| json!({}));
    if let Some(fields) = fields.as_object_mut() {
        fields.insert(step.to_owned(), field);
    }
}

/// The steps to the deepest described node on the path, unless every value there is one that is wanted.
fn unbounded_at(schema: &Value, path: &str, wanted: &str) -> Option<Vec<Step>> {
    let mut node = schema.as_object()?;
    let mut at = Vec::new();
    for (index, step) in steps(path).enumerate() {
        if index > 0 && type_of(node) != Some("object") {
            return Some(at);
        }
        let Some(field) = node.get("properties").and_then(|fields| fields.get(step)?.as_object()) else {
            let entries = node.get("additionalProperties").is_some_and(|entries| *entries != Value::Bool(false));
            return (is_true(node, PRESERVE) || entries).then_some(at);
        };
        at.extend(["properties".into(), step.into()]);
        node = field;
    }
    let number = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let is_bounded = || {
        let is_small = node.get("format").and_then(Value::as_str) == Some("int32");
        number("minimum").is_some_and(|least| least >= 0.0)
            && (is_small || number("maximum").is_some_and(|most| most <= f64::from(i32::MAX)))
    };
    let fits = type_of(node) == Some(wanted) && !is_true(node, "nullable") && (wanted != "integer" || is_bounded());
    (!fits).then_some(at)
}

fn check_replicas(object: &Value, path: &str) -> Option<FieldError> {
    let replicas = match value_at(object, path) {
        Ok(None) => return None,
        Ok(Some(Value::Number(n))) if matches!(Num::from(n), Num::Int(_)) => n.as_i64()?,
        Ok(Some(other)) => return Some(invalid(path, INTEGER, 0.into(), type_error(path, other, "int64"))),
        Err(detail) => return Some(invalid(path, WITHIN, 0.into(), detail)),
    };
    let detail = match replicas {
        ..0 => "should be a non-negative integer",
        _ if replicas > i64::from(i32::MAX) => "should be less than or equal to 2147483647",
        _ => return None,
    };
    Some(invalid(path, detail, replicas.into(), detail.to_owned()))
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// The value at `path`, if there is one. The error is the server's text for a value on the way that is not an object.
fn value_at<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut value = object;
    let mut done = String::new();
    for step in steps(path) {
        done.push('.');
        done.push_str(step);
        value = match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(step) {
                Some(value) => value,
                None => return Ok(None),
            },
            other => return Err(type_error(&done, other, "map[string]interface{}")),
        };
    }
    Ok(Some(value))
}

fn type_error(path: &str, value: &Value, wanted: &str) -> String {
    let own = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) => match Num::from(n) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let dot = if path.starts_with('.') { "" } else { "." };
    format!("{dot}{path} accessor error: {} is of the type {own}, expected {wanted}", gotext::format_v(value))
}

/// The requirements on a value.
const INTEGER: &str = "must be an integer";
const STRING: &str = "must be a string";
const WITHIN: &str = "must be within an object";

fn invalid(path: &str, wanted: &'static str, bad_value: Value, detail: String) -> FieldError {
    let (at, by) = (steps(path).map(Step::from).collect(), RefusedBy::Scale(wanted));
    FieldError {
        at,
        path: path.to_owned(),
        by,
        kind: FieldErrorKind::Invalid,
        bad_value: Some(bad_value),
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::*;

    fn scale() -> ScalePaths {
        ScalePaths::from_subresource(
            &json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector"}),
        )
    }

    /// Each message comes from a real server.
    #[test]
    fn values_at_the_paths_of_a_scale_subresource_must_have_its_types() {
        for (object, said) in [
            (json!({}), vec![]),
            (json!({"spec": null, "status": {"replicas": 3, "selector": "a=b"}}), vec![]),
            (
                json!({"spec": {"replicas": -1}}),
                vec![".spec.replicas: Invalid value: -1: should be a non-negative integer"],
            ),
            (
                json!({"status": {"replicas": 1_099_511_627_776_i64}}),
                vec![".status.replicas: Invalid value: 1099511627776: should be less than or equal to 2147483647"],
            ),
            (
                json!({"spec": {"replicas": 1.0}}),
                vec![
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 1 is of the type float64, expected int64",
                ],
            ),
            (
                json!({"spec": {"replicas": null}}),
                vec![
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: <nil> is of the type <nil>, expected int64",
                ],
            ),
            (
                json!({"spec": "x"}),
                vec![
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected map[string]interface{}",
                ],
            ),
            (
                json!({"status": {"selector": [1]}}),
                vec![
                    ".status.selector: Invalid value: \"\": .status.selector accessor error: [1] is of the type []interface {}, expected string",
                ],
            ),
        ] {
            let errors: Vec<String> = scale().check(&object).iter().map(ToString::to_string).collect();
            assert_eq!(errors, said, "{object}");
        }
    }

    #[test]
    fn a_schema_is_tightened_to_what_its_scale_subresource_requires() {
        let schema = |replicas: Value| json!({"properties": {"spec": {"properties": {"replicas": replicas}}}});
        let max = i32::MAX;
        for (given, tight) in [
            (json!({"type": "integer"}), json!({"type": "integer", "minimum": 0, "maximum": max})),
            (
                json!({"type": "integer", "minimum": -1, "exclusiveMinimum": true, "maximum": 3}),
                json!({"type": "integer", "minimum": 0, "maximum": 3}),
            ),
            (
                json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 1e10}),
                json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": max}),
            ),
            (json!({"type": "number", "maximum": 3.0}), json!({"type": "integer", "minimum": 0, "maximum": 3.0})),
            (json!({"type": "number", "maximum": 3.5}), json!({"type": "number", "maximum": 3.5})),
            (
                json!({"x-kubernetes-int-or-string": true, "maximum": 3, "pattern": "^a",
                    "anyOf": [{"type": "integer"}, {"type": "string"}]}),
                json!({"maximum": 3, "pattern": "^a", "type": "integer", "minimum": 0}),
            ),
            (
                json!({"x-kubernetes-int-or-string": true, "not": {"enum": [1]}}),
                json!({"x-kubernetes-int-or-string": true, "not": {"enum": [1]}}),
            ),
            (
                json!({"type": "integer", "nullable": true, "maximum": 3}),
                json!({"type": "integer", "minimum": 0, "maximum": 3}),
            ),
            (
                json!({"type": "string", "nullable": true, "maxLength": 9}),
                json!({"type": "string", "maxLength": 0, "minLength": 1}),
            ),
        ] {
            let mut schema_of_given = schema(given);
            scale().restrict_schema(&mut schema_of_given);
            assert_eq!(schema_of_given, schema(tight));
        }
        let other = ScalePaths::from_subresource(
            &json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.size"}),
        );
        assert_eq!(
            scale().common(&other),
            ScalePaths::from_subresource(&json!({"specReplicasPath": ".spec.replicas"}))
        );
    }

    #[test]
    fn errors_of_a_scale_subresource_are_not_ratcheted_and_only_new_paths_are_checked() {
        let kept = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let object = json!({"metadata": {"name": "x"}, "spec": {"replicas": -1}});
        let plain = Schema::compile(&kept).expect("a schema");
        assert!(plain.validate(&object, Some(&object)).is_accepted());
        let scaled = plain.with_scale(scale());
        assert_eq!(scaled.validate(&object, Some(&object)).errors.len(), 1);

        let beside = |other: &ScalePaths| {
            Schema::compile_beside(&kept, &kept).expect("a schema").with_scale(scale().without_paths_of(other))
        };
        assert!(beside(&scale()).validate(&object, None).is_accepted());
        let again = beside(&ScalePaths::from_subresource(&json!({"specReplicasPath": ".spec.size"})));
        assert!(again.looks_at("spec") && again.looks_at("status"));
        assert_eq!(again.validate(&object, None).errors.len(), 1);
    }
}
