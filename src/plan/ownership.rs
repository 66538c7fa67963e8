//! What a field manager loses when a manifest is applied over a live object: the fields that it is on record for in
//! `metadata.managedFields` and whose values the manifest changes.
//!
//! Whether a list or a map counts as one value, or each of its items as one, is said by the schema of its kind
//! (`x-kubernetes-list-type`, `x-kubernetes-map-type`), read here as the API server reads it.
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>, and the behaviour of
//! `sigs.k8s.io/structured-merge-diff` and `k8s.io/kube-openapi/pkg/schemaconv`.

use gantry_schema::json::{Json, Map};

/// The part of ObjectMeta's schema that says how it is merged; a CRD's own schema says nothing of it.
pub(super) const OBJECT_META: &str = r#"{"type": "object", "properties": {
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
        "items": {"type": "object", "x-kubernetes-map-type": "atomic"}}}}"#;

/// Types whose values are one field, whatever they look like.
const SCALARS: [&str; 2] =
    ["io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.runtime.RawExtension"];

/// How deep `$ref`s may lead to other `$ref`s.
const MOST_REFS: usize = 8;

/// What is known of the type of a value.
#[derive(Clone, Copy)]
pub(super) enum Schema<'s> {
    /// Nothing: maps are merged, lists are one value.
    Deduced,
    /// One field, whatever it looks like.
    Scalar,
    Node {
        node: &'s Map<'s>,
        /// Where `$ref`s lead.
        definitions: Option<&'s Map<'s>>,
        /// A node above keeps fields that it does not know.
        preserve: bool,
        /// Said where the node is referred to: its map is one value.
        atomic: bool,
    },
}

/// How a value under a schema is merged.
enum Shape<'s, 'v> {
    Leaf,
    /// A list or map that is owned as a whole.
    Atomic,
    Map(&'v Map<'v>),
    /// A list of items that are told apart by these keys.
    Keyed(&'v [Json<'v>], Vec<&'s str>, Schema<'s>),
    /// A list of different scalars: an item is there or not, and never changes.
    Set,
}

impl<'s> Schema<'s> {
    pub fn of(node: &'s Json<'s>, definitions: Option<&'s Map<'s>>) -> Self {
        Self::below(node, definitions, false)
    }

    fn below(node: &'s Json<'s>, definitions: Option<&'s Map<'s>>, preserve: bool) -> Self {
        let Some(mut node) = node.map() else { return Schema::Deduced };
        let mut atomic = false;
        for _ in 0..MOST_REFS {
            let Some(reference) = reference(node) else { break };
            atomic |= text(node, "x-kubernetes-map-type") == Some("atomic");
            let name = reference.rsplit('/').next().unwrap_or_default();
            if SCALARS.contains(&name) {
                return Schema::Scalar;
            }
            match definitions.and_then(|definitions| definitions.get(name)).and_then(Json::map) {
                Some(found) => node = found,
                None => return Schema::Deduced,
            }
        }
        let preserve = preserve || node.get("x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(true));
        Schema::Node { node, definitions, preserve, atomic }
    }

    /// The schema of a member; `None` for a field that the schema does not allow.
    pub fn member(self, key: &str) -> Option<Self> {
        let Schema::Node { node, definitions, preserve, .. } = self else { return Some(Schema::Deduced) };
        let properties = node.get("properties").and_then(Json::map);
        if let Some(member) = properties.and_then(|properties| properties.get(key)) {
            return Some(Self::below(member, definitions, preserve));
        }
        match node.get("additionalProperties") {
            Some(Json::Bool(allowed)) => allowed.then_some(Schema::Deduced),
            Some(schema) => Some(Self::below(schema, definitions, preserve)),
            None => (preserve || properties.is_none_or(Map::is_empty)).then_some(Schema::Deduced),
        }
    }

    fn shape<'v>(self, value: &'v Json<'v>) -> Shape<'s, 'v> {
        let Schema::Node { node, definitions, preserve, atomic } = self else {
            return match (self, value) {
                (Schema::Deduced, Json::Map(map)) => Shape::Map(map),
                (Schema::Deduced, Json::List(_)) => Shape::Atomic,
                _ => Shape::Leaf,
            };
        };
        let wanted = text(node, "type").unwrap_or_default();
        match value {
            Json::Map(map) if matches!(wanted, "" | "object") => {
                match atomic || text(node, "x-kubernetes-map-type") == Some("atomic") {
                    true => Shape::Atomic,
                    false => Shape::Map(map),
                }
            }
            Json::List(list) if matches!(wanted, "" | "array") => {
                let items = node.get("items").map_or(Schema::Scalar, |i| Self::below(i, definitions, preserve));
                match list_keys(node) {
                    None => Shape::Atomic,
                    Some(keys) if keys.is_empty() => Shape::Set,
                    Some(keys) => Shape::Keyed(list, keys, items),
                }
            }
            _ => Shape::Leaf,
        }
    }
}

fn text<'m>(map: &'m Map<'_>, key: &str) -> Option<&'m str> {
    map.get(key).and_then(Json::text)
}

/// The `$ref` of a node, also one that is wrapped to stand beside other keywords.
fn reference<'s>(node: &'s Map<'s>) -> Option<&'s str> {
    if let Some(reference) = text(node, "$ref") {
        return Some(reference);
    }
    match node.get("allOf").and_then(Json::list) {
        Some([Json::Map(only)]) => text(only, "$ref"),
        _ => None,
    }
}

/// The keys that tell the items of a list apart, none for a set; `None` for a list that is one value.
fn list_keys<'s>(node: &'s Map<'s>) -> Option<Vec<&'s str>> {
    if let Some(kind) = text(node, "x-kubernetes-list-type") {
        return match kind {
            "set" => Some(Vec::new()),
            "map" => {
                let keys = node.get("x-kubernetes-list-map-keys").and_then(Json::list)?;
                Some(keys.iter().filter_map(Json::text).collect())
            }
            _ => None,
        };
    }
    // Built-in kinds have had these hints for longer.
    match text(node, "x-kubernetes-patch-strategy") {
        Some("merge" | "merge,retainKeys") => Some(text(node, "x-kubernetes-patch-merge-key").into_iter().collect()),
        _ => None,
    }
}

/// What a manager is on record for.
#[derive(Clone, Copy)]
pub(super) enum Owned<'r> {
    /// Everything: an object without any record belongs as a whole to whoever wrote it before.
    All,
    /// A node of a `fieldsV1`.
    Fields(&'r Map<'r>),
}

impl<'r> Owned<'r> {
    pub fn field(self, key: &str) -> Option<Self> {
        match self {
            Owned::All => Some(Owned::All),
            Owned::Fields(fields) => fields.get(&format!("f:{key}")).and_then(Json::map).map(Owned::Fields),
        }
    }

    fn item(self, key: &Key<'_>) -> Option<Self> {
        let Owned::Fields(fields) = self else { return Some(Owned::All) };
        let found = fields.iter().find(|(step, _)| {
            let written = step.strip_prefix("k:").and_then(|json| Json::parse(json).ok());
            written.as_ref().and_then(Json::map).is_some_and(|written| key.is(written))
        });
        found.and_then(|(_, below)| below.map()).map(Owned::Fields)
    }

    /// Whether the node itself is on record, and not only something below it.
    fn itself(self) -> bool {
        match self {
            Owned::All => true,
            Owned::Fields(fields) => fields.is_empty() || fields.get(".").is_some(),
        }
    }
}

/// What tells an item of a list apart.
struct Key<'v>(Vec<(&'v str, &'v Json<'v>)>);

impl<'v> Key<'v> {
    /// A key that the item leaves out has the schema's default, or is no part of it.
    fn of(item: &'v Json<'v>, keys: &[&'v str], items: Schema<'v>) -> Option<Self> {
        let item = item.map()?;
        let properties = match items {
            Schema::Node { node, .. } => node.get("properties").and_then(Json::map),
            _ => None,
        };
        let default = |key| properties.and_then(|p| p.get(key))?.map()?.get("default");
        let mut parts: Vec<_> =
            keys.iter().filter_map(|key| Some((*key, item.get(key).or_else(|| default(key))?))).collect();
        parts.sort_by_key(|(name, _)| *name);
        (!parts.is_empty()).then_some(Key(parts))
    }

    fn is(&self, written: &Map<'_>) -> bool {
        written.len() == self.0.len() && self.0.iter().all(|(name, value)| written.get(name) == Some(*value))
    }
}

/// The fields of `owned` that applying `desired` over `live` would change, as the API server writes them in a conflict
/// (`.spec.template.spec.containers[name="a"].image`).
pub(super) fn lost<'v>(
    desired: &'v Json<'v>,
    live: &'v Json<'v>,
    owned: Owned<'_>,
    schema: Schema<'v>,
    object_meta: &'v Json<'v>,
) -> Vec<String> {
    let mut found = Vec::new();
    let (Some(desired), Some(live)) = (desired.map(), live.map()) else { return found };
    for (key, value) in members(desired) {
        let schema = if key == "metadata" { Some(Schema::of(object_meta, None)) } else { schema.member(key) };
        if let (Some(owned), Some(schema)) = (owned.field(key), schema) {
            walk(value, live.get(key), owned, schema, &mut format!(".{key}"), &mut found);
        }
    }
    found
}

/// Whether `desired` changes anything in or around what is `owned`; `false` means that nothing is lost under any schema.
pub(super) fn overlaps(desired: &Json<'_>, live: &Json<'_>, owned: Owned<'_>) -> bool {
    fn below(desired: &Json<'_>, live: Option<&Json<'_>>, owned: Owned<'_>) -> bool {
        match (desired, live, owned) {
            (Json::Map(desired), Some(Json::Map(live)), Owned::Fields(fields)) if !fields.is_empty() => {
                let field = |(key, value): (&str, &Json<'_>)| {
                    owned.field(key).is_some_and(|owned| below(value, live.get(key), owned))
                };
                desired.iter().any(field)
            }
            (desired, live, _) => live != Some(desired),
        }
    }
    let (Some(desired), Some(live)) = (desired.map(), live.map()) else { return false };
    members(desired).any(|(key, value)| owned.field(key).is_some_and(|owned| below(value, live.get(key), owned)))
}

/// Whether a `fieldsV1` names anything that an apply can change.
pub(super) fn is_at_stake(fields: &Map<'_>) -> bool {
    fields.iter().filter_map(|(step, _)| step.strip_prefix("f:")).any(can_change)
}

/// The members that an apply can change.
fn members<'m>(object: &'m Map<'m>) -> impl Iterator<Item = (&'m str, &'m Json<'m>)> {
    object.iter().filter(|(key, _)| can_change(key))
}

/// `status` is written through its own subresource.
fn can_change(key: &str) -> bool {
    !matches!(key, "apiVersion" | "kind" | "status")
}

fn walk<'v>(
    desired: &'v Json<'v>,
    live: Option<&'v Json<'v>>,
    owned: Owned<'_>,
    schema: Schema<'v>,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let length = path.len();
    match schema.shape(desired) {
        Shape::Set => {}
        Shape::Map(map) if live.is_none_or(|live| live.map().is_some()) => {
            if live.is_none() && owned.itself() {
                found.push(path.clone());
            }
            for (key, value) in map.iter() {
                if let (Some(owned), Some(schema)) = (owned.field(key), schema.member(key)) {
                    path.push('.');
                    path.push_str(key);
                    walk(value, live.and_then(|live| live.map()?.get(key)), owned, schema, path, found);
                    path.truncate(length);
                }
            }
        }
        Shape::Keyed(list, keys, items) => {
            let live = live.and_then(Json::list).unwrap_or_default();
            for item in list {
                let Some(key) = Key::of(item, &keys, items) else { continue };
                let Some(owned) = owned.item(&key) else { continue };
                let same = |live: &&Json<'_>| Key::of(live, &keys, items).is_some_and(|other| other.0 == key.0);
                let parts: Vec<String> = key.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
                path.push_str(&format!("[{}]", parts.join(",")));
                walk(item, live.iter().find(same), owned, items, path, found);
                path.truncate(length);
            }
        }
        // `null` for a map or a list leaves the fields in it alone.
        Shape::Leaf if *desired == Json::Null && live.is_some_and(|live| schema.merges(live)) => {}
        // Of a whole that was once merged, the server takes the parts for the whole.
        Shape::Atomic if live != Some(desired) => found.push(path.clone()),
        Shape::Leaf | Shape::Map(_) if live != Some(desired) && owned.itself() => found.push(path.clone()),
        _ => {}
    }
}

impl Schema<'_> {
    /// Whether a value is a map or list whose parts are fields of their own.
    fn merges(self, value: &Json<'_>) -> bool {
        match value {
            Json::Map(map) => !map.is_empty() && matches!(self.shape(value), Shape::Map(_)),
            Json::List(list) => !list.is_empty() && matches!(self.shape(value), Shape::Keyed(..) | Shape::Set),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the manager of `owned` loses of `live`.
    fn lost_of(schema: &str, live: &str, desired: &str, owned: &str) -> Vec<String> {
        let [schema, live, desired, owned, meta] =
            [schema, live, desired, owned, OBJECT_META].map(|text| Json::parse(text).unwrap());
        let owned = Owned::Fields(owned.map().unwrap());
        let found = lost(&desired, &live, owned, Schema::of(&schema, None), &meta);
        assert!(found.is_empty() || overlaps(&desired, &live, owned), "{found:?}");
        found
    }

    #[test]
    fn a_list_with_keys_is_lost_field_by_field_and_any_other_as_a_whole() {
        let keyed = r#"{"properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n", "z"],
            "items": {"properties": {"n": {}, "z": {"default": "x"}, "v": {}}}}}}"#;
        let live = r#"{"l": [{"n": 1, "z": "x", "v": 1}, {"n": 2, "z": "y", "v": 1}]}"#;
        let desired = r#"{"l": [{"n": 2, "z": "y", "v": 1}, {"n": 1, "v": 2}, {"n": 3, "v": 1}]}"#;
        let owned =
            r#"{"f:l": {"k:{\"n\":1,\"z\":\"x\"}": {".": {}, "f:v": {}}, "k:{\"n\":2,\"z\":\"y\"}": {"f:v": {}}}}"#;
        assert_eq!(lost_of(keyed, live, desired, owned), [r#".l[n=1,z="x"].v"#]);
        assert_eq!(lost_of(r#"{"properties": {"l": {"type": "array"}}}"#, live, desired, r#"{"f:l": {}}"#), [".l"]);
        assert!(lost_of(keyed, live, live, owned).is_empty());
    }

    #[test]
    fn what_nobody_owns_or_nothing_changes_is_not_lost() {
        let any = r#"{"type": "object"}"#;
        let live = r#"{"spec": {"a": 1, "b": {"c": 1}}, "status": {"x": 1}}"#;
        assert!(lost_of(any, live, r#"{"spec": {"a": 1.0}}"#, r#"{"f:spec": {"f:a": {}}}"#).is_empty());
        assert!(lost_of(any, live, r#"{"spec": {"b": {"c": 2}}}"#, r#"{"f:spec": {"f:a": {}}}"#).is_empty());
        assert!(lost_of(any, live, r#"{"status": {"x": 2}}"#, r#"{"f:status": {"f:x": {}}}"#).is_empty());
        assert_eq!(
            lost_of(any, live, r#"{"spec": {"b": {"c": 2}}}"#, r#"{"f:spec": {"f:b": {"f:c": {}}}}"#),
            [".spec.b.c"]
        );
    }

    #[test]
    fn owner_references_are_told_apart_whatever_the_crd_says() {
        let live = r#"{"metadata": {"ownerReferences": [{"uid": "u", "name": "a"}]}}"#;
        let desired = r#"{"metadata": {"ownerReferences": [{"uid": "u", "name": "b"}]}}"#;
        let owned = r#"{"f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}}}"#;
        let found = lost_of(r#"{"properties": {"metadata": {"type": "object"}}}"#, live, desired, owned);
        assert_eq!(found, [r#".metadata.ownerReferences[uid="u"]"#]);
    }
}
