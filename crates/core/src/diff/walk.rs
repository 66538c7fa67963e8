//! Walks the live and the next tree together.

use serde_json::{Map, Value};

use super::definition::{self, ShownChanges};
use super::keys::Matched;
use super::lines::{self, LineRange};
use super::page::DiffPage;
use super::path::DiffPath;
use super::yaml::{self, Lead};
use super::{Line, LineKind, note};
use crate::merge::MergeSchema;
use crate::text;

/// If two changed lines have more than `COMMON` characters in common at the start, only `KEPT` of them before the
/// difference are shown.
const COMMON: usize = 80;
const KEPT: usize = 30;

/// The part of a CRD that is compared. Changed descriptions of schemas are only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CrdRegion {
    /// Not part of a CRD, or a keyword value in its schema.
    Other,
    Crd,
    Schema,
    /// A map of schemas.
    Schemas,
    Columns,
}

impl CrdRegion {
    fn member(self, key: &str) -> Self {
        match (self, key) {
            (CrdRegion::Crd, "openAPIV3Schema") | (CrdRegion::Schemas, _) => CrdRegion::Schema,
            (CrdRegion::Crd, "additionalPrinterColumns") => CrdRegion::Columns,
            (CrdRegion::Crd, _) => CrdRegion::Crd,
            (CrdRegion::Schema, "properties" | "patternProperties" | "definitions") => CrdRegion::Schemas,
            (CrdRegion::Schema, "items" | "additionalProperties" | "not" | "allOf" | "anyOf" | "oneOf") => {
                CrdRegion::Schema
            }
            _ => CrdRegion::Other,
        }
    }

    fn is_schema(self) -> bool {
        matches!(self, CrdRegion::Schema | CrdRegion::Schemas)
    }

    fn is_description(self, key: &str, live: Option<&Value>, next: Option<&Value>) -> bool {
        let is_text = |side: Option<&Value>| side.is_none_or(Value::is_string);
        matches!(self, CrdRegion::Schema | CrdRegion::Columns) && key == "description" && is_text(live) && is_text(next)
    }
}

pub fn changes(live: &Value, next: &Value, schema: MergeSchema<'_, Value>, is_crd: bool, all: bool) -> Vec<Line> {
    let mut walk = DiffWalk {
        page: DiffPage::new(all),
        path: DiffPath::default(),
        descriptions: 0,
        version: None,
        has_versions: false,
        seen: ShownChanges::default(),
    };
    let place = if is_crd { CrdRegion::Crd } else { CrdRegion::Other };
    let empty = Map::new();
    let [live, next] = [live, next].map(|side| side.as_object().unwrap_or(&empty));
    let versions = next.get("spec").and_then(|spec| spec["versions"].as_array());
    walk.has_versions = versions.is_some_and(|versions| versions.len() > 1);
    walk.compare_members(live, next, schema, place);
    let mut lines = walk.page.close();
    walk.seen.add_notes(&mut lines);
    if walk.descriptions > 0 {
        lines.push(note(&format!("# {} changed", text::count(walk.descriptions, "description"))));
    }
    lines
}

/// Whether both values are maps or both are lists, so that their parts are compared.
fn have_parts(live: &Value, next: &Value) -> bool {
    live.is_object() && next.is_object() || live.is_array() && next.is_array()
}

/// The whole object as added lines. Only long texts are folded.
pub fn added_lines(next: &Value, all: bool) -> Vec<Line> {
    let mut page = DiffPage::new(all);
    write_added(&mut page, Lead::default(), None, next);
    page.close()
}

fn write_added(page: &mut DiffPage, lead: Lead, key: Option<&str>, value: &Value) {
    let head = |page: &mut DiffPage, key: &str| {
        page.change(LineKind::Added, vec![lead.line(&format!("{}:", yaml::scalar(key)))]);
    };
    match (value, key) {
        (Value::Object(map), key) if !map.is_empty() => {
            let mut inside = lead;
            if let Some(key) = key {
                head(page, key);
                inside = lead.for_members();
            }
            for (key, value) in yaml::ordered(map) {
                write_added(page, inside, Some(key), value);
                inside = inside.without_dashes();
            }
        }
        (Value::Array(items), Some(key)) if !items.is_empty() => {
            head(page, key);
            let item = Lead { depth: lead.depth + 1, dashes: 1 };
            items.iter().for_each(|value| write_added(page, item, None, value));
        }
        _ => page.change(LineKind::Added, yaml::block(lead, key, value)),
    }
}

struct DiffWalk {
    page: DiffPage,
    path: DiffPath,
    descriptions: usize,
    /// The current version of a CRD with several versions.
    version: Option<String>,
    has_versions: bool,
    seen: ShownChanges,
}

impl DiffWalk {
    /// Two different values at the same path that [`have_parts`].
    fn compare_values(&mut self, live: &Value, next: &Value, schema: MergeSchema<'_, Value>, place: CrdRegion) {
        if let (Value::Object(live), Value::Object(next)) = (live, next) {
            self.compare_members(live, next, schema, place);
        }
        if let (Value::Array(live), Value::Array(items)) = (live, next) {
            match Matched::match_items(live, items, &schema.shape(next)) {
                Some(matched) => self.compare_keyed_items(live, items, &matched, schema.items(), place),
                None => self.compare_ordered_items(live, items, schema.items(), place),
            }
        }
    }

    /// The members of two maps: first the changed values, then the changed maps and lists, which have headings.
    fn compare_members(
        &mut self,
        live: &Map<String, Value>,
        next: &Map<String, Value>,
        schema: MergeSchema<'_, Value>,
        place: CrdRegion,
    ) {
        let mut keys: Vec<&str> = live.keys().chain(next.keys()).map(String::as_str).collect();
        keys.sort_by_key(|key| yaml::order(key));
        keys.dedup();
        let mut nested = Vec::new();
        for key in keys {
            let (live, next) = (live.get(key), next.get(key));
            // The header shows the namespace; a manifest in a folder can leave it out.
            if live == next || key == "namespace" && self.path.is_metadata() {
                continue;
            }
            if !self.page.all && place.is_description(key, live, next) {
                self.descriptions += 1;
                continue;
            }
            match (live, next) {
                (Some(live), Some(next)) if have_parts(live, next) => nested.push((key, live, next)),
                (live, next) => self.write_member(key, live, next, place),
            }
        }
        for (key, live, next) in nested {
            let schema = schema.member(key).unwrap_or(MergeSchema::Deduced);
            // A keyword with a list or map, such as `enum` or `default`: one change of the field that the path leads
            // to.
            let is_keyword = place == CrdRegion::Schema && place.member(key) == CrdRegion::Other;
            if is_keyword && self.is_again(key, Some(live), Some(next), place) {
                continue;
            }
            let depth = if is_keyword { self.path.heading(&mut self.page) } else { 0 };
            let steps = self.path.len();
            self.enter_member(key, place);
            self.compare_values(live, next, schema, place.member(key));
            self.path.leave(steps);
            if is_keyword {
                self.seen.record_shown(depth, &self.page);
            }
        }
    }

    /// Steps into a member. Within a schema, the path is a field path.
    fn enter_member(&mut self, key: &str, place: CrdRegion) {
        match (place, key) {
            (CrdRegion::Schemas, key) => self.path.enter(key.to_owned()),
            (CrdRegion::Schema, "items") => self.path.enter("[]".to_owned()),
            (CrdRegion::Schema, "additionalProperties") => self.path.enter("{}".to_owned()),
            (CrdRegion::Schema, "properties") => {}
            (place, key) => {
                self.path.enter_member(key);
                if place == CrdRegion::Crd && place.member(key) == CrdRegion::Schema {
                    self.path.enter_schema();
                }
            }
        }
    }

    /// A member that exists on one side only, or whose value is replaced.
    fn write_member(&mut self, key: &str, live: Option<&Value>, next: Option<&Value>, place: CrdRegion) {
        if place.is_schema() && self.is_again(key, live, next, place) {
            return;
        }
        if place == CrdRegion::Schemas && !self.page.all {
            let lead = Lead { depth: self.path.heading_of_schema(&mut self.page), dashes: 0 };
            let path = self.path.in_schema(Some(key));
            for (kind, node) in [(LineKind::Removed, live), (LineKind::Added, next)] {
                let Some(node) = node else { continue };
                definition::write_field(&mut self.page, kind, lead, &path, node);
            }
            self.seen.record_shown(lead.depth, &self.page);
            return;
        }
        let lead = Lead { depth: self.path.heading(&mut self.page), dashes: 0 };
        match (live, next) {
            (Some(Value::String(live)), Some(Value::String(next))) if live.contains('\n') && next.contains('\n') => {
                self.compare_texts(lead, key, live, next);
            }
            (live, next) => {
                let block =
                    |side: Option<&Value>| side.map(|value| yaml::block(lead, Some(key), value)).unwrap_or_default();
                self.write_replaced(block(live), block(next));
            }
        }
        if place.is_schema() {
            self.seen.record_shown(lead.depth, &self.page);
        }
    }

    /// Whether the same change was already shown at another place of the CRD.
    fn is_again(&mut self, key: &str, live: Option<&Value>, next: Option<&Value>, place: CrdRegion) -> bool {
        if self.page.all {
            return false;
        }
        let field = (place == CrdRegion::Schemas).then_some(key);
        let path = self.path.in_schema(field);
        let of_field = path.rsplit('.').next().unwrap_or_default();
        let what = serde_json::json!([of_field, key, live, next]).to_string();
        let path = self.version.as_ref().map_or_else(|| path.clone(), |version| format!("{version}: {path}"));
        self.seen.is_again(what, path)
    }

    fn write_replaced(&mut self, removed: Vec<String>, added: Vec<String>) {
        let (removed, added) = self.cut_common(removed, added);
        self.page.change(LineKind::Removed, removed);
        self.page.change(LineKind::Added, added);
    }

    /// Items with a merge key, in any order.
    fn compare_keyed_items(
        &mut self,
        live: &[Value],
        next: &[Value],
        matched: &Matched,
        schema: MergeSchema<'_, Value>,
        place: CrdRegion,
    ) {
        if let Some(order) = matched.order() {
            let depth = self.path.heading(&mut self.page);
            self.page.note(format!("{}# {order}", "  ".repeat(depth)));
        }
        let mut stays = vec![false; live.len()];
        matched.pairs.iter().flatten().for_each(|index| stays[*index] = true);
        // Removed items are shown at their old place.
        let mut gone = live.iter().enumerate().filter(|(index, _)| !stays[*index]).peekable();
        for ((item, pair), label) in next.iter().zip(&matched.pairs).zip(&matched.labels) {
            let Some(index) = *pair else {
                self.one_sided(LineKind::Added, item);
                continue;
            };
            while let Some((_, item)) = gone.next_if(|(before, _)| *before < index) {
                self.one_sided(LineKind::Removed, item);
            }
            if live[index] != *item {
                self.diff_item(label, &live[index], item, schema, place);
            }
        }
        gone.for_each(|(_, item)| self.one_sided(LineKind::Removed, item));
        self.page.end_context();
    }

    /// Items without keys, where the order matters: unchanged items around a change are shown.
    fn compare_ordered_items(
        &mut self,
        live: &[Value],
        next: &[Value],
        schema: MergeSchema<'_, Value>,
        place: CrdRegion,
    ) {
        let texts = |items: &[Value]| items.iter().map(Value::to_string).collect::<Vec<_>>();
        let parts = lines::parts(&texts(live), &texts(next));
        let compared = |before: &[Value], after: &[Value]| {
            before.iter().zip(after).take_while(|(before, after)| have_parts(before, after)).count()
        };
        let has_one_sided = parts.iter().any(|part| match part {
            LineRange::Same(..) => false,
            LineRange::Replaced(before, after) => {
                let both = compared(&live[before.clone()], &next[after.clone()]);
                both < before.len() || both < after.len()
            }
        });
        for part in parts {
            match part {
                LineRange::Same(_, range) if has_one_sided => {
                    let lead = self.lead_of_item();
                    next[range].iter().for_each(|item| self.page.context(yaml::summary(lead, None, item)));
                }
                LineRange::Same(..) => {}
                LineRange::Replaced(before, after) => {
                    let start = after.start;
                    let (before, after) = (&live[before], &next[after]);
                    let both = compared(before, after);
                    for (index, (before, after)) in before.iter().zip(after).take(both).enumerate() {
                        self.diff_item(&(start + index).to_string(), before, after, schema, place);
                    }
                    before[both..].iter().for_each(|item| self.one_sided(LineKind::Removed, item));
                    after[both..].iter().for_each(|item| self.one_sided(LineKind::Added, item));
                }
            }
        }
        self.page.end_context();
    }

    /// An item that exists on both sides.
    fn diff_item(&mut self, label: &str, live: &Value, next: &Value, schema: MergeSchema<'_, Value>, place: CrdRegion) {
        // Of the lists in a CRD outside of its schemas, only `versions` has maps as items.
        let is_version = place == CrdRegion::Crd && self.has_versions;
        if is_version {
            self.version = next["name"].as_str().map(str::to_owned);
        }
        let depth = self.path.len();
        self.path.enter_item(label);
        self.compare_values(live, next, schema, place);
        self.path.leave(depth);
        if is_version {
            self.version = None;
        }
    }

    fn one_sided(&mut self, kind: LineKind, item: &Value) {
        let lead = self.lead_of_item();
        let lines = if self.page.all { yaml::block(lead, None, item) } else { yaml::item(lead, item) };
        self.page.change(kind, lines);
    }

    /// The start of item lines of the list at this path. Items are not indented below their key.
    fn lead_of_item(&mut self) -> Lead {
        Lead { depth: self.path.heading(&mut self.page), dashes: 1 }
    }

    /// A text of several lines, line by line.
    fn compare_texts(&mut self, lead: Lead, key: &str, live: &str, next: &str) {
        let marks = [live, next].map(yaml::block_mark);
        let line = |mark: &str| lead.line(&format!("{}: {mark}", yaml::scalar(key)));
        if marks[0] == marks[1] {
            self.page.heading(line(marks[1]));
        } else {
            self.page.change(LineKind::Removed, vec![line(marks[0])]);
            self.page.change(LineKind::Added, vec![line(marks[1])]);
        }
        let inside = lead.for_members();
        let [live, next] = [live, next].map(|text| text.lines().collect::<Vec<_>>());
        for part in lines::parts(&live, &next) {
            match part {
                LineRange::Same(_, range) => next[range].iter().for_each(|text| self.page.context(inside.line(text))),
                LineRange::Replaced(before, after) => {
                    let lines = |texts: &[&str]| texts.iter().map(|text| inside.line(text)).collect();
                    self.write_replaced(lines(&live[before]), lines(&next[after]));
                }
            }
        }
        self.page.end_context();
    }

    /// Shortens the common start of two long lines, so that the difference is visible.
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
