//! Formats that servers of older releases ignore.

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Map, Value};

/// The formats that servers did not always enforce: the types that they are on, their names without dashes, and the first
/// release that enforces them.
///
/// The names are from `supportedVersionedFormats` in apiextensions-apiserver, which come into effect one release after
/// they are introduced. The ranges of numbers are from the validator of kube-openapi that 1.36 uses.
const LATE_FORMATS: [(&[&str], &[&str], KubernetesRelease); 3] = [
    (&["string", ""], &["k8sshortname", "k8slongname"], KubernetesRelease::minor(35)),
    (&["integer"], &["int32", "int64"], KubernetesRelease::minor(36)),
    (&["number"], &["float", "double"], KubernetesRelease::minor(36)),
];

/// Removes the formats that a server of this release ignores from an `openAPIV3Schema`.
pub fn drop_ignored_formats(schema: &mut Value, release: KubernetesRelease) {
    if LATE_FORMATS.iter().any(|(_, _, since)| release < *since) {
        change_each(schema, &mut |keywords| drop_ignored_format(keywords, release));
    }
}

fn drop_ignored_format(keywords: &mut Map<String, Value>, release: KubernetesRelease) {
    let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str).unwrap_or_default();
    let (ty, format) = (text("type"), text("format").replace('-', ""));
    let is_late = |(types, names, since): &(&[&str], &[&str], KubernetesRelease)| {
        release < *since && types.contains(&ty) && names.contains(&format.as_str())
    };
    if LATE_FORMATS.iter().any(is_late) {
        keywords.shift_remove("format");
    }
}

/// Removes the formats that a server of this release ignores in defaults: `k8s-short-name` is enforced there as soon as
/// it exists, which is one release earlier.
pub(crate) fn drop_formats_ignored_in_defaults(schema: &mut Value, release: KubernetesRelease) {
    let introduced = KubernetesRelease::minor(34);
    drop_ignored_formats(schema, if release == introduced { KubernetesRelease::minor(35) } else { release });
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
