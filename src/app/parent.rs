//! The ConfigMap that records an app: an ApplySet parent with the inventory and the outcome of the last run.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config_map::{ConfigMap, not_as_written};
use super::inventory::{self, Inventory, Member, Text, group_kind};
use super::last_applied::LastApplied;
use super::parts::{self, Existing, Parts};
use super::{App, SUFFIX, config_maps};
use crate::cluster::{Apply, ApplyError, Delete, DeleteError, Pin, Target, Wanted};
use crate::problem::{Error, Problem, Result};
use crate::resource::{Live, RawObject};
use crate::text::sanitize;

/// The label that makes an object the parent of an ApplySet.
pub const ID_LABEL: &str = "applyset.kubernetes.io/id";
const TOOLING: &str = "applyset.kubernetes.io/tooling";
/// The annotation that lists the kinds of an ApplySet.
pub const KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// The key of `data` for [`Last`].
const LAST: &str = "last";
/// The key of `data` for [`LastApplied`].
const LAST_APPLIED: &str = "last-applied";
/// The key of `data` for [`inventory::sum`]. Older records lack it and get it with the next write.
const SUM: &str = "inventory-sum";
const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";

/// The placeholder in a parent whose inventory is in parts: a version that does not know parts must not see an empty
/// one.
const SPLIT: (&str, &str) = ("inventory", "in the ConfigMaps that data.parts names");

/// How often to read a parent again that another run is writing.
const TRIES: u32 = 5;

/// How long a run that began locks out others.
const LOCKED: SignedDuration = SignedDuration::from_mins(15);

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is writing, or was killed while it wrote.
    Started,
    Applied,
    Failed,
}

/// The last run that wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Last {
    pub time: Timestamp,
    pub outcome: Outcome,
    /// The user name on the server.
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub version: String,
    /// The process: see [`holder`].
    #[serde(default)]
    pub holder: String,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

impl Last {
    /// For a record without a run.
    pub fn none() -> Self {
        Last {
            time: Timestamp::UNIX_EPOCH,
            outcome: Outcome::Applied,
            user: String::new(),
            version: String::new(),
            holder: String::new(),
            reasons: Vec::new(),
        }
    }
}

/// A live parent.
#[derive(Debug, Clone)]
pub struct Parent {
    pub app: App,
    pub live: Live,
    /// `Kind.group` of all members, and possibly of more.
    pub kinds: BTreeSet<String>,
    /// The namespaces of all members, and possibly more.
    pub namespaces: BTreeSet<String>,
    pub members: BTreeSet<Member>,
    /// `None` if no other object holds a part of it.
    pub parts: Option<Parts>,
    pub last: Option<Last>,
    pub last_applied: Option<LastApplied>,
}

/// What to record.
#[derive(Debug, Clone)]
pub struct Content {
    pub kinds: BTreeSet<String>,
    pub namespaces: BTreeSet<String>,
    pub members: BTreeSet<Member>,
    pub last: Last,
    /// `None` if it is unknown whether the members match the manifests.
    pub last_applied: Option<LastApplied>,
    /// Before the run ends there can be more members than one object can hold.
    pub may_split: bool,
}

/// The app that a listed ConfigMap records, according to its name, and the ConfigMap.
pub fn app_of(json: &str) -> Option<(App, Live)> {
    let config_map = ConfigMap::parse(json).ok()?;
    let metadata = &config_map.metadata;
    let app = App { name: metadata.name.strip_suffix(SUFFIX)?.to_owned(), namespace: metadata.namespace.clone()? };
    if config_map.label(ID_LABEL) != Some(&app.id()) {
        return None;
    }
    let (uid, resource_version) = (metadata.uid.clone(), metadata.resource_version.clone());
    Some((app, Live { raw: RawObject::new(json), uid, resource_version }))
}

impl Parent {
    /// Reads the parent of an app; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or is not a parent of gantry's.
    pub async fn read(app: &App, target: &Target) -> Result<Option<Self>> {
        match Self::live(app, target).await? {
            Some(live) => Self::whole(app, live, target).await,
            None => Ok(None),
        }
    }

    /// Reads the parent of an app that is given up. If the record cannot be read, its members are known only by their
    /// label.
    ///
    /// # Errors
    /// It cannot be read at all, or is not a parent of gantry's.
    pub async fn read_to_forget(app: &App, target: &Target) -> Result<Option<Self>> {
        let Some(live) = Self::live(app, target).await? else { return Ok(None) };
        match Self::whole(app, live.clone(), target).await {
            Err(Error::Failed(_)) => {
                let (parent, record) = Self::identified(app, live).map_err(Error::failed)?;
                // Another run may still be writing it, and there may be parts that it does not name.
                let last = record.value(LAST).and_then(|last| serde_json::from_str(last).ok());
                Ok(Some(Parent { last, parts: Some(Parts::default()), ..parent }))
            }
            parent => parent,
        }
    }

    /// Reads the parent of an app even if another tool keeps it: its kinds and namespaces, and the name of the tool.
    /// The uids of its members are unknown, so none of them is deleted.
    ///
    /// # Errors
    /// It cannot be read, or is the parent of another ApplySet.
    pub async fn read_of_any_tool(app: &App, target: &Target) -> Result<Option<(Self, Option<String>)>> {
        let Some(live) = Self::live(app, target).await? else { return Ok(None) };
        let mut value = live.raw.value();
        let tooling = value["metadata"]["annotations"][TOOLING].as_str().unwrap_or_default().to_owned();
        if tooling.starts_with("gantry/") {
            return Ok(Self::whole(app, live, target).await?.map(|parent| (parent, None)));
        }
        value["metadata"]["annotations"][TOOLING] = "gantry/".into();
        let live = Live { raw: RawObject::from_value(&value), ..live };
        Self::identified(app, live)
            .map(|(parent, _)| Some((parent, Some(sanitize(&tooling).into_owned()))))
            .map_err(Error::failed)
    }

    async fn live(app: &App, target: &Target) -> Result<Option<Live>> {
        let wanted = Wanted { resource: config_maps().into(), object: app.parent().into() };
        Ok(target.read(&[wanted], &|_, _| ()).await?.pop().flatten())
    }

    /// The parent with the parts that it names. `None` if it was deleted in the meantime.
    ///
    /// # Errors
    /// As [`Self::read`]; a part of its inventory is missing.
    pub async fn whole(app: &App, live: Live, target: &Target) -> Result<Option<Self>> {
        let mut live = live;
        let mut tries = TRIES;
        loop {
            let parts = ConfigMap::parse(&live.raw.json()).ok().and_then(|record| Parts::of(&record).ok().flatten());
            let Some(parts) = parts.filter(|parts| !parts.parts.is_empty()) else {
                return Self::of(app, live, &[]).map(Some).map_err(Error::failed);
            };
            let problem = match parts.read(app, target).await? {
                Ok(texts) => return Self::of(app, live, &texts).map(Some).map_err(Error::failed),
                Err(problem) => problem,
            };
            // Another run may have written the record in the meantime, and deleted parts that it no longer names.
            let Some(now) = Self::live(app, target).await? else { return Ok(None) };
            tries -= 1;
            if tries == 0 || now.resource_version == live.resource_version {
                return Err(Error::failed(problem));
            }
            live = now;
        }
    }

    /// The parent from its ConfigMap and the texts of the parts that it names.
    ///
    /// # Errors
    /// It is not a parent of gantry's, or not in gantry's format.
    fn of(app: &App, live: Live, texts: &[Text]) -> std::result::Result<Self, Problem> {
        let (parent, record) = Self::identified(app, live)?;
        let broken = |why: &str| {
            let object = app.parent();
            let message = format!("{object}: the record of the app {} is damaged: {}", app.name, sanitize(why));
            Problem::new(message).help(parts::RESTORE)
        };
        let parts = Parts::of(&record).map_err(|why| broken(&why))?;
        let is_split = parts.as_ref().is_some_and(|parts| !parts.parts.is_empty());
        let own = Text::of(&record).ok_or_else(|| broken("data.inventory is missing"));
        let own = if is_split { Vec::new() } else { vec![own?] };
        let texts = if is_split { texts } else { &own };
        let members = inventory::decode(texts).map_err(|why| broken(&why))?;
        if let Some(sum) = record.value(SUM) {
            inventory::is_of(sum, &members).map_err(|why| broken(&format!("{why} (see data.{SUM})")))?;
        }
        let last = record.value(LAST).map(serde_json::from_str).transpose();
        let last = last.map_err(|error| broken(&not_as_written(LAST, "gantry", &error)))?;
        let beside = if is_split { record.value(parts::KEY) } else { own.first().map(|text| &*text.text) };
        let kept = record.value(LAST_APPLIED);
        let last_applied = kept.and_then(|kept| LastApplied::decode(kept, &members, beside.unwrap_or_default()));
        Ok(Parent { members, parts, last, last_applied, ..parent })
    }

    /// The parent without its data, and its ConfigMap.
    ///
    /// # Errors
    /// It is not a parent of gantry's.
    fn identified(app: &App, live: Live) -> std::result::Result<(Self, ConfigMap), Problem> {
        let parent = app.parent();
        let wrong = |why: &str| Problem::new(format!("{parent} does not keep an app of gantry: {}", sanitize(why)));
        let record = ConfigMap::parse(&live.raw.json()).map_err(|error| wrong(&error.to_string()))?;
        let other_name = "choose another name for the app";
        let or_take = format!("{other_name}; to take the ApplySet over from that tool: --take-over-app");
        if record.label(ID_LABEL) != Some(&app.id()) {
            return Err(wrong(&format!("its label {ID_LABEL} is not {}", app.id())).help(other_name));
        }
        let tooling = record.annotation(TOOLING).unwrap_or_default();
        if !tooling.starts_with("gantry/") {
            return Err(wrong(&format!("its ApplySet belongs to {tooling:?}")).help(or_take));
        }
        let list = |key: &str| -> BTreeSet<String> {
            let text = record.annotation(key).unwrap_or_default();
            text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let (kinds, mut namespaces) = (list(KINDS), list(NAMESPACES));
        namespaces.insert(app.namespace.clone());
        let parent = Parent {
            app: app.clone(),
            live,
            kinds,
            namespaces,
            members: BTreeSet::new(),
            parts: None,
            last: None,
            last_applied: None,
        };
        Ok((parent, record))
    }

    /// Whether the app already has the other name, so that only this record is left.
    pub fn is_renamed_to(&self, other: &App) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.renamed_to.as_ref() == Some(&other.name))
    }

    /// Deletes the record and the parts of its inventory, unless the record changed after it was read. `renamed_to` is
    /// the app that has the members now.
    ///
    /// # Errors
    /// It changed after it was read, or cannot be deleted.
    pub async fn delete(&self, renamed_to: Option<&App>, target: &Target) -> std::result::Result<(), Problem> {
        let object = self.app.parent();
        let mut now = None;
        // As long as the record exists, remaining parts can be found.
        if self.parts.is_some() {
            let content = Content {
                kinds: self.kinds.clone(),
                namespaces: self.namespaces.clone(),
                members: BTreeSet::new(),
                last: self.last.clone().unwrap_or_else(Last::none),
                last_applied: None,
                may_split: true,
            };
            let (emptied, swept) = store(&self.app, Some(self), content, renamed_to, target).await?;
            swept?;
            now = Some(emptied.live);
        }
        let Live { uid, resource_version, .. } = now.as_ref().unwrap_or(&self.live);
        let delete = Delete { resource: &config_maps(), object: &object, uid, resource_version, foreground: false };
        target.delete(&delete).await.map_err(|error| match error {
            DeleteError::Changed => {
                let message = format!("{object} changed after it was read; the app {} is kept", self.app.name);
                Problem::new(message).help("run the same command again")
            }
            DeleteError::Refused(problem) => {
                Problem { message: format!("{object} could not be deleted: {}", problem.message), ..problem }
            }
        })
    }

    fn pin(&self) -> Pin {
        Pin::At { uid: self.live.uid.clone(), resource_version: self.live.resource_version.clone() }
    }

    /// Whether another run is writing this app.
    ///
    /// # Errors
    /// Who runs it, and what to do.
    pub fn locked(&self, now: Timestamp) -> std::result::Result<(), Problem> {
        let Some(last) = self.last.as_ref().filter(|last| last.outcome == Outcome::Started) else { return Ok(()) };
        let age = now.duration_since(last.time);
        if age >= LOCKED || is_gone(&last.holder) {
            return Ok(());
        }
        let (user, holder) = (sanitize(&last.user), sanitize(last.holder.split('|').next().unwrap_or_default()));
        let message = format!(
            "another deploy of the app {} is running: {user} on {holder} began {} s ago, at {}",
            self.app.name,
            age.as_secs().max(0),
            last.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        );
        Err(Problem::new(message).help("wait until it has ended; if it was killed, continue with --break-lock"))
    }
}

/// Identifies this process to a later one on the same machine: host, namespace of process ids, id and start time.
pub fn holder(environment: &BTreeMap<String, String>) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let host = host.or_else(|| environment.get("HOSTNAME").cloned()).unwrap_or_else(|| "unknown".to_owned());
    let id = std::process::id();
    match process(id) {
        Some((space, start)) => format!("{host}|{space}|{id}|{start}"),
        None => host,
    }
}

/// The namespace of process ids, and the start of the process in ticks since boot, from Linux' `/proc`.
fn process(id: u32) -> Option<(String, String)> {
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Fields after the program's name, which can contain any character; the start is the 22nd field.
    let start = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    Some((format!("{}:{space}", boot.trim()), start))
}

/// Whether a process on this machine has certainly ended.
fn is_gone(holder: &str) -> bool {
    let [_, space, id, start] = holder.split('|').collect::<Vec<_>>()[..] else { return false };
    let (Ok(id), Some((our_space, _))) = (id.parse::<u32>(), process(std::process::id())) else { return false };
    space == our_space && process(id).is_none_or(|(_, now)| now != start)
}

/// Writes the parent, unless it changed after it was read. Returns the live state.
///
/// # Errors
/// It changed after it was read (another run has begun), or cannot be written.
pub async fn write(
    app: &App,
    before: Option<&Parent>,
    content: Content,
    target: &Target,
) -> std::result::Result<Parent, Problem> {
    // Parts that no record names do no harm, and the next run that writes the record deletes them.
    store(app, before, content, None, target).await.map(|(parent, _)| parent)
}

/// Also returns whether all parts that the parent no longer names are deleted.
async fn store(
    app: &App,
    before: Option<&Parent>,
    content: Content,
    renamed_to: Option<&App>,
    target: &Target,
) -> std::result::Result<(Parent, std::result::Result<(), Problem>), Problem> {
    let inventory =
        inventory::encode(&content.members).map_err(|why| Problem::new(format!("the app {}: {why}", app.name)))?;
    let known = before.and_then(|before| before.parts.as_ref());
    // An app that was never so large is written without listing its parts.
    let may_have_parts = content.may_split || known.is_some() || matches!(inventory, Inventory::Split(_));
    let existing = if may_have_parts { parts::existing(app, target).await? } else { Existing::new() };
    let mut named = Parts { parts: Vec::new(), renamed_to: renamed_to.map(|app| app.name.clone()) };
    let mut texts: &[Text] = &[];
    if let Inventory::Split(split) = &inventory {
        texts = split;
        let mut taken = existing.keys().copied().collect();
        for text in texts {
            let there = known.and_then(|known| known.find(text)).filter(|part| existing.contains_key(&part.number));
            named.parts.push(match there {
                Some(part) => part.clone(),
                None => parts::create(app, &mut taken, text, target).await?,
            });
        }
    }
    let says_parts = content.may_split || !texts.is_empty() || !existing.is_empty();
    let raw = object(app, &content, &inventory, says_parts.then_some(&named));
    let mut raw = raw.map_err(|error| Problem::new(format!("the app {}: {error}", app.name)))?;
    // An apply that omits a key does not remove it if another manager set it too.
    let live = before.and_then(|before| ConfigMap::parse(&before.live.raw.json()).ok());
    for key in inventory::KEYS {
        let is_left = live.as_ref().is_some_and(|live| live.value(key).is_some());
        if is_left && raw["data"].get(key).is_none() {
            raw["data"][key] = "".into();
        }
    }
    let parent = app.parent();
    let pin = before.map_or(Pin::Absent, Parent::pin);
    let apply = Apply {
        resource: &config_maps(),
        object: &parent,
        raw: &RawObject::from_value(&raw),
        live: before.map(|before| &before.live.raw),
        pin: &pin,
        field_manager: super::MANAGER,
        force_conflicts: true,
    };
    let live = match target.apply(&apply).await {
        Ok(live) => live,
        Err(ApplyError::Changed) => {
            return Err(Problem::new(format!(
                "another deploy of the app {} has begun meanwhile: {parent} changed after it was read",
                app.name
            ))
            .help("wait until it has ended, then run the same command again"));
        }
        Err(ApplyError::NoWebhook(problem) | ApplyError::Refused(problem)) => {
            let message = format!("the app {} cannot be recorded: {}", app.name, problem.message);
            return Err(Problem { message, ..problem });
        }
        // Every field is applied by force, so no conflict is expected.
        Err(ApplyError::Conflict(_)) => {
            return Err(Problem::new(format!("{parent} has conflicts of field managers")));
        }
    };
    let parent = Parent::of(app, live, texts)?;
    let swept = parts::sweep(&existing, &named, target).await;
    Ok((parent, swept))
}

fn object(app: &App, content: &Content, inventory: &Inventory, parts: Option<&Parts>) -> serde_json::Result<Value> {
    let Content { kinds, namespaces, members, last, last_applied, .. } = content;
    let additional: Vec<&str> =
        namespaces.iter().filter(|namespace| **namespace != app.namespace).map(String::as_str).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{}{SUFFIX}", app.name),
            "namespace": app.namespace,
            "labels": {ID_LABEL: app.id()},
            "annotations": {
                TOOLING: concat!("gantry/v", env!("CARGO_PKG_VERSION")),
                KINDS: kinds.join(","),
                NAMESPACES: additional.join(","),
            },
        },
        "data": {LAST: serde_json::to_string(last)?, SUM: inventory::sum(members)},
    });
    let data = &mut object["data"];
    let parts = parts.map(serde_json::to_string).transpose()?;
    let beside = match inventory {
        Inventory::Whole(text) => {
            data[text.key()] = text.text.as_str().into();
            &text.text
        }
        Inventory::Split(_) => {
            data[SPLIT.0] = SPLIT.1.into();
            parts.as_deref().unwrap_or_default()
        }
    };
    if let Some(last_applied) = last_applied.as_ref().and_then(|marks| marks.encode(members, beside)) {
        data[LAST_APPLIED] = last_applied.into();
    }
    if let Some(parts) = &parts {
        data[parts::KEY] = parts.as_str().into();
    }
    Ok(object)
}

/// The kinds and namespaces of members.
pub fn reach<'m>(members: impl IntoIterator<Item = &'m Member>) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut kinds, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
    for member in members {
        kinds.insert(group_kind(&member.group, &member.kind));
        namespaces.extend(member.namespace.clone());
    }
    (kinds, namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::last_applied::Mark;
    use crate::resource::ObjectRef;

    fn app() -> App {
        App { name: "shop".into(), namespace: "prod".into() }
    }

    fn last(outcome: Outcome, holder: String) -> Last {
        let time = "2026-01-01T00:00:00Z".parse().unwrap();
        Last { time, outcome, user: "ann".into(), version: "v1".into(), holder, reasons: Vec::new() }
    }

    fn parent(last: Last) -> Parent {
        let member = Member {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: Some("web".into()),
            name: "a".into(),
            uid: "u".into(),
            adopted: false,
        };
        let (kinds, namespaces) = reach([&member]);
        let mark = |uid: &str| {
            let live = json!({"metadata": {"uid": uid, "resourceVersion": "1", "managedFields": [{"manager": "m", "operation": "Apply"}]}});
            let object =
                ObjectRef { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: "a".into() };
            Mark::of(&object, &RawObject::new("{}"), &live.to_string(), "m").unwrap()
        };
        let marks = [("u".to_owned(), mark("u"))].into();
        let last_applied = Some(LastApplied { input: "1-1".into(), marks });
        let members = [member].into();
        let inventory = inventory::encode(&members).unwrap();
        let content = Content { kinds, namespaces, members, last, last_applied, may_split: false };
        let raw = RawObject::from_value(&object(&app(), &content, &inventory, None).unwrap());
        let live = Live { raw, uid: "p".into(), resource_version: "1".into() };
        Parent::of(&app(), live, &[]).unwrap()
    }

    #[test]
    fn a_parent_is_read_as_it_was_written() {
        let read = parent(last(Outcome::Applied, String::new()));
        assert_eq!(read.kinds, ["Deployment.apps".to_owned()].into());
        assert_eq!(read.namespaces, ["prod".to_owned(), "web".to_owned()].into());
        assert_eq!((read.members.len(), read.last), (1, Some(last(Outcome::Applied, String::new()))));
        assert_eq!(read.last_applied.map(|read| (read.input, read.marks.len())), Some(("1-1".to_owned(), 1)));
        assert_eq!(app_of(&read.live.raw.json()).map(|(app, _)| app), Some(app()));
    }

    #[test]
    fn what_is_no_parent_of_ours_is_refused() {
        let whole = parent(last(Outcome::Applied, String::new())).live.raw.value();
        let with = |pointer: &str, value: Value| {
            let mut object = whole.clone();
            *object.pointer_mut(pointer).unwrap() = value;
            let live = Live { raw: RawObject::from_value(&object), uid: "p".into(), resource_version: "1".into() };
            Parent::of(&app(), live, &[]).unwrap_err().message
        };
        let tooling = with("/metadata/annotations/applyset.kubernetes.io~1tooling", json!("kubectl/v1.36"));
        assert!(tooling.contains("belongs to \"kubectl/v1.36\""), "{tooling}");
        assert!(with("/metadata/labels", json!({})).contains("does not keep an app"));
        let damaged = |pointer: &str, value: Value, why: &str| {
            let message = with(pointer, value);
            let expected = format!("configmap/shop.gantry -n prod: the record of the app shop is damaged: {why}");
            assert_eq!(message, expected, "{pointer}");
        };
        damaged("/data/inventory", json!("x"), "line 1 of the inventory cannot be read");
        let last = "data.last is not in gantry's format";
        for text in ["{", "[]"] {
            damaged("/data/last", json!(text), &format!("{last} (line 1, column {})", text.len()));
        }
        damaged(
            "/data/inventory",
            json!(""),
            "the inventory lists 0 objects, but had 1 when it was written (see data.inventory-sum)",
        );
        let other = "apps Deployment web b u\n";
        let others = "the inventory does not list the objects that it had when it was written (see data.inventory-sum)";
        damaged("/data/inventory", json!(other), others);
        damaged("/data/inventory-sum", json!("1"), others);
        let last = whole["data"]["last"].clone();
        damaged("/data", json!({"last": last}), "data.inventory is missing");
    }

    #[test]
    fn a_record_that_was_written_before_there_was_a_sum_is_read() {
        let written = parent(last(Outcome::Applied, String::new()));
        let mut before = written.live.raw.value();
        assert!(before["data"].as_object_mut().unwrap().remove(SUM).is_some());
        let live = Live { raw: RawObject::from_value(&before), ..written.live };
        assert_eq!(Parent::of(&app(), live, &[]).unwrap().members, written.members);
    }

    #[test]
    fn a_run_that_writes_keeps_others_out_for_a_while() {
        let at =
            |minutes: i64| "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes);
        let elsewhere = parent(last(Outcome::Started, "elsewhere|x|1|2".into()));
        let problem = elsewhere.locked(at(14)).unwrap_err();
        assert!(problem.message.contains("ann on elsewhere began 840 s ago"), "{}", problem.message);
        assert!(elsewhere.locked(at(15)).is_ok());
        assert!(parent(last(Outcome::Failed, "elsewhere|x|1|2".into())).locked(at(1)).is_ok());
        let ours = holder(&BTreeMap::new());
        assert!(parent(last(Outcome::Started, ours)).locked(at(1)).is_err(), "this process runs");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_of_this_machine_that_has_ended_keeps_nobody_out() {
        let ours = holder(&BTreeMap::new());
        let (rest, _) = ours.rsplit_once('|').unwrap();
        assert!(is_gone(&format!("{rest}|1")), "the id belongs to a later process");
        assert!(!is_gone(&ours));
    }
}
