//! Lists that keep the unknown fields of their items.
//!
//! Below a list with `x-kubernetes-preserve-unknown-fields`, the server keeps unknown fields of its items as well, even
//! if a schema describes the items. So the flag is written into the schema of the items, which means the same, and each
//! node says of itself what it keeps.
//!
//! Source: `skipPrune` in `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go`

use std::borrow::Cow;

use serde_json::Value;

use crate::keywords as kw;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The schema with the flag of each list in the schema of its items.
pub fn with_kept_items(schema: &Value) -> Cow<'_, Value> {
    if !has_kept_items(schema) {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    keep_items(&mut schema);
    Cow::Owned(schema)
}

fn has_kept_items(schema: &Value) -> bool {
    let items = kw::get(schema, "items");
    items.is_some() && kw::preserves(schema) || parts(schema).any(has_kept_items)
}

fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    let fields = kw::properties(schema).into_iter().flat_map(|fields| fields.values());
    fields.chain(["items", "additionalProperties"].into_iter().filter_map(|keyword| kw::get(schema, keyword)))
}

fn keep_items(schema: &mut Value) {
    let keeps = kw::preserves(schema);
    let Some(node) = schema.as_object_mut() else { return };
    if let Some(items) = node.get_mut("items").and_then(Value::as_object_mut).filter(|_| keeps) {
        items.insert(PRESERVE.to_owned(), true.into());
    }
    let fields = node.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().flat_map(|fields| fields.values_mut()).for_each(keep_items);
    for keyword in ["items", "additionalProperties"] {
        node.get_mut(keyword).into_iter().for_each(keep_items);
    }
}
