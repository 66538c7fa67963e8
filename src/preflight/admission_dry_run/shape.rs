//! Validates the shape of an object of a built-in kind against the server's OpenAPI document: the part of server-side
//! apply's validation that works without the server. It does not check values or `required`: what the server really
//! requires differs from the document in both directions.

use serde_json::Value;

use crate::cluster::Gvk;
use crate::resource::Step;

/// The maximum length of a chain of `$ref`s.
const MAX_REFS: usize = 8;

/// Definitions whose values may be of several types.
const ANY: [&str; 6] = [
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
];

/// A field that does not match the schema, or an invalid name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub at: Vec<Step>,
    pub message: String,
}

/// The schemas of one group at one version.
pub struct Document(Value);

impl Document {
    pub fn parse(openapi: &str) -> Option<Self> {
        serde_json::from_str(openapi).ok().map(Document)
    }

    /// The fields that do not match the schema; `None` if the document does not describe the kind.
    pub fn validate(&self, kind: &Gvk, object: &Value) -> Option<Vec<FieldError>> {
        let is_kind = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.into_iter().flatten().any(|named| {
                named["group"] == kind.group.as_str()
                    && named["version"] == kind.version.as_str()
                    && named["kind"] == kind.kind.as_str()
            })
        };
        let schema = self.definitions()?.values().find(is_kind)?;
        let mut errors = Vec::new();
        self.walk(object, schema, &mut Vec::new(), &mut errors);
        Some(errors)
    }

    fn definitions(&self) -> Option<&serde_json::Map<String, Value>> {
        self.0.pointer("/components/schemas")?.as_object()
    }

    /// Follows `$ref`s to the schema; `None` if it allows any value, or cannot be checked here.
    fn resolve<'s>(&'s self, mut schema: &'s Value) -> Option<&'s Value> {
        for _ in 0..MAX_REFS {
            let wrapped = schema["allOf"].as_array().filter(|all| all.len() == 1).map(|all| &all[0]["$ref"]);
            let Some(reference) = schema["$ref"].as_str().or(wrapped.and_then(Value::as_str)) else { break };
            let name = reference.rsplit('/').next().unwrap_or_default();
            if ANY.contains(&name) {
                return None;
            }
            schema = self.definitions()?.get(name)?;
        }
        (schema.get("oneOf").is_none() && schema.get("anyOf").is_none()).then_some(schema)
    }

    fn walk(&self, value: &Value, schema: &Value, at: &mut Vec<Step>, errors: &mut Vec<FieldError>) {
        let Some(schema) = self.resolve(schema) else { return };
        let expected = match (schema["type"].as_str(), value) {
            // The server treats null like a field that is left out.
            (None, _) | (_, Value::Null) => return,
            (Some("object"), Value::Object(members)) => {
                for (key, member) in members {
                    at.push(Step::from(key.as_str()));
                    match self.member(schema, key) {
                        Some(Some(below)) => self.walk(member, below, at, errors),
                        Some(None) => {}
                        None => {
                            errors.push(FieldError { at: at.clone(), message: "field not declared in schema".into() })
                        }
                    }
                    at.pop();
                }
                return;
            }
            (Some("array"), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    at.push(Step::from(index));
                    self.walk(item, &schema["items"], at, errors);
                    at.pop();
                }
                return;
            }
            (Some("string"), Value::String(_))
            | (Some("boolean"), Value::Bool(_))
            | (Some("integer" | "number"), Value::Number(_)) => return,
            (Some("object"), _) => "map",
            (Some("array"), _) => "list",
            (Some("string"), _) => "string",
            (Some("boolean"), _) => "boolean",
            (Some("integer" | "number"), _) => "numeric (int or float)",
            (Some(_), _) => return,
        };
        errors.push(FieldError { at: at.clone(), message: format!("expected {expected}") });
    }

    /// The schema of a member; `Some(None)` if any value is allowed, `None` if the field is not allowed.
    #[expect(clippy::option_option, reason = "three answers, explained in the doc comment")]
    fn member<'s>(&self, schema: &'s Value, key: &str) -> Option<Option<&'s Value>> {
        let properties = schema["properties"].as_object();
        if let Some(member) = properties.and_then(|properties| properties.get(key)) {
            return Some(Some(member));
        }
        match &schema["additionalProperties"] {
            Value::Object(_) => Some(Some(&schema["additionalProperties"])),
            Value::Bool(true) => Some(None),
            _ if schema["x-kubernetes-preserve-unknown-fields"] == true => Some(None),
            _ => properties.is_none_or(serde_json::Map::is_empty).then_some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_and_wrong_types_are_found_and_nothing_else() {
        let document = json!({"components": {"schemas": {
            "Kind": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "K"}],
                "properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
                    "kind": {"type": "string"}}},
            "Spec": {"type": "object", "required": ["missing"], "properties": {
                "list": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object"},
                "size": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}}},
            "Item": {"type": "object", "properties": {"port": {"type": "integer"}, "on": {"type": "boolean"}}},
        }}});
        let document = Document::parse(&document.to_string()).unwrap();
        let kind = Gvk { group: "g".into(), version: "v1".into(), kind: "K".into() };
        let judge = |spec: Value| -> Vec<String> {
            let errors = document.validate(&kind, &json!({"kind": "K", "spec": spec})).unwrap();
            errors.iter().map(|error| format!("{} {}", error.at.len(), error.message)).collect()
        };
        assert_eq!(
            judge(json!({"list": [{"port": 1}, {"on": true, "port": null}], "labels": {"a": "b"}, "size": 1.5,
                "free": {"x": {}}})),
            [""; 0]
        );
        assert_eq!(judge(json!({"lst": []})), ["2 field not declared in schema"]);
        assert_eq!(
            judge(json!({"list": [{"port": "1"}, 7], "labels": {"a": 1}, "free": []})),
            ["4 expected numeric (int or float)", "3 expected map", "3 expected string", "2 expected map"]
        );
        assert_eq!(document.validate(&Gvk { kind: "L".into(), ..kind }, &json!({})), None);
    }
}
