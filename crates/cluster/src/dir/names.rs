//! Names of the files for new objects.
//!
//! Names come from manifests that can be hostile, and file systems differ, so everything except lower-case letters,
//! digits, `-` and `.` is escaped. No name leads out of the folder, and no two objects share a name, even on a
//! case-insensitive file system.

use std::fmt::Write as _;

use gantry_core::hash::fnv128;
use gantry_core::resource::ObjectRef;

/// Many file systems limit names to 255 bytes.
const MAX_STEM_LEN: usize = 200;

/// `deployment.apps_prod_web.yaml`, `namespace_prod.yaml`.
pub(super) fn file_name(object: &ObjectRef) -> String {
    // Underscores separate the parts and are escaped inside them, so two objects never get the same name.
    let mut stem = escaped(&object.kind.to_lowercase(), "-");
    if !object.group().is_empty() {
        stem.push('.');
        stem.push_str(&escaped(object.group(), "-."));
    }
    if let Some(namespace) = &object.namespace {
        stem.push('_');
        stem.push_str(&escaped(namespace, "-."));
    }
    stem.push('_');
    stem.push_str(&escaped(&object.name, "-."));
    if stem.len() > MAX_STEM_LEN {
        let hash = fnv128(stem.as_bytes());
        // The text is ASCII, so every byte is a character boundary.
        stem.truncate(MAX_STEM_LEN - 33);
        let _ = write!(stem, "~{hash:032x}");
    }
    stem.push_str(".yaml");
    stem
}

fn escaped(text: &str, also_plain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || also_plain.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> String {
        file_name(&ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        })
    }

    #[test]
    fn plain_objects_have_plain_names() {
        assert_eq!(named("v1", "Namespace", None, "prod"), "namespace_prod.yaml");
        assert_eq!(named("apps/v1", "Deployment", Some("prod"), "web"), "deployment.apps_prod_web.yaml");
    }

    #[test]
    fn a_hostile_name_stays_in_the_folder() {
        assert_eq!(named("v1", "Secret", Some(".."), "../../etc/x"), "secret_.._..%2f..%2fetc%2fx.yaml");
        assert_eq!(named("../g/v1", "../../x", None, "a\0b\\c:d"), "%2e%2e%2f%2e%2e%2fx..._a%00b%5cc%3ad.yaml");
    }

    #[test]
    fn different_objects_have_different_names_even_without_upper_case() {
        let names = [
            named("v1", "Role", None, "system:a"),
            named("v1", "Role", None, "System:a"),
            named("v1", "Role", None, "system_a"),
            named("v1", "Role", Some("system"), "a"),
            named("v1", "Role", None, &"a".repeat(250)),
            named("v1", "Role", None, &"a".repeat(251)),
        ];
        for (index, name) in names.iter().enumerate() {
            assert!(name.len() < 255);
            assert!(names[..index].iter().all(|other| other.to_lowercase() != name.to_lowercase()), "{name}");
        }
    }
}
