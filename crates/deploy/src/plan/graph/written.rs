//! The order that annotations and bindings of the configuration ask for.
//!
//! Sources: "Apply ordering" in kapp's documentation (`kapp.k14s.io/change-group`, `kapp.k14s.io/change-rule`, each
//! also with a suffix `.x`), and `config.kubernetes.io/depends-on` of cli-utils. `gantry.dev/change-group` and
//! `gantry.dev/change-rule` mean the same as kapp's.

use std::collections::BTreeSet;

use serde_json::Value;

use super::bindings::{GROUP_BINDINGS, OrderBindings, RULE_BINDINGS};
use super::rule::{
    BY_KIND, OrderGroup, OrderRule, OrderRulePattern, OrderRuleSource, OrderSide, Placeholders, RuleOperation,
};
use gantry_core::matcher::{self, MatchableObject};
use gantry_core::resource::ObjectRef;

const PREFIXES: [&str; 2] = ["kapp.k14s.io/", "gantry.dev/"];
const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";
/// Each annotation that is read here contains one of these; few other texts do.
pub const MARKS: [&str; 3] = ["change-group", "change-rule", "depends-on"];
/// The groups and rules of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ordering {
    pub groups: BTreeSet<OrderGroup>,
    pub rules: Vec<OrderRule>,
    /// The default order does not apply to it.
    pub is_free: bool,
}

/// A group or rule that cannot be read, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct OrderRuleError {
    pub source: OrderRuleSource,
    pub message: String,
}

/// Reads the annotations of an object in this namespace.
pub fn read(object: &ObjectRef, namespace: &str, manifest: &Value) -> (Ordering, Vec<OrderRuleError>) {
    let (mut ordering, mut unreadable) = (Ordering::default(), Vec::new());
    let values = Placeholders { object, namespace, manifest };
    for (key, value) in manifest["metadata"]["annotations"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let read = match Family::from_annotation(key) {
            Some(Family::Group) => values.group(text).map(|group| ordering.groups.extend([group])),
            Some(Family::Rule) => OrderRulePattern::parse(text)
                .and_then(|pattern| pattern.rule(&values, OrderRuleSource::Annotation(key.clone()), false))
                .map(|rule| ordering.rules.push(rule)),
            Some(Family::DependsOn) => depends_on(text, key).map(|rules| ordering.rules.extend(rules)),
            Some(Family::Free) if text.is_empty() => {
                ordering.is_free = true;
                Ok(())
            }
            Some(Family::Free) => Err("it must be empty".to_owned()),
            None => continue,
        };
        unreadable.extend(
            read.err().map(|message| OrderRuleError { source: OrderRuleSource::Annotation(key.clone()), message }),
        );
    }
    if !ordering.is_free {
        ordering.groups.extend(by_kind(&values));
    }
    (ordering, unreadable)
}

/// Adds the groups and rules that bindings of the configuration define for an object in this namespace.
pub fn bind(
    bindings: &OrderBindings,
    facts: &MatchableObject<'_>,
    (object, namespace, manifest): (&ObjectRef, &str, &Value),
    ordering: &mut Ordering,
) -> Vec<OrderRuleError> {
    let values = Placeholders { object, namespace, manifest };
    let mut unreadable = Vec::new();
    for binding in &bindings.groups {
        if matcher::any_matches(&binding.matchers, facts) == Some(true) {
            match values.group(&binding.name) {
                Ok(group) => drop(ordering.groups.insert(group)),
                Err(message) => unreadable.push(OrderRuleError {
                    source: OrderRuleSource::Binding(GROUP_BINDINGS, binding.at.clone()),
                    message,
                }),
            }
        }
    }
    for binding in &bindings.rules {
        if matcher::any_matches(&binding.matchers, facts) == Some(true) {
            for (pattern, at) in &binding.rules {
                let source = OrderRuleSource::Binding(RULE_BINDINGS, at.clone());
                match pattern.rule(&values, source.clone(), binding.ignore_if_cyclical) {
                    Ok(rule) => ordering.rules.push(rule),
                    Err(message) => unreadable.push(OrderRuleError { source, message }),
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
    fn from_annotation(key: &str) -> Option<Family> {
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

/// An object is written after those that it depends on, and deleted before them.
fn depends_on(text: &str, key: &str) -> Result<Vec<OrderRule>, String> {
    let mut rules = Vec::new();
    for reference in text.split(',') {
        let parts: Vec<&str> = reference.trim().split('/').collect();
        let group = match parts[..] {
            [group, "namespaces", namespace, kind, name] if ![namespace, kind, name].contains(&"") => {
                OrderGroup::Object(group.into(), kind.into(), Some(namespace.into()), name.into())
            }
            [group, kind, name] if ![kind, name].contains(&"") => {
                OrderGroup::Object(group.into(), kind.into(), None, name.into())
            }
            _ => {
                return Err(
                    "an object is written as GROUP/namespaces/NAMESPACE/KIND/NAME or GROUP/KIND/NAME, with an \
                            empty GROUP for core kinds; several are separated by commas"
                        .to_owned(),
                );
            }
        };
        for (operation, side) in [(RuleOperation::Upsert, OrderSide::After), (RuleOperation::Delete, OrderSide::Before)]
        {
            let group = group.clone();
            let source = OrderRuleSource::Annotation(key.to_owned());
            rules.push(OrderRule { operation, side, other: operation, group, source, is_optional: false });
        }
    }
    Ok(rules)
}

/// The annotation of a Secret that names its ServiceAccount.
const SERVICE_ACCOUNT: &str = "kubernetes.io/service-account.name";

/// The groups to which kapp's default configuration adds an object.
fn by_kind(values: &Placeholders<'_>) -> Vec<OrderGroup> {
    let object = values.object;
    let names: &[&str] = match (object.group(), object.kind.as_str()) {
        _ if object.is_crd() => &["crds", "crds-{crd-group}-{crd-kind}"],
        _ if object.is_namespace() => &["namespaces", "namespaces-{name}"],
        ("storage.k8s.io", "StorageClass") => &["storage-class"],
        ("", "PersistentVolume" | "PersistentVolumeClaim") => &["storage"],
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => &["rbac", "rbac-roles"],
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => &["rbac", "rbac-role-bindings"],
        ("", "ServiceAccount") => &["pod-related", "serviceaccount"],
        ("", "Secret") if values.manifest["metadata"]["annotations"].get(SERVICE_ACCOUNT).is_some() => {
            &["pod-related", "secret-associated-with-sa"]
        }
        ("", "ConfigMap" | "Secret" | "LimitRange" | "ResourceQuota")
        | ("networking.k8s.io", "NetworkPolicy")
        | ("policy", "PodDisruptionBudget")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("node.k8s.io", "RuntimeClass") => &["pod-related"],
        // Each under its older name, too.
        ("kappctrl.k14s.io", "App") => &["kapp-controller-app", "appcr"],
        ("packaging.carvel.dev", "PackageInstall") => &["kapp-controller-packageinstall", "packageinstall"],
        _ => &[],
    };
    // A CRD without a group or kind is refused elsewhere.
    names.iter().filter_map(|name| values.group(&format!("{BY_KIND}{name}")).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_annotations(api_version: &str, kind: &str, manifest: Value) -> (Ordering, Vec<OrderRuleError>) {
        let object = ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: Some("prod".into()),
            name: "web".into(),
        };
        read(&object, "prod", &manifest)
    }

    fn annotated(annotations: Value) -> (Ordering, Vec<OrderRuleError>) {
        read_annotations("apps/v1", "Deployment", json!({"metadata": {"annotations": annotations}}))
    }

    fn named(name: &str) -> OrderGroup {
        OrderGroup::Named(name.to_owned())
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
        let rule = |operation, side, name, key: &str| OrderRule {
            operation,
            side,
            other: operation,
            group: named(name),
            source: OrderRuleSource::Annotation(key.to_owned()),
            is_optional: false,
        };
        let expected = [
            rule(RuleOperation::Upsert, OrderSide::After, "example.com/web", "kapp.k14s.io/change-rule.a"),
            rule(RuleOperation::Delete, OrderSide::Before, "x", "gantry.dev/change-rule"),
        ];
        assert_eq!(ordering.rules, expected);
    }

    #[test]
    fn kapps_groups_by_kind_have_their_older_and_newer_names() {
        let groups = |api_version: &str, kind: &str, annotations: Value| {
            read_annotations(api_version, kind, json!({"metadata": {"annotations": annotations}})).0.groups
        };
        let expected = |names: &[&str]| names.iter().map(|name| named(&format!("{BY_KIND}{name}"))).collect();
        let app = groups("kappctrl.k14s.io/v1alpha1", "App", json!({}));
        assert_eq!(app, expected(&["kapp-controller-app", "appcr"]));
        let install = groups("packaging.carvel.dev/v1alpha1", "PackageInstall", json!({}));
        assert_eq!(install, expected(&["kapp-controller-packageinstall", "packageinstall"]));
        let of_account = groups("v1", "Secret", json!({"kubernetes.io/service-account.name": "a"}));
        assert_eq!(of_account, expected(&["pod-related", "secret-associated-with-sa"]));
        assert_eq!(groups("v1", "Secret", json!({})), expected(&["pod-related"]));
    }

    #[test]
    fn an_invalid_order_annotation_is_named() {
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
            ("disable-default-change-group-and-rules", "x", "it must be empty"),
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
    fn the_depends_on_annotation_names_objects() {
        let value = "/namespaces/prod/ConfigMap/settings, rbac.authorization.k8s.io/ClusterRole/reader";
        let (ordering, unreadable) = annotated(json!({DEPENDS_ON: value}));
        assert_eq!(unreadable, []);
        let groups: BTreeSet<String> = ordering.rules.iter().map(|rule| rule.group.to_string()).collect();
        assert_eq!(
            groups,
            ["clusterrole.rbac.authorization.k8s.io/reader", "configmap/settings -n prod"].map(str::to_owned).into()
        );
        let sides: Vec<_> = ordering.rules.iter().map(|rule| (rule.operation, rule.side, rule.other)).collect();
        let (upsert, delete) = (RuleOperation::Upsert, RuleOperation::Delete);
        assert_eq!(sides[..2], [(upsert, OrderSide::After, upsert), (delete, OrderSide::Before, delete)]);
    }

    #[test]
    fn kinds_are_in_the_groups_of_kapp() {
        let groups = |api_version, kind, manifest| -> Vec<String> {
            let (ordering, _) = read_annotations(api_version, kind, manifest);
            let name =
                |group: OrderGroup| group.to_string().replace("the change group change-groups.kapp.k14s.io/", "");
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
