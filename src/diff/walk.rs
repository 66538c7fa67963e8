//! Walks the live and the next tree together.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::definition::{self, Seen};
use super::lines::{self, Part};
use super::page::Page;
use super::yaml::{self, Lead};
use super::{Line, LineKind};
use crate::merge::{Schema, Shape};
use crate::text;

/// The keys that identify the items of a list if the kind's schema does not define them, from lists of built-in kinds.
const KEYS: [&[&str]; 12] = [
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["name"],
    &["mountPath"],
    &["devicePath"],
    &["topologyKey", "whenUnsatisfiable"],
    &["type"],
    &["uid"],
    &["ip"],
    &["host"],
    &["key"],
    &["id"],
];
/// A common start of two lines is shortened if it is longer than both numbers together. `KEPT` is the number of common
/// characters that are kept before the difference.
const COMMON: usize = 80;
const KEPT: usize = 30;

/// The part of a CRD that is compared. Descriptions in it are only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not in a CRD, or in a part of it without schemas.
    Other,
    Crd,
    Schema,
    /// A map of schemas.
    Schemas,
    Columns,
}

impl Place {
    fn member(self, key: &str) -> Self {
        match (self, key) {
            (Place::Crd, "openAPIV3Schema") | (Place::Schemas, _) => Place::Schema,
            (Place::Crd, "additionalPrinterColumns") => Place::Columns,
            (Place::Crd, _) => Place::Crd,
            (Place::Schema, "properties" | "patternProperties" | "definitions") => Place::Schemas,
            (Place::Schema, "items" | "additionalProperties" | "not" | "allOf" | "anyOf" | "oneOf") => Place::Schema,
            _ => Place::Other,
        }
    }

    fn is_schema(self) -> bool {
        matches!(self, Place::Schema | Place::Schemas)
    }

    /// The part that a step down adds to the path of a field.
    fn step(self, key: &str) -> Option<String> {
        match (self, key) {
            (Place::Schemas, key) => Some(key.to_owned()),
            (Place::Schema, "items") => Some("[]".to_owned()),
            (Place::Schema, "additionalProperties") => Some("{}".to_owned()),
            _ => None,
        }
    }

    fn is_description(self, key: &str, live: Option<&Value>, next: Option<&Value>) -> bool {
        let is_text = |side: Option<&Value>| side.is_none_or(Value::is_string);
        matches!(self, Place::Schema | Place::Columns) && key == "description" && is_text(live) && is_text(next)
    }
}

pub fn changes(live: &Value, next: &Value, schema: Schema<'_, Value>, is_crd: bool, all: bool) -> Vec<Line> {
    let mut walk = Walk {
        page: Page::new(all),
        descriptions: 0,
        path: Vec::new(),
        has_versions: false,
        flat: None,
        seen: Seen::default(),
    };
    let place = if is_crd { Place::Crd } else { Place::Other };
    let empty = Map::new();
    let [live, next] = [live, next].map(|side| side.as_object().unwrap_or(&empty));
    let versions = next.get("spec").and_then(|spec| spec["versions"].as_array());
    walk.has_versions = versions.is_some_and(|versions| versions.len() > 1);
    walk.members(Sides::default(), live, next, schema, place);
    let Walk { page, descriptions, seen, .. } = walk;
    let note = match descriptions {
        0 => None,
        1 => Some("# 1 description changed".to_owned()),
        number => Some(format!("# {number} descriptions changed")),
    };
    let mut lines = page.close(None);
    seen.add_notes(&mut lines);
    lines.extend(note.map(|text| Line { is: LineKind::Note, text }));
    lines
}

/// All lines of an object as added lines; only long texts are folded.
pub fn whole(next: &Value, all: bool) -> Vec<Line> {
    let mut page = Page::new(all);
    added(&mut page, Lead::default(), None, next);
    page.close(None)
}

fn added(page: &mut Page, lead: Lead, key: Option<&str>, value: &Value) {
    let head = |page: &mut Page, key: &str| {
        page.change(LineKind::Added, vec![lead.line(&format!("{}:", yaml::scalar(key)))]);
    };
    match (value, key) {
        (Value::Object(map), key) if !map.is_empty() => {
            let mut inside = lead;
            if let Some(key) = key {
                head(page, key);
                inside = lead.inside();
            }
            for (key, value) in yaml::ordered(map) {
                added(page, inside, Some(key), value);
                inside = inside.rest();
            }
        }
        (Value::Array(items), Some(key)) if !items.is_empty() => {
            head(page, key);
            let item = Lead { depth: lead.depth + 1, dashes: 1 };
            items.iter().for_each(|value| added(page, item, None, value));
        }
        _ => page.change(LineKind::Added, yaml::block(lead, key, value)),
    }
}

/// The start of lines on either side.
#[derive(Debug, Clone, Copy, Default)]
struct Sides {
    depth: usize,
    /// Pending dashes: those that the next line of this side starts with.
    live: usize,
    next: usize,
}

impl Sides {
    fn item(self) -> Self {
        Sides { depth: self.depth + 1, live: self.live + 1, next: self.next + 1 }
    }

    fn inside(self) -> Self {
        Sides { depth: self.depth + 1, live: 0, next: 0 }
    }

    fn rest(self) -> Self {
        Sides { live: 0, next: 0, ..self }
    }

    fn lead(self, dashes: usize) -> Lead {
        Lead { depth: self.depth, dashes }
    }
}

struct Walk {
    page: Page,
    descriptions: usize,
    /// In a CRD: the version, if there are several, and the path of the field.
    path: Vec<String>,
    has_versions: bool,
    /// In the schema of a CRD, unless all lines are requested: the start of its lines, and the path that was shown
    /// last.
    flat: Option<(Sides, String)>,
    seen: Seen,
}

impl Walk {
    /// Compares two values at the same path. Returns the sides with the pending dashes.
    fn value(
        &mut self,
        at: Sides,
        key: Option<&str>,
        live: &Value,
        next: &Value,
        schema: Schema<'_, Value>,
        place: Place,
    ) -> Sides {
        let is_schema = place.is_schema() && !self.page.all;
        if live == next {
            if self.flat.is_none() {
                self.page.context(yaml::summary(at.lead(at.next), key, next));
            }
            return at.rest();
        }
        if is_schema && self.flat.is_some() {
            match (live, next) {
                (Value::Object(live), Value::Object(next)) => self.members(at.rest(), live, next, schema, place),
                (Value::Array(live), Value::Array(items)) => {
                    self.items(at.rest(), live, items, (schema, schema.shape(next)), place);
                }
                _ => self.replaced(at, key, live, next),
            }
            return at.rest();
        }
        let head = key.map(|key| format!("{}:", yaml::scalar(key)));
        match (live, next) {
            (Value::Object(live), Value::Object(next)) => match head {
                Some(head) => {
                    self.page.enter(at.lead(at.next).line(&head));
                    self.flat = is_schema.then(|| (at.inside(), String::new()));
                    self.members(at.inside(), live, next, schema, place);
                    self.flat = None;
                    self.page.leave();
                }
                None => self.members(at, live, next, schema, place),
            },
            (Value::Array(live), Value::Array(items)) => {
                let shape = schema.shape(next);
                match head {
                    Some(head) => {
                        self.page.enter(at.lead(at.next).line(&head));
                        // Items are not indented below their key.
                        self.items(at.rest(), live, items, (schema, shape), place);
                        self.page.leave();
                    }
                    None => self.items(at, live, items, (schema, shape), place),
                }
            }
            (Value::String(live), Value::String(next)) if live.contains('\n') && next.contains('\n') => {
                self.text(at, head, live, next);
            }
            (live, next) => self.replaced(at, key, live, next),
        }
        at.rest()
    }

    fn replaced(&mut self, at: Sides, key: Option<&str>, live: &Value, next: &Value) {
        let at = self.located(at);
        let (removed, added) = (yaml::block(at.lead(at.live), key, live), yaml::block(at.lead(at.next), key, next));
        let (removed, added) = self.cut_common(removed, added);
        self.page.change(LineKind::Removed, removed);
        self.page.change(LineKind::Added, added);
    }

    /// The start of the lines of a change. In the schema of a CRD, a change is shown below its path instead of its
    /// parent lines.
    fn located(&mut self, at: Sides) -> Sides {
        let Some((flat, last)) = &mut self.flat else { return at };
        let path = path_text(self.path.iter().map(String::as_str));
        if path != *last {
            let shown = if path.is_empty() { "at the top" } else { &path };
            self.page.note(format!("{}# {shown}", "  ".repeat(flat.depth)));
            *last = path;
        }
        *flat
    }

    fn members(
        &mut self,
        mut at: Sides,
        live: &Map<String, Value>,
        next: &Map<String, Value>,
        schema: Schema<'_, Value>,
        place: Place,
    ) {
        let is_item = at.next > 0 && self.flat.is_none();
        let mut keys: Vec<&str> = live.keys().chain(next.keys()).map(String::as_str).collect();
        keys.sort_by_key(|key| yaml::order(key));
        keys.dedup();
        // Show an unchanged name of an item first, so the reader knows which item the other lines belong to.
        if is_item {
            let is_short = |value: &Value| !value.is_object() && !value.is_array();
            let stays =
                |key: &&&str| live.get(**key).is_some_and(|live| next.get(**key) == Some(live) && is_short(live));
            let of_list = KEYS.iter().filter_map(|of_list| keys.iter().position(|key| *key == of_list[0]));
            let known = of_list.into_iter().find(|at| stays(&&keys[*at]));
            if let Some(at) = known.or_else(|| keys.iter().position(|key| stays(&key))) {
                keys[..=at].rotate_right(1);
            }
        }
        let mut entered = false;
        for key in keys {
            let (live, next) = (live.get(key), next.get(key));
            if !self.page.all && live != next && place.is_description(key, live, next) {
                self.descriptions += 1;
                continue;
            }
            // In a schema, the path replaces the context of a change.
            if self.flat.is_some() && live == next {
                continue;
            }
            // The header identifies the object.
            if at.depth == 0 && live == next && matches!(key, "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let is_leaf = place.member(key) == Place::Other || live.is_none() || next.is_none();
            if self.flat.is_some() && live != next && is_leaf && place.is_schema() {
                self.definition(key, live, next, schema, place);
                continue;
            }
            match (live, next) {
                (Some(live), Some(next)) if is_item && !entered && live == next => {
                    self.page.enter(yaml::summary(at.lead(at.next), Some(key), next));
                    entered = true;
                    at = at.rest();
                }
                (Some(live), Some(next)) => {
                    let schema = schema.member(key).unwrap_or(Schema::Deduced);
                    let step = place.step(key);
                    let depth = self.path.len();
                    self.path.extend(step);
                    at = self.value(at, Some(key), live, next, schema, place.member(key));
                    self.path.truncate(depth);
                }
                (Some(live), None) => {
                    self.page.change(LineKind::Removed, yaml::block(at.lead(at.live), Some(key), live));
                    at.live = 0;
                }
                (None, Some(next)) => {
                    self.page.change(LineKind::Added, yaml::block(at.lead(at.next), Some(key), next));
                    at.next = 0;
                }
                (None, None) => {}
            }
        }
        if entered {
            self.page.leave();
        }
    }

    /// Shows a change of a field or of a keyword in the schema of a CRD once, even if it occurs at several places.
    fn definition(
        &mut self,
        key: &str,
        live: Option<&Value>,
        next: Option<&Value>,
        schema: Schema<'_, Value>,
        place: Place,
    ) {
        let is_field = place == Place::Schemas;
        let of_field = if is_field { key } else { self.path.last().map_or("", String::as_str) };
        let what = serde_json::json!([of_field, key, live, next]).to_string();
        let path = || path_text(self.path.iter().map(String::as_str).chain(is_field.then_some(key)));
        if self.seen.is_again(&what, path) {
            return;
        }
        let at = self.located(Sides::default());
        let flat = self.flat.take();
        match (live, next) {
            (Some(live), Some(next)) => {
                let schema = schema.member(key).unwrap_or(Schema::Deduced);
                self.value(at, Some(key), live, next, schema, place.member(key));
            }
            (Some(live), None) if is_field => {
                definition::field(&mut self.page, LineKind::Removed, at.lead(0), key, live);
            }
            (None, Some(next)) if is_field => {
                definition::field(&mut self.page, LineKind::Added, at.lead(0), key, next);
            }
            (Some(live), None) => self.page.change(LineKind::Removed, yaml::block(at.lead(0), Some(key), live)),
            (None, Some(next)) => self.page.change(LineKind::Added, yaml::block(at.lead(0), Some(key), next)),
            (None, None) => {}
        }
        self.flat = flat;
        self.seen.shown(what, at.depth, &self.page);
    }

    fn items(
        &mut self,
        at: Sides,
        live: &[Value],
        next: &[Value],
        (schema, shape): (Schema<'_, Value>, Shape<'_, Value>),
        place: Place,
    ) {
        let (item_schema, pairs) = match shape {
            Shape::Keyed(keyed) => {
                let key = |item: &Value| keyed.key(item).map(|key| format!("{key:?}"));
                (keyed.items, pairs(live, next, key))
            }
            _ => (schema.items(), None),
        };
        let pairs = pairs.or_else(|| {
            if !live.iter().chain(next).all(Value::is_object) {
                return None;
            }
            KEYS.iter().find_map(|keys| {
                let key = |item: &Value| {
                    item.get(keys[0])?;
                    Some(keys.iter().map(|key| format!("{:?} ", item.get(key))).collect::<String>())
                };
                self::pairs(live, next, key)
            })
        });
        match pairs {
            Some(pairs) => self.keyed(at, live, next, &pairs, item_schema, place),
            None => self.listed(at, live, next, item_schema, place),
        }
    }

    /// Compares items with a merge key, in any order. `pairs` has the live index of each next item.
    fn keyed(
        &mut self,
        at: Sides,
        live: &[Value],
        next: &[Value],
        pairs: &[Option<usize>],
        schema: Schema<'_, Value>,
        place: Place,
    ) {
        let mut stays = vec![false; live.len()];
        pairs.iter().flatten().for_each(|index| stays[*index] = true);
        let matched: Vec<usize> = pairs.iter().flatten().copied().collect();
        if !matched.is_sorted() {
            let names = |items: &mut dyn Iterator<Item = &Value>| {
                let names: Vec<String> = items.map(name).collect();
                text::cut(&names.join(", "), 200).into_owned()
            };
            let before = names(&mut stays.iter().zip(live).filter(|(stays, _)| **stays).map(|(_, item)| item));
            let after = names(&mut pairs.iter().zip(next).filter(|(pair, _)| pair.is_some()).map(|(_, item)| item));
            let indent = "  ".repeat(at.depth);
            self.page.note(format!("{indent}# the order changed from {before} to {after}"));
        }
        let mut done = 0;
        for (item, pair) in next.iter().zip(pairs) {
            if let Some(index) = pair {
                for (gone, _) in live.iter().zip(&stays).take(*index).skip(done).filter(|(_, stays)| !**stays) {
                    self.item(at, Some(gone), None, schema, place);
                }
                done = done.max(*index);
            }
            self.item(at, pair.map(|index| &live[index]), Some(item), schema, place);
        }
        for (gone, _) in live.iter().zip(&stays).skip(done).filter(|(_, stays)| !**stays) {
            self.item(at, Some(gone), None, schema, place);
        }
    }

    /// Compares items that are identified only by their order.
    fn listed(&mut self, at: Sides, live: &[Value], next: &[Value], schema: Schema<'_, Value>, place: Place) {
        let texts = |items: &[Value]| items.iter().map(Value::to_string).collect::<Vec<_>>();
        for part in lines::parts(&texts(live), &texts(next)) {
            match part {
                Part::Same(_, range) => {
                    next[range].iter().for_each(|item| self.item(at, Some(item), Some(item), schema, place));
                }
                Part::Replaced(before, after) => {
                    let (before, after) = (&live[before], &next[after]);
                    let is_open = |item: &Value| item.is_object() || item.is_array();
                    let both =
                        before.iter().zip(after).take_while(|(one, other)| is_open(one) && is_open(other)).count();
                    for (before, after) in before.iter().zip(after).take(both) {
                        self.item(at, Some(before), Some(after), schema, place);
                    }
                    before[both..].iter().for_each(|item| self.item(at, Some(item), None, schema, place));
                    after[both..].iter().for_each(|item| self.item(at, None, Some(item), schema, place));
                }
            }
        }
    }

    fn item(&mut self, at: Sides, live: Option<&Value>, next: Option<&Value>, schema: Schema<'_, Value>, place: Place) {
        let is_one_sided = live.is_none() || next.is_none();
        let at = if is_one_sided { self.located(at).item() } else { at.item() };
        match (live, next) {
            (Some(live), Some(next)) => {
                // Outside of its schemas, the named items of a CRD are its versions.
                let version = (place == Place::Crd && self.has_versions).then(|| next["name"].as_str()).flatten();
                let depth = self.path.len();
                self.path.extend(version.map(|version| format!("{version}:")));
                self.value(at, None, live, next, schema, place);
                self.path.truncate(depth);
            }
            (Some(live), None) => self.page.change(LineKind::Removed, self.lines_of_item(at.lead(at.live), live)),
            (None, Some(next)) => self.page.change(LineKind::Added, self.lines_of_item(at.lead(at.next), next)),
            (None, None) => {}
        }
    }

    fn lines_of_item(&self, lead: Lead, item: &Value) -> Vec<String> {
        if self.page.all { yaml::block(lead, None, item) } else { yaml::item(lead, item) }
    }

    /// Compares a multi-line text by line.
    fn text(&mut self, at: Sides, head: Option<String>, live: &str, next: &str) {
        let marks = [live, next].map(yaml::block_mark);
        let line = |dashes: usize, mark: &str| at.lead(dashes).line(&yaml::with(head.clone(), mark));
        if marks[0] == marks[1] {
            self.page.enter(line(at.next, marks[1]));
        } else {
            self.page.change(LineKind::Removed, vec![line(at.live, marks[0])]);
            self.page.change(LineKind::Added, vec![line(at.next, marks[1])]);
            self.page.enter_kept();
        }
        let inside = at.inside().lead(0);
        let [live, next] = [live, next].map(|text| text.lines().collect::<Vec<_>>());
        for part in lines::parts(&live, &next) {
            match part {
                Part::Same(_, range) => next[range].iter().for_each(|text| self.page.context(inside.line(text))),
                Part::Replaced(before, after) => {
                    let lines = |texts: &[&str]| texts.iter().map(|text| inside.line(text)).collect();
                    let (removed, added) = self.cut_common(lines(&live[before]), lines(&next[after]));
                    self.page.change(LineKind::Removed, removed);
                    self.page.change(LineKind::Added, added);
                }
            }
        }
        self.page.leave();
    }

    /// Shortens the common start of two long lines, so the difference is visible.
    fn cut_common(&self, mut removed: Vec<String>, mut added: Vec<String>) -> (Vec<String>, Vec<String>) {
        if let ([removed], [added], false) = (&mut removed[..], &mut added[..], self.page.all) {
            let indent = removed.len() - removed.trim_start().len();
            let common = removed.chars().zip(added.chars()).take_while(|(one, other)| one == other).count();
            if common > indent + COMMON + KEPT {
                for line in [removed, added] {
                    let start: String = line.chars().take(indent + COMMON - KEPT).collect();
                    let end: String = line.chars().skip(common - KEPT).collect();
                    *line = format!("{start}…{end}");
                }
            }
        }
        (removed, added)
    }
}

/// The text of a path, such as `v1: spec.rules[].host`.
fn path_text<'s>(steps: impl Iterator<Item = &'s str>) -> String {
    let mut text = String::new();
    for step in steps {
        let glue = match text.chars().last() {
            None => "",
            Some(':') => " ",
            _ if step.starts_with(['[', '{']) => "",
            _ => ".",
        };
        text.push_str(glue);
        text.push_str(step);
    }
    text
}

/// The name of a list item.
fn name(item: &Value) -> String {
    let named = KEYS.iter().find_map(|keys| item.get(keys[0]));
    let text = named.and_then(Value::as_str).map(str::to_owned);
    text.unwrap_or_else(|| named.unwrap_or(item).to_string())
}

/// Finds the live item with the same key for each next item; `None` if an item has no key, or two items share one.
fn pairs(live: &[Value], next: &[Value], key: impl Fn(&Value) -> Option<String>) -> Option<Vec<Option<usize>>> {
    let index = |items: &[Value]| {
        let mut found = BTreeMap::new();
        let unique = items.iter().enumerate().all(|(index, item)| match key(item) {
            Some(key) => found.insert(key, index).is_none(),
            None => false,
        });
        unique.then_some(found)
    };
    let (live, _) = (index(live)?, index(next)?);
    Some(next.iter().map(|item| live.get(&key(item)?).copied()).collect())
}
