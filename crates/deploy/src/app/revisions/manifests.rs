//! The text of a revision: the manifests as a stream of YAML documents, which kubectl and gantry can read, too.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use gantry_core::manifest::Manifest;
use gantry_core::resource::LAST_APPLIED;

/// The annotation of a Secret in a revision that keeps no values.
pub const NOT_KEPT: &str = "gantry.dev/values-not-kept";
/// By this annotation, a deploy does not update the object.
const SKIP: (&str, &str) = ("gantry.dev/update-strategy", "skip");

/// The manifests of a revision, as one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionText(String);

impl RevisionText {
    /// The text of these manifests. Those of kinds (group and kind) that are `namespaced` and name no namespace get
    /// this one, so that the text does not depend on the namespace of a later run. `configs` are the documents that
    /// configure gantry.
    pub fn new(
        manifests: &[Manifest],
        namespaced: &BTreeSet<(String, String)>,
        namespace: &str,
        configs: &[String],
        keeps_values: bool,
    ) -> Self {
        let mut text = String::new();
        for config in configs {
            text.push_str("---\n");
            text.push_str(config.trim_start().trim_start_matches("---").trim());
            text.push('\n');
        }
        for manifest in manifests {
            let object = &*manifest.object;
            let mut value = manifest.raw.value();
            let is_exact = value.to_string() == manifest.raw.json();
            let mut is_changed = false;
            if object.namespace.is_none() && namespaced.contains(&(object.group().to_owned(), object.kind.clone())) {
                value["metadata"]["namespace"] = namespace.into();
                is_changed = true;
            }
            if object.is_secret() && !keeps_values {
                remove_values(&mut value);
                is_changed = true;
            }
            text.push_str("---\n");
            // Numbers that a tree cannot hold exactly stay as they are written.
            match is_exact || is_changed {
                true => text.push_str(&serde_json::to_string_pretty(&value).unwrap_or_else(|_| value.to_string())),
                false => text.push_str(&manifest.raw.json()),
            }
            text.push('\n');
        }
        RevisionText(text)
    }

    /// The documents.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The digest of the text.
    pub fn sum(&self) -> String {
        sum(self.0.as_bytes())
    }
}

pub(super) fn sum(text: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text))
}

/// Leaves only the name of a Secret, and the annotation by which a deploy does not update it.
fn remove_values(secret: &mut Value) {
    let Some(object) = secret.as_object_mut() else { return };
    object.remove("data");
    object.remove("stringData");
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = serde_json::json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(LAST_APPLIED);
        annotations.insert(NOT_KEPT.to_owned(), "true".into());
        annotations.insert(SKIP.0.to_owned(), SKIP.1.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gantry_core::manifest::{self, ManifestSource};

    use super::*;

    fn text(manifests: &str, keeps_values: bool) -> String {
        let read = manifest::read(&Arc::new(ManifestSource::new("m.yaml", manifests.to_owned()))).unwrap();
        let namespaced = [("".to_owned(), "Secret".to_owned()), ("".to_owned(), "ConfigMap".to_owned())].into();
        RevisionText::new(&read.manifests, &namespaced, "prod", &["--- \na: 1\n".to_owned()], keeps_values).0
    }

    #[test]
    fn objects_get_their_namespace_and_configuration_is_kept() {
        let made = text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: '1'}\n", true);
        let expected = "---\na: 1\n---\n{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"ConfigMap\",\n  \"metadata\": {\n    \
                        \"name\": \"a\",\n    \"namespace\": \"prod\"\n  },\n  \"data\": {\n    \"b\": \"1\"\n  }\n}\n";
        assert_eq!(made, expected);
        let elsewhere = text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n", true);
        assert!(elsewhere.contains(r#""namespace": "b""#), "{elsewhere}");
        let of_cluster = text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", true);
        assert!(!of_cluster.contains("prod"), "{of_cluster}");
    }

    #[test]
    fn the_values_of_secrets_are_left_out_wherever_they_are() {
        let secret = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations":
            {"b": "c", "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":\"aHVudGVyMg==\"}"}},
            "type": "x/y", "data": {"p": "aHVudGVyMg=="}, "stringData": {"q": "hunter2"}}"#;
        assert!(text(secret, true).contains("aHVudGVyMg=="));
        let made = text(secret, false);
        assert!(!made.contains("aHVudGVyMg==") && !made.contains("hunter2"), "{made}");
        for kept in [r#""b": "c""#, r#""type": "x/y""#, NOT_KEPT, r#""gantry.dev/update-strategy": "skip""#] {
            assert!(made.contains(kept), "{kept}: {made}");
        }
    }
}
