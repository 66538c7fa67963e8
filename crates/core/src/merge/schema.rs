//! Whether a list or a map is one field, or each of its parts is a field. The schema of the kind defines this
//! (`x-kubernetes-list-type`, `x-kubernetes-map-type`); it is interpreted here as in the API server.

use std::collections::BTreeMap;

use gantry_schema::{Tree, ValueView};

use crate::managed_fields::ListItemKey;

/// The part of ObjectMeta's schema that defines how it is merged. A CRD's schema does not contain it.
pub const OBJECT_META: &str = r#"{"type": "object", "properties": {
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
        "items": {"type": "object", "x-kubernetes-map-type": "atomic"}}}}"#;

/// Types whose values are always one field.
const SCALARS: [&str; 2] =
    ["io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.runtime.RawExtension"];

/// The maximum length of a chain of `$ref`s.
const MOST_REFS: usize = 8;

/// The type of a value.
pub enum MergeSchema<'s, S> {
    /// The type is unknown: maps are merged, lists are one value.
    Deduced,
    /// The value is always one field.
    Scalar,
    /// The type is that of a node of a schema.
    Node(MergeNode<'s, S>),
}

/// A node of an OpenAPI schema, or of a CRD's, with what is known from the nodes above it.
pub struct MergeNode<'s, S> {
    node: &'s S,
    /// The definitions that `$ref`s refer to.
    definitions: Option<&'s S>,
    /// The schema of `metadata`, if the node is that of a whole object.
    object_meta: Option<&'s S>,
    /// Whether this node or one above it preserves unknown fields.
    preserve: bool,
    /// Whether the reference to the node makes its map atomic.
    atomic: bool,
}

impl<S> Clone for MergeNode<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for MergeNode<'_, S> {}

impl<S> Clone for MergeSchema<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for MergeSchema<'_, S> {}

/// How a value under a schema is merged.
pub enum MergeShape<'s, S> {
    /// A scalar, or a value whose type differs from the schema's: it is one field.
    Leaf,
    /// A list or map that is owned as a whole.
    Atomic,
    /// The members are fields of their own.
    Map,
    /// The items are fields of their own, identified by their keys.
    Keyed(Keyed<'s, S>),
    /// A list of distinct scalars: an item is present or absent, and never changes.
    Set,
}

/// A list whose items are identified by keys.
pub struct Keyed<'s, S> {
    keys: Vec<&'s str>,
    pub items: MergeSchema<'s, S>,
}

impl<'s, S: Tree> MergeSchema<'s, S> {
    /// The schema of a kind: `definitions` resolves its `$ref`s, and `object_meta` is the schema of `metadata`.
    pub fn of_object(node: &'s S, definitions: Option<&'s S>, object_meta: &'s S) -> Self {
        match Self::below(node, definitions, false) {
            MergeSchema::Node(node) => MergeSchema::Node(MergeNode { object_meta: Some(object_meta), ..node }),
            other => other,
        }
    }

    fn below(mut node: &'s S, definitions: Option<&'s S>, preserve: bool) -> Self {
        if !is_map(node) {
            return MergeSchema::Deduced;
        }
        let mut atomic = false;
        for _ in 0..MOST_REFS {
            let Some(reference) = reference(node) else { break };
            atomic |= text(node, "x-kubernetes-map-type") == Some("atomic");
            let name = reference.rsplit('/').next().unwrap_or_default();
            if SCALARS.contains(&name) {
                return MergeSchema::Scalar;
            }
            match definitions.and_then(|definitions| definitions.member(name)).filter(|found| is_map(*found)) {
                Some(found) => node = found,
                None => return MergeSchema::Deduced,
            }
        }
        let keeps = node.member("x-kubernetes-preserve-unknown-fields").map(Tree::view);
        let preserve = preserve || matches!(keeps, Some(ValueView::Bool(true)));
        MergeSchema::Node(MergeNode { node, definitions, object_meta: None, preserve, atomic })
    }

    /// The schema of a member; `None` for a field that the schema does not allow.
    pub fn member(self, key: &str) -> Option<Self> {
        let MergeSchema::Node(MergeNode { node, definitions, object_meta, preserve, .. }) = self else {
            return Some(MergeSchema::Deduced);
        };
        if let Some(object_meta) = object_meta.filter(|_| key == "metadata") {
            return Some(Self::below(object_meta, None, false));
        }
        let properties = node.member("properties");
        if let Some(member) = properties.and_then(|properties| properties.member(key)) {
            return Some(Self::below(member, definitions, preserve));
        }
        match node.member("additionalProperties").map(|schema| (schema, schema.view())) {
            Some((_, ValueView::Bool(allowed))) => allowed.then_some(MergeSchema::Deduced),
            Some((schema, _)) => Some(Self::below(schema, definitions, preserve)),
            None => {
                let is_open = properties.is_none_or(|properties| !matches!(properties.view(), ValueView::Map(false)));
                (preserve || is_open).then_some(MergeSchema::Deduced)
            }
        }
    }

    /// The schema of the items of a list.
    pub fn items(self) -> Self {
        match self {
            MergeSchema::Node(MergeNode { node, definitions, preserve, .. }) => {
                node.member("items").map_or(MergeSchema::Deduced, |items| Self::below(items, definitions, preserve))
            }
            other => other,
        }
    }

    /// Whether the schema names the member.
    pub(super) fn declares(self, key: &str) -> bool {
        let MergeSchema::Node(MergeNode { node, object_meta, .. }) = self else { return false };
        object_meta.is_some() && key == "metadata"
            || node.member("properties").is_some_and(|properties| properties.member(key).is_some())
    }

    /// How `value` is merged, by its own type where the schema does not say more.
    pub fn shape<V: Tree>(self, value: &V) -> MergeShape<'s, S> {
        let MergeSchema::Node(MergeNode { node, definitions, preserve, atomic, .. }) = self else {
            return match (self, value.view()) {
                (MergeSchema::Deduced, ValueView::Map(_)) => MergeShape::Map,
                (MergeSchema::Deduced, ValueView::List(_)) => MergeShape::Atomic,
                _ => MergeShape::Leaf,
            };
        };
        let wanted = text(node, "type").unwrap_or_default();
        match value.view() {
            ValueView::Map(_) if matches!(wanted, "" | "object") => {
                match atomic || text(node, "x-kubernetes-map-type") == Some("atomic") {
                    true => MergeShape::Atomic,
                    false => MergeShape::Map,
                }
            }
            ValueView::List(_) if matches!(wanted, "" | "array") => match list_keys(node) {
                None => MergeShape::Atomic,
                Some(keys) if keys.is_empty() => MergeShape::Set,
                Some(keys) => {
                    let items = node.member("items").map(|items| Self::below(items, definitions, preserve));
                    MergeShape::Keyed(Keyed { keys, items: items.unwrap_or(MergeSchema::Scalar) })
                }
            },
            _ => MergeShape::Leaf,
        }
    }

    /// Whether a value is a non-empty map or list whose parts are separate fields.
    pub(super) fn merges<V: Tree>(self, value: &V) -> bool {
        match value.view() {
            ValueView::Map(is_empty) => !is_empty && matches!(self.shape(value), MergeShape::Map),
            ValueView::List(list) => {
                !list.is_empty() && matches!(self.shape(value), MergeShape::Keyed(_) | MergeShape::Set)
            }
            _ => false,
        }
    }
}

impl<S: Tree> Keyed<'_, S> {
    /// The keys that identify an item. For a missing key, the schema's default is used, if there is one.
    pub fn key<V: Tree>(&self, item: &V) -> Option<ListItemKey> {
        let properties = match self.items {
            MergeSchema::Node(MergeNode { node, .. }) => node.member("properties"),
            _ => None,
        };
        let default = |key: &str| Some(properties?.member(key)?.member("default")?.canonical_text());
        let part = |key: &&str| {
            let value = item.member(key).map(Tree::canonical_text).or_else(|| default(key))?;
            Some(((*key).to_owned(), value))
        };
        let parts: BTreeMap<String, String> = self.keys.iter().filter_map(part).collect();
        (!parts.is_empty()).then_some(ListItemKey::Keys(parts))
    }
}

fn is_map<S: Tree>(node: &S) -> bool {
    matches!(node.view(), ValueView::Map(_))
}

fn text<'s, S: Tree>(node: &'s S, key: &str) -> Option<&'s str> {
    match node.member(key)?.view() {
        ValueView::Text(text) => Some(text),
        _ => None,
    }
}

/// The `$ref` of a node, including one that is wrapped in `allOf` because the node has other keywords.
fn reference<S: Tree>(node: &S) -> Option<&str> {
    if let Some(reference) = text(node, "$ref") {
        return Some(reference);
    }
    match node.member("allOf")?.view() {
        ValueView::List([only]) => text(only, "$ref"),
        _ => None,
    }
}

/// The keys that identify the items of a list; empty for a set; `None` for an atomic list.
fn list_keys<S: Tree>(node: &S) -> Option<Vec<&str>> {
    if let Some(kind) = text(node, "x-kubernetes-list-type") {
        return match (kind, node.member("x-kubernetes-list-map-keys").map(Tree::view)) {
            ("set", _) => Some(Vec::new()),
            ("map", Some(ValueView::List(keys))) => Some(
                keys.iter()
                    .filter_map(|key| match key.view() {
                        ValueView::Text(key) => Some(key),
                        _ => None,
                    })
                    .collect(),
            ),
            _ => None,
        };
    }
    // Built-in kinds have these older hints.
    match text(node, "x-kubernetes-patch-strategy") {
        Some("merge" | "merge,retainKeys") => Some(text(node, "x-kubernetes-patch-merge-key").into_iter().collect()),
        _ => None,
    }
}
