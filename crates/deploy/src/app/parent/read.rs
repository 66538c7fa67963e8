//! Reads a record: which app it keeps, its members and what the last run did.

use std::collections::BTreeSet;

use super::{ID_LABEL, KINDS, LAST, LAST_APPLIED, LastRun, NAMESPACES, OUR_TOOLING, Parent, SUM, TOOLING};
use crate::app::config_map::{ConfigMap, ConfigMapMetadata, not_as_written};
use crate::app::inventory::{self, AppMember, MemberLines};
use crate::app::last_applied::LastApplied;
use crate::app::parts::{self, InventoryParts};
use crate::app::{App, SUFFIX, check_name, config_maps};
use gantry_cluster::{ObjectToRead, Target};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, RawObject, is_dns_label};
use gantry_core::text::sanitize;

/// The keys of `data` that gantry writes.
const OUR_KEYS: [&str; 6] = [LAST, LAST_APPLIED, SUM, parts::KEY, inventory::KEYS[0], inventory::KEYS[1]];

/// How often to read a parent again that another run is writing.
const TRIES: u32 = 5;

/// The app that a ConfigMap of a list keeps, as its name and its label say, and the ConfigMap.
pub fn app_of(json: &str) -> Option<(App, LiveObject)> {
    let config_map = ConfigMap::parse(json).ok()?;
    let app = named_by(&config_map).filter(|app| config_map.label(ID_LABEL) == Some(&app.id()))?;
    let ConfigMapMetadata { uid, resource_version, .. } = config_map.metadata;
    Some((app, LiveObject { raw: RawObject::new(json), uid, resource_version }))
}

/// The app whose record a ConfigMap may be, as its name says, although its label does not. Its metadata is enough.
pub fn app_without_label(json: &str) -> Option<App> {
    // There may be very many ConfigMaps, and few of them are records.
    let config_map = json.contains(SUFFIX).then(|| ConfigMap::parse(json).ok()).flatten()?;
    named_by(&config_map).filter(|app| config_map.label(ID_LABEL) != Some(&app.id()))
}

fn named_by(config_map: &ConfigMap) -> Option<App> {
    let ConfigMapMetadata { name, namespace, .. } = &config_map.metadata;
    let name = name.strip_suffix(SUFFIX).filter(|name| check_name(name).is_ok())?;
    Some(App { name: name.to_owned(), namespace: namespace.clone()? })
}

/// Whether gantry wrote a ConfigMap as the record of an app, as its annotation or its data says.
pub fn is_of_gantry(json: &str) -> bool {
    ConfigMap::parse(json).is_ok_and(|record| is_ours(&record))
}

fn is_ours(record: &ConfigMap) -> bool {
    let is_annotated = record.annotation(TOOLING).is_some_and(|tooling| tooling.starts_with("gantry/"));
    let has = |key: &&str| record.value(key).is_some() || record.is_binary(key);
    is_annotated || has(&LAST) && inventory::KEYS.iter().any(has)
}

/// What a record that is not read otherwise says of the last run.
fn legible_last(record: &ConfigMap) -> Option<LastRun> {
    serde_json::from_str(record.value(LAST)?).ok()
}

/// The entries of an annotation that is a list.
fn listed(record: &ConfigMap, key: &str) -> BTreeSet<String> {
    let text = record.annotation(key).unwrap_or_default();
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

impl Parent {
    /// Reads the parent of an app; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or is not a parent of gantry's.
    pub async fn read(app: &App, target: &Target) -> Result<Option<Self>> {
        match Self::live(app, target).await? {
            Some(live) => Self::read_parts(app, live, target).await,
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
        match Self::read_parts(app, live.clone(), target).await {
            Err(Error::Failed(_)) => {
                let (parent, record) = Self::identified(app, live).map_err(Error::failed)?;
                // Another run may be writing it all the same.
                Ok(Some(Parent { last: legible_last(&record), is_damaged: true, ..parent }))
            }
            parent => parent,
        }
    }

    /// Reads the parent of an app also where another tool keeps it: its kinds and namespaces, and which tool that is,
    /// as a sentence names it. Nothing is known of the uids of its members, so none of them is deleted.
    ///
    /// # Errors
    /// It cannot be read, or is the parent of another ApplySet.
    pub async fn read_of_any_tool(app: &App, target: &Target) -> Result<Option<(Self, Option<String>)>> {
        let Some(live) = Self::live(app, target).await? else { return Ok(None) };
        let mut value = live.raw.value();
        let tooling = value["metadata"]["annotations"][TOOLING].as_str().unwrap_or_default().to_owned();
        if tooling.starts_with("gantry/") {
            return Ok(Self::read_parts(app, live, target).await?.map(|parent| (parent, None)));
        }
        value["metadata"]["annotations"][TOOLING] = "gantry/".into();
        let live = LiveObject { raw: RawObject::from_value(&value), ..live };
        let (parent, record) = Self::identified(app, live).map_err(Error::failed)?;
        let tool = match tooling.as_str() {
            "" => "an unnamed tool".to_owned(),
            name => format!("{:?}", sanitize(name)),
        };
        // It may be gantry's own without its annotation: a run that writes it keeps others out, and its parts are not
        // left behind.
        let parts = record.value(parts::KEY).map(|_| InventoryParts::default());
        Ok(Some((Parent { last: legible_last(&record), parts, ..parent }, Some(tool))))
    }

    /// Reads what may be the record of an app although its label does not say so; `None` where gantry did not write it.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn read_by_name(app: &App, target: &Target) -> Result<Option<LiveObject>> {
        Ok(Self::live(app, target).await?.filter(|live| is_of_gantry(&live.raw.json())))
    }

    async fn live(app: &App, target: &Target) -> Result<Option<LiveObject>> {
        let wanted = ObjectToRead { resource: config_maps().into(), object: app.parent().into() };
        Ok(target.read(&[wanted], &|_, _| ()).await?.pop().flatten())
    }

    /// The parent with the parts that it names. `None` if it was deleted in the meantime.
    ///
    /// # Errors
    /// As [`Self::read`]; a part of its inventory is missing.
    pub async fn read_parts(app: &App, live: LiveObject, target: &Target) -> Result<Option<Self>> {
        let mut live = live;
        let mut tries = TRIES;
        loop {
            let parts = ConfigMap::parse(&live.raw.json())
                .ok()
                .and_then(|record| InventoryParts::parse(&record).ok().flatten());
            let Some(parts) = parts.filter(|parts| !parts.parts.is_empty()) else {
                return Self::from_texts(app, live, &[]).map(Some).map_err(Error::failed);
            };
            let problem = match parts.read(app, target).await? {
                Ok(texts) => return Self::from_texts(app, live, &texts).map(Some).map_err(Error::failed),
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
    pub(super) fn from_texts(app: &App, live: LiveObject, texts: &[MemberLines]) -> std::result::Result<Self, Problem> {
        let (parent, record) = Self::identified(app, live)?;
        let broken = |why: &str| {
            let object = app.parent();
            let message = format!("{object}: the record of the app {} is damaged: {}", app.name, sanitize(why));
            Problem::new(message).help(parts::RESTORE)
        };
        if let Some(key) = OUR_KEYS.iter().find(|key| record.is_binary(key)) {
            return Err(broken(&format!("binaryData.{key} is there, where gantry writes data.{key}")));
        }
        let (kinds, namespaces) = (listed(&record, KINDS), listed(&record, NAMESPACES));
        if let Some(kind) = kinds.iter().find(|kind| !inventory::is_group_kind(kind)) {
            return Err(broken(&format!("its annotation {KINDS} names {kind:?}, which is not a kind")));
        }
        if let Some(namespace) = namespaces.iter().find(|namespace| !is_dns_label(namespace)) {
            return Err(broken(&format!("its annotation {NAMESPACES} names {namespace:?}, which is not a namespace")));
        }
        let parts = InventoryParts::parse(&record).map_err(|why| broken(&why))?;
        let is_split = parts.as_ref().is_some_and(|parts| !parts.parts.is_empty());
        let own = MemberLines::read(&record).ok_or_else(|| broken("data.inventory is missing"));
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
        let (pending, members) = members.into_iter().partition(AppMember::is_pending);
        Ok(Parent { members, pending, parts, last, last_applied, ..parent })
    }

    /// The parent without its data, and its ConfigMap.
    ///
    /// # Errors
    /// It is not a parent of gantry's.
    fn identified(app: &App, live: LiveObject) -> std::result::Result<(Self, ConfigMap), Problem> {
        let parent = app.parent();
        let wrong = |why: &str| Problem::new(format!("{parent} does not keep an app of gantry: {}", sanitize(why)));
        let record = ConfigMap::parse(&live.raw.json()).map_err(|error| wrong(&error.to_string()))?;
        let other_name = "choose another name for the app";
        let id = app.id();
        if record.label(ID_LABEL) != Some(&id) {
            let is = record.label(ID_LABEL).map_or("missing".to_owned(), |label| format!("{label:?}"));
            let help = match is_ours(&record) {
                true => format!(
                    "if it is the record of this app, restore the label: kubectl label {parent} --overwrite {ID_LABEL}={id}; if it \
                     is a copy of another app's record, delete it"
                ),
                false => other_name.to_owned(),
            };
            return Err(wrong(&format!("its label {ID_LABEL} is {is} and not {id:?}")).help(help));
        }
        match record.annotation(TOOLING).unwrap_or_default() {
            tooling if tooling.starts_with("gantry/") => {}
            "" => {
                let restore = format!("kubectl annotate {parent} --overwrite {TOOLING}={OUR_TOOLING}");
                let help = match is_ours(&record) {
                    true => {
                        format!("gantry wrote its data, so restore the annotation: {restore}; or begin a new inventory")
                    }
                    false => format!(
                        "if gantry kept it, restore the annotation: {restore}; if not, {other_name}, or take it over"
                    ),
                };
                let why = format!("its annotation {TOOLING} is missing, which names the tool that keeps it");
                return Err(wrong(&why).help(format!("{help} with gantry deploy --take-over-app")));
            }
            tooling => {
                let help = format!("{other_name}; to take the ApplySet over from that tool: --take-over-app");
                return Err(wrong(&format!("its ApplySet belongs to {tooling:?}")).help(help));
            }
        }
        // A record that names anything else is damaged, and can still be forgotten.
        let kinds = listed(&record, KINDS).into_iter().filter(|kind| inventory::is_group_kind(kind)).collect();
        let namespaces = listed(&record, NAMESPACES).into_iter().filter(|namespace| is_dns_label(namespace));
        let namespaces = namespaces.chain([app.namespace.clone()]).collect();
        let parent = Parent {
            app: app.clone(),
            live,
            kinds,
            namespaces,
            members: BTreeSet::new(),
            pending: BTreeSet::new(),
            parts: None,
            last: None,
            last_applied: None,
            is_damaged: false,
        };
        Ok((parent, record))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{app, last, parent};
    use super::super::{RunOutcome, SUM};
    use super::*;

    #[test]
    fn a_parent_is_read_as_it_was_written() {
        let read = parent(last(RunOutcome::Applied, String::new()));
        assert_eq!(read.kinds, ["Deployment.apps".to_owned()].into());
        assert_eq!(read.namespaces, ["prod".to_owned(), "web".to_owned()].into());
        assert_eq!((read.members.len(), read.last), (1, Some(last(RunOutcome::Applied, String::new()))));
        assert_eq!(read.last_applied.map(|read| (read.input, read.marks.len())), Some(("1-1".to_owned(), 1)));
        assert_eq!(app_of(&read.live.raw.json()).map(|(app, _)| app), Some(app()));
    }

    #[test]
    fn an_object_that_is_not_a_record_of_ours_is_refused() {
        let whole = parent(last(RunOutcome::Applied, String::new())).live.raw.value();
        let with = |pointer: &str, value: Value| {
            let mut object = whole.clone();
            *object.pointer_mut(pointer).unwrap() = value;
            let live =
                LiveObject { raw: RawObject::from_value(&object), uid: "p".into(), resource_version: "1".into() };
            Parent::from_texts(&app(), live, &[]).unwrap_err().message
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
    fn a_record_without_a_checksum_is_read() {
        let written = parent(last(RunOutcome::Applied, String::new()));
        let mut before = written.live.raw.value();
        assert!(before["data"].as_object_mut().unwrap().remove(SUM).is_some());
        let live = LiveObject { raw: RawObject::from_value(&before), ..written.live };
        assert_eq!(Parent::from_texts(&app(), live, &[]).unwrap().members, written.members);
    }
}
