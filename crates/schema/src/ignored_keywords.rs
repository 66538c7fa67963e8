//! Keywords of schemas that servers of older releases ignore.

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Map, Value};

use crate::{number, older_releases};

/// Formats that servers did not always enforce.
struct LateFormats {
    /// The types that they are on.
    types: &'static [&'static str],
    /// Their names without dashes.
    names: &'static [&'static str],
    /// The first release that enforces them on objects.
    on_objects: KubernetesRelease,
    /// The first release that enforces them on the defaults in a schema.
    on_defaults: KubernetesRelease,
}

/// The names are from `supportedVersionedFormats` in apiextensions-apiserver, which come into effect on objects one
/// release after they are introduced. The ranges of numbers are from the validator of kube-openapi that 1.36 uses.
const LATE_FORMATS: [LateFormats; 3] = [
    LateFormats {
        types: &["string", ""],
        names: &["k8sshortname", "k8slongname"],
        on_objects: KubernetesRelease::minor(35),
        on_defaults: KubernetesRelease::minor(34),
    },
    LateFormats {
        types: &["integer"],
        names: &["int32", "int64"],
        on_objects: older_releases::NUMBER_RANGES,
        on_defaults: older_releases::NUMBER_RANGES,
    },
    LateFormats {
        types: &["number"],
        names: &["float", "double"],
        on_objects: older_releases::NUMBER_RANGES,
        on_defaults: older_releases::NUMBER_RANGES,
    },
];

/// Removes the formats that a server of this release ignores on objects from an `openAPIV3Schema`.
pub fn drop_ignored_formats(schema: &mut Value, release: KubernetesRelease) {
    drop_formats(schema, |formats| release < formats.on_objects);
}

/// Replaces the bounds of integers by those with which a server of this release compares integers: before there were
/// ranges, it truncated them. A validator of a [release](crate::Schema::with_release) knows this; a proof does not.
pub fn truncate_bounds_of_integers(schema: &mut Value, release: KubernetesRelease) {
    if release < older_releases::NUMBER_RANGES {
        change_each(schema, &mut truncate_bounds_of_integer);
    }
}

fn truncate_bounds_of_integer(keywords: &mut Map<String, Value>) {
    /// In place of the lowest integer, whose shortest form as a float is out of the range of integers.
    const LOWEST: i64 = i64::MIN + 1024;
    if keywords.get("type").and_then(Value::as_str) != Some("integer") {
        return;
    }
    for keyword in ["minimum", "maximum", "multipleOf"] {
        let bound = keywords.get_mut(keyword);
        if let Some(bound) = bound.filter(|bound| bound.as_i64().is_none())
            && let Some(number) = bound.as_f64()
        {
            *bound = number::to_int(number).max(LOWEST).into();
        }
    }
}

/// Removes the formats that a server of this release ignores on defaults.
pub(crate) fn drop_formats_ignored_on_defaults(schema: &mut Value, release: KubernetesRelease) {
    drop_formats(schema, |formats| release < formats.on_defaults);
}

fn drop_formats(schema: &mut Value, is_ignored: impl Fn(&LateFormats) -> bool) {
    let ignored: Vec<&LateFormats> = LATE_FORMATS.iter().filter(|formats| is_ignored(formats)).collect();
    if ignored.is_empty() {
        return;
    }
    change_each(schema, &mut |keywords| {
        let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str).unwrap_or_default();
        let (ty, format) = (text("type"), text("format").replace('-', ""));
        let is_it = |formats: &&LateFormats| formats.types.contains(&ty) && formats.names.contains(&format.as_str());
        if ignored.iter().any(is_it) {
            keywords.shift_remove("format");
        }
    });
}

/// Removes the keywords that only document the values.
pub(crate) fn drop_documentation(schema: &mut Value) {
    change_each(schema, &mut |keywords| {
        keywords.shift_remove("externalDocs");
        keywords.shift_remove("example");
    });
}

/// Changes a schema and every schema inside it.
fn change_each(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Some(keywords) = schema.as_object_mut() else { return };
    change(keywords);
    for keyword in ["items", "additionalProperties", "not"] {
        keywords.get_mut(keyword).into_iter().for_each(|below| change_each(below, change));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let branches = keywords.get_mut(keyword).and_then(Value::as_array_mut);
        branches.into_iter().flatten().for_each(|below| change_each(below, change));
    }
    let fields = keywords.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().flat_map(|fields| fields.values_mut()).for_each(|below| change_each(below, change));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bounds_of_integers_are_truncated_until_the_release_that_refuses_fractions() {
        let integer = json!({"type": "integer", "minimum": 0.5, "maximum": 1e19, "multipleOf": 2});
        let number = json!({"type": "number", "minimum": 0.5});
        let enforced = |schema: &Value, minor| {
            let mut schema = schema.clone();
            truncate_bounds_of_integers(&mut schema, KubernetesRelease::minor(minor));
            schema
        };
        // Out of the range of integers, the conversion of the server gives the lowest one.
        let truncated = json!({"type": "integer", "minimum": 0, "maximum": i64::MIN + 1024, "multipleOf": 2});
        assert_eq!([35, 36].map(|minor| enforced(&integer, minor)), [truncated, integer.clone()]);
        assert_eq!([35, 36].map(|minor| enforced(&number, minor)), [number.clone(), number.clone()]);
    }

    #[test]
    fn formats_are_ignored_until_the_release_that_enforces_them() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "format": "k8s-short-name"},
            "mail": {"type": "string", "format": "email"},
            "ports": {"type": "array", "items": {"anyOf": [{"type": "integer", "format": "int32"}]}},
            "format": {"type": "number", "format": "int32"},
        }});
        let kept = |minor| {
            let mut schema = schema.clone();
            drop_ignored_formats(&mut schema, KubernetesRelease::minor(minor));
            let fields = &schema["properties"];
            let named = [&fields["name"], &fields["mail"], &fields["ports"]["items"]["anyOf"][0], &fields["format"]];
            named.map(|node| node.get("format").is_some())
        };
        assert_eq!(kept(34), [false, true, false, true]);
        assert_eq!(kept(35), [true, true, false, true]);
        assert_eq!(kept(36), [true; 4]);
    }
}
