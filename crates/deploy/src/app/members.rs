//! The live objects of an app: those that carry its label, and those that its inventory names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::inventory::group_kind;
use super::unserved::UnservedKinds;
use super::{AppMember, Parent};
use crate::app::PART_OF;
use crate::readiness::rules::WaitRule;
use crate::readiness::{self, Readiness};
use gantry_cluster::{self as cluster, ListError, ListRequest, Target};
use gantry_core::problem::{Problem, Result};
use gantry_core::resource::{self, ObjectRef, Resource};

/// The number of concurrent lists.
const AT_ONCE: usize = 8;
const PAGE: u32 = 500;
/// If an app has more namespaces than this, each kind is listed in all namespaces with one request.
const SEPARATE_NAMESPACES: usize = 16;
/// The maximum number of lists of single namespaces, for users who may not list all. A record can name any number.
const MAX_SEPARATE_LISTS: usize = 2_000;

/// A live object that belongs to an app, or may belong to it.
#[derive(Debug, Clone)]
pub struct AppObject {
    /// Its kind, namespace and name.
    pub object: Arc<ObjectRef>,
    /// Where it is served.
    pub resource: Arc<Resource>,
    /// What is known without its content.
    pub facts: LiveMetadata,
}

/// What is known about a live object without its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveMetadata {
    /// The field `metadata.uid`.
    pub uid: String,
    /// The field `metadata.resourceVersion`.
    pub resource_version: String,
    /// The creation time as the server writes it, in RFC 3339.
    pub created: String,
    /// The field `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// The field `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// While one is left, the server does not remove the object.
    pub finalizers: Vec<String>,
    /// When its deletion was requested.
    pub deleted: Option<String>,
    /// The field `metadata.ownerReferences`.
    pub owners: Vec<OwnerRef>,
    /// The field managers of more than metadata and status.
    pub writers: Vec<ContentWriter>,
    /// Only if it was requested.
    pub readiness: Option<Readiness>,
}

/// A field manager that has written content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentWriter {
    /// The name of the field manager.
    pub manager: String,
    /// By server-side apply.
    pub applied: bool,
    /// When it last changed something, to the second; RFC 3339 in UTC, as the server writes it.
    pub time: String,
}

/// An owner reference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OwnerRef {
    /// The kind of the owner.
    pub kind: String,
    /// The name of the owner, which is in the same namespace or cluster-scoped.
    pub name: String,
    /// Empty if the reference has none.
    #[serde(default)]
    pub uid: String,
    /// Whether the owner is the object's controller, which at most one is.
    #[serde(default)]
    pub controller: Option<bool>,
}

/// A resource, a namespace and a name.
pub type MemberKey = (Arc<Resource>, Option<String>, String);

/// The result of a search.
#[derive(Debug, Default)]
pub struct LiveMembers {
    /// The objects with the label of the app.
    pub found: Vec<AppObject>,
    /// The kinds and namespaces that were listed, whether or not this was permitted.
    pub places: Vec<(Arc<Resource>, Option<String>)>,
    /// The content of the objects that were requested, so that they are not read again.
    pub content: BTreeMap<MemberKey, resource::LiveObject>,
    /// The metadata of the objects that were requested, for kinds of which only metadata was read.
    pub metadata: BTreeMap<MemberKey, resource::LiveObject>,
    /// Members of the inventory that no longer exist.
    pub gone: Vec<AppMember>,
    /// Kinds and namespaces that cannot be listed. If there are any, nothing is pruned.
    pub unread: Vec<Problem>,
}

#[derive(Deserialize)]
struct MemberHead<'a> {
    #[serde(borrow)]
    metadata: MemberMetadata<'a>,
}

type MetadataStrings = Option<BTreeMap<String, String>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MemberMetadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    creation_timestamp: Option<String>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    labels: MetadataStrings,
    #[serde(default)]
    annotations: MetadataStrings,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
    #[serde(default)]
    owner_references: Option<Vec<OwnerRef>>,
    #[serde(borrow, default)]
    managed_fields: Option<Vec<MemberManagerEntry<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MemberManagerEntry<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(borrow, default)]
    time: Cow<'a, str>,
    #[serde(borrow, default)]
    fields_v1: Option<BTreeMap<Cow<'a, str>, IgnoredAny>>,
}

impl MemberManagerEntry<'_> {
    fn writer(self) -> Option<ContentWriter> {
        let is_content = |key: &Cow<'_, str>| !matches!(&**key, "f:metadata" | "f:status");
        let writes = self.subresource.is_empty() && self.fields_v1.is_some_and(|fields| fields.keys().any(is_content));
        let (manager, time) = (self.manager.into_owned(), self.time.into_owned());
        writes.then(|| ContentWriter { manager, applied: self.operation == "Apply", time })
    }
}

/// The facts in an object's own JSON.
pub fn read(json: &str, resource: &Arc<Resource>) -> Option<AppObject> {
    let MemberHead { metadata } = serde_json::from_str(json).ok()?;
    let object = ObjectRef {
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        namespace: metadata.namespace.map(Cow::into_owned),
        name: metadata.name.into_owned(),
    };
    let facts = LiveMetadata {
        uid: metadata.uid.into_owned(),
        resource_version: metadata.resource_version.into_owned(),
        created: metadata.creation_timestamp.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        finalizers: metadata.finalizers.unwrap_or_default(),
        deleted: metadata.deletion_timestamp,
        owners: metadata.owner_references.unwrap_or_default(),
        writers: metadata.managed_fields.into_iter().flatten().filter_map(MemberManagerEntry::writer).collect(),
        readiness: None,
    };
    Some(AppObject { object: object.into(), resource: resource.clone(), facts })
}

/// The facts in an object's own JSON, and whether it is ready.
pub(crate) fn read_with_readiness(json: &str, resource: &Arc<Resource>, rules: &[WaitRule]) -> Option<AppObject> {
    let mut found = read(json, resource)?;
    found.facts.readiness = Some(readiness::evaluate_json(json, &found.object, resource, rules));
    Some(found)
}

type ReadMember<'a> = &'a (dyn Fn(&str, &Arc<Resource>) -> Option<AppObject> + Sync);

/// What to keep of the live objects of an app.
#[derive(Clone, Copy)]
pub struct KeptContent<'a> {
    /// Objects whose content or metadata is kept.
    pub objects: &'a (dyn Fn(&ObjectRef) -> bool + Sync),
    /// Kinds whose objects are read as a whole. Of others only the metadata is read.
    pub whole: &'a (dyn Fn(&Resource) -> bool + Sync),
}

impl KeptContent<'static> {
    /// Only which objects exist.
    pub const NOTHING: KeptContent<'static> = KeptContent { objects: &|_| false, whole: &|_| false };
}

/// Reads the live objects of the app, and keeps those that are `wanted`.
///
/// # Errors
/// The server cannot be reached.
pub async fn find(parent: &Parent, target: &Target, wanted: KeptContent<'_>) -> Result<LiveMembers> {
    search(parent, target, wanted, &read).await
}

/// Reads the live objects of the app and evaluates each while its list is read, so that no content is kept.
///
/// # Errors
/// The server cannot be reached.
pub async fn find_with_readiness(parent: &Parent, target: &Target, rules: &[WaitRule]) -> Result<LiveMembers> {
    let wanted = KeptContent { objects: &|_| false, whole: &|_| true };
    search(parent, target, wanted, &|json, resource| read_with_readiness(json, resource, rules)).await
}

async fn search(
    parent: &Parent,
    target: &Target,
    wanted: KeptContent<'_>,
    read: ReadMember<'_>,
) -> Result<LiveMembers> {
    let mut kinds = parent.kinds.clone();
    kinds.extend(parent.inventory().map(AppMember::group_kind));
    let mut namespaces = parent.namespaces.clone();
    namespaces.extend(parent.inventory().filter_map(|member| member.namespace.clone()));
    if kinds.is_empty() {
        return Ok(LiveMembers::default());
    }
    let listable = target.listable_kinds().await?.into_iter();
    let mut resources: BTreeMap<String, Arc<Resource>> =
        listable.map(|resource| (group_kind(&resource.group, &resource.kind), resource.into())).collect();
    let mut live = LiveMembers::default();
    // `missing` finds out why a kind is not there.
    let listed: Vec<&Arc<Resource>> = kinds.iter().filter_map(|kind| resources.get(kind)).collect();
    let places = listed.iter().flat_map(|resource| match resource.namespaced {
        true => namespaces.iter().map(|namespace| ((*resource).clone(), Some(namespace.clone()))).collect(),
        false => vec![((*resource).clone(), None)],
    });
    live.places = places.collect();
    let lists = match namespaces.len() {
        ..=SEPARATE_NAMESPACES => live.places.clone(),
        _ => listed.into_iter().map(|resource| (resource.clone(), None)).collect(),
    };
    let selector = format!("{PART_OF}={}", parent.app.id());
    let list = async |resource: Arc<Resource>, namespace: Option<&str>| {
        let metadata_only = !(wanted.whole)(&resource);
        let request = ListRequest {
            namespace,
            label_selector: Some(&selector),
            metadata_only,
            ..ListRequest::new(&resource, PAGE)
        };
        let mut pages = target.list(&request);
        let gather = |all: &mut Vec<(AppObject, Option<resource::LiveObject>)>, json: &str| {
            let Some(found) = read(json, &resource) else { return };
            if found.object.namespace.as_ref().is_some_and(|namespace| !namespaces.contains(namespace)) {
                return;
            }
            let content = (wanted.objects)(&found.object).then(|| cluster::listed(json, &resource)).flatten();
            all.push((found, content));
        };
        (pages.gather(gather).await, metadata_only, group_kind(&resource.group, &resource.kind))
    };
    let may_separate = namespaces.len().saturating_mul(kinds.len()) <= MAX_SEPARATE_LISTS;
    let list_once_or_separately = async |(resource, namespace): (Arc<Resource>, Option<String>)| {
        let answer = list(resource.clone(), namespace.as_deref()).await;
        let is_forbidden = matches!(answer.0, Err(ListError::Forbidden(_)));
        if !(is_forbidden && may_separate && resource.namespaced && namespace.is_none()) {
            return vec![answer];
        }
        stream::iter(&namespaces).then(|namespace| list(resource.clone(), Some(namespace))).collect().await
    };
    let mut answers = stream::iter(lists).map(list_once_or_separately).buffer_unordered(AT_ONCE).flat_map(stream::iter);
    let mut not_served = BTreeSet::new();
    while let Some((found, metadata_only, kind)) = answers.next().await {
        match found {
            Ok(all) => {
                let kept = if metadata_only { &mut live.metadata } else { &mut live.content };
                for (found, content) in all {
                    let ObjectRef { namespace, name, .. } = &*found.object;
                    let place = (found.resource.clone(), namespace.clone(), name.clone());
                    kept.extend(content.map(|content| (place, content)));
                    live.found.push(found);
                }
            }
            // Discovery may be out of date: `missing` finds out why.
            Err(ListError::NotServed(_)) => {
                not_served.insert(kind);
            }
            Err(error) => {
                let what = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
                let message = format!("could not look for members of the app {}: {}", parent.app.name, what.message);
                live.unread.push(Problem { message, ..what });
            }
        }
    }
    drop(answers);
    resources.retain(|kind, _| !not_served.contains(kind));
    let unserved: BTreeSet<String> = kinds.into_iter().filter(|kind| !resources.contains_key(kind)).collect();
    let unserved = UnservedKinds::find(&unserved, target).await?;
    live.unread.extend(unserved.reasons().map(|reason| {
        let message = format!("could not look for members of the app {}: {}", parent.app.name, reason.message);
        Problem { message, ..reason.clone() }
    }));
    read_unlisted_members(parent, (&resources, &unserved), &mut live, target, read).await?;
    live.found.sort_by(|a, b| a.object.cmp(&b.object));
    live.unread.sort();
    live.unread.dedup();
    Ok(live)
}

/// Reads the members that no list contained: they are gone or lost their label.
async fn read_unlisted_members(
    parent: &Parent,
    (resources, unserved): (&BTreeMap<String, Arc<Resource>>, &UnservedKinds),
    live: &mut LiveMembers,
    target: &Target,
    read: ReadMember<'_>,
) -> Result<()> {
    let listed: BTreeSet<_> = live.found.iter().map(|found| found.object.identity()).collect();
    let unseen = parent.members.iter().filter(|member| !listed.contains(&member.identity()));
    let mut wanted = Vec::new();
    let mut asked = Vec::new();
    for member in unseen {
        let Some(resource) = resources.get(&member.group_kind()) else {
            // Otherwise its CRD is gone, and the object with it.
            if unserved.reason(&member.group_kind()).is_none() {
                live.gone.push(member.clone());
            }
            continue;
        };
        let object = ObjectRef {
            api_version: resource.api_version(),
            kind: member.kind.clone(),
            namespace: member.namespace.clone(),
            name: member.name.clone(),
        };
        wanted.push(cluster::ObjectToRead { resource: resource.clone(), object: object.into() });
        asked.push(member);
    }
    for ((answer, wanted), member) in target.read_each(&wanted, &|_, _| ()).await?.into_iter().zip(&wanted).zip(asked) {
        match answer {
            Ok(None) => live.gone.push(member.clone()),
            Ok(Some(object)) => live.found.extend(read(&object.raw.json(), &wanted.resource)),
            Err(problem) => live.unread.push(problem),
        }
    }
    Ok(())
}
