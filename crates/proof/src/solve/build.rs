//! Builds lists and objects that satisfy the constraints of one branch.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::numbered::NumberedItems;
use super::{MAX_WEIGHT, PinnedPart, SearchResult, Solver};
use crate::constraints::{Disjunct, SharedSchema, ValueConstraints};
use crate::keywords::{self as kw, ANY, TEXT};
use gantry_schema::object_meta;

/// The maximum number of items that have to be solved one by one to reach a bound.
const MADE_UP: i64 = 64;
/// The maximum number of items that are equal or differ only in a number, and of entries that differ in their keys.
/// Their weight has a limit of its own.
const ITEMS: i64 = 100_001;
/// The reason for a value that is not built.
pub const TOO_LARGE: &str = "a value too large to build";
/// The number of bytes that are copied in one step.
const WEIGHED: u64 = 512;

impl<'s> Solver<'s> {
    pub(super) fn array(
        &self,
        disjunct: &Disjunct<'s>,
        constraints: &ValueConstraints<'s>,
        pin: Option<PinnedPart>,
    ) -> SearchResult {
        let Some(structure) = constraints.holds.first() else { return SearchResult::open("no structure") };
        let list_type = structure.get("x-kubernetes-list-type").and_then(Value::as_str).unwrap_or("atomic");
        let keys: Vec<&str> = kw::names(structure, "x-kubernetes-list-map-keys").collect();
        let mut items: Vec<Value> = Vec::new();
        if let Some(PinnedPart::Item(item)) = pin {
            for part in disjunct.each.iter().skip(1) {
                match self.takes(part, item) {
                    Some(true) => {}
                    Some(false) => return SearchResult::default(),
                    None => return SearchResult::open("a pattern that cannot be evaluated"),
                }
            }
            items.push(item.clone());
        }
        let mut each = disjunct.each.clone();
        if each.is_empty() {
            each.push(SharedSchema::Ref(&ANY));
        }
        let null = {
            let item = &each[0];
            kw::flag(item, "nullable") || !kw::has_type(item) && kw::default_of(item).is_none()
        };
        // The pinned item may be one of the bad ones.
        let is_met = |bad: &SharedSchema<'s>| items.iter().any(|item| self.takes(bad, item) == Some(false));
        let bad: Vec<&SharedSchema> = disjunct.some.iter().filter(|bad| !is_met(bad)).collect();
        let least = disjunct.min.max((items.len() + bad.len()) as i64);
        // One bad item may satisfy several constraints.
        if disjunct
            .max
            .is_some_and(|max| max < disjunct.min.max(i64::from(!disjunct.some.is_empty())).max(items.len() as i64))
        {
            return SearchResult::default();
        }
        if least > ITEMS || bad.len() as i64 > MADE_UP {
            return SearchResult::open("a list too long to build");
        }
        // Nothing is built that is too large in the end, but if there is no item at all, there is no list.
        if self.least_weight(&each[0]).saturating_mul(least as u64) > MAX_WEIGHT {
            let item = ValueConstraints { holds: each, null, ..ValueConstraints::default() };
            return match least > 0 && self.solve(&item, None, 1).is_nothing() {
                true => SearchResult::default(),
                false => SearchResult::open(TOO_LARGE),
            };
        }
        if least > MADE_UP && !self.spend(least as u64) {
            return SearchResult::open("the step limit was reached");
        }
        let mut weight: u64 = items.iter().map(kw::weight).sum();
        let mut bad = bad.into_iter();
        let mut plain: Option<Value> = None;
        let mut numbered: Option<NumberedItems> = None;
        while (items.len() as i64) < least {
            let bad = bad.next();
            if bad.is_none()
                && let Some(numbered) = &mut numbered
                && let Some(item) =
                    numbered.next(&items, |item| each.iter().all(|part| self.takes(part, item) == Some(true)))
            {
                weight += kw::weight(&item);
                if weight > MAX_WEIGHT {
                    return SearchResult::open(TOO_LARGE);
                }
                items.push(item);
                continue;
            }
            if items.len() as i64 >= MADE_UP && list_type != "atomic" {
                return SearchResult::open("a list too long to build");
            }
            let mut fails: Vec<SharedSchema> = bad.cloned().into_iter().collect();
            match list_type {
                "set" if !items.is_empty() => fails.push(SharedSchema::owned(json!({"enum": items.clone()}))),
                "map" if !items.is_empty() => {
                    fails.extend(items.iter().map(|item| {
                        let own = |key: &&&str| item.get(**key).is_some();
                        let present: Vec<&str> = keys.iter().filter(own).copied().collect();
                        let same = present.iter().map(|key| ((*key).to_owned(), json!({"enum": [item[*key]]})));
                        let same: Map<String, Value> = same.collect();
                        SharedSchema::owned(json!({"required": present, "properties": same}))
                    }));
                }
                _ => {}
            }
            let is_plain = fails.is_empty();
            // Items without a constraint of their own are all equal.
            if is_plain && let Some(plain) = &plain {
                let times = least as usize - items.len();
                weight = weight.saturating_add(kw::weight(plain).saturating_mul(times as u64));
                if weight > MAX_WEIGHT || !self.spend(weight / WEIGHED) {
                    return SearchResult::open(TOO_LARGE);
                }
                items.resize(items.len() + times, Value::clone(plain));
                continue;
            }
            let answer =
                self.solve(&ValueConstraints { holds: each.clone(), fails, null, is_resource: false }, None, 1);
            match answer.values.into_iter().next() {
                Some(item) => {
                    let item = match is_plain {
                        true => self.ruled_item(structure, &each, item),
                        false => item,
                    };
                    plain = plain.or_else(|| is_plain.then(|| item.clone()));
                    if bad.is_none() && list_type != "atomic" {
                        let field = ValueConstraints { holds: each.clone(), ..ValueConstraints::default() };
                        let like = self.defaulted(&field, &item);
                        numbered = Some(NumberedItems::new(like, keys.clone()));
                    }
                    weight += kw::weight(&item);
                    if weight > MAX_WEIGHT {
                        return SearchResult::open(TOO_LARGE);
                    }
                    items.push(item);
                }
                // No item fits, or no bad item does, or every item that fits is already in the set.
                None if answer.open.is_none()
                    && (is_plain || bad.is_some() && list_type == "atomic" || bad.is_none() && list_type == "set") =>
                {
                    return SearchResult::default();
                }
                None => {
                    return SearchResult::open(answer.open.unwrap_or_else(|| "a list of distinct items".to_owned()));
                }
            }
        }
        if disjunct.max.is_some_and(|max| max < items.len() as i64) {
            return SearchResult::open("one item for several constraints");
        }
        SearchResult::single(Value::Array(items))
    }

    pub(super) fn object(
        &self,
        disjunct: &Disjunct<'s>,
        constraints: &ValueConstraints<'s>,
        pin: Option<PinnedPart>,
    ) -> SearchResult {
        let Some(structure) = constraints.holds.first() else { return SearchResult::open("no structure") };
        let is_resource = constraints.is_resource || kw::embedded(structure);
        let properties = kw::properties(structure);
        let mut map = Map::new();
        if kw::embedded(structure) {
            for (name, usual) in [("apiVersion", "v1"), ("kind", "Pod")] {
                let usual = json!(usual);
                let is_free = pin_of(pin, name).is_none();
                if is_free
                    && self
                        .field_constraints(disjunct, structure, name)
                        .is_some_and(|field| self.fits(&field, &usual, 0) == Some(true))
                {
                    map.insert(name.to_owned(), usual);
                }
            }
        }
        let defaults = self.defaults(structure);
        let filled: BTreeSet<&str> = defaults.iter().map(|(name, _)| name.as_str()).collect();
        if filled.iter().any(|name| disjunct.absent.contains(*name)) {
            return SearchResult::default();
        }
        let mut weight: u64 = 0;
        let mut wanted: Vec<&str> = disjunct.required.iter().map(String::as_str).collect();
        // A default has to fit as well; if it does not, another value is written.
        let misfits = self.misfits(structure);
        let is_misfit = |name: &String, default: &Value| match disjunct.fields.contains_key(name) {
            true => {
                self.field_constraints(disjunct, structure, name).is_some_and(|field| self.is_refused(&field, default))
            }
            false => misfits.contains(name),
        };
        wanted
            .extend(defaults.iter().filter(|(name, default)| is_misfit(name, default)).map(|(name, _)| name.as_str()));
        if let Some(PinnedPart::Field(name, _)) = pin {
            if disjunct.absent.contains(name) {
                return SearchResult::default();
            }
            wanted.push(name);
        }
        // One impossible field decides the answer, even if other fields are unknown.
        let mut unknown = None;
        for name in wanted {
            if map.contains_key(name) && !matches!(pin, Some(PinnedPart::Field(pinned, _)) if pinned == name) {
                continue;
            }
            if is_resource
                && kw::is_meta(name)
                && pin_of(pin, name).is_none()
                && kw::property(structure, name).is_none()
            {
                // An embedded resource can lack metadata, so it has to be written.
                if kw::embedded(structure) && name == "metadata" {
                    map.insert(name.to_owned(), json!({"name": "x"}));
                }
                continue;
            }
            let Some(field) = self.field_constraints(disjunct, structure, name) else {
                // This may be the metadata of an embedded resource, where the server keeps all fields, described or
                // not. If it is not, the validator reports the field as pruned.
                match pin_of(pin, name).cloned().or_else(|| matches!(name, "name" | "namespace").then(|| json!("x"))) {
                    Some(value) if object_meta::has_field(name) => drop(map.insert(name.to_owned(), value)),
                    None if object_meta::has_field(name) => {
                        return SearchResult::open("metadata that the schema does not name");
                    }
                    _ => return SearchResult::default(),
                }
                continue;
            };
            if let Some(value) = pin_of(pin, name) {
                match self.fits(&field, value, 1) {
                    Some(true) => {}
                    Some(false) => return SearchResult::default(),
                    None => return SearchResult::open("a pattern that cannot be evaluated"),
                }
                weight += kw::weight(value);
                map.insert(name.to_owned(), value.clone());
                continue;
            }
            if let Some(default) = kw::default_of(&field.holds[0])
                && self.fits(&field, &self.defaulted(&field, default), 0) == Some(true)
            {
                map.insert(name.to_owned(), default.clone());
                continue;
            }
            let answer = self.solve(&field, None, 1);
            let Some(value) = answer.values.into_iter().next() else {
                match answer.open {
                    Some(why) => drop(unknown.get_or_insert(why)),
                    None => return SearchResult::default(),
                }
                continue;
            };
            weight += kw::weight(&value);
            if weight > MAX_WEIGHT || !self.spend(kw::weight(&value) / WEIGHED) {
                return SearchResult::open(TOO_LARGE);
            }
            map.insert(name.to_owned(), value);
        }
        if let Some(why) = unknown {
            return SearchResult::open(why);
        }
        // Every custom resource has these fields; they are not written here.
        let given: &[&str] = if constraints.is_resource { &["apiVersion", "kind", "metadata"] } else { &[] };
        let present = |map: &Map<String, Value>| {
            let is_filled_in = |name: &&&str| !map.contains_key(**name) && !given.contains(name);
            let is_given = |name: &&&str| !map.contains_key(**name);
            (map.len() + filled.iter().filter(is_filled_in).count() + given.iter().filter(is_given).count()) as i64
        };
        if disjunct.max.is_some_and(|max| present(&map) > max) {
            return SearchResult::default();
        }
        if disjunct.min > ITEMS {
            return SearchResult::open("an object with too many fields to build");
        }
        let mut open = None;
        // Every embedded resource can have metadata, even if its schema does not describe it.
        if kw::embedded(structure)
            && present(&map) < disjunct.min
            && !disjunct.absent.contains("metadata")
            && kw::property(structure, "metadata").is_none()
        {
            map.entry("metadata").or_insert_with(|| json!({"name": "x"}));
        }
        for name in properties.into_iter().flat_map(|p| p.keys()) {
            if present(&map) >= disjunct.min {
                break;
            }
            if map.contains_key(name) || disjunct.absent.contains(name) || filled.contains(name.as_str()) {
                continue;
            }
            let Some(field) = self.field_constraints(disjunct, structure, name) else { continue };
            let answer = self.solve(&field, None, 1);
            match answer.values.into_iter().next() {
                Some(value) => {
                    weight += kw::weight(&value);
                    if weight > MAX_WEIGHT {
                        return SearchResult::open(TOO_LARGE);
                    }
                    map.insert(name.clone(), value);
                }
                None => open = open.or(answer.open),
            }
        }
        let missing = disjunct.min - present(&map);
        if missing > 0
            && let Err(why) = self.add_entries(disjunct, structure, missing, &mut map)
        {
            open = open.or(why);
        }
        if present(&map) < disjunct.min {
            return SearchResult { values: Vec::new(), open };
        }
        SearchResult::single(Value::Object(map))
    }

    /// Adds `missing` entries under made-up keys, all with the same value, or as many as there can be. An error says why
    /// there are fewer; `None` if the object has no room for such entries.
    fn add_entries(
        &self,
        disjunct: &Disjunct<'s>,
        structure: &SharedSchema<'s>,
        missing: i64,
        map: &mut Map<String, Value>,
    ) -> Result<(), Option<String>> {
        let is_mentioned = |name: &String| {
            disjunct.absent.contains(name)
                || disjunct.fields.contains_key(name)
                || kw::property(structure, name).is_some()
        };
        let free: Vec<String> = {
            let names = self.entry_names(structure).filter(|name| !map.contains_key(name) && !is_mentioned(name));
            names.take(usize::try_from(missing).unwrap_or(0)).collect()
        };
        let Some(entry) = free.first().and_then(|name| self.field_constraints(disjunct, structure, name)) else {
            return Err(None);
        };
        let answer = self.solve(&entry, None, 1);
        let Some(value) = answer.values.into_iter().next() else { return Err(answer.open) };
        let longest = free.iter().map(String::len).max().unwrap_or(0) as u64;
        let weight = (kw::weight(&value) + longest).saturating_mul(missing as u64);
        if weight > MAX_WEIGHT || !self.spend(weight / WEIGHED) {
            return Err(Some(TOO_LARGE.to_owned()));
        }
        map.extend(free.into_iter().map(|name| (name, value.clone())));
        Ok(())
    }

    /// Names for made-up entries: `k1`, `k2`, …, after what the rules of a map ask of its keys, if that is known.
    fn entry_names(&self, structure: &SharedSchema<'s>) -> impl Iterator<Item = String> + use<'s> {
        let like = self.key_like(structure).unwrap_or_else(|| "k".to_owned());
        (1..).map(move |n: u64| format!("{like}{n}"))
    }

    /// The constraints on the field `name`. None: the object cannot have such a field.
    fn field_constraints(
        &self,
        disjunct: &Disjunct<'s>,
        structure: &SharedSchema<'s>,
        name: &str,
    ) -> Option<ValueConstraints<'s>> {
        let own = structure.inner_schema(|s| kw::property(s, name).or_else(|| kw::additional(s)));
        let own = own.or_else(|| kw::preserves(structure).then(|| SharedSchema::Ref(&ANY)));
        let own = own.or_else(|| {
            (kw::embedded(structure) && name != "metadata" && kw::is_meta(name)).then(|| SharedSchema::Ref(&TEXT))
        })?;
        let null = kw::flag(&own, "nullable") || kw::is_unknown(&own);
        let (holds, fails) = disjunct.fields.get(name).cloned().unwrap_or_default();
        Some(ValueConstraints { holds: [own].into_iter().chain(holds).collect(), fails, null, is_resource: false })
    }
}

fn pin_of<'v>(pin: Option<PinnedPart<'v>>, name: &str) -> Option<&'v Value> {
    match pin {
        Some(PinnedPart::Field(pinned, value)) if pinned == name => Some(value),
        _ => None,
    }
}
