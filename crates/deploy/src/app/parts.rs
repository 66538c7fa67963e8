//! An inventory that is too large for the app's record: it is split into ConfigMaps, `NAME.gantry-2` and so on.
//!
//! A part is never changed. To store another inventory, a run first creates parts under unused numbers, then writes the
//! record, which names the parts that count with a digest of each, and deletes the other parts last. So at any moment
//! the parts that the record names exist and match their digests, whatever stops a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::config_map::{ConfigMap, not_as_written};
use super::inventory::{MOST_PARTS, MemberLines};
use super::members::{self, AppObject};
use super::not_recorded::NotRecorded;
use super::{App, MANAGER, config_maps};
use gantry_cluster::patience::Patience;
use gantry_cluster::{Apply, ApplyError, Delete, FormerTools, ListRequest, ObjectToRead, Target, WritePrecondition};
use gantry_core::problem::{Problem, Result};
use gantry_core::resource::{ObjectRef, RawObject};

/// The label that identifies parts; its value is the identifier of the app.
pub(crate) const OF: &str = "gantry.dev/inventory-of";
/// The key of the record's `data` for [`InventoryParts`].
pub(crate) const KEY: &str = "parts";

/// The record itself is the first.
const FIRST: u32 = 2;
const PAGE: u32 = 500;

/// The entry in a record about its parts. It is present whenever parts may exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryParts {
    /// The parts that together are the inventory.
    pub parts: Vec<InventoryPart>,
    /// The new name of the app, which has all of its members: only this record is left to delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
}

/// One part, as a record names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryPart {
    /// The number at the end of its ConfigMap's name.
    pub number: u32,
    /// The digest of its text.
    pub sum: String,
}

/// Existing part objects, by number.
pub(crate) type Existing = BTreeMap<u32, AppObject>;

impl InventoryParts {
    /// Reads the entry of a record; `None` if it has none.
    ///
    /// # Errors
    /// The entry is invalid.
    pub fn parse(record: &ConfigMap) -> std::result::Result<Option<Self>, String> {
        let Some(text) = record.value(KEY) else { return Ok(None) };
        let parts: InventoryParts =
            serde_json::from_str(text).map_err(|error| not_as_written(KEY, "gantry", &error))?;
        if parts.parts.len() > MOST_PARTS {
            return Err(format!("data.{KEY} names more than {MOST_PARTS} parts"));
        }
        let (mut numbers, mut sums) = (BTreeSet::new(), BTreeSet::new());
        // No two parts have the same text, so two numbers with the same digest are a duplicate as well.
        match parts.parts.iter().find(|part| !(numbers.insert(part.number) && sums.insert(&part.sum))) {
            Some(part) => Err(format!("data.{KEY} lists part {} twice", part.number)),
            None => Ok(Some(parts)),
        }
    }

    /// Reads the parts and checks that they are unchanged.
    ///
    /// # Errors
    /// The server does not answer. The inner error: a part is missing or was changed.
    pub async fn read(&self, app: &App, target: &Target) -> Result<std::result::Result<Vec<MemberLines>, Problem>> {
        let resource = Arc::new(config_maps());
        let wanted =
            |part: &InventoryPart| ObjectToRead { resource: resource.clone(), object: object(app, part.number).into() };
        let wanted: Vec<ObjectToRead> = self.parts.iter().map(wanted).collect();
        let read = target.read(&wanted, &|_, _| ()).await?;
        let text =
            |((part, wanted), live): ((&InventoryPart, &ObjectToRead), Option<gantry_core::resource::LiveObject>)| {
                let wrong = |what: &str| {
                    let message = format!("{} {what} a part of the inventory of the app {}", wanted.object, app.name);
                    Problem::new(message).help(RESTORE)
                };
                let live = live.ok_or_else(|| wrong("is missing: it held"))?;
                let config_map = ConfigMap::parse(&live.raw.json()).map_err(|_| wrong("does not hold"))?;
                let text = MemberLines::read(&config_map).filter(|text| sum(text) == part.sum);
                text.ok_or_else(|| wrong("was changed by another client: it no longer holds"))
            };
        Ok(self.parts.iter().zip(&wanted).zip(read).map(text).collect())
    }

    /// The part with this text, if there is one already.
    pub fn find(&self, text: &MemberLines) -> Option<&InventoryPart> {
        let sum = sum(text);
        self.parts.iter().find(|part| part.sum == sum)
    }
}

/// What to do if the inventory cannot be read.
pub const RESTORE: &str = "restore the ConfigMap from a backup; gantry deletes nothing without it. To begin again with what the \
                           manifests hold: gantry apps forget -a APP -n NAMESPACE";

/// The ConfigMap of a part.
pub(crate) fn object(app: &App, number: u32) -> ObjectRef {
    let parent = app.parent();
    ObjectRef { name: format!("{}-{number}", parent.name), ..parent }
}

/// The number of a part, from the name of its object.
pub fn number(app: &App, object: &ObjectRef) -> Option<u32> {
    let parent = app.parent();
    let text = object.name.strip_prefix(&parent.name)?.strip_prefix('-')?;
    let number = text.parse().ok().filter(|number: &u32| number.to_string() == text)?;
    (object.identity() == self::object(app, number).identity()).then_some(number)
}

/// Every part object of the app, including those that no record names.
///
/// # Errors
/// They cannot be listed.
pub(crate) async fn existing(app: &App, target: &Target) -> std::result::Result<Existing, Problem> {
    let resource = Arc::new(config_maps());
    let selector = format!("{OF}={}", app.id());
    let request = ListRequest {
        namespace: Some(&app.namespace),
        label_selector: Some(&selector),
        metadata_only: true,
        ..ListRequest::new(&resource, PAGE)
    };
    let gather = |all: &mut Existing, json: &str| {
        let Some(found) = members::read(json, &resource) else { return };
        all.extend(number(app, &found.object).map(|number| (number, found)));
    };
    target.list(&request).gather(gather).await.map_err(|error| {
        let what = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
        let message =
            format!("could not look for the parts of the inventory of the app {}: {}", app.name, what.message);
        Problem { message, ..what }
    })
}

/// Creates a part under an unused number.
///
/// # Errors
/// It cannot be created, or an object with that name exists.
pub(crate) async fn create(
    app: &App,
    taken: &mut BTreeSet<u32>,
    text: &MemberLines,
    patience: Patience<'_>,
    target: &Target,
) -> std::result::Result<InventoryPart, NotRecorded> {
    let number = (FIRST..).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
    taken.insert(number);
    let object = object(app, number);
    let raw = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object.name, "namespace": app.namespace, "labels": {OF: app.id()}},
        "immutable": true,
        "data": {text.key(): text.text},
    });
    let apply = Apply {
        resource: &config_maps(),
        object: &object,
        raw: &RawObject::from_value(&raw),
        live: None,
        pin: &WritePrecondition::Absent,
        field_manager: MANAGER,
        force_conflicts: true,
        former_tools: FormerTools::Keep,
        helm: None,
    };
    match patience.apply(&apply, target).await {
        Ok(_) => Ok(InventoryPart { number, sum: sum(text) }),
        Err(error @ (ApplyError::Refused(_) | ApplyError::Unknown(_) | ApplyError::NotYet(..))) => {
            let what = format!("the inventory of the app {} cannot be stored", app.name);
            Err(NotRecorded::from_error(error, &what, target).await)
        }
        Err(ApplyError::Changed | ApplyError::Conflict(_)) => {
            let message =
                format!("{object} already exists, but a part of the inventory of the app {} needs its name", app.name);
            let help = "run the same command again, if another deploy of the app has just begun; if not, delete or \
                        rename the object";
            Err(Problem::new(message).help(help).into())
        }
    }
}

/// Deletes the parts that a record does not name. Only parts that existed before the record was written are deleted: no
/// later writer relies on one of them.
///
/// # Errors
/// A part could not be deleted.
pub(crate) async fn delete_unnamed_parts(
    existing: &Existing,
    named: &InventoryParts,
    target: &Target,
) -> std::result::Result<(), Problem> {
    let resource = config_maps();
    let is_named = |number: u32| named.parts.iter().any(|part| part.number == number);
    for (_, AppObject { object, facts, .. }) in existing.iter().filter(|(number, _)| !is_named(**number)) {
        let (uid, resource_version) = (&facts.uid, &facts.resource_version);
        let delete = Delete { resource: &resource, object, uid, resource_version, foreground: false };
        target.delete(&delete).await.map_err(|error| {
            Problem::new(format!("{object} could not be deleted: {error}")).help("run the same command again")
        })?;
    }
    Ok(())
}

fn sum(text: &MemberLines) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_their_names() {
        let app = App { name: "shop".into(), namespace: "prod".into() };
        let of = |name: &str| number(&app, &ObjectRef { name: name.into(), ..app.parent() });
        assert_eq!((of("shop.gantry-2"), of("shop.gantry-17")), (Some(2), Some(17)));
        for other in ["shop.gantry", "shop.gantry-", "shop.gantry-02", "shop.gantry-x", "store.gantry-2"] {
            assert_eq!(of(other), None, "{other}");
        }
        let elsewhere = ObjectRef { namespace: Some("other".into()), ..object(&app, 2) };
        assert_eq!((number(&app, &object(&app, 2)), number(&app, &elsewhere)), (Some(2), None));
    }

    #[test]
    fn a_record_names_its_parts_and_not_too_many() {
        let of = |data: serde_json::Value| {
            InventoryParts::parse(
                &ConfigMap::parse(&json!({"metadata": {"name": "a"}, "data": data}).to_string()).unwrap(),
            )
        };
        assert_eq!(of(json!({})), Ok(None));
        assert_eq!(of(json!({"parts": r#"{"parts":[]}"#})), Ok(Some(InventoryParts::default())));
        assert!(of(json!({"parts": "{"})).is_err());
        for (text, column) in [("[1]", 2), (r#"{"parts":[{"number":2}]}"#, 22), (r#"{"parts":{}}"#, 9)] {
            let why = of(json!({"parts": text})).unwrap_err();
            assert_eq!(why, format!("data.parts is not in gantry's format (line 1, column {column})"), "{text}");
        }
        let part = |number: u32| InventoryPart { number, sum: format!("x{number}") };
        let many = |count: usize| InventoryParts { parts: (2..).map(part).take(count).collect(), renamed_to: None };
        let written = |parts: &InventoryParts| json!({"parts": serde_json::to_string(parts).unwrap()});
        for (number, sum) in [(2, "y"), (3, "x2")] {
            let again = InventoryPart { number, sum: sum.to_owned() };
            let twice = InventoryParts { parts: vec![part(2), again], renamed_to: None };
            assert_eq!(of(written(&twice)).unwrap_err(), format!("data.parts lists part {number} twice"));
        }
        assert_eq!(of(written(&many(MOST_PARTS))), Ok(Some(many(MOST_PARTS))));
        assert!(of(written(&many(MOST_PARTS + 1))).unwrap_err().contains("more than 16 parts"));
    }
}
