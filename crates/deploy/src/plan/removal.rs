//! Members of an app that the manifests no longer have: which of them a deploy deletes, and which it releases.
//!
//! An object is deleted only if it has both: the app's label, and its uid in the app's inventory. An object with only
//! one of them is reported and never deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Action, Change, directives};
use crate::app::members::{AppObject, LiveMembers, LiveMetadata};
use crate::app::versions::MemberIdentity;
use crate::app::{App, AppMember, PART_OF, Parent, parts};
use gantry_core::manifest::Manifest;
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Resource};

const DELETE_STRATEGY: &str = "kapp.k14s.io/delete-strategy";
const ORPHAN: &str = "orphan";

/// One object that leaves the app.
#[derive(Debug, Clone)]
pub struct Removal {
    /// Its kind, namespace and name.
    pub object: Arc<ObjectRef>,
    /// Where it is served.
    pub resource: Arc<Resource>,
    /// What is known of the live object.
    pub facts: LiveMetadata,
    /// [`Action::Delete`], or [`Action::Orphan`].
    pub action: Action,
    /// No request is needed: its deletion has begun already, or it is released and does not have our label.
    pub is_done: bool,
}

/// The members that the manifests do not have, by what happens to them.
#[derive(Debug, Default)]
pub struct Removals {
    /// The objects that leave the app, each with what happens to it.
    pub removals: Vec<Removal>,
    /// Members that are kept because they existed before the app.
    pub adopted: Vec<Arc<ObjectRef>>,
    /// Notices about objects with only the label or the uid, and about objects that are kept.
    pub notices: Vec<Problem>,
    /// The number of members in the app's inventory.
    pub members: usize,
}

/// What happens to one object.
#[derive(Debug, PartialEq, Eq)]
enum RemovalDecision {
    Delete,
    /// It is released, for this reason.
    Orphan(String),
    /// It existed before the app.
    Adopted,
    /// It has only the label or the uid, for this reason.
    OneKey(&'static str),
    /// A controller created it and copied the label from its owner.
    Copy,
    /// It has neither the label nor the uid.
    Nothing,
}

/// Decides about the objects of the app that are not in the manifests.
///
/// `older` are versions of versioned objects that stay members.
pub fn decide(
    parent: &Parent,
    live: &LiveMembers,
    changes: &[Change],
    older: &BTreeSet<MemberIdentity>,
    prunes_adopted: bool,
) -> Removals {
    let named: BTreeSet<_> = changes.iter().map(|change| change.desired.object.identity()).collect();
    // Two groups may serve the same object, so the manifests may have it under the other one.
    let uids: BTreeSet<&str> = changes.iter().filter_map(|change| Some(change.live.as_ref()?.uid.as_str())).collect();
    let inventory: BTreeMap<&str, &AppMember> =
        parent.members.iter().map(|member| (member.uid.as_str(), member)).collect();
    let id = parent.app.id();
    let mut removals = Removals { members: parent.members.len(), ..Removals::default() };
    let older: BTreeSet<_> =
        older.iter().map(|(group, kind, namespace, name)| (&**group, &**kind, namespace.as_deref(), &**name)).collect();
    let left = |found: &&AppObject| {
        !older.contains(&found.object.identity())
            && !named.contains(&found.object.identity())
            && !uids.contains(found.facts.uid.as_str())
    };
    for found in live.found.iter().filter(left) {
        let AppObject { object, resource, facts } = found;
        let is_protected = is_protected(object, &parent.app);
        let decision = match decide_removal(facts, &id, inventory.get(facts.uid.as_str()).copied(), prunes_adopted) {
            RemovalDecision::Delete | RemovalDecision::Adopted if is_protected => {
                RemovalDecision::Orphan("gantry never deletes such a namespace or an app's own record".into())
            }
            decision => decision,
        };
        let action = match decision {
            RemovalDecision::Delete => Action::Delete,
            RemovalDecision::Orphan(why) => {
                removals.notices.push(Problem::new(format!("{object} leaves the app and stays in the cluster: {why}")));
                Action::Orphan
            }
            RemovalDecision::Adopted => {
                removals.adopted.push(object.clone());
                continue;
            }
            RemovalDecision::OneKey(why) => {
                let message = format!("{object} is not deleted: {why}");
                let help = format!("something else may use it; look at it: kubectl get {object} -o yaml");
                removals.notices.push(Problem::new(message).help(help));
                continue;
            }
            RemovalDecision::Copy | RemovalDecision::Nothing => continue,
        };
        removals.removals.push(Removal {
            object: object.clone(),
            resource: resource.clone(),
            facts: facts.clone(),
            action,
            is_done: facts.deleted.is_some() || facts.labels.get(PART_OF) != Some(&id),
        });
    }
    removals
}

/// Namespaces that the cluster or the app needs, and the records of apps.
pub fn is_protected(object: &ObjectRef, app: &App) -> bool {
    let name = object.name.as_str();
    let of_cluster = name == "default" || name.starts_with("kube-") || name == app.namespace;
    let is_record = object.identity() == app.parent().identity() || parts::number(app, object).is_some();
    object.is_namespace() && of_cluster || is_record
}

/// `member` is the entry of the uid in the inventory, if there is one.
fn decide_removal(facts: &LiveMetadata, id: &str, member: Option<&AppMember>, prunes_adopted: bool) -> RemovalDecision {
    let label = facts.labels.get(PART_OF);
    let is_ours = label.is_some_and(|label| label == id);
    match (is_ours, member) {
        (false, None) => RemovalDecision::Nothing,
        (false, Some(_)) if label.is_some() => RemovalDecision::Orphan("it is part of another ApplySet now".into()),
        (false, Some(_)) => RemovalDecision::OneKey("it no longer carries the label of the app"),
        (true, None) if !facts.owners.is_empty() => RemovalDecision::Copy,
        (true, None) => {
            RemovalDecision::OneKey("it carries the label of the app, but its uid is not in the record of the app")
        }
        (true, Some(member)) => match why_kept(facts).or_else(|| kept_by_record(member)) {
            Some(why) => RemovalDecision::Orphan(why),
            None if member.adopted && !prunes_adopted => RemovalDecision::Adopted,
            None => RemovalDecision::Delete,
        },
    }
}

/// The annotation by which a manifest keeps its object in the cluster. The record of the app stores it, because
/// somebody may remove it from the live object.
pub fn keep_annotation(manifest: &Manifest) -> Option<&'static str> {
    let asks = || manifest.raw.value()["metadata"]["annotations"][DELETE_STRATEGY] == ORPHAN;
    if manifest.metadata_may_contain(&[DELETE_STRATEGY]) && asks() {
        return Some(DELETE_STRATEGY);
    }
    directives::find_keeping(&directives::of_manifest(manifest)).map(|found| found.directive.key)
}

fn kept_by_record(member: &AppMember) -> Option<String> {
    member.keep.as_ref().map(|key| format!("its last manifest had the annotation {key}"))
}

/// Why the live object stays.
pub fn why_kept(facts: &LiveMetadata) -> Option<String> {
    if let Some(owner) = facts.owners.iter().find(|owner| owner.controller == Some(true)) {
        return Some(format!("{} {} controls it", owner.kind, owner.name));
    }
    if let Some(why) = directives::why_kept(facts) {
        return Some(why);
    }
    let strategy = facts.annotations.get(DELETE_STRATEGY).filter(|strategy| !strategy.is_empty())?;
    if strategy == ORPHAN {
        return Some(format!("its annotation says {DELETE_STRATEGY}: {ORPHAN}"));
    }
    Some(format!("its annotation {DELETE_STRATEGY} has a value that gantry does not know, {strategy:?}"))
}

/// The stage of a deletion. Deletions of one stage run in parallel; all are gone before the next stage begins. Objects
/// that can block other requests come first, then custom resources, while their controllers still run and can finalize
/// them.
pub fn stage(object: &ObjectRef) -> u8 {
    if object.is_namespace() {
        return 5;
    }
    if object.is_crd() {
        return 2;
    }
    match object.group() {
        "admissionregistration.k8s.io" | "apiregistration.k8s.io" => 0,
        group if !super::is_built_in(group) => 1,
        "" if !matches!(object.kind.as_str(), "Pod" | "Service" | "ReplicationController") => 4,
        "" | "apps" | "batch" | "autoscaling" | "policy" | "networking.k8s.io" => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::members::OwnerRef;
    use crate::plan::directives::Meaning;

    const ID: &str = "applyset-x-v1";

    fn facts(label: Option<&str>, annotation: Option<(&str, &str)>, controller: Option<bool>) -> LiveMetadata {
        let owner = |controller| OwnerRef { kind: "Shop".into(), name: "s".into(), uid: "o".into(), controller };
        LiveMetadata {
            uid: "u".into(),
            labels: label.map(|label| (PART_OF.to_owned(), label.to_owned())).into_iter().collect(),
            annotations: annotation.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect(),
            owners: controller.map(|controller| owner(Some(controller))).into_iter().collect(),
            ..LiveMetadata::default()
        }
    }

    fn member(adopted: bool) -> AppMember {
        let object = ObjectRef { api_version: "v1".into(), kind: "Secret".into(), namespace: None, name: "a".into() };
        AppMember::new(&object, "u", adopted)
    }

    #[test]
    fn an_object_stays_if_its_last_manifest_kept_it() {
        let member = AppMember { keep: Some("helm.sh/resource-policy".into()), ..member(false) };
        let decision = |label| decide_removal(&facts(label, None, None), ID, Some(&member), true);
        let why = "its last manifest had the annotation helm.sh/resource-policy";
        assert_eq!(decision(Some(ID)), RemovalDecision::Orphan(why.into()));
        assert!(matches!(decision(None), RemovalDecision::OneKey(_)), "the label is read first");
    }

    #[test]
    fn an_object_is_deleted_only_with_both_keys() {
        let of = |label, adopted: Option<bool>| {
            decide_removal(&facts(label, None, None), ID, adopted.map(member).as_ref(), false)
        };
        assert_eq!(of(Some(ID), Some(false)), RemovalDecision::Delete);
        assert!(matches!(of(Some(ID), None), RemovalDecision::OneKey(_)));
        assert!(matches!(of(None, Some(false)), RemovalDecision::OneKey(_)));
        assert!(matches!(of(Some("applyset-other-v1"), Some(false)), RemovalDecision::Orphan(_)));
        assert_eq!(
            (of(None, None), of(Some("applyset-other-v1"), None)),
            (RemovalDecision::Nothing, RemovalDecision::Nothing)
        );
        assert_eq!(of(Some(ID), Some(true)), RemovalDecision::Adopted);
        assert_eq!(
            decide_removal(&facts(Some(ID), None, None), ID, Some(&member(true)), true),
            RemovalDecision::Delete
        );
    }

    #[test]
    fn each_keep_annotation_is_named_where_it_keeps_an_object() {
        let keeping = directives::DIRECTIVES.iter().flat_map(|directive| {
            let keeps =
                |known: &&directives::DirectiveValue| matches!(known.meaning, Meaning::Keep | Meaning::LeaveAlone);
            let values = directive.values.iter().filter(keeps).flat_map(|known| known.values);
            values.map(|value| (directive.key, *value))
        });
        let keeping: Vec<_> = keeping.chain([(DELETE_STRATEGY, "orphan")]).collect();
        assert!(keeping.len() > 10, "{keeping:?}");
        for (key, value) in keeping {
            let kept =
                |value| decide_removal(&facts(Some(ID), Some((key, value)), None), ID, Some(&member(false)), true);
            assert!(matches!(kept(value), RemovalDecision::Orphan(why) if why.contains(key)), "{key}");
            assert_eq!(kept(""), RemovalDecision::Delete, "{key}");
            // An unknown value may mean that the object is kept.
            let unknown = match key {
                "argocd.argoproj.io/sync-options" => "prune=flase",
                _ => "Orphan-or-so",
            };
            let is_about_removal = !["kustomize.toolkit.fluxcd.io/reconcile", "kustomize.toolkit.fluxcd.io/ssa"]
                .contains(&key)
                && key != "configmanagement.gke.io/managed";
            if is_about_removal {
                assert!(matches!(kept(unknown), RemovalDecision::Orphan(why) if why.contains(unknown)), "{key}");
            }
        }
        let of = |controller, uid: Option<bool>| {
            decide_removal(&facts(Some(ID), None, Some(controller)), ID, uid.map(member).as_ref(), false)
        };
        assert!(matches!(of(true, Some(false)), RemovalDecision::Orphan(why) if why == "Shop s controls it"));
        assert_eq!(of(false, Some(false)), RemovalDecision::Delete, "an owner that does not control it");
        assert_eq!((of(true, None), of(false, None)), (RemovalDecision::Copy, RemovalDecision::Copy));
    }

    #[test]
    fn namespaces_of_the_cluster_and_records_of_apps_are_protected() {
        let app = App { name: "shop".into(), namespace: "prod".into() };
        let is_protected = |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
            let (api_version, kind, name) = (api_version.into(), kind.into(), name.into());
            super::is_protected(&ObjectRef { api_version, kind, namespace: namespace.map(str::to_owned), name }, &app)
        };
        for (name, expected) in [
            ("default", true),
            ("kube-system", true),
            ("kube-public", true),
            ("kube-node-lease", true),
            ("kube-of-others", true),
            ("prod", true),
            ("kube", false),
            ("my-kube-system", false),
            ("default-2", false),
            ("prod-2", false),
        ] {
            assert_eq!(is_protected("v1", "Namespace", None, name), expected, "{name}");
            assert!(!is_protected("v1", "ConfigMap", Some("prod"), name), "{name}");
            assert!(!is_protected("shop.example.com/v1", "Namespace", Some("prod"), name), "{name}");
        }
        assert!(is_protected("v1", "ConfigMap", Some("prod"), "shop.gantry"));
        for (api_version, kind, namespace, name) in [
            ("v1", "ConfigMap", "other", "shop.gantry"),
            ("v1", "ConfigMap", "prod", "store.gantry"),
            ("v1", "Secret", "prod", "shop.gantry"),
            ("shop.example.com/v1", "ConfigMap", "prod", "shop.gantry"),
        ] {
            assert!(!is_protected(api_version, kind, Some(namespace), name), "{api_version} {kind} {namespace} {name}");
        }
    }

    #[test]
    fn custom_resources_go_before_what_finishes_them() {
        let stage = |api_version: &str, kind: &str| {
            super::stage(&ObjectRef {
                api_version: api_version.into(),
                kind: kind.into(),
                namespace: None,
                name: "x".into(),
            })
        };
        let order = [
            stage("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            stage("shop.example.com/v1", "Shop"),
            stage("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            stage("apps/v1", "Deployment"),
            stage("rbac.authorization.k8s.io/v1", "ClusterRole"),
            stage("v1", "Namespace"),
        ];
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
        assert_eq!((stage("v1", "Service"), stage("v1", "Secret")), (3, 4));
    }
}
