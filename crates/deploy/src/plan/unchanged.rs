//! Decides without asking the server whether applying a manifest again would change anything.
//!
//! Server-side apply records in `metadata.managedFields` which fields each field manager set. An object is unchanged
//! if our manager's entry names exactly the fields of the manifest and the live values are the manifest's. Values
//! that the server added (defaults) are not in our entry and do not matter. For an atomic list or map the entry
//! names only the whole. There, a live key that the manifest lacks counts as a change unless it is a known default, and
//! an empty value of the manifest that the live object lacks counts as one unless the server is known to drop it: an
//! unnecessary apply is a no-op for the server, a skipped one would go unnoticed. Such a change is doubtful: only the
//! server knows for every kind what it drops, fills in and normalises, so it is asked (`doubtful.rs`).
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/server-side-apply/>, and the `fieldsV1` format of
//! `sigs.k8s.io/structured-merge-diff` (`f:` a field, `k:` a list item by its keys, `v:` a set member).

mod items;

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use serde::Deserialize;
use serde_json::Value;

use self::items::ItemRecord;
use super::{built_in, export};
use gantry_core::crd::CrdSides;
use gantry_core::managed_fields::{FieldSet, ListItemKey};
use gantry_core::merge;
use gantry_core::resource::{ObjectRef, RawObject, SERVER_METADATA};
use gantry_schema::json::{Json, JsonMap};
use gantry_schema::scan;

/// What the comparison depends on, apart from the two objects.
pub struct ComparisonContext<'a> {
    /// The field manager of this deploy.
    pub field_manager: &'a str,
    /// For a custom resource: the structural schema of its version, for defaults inside atomic lists and maps.
    pub schema: Option<&'a Json<'a>>,
    /// Whether the kind is compiled into the API server, whose Go types drop zero values and normalise quantities.
    pub built_in: bool,
}

/// The result of a comparison. For several parts, the last of these variants that occurs counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectComparison {
    Unchanged,
    /// They differ only in what the server may drop, fill in or normalise.
    Doubtful,
    Changed,
}

use ObjectComparison::{Changed, Doubtful, Unchanged};

impl ObjectComparison {
    fn changed_if(is_changed: bool) -> Self {
        if is_changed { Changed } else { Unchanged }
    }
}

/// Combines the results of all parts; stops at the first that changed.
fn combine_comparisons(parts: impl IntoIterator<Item = ObjectComparison>) -> ObjectComparison {
    let mut all = Unchanged;
    for part in parts {
        all = all.max(part);
        if all == Changed {
            break;
        }
    }
    all
}

/// Whether a deploy of `desired` over `live` would leave the object as it is. `crd` has both if they are CRDs.
pub fn compare(
    object: &ObjectRef,
    desired: &RawObject,
    live: &RawObject,
    crd: Option<&CrdSides>,
    facts: &ComparisonContext<'_>,
) -> ObjectComparison {
    if export::is_current(desired, live, facts.built_in) {
        return Unchanged;
    }
    // Most objects that change were last written by another manager, which shows without parsing the whole object.
    let entry = match record_of(live, object, facts.field_manager) {
        OwnManagerEntry::Ours(index) => Some(index),
        OwnManagerEntry::Others => return Changed,
        // The server keeps no entry for an apply that owns nothing, such as a Namespace with only a name.
        OwnManagerEntry::OnlyOthers => return ObjectComparison::changed_if(!owns_nothing(desired, facts)),
        // A folder of manifests may have no managedFields: then only the values count, and what the next version lacks.
        OwnManagerEntry::None => None,
    };
    if crd.is_some_and(CrdSides::has_other_text) {
        return Changed;
    }
    let is_secret = facts.built_in && object.kind == "Secret" && object.group().is_empty();
    let desired = if is_secret { Cow::Owned(with_encoded_data(desired.value()).to_string()) } else { desired.json() };
    let live = live.json();
    if entry.is_none() && gives_up_fields(&live, &desired, crd) {
        return Changed;
    }
    let walk = UnchangedWalk { facts, is_crd: object.is_crd(), is_secret, group: object.group() };
    // The versions are most of a CRD. Many releases change only its labels or nothing, which shows without parsing
    // them.
    if let Some(crd) = crd
        && let Some((live, desired)) = crd.without_versions()
    {
        match walk.texts(&desired, &live, entry) {
            Changed => return Changed,
            // The field is ours as a whole, otherwise the rest would not be unchanged.
            Unchanged if crd.has_same_versions() => return Unchanged,
            Unchanged | Doubtful => {}
        }
    }
    walk.texts(&desired, &live, entry)
}

/// `metadata.managedFields[index].fieldsV1`
fn record<'j>(live: &'j Json<'j>, index: usize) -> Option<&'j Json<'j>> {
    live.map()?.get("metadata")?.map()?.get("managedFields")?.list()?.get(index)?.map()?.get("fieldsV1")
}

/// Whether the manifest has no field that a manager could own.
fn owns_nothing(desired: &RawObject, facts: &ComparisonContext<'_>) -> bool {
    let json = desired.json();
    // Most objects have a spec. Then the rest need not be parsed.
    if scan::member(&json, "spec").is_some() {
        return false;
    }
    let Ok(desired) = Json::parse_bounded(&json) else { return false };
    let says_something = |(key, value): (&str, &Json<'_>)| match key {
        "metadata" => !says_nothing(value),
        // For built-in kinds the status is written only through the status subresource.
        "status" => !facts.built_in,
        key => ComparisonPlace::Object.is_ownable(key),
    };
    desired.map().is_some_and(|desired| !desired.iter().any(says_something))
}

/// Whether an apply of `desired` removes a field from a live object that is a manifest.
fn gives_up_fields(live: &str, desired: &str, crd: Option<&CrdSides>) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    // The versions are most of a CRD, and both have them.
    let (live, desired) = match crd.and_then(CrdSides::without_versions) {
        Some((live, desired)) => (read(&live), read(&desired)),
        None => (read(live), read(desired)),
    };
    live.zip(desired).is_some_and(|(live, desired)| merge::gives_up_fields(&live, &desired))
}

enum OwnManagerEntry {
    None,
    /// Our entry has another version.
    Others,
    /// Only other managers have entries.
    OnlyOthers,
    /// The index of our entry in `metadata.managedFields`.
    Ours(usize),
}

fn record_of(live: &RawObject, object: &ObjectRef, field_manager: &str) -> OwnManagerEntry {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct UnchangedMetadata {
        #[serde(default)]
        managed_fields: Vec<UnchangedFieldsEntry>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct UnchangedFieldsEntry {
        manager: String,
        operation: String,
        api_version: String,
        subresource: String,
    }
    let metadata = scan::member(&live.json(), "metadata").and_then(|text| serde_json::from_str(text).ok());
    let entries = metadata.map_or_else(Vec::new, |metadata: UnchangedMetadata| metadata.managed_fields);
    let ours = |entry: &UnchangedFieldsEntry| {
        entry.manager == field_manager && entry.operation == "Apply" && entry.subresource.is_empty()
    };
    match entries.iter().position(|entry| ours(entry) && entry.api_version == object.api_version) {
        Some(index) => OwnManagerEntry::Ours(index),
        None if entries.is_empty() => OwnManagerEntry::None,
        None if entries.iter().any(ours) => OwnManagerEntry::Others,
        None => OwnManagerEntry::OnlyOthers,
    }
}

/// The server stores a Secret's `stringData` as base64 in `data`, and records the fields under `stringData`.
fn with_encoded_data(mut secret: Value) -> Value {
    if let Some(Value::Object(text)) = secret.as_object_mut().and_then(|map| map.shift_remove("stringData")) {
        let data = &mut secret["data"];
        if !data.is_object() {
            *data = Value::Object(serde_json::Map::new());
        }
        for (key, value) in text {
            let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
            data[key] = Value::String(encoded);
        }
    }
    secret
}

/// The place of a comparison within the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparisonPlace<'k> {
    Object,
    Metadata,
    /// The member `key` of the member `parent`, or an item of its list.
    Below {
        parent: &'k str,
        key: &'k str,
    },
}

impl<'k> ComparisonPlace<'k> {
    fn child<'n>(self, key: &'n str) -> ComparisonPlace<'n>
    where
        'k: 'n,
    {
        match self {
            ComparisonPlace::Object if key == "metadata" => ComparisonPlace::Metadata,
            ComparisonPlace::Object => ComparisonPlace::Below { parent: "", key },
            ComparisonPlace::Metadata => ComparisonPlace::Below { parent: "metadata", key },
            ComparisonPlace::Below { key: parent, .. } => ComparisonPlace::Below { parent, key },
        }
    }

    /// Whether a manager can own the member. Others are set by the request or by the server.
    fn is_ownable(self, key: &str) -> bool {
        match self {
            ComparisonPlace::Object => !matches!(key, "apiVersion" | "kind"),
            ComparisonPlace::Metadata => !matches!(key, "name" | "namespace") && !SERVER_METADATA.contains(&key),
            ComparisonPlace::Below { .. } => true,
        }
    }
}

struct UnchangedWalk<'a> {
    facts: &'a ComparisonContext<'a>,
    is_crd: bool,
    is_secret: bool,
    /// The API group of the object.
    group: &'a str,
}

impl UnchangedWalk<'_> {
    /// Compares the objects of two texts. `entry`: the index of our entry in the live object's
    /// `metadata.managedFields`.
    fn texts(&self, desired: &str, live: &str, entry: Option<usize>) -> ObjectComparison {
        let (Ok(desired), Ok(live)) = (Json::parse_bounded(desired), Json::parse_bounded(live)) else { return Changed };
        let mut owned = entry.and_then(|index| record(&live, index)).map(FieldSet::parse);
        if let Some(owned) = owned.as_mut().filter(|_| self.is_secret) {
            owned.rename("stringData", "data");
        }
        self.granular(&desired, &live, owned.as_ref(), self.facts.schema, ComparisonPlace::Object)
    }

    /// Compares a node whose other parts may belong to other managers. `owned` is `None` without managedFields.
    fn granular(
        &self,
        desired: &Json<'_>,
        live: &Json<'_>,
        owned: Option<&FieldSet>,
        schema: Option<&Json<'_>>,
        at: ComparisonPlace<'_>,
    ) -> ObjectComparison {
        match owned {
            // A leaf of managedFields: a scalar, or a list or map that is owned as a whole.
            Some(owned) if !owned.has_below() => return self.compare_atomic(desired, live, schema, at),
            Some(_) => {}
            None if member(schema, "x-kubernetes-map-type").and_then(Json::text) == Some("atomic") => {
                return self.compare_atomic(desired, live, schema, at);
            }
            None if self.facts.built_in
                && matches!(desired, Json::Map(_))
                && matches!(at, ComparisonPlace::Below { key, .. } if built_in::is_atomic_map(key)) =>
            {
                return self.compare_atomic(desired, live, schema, at);
            }
            None => {}
        }
        match (desired, live) {
            (Json::Map(desired), Json::Map(live)) => self.map(desired, live, owned, schema, at),
            (Json::List(desired), Json::List(live)) => match owned {
                Some(owned) => self.list(desired, live, owned, schema, at),
                None => self.whole_list(desired, live, schema, at),
            },
            _ => self.compare_atomic(desired, live, schema, at),
        }
    }

    fn map(
        &self,
        desired: &JsonMap<'_>,
        live: &JsonMap<'_>,
        owned: Option<&FieldSet>,
        schema: Option<&Json<'_>>,
        at: ComparisonPlace<'_>,
    ) -> ObjectComparison {
        // The apply would remove a field of ours that the manifest no longer has.
        let has = |key: &str| at.is_ownable(key) && desired.get(key).is_some();
        if !owned.is_none_or(|owned| owned.fields().all(|(name, _)| has(name))) {
            return Changed;
        }
        let fields = desired.iter().filter(|(key, _)| at.is_ownable(key));
        combine_comparisons(fields.map(|(key, value)| {
            let below = at.child(key);
            let record = match owned {
                // Our entry names all fields of the manifest, including those that the server drops.
                Some(owned) => match owned.field(key) {
                    Some(record) => Some(record),
                    // Written through the status subresource only: the server ignores it here.
                    None if at == ComparisonPlace::Object && key == "status" => return Unchanged,
                    None if below == ComparisonPlace::Metadata => return of_unrecorded_metadata(value),
                    // For a list that is merged by item, managedFields name the items, so an empty list is not in them.
                    None if matches!(value, Json::List(_))
                        && self.is_dropped(key, value)
                        && live.get(key).is_none() =>
                    {
                        return Unchanged;
                    }
                    None if is_blank(value) => return Doubtful,
                    None => return Changed,
                },
                None => None,
            };
            match live.get(key) {
                // A list of a Go type without `omitempty`.
                Some(Json::Null) if self.is_built_in_and_empty(value) => Unchanged,
                Some(Json::Null) | None if self.is_dropped(key, value) => Unchanged,
                // A field in our entry that does not exist was dropped by the server; otherwise the entry would not
                // have it.
                Some(Json::Null) | None if record.is_some() || is_blank(value) => Doubtful,
                Some(Json::Null) | None => Changed,
                Some(live) => self.granular(value, live, record, child(schema, key), below),
            }
        }))
    }

    fn list(
        &self,
        desired: &[Json<'_>],
        live: &[Json<'_>],
        owned: &FieldSet,
        schema: Option<&Json<'_>>,
        at: ComparisonPlace<'_>,
    ) -> ObjectComparison {
        let items = member(schema, "items");
        let records: Vec<ItemRecord<'_>> = owned.items().collect();
        if desired.len() != records.len() + owned.fields().count() {
            return Changed;
        }
        // For each live item, the index of the same item of the manifest.
        let mut places: Vec<Option<usize>> = vec![None; live.len()];
        let of_items = combine_comparisons(desired.iter().enumerate().map(|(index, item)| {
            let Some((key, fields)) = items::record_of(item, &records, desired) else { return Changed };
            let mut found = None;
            for (place, known) in places.iter_mut().zip(live).filter(|(_, known)| key.identifies(*known)) {
                *place = Some(index);
                found.get_or_insert(known);
            }
            match (key, found) {
                (_, None) => Changed,
                (ListItemKey::Keys(keys), Some(live)) => {
                    let fields = without_defaulted_keys(fields, item, keys);
                    self.granular(item, live, Some(&fields), items, at)
                }
                (_, Some(_)) => Unchanged,
            }
        }));
        // Admission may have its own order.
        let of_order = match of_items {
            Changed => Changed,
            _ if merge::keeps_order(&places, desired.len()) => Unchanged,
            _ => Doubtful,
        };
        of_items.max(of_order)
    }

    /// Compares a value that one manager owns as a whole, apart from what the server defaults or normalises.
    fn compare_atomic(
        &self,
        desired: &Json<'_>,
        live: &Json<'_>,
        schema: Option<&Json<'_>>,
        at: ComparisonPlace<'_>,
    ) -> ObjectComparison {
        match (desired, live) {
            (Json::Map(desired), Json::Map(live)) => {
                let wanted = desired.iter().map(|(key, value)| match live.get(key) {
                    Some(Json::Null) | None if self.is_dropped(key, value) => Unchanged,
                    Some(Json::Null) | None if self.facts.built_in || is_blank(value) => self.one_sided(),
                    Some(Json::Null) | None => Changed,
                    Some(live) => self.compare_atomic(value, live, child(schema, key), at.child(key)),
                });
                let added = live.iter().filter(|(key, _)| desired.get(key).is_none());
                let added = added.map(|(key, value)| match self.is_default(key, value, child(schema, key)) {
                    true => Unchanged,
                    false => self.one_sided(),
                });
                combine_comparisons(wanted.chain(added))
            }
            (Json::List(desired), Json::List(live)) => self.whole_list(desired, live, schema, at),
            (a, b) if a == b => Unchanged,
            (Json::Null, _) => Doubtful,
            (Json::Int(_) | Json::Float(_), Json::Int(_) | Json::Float(_)) => {
                match built_in::number(desired) == built_in::number(live) {
                    true => Unchanged,
                    false if is_blank(desired) => Doubtful,
                    false => Changed,
                }
            }
            (a, b) => match at {
                ComparisonPlace::Below { parent, key } if self.facts.built_in && built_in::is_quantity(parent, key) => {
                    ObjectComparison::changed_if(!built_in::same_quantity(a, b))
                }
                // An empty value that the server fills in: `restartPolicy: ""`, `periodSeconds: 0`.
                _ if matches!(a, Json::Text(text) if text.is_empty()) || built_in::may_mean_the_same(a, b) => Doubtful,
                _ => Changed,
            },
        }
    }

    fn whole_list(
        &self,
        desired: &[Json<'_>],
        live: &[Json<'_>],
        schema: Option<&Json<'_>>,
        at: ComparisonPlace<'_>,
    ) -> ObjectComparison {
        let items = member(schema, "items");
        if desired.len() > live.len() {
            return Changed;
        }
        let of_items = combine_comparisons(desired.iter().zip(live).map(|(a, b)| self.compare_atomic(a, b, items, at)));
        // Admission may have added some.
        of_items.max(if desired.len() == live.len() { Unchanged } else { self.one_sided() })
    }

    /// Compares a field that is on one side only, inside a value that is owned as a whole. For the versions of a CRD,
    /// it is known exactly what the server drops and fills in.
    fn one_sided(&self) -> ObjectComparison {
        if self.is_crd { Changed } else { Doubtful }
    }

    /// Whether the server drops such a value: null everywhere, some empty values in its own types.
    fn is_dropped(&self, key: &str, value: &Json<'_>) -> bool {
        match value {
            Json::Null => true,
            _ if !self.facts.built_in => false,
            _ if self.is_crd => built_in::is_dropped_from_crd(key, value),
            _ => built_in::is_dropped(key, value),
        }
    }

    fn is_built_in_and_empty(&self, value: &Json<'_>) -> bool {
        self.facts.built_in && !self.is_crd && matches!(value, Json::List(items) if items.is_empty())
    }

    fn is_default(&self, key: &str, live: &Json<'_>, schema: Option<&Json<'_>>) -> bool {
        if self.facts.built_in {
            return built_in::is_default(self.group, key, live);
        }
        schema.is_some_and(|schema| is_what_is_defaulted(schema, live))
    }
}

/// Whether the value is empty at every depth, so that the server may drop it.
fn is_blank(value: &Json<'_>) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(flag) => !flag,
        Json::Int(number) => *number == 0,
        Json::Float(number) => *number == 0.0,
        Json::Text(text) => text.is_empty(),
        Json::List(items) => items.is_empty(),
        Json::Map(map) => map.iter().all(|(_, value)| is_blank(value)),
    }
}

fn member<'j>(node: Option<&'j Json<'_>>, key: &str) -> Option<&'j Json<'j>> {
    node?.map()?.get(key)
}

fn child<'s>(schema: Option<&'s Json<'_>>, key: &str) -> Option<&'s Json<'s>> {
    member(member(schema, "properties"), key).or_else(|| member(schema, "additionalProperties"))
}

/// Whether no manager can own anything in the metadata.
fn says_nothing(metadata: &Json<'_>) -> bool {
    of_unrecorded_metadata(metadata) == Unchanged
}

/// Compares metadata without managedFields.
fn of_unrecorded_metadata(metadata: &Json<'_>) -> ObjectComparison {
    let Some(metadata) = metadata.map() else { return Changed };
    let ownable = metadata.iter().filter(|(key, _)| ComparisonPlace::Metadata.is_ownable(key));
    combine_comparisons(ownable.map(|(_, value)| if is_blank(value) { Doubtful } else { Changed }))
}

/// Whether this is what the server makes of an absent value under this schema: its default, and the defaults of the
/// properties that the default leaves out.
fn is_what_is_defaulted(schema: &Json<'_>, live: &Json<'_>) -> bool {
    let Some(default) = member(Some(schema), "default") else { return false };
    let (Json::Map(default), Json::Map(live)) = (default, live) else { return default == live };
    let properties = member(Some(schema), "properties").and_then(Json::map);
    let added = |key| properties.and_then(|properties| properties.get(key)).filter(|_| default.get(key).is_none());
    let keeps_all = default.iter().all(|(key, value)| live.get(key) == Some(value));
    let adds_no_other = live
        .iter()
        .filter(|(key, _)| default.get(key).is_none())
        .all(|(key, value)| added(key).is_some_and(|schema| is_what_is_defaulted(schema, value)));
    let adds_all = properties.into_iter().flat_map(JsonMap::iter).all(|(key, schema)| {
        default.get(key).is_some() || member(Some(schema), "default").is_none() || live.get(key).is_some()
    });
    keeps_all && adds_no_other && adds_all
}

/// managedFields name a list item by its keys, including keys that the server defaulted and the manifest leaves out.
fn without_defaulted_keys<'f>(
    fields: &'f FieldSet,
    item: &Json<'_>,
    keys: &BTreeMap<String, String>,
) -> Cow<'f, FieldSet> {
    let mut fields = Cow::Borrowed(fields);
    for key in keys.keys().filter(|key| member(Some(item), key).is_none()) {
        fields.to_mut().split_off(&[key]);
    }
    fields
}

#[cfg(test)]
mod tests;
