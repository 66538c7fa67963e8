//! Reads a record: which app it keeps, its members and what the last run did.

use std::collections::BTreeSet;

use super::{ID_LABEL, KINDS, LAST, LAST_APPLIED, NAMESPACES, Parent, SUM, TOOLING};
use crate::app::config_map::{ConfigMap, not_as_written};
use crate::app::inventory::{self, Text};
use crate::app::last_applied::LastApplied;
use crate::app::parts::{self, Parts};
use crate::app::{App, SUFFIX, config_maps};
use crate::cluster::{Target, Wanted};
use crate::problem::{Error, Problem, Result};
use crate::resource::{Live, RawObject};
use crate::text::sanitize;

/// How often a parent is read again that is being written.
const TRIES: u32 = 5;

/// The app that a ConfigMap of a list keeps, as its name says, and the ConfigMap.
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
    /// Reads the parent of an app; `None` where there is none yet.
    ///
    /// # Errors
    /// It cannot be read, or is not a parent of gantry's.
    pub async fn read(app: &App, target: &Target) -> Result<Option<Self>> {
        match Self::live(app, target).await? {
            Some(live) => Self::whole(app, live, target).await,
            None => Ok(None),
        }
    }

    /// Reads the parent of an app that is given up. Of a record that cannot be read no member is known: the label alone tells
    /// them.
    ///
    /// # Errors
    /// It cannot be read at all, or is not a parent of gantry's.
    pub async fn read_to_forget(app: &App, target: &Target) -> Result<Option<Self>> {
        let Some(live) = Self::live(app, target).await? else { return Ok(None) };
        match Self::whole(app, live.clone(), target).await {
            Err(Error::Failed(_)) => {
                let (parent, record) = Self::identified(app, live).map_err(Error::failed)?;
                // Another run may be writing it all the same, and there may be parts, whatever it says of them.
                let last = record.value(LAST).and_then(|last| serde_json::from_str(last).ok());
                Ok(Some(Parent { last, parts: Some(Parts::default()), ..parent }))
            }
            parent => parent,
        }
    }

    /// Reads the parent of an app also where another tool keeps it: its kinds and namespaces, and the name of the tool. Nothing
    /// is known of the uids of its members, so none of them is deleted.
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

    /// The parent as it was read, with the parts that it names. `None` where it is gone by now.
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
            // Another run may have written the record meanwhile, and deleted what it no longer names.
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
    /// It is not a parent of gantry's, or not as gantry wrote it.
    pub(super) fn of(app: &App, live: Live, texts: &[Text]) -> std::result::Result<Self, Problem> {
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
            inventory::is_of(sum, &members).map_err(|why| broken(&format!("{why}, says data.{SUM}")))?;
        }
        let last = record.value(LAST).map(serde_json::from_str).transpose();
        let last = last.map_err(|error| broken(&not_as_written(LAST, "gantry", &error)))?;
        let beside = if is_split { record.value(parts::KEY) } else { own.first().map(|text| &*text.text) };
        let kept = record.value(LAST_APPLIED);
        let last_applied = kept.and_then(|kept| LastApplied::decode(kept, &members, beside.unwrap_or_default()));
        Ok(Parent { members, parts, last, last_applied, ..parent })
    }

    /// The parent without anything of its data, and its ConfigMap.
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
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{app, last, parent};
    use super::super::{Outcome, SUM};
    use super::*;

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
        let last = "data.last is not as gantry writes it";
        for text in ["{", "[]"] {
            damaged("/data/last", json!(text), &format!("{last} (line 1, column {})", text.len()));
        }
        damaged(
            "/data/inventory",
            json!(""),
            "the inventory has 0 objects and had 1 when it was written, says data.inventory-sum",
        );
        let other = "apps Deployment web b u\n";
        let others = "the inventory has not the objects that it had when it was written, says data.inventory-sum";
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
}
