//! The order that annotations and bindings of the configuration ask for.
//!
//! Sources: "Apply ordering" in kapp's documentation (`kapp.k14s.io/change-group`, `kapp.k14s.io/change-rule`, each also with a
//! suffix `.x`), and `config.kubernetes.io/depends-on` of cli-utils. `gantry.dev/change-group` and `gantry.dev/change-rule` mean
//! the same as kapp's.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::bindings::{Bindings, GROUP_BINDINGS, Pattern, RULE_BINDINGS, group_name, unknown};
use crate::matcher::{self, Facts};
use crate::problem::Location;
use crate::resource::ObjectRef;

const PREFIXES: [&str; 2] = ["kapp.k14s.io/", "gantry.dev/"];
const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";
/// One of these is in every annotation that is read here, and in few other texts.
pub const MARKS: [&str; 3] = ["change-group", "change-rule", "depends-on"];
/// The groups to which kapp adds objects by their kind.
const BY_KIND: &str = "change-groups.kapp.k14s.io/";

/// What a deploy does to an object, as rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It is created or updated.
    Upsert,
    Delete,
}

/// On which side of the others a rule puts its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Before,
    After,
}

/// A set of objects that a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Named(String),
    /// One object: group, kind, namespace and name.
    Object(String, String, Option<String>, String),
}

impl Group {
    pub fn of(object: &ObjectRef) -> Group {
        let (group, kind, namespace, name) = object.identity();
        Group::Object(group.into(), kind.into(), namespace.map(Into::into), name.into())
    }

    /// Whether kapp decides by the kind of an object if it is in the group.
    pub fn is_by_kind(&self) -> bool {
        matches!(self, Group::Named(name) if name.starts_with(BY_KIND))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::Named(name) => write!(f, "the change group {name}"),
            Group::Object(group, kind, namespace, name) => {
                write!(f, "{}", kind.to_lowercase())?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                write!(f, "/{name}")?;
                namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " -n {namespace}"))
            }
        }
    }
}

/// `upsert after upserting GROUP`: the object's own operation, the side, and the operation on the members of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub operation: Operation,
    pub side: Side,
    pub other: Operation,
    pub group: Group,
    pub source: Source,
    /// It does not count where it would close a cycle.
    pub is_optional: bool,
}

/// Where a group or a rule is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    #[default]
    Nowhere,
    /// In the annotation of this key.
    Annotation(String),
    /// In the configuration: the key of the list, and where the entry is.
    Binding(&'static str, Option<Location>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Nowhere => Ok(()),
            Source::Annotation(key) => f.write_str(key),
            Source::Binding(key, _) => f.write_str(key),
        }
    }
}

/// What the annotations of one object say about its place in the order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ordering {
    pub groups: BTreeSet<Group>,
    pub rules: Vec<Rule>,
    /// The default order does not apply to it.
    pub is_free: bool,
}

/// What cannot be read: where it is, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub source: Source,
    pub message: String,
}

/// Reads the annotations of an object in this namespace.
pub fn read(object: &ObjectRef, namespace: &str, manifest: &Value) -> (Ordering, Vec<Unreadable>) {
    let (mut ordering, mut unreadable) = (Ordering::default(), Vec::new());
    let values = Placeholders { object, namespace, manifest };
    for (key, value) in manifest["metadata"]["annotations"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let read = match Family::of(key) {
            Some(Family::Group) => values.group(text).map(|group| ordering.groups.extend([group])),
            Some(Family::Rule) => Pattern::parse(text)
                .and_then(|pattern| pattern.rule(&values, Source::Annotation(key.clone()), false))
                .map(|rule| ordering.rules.push(rule)),
            Some(Family::DependsOn) => depends_on(text, key).map(|rules| ordering.rules.extend(rules)),
            Some(Family::Free) if text.is_empty() => {
                ordering.is_free = true;
                Ok(())
            }
            Some(Family::Free) => Err("it has to be empty".to_owned()),
            None => continue,
        };
        unreadable.extend(read.err().map(|message| Unreadable { source: Source::Annotation(key.clone()), message }));
    }
    if !ordering.is_free {
        ordering.groups.extend(by_kind(&values));
    }
    (ordering, unreadable)
}

/// Adds what bindings of the configuration say of an object in this namespace, as far as it is known what they are about.
pub fn bind(
    bindings: &Bindings,
    facts: &Facts<'_>,
    (object, namespace, manifest): (&ObjectRef, &str, &Value),
    ordering: &mut Ordering,
) -> Vec<Unreadable> {
    let values = Placeholders { object, namespace, manifest };
    let mut unreadable = Vec::new();
    for binding in &bindings.groups {
        if matcher::any(&binding.matchers, facts) == Some(true) {
            match values.group(&binding.name) {
                Ok(group) => drop(ordering.groups.insert(group)),
                Err(message) => {
                    unreadable.push(Unreadable { source: Source::Binding(GROUP_BINDINGS, binding.at.clone()), message })
                }
            }
        }
    }
    for binding in &bindings.rules {
        if matcher::any(&binding.matchers, facts) == Some(true) {
            for (pattern, at) in &binding.rules {
                let source = Source::Binding(RULE_BINDINGS, at.clone());
                match pattern.rule(&values, source.clone(), binding.ignore_if_cyclical) {
                    Ok(rule) => ordering.rules.push(rule),
                    Err(message) => unreadable.push(Unreadable { source, message }),
                }
            }
        }
    }
    unreadable
}

enum Family {
    Group,
    Rule,
    DependsOn,
    Free,
}

impl Family {
    fn of(key: &str) -> Option<Family> {
        if key == DEPENDS_ON {
            return Some(Family::DependsOn);
        }
        let name = PREFIXES.iter().find_map(|prefix| key.strip_prefix(prefix))?;
        if name == "disable-default-change-group-and-rules" {
            return Some(Family::Free);
        }
        match name.split_once('.').map_or(name, |(family, _)| family) {
            "change-group" => Some(Family::Group),
            "change-rule" => Some(Family::Rule),
            _ => None,
        }
    }
}

/// What stands for a `{placeholder}` in the name of a group.
pub struct Placeholders<'a> {
    object: &'a ObjectRef,
    namespace: &'a str,
    manifest: &'a Value,
}

impl Placeholders<'_> {
    fn value(&self, placeholder: &str) -> Result<&str, String> {
        let of_crd = |pointer: &str| match self.object.is_crd() {
            true => self.manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default(),
            false => "",
        };
        let value = match placeholder {
            "api-group" => self.object.group(),
            "kind" => &self.object.kind,
            "name" => &self.object.name,
            "namespace" => self.namespace,
            "crd-group" => of_crd("/spec/group"),
            "crd-kind" => of_crd("/spec/names/kind"),
            _ => return Err(unknown(placeholder)),
        };
        if value.is_empty() { Err(format!("{{{placeholder}}} has no value for this object")) } else { Ok(value) }
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Result<Group, String> {
        group_name(name, |placeholder| self.value(placeholder)).map(Group::Named)
    }
}

/// An object is written after those that it depends on, and deleted before them.
fn depends_on(text: &str, key: &str) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for reference in text.split(',') {
        let parts: Vec<&str> = reference.trim().split('/').collect();
        let group = match parts[..] {
            [group, "namespaces", namespace, kind, name] if ![namespace, kind, name].contains(&"") => {
                Group::Object(group.into(), kind.into(), Some(namespace.into()), name.into())
            }
            [group, kind, name] if ![kind, name].contains(&"") => {
                Group::Object(group.into(), kind.into(), None, name.into())
            }
            _ => {
                return Err(
                    "an object is written as GROUP/namespaces/NAMESPACE/KIND/NAME or GROUP/KIND/NAME, with an \
                            empty GROUP for core kinds; several are separated by commas"
                        .to_owned(),
                );
            }
        };
        for (operation, side) in [(Operation::Upsert, Side::After), (Operation::Delete, Side::Before)] {
            let group = group.clone();
            let source = Source::Annotation(key.to_owned());
            rules.push(Rule { operation, side, other: operation, group, source, is_optional: false });
        }
    }
    Ok(rules)
}

/// The groups to which kapp's default configuration adds an object.
fn by_kind(values: &Placeholders<'_>) -> Vec<Group> {
    let object = values.object;
    let names: &[&str] = match (object.group(), object.kind.as_str()) {
        _ if object.is_crd() => &["crds", "crds-{crd-group}-{crd-kind}"],
        _ if object.is_namespace() => &["namespaces", "namespaces-{name}"],
        ("storage.k8s.io", "StorageClass") => &["storage-class"],
        ("", "PersistentVolume" | "PersistentVolumeClaim") => &["storage"],
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => &["rbac", "rbac-roles"],
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => &["rbac", "rbac-role-bindings"],
        ("", "ServiceAccount") => &["pod-related", "serviceaccount"],
        ("", "ConfigMap" | "Secret" | "LimitRange" | "ResourceQuota")
        | ("networking.k8s.io", "NetworkPolicy")
        | ("policy", "PodDisruptionBudget")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("node.k8s.io", "RuntimeClass") => &["pod-related"],
        ("kappctrl.k14s.io", "App") => &["appcr"],
        ("packaging.carvel.dev", "PackageInstall") => &["packageinstall"],
        _ => &[],
    };
    // A CRD without a group or kind is refused elsewhere.
    names.iter().filter_map(|name| values.group(&format!("{BY_KIND}{name}")).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(api_version: &str, kind: &str, manifest: Value) -> (Ordering, Vec<Unreadable>) {
        let object = ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: Some("prod".into()),
            name: "web".into(),
        };
        read(&object, "prod", &manifest)
    }

    fn annotated(annotations: Value) -> (Ordering, Vec<Unreadable>) {
        of("apps/v1", "Deployment", json!({"metadata": {"annotations": annotations}}))
    }

    fn named(name: &str) -> Group {
        Group::Named(name.to_owned())
    }

    #[test]
    fn groups_and_rules_are_read_with_and_without_a_suffix() {
        let (ordering, unreadable) = annotated(json!({
            "kapp.k14s.io/change-group": "example.com/db",
            "kapp.k14s.io/change-group.two": "plain",
            "gantry.dev/change-group.three": "of-{kind}-{name}.{namespace}.{api-group}",
            "kapp.k14s.io/change-rule.a": "upsert after upserting example.com/{name}",
            "gantry.dev/change-rule": "delete  before deleting x",
            "kapp.k14s.io/change-groups": "other",
            "example.com/change-group": "other",
        }));
        assert_eq!(unreadable, []);
        assert_eq!(ordering.groups, ["example.com/db", "plain", "of-Deployment-web.prod.apps"].map(named).into());
        let rule = |operation, side, name, key: &str| Rule {
            operation,
            side,
            other: operation,
            group: named(name),
            source: Source::Annotation(key.to_owned()),
            is_optional: false,
        };
        let expected = [
            rule(Operation::Upsert, Side::After, "example.com/web", "kapp.k14s.io/change-rule.a"),
            rule(Operation::Delete, Side::Before, "x", "gantry.dev/change-rule"),
        ];
        assert_eq!(ordering.rules, expected);
    }

    #[test]
    fn what_cannot_be_read_names_its_annotation() {
        let wrong = [
            ("change-rule", "upsert after upserting", "a rule is like"),
            ("change-rule", "update after upserting x", "first word is upsert or delete"),
            ("change-rule", "upsert behind upserting x", "second word is before or after"),
            ("change-rule", "upsert after deletion x", "third word is upserting or deleting"),
            ("change-rule", "upsert after upserting {crd-kind}", "{crd-kind} has no value for this object"),
            ("change-group", "a-{uid}", "unknown placeholder {uid}"),
            ("change-group", "", "is like apps.example.com/database"),
            ("change-group", "a/b/c", "is like apps.example.com/database"),
            ("change-group", "_", "is like apps.example.com/database"),
            ("change-group", "/x", "is like apps.example.com/database"),
            ("change-group", "a{name", "is like apps.example.com/database"),
            ("disable-default-change-group-and-rules", "x", "it has to be empty"),
        ];
        for (name, value, message) in wrong {
            let key = format!("kapp.k14s.io/{name}");
            let (ordering, unreadable) = annotated(json!({ &key: value }));
            assert!(ordering.rules.is_empty() && ordering.groups.is_empty(), "{name}: {value}");
            assert_eq!(unreadable.len(), 1, "{name}: {value}");
            assert_eq!(unreadable[0].source.to_string(), key);
            assert!(unreadable[0].message.contains(message), "{name}: {value}: {}", unreadable[0].message);
        }
        for value in ["", "v1/Pod", "/namespaces//Pod/a", "a/b/c/d", "/Pod/a,"] {
            let (_, unreadable) = annotated(json!({DEPENDS_ON: value}));
            assert_eq!(unreadable.len(), 1, "{value}");
        }
    }

    #[test]
    fn depends_on_names_objects() {
        let value = "/namespaces/prod/ConfigMap/settings, rbac.authorization.k8s.io/ClusterRole/reader";
        let (ordering, unreadable) = annotated(json!({DEPENDS_ON: value}));
        assert_eq!(unreadable, []);
        let groups: BTreeSet<String> = ordering.rules.iter().map(|rule| rule.group.to_string()).collect();
        assert_eq!(
            groups,
            ["clusterrole.rbac.authorization.k8s.io/reader", "configmap/settings -n prod"].map(str::to_owned).into()
        );
        let sides: Vec<_> = ordering.rules.iter().map(|rule| (rule.operation, rule.side, rule.other)).collect();
        let (upsert, delete) = (Operation::Upsert, Operation::Delete);
        assert_eq!(sides[..2], [(upsert, Side::After, upsert), (delete, Side::Before, delete)]);
    }

    #[test]
    fn kinds_are_in_the_groups_of_kapp() {
        let groups = |api_version, kind, manifest| -> Vec<String> {
            let (ordering, _) = of(api_version, kind, manifest);
            let name = |group: Group| group.to_string().replace("the change group change-groups.kapp.k14s.io/", "");
            ordering.groups.into_iter().map(name).collect()
        };
        let crd = json!({"spec": {"group": "example.com", "names": {"kind": "Shop"}}});
        let v1 = "apiextensions.k8s.io/v1";
        assert_eq!(groups(v1, "CustomResourceDefinition", crd), ["crds", "crds-example.com-Shop"]);
        assert_eq!(groups(v1, "CustomResourceDefinition", json!({})), ["crds"]);
        assert_eq!(groups("v1", "Namespace", json!({})), ["namespaces", "namespaces-web"]);
        assert_eq!(groups("rbac.authorization.k8s.io/v1", "Role", json!({})), ["rbac", "rbac-roles"]);
        assert_eq!(groups("example.com/v1", "ConfigMap", json!({})), [""; 0]);
        let free = json!({"metadata": {"annotations": {"kapp.k14s.io/disable-default-change-group-and-rules": ""}}});
        assert_eq!(groups("v1", "ConfigMap", free), [""; 0]);
    }
}
