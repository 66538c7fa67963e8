//! Versioned objects: each new content is a new object, `NAME-ver-N`, and references to NAME become references to it.
//!
//! A workload does not restart when a ConfigMap that it reads changes, but it does when it refers to another one.
//! Source: "Versioned resources" in kapp's documentation. A digest of the manifest, stored in an annotation, tells
//! whether the content is new.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::PART_OF;
use super::members::AppObject;
use gantry_core::manifest::{Manifest, Spans};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{ObjectRef, RawObject, Step};

/// kapp's annotation: each change of the object makes a new object, whose name ends with a number.
pub const VERSIONED: &str = "kapp.k14s.io/versioned";
const KEEP_ORIGINAL: &str = "kapp.k14s.io/versioned-keep-original";
const HOW_MANY: &str = "kapp.k14s.io/num-versions";
const EXPLICIT: &str = "kapp.k14s.io/versioned-explicit-ref";
/// The digest of the manifest that became this version.
const DIGEST: &str = "gantry.dev/versioned-digest";

/// How many versions stay by default.
const KEPT: u64 = 5;

/// A group, a kind, a namespace and a name.
pub(crate) type MemberIdentity = (String, String, Option<String>, String);

/// What an object of the app was before it had versions: `config-ver-7` was `config`, at 7.
pub fn base(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once("-ver-")?;
    // No real version number has more digits.
    let is_plain = !number.starts_with('0') && number.len() < 10 && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((base, number.parse().ok().filter(|_| is_plain)?))
}

/// Whether a manifest is versioned: each new content is a new object.
pub fn is_versioned(manifest: &Manifest) -> bool {
    manifest.bundle.is_none()
        && manifest.metadata_may_contain(&[VERSIONED])
        && annotation(&manifest.raw.value(), VERSIONED).is_some()
}

/// The result of [`number`].
#[derive(Debug, Default)]
pub struct NumberedVersions {
    /// The older versions that stay members of the app.
    pub older: BTreeSet<MemberIdentity>,
    /// References that keep the name without a number.
    pub notices: Vec<Problem>,
}

/// Gives versioned manifests the names of their versions, and updates the references to them. `namespace` is that of
/// manifests without one.
///
/// # Errors
/// Annotations that cannot be read, and kinds that cannot have versions.
pub fn number(manifests: &mut Vec<Manifest>, found: &[&AppObject], namespace: &str) -> Result<NumberedVersions> {
    let versioned: BTreeSet<usize> = (0..manifests.len()).filter(|index| is_versioned(&manifests[*index])).collect();
    if versioned.is_empty() {
        return Ok(NumberedVersions::default());
    }
    let mut numbering = Numbering { found, namespace, names: BTreeMap::new(), kept: BTreeSet::new() };
    let mut originals = Vec::new();
    let mut numbered = BTreeSet::new();
    let mut problems = Vec::new();
    // Kinds that Pods can refer to come first: other manifests can contain Pods.
    for is_plain in [true, false] {
        for index in &versioned {
            let manifest = &mut manifests[*index];
            let is_referred_to = REFERRED_TO.contains(&(manifest.object.group(), manifest.object.kind.as_str()));
            if is_referred_to != is_plain {
                continue;
            }
            let original = manifest.clone();
            numbered.insert(*index);
            match numbering.number_manifest(manifest) {
                Ok(()) if annotation(&original.raw.value(), KEEP_ORIGINAL).is_some() => originals.push(original),
                Ok(()) => {}
                Err(problem) => problems.push(problem),
            }
        }
        for (index, manifest) in manifests.iter_mut().enumerate() {
            // An object with a number keeps its content.
            if !numbered.contains(&index) {
                problems.extend(numbering.refer(manifest).err());
            }
        }
    }
    let others = manifests.iter().enumerate().filter(|(index, _)| !versioned.contains(index));
    // What keeps its own name, too, can be referred to by it.
    originals.iter().for_each(|original| drop(numbering.names.remove(&numbering.identity(&original.object))));
    let notices = others.filter_map(|(_, manifest)| numbering.unfollowed(manifest)).collect();
    manifests.extend(originals);
    problems.sort();
    problems.dedup();
    if problems.is_empty() {
        Ok(NumberedVersions { older: numbering.kept, notices })
    } else {
        Err(Error::Usage(problems))
    }
}

/// The kinds that Pods refer to.
const REFERRED_TO: [(&str, &str); 2] = [("", "ConfigMap"), ("", "Secret")];

/// Whether the content of a live object differs from the manifest of the version with its name.
pub(crate) fn is_other(live: &Value, desired: &Value) -> bool {
    annotation(desired, DIGEST).is_some_and(|digest| annotation(live, DIGEST) != Some(digest))
}

struct Numbering<'a> {
    found: &'a [&'a AppObject],
    namespace: &'a str,
    /// The new names, by the original objects.
    names: BTreeMap<MemberIdentity, String>,
    kept: BTreeSet<MemberIdentity>,
}

impl Numbering<'_> {
    fn identity(&self, object: &ObjectRef) -> MemberIdentity {
        let namespace = object.namespace.clone().unwrap_or_else(|| self.namespace.to_owned());
        (object.group().to_owned(), object.kind.clone(), Some(namespace), object.name.clone())
    }

    /// Gives one versioned manifest its name.
    fn number_manifest(&mut self, manifest: &mut Manifest) -> std::result::Result<(), Problem> {
        let object = manifest.object.clone();
        if object.is_crd() || object.is_namespace() {
            let problem =
                at(manifest, VERSIONED, "an object of this kind is identified by its name and cannot have versions");
            return Err(problem.help("remove the annotation"));
        }
        let mut value = manifest.raw.value();
        let kept = match annotation(&value, HOW_MANY) {
            None => KEPT,
            Some(text) => text.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
                at(manifest, HOW_MANY, &format!("{text:?} is not a number of versions")).help("write a number: \"5\"")
            })?,
        };
        let digest = digest(&value);
        let identity = self.identity(&object);
        let versions: BTreeMap<u64, &AppObject> = self
            .found
            .iter()
            .copied()
            .filter(|found| {
                let other = &found.object;
                (other.group(), &other.kind) == (object.group(), &object.kind)
                    && (other.namespace.is_none() || other.namespace == identity.2)
            })
            .filter_map(|found| {
                base(&found.object.name).filter(|(base, _)| *base == object.name).map(|(_, n)| (n, found))
            })
            .collect();
        let number = match versions.last_key_value() {
            Some((number, found)) if found.facts.annotations.get(DIGEST) == Some(&digest) => *number,
            Some((number, _)) => number + 1,
            None => 1,
        };
        for (old, found) in versions {
            if old != number && number - old < kept {
                let ObjectRef { namespace, kind, name, .. } = &*found.object;
                let group = found.object.group().to_owned();
                self.kept.insert((group, kind.clone(), namespace.clone(), name.clone()));
            }
        }
        let name = format!("{}-ver-{number}", object.name);
        value["metadata"]["name"] = name.as_str().into();
        value["metadata"]["annotations"][DIGEST] = digest.into();
        manifest.raw = RawObject::from_value(&value);
        manifest.object = Arc::new(ObjectRef { name: name.clone(), ..(*object).clone() });
        self.names.insert(identity, name);
        Ok(())
    }

    /// Updates the references in a manifest.
    fn refer(&self, manifest: &mut Manifest) -> std::result::Result<(), Problem> {
        // A reference that cannot be read is an error, whatever it names.
        let words: Vec<&str> = self.names.keys().map(|(.., name)| name.as_str()).chain([EXPLICIT]).collect();
        if !manifest.may_contain(&words) {
            return Ok(());
        }
        let namespace = self.identity(&manifest.object).2;
        let name_of = |kind: &str, name: &str| {
            self.names.get(&(String::new(), kind.to_owned(), namespace.clone(), name.to_owned()))
        };
        let mut value = manifest.raw.value();
        let mut is_changed = false;
        let mut rename = |kind: &str, name: &mut Value| {
            if let Some(new) = name.as_str().and_then(|name| name_of(kind, name)) {
                *name = new.as_str().into();
                is_changed = true;
            }
        };
        for place in PODS {
            if let Some(pod) = value.pointer_mut(place).filter(|pod| pod["containers"].is_array()) {
                references_of_pod(pod, &mut rename);
            }
        }
        match (manifest.object.group(), manifest.object.kind.as_str()) {
            ("", "ServiceAccount") => {
                for list in ["imagePullSecrets", "secrets"] {
                    visit_items(&mut value, list, |one| name_in(one, &["name"], |name| rename("Secret", name)));
                }
            }
            ("kappctrl.k14s.io", "App") | ("packaging.carvel.dev", "PackageInstall" | "PackageRepository") => {
                references_by_key(&mut value, &mut rename);
            }
            ("networking.k8s.io", "Ingress") => {
                if let Some(spec) = value.get_mut("spec") {
                    visit_items(spec, "tls", |one| name_in(one, &["secretName"], |name| rename("Secret", name)));
                }
            }
            _ => {}
        }
        is_changed |= self.refer_explicitly(manifest, &mut value)?;
        if is_changed {
            manifest.raw = RawObject::from_value(&value);
        }
        Ok(())
    }

    /// The notice about a reference that was not updated, because gantry does not know the fields of the kind.
    fn unfollowed(&self, manifest: &Manifest) -> Option<Problem> {
        let words: Vec<&str> = self.names.keys().map(|(.., name)| name.as_str()).collect();
        let is_known = REFERRED_TO.contains(&(manifest.object.group(), manifest.object.kind.as_str()));
        if is_known || manifest.bundle.is_some() || !manifest.may_contain(&words) {
            return None;
        }
        let value = manifest.raw.value();
        let annotations = value["metadata"]["annotations"].as_object();
        if annotations.is_some_and(|annotations| annotations.keys().any(|key| key.starts_with(EXPLICIT))) {
            return None;
        }
        let namespace = self.identity(&manifest.object).2;
        let content = value.as_object()?.iter().filter(|(key, _)| !matches!(key.as_str(), "metadata" | "status"));
        let is_referred_to =
            |kind: &str, plain: &str| content.clone().any(|(key, field)| refers(field, about(key), kind, plain));
        let mut names = self.names.iter().filter(|((_, _, of, _), _)| *of == namespace);
        let ((_, kind, _, plain), new) = names.find(|((_, kind, _, plain), _)| is_referred_to(kind, plain))?;
        let kind = kind.to_lowercase();
        let message = format!(
            "{} seems to refer to {kind}/{plain}, which is deployed as {new}: gantry does not know this reference and leaves \
             it as it is",
            manifest.object
        );
        let help =
            format!("keep an object of that name with {KEEP_ORIGINAL}, or remove {VERSIONED} from {kind}/{plain}");
        Some(Problem::new(message).at(manifest.origin.location()).help(help))
    }

    /// Updates the annotations by which an object of any kind refers to a versioned one.
    fn refer_explicitly(&self, manifest: &Manifest, value: &mut Value) -> std::result::Result<bool, Problem> {
        let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
            return Ok(false);
        };
        let mut is_changed = false;
        let is_reference =
            |key: &str| key.strip_prefix(EXPLICIT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        for (key, text) in annotations.iter_mut().filter(|(key, _)| is_reference(key)) {
            let wrong = || at(manifest, key, "not the apiVersion, kind and name of an object in YAML");
            let parsed = gantry_yaml::parse(text.as_str().unwrap_or_default()).ok().flatten().ok_or_else(wrong)?;
            let mut reference = parsed.to_value();
            let of = |key: &str| reference[key].as_str().map(str::to_owned);
            let (Some(api_version), Some(kind), Some(name)) = (of("apiVersion"), of("kind"), of("name")) else {
                return Err(wrong());
            };
            let namespace = of("namespace").or_else(|| manifest.object.namespace.clone());
            let identity = self.identity(&ObjectRef { api_version, kind, namespace, name });
            if let Some(new) = self.names.get(&identity) {
                reference["name"] = new.as_str().into();
                *text = reference.to_string().into();
                is_changed = true;
            }
        }
        Ok(is_changed)
    }
}

/// The paths of Pod specifications in objects: a Pod itself, workloads and objects of the same shape, a CronJob.
const PODS: [&str; 3] = ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];

/// Visits every name of a ConfigMap or a Secret in the specification of a Pod.
///
/// Source: PodSpec in the Kubernetes API reference.
fn references_of_pod(pod: &mut Value, rename: &mut impl FnMut(&str, &mut Value)) {
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        visit_items(pod, containers, |container| {
            visit_items(container, "env", |variable| {
                let Some(from) = variable.get_mut("valueFrom") else { return };
                name_in(from, &["configMapKeyRef", "name"], |name| rename("ConfigMap", name));
                name_in(from, &["secretKeyRef", "name"], |name| rename("Secret", name));
            });
            visit_items(container, "envFrom", |from| {
                name_in(from, &["configMapRef", "name"], |name| rename("ConfigMap", name));
                name_in(from, &["secretRef", "name"], |name| rename("Secret", name));
            });
        });
    }
    visit_items(pod, "volumes", |volume| {
        name_in(volume, &["configMap", "name"], |name| rename("ConfigMap", name));
        name_in(volume, &["secret", "secretName"], |name| rename("Secret", name));
        let Some(projected) = volume.get_mut("projected") else { return };
        visit_items(projected, "sources", |source| {
            name_in(source, &["configMap", "name"], |name| rename("ConfigMap", name));
            name_in(source, &["secret", "name"], |name| rename("Secret", name));
        });
    });
    visit_items(pod, "imagePullSecrets", |one| name_in(one, &["name"], |name| rename("Secret", name)));
}

/// The kind to which a field of kapp-controller's kinds refers: `secretRef`, `kubeconfigSecretRef`, `configMapRef`.
pub(crate) fn referred_kind(key: &str) -> Option<&'static str> {
    match key {
        key if key.ends_with("ecretRef") => Some("Secret"),
        key if key.ends_with("onfigMapRef") => Some("ConfigMap"),
        _ => None,
    }
}

/// The kind that the name of a field is about.
fn about(key: &str) -> Option<&'static str> {
    let key = key.to_lowercase();
    [("secret", "Secret"), ("configmap", "ConfigMap")]
        .into_iter()
        .find(|(word, _)| key.contains(word))
        .map(|(_, kind)| kind)
}

/// Whether a field contains the name of an object, below a field that is about its kind: `secretName: x`,
/// `secretRef: {name: x}`, `{kind: Secret, name: x}`.
fn refers(field: &Value, of: Option<&str>, kind: &str, name: &str) -> bool {
    match field {
        Value::String(text) => of == Some(kind) && text == name,
        Value::Array(items) => items.iter().any(|item| refers(item, of, kind, name)),
        Value::Object(fields) => {
            let own = fields.get("kind").and_then(Value::as_str);
            let is_named = |of: Option<&str>| of == Some(kind) && fields.get("name").is_some_and(|value| value == name);
            is_named(of) || is_named(own) || fields.iter().any(|(key, field)| refers(field, about(key), kind, name))
        }
        _ => false,
    }
}

/// Visits every name of a ConfigMap or a Secret in an object of kapp-controller, wherever it stands.
fn references_by_key(value: &mut Value, rename: &mut impl FnMut(&str, &mut Value)) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if let Some(kind) = referred_kind(key) {
                    name_in(field, &["name"], |name| rename(kind, name));
                }
                references_by_key(field, rename);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| references_by_key(item, rename)),
        _ => {}
    }
}

/// Visits the items of a list, if there is one.
fn visit_items(parent: &mut Value, list: &str, visit: impl FnMut(&mut Value)) {
    let items = parent.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(visit);
}

/// Visits the value at the end of a path, if it exists. Unlike indexing, this adds nothing on the way.
fn name_in(parent: &mut Value, path: &[&str], visit: impl FnOnce(&mut Value)) {
    let end = path.iter().try_fold(parent, |value, key| value.get_mut(key));
    if let Some(name) = end {
        visit(name);
    }
}

fn annotation<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value["metadata"]["annotations"].get(key).map(|text| text.as_str().unwrap_or_default())
}

/// Of everything but the label of the app.
fn digest(value: &Value) -> String {
    let mut value = value.clone();
    if let Some(labels) = value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.shift_remove(PART_OF);
        if labels.is_empty() {
            value["metadata"].as_object_mut().map(|metadata| metadata.shift_remove("labels"));
        }
    }
    let text = sorted(&value).to_string();
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The order of keys does not matter.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted_map: BTreeMap<&String, Value> = map.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(sorted_map.into_iter().map(|(key, value)| (key.clone(), value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn at(manifest: &Manifest, key: &str, message: &str) -> Problem {
    let spans = Spans::parse(&manifest.origin);
    let at = spans.locate(&[Step::from("metadata"), "annotations".into(), key.into()]).location;
    Problem::new(format!("{}: {key}: {message}", manifest.object)).at(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_has_a_plain_number_behind_its_name() {
        assert_eq!(base("config-ver-12"), Some(("config", 12)));
        assert_eq!(base("a-ver-1-ver-2"), Some(("a-ver-1", 2)));
        for other in
            ["config", "config-ver-", "config-ver-01", "config-ver-0", "config-ver-+1", "config-ver-x", "ver-1"]
        {
            assert_eq!(base(other), None, "{other}");
        }
    }

    #[test]
    fn a_digest_says_whether_the_content_is_the_same_in_any_order_and_in_any_app() {
        let of = |labels: Value, data: &str| {
            let data: Value = serde_json::from_str(data).expect("JSON");
            digest(&json!({"metadata": {"name": "a", "labels": labels}, "data": data}))
        };
        let first = of(json!({PART_OF: "one"}), r#"{"a": "1", "b": ["x", "y"]}"#);
        assert_eq!(first, of(json!({PART_OF: "other"}), r#"{"b": ["x", "y"], "a": "1"}"#));
        assert_eq!(first.len(), 32);
        assert_ne!(first, of(json!({PART_OF: "one"}), r#"{"a": "1", "b": ["y", "x"]}"#));
        assert_ne!(first, of(json!({PART_OF: "one", "c": "d"}), r#"{"a": "1", "b": ["x", "y"]}"#));
    }

    #[test]
    fn a_pod_without_references_is_left_as_it_is() {
        let mut pod = json!({"containers": [{"name": "a", "env": [{"name": "A", "value": "config"}]}], "volumes": [{"emptyDir": {}}]});
        let before = pod.clone();
        references_of_pod(&mut pod, &mut |_, name| *name = "other".into());
        assert_eq!(pod, before);
    }
}
