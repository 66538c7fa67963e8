//! Validation against the schema: every keyword, in the server's order, with its quirks.
//!
//! A walk that finds no errors allocates no strings and no lists. Each quirk is explained where it is implemented.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::correlate::Correlated;
use super::error::{FieldError, FieldErrorKind, Undecided};
use super::formats::EnforcedFormat;
use super::found::FieldErrors;
use super::node::{AdditionalKeys, Combined, JsonType, SchemaNode, StringRules, Types};
use super::number::is_integral;
use super::older_releases;
use super::path::LinkedPath;
use gantry_k8s_cel::gotext;
use gantry_k8s_cel::{KubernetesRelease, Num};

/// Validates values against nodes and collects what could not be decided.
pub struct ValueChecker {
    pub undecided: Vec<Undecided>,
    /// The remaining step budget: each comparison of a value with a node costs one step.
    pub steps: u64,
    /// Whether only the existence of an error matters, not its text.
    pub skips_messages: bool,
    /// The release of the server that validates.
    pub release: KubernetesRelease,
    /// The number of missing fields of an object that are reported.
    pub most_missing: usize,
}

/// The number of `enum` values that are compared in one step.
const ENUM_COMPARES_PER_STEP: usize = 32;

/// The type of a value as the server sees it, and the format that this type implies.
fn kind_of(value: &Value) -> Option<(JsonType, &'static str)> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => (JsonType::Boolean, ""),
        Value::String(_) => (JsonType::String, ""),
        Value::Number(n) => match Num::from(n) {
            Num::Int(_) => (JsonType::Integer, "int64"),
            Num::Float(_) => (JsonType::Number, "float64"),
        },
        Value::Array(_) => (JsonType::Array, ""),
        Value::Object(_) => (JsonType::Object, ""),
    })
}

impl ValueChecker {
    /// Validates as a server of this release does.
    pub fn for_release(release: KubernetesRelease) -> Self {
        Self { release, undecided: Vec::new(), steps: u64::MAX, skips_messages: false, most_missing: usize::MAX }
    }

    /// Validates `value`. Errors are tolerated if `old` correlates it with an equal value.
    pub fn value(
        &mut self,
        node: &SchemaNode,
        value: &Value,
        path: &LinkedPath,
        old: Option<&Correlated>,
    ) -> FieldErrors {
        let open = self.undecided.len();
        if self.steps == 0 {
            let reason = "the limit of steps is reached".to_owned();
            self.undecided.push(Undecided { path: path.field(), at: path.steps(), rule: String::new(), reason });
            return FieldErrors::default();
        }
        self.steps -= 1;
        let mut found = self.all_keywords(node, value, path, old);
        if (!found.is_valid() || self.undecided.len() > open) && old.is_some_and(Correlated::is_unchanged) {
            found.clear();
            self.undecided.truncate(open);
        }
        found
    }

    fn all_keywords(
        &mut self,
        node: &SchemaNode,
        value: &Value,
        path: &LinkedPath,
        old: Option<&Correlated>,
    ) -> FieldErrors {
        let mut found = FieldErrors::default();
        let has_type_check = node.types != Types::Any || node.format.is_some();
        let Some((kind, implied_format)) = kind_of(value) else {
            if !node.is_of_null() && !node.nullable {
                found.add(wrong_type(path, "type", node.type_names(), "null"));
            } else {
                found.matches += 1;
            }
            self.check_enum(node, value, path, &mut found);
            return found;
        };
        if has_type_check {
            match type_mismatch(node, value, kind, implied_format, self.release) {
                Some(Mismatch { keyword, wanted, got }) => found.add(wrong_type(path, keyword, wanted, got)),
                None => found.matches += 1,
            }
            found.matches += 1;
        }
        if let Some(combined) = &node.combined {
            let of_branches = self.combined(combined, value, path);
            found.merge(of_branches);
        }
        // The branch validator counts itself and its own run, even if the node has no branches.
        found.matches += 2;
        match value {
            Value::String(text) => {
                if let Some(rules) = &node.string {
                    self.check_string(rules, text, path, &mut found);
                }
                found.matches += 1;
                if let Some(format) = node.format.as_ref().filter(|f| f.is_of_strings()) {
                    check_format(format, text, path, &mut found);
                    found.matches += 1;
                }
            }
            Value::Number(number) => {
                if let Some(rules) = &node.number {
                    let has_ranges = self.release >= older_releases::NUMBER_RANGES;
                    let rules = if has_ranges { **rules } else { rules.without_range() };
                    rules.check(Num::from(number), path, self.release, &mut found);
                }
                found.matches += 2;
            }
            Value::Array(items) => {
                self.list(node, items, path, old, &mut found);
                found.matches += 2;
            }
            _ => {}
        }
        self.check_enum(node, value, path, &mut found);
        found.matches += 1;
        if let Value::Object(map) = value {
            self.check_object(node, map, path, old, &mut found);
            found.matches += 1;
        }
        found.matches += 1;
        found
    }

    fn check_string(&mut self, rules: &StringRules, text: &str, path: &LinkedPath, found: &mut FieldErrors) {
        // Only the first failing check is reported.
        let length = || text.chars().count() as i64;
        if let Some(max) = rules.max_length
            && length() > max
        {
            let unit = if max == 1 { "byte" } else { "bytes" };
            let detail =
                if max < 0 { "value is too long".to_owned() } else { format!("may not be more than {max} {unit}") };
            found.add(FieldError::openapi(path, "maxLength", FieldErrorKind::TooLong, None, detail));
        } else if let Some(min) = rules.min_length
            && length() < min
        {
            let detail = format!("{} in body should be at least {min} chars long", path.openapi());
            found.add(FieldError::openapi(path, "minLength", FieldErrorKind::Invalid, Some(json!(text)), detail));
        } else if let Some(pattern) = &rules.pattern {
            match pattern.is_match(text) {
                Ok(true) => {}
                Ok(false) => {
                    let detail = format!("{} in body should match '{}'", path.openapi(), pattern.source());
                    found.add(FieldError::openapi(path, "pattern", FieldErrorKind::Invalid, Some(json!(text)), detail));
                }
                Err(reason) => {
                    let rule = format!("pattern: {}", pattern.source());
                    self.undecided.push(Undecided {
                        path: path.field(),
                        at: path.steps(),
                        rule,
                        reason: reason.to_string(),
                    });
                }
            }
        }
    }

    fn list(
        &mut self,
        node: &SchemaNode,
        items: &[Value],
        path: &LinkedPath,
        old: Option<&Correlated>,
        found: &mut FieldErrors,
    ) {
        if let Some(item_node) = &node.items {
            for (at, item) in items.iter().enumerate() {
                let old_item = old.and_then(|o| o.index(at));
                let of_item = self.value(item_node, item, &LinkedPath::Index(path, at), old_item.as_ref());
                found.merge(of_item);
            }
        }
        let count = items.len() as i64;
        if let Some(min) = node.item_count.min.filter(|min| count < *min) {
            let detail = format!("{} in body should have at least {min} items", path.openapi());
            found.add(FieldError::openapi(path, "minItems", FieldErrorKind::Invalid, Some(json!(count)), detail));
        }
        if let Some(max) = node.item_count.max.filter(|max| count > *max) {
            found.add(too_many(path, "maxItems", count, max));
        }
        if node.unique_items && has_duplicates(items) {
            let detail = format!("{} in body shouldn't contain duplicates", path.openapi());
            found.add(FieldError::openapi(path, "uniqueItems", FieldErrorKind::Invalid, Some(json!("")), detail));
        }
    }

    fn check_object(
        &mut self,
        node: &SchemaNode,
        map: &Map<String, Value>,
        path: &LinkedPath,
        old: Option<&Correlated>,
        found: &mut FieldErrors,
    ) {
        let count = map.len() as i64;
        if let Some(min) = node.property_count.min.filter(|min| count < *min) {
            let detail = format!("{} in body should have at least {min} properties", path.openapi());
            found.add(FieldError::openapi(path, "minProperties", FieldErrorKind::Invalid, Some(json!(count)), detail));
        }
        if let Some(max) = node.property_count.max.filter(|max| count > *max) {
            found.add(too_many(path, "maxProperties", count, max));
        }
        match &node.additional {
            AdditionalKeys::Absent | AdditionalKeys::Any => {}
            AdditionalKeys::Forbidden => {
                for key in sorted_keys(map).filter(|key| !node.properties.contains_key(key)) {
                    let detail = format!("{}.{key} in body is a forbidden property", path.openapi());
                    found.add(FieldError::openapi(
                        path,
                        "additionalProperties",
                        FieldErrorKind::Invalid,
                        Some(json!(key)),
                        detail,
                    ));
                }
            }
            AdditionalKeys::Schema(entry) => {
                for key in sorted_keys(map).filter(|key| !node.properties.contains_key(key)) {
                    self.check_member(entry, map, key, &LinkedPath::Key(path, key), old, found);
                }
            }
        }
        // Errors are in name order either way; iterate over the smaller of the two.
        if map.len() < node.properties.len() {
            for name in sorted_keys(map) {
                if let Some(child) = node.properties.get(name) {
                    self.check_member(child, map, name, &LinkedPath::Name(path, name), old, found);
                }
            }
        } else {
            for (name, child) in node.properties.iter() {
                self.check_member(child, map, name, &LinkedPath::Name(path, name), old, found);
            }
        }
        let missing = node.required.iter().filter(|name| !map.contains_key(*name));
        for name in missing.take(self.most_missing) {
            found.add(FieldError::missing(path, name));
        }
    }

    fn check_member(
        &mut self,
        node: &SchemaNode,
        map: &Map<String, Value>,
        key: &str,
        path: &LinkedPath,
        old: Option<&Correlated>,
        found: &mut FieldErrors,
    ) {
        let Some(value) = map.get(key) else { return };
        // The apiVersion and kind of the object itself are never ratcheted: conversion hides that they changed.
        let is_type_meta = matches!(path, LinkedPath::Name(LinkedPath::Root, "apiVersion" | "kind"));
        let old = old.filter(|_| !is_type_meta).and_then(|o| o.key(key));
        let of_child = self.value(node, value, path, old.as_ref());
        found.merge(of_child);
    }

    /// `allOf`, `anyOf`, `oneOf` and `not`. Nothing below them is ratcheted, only the node as a whole.
    fn combined(&mut self, combined: &Combined, value: &Value, path: &LinkedPath) -> FieldErrors {
        let mut found = FieldErrors::default();
        if !combined.any_of.is_empty() {
            self.any_of(&combined.any_of, value, path, &mut found);
        }
        if !combined.one_of.is_empty() {
            self.one_of(&combined.one_of, value, path, &mut found);
        }
        if !combined.all_of.is_empty() {
            let mut valid = 0;
            for (at, branch) in combined.all_of.iter().enumerate() {
                let of_branch = self.value(branch, value, &LinkedPath::Branch(path, "allOf", Some(at)), None);
                valid += usize::from(of_branch.is_valid());
                found.merge(of_branch);
            }
            if valid < combined.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                let detail = format!("{} must validate all the schemas (allOf){none}", gotext::quote(&path.openapi()));
                found.add(FieldError::unplaced(path, "allOf", detail));
            }
        }
        if let Some(not) = &combined.not {
            let open = self.undecided.len();
            match self.branch(not, value, &LinkedPath::Branch(path, "not", None)) {
                (_, Some(true)) => {
                    let detail = format!("{} must not validate the schema (not)", gotext::quote(&path.openapi()));
                    found.add(FieldError::unplaced(path, "not", detail));
                }
                (_, Some(false)) => self.undecided.truncate(open),
                (_, None) => {}
            }
        }
        found
    }

    /// The result of validating a value against one branch, and whether the value is valid; `None` if that is
    /// undecided. A definite error makes everything undecided in the branch irrelevant.
    fn branch(&mut self, branch: &SchemaNode, value: &Value, path: &LinkedPath) -> (FieldErrors, Option<bool>) {
        let open = self.undecided.len();
        let found = self.value(branch, value, path, None);
        let verdict = match found.is_valid() {
            true if self.undecided.len() > open => None,
            valid => Some(valid),
        };
        if verdict == Some(false) {
            self.undecided.truncate(open);
        }
        (found, verdict)
    }

    fn any_of(&mut self, branches: &[SchemaNode], value: &Value, path: &LinkedPath, found: &mut FieldErrors) {
        let open = self.undecided.len();
        let mut best: Option<FieldErrors> = None;
        for (at, branch) in branches.iter().enumerate() {
            let (of_branch, verdict) = self.branch(branch, value, &LinkedPath::Branch(path, "anyOf", Some(at)));
            match verdict {
                Some(true) => {
                    self.undecided.truncate(open);
                    found.merge(of_branch);
                    return;
                }
                Some(false) if best.as_ref().is_none_or(|best| of_branch.matches > best.matches) => {
                    best = Some(of_branch);
                }
                _ => {}
            }
        }
        if self.undecided.len() > open {
            return;
        }
        let detail = format!("{} must validate at least one schema (anyOf)", gotext::quote(&path.openapi()));
        found.add(FieldError::unplaced(path, "anyOf", detail));
        if let Some(best) = best {
            found.merge(best);
        }
    }

    fn one_of(&mut self, branches: &[SchemaNode], value: &Value, path: &LinkedPath, found: &mut FieldErrors) {
        let open = self.undecided.len();
        let (mut best, mut first): (Option<FieldErrors>, Option<FieldErrors>) = (None, None);
        let mut valid = 0;
        for (at, branch) in branches.iter().enumerate() {
            let (of_branch, verdict) = self.branch(branch, value, &LinkedPath::Branch(path, "oneOf", Some(at)));
            if verdict == Some(true) {
                valid += 1;
                best = None;
                first.get_or_insert(of_branch);
            } else if verdict == Some(false)
                && valid == 0
                && best.as_ref().is_none_or(|best| of_branch.matches > best.matches)
            {
                best = Some(of_branch);
            }
        }
        if valid > 1 {
            // Two matches are too many, regardless of the undecided branches.
            self.undecided.truncate(open);
        } else if self.undecided.len() > open {
            return;
        }
        if valid == 1 {
            found.merge(first.unwrap_or_default());
            return;
        }
        let why = if valid == 0 { "Found none valid".to_owned() } else { format!("Found {valid} valid alternatives") };
        let quoted = gotext::quote(&path.openapi());
        let detail = format!("{quoted} must validate one and only one schema (oneOf). {why}");
        found.add(FieldError::unplaced(path, "oneOf", detail));
        if let Some(best) = best {
            found.merge(best);
        }
    }

    fn check_enum(&mut self, node: &SchemaNode, value: &Value, path: &LinkedPath, found: &mut FieldErrors) {
        if node.enumeration.is_empty() {
            return;
        }
        let (is_allowed, seen) = node.enumeration.has(value);
        self.steps = self.steps.saturating_sub((seen / ENUM_COMPARES_PER_STEP) as u64);
        if is_allowed {
            return;
        }
        let detail = if self.skips_messages { "".into() } else { node.enumeration.supported_values() };
        found.add(FieldError::openapi(path, "enum", FieldErrorKind::NotSupported, Some(value.clone()), detail));
    }
}

fn has_duplicates(items: &[Value]) -> bool {
    // An integer has the same text as the equal float, so the values themselves are compared as well.
    let mut seen: HashMap<String, Vec<&Value>> = HashMap::new();
    items.iter().any(|item| {
        let alike = seen.entry(gotext::json(item)).or_default();
        let is_there = alike.contains(&item);
        alike.push(item);
        is_there
    })
}

fn sorted_keys(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.into_iter()
}

/// A type error.
struct Mismatch<'n> {
    /// `type`, or the `format` that implies the type.
    keyword: &'static str,
    wanted: &'n str,
    got: &'n str,
}

fn type_mismatch<'n>(
    node: &'n SchemaNode,
    value: &Value,
    kind: JsonType,
    implied: &'n str,
    release: KubernetesRelease,
) -> Option<Mismatch<'n>> {
    let integral =
        matches!(value, Value::Number(n) if matches!(Num::from(n), Num::Float(f) if is_integral(f, release)));
    let fits = node.types.names_type(kind)
        || integral && node.types.names_type(JsonType::Integer)
        || kind == JsonType::Integer && node.types.names_type(JsonType::Number);
    if let Some(format) = &node.format {
        if matches!(kind, JsonType::String | JsonType::Array) {
            // A string format accepts a list, whatever the type is.
            if !(node.types.names_type(JsonType::Number) || node.types.names_type(JsonType::Integer)) {
                return None;
            }
        } else if !fits && format.name() != implied {
            return Some(Mismatch { keyword: "format", wanted: format.name(), got: implied });
        }
    }
    (!fits).then(|| Mismatch { keyword: "type", wanted: node.type_names(), got: kind.name() })
}

fn wrong_type(path: &LinkedPath, keyword: &str, wanted: &str, got: &str) -> FieldError {
    let detail = format!("{} in body must be of type {wanted}: {}", path.openapi(), gotext::quote(got));
    FieldError::openapi(path, keyword, FieldErrorKind::TypeInvalid, Some(json!(got)), detail)
}

fn check_format(format: &EnforcedFormat, text: &str, path: &LinkedPath, found: &mut FieldErrors) {
    if !format.accepts(text) {
        found.add(wrong_type(path, "format", format.name(), text));
    }
}

fn too_many(path: &LinkedPath, keyword: &str, count: i64, max: i64) -> FieldError {
    let unit = if max == 1 { "item" } else { "items" };
    let detail = if max < 0 { "has too many items".to_owned() } else { format!("must have at most {max} {unit}") };
    FieldError::openapi(path, keyword, FieldErrorKind::TooMany, Some(json!(count)), detail)
}
