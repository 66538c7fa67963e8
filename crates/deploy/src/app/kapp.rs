//! Apps of kapp, which a deploy takes over as a whole: their record, their members, and their removal.
//!
//! kapp keeps an app in the ConfigMap `NAME.apps.k14s.io` (`NAME` in old versions) with the label
//! `kapp.k14s.io/is-app`; its `data.spec` is JSON with the label of the members and their kinds. Each change of the app
//! is a separate ConfigMap. A member carries the label and an annotation that names the object itself. An object with
//! the label and a different annotation, or none, is a copy that a controller made (Pods, ReplicaSets, EndpointSlices).

mod claims;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use serde::Deserialize;

use super::config_map::{ConfigMap, not_as_written};
use super::config_maps;
use super::inventory::group_kind;
use super::members::{AppObject, LiveMetadata, read};
use super::unserved::{self, UnservedKinds};
use gantry_cluster::again::{Rewritten, write_again};
use gantry_cluster::{Delete, DeleteError, IN_FLIGHT, ListError, ListRequest, ObjectToRead, Target, Unmark};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, ObjectRef, Resource, is_dns_label};
use gantry_schema::names;

/// The label of the members of an app of kapp.
pub(crate) const KAPP_APP: &str = "kapp.k14s.io/app";
/// What kapp writes into the metadata of a member. The original annotation holds the whole manifest.
pub(crate) const LABELS: [&str; 2] = [KAPP_APP, ASSOCIATION];
pub(crate) const ASSOCIATION: &str = "kapp.k14s.io/association";
pub(crate) const ANNOTATIONS: [&str; 6] = [
    IDENTITY,
    "kapp.k14s.io/original",
    "kapp.k14s.io/original-diff",
    "kapp.k14s.io/original-diff-full",
    "kapp.k14s.io/original-diff-md5",
    "kapp.k14s.io/nonce",
];

const SUFFIX: &str = ".apps.k14s.io";
const IS_APP: &str = "kapp.k14s.io/is-app";
const IS_CHANGE: &str = "kapp.k14s.io/is-app-change";
/// The labels by which a change names its app: the value of the app's label, and in old versions the name of the
/// record.
const CHANGE_OF_LABEL: &str = "kapp.k14s.io/app-change-app-label";
const CHANGE_OF_NAME: &str = "kapp.k14s.io/app-change-app";
const IDENTITY: &str = "kapp.k14s.io/identity";

const PAGE: u32 = 500;

/// The record of an app of kapp.
#[derive(Debug)]
pub struct KappAppRecord {
    object: ObjectRef,
    live: LiveObject,
    /// The value of the label.
    pub id: String,
    spec: KappAppSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KappAppSpec {
    label_key: String,
    label_value: String,
    last_change: Option<KappLastChange>,
    #[serde(rename = "usedGVs")]
    used_gvs: Option<Vec<Used>>,
    #[serde(rename = "usedGKs")]
    used_gks: Option<Vec<Used>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KappLastChange {
    namespaces: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Used {
    group: String,
    kind: String,
}

/// The objects that carry the label of an app of kapp.
#[derive(Debug, Default)]
pub struct KappMembers {
    /// The objects with kapp's label of the app.
    pub found: Vec<AppObject>,
    /// The kinds that were listed.
    pub kinds: Vec<Arc<Resource>>,
    /// Kinds that could not be listed and may have more objects.
    pub unread: Vec<Problem>,
    /// Why it is not certain that the objects are those of this app.
    pub doubts: Vec<Problem>,
}

impl KappAppRecord {
    /// Reads the record of the app; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or kapp did not write it.
    pub async fn read(name: &str, namespace: &str, target: &Target) -> Result<Option<Self>> {
        let names = match name.ends_with(SUFFIX) {
            true => vec![name.to_owned()],
            false => vec![format!("{name}{SUFFIX}"), name.to_owned()],
        };
        let object = |name: String| ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some(namespace.to_owned()),
            name,
        };
        let objects: Vec<ObjectRef> = names.into_iter().map(object).collect();
        let resource = Arc::new(config_maps());
        let wanted: Vec<ObjectToRead> = objects
            .iter()
            .map(|object| ObjectToRead { resource: resource.clone(), object: object.clone().into() })
            .collect();
        let read = target.read(&wanted, &|_, _| ()).await?;
        let live = objects.into_iter().zip(read).find_map(|(object, live)| Some((object, live?)));
        live.map(|(object, live)| Self::parse(object, live).map_err(Error::failed)).transpose()
    }

    fn parse(object: ObjectRef, live: LiveObject) -> std::result::Result<Self, Problem> {
        let wrong = |why: String| {
            Problem::new(format!("{object} is not the record of a kapp app: {why}"))
                .help("name the app as kapp ls does: --from-kapp=NAME, in the namespace of -n")
        };
        let config_map = ConfigMap::parse(&live.raw.json()).map_err(|error| wrong(error.to_string()))?;
        if config_map.label(IS_APP).is_none() {
            return Err(wrong(format!("it has no label {IS_APP}")));
        }
        let spec: KappAppSpec = serde_json::from_str(config_map.value("spec").unwrap_or_default())
            .map_err(|error| wrong(not_as_written("spec", "kapp", &error)))?;
        if spec.label_key != KAPP_APP || spec.label_value.is_empty() {
            return Err(wrong(format!("the label of its members is not {KAPP_APP}")));
        }
        if !names::label_value(&spec.label_value).is_empty() {
            return Err(wrong(format!("{:?} is not the value of a label", spec.label_value)));
        }
        let namespaces = spec.last_change.iter().flat_map(|change| change.namespaces.iter().flatten());
        if let Some(namespace) = namespaces.into_iter().find(|name| !name.is_empty() && !is_dns_label(name)) {
            return Err(wrong(format!("{namespace:?} is not a namespace")));
        }
        Ok(KappAppRecord { id: spec.label_value.clone(), object, live, spec })
    }

    /// The ConfigMap of the record.
    pub fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// The app's name as kapp knows it.
    pub fn name(&self) -> &str {
        self.object.name.strip_suffix(SUFFIX).unwrap_or(&self.object.name)
    }

    /// All objects with the label, of the kinds that the record names.
    ///
    /// # Errors
    /// Discovery failed.
    pub async fn members(&self, target: &Target) -> Result<KappMembers> {
        let kinds = |used: &[Used]| used.iter().map(|used| group_kind(&used.group, &used.kind)).collect();
        let kinds: Option<BTreeSet<String>> = self.spec.used_gks.as_deref().map(kinds);
        let groups: BTreeSet<&str> =
            self.spec.used_gvs.iter().flatten().map(|version| version.group.as_str()).collect();
        let listable = target.listable_kinds().await?;
        let is_used = |resource: &Resource| match &kinds {
            Some(kinds) => kinds.contains(&group_kind(&resource.group, &resource.kind)),
            // A record of an old version.
            None => groups.is_empty() || groups.contains(resource.group.as_str()),
        };
        let mut members = KappMembers::default();
        let served: BTreeSet<String> =
            listable.iter().map(|resource| group_kind(&resource.group, &resource.kind)).collect();
        let mut unserved: BTreeSet<String> =
            kinds.iter().flatten().filter(|kind| !served.contains(*kind)).cloned().collect();
        if kinds.is_none() {
            // A record of an old version names only groups.
            let is_missing = |group: &&&str| listable.iter().all(|resource| resource.group != ***group);
            unserved.extend(groups.iter().filter(is_missing).map(|group| group_kind(group, unserved::ANY)));
        }
        let resources: Vec<Arc<Resource>> = listable.into_iter().filter(is_used).map(Arc::new).collect();
        members.kinds.clone_from(&resources);
        let list = async |kind: Arc<Resource>| (group_kind(&kind.group, &kind.kind), self.list(kind, target).await);
        let answers: Vec<_> = stream::iter(resources).map(list).buffer_unordered(IN_FLIGHT).collect().await;
        for (kind, answer) in answers {
            match answer {
                Ok(Some(found)) => members.found.extend(found),
                // Discovery may be out of date.
                Ok(None) => drop(unserved.insert(kind)),
                Err(problem) => members.unread.push(problem),
            }
        }
        let unserved = UnservedKinds::find(&unserved, target).await?;
        members.unread.extend(unserved.reasons().map(|reason| {
            let message = format!("could not look for members of kapp's app {}: {}", self.name(), reason.message);
            Problem { message, ..reason.clone() }
        }));
        members.found.sort_by(|a, b| a.object.cmp(&b.object));
        members.doubts = self.other_claims(target).await;
        members.unread.sort();
        members.unread.dedup();
        Ok(members)
    }

    /// The namespaces in which kapp last deployed, and that of the record.
    pub fn namespaces(&self) -> BTreeSet<&str> {
        let last = self.spec.last_change.as_ref().and_then(|change| change.namespaces.as_ref());
        let last = last.into_iter().flatten().filter(|namespace| !namespace.is_empty());
        last.chain(&self.object.namespace).map(String::as_str).collect()
    }

    /// Kinds and namespaces of its members, in which it is enough to list them, and of its record.
    pub fn places(&self, members: &KappMembers) -> BTreeSet<(Arc<Resource>, Option<String>)> {
        let of_kind = |kind: &Arc<Resource>| -> Vec<(Arc<Resource>, Option<String>)> {
            if !kind.namespaced {
                return vec![(kind.clone(), None)];
            }
            let found = members.found.iter().filter(|found| found.resource == *kind);
            let namespaces = found.filter_map(|found| found.object.namespace.as_deref()).chain(self.namespaces());
            namespaces.map(|namespace| (kind.clone(), Some(namespace.to_owned()))).collect()
        };
        members.kinds.iter().flat_map(of_kind).collect()
    }

    /// The objects of one kind in all namespaces, or without that right in those in which kapp last deployed.
    /// `None` if the kind is not served.
    async fn list(
        &self,
        resource: Arc<Resource>,
        target: &Target,
    ) -> std::result::Result<Option<Vec<AppObject>>, Problem> {
        let selector = format!("{KAPP_APP}={}", self.id);
        let list = async |namespace: Option<&str>| {
            let request =
                ListRequest { namespace, label_selector: Some(&selector), ..ListRequest::new(&resource, PAGE) };
            let gather = |all: &mut Vec<AppObject>, json: &str| all.extend(read(json, &resource));
            target.list(&request).gather(gather).await
        };
        let mut answer = list(None).await;
        if resource.namespaced && matches!(answer, Err(ListError::Forbidden(_))) {
            let mut all = Vec::new();
            for namespace in self.namespaces() {
                match list(Some(namespace)).await {
                    Ok(found) => all.extend(found),
                    Err(error) => {
                        answer = Err(error);
                        return self.listed(answer);
                    }
                }
            }
            answer = Ok(all);
        }
        self.listed(answer)
    }

    /// `None` if the kind is not served.
    fn listed(
        &self,
        answer: std::result::Result<Vec<AppObject>, ListError>,
    ) -> std::result::Result<Option<Vec<AppObject>>, Problem> {
        match answer {
            Ok(found) => Ok(Some(found)),
            Err(ListError::NotServed(_)) => Ok(None),
            Err(error) => {
                let what = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
                let message = format!("could not look for members of kapp's app {}: {}", self.name(), what.message);
                Err(Problem { message, ..what })
            }
        }
    }

    /// Deletes the records of changes, then the record of the app.
    ///
    /// # Errors
    /// Some of them could not be deleted.
    pub async fn delete(&self, target: &Target) -> std::result::Result<(), Problem> {
        let resource = Arc::new(config_maps());
        let mut changes: BTreeMap<Arc<ObjectRef>, AppObject> = BTreeMap::new();
        for (key, value) in [(CHANGE_OF_LABEL, self.id.as_str()), (CHANGE_OF_NAME, self.name())] {
            // A longer name is not a valid label value; kapp then sets only the other label.
            if value.len() > 63 {
                continue;
            }
            let selector = format!("{IS_CHANGE},{key}={value}");
            let request = ListRequest {
                namespace: self.object.namespace.as_deref(),
                label_selector: Some(&selector),
                ..ListRequest::new(&resource, PAGE)
            };
            let gather = |all: &mut Vec<AppObject>, json: &str| all.extend(read(json, &resource));
            let found = self.listed(target.list(&request).gather(gather).await)?.unwrap_or_default();
            // A change of another app with that name belongs to that app.
            let of_this = found
                .into_iter()
                .filter(|found| found.facts.labels.get(CHANGE_OF_LABEL).is_none_or(|label| *label == self.id));
            changes.extend(of_this.map(|found| (found.object.clone(), found)));
        }
        for AppObject { object, facts, .. } in changes.values() {
            delete(&resource, object, &facts.uid, &facts.resource_version, target).await?;
        }
        delete(&resource, &self.object, &self.live.uid, &self.live.resource_version, target).await
    }
}

async fn delete(
    resource: &Resource,
    object: &ObjectRef,
    uid: &str,
    resource_version: &str,
    target: &Target,
) -> std::result::Result<(), Problem> {
    let delete = Delete { resource, object, uid, resource_version, foreground: false };
    target.delete(&delete).await.map_err(|error| {
        let (why, help) = match error {
            DeleteError::Changed => ("it changed after it was read".to_owned(), None),
            DeleteError::NotYet(problem) | DeleteError::Refused(problem) => (problem.message, problem.help),
        };
        let message = format!("everything is deployed, but {object} of kapp could not be deleted: {why}");
        Problem::new(message).help(help.unwrap_or_else(|| "run the same command again".to_owned()))
    })
}

/// Whether kapp's annotation names the object itself.
pub fn is_member(object: &ObjectRef, facts: &LiveMetadata) -> bool {
    let Some(identity) = facts.annotations.get(IDENTITY) else { return false };
    let ObjectRef { kind, namespace, name, .. } = object;
    let named = format!("{}/{}/{kind}/{name}", namespace.as_deref().unwrap_or_default(), object.group());
    matches!(identity.split(';').collect::<Vec<_>>()[..], ["v1", object, _] if object == named)
}

/// Removes kapp's marks from objects that it no longer owns. Objects that were deleted or replaced are skipped.
///
/// `keeps` says which of the marks were set on purpose.
///
/// # Errors
/// The objects that still carry them.
pub async fn release(
    members: &[&AppObject],
    target: &Target,
    field_manager: &str,
    keeps: &(dyn Fn(&ObjectRef, &str) -> bool + Sync),
) -> std::result::Result<(), Vec<Problem>> {
    let one = async |found: &&AppObject| {
        let AppObject { object, resource, facts } = found;
        let remains = |why: String| {
            Problem::new(format!("{object} was deployed, but still carries the label of kapp's app: {why}"))
                .help("run the same command again; until then kapp delete would delete it")
        };
        let marks = |marks: &[&'static str]| -> Vec<&'static str> {
            marks.iter().copied().filter(|key| !keeps(object, key)).collect()
        };
        let (labels, annotations) = (marks(&LABELS), marks(&ANNOTATIONS));
        let unmark = async |live: &LiveObject| {
            let (labels, annotations) = (&labels[..], &annotations[..]);
            target.unmark(&Unmark { resource, object, live, labels, annotations, field_manager }).await
        };
        let is_wanted = |live: &LiveObject| live.uid == facts.uid;
        match write_again(target, (resource, object), None, is_wanted, unmark).await {
            Ok(Rewritten::Written(_) | Rewritten::Left) => Ok(()),
            Ok(Rewritten::Refused(problem)) => Err(remains(problem.message)),
            Ok(Rewritten::KeptChanging) => Err(remains("it kept changing".to_owned())),
            Err(error) => Err(remains(error.to_string())),
        }
    };
    let answers: Vec<_> = stream::iter(members).map(one).buffer_unordered(IN_FLIGHT).collect().await;
    let problems: Vec<Problem> = answers.into_iter().filter_map(std::result::Result::err).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::resource::RawObject;

    fn record(json: serde_json::Value) -> std::result::Result<KappAppRecord, String> {
        let object = ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("prod".into()),
            name: "shop.apps.k14s.io".into(),
        };
        let live = LiveObject { raw: RawObject::from_value(&json), uid: "u".into(), resource_version: "1".into() };
        KappAppRecord::parse(object, live).map_err(|problem| problem.message)
    }

    #[test]
    fn a_record_says_which_label_and_kinds_its_members_have() {
        let spec = r#"{"labelKey":"kapp.k14s.io/app","labelValue":"17","lastChangeName":"shop-change-1",
            "lastChange":{"startedAt":"2026-01-01T00:00:00Z","namespaces":["prod"]},
            "usedGVs":[{"Group":"","Version":"v1"}],"usedGKs":[{"Group":"","Kind":"Service"}]}"#;
        let labels = serde_json::json!({IS_APP: ""});
        let of = |labels, spec| record(serde_json::json!({"metadata": {"labels": labels}, "data": {"spec": spec}}));
        let read = of(labels.clone(), spec).unwrap();
        assert_eq!((read.id.as_str(), read.name()), ("17", "shop"));
        assert_eq!(read.spec.used_gks.unwrap()[0].kind, "Service");
        assert!(of(serde_json::json!({}), spec).unwrap_err().contains("no label kapp.k14s.io/is-app"));
        assert!(of(labels.clone(), "{").unwrap_err().contains("data.spec"));
        assert!(of(labels, "{}").unwrap_err().contains("the label of its members"));
    }

    #[test]
    fn a_copy_names_another_object() {
        let of = |kind: &str, identity: &str| {
            let (api_version, namespace) = ("apps/v1".to_owned(), Some("prod".to_owned()));
            let object = ObjectRef { api_version, kind: kind.into(), namespace, name: "web".into() };
            let annotations = [(IDENTITY.to_owned(), identity.to_owned())].into();
            is_member(&object, &LiveMetadata { annotations, ..LiveMetadata::default() })
        };
        assert!(of("Deployment", "v1;prod/apps/Deployment/web;apps/v1"));
        assert!(of("Deployment", "v1;prod/apps/Deployment/web;apps/v1beta1"), "another version is the same object");
        for other in ["v1;prod/apps/ReplicaSet/web;apps/v1", "v2;prod/apps/Deployment/web;apps/v1", ""] {
            assert!(!of("Deployment", other), "{other}");
        }
    }
}
