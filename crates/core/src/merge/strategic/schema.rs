//! How the parts of a kind are merged by a strategic merge patch.

use serde_json::Value;

/// The maximum length of a chain of `$ref`s.
const MOST_REFS: usize = 8;

/// A node of the OpenAPI schema of a kind; `None` where it says nothing.
#[derive(Debug, Clone, Copy)]
pub struct PatchSchema<'s> {
    node: Option<&'s Value>,
    definitions: &'s Value,
}

/// How a field is merged.
#[derive(Debug, Default)]
pub(super) struct PatchHint {
    /// `merge`, `replace`, or empty for the default.
    pub strategy: String,
    /// Whether the patch names the fields that stay.
    pub retains_keys: bool,
    /// The key of the items of a list.
    pub key: String,
}

impl<'s> PatchSchema<'s> {
    /// The schema of a kind, and the definitions that its `$ref`s lead to.
    pub fn new(kind: &'s Value, definitions: &'s Value) -> Self {
        PatchSchema { node: Some(kind), definitions }
    }

    /// The schema of a field that is a map.
    ///
    /// # Errors
    /// The type of the kind has no such field.
    pub(super) fn member(self, key: &str) -> Result<(Self, PatchHint), String> {
        let Some(node) = self.node.map(|node| self.resolve(node)) else { return Ok((self, PatchHint::default())) };
        let field = match (node["properties"].get(key), node.get("additionalProperties")) {
            (Some(field), _) | (None, Some(field)) => field,
            // It may have any fields.
            (None, None) if node.get("properties").is_none() => {
                return Ok((PatchSchema { node: None, ..self }, PatchHint::default()));
            }
            (None, None) => return Err(format!("unable to find api field {key:?}")),
        };
        let text = |key: &str| field[key].as_str().unwrap_or_default();
        let mut hint = PatchHint { key: text("x-kubernetes-patch-merge-key").to_owned(), ..PatchHint::default() };
        for strategy in text("x-kubernetes-patch-strategy").split(',') {
            match strategy {
                "retainKeys" => hint.retains_keys = true,
                strategy => hint.strategy = strategy.to_owned(),
            }
        }
        Ok((PatchSchema { node: Some(field), ..self }, hint))
    }

    /// The schema of the items of a field that is a list.
    ///
    /// # Errors
    /// The type of the kind has no such field.
    pub(super) fn items_of(self, key: &str) -> Result<(Self, PatchHint), String> {
        let (field, hint) = self.member(key)?;
        let items = field.node.and_then(|node| self.resolve(node).get("items"));
        Ok((PatchSchema { node: items, ..self }, hint))
    }

    fn resolve(self, mut node: &'s Value) -> &'s Value {
        for _ in 0..MOST_REFS {
            let reference = node["$ref"].as_str().or_else(|| node["allOf"][0]["$ref"].as_str());
            let name = reference.and_then(|reference| reference.rsplit('/').next());
            match name.and_then(|name| self.definitions.get(name)) {
                Some(found) => node = found,
                None => break,
            }
        }
        node
    }
}
