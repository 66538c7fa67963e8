//! The revisions of an app: what its deploys applied, kept in Secrets in the namespace of the app's record.
//!
//! A revision is one Secret, its *head*, and more of them if its text is large. The parts beside the head are written
//! first. The head, which says how many parts there are and what digest the whole text has, is written last. So a
//! revision of a run that was stopped in between has no head, and does not count. The head is written before the first
//! object is applied, and the outcome is added to it after the last one: a revision without an outcome is one whose run
//! was killed, or has not ended.
//!
//! All Secrets of an app carry the same label, so that one request lists them. None carries the label of the app's
//! members, so no deploy of the app deletes them.

mod changes;
mod keep;
mod manifests;
mod unpack;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::members::{self, AppObject};
use super::{App, MANAGER, SUFFIX};
use gantry_cluster::{Delete, DeleteError, ListError, ListRequest, Relabel, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};

pub use changes::{ChangedObjects, RevisionChanges};
pub use keep::{KeptRevision, NotKept, keep};
pub use manifests::{NOT_KEPT, RevisionText};
pub use unpack::read_manifests;

/// The label of the Secrets of revisions; its value is the identifier of the app.
const OF: &str = "gantry.dev/revision-of";
/// The label with the number of the revision.
const NUMBER: &str = "gantry.dev/revision";
/// The annotation of a head with [`RevisionHead`].
const ABOUT: &str = "gantry.dev/revision-about";
/// The annotation of a head with [`RevisionEnd`].
const END: &str = "gantry.dev/revision-outcome";
/// The key of the data of each Secret.
const DATA: &str = "manifests";

/// A Secret has at most 1 MiB of data.
const MOST: usize = 900 << 10;
/// No more parts are written or read.
const MOST_PARTS: usize = 32;
/// No larger text is written, and what unpacks to more is not read.
const MOST_UNPACKED: u64 = 128 << 20;
const PAGE: u32 = 500;

/// How the deploy of a revision ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RevisionOutcome {
    /// Everything was written, and what was awaited is ready.
    Deployed,
    /// Everything was written, but something was not ready, or not gone, in time.
    NotReady,
    /// It ended early.
    Failed,
    /// The user interrupted it, or it was killed.
    Interrupted,
}

impl RevisionOutcome {
    /// The outcome in a table.
    pub fn word(self) -> &'static str {
        match self {
            RevisionOutcome::Deployed => "deployed",
            RevisionOutcome::NotReady => "not ready",
            RevisionOutcome::Failed => "failed",
            RevisionOutcome::Interrupted => "interrupted",
        }
    }
}

/// What is known of a revision before its deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionHead {
    /// When the deploy began.
    pub time: Timestamp,
    /// The user name on the server; empty if it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The version of gantry.
    #[serde(default)]
    pub version: String,
    /// How many Secrets hold the text.
    pub parts: usize,
    /// The digest of the text.
    pub sum: String,
    /// The revision whose manifests these are, if it is one of a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_to: Option<u32>,
    /// What the deploy was going to change.
    #[serde(default)]
    pub changes: RevisionChanges,
}

/// How the deploy of a revision ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionEnd {
    /// When it ended.
    pub time: Timestamp,
    /// How it ended.
    pub outcome: RevisionOutcome,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What it changed. `None` if that is unknown: an older gantry wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<RevisionChanges>,
}

/// A revision of an app.
#[derive(Debug, Clone)]
pub struct Revision {
    /// Revisions are numbered from 1.
    pub number: u32,
    /// What its head says; or why that cannot be read.
    pub head: Result<RevisionHead, String>,
    /// `None` if the run was killed, or has not ended.
    pub end: Option<RevisionEnd>,
    /// Its head and its parts.
    secrets: Vec<AppObject>,
}

impl Revision {
    /// Whether a rollback can go back to it: it was deployed, and all of its parts are there.
    pub fn is_deployed(&self) -> bool {
        self.head.is_ok() && self.end.as_ref().is_some_and(|end| end.outcome == RevisionOutcome::Deployed)
    }

    /// What its deploy changed, if that is known.
    pub fn changed(&self) -> Option<&RevisionChanges> {
        match &self.end {
            Some(RevisionEnd { changes: Some(changes), .. }) => Some(changes),
            // Nothing is left to do.
            _ if self.is_deployed() => self.head.as_ref().ok().map(|head| &head.changes),
            _ => None,
        }
    }

    /// The digest of its text.
    pub fn sum(&self) -> Option<&str> {
        self.head.as_ref().ok().map(|head| head.sum.as_str())
    }
}

/// The revisions of an app.
#[derive(Debug, Clone, Default)]
pub struct Revisions {
    /// In the order of their numbers.
    pub list: Vec<Revision>,
    /// Parts of revisions whose run was stopped before it wrote the head.
    loose: Vec<AppObject>,
    /// Secrets of revisions with the number of another one. Nobody knows which is right, so they stay as long as the app.
    doubles: Vec<AppObject>,
    /// The largest number of any Secret.
    last: u32,
}

impl Revisions {
    /// Lists the revisions of an app, without their texts.
    ///
    /// # Errors
    /// The list failed.
    pub async fn list(app: &App, target: &Target) -> Result<Self, ListError> {
        let (resource, selector) = (Arc::new(secrets()), label(app));
        let request = ListRequest {
            namespace: Some(&app.namespace),
            label_selector: Some(&selector),
            metadata_only: true,
            ..ListRequest::new(&resource, PAGE)
        };
        let gather = |all: &mut Vec<AppObject>, json: &str| all.extend(members::read(json, &resource));
        Ok(Self::from_secrets(target.list(&request).gather(gather).await?))
    }

    fn from_secrets(found: Vec<AppObject>) -> Self {
        // Somebody's copies have the labels as well, under other names.
        let found: Vec<AppObject> =
            found.into_iter().filter(|found| number_in_name(&found.object.name).is_some()).collect();
        let number = |found: &AppObject| {
            let number = found.facts.labels.get(NUMBER)?.parse::<u32>().ok()?;
            (number_in_name(&found.object.name) == Some(number)).then_some(number)
        };
        let (heads, mut parts): (Vec<AppObject>, Vec<AppObject>) =
            found.into_iter().partition(|found| found.facts.annotations.contains_key(ABOUT));
        let last = heads.iter().chain(&parts).filter_map(number).max().unwrap_or_default();
        let mut list: BTreeMap<u32, Revision> = BTreeMap::new();
        let mut doubles = Vec::new();
        for head in heads {
            // Somebody else has written a label that is not the number: it is deleted with the app.
            let Some(number) = number(&head) else {
                parts.push(head);
                continue;
            };
            let annotation = |key: &str| head.facts.annotations.get(key);
            let about = annotation(ABOUT).map_or("", String::as_str);
            let about = serde_json::from_str::<RevisionHead>(about).map_err(|error| error.to_string());
            let end = annotation(END).and_then(|text| serde_json::from_str(text).ok());
            let (of_head, others) =
                parts.into_iter().partition(|part| is_part_of(&part.object.name, &head.object.name));
            parts = others;
            let secrets: Vec<AppObject> = [vec![head], of_head].concat();
            let about = about.and_then(|head| match missing_part(&head, &secrets) {
                Some(missing) => Err(missing),
                None => Ok(head),
            });
            let revision = Revision { number, head: about, end, secrets };
            let other = match list.get(&number) {
                // No two have the same number, unless somebody copied one.
                Some(known) if known.head.is_ok() => Some(revision),
                _ => list.insert(number, revision),
            };
            doubles.extend(other.into_iter().flat_map(|other| other.secrets));
        }
        Revisions { list: list.into_values().collect(), loose: parts, doubles, last }
    }

    /// The revision with this number.
    pub fn find(&self, number: u32) -> Option<&Revision> {
        self.list.iter().find(|revision| revision.number == number)
    }

    /// The revision to go back to: the last one that was deployed before `current`, with other manifests.
    pub fn previous(&self, current: Option<u32>) -> Option<&Revision> {
        let is_before = |revision: &&Revision| current.is_none_or(|current| revision.number < current);
        let sum = current.and_then(|current| self.find(current)?.sum());
        self.list.iter().rev().filter(is_before).find(|revision| revision.is_deployed() && revision.sum() != sum)
    }

    /// Reads the text of [`Self::previous`], and marks revisions as damaged until one is left that can be deployed. If
    /// the server does not answer, nothing is marked.
    pub async fn mark_damaged(&mut self, app: &App, current: Option<u32>, target: &Target) {
        while let Some(previous) = self.previous(current) {
            let number = previous.number;
            let Ok(Err(why)) = unpack::read_text(app, previous, target).await else { return };
            for damaged in self.list.iter_mut().filter(|revision| revision.number == number) {
                damaged.head = Err(why.clone());
            }
        }
    }

    /// The revision to go back to after a deploy that did not complete: [`Self::previous`], if a deploy since then
    /// changed something, or may have. `has_changed` says so of the deploy of `current`.
    pub fn way_back(&self, current: Option<u32>, has_changed: bool) -> Option<&Revision> {
        let previous = self.previous(current)?;
        let since = self.list.iter().filter(|it| it.number > previous.number && Some(it.number) != current);
        let may_have_changed = |it: &Revision| it.changed().is_none_or(|changes| !changes.is_empty());
        (has_changed || since.into_iter().any(may_have_changed)).then_some(previous)
    }

    /// The last revision with these manifests.
    pub fn with_sum(&self, sum: &str) -> Option<&Revision> {
        self.list.iter().rev().find(|revision| revision.sum() == Some(sum))
    }

    /// All of their Secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &AppObject> {
        self.list.iter().flat_map(|revision| &revision.secrets).chain(&self.loose).chain(&self.doubles)
    }

    /// The Secrets that are not among the last `kept` revisions. The last one that was deployed is kept in any case:
    /// otherwise some failed deploys in a row would remove what can be gone back to.
    fn superseded(&self, kept: usize) -> impl Iterator<Item = &AppObject> {
        let deployed = self.list.iter().rposition(Revision::is_deployed);
        let first = self.list.len().saturating_sub(kept);
        let older = self.list.iter().enumerate().filter(move |(index, _)| *index < first && Some(*index) != deployed);
        older.flat_map(|(_, revision)| &revision.secrets).chain(&self.loose)
    }

    /// Gives them to another app, which is this one under another name.
    ///
    /// # Errors
    /// A Secret cannot be changed.
    pub async fn move_to(&self, app: &App, target: &Target) -> Result<(), Problem> {
        // Heads last: until then, the other app has no revision that lacks a part.
        let heads = self.list.iter().filter_map(|revision| revision.secrets.first());
        let parts = self.list.iter().flat_map(|revision| revision.secrets.iter().skip(1));
        let others = self.loose.iter().chain(&self.doubles);
        for AppObject { object, resource, facts } in others.chain(parts).chain(heads) {
            let raw = RawObject::from_value(&serde_json::json!({"metadata": {"labels": facts.labels}}));
            let (uid, resource_version) = (facts.uid.clone(), facts.resource_version.clone());
            let live = LiveObject { raw, uid, resource_version };
            let (value, field_manager) = (app.id(), MANAGER);
            let relabel = Relabel { resource, object, live: &live, label: OF, value: &value, field_manager };
            target.relabel(&relabel).await.map_err(|error| {
                Problem::new(format!("{object} could not get the label of the app {}: {error}", app.name))
            })?;
        }
        Ok(())
    }

    /// Deletes all of their Secrets.
    ///
    /// # Errors
    /// One cannot be deleted.
    pub async fn delete_all(&self, target: &Target) -> Result<(), Problem> {
        for secret in self.secrets() {
            delete(secret, target).await?;
        }
        Ok(())
    }
}

/// Deletes a Secret, unless it is gone already.
async fn delete(secret: &AppObject, target: &Target) -> Result<(), Problem> {
    let AppObject { object, resource, facts } = secret;
    let (uid, resource_version) = (&facts.uid, &facts.resource_version);
    let delete = Delete { resource, object, uid, resource_version, foreground: false };
    target.delete(&delete).await.map_err(|error| match error {
        DeleteError::Changed => {
            Problem::new(format!("{object} changed after it was read")).help("run the same command again")
        }
        DeleteError::NotYet(problem) | DeleteError::Refused(problem) => {
            Problem { message: format!("{object} could not be deleted: {}", problem.message), ..problem }
        }
    })
}

/// The label of an app's revisions, as a selector.
pub fn label(app: &App) -> String {
    format!("{OF}={}", app.id())
}

/// The resource of Secrets.
pub fn secrets() -> Resource {
    Resource::built_in("", "Secret", "secrets", true)
}

/// The rights to keep revisions. The names of the Secrets are generated.
pub const VERBS: [&str; 4] = ["list", "create", "patch", "delete"];

/// Any Secret of a revision, for messages about rights.
pub fn any_secret(app: &App) -> ObjectRef {
    secret(app, &format!("{}{SUFFIX}.r1", base(app)))
}

fn secret(app: &App, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some(app.namespace.clone()),
        name: name.to_owned(),
    }
}

/// The start of the names. The whole name of a long one would be too long.
fn base(app: &App) -> &str {
    let longest = app.name.len().min(200);
    app.name[..longest].trim_end_matches(['-', '.'])
}

/// Why the Secrets are not all of a revision.
fn missing_part(head: &RevisionHead, secrets: &[AppObject]) -> Option<String> {
    if head.parts > MOST_PARTS {
        return Some(format!("its head names {} parts", head.parts));
    }
    let first = &secrets.first()?.object;
    let mut names = (2..=head.parts).map(|part| part_name(&first.name, part));
    let missing = names.find(|name| !secrets.iter().any(|secret| secret.object.name == *name))?;
    Some(format!("{} is missing", ObjectRef { name: missing, ..(**first).clone() }))
}

/// The number in the name of a Secret of a revision.
fn number_in_name(name: &str) -> Option<u32> {
    let (_, rest) = name.rsplit_once(&format!("{SUFFIX}.r"))?;
    rest.split('.').next()?.parse().ok()
}

fn part_name(head: &str, part: usize) -> String {
    format!("{head}.p{part}")
}

fn is_part_of(name: &str, head: &str) -> bool {
    name.strip_prefix(head).and_then(|rest| rest.strip_prefix(".p")).is_some_and(|rest| rest.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(name: &str, number: &str, annotations: Value) -> AppObject {
        let object = json!({"metadata": {"name": name, "namespace": "prod", "uid": "u", "resourceVersion": "1",
            "labels": {OF: "x", NUMBER: number}, "annotations": annotations}});
        members::read(&object.to_string(), &Arc::new(secrets())).unwrap()
    }

    fn head(number: u32, parts: usize, sum: &str, outcome: Option<&str>) -> AppObject {
        let about = json!({"time": "2026-01-01T00:00:00Z", "parts": parts, "sum": sum}).to_string();
        let mut annotations = json!({ABOUT: about});
        if let Some(outcome) = outcome {
            annotations[END] = json!({"time": "2026-01-01T00:00:00Z", "outcome": outcome}).to_string().into();
        }
        found(&format!("shop.gantry.r{number}"), &number.to_string(), annotations)
    }

    #[test]
    fn a_revision_counts_only_with_its_head_and_all_parts() {
        let part = |number: u32, part: usize| {
            found(&part_name(&format!("shop.gantry.r{number}"), part), &number.to_string(), json!({}))
        };
        let all = Revisions::from_secrets(vec![
            head(1, 1, "a", Some("deployed")),
            head(2, 3, "b", Some("deployed")),
            part(2, 2),
            part(3, 2),
            part(3, 3),
            found("shop.gantry.r4", "4", json!({ABOUT: "{"})),
            found("shop.gantry.r5", "x", json!({ABOUT: "{}"})),
            // Copies that somebody made.
            found("backup", "2", json!({ABOUT: "{}"})),
            found("backup-of-4294967295", "4294967295", json!({})),
            found("shop.gantry.r1.copy", "1", json!({ABOUT: "{"})),
        ]);
        let numbers: Vec<(u32, bool)> = all.list.iter().map(|it| (it.number, it.is_deployed())).collect();
        assert_eq!(numbers, [(1, true), (2, false), (4, false)]);
        assert!(all.list[2].head.is_err());
        assert!(all.list[1].head.as_ref().is_err_and(|why| why == "secret/shop.gantry.r2.p3 -n prod is missing"));
        assert_eq!((all.loose.len(), all.last, all.secrets().count()), (3, 4, 8));
        assert!(all.superseded(0).all(|secret| secret.object.name != "shop.gantry.r1.copy"));
    }

    #[test]
    fn the_previous_revision_was_deployed_and_has_other_manifests() {
        let all = Revisions::from_secrets(vec![
            head(1, 1, "a", Some("deployed")),
            head(2, 1, "b", Some("deployed")),
            head(3, 1, "c", Some("failed")),
            head(4, 1, "b", Some("deployed")),
            head(5, 1, "d", None),
        ]);
        let previous = |current| all.previous(current).map(|revision| revision.number);
        assert_eq!(previous(Some(5)), Some(4));
        assert_eq!(previous(Some(4)), Some(1), "2 has the same manifests, and 3 was not deployed");
        assert_eq!(previous(Some(1)), None);
        assert_eq!(previous(None), Some(4));
    }

    #[test]
    fn there_is_a_way_back_if_a_deploy_since_then_may_have_changed_something() {
        let ended = |number: u32, created: usize| {
            let about = json!({"time": "2026-01-01T00:00:00Z", "parts": 1, "sum": number.to_string()}).to_string();
            let end = json!({"time": "2026-01-01T00:00:00Z", "outcome": "failed",
                "changes": {"created": {"count": created}}});
            let annotations = json!({ABOUT: about, END: end.to_string()});
            found(&format!("shop.gantry.r{number}"), &number.to_string(), annotations)
        };
        let deployed = || head(1, 1, "1", Some("deployed"));
        let way_back = |later: Vec<AppObject>, current, has_changed| {
            let all = Revisions::from_secrets([vec![deployed()], later].concat());
            all.way_back(Some(current), has_changed).map(|revision| revision.number)
        };
        assert_eq!(way_back(vec![ended(2, 0)], 2, false), None);
        assert_eq!(way_back(vec![ended(2, 0)], 2, true), Some(1));
        assert_eq!(way_back(vec![ended(2, 1), ended(3, 0)], 3, false), Some(1));
        assert_eq!(way_back(vec![ended(2, 0), ended(3, 0)], 3, false), None);
        // Of a killed one, and of an older gantry's, it is unknown.
        assert_eq!(way_back(vec![head(2, 1, "2", None), ended(3, 0)], 3, false), Some(1));
        assert_eq!(way_back(vec![head(2, 1, "2", Some("failed")), ended(3, 0)], 3, false), Some(1));
    }

    #[test]
    fn the_last_deployed_revision_is_kept_beyond_the_limit() {
        let outcomes = ["deployed", "deployed", "failed", "failed"];
        let heads = outcomes.iter().zip(1..).map(|(outcome, number)| head(number, 1, "a", Some(outcome))).collect();
        let all = Revisions::from_secrets(heads);
        let superseded = |kept| all.superseded(kept).map(|found| &*found.object.name).collect::<Vec<_>>();
        assert_eq!(superseded(2), ["shop.gantry.r1"]);
        assert_eq!(superseded(1), ["shop.gantry.r1", "shop.gantry.r3"]);
        assert!(superseded(4).is_empty());
    }
}
