//! The ConfigMap that records an app: an ApplySet parent with the inventory and the outcome of the last run.

mod fit;
mod lock;
mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::config_map::ConfigMap;
use super::inventory::{AppMember, group_kind};
use super::last_applied::LastApplied;
use super::members::{AppObject, LiveMembers};
use super::parts::InventoryParts;
use super::{App, PART_OF};
use gantry_core::resource;

pub use lock::holder;
pub use read::{app_of, app_without_label, is_of_gantry};
pub use write::write;

/// The label that makes an object the parent of an ApplySet.
pub const ID_LABEL: &str = "applyset.kubernetes.io/id";
const TOOLING: &str = "applyset.kubernetes.io/tooling";
const OUR_TOOLING: &str = concat!("gantry/v", env!("CARGO_PKG_VERSION"));
/// The annotation that lists the kinds of an ApplySet.
pub const KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// The key of `data` for [`LastRun`].
const LAST: &str = "last";
/// The key of `data` for [`LastApplied`].
const LAST_APPLIED: &str = "last-applied";
/// The key of `data` for [`inventory::sum`]. Older records lack it and get it with the next write.
const SUM: &str = "inventory-sum";
const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunOutcome {
    /// It is writing, or was killed while it wrote.
    Started,
    /// It wrote everything, and everything that it waited for is ready.
    Applied,
    /// It ended early, or something did not become ready.
    Failed,
}

/// The last run that wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// When the run recorded this.
    pub time: Timestamp,
    /// How far it came.
    pub outcome: RunOutcome,
    /// The user name on the server.
    #[serde(default)]
    pub user: String,
    /// The version of gantry.
    #[serde(default)]
    pub version: String,
    /// The process: see [`holder`].
    #[serde(default)]
    pub holder: String,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The revision with its manifests, if there is one. A run that has not ended does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

impl LastRun {
    /// For a record without a run.
    pub fn none() -> Self {
        LastRun {
            time: Timestamp::UNIX_EPOCH,
            outcome: RunOutcome::Applied,
            user: String::new(),
            version: String::new(),
            holder: String::new(),
            reasons: Vec::new(),
            revision: None,
        }
    }
}

/// A live parent.
#[derive(Debug, Clone)]
pub struct Parent {
    /// The app that it is the record of.
    pub app: App,
    /// The object of the target.
    pub live: resource::LiveObject,
    /// `Kind.group` of all members, and possibly of more.
    pub kinds: BTreeSet<String>,
    /// The namespaces of all members, and possibly more.
    pub namespaces: BTreeSet<String>,
    /// The objects of the app, as the last run left them.
    pub members: BTreeSet<AppMember>,
    /// Objects that a run was going to create when it recorded them, without their uids. A run that ends replaces each
    /// by a member, or drops it.
    pub pending: BTreeSet<AppMember>,
    /// `None` if no other object holds a part of it.
    pub parts: Option<InventoryParts>,
    /// `None` if the record does not say, for example because another tool wrote it.
    pub last: Option<LastRun>,
    /// What the members looked like when they matched their manifests. `None` if that is unknown.
    pub last_applied: Option<LastApplied>,
    /// The record cannot be read, and is read only to be given up. No member is known then, and no part.
    pub is_damaged: bool,
}

/// What to record.
#[derive(Debug, Clone)]
pub struct AppRecordContent {
    /// `Kind.group` of all members.
    pub kinds: BTreeSet<String>,
    /// The namespaces of all members.
    pub namespaces: BTreeSet<String>,
    /// With those that the run is going to create.
    pub members: BTreeSet<AppMember>,
    /// The run that writes the record.
    pub last: LastRun,
    /// `None` if it is unknown whether the members match the manifests.
    pub last_applied: Option<LastApplied>,
    /// Before the run ends there can be more members than one object can hold.
    pub may_split: bool,
}

impl Parent {
    /// Whether the app already has the other name, so that only this record is left.
    pub fn is_renamed_to(&self, other: &App) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.renamed_to.as_ref() == Some(&other.name))
    }

    /// The members, and the objects that a run was going to create.
    pub fn inventory(&self) -> impl Iterator<Item = &AppMember> {
        self.members.iter().chain(&self.pending)
    }

    /// Turns pending objects into members where they are live and carry the label of the app. If all members could be
    /// read, the others do not exist.
    pub fn resolve_pending(&mut self, live: &LiveMembers) {
        if self.pending.is_empty() {
            return;
        }
        let id = self.app.id();
        let known: BTreeSet<&str> = self.members.iter().map(|member| member.uid.as_str()).collect();
        let is_new = |found: &&AppObject| {
            let AppObject { facts, .. } = found;
            facts.labels.get(PART_OF) == Some(&id) && !known.contains(facts.uid.as_str())
        };
        let found: BTreeMap<_, &str> =
            live.found.iter().filter(is_new).map(|found| (found.object.identity(), found.facts.uid.as_str())).collect();
        let (mut members, mut pending) = (Vec::new(), BTreeSet::new());
        for member in &self.pending {
            match found.get(&member.identity()) {
                Some(uid) => members.push(AppMember { uid: (*uid).to_owned(), ..member.clone() }),
                None if !live.unread.is_empty() => drop(pending.insert(member.clone())),
                None => {}
            }
        }
        self.members.extend(members);
        self.pending = pending;
    }

    /// Whether the record has a sum, so that no member can have been removed from its inventory.
    pub fn has_sum(&self) -> bool {
        ConfigMap::parse(&self.live.raw.json()).is_ok_and(|record| record.value(SUM).is_some())
    }
}

/// The kinds and namespaces of members.
pub fn kinds_and_namespaces<'m>(
    members: impl IntoIterator<Item = &'m AppMember>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut kinds, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
    for member in members {
        kinds.insert(group_kind(&member.group, &member.kind));
        namespaces.extend(member.namespace.clone());
    }
    (kinds, namespaces)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::inventory;
    use super::*;
    use crate::app::last_applied::Mark;
    use gantry_core::resource::{LiveObject, ObjectRef, RawObject};

    pub fn app() -> App {
        App { name: "shop".into(), namespace: "prod".into() }
    }

    pub fn last(outcome: RunOutcome, holder: String) -> LastRun {
        let time = "2026-01-01T00:00:00Z".parse().unwrap();
        LastRun { time, outcome, user: "ann".into(), version: "v1".into(), holder, reasons: Vec::new(), revision: None }
    }

    pub fn parent(last: LastRun) -> Parent {
        let member = AppMember {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: Some("web".into()),
            name: "a".into(),
            uid: "u".into(),
            adopted: false,
            keep: None,
        };
        let (kinds, namespaces) = kinds_and_namespaces([&member]);
        let mark = |uid: &str| {
            let live = json!({"metadata": {"uid": uid, "resourceVersion": "1", "managedFields": [{"manager": "m", "operation": "Apply"}]}});
            let object =
                ObjectRef { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: "a".into() };
            Mark::compute(&object, &RawObject::new("{}"), &live.to_string(), "m").unwrap()
        };
        let marks = [("u".to_owned(), mark("u"))].into();
        let last_applied = Some(LastApplied { input: "1-1".into(), marks });
        let members = [member].into();
        let inventory = inventory::encode(&members).unwrap();
        let content = AppRecordContent { kinds, namespaces, members, last, last_applied, may_split: false };
        let raw = RawObject::from_value(&write::object(&app(), &content, &inventory, None).unwrap());
        let live = LiveObject { raw, uid: "p".into(), resource_version: "1".into() };
        Parent::from_texts(&app(), live, &[]).unwrap()
    }
}
