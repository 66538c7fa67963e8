//! The keywords of one node that restrict its values, and the schemas that it combines.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::obligation::ChangeOrigin;
use super::{ComparedNode, ProductWalk, changed_keywords, filled};
use crate::constraints::{SharedSchema, ValueConstraints};
use crate::keywords as kw;
use crate::text::{changed_words, shorten};

/// The maximum number of comparisons between the options of two enums.
const MAX_OPTION_PAIRS: usize = 10_000;
/// Up to this many newly required fields are checked one by one; more of them are one question.
const MAX_SINGLE_FIELDS: usize = 64;

impl<'s> ProductWalk<'_, 's> {
    pub(super) fn compare_keywords(&mut self, node: ComparedNode<'_, 's>, differing: &[&str]) {
        let ComparedNode { source, structure, target, place } = node;
        let is_same = |keyword: &str| !differing.contains(&keyword);
        // The meaning of a bound depends on the type: a bound that no integer can have refuses all integers. So does
        // the meaning of a format: `int32` bounds only integers.
        let is_same_number = ["type", "format"].into_iter().all(is_same);
        for (keyword, parts) in kw::VALUE_KEYWORDS {
            let is_number = matches!(keyword, "maximum" | "minimum" | "multipleOf" | "format");
            let is_same = parts.iter().all(|part| is_same(part)) && (is_same_number || !is_number)
                || keyword == "enum" && has_options_of(structure, target);
            let is_about_objects = matches!(keyword, "enum" | "maxProperties" | "minProperties");
            if is_same && !is_about_objects || kw::get(target, keyword).is_none() {
                continue;
            }
            let mut refused = kw::type_keywords(target);
            let mut of = vec!["format"];
            of.extend(parts);
            for part in of.into_iter().filter(|part| *part != "format" || keyword == "format" || is_number) {
                if let Some(value) = kw::get(target, part) {
                    refused.insert(part.to_owned(), value.clone());
                }
            }
            let Some(Restated { refused, reason, unfilled }) =
                self.refused(keyword, refused, is_same, structure, target)
            else {
                continue;
            };
            let known = self.walked.obligations.len();
            let is_proven = self.prove_accepted(source, SharedSchema::owned(refused), place, || reason);
            let origin = match changed_keywords(differing, parts) {
                _ if is_same || !is_proven && self.holds_unfilled(source, unfilled) => ChangeOrigin::OtherNodes,
                ChangeOrigin::OtherNodes => {
                    changed_keywords(differing, &["format", "type", "x-kubernetes-int-or-string"])
                }
                own => own,
            };
            self.attribute(known, place, origin);
        }
        let required: BTreeSet<&str> = kw::names(structure, "required").collect();
        let mut added: Vec<&str> = Vec::new();
        for name in kw::names(target, "required").filter(|name| !required.contains(name)) {
            if kw::property(target, name).is_some_and(|field| kw::default_of(field).is_some()) {
                self.walked.notes.push((place.path.clone(), format!("required {name}: the default sets it")));
                continue;
            }
            // Every resource has these fields.
            if kw::is_meta(name) && (place.is_root || kw::embedded(structure) && name != "metadata") {
                continue;
            }
            added.push(name);
        }
        let known = self.walked.obligations.len();
        let questions: Vec<&[&str]> = match added.len() {
            ..=MAX_SINGLE_FIELDS => added.chunks(1).collect(),
            _ => vec![&added[..]],
        };
        for names in questions {
            let refused = SharedSchema::owned(json!({"type": "object", "required": names}));
            self.prove_accepted(source, refused, place, || format!("required: {} added", shorten(&names.join(", "))));
        }
        self.attribute(known, place, changed_keywords(differing, &["required"]));
    }

    /// Whether values before defaulting pass, so that what breaks comes from the new defaults of other nodes.
    fn holds_unfilled(&self, source: &ValueConstraints<'s>, unfilled: Option<Value>) -> bool {
        let Some(unfilled) = unfilled else { return false };
        let mut constraints = source.clone();
        constraints.fails.push(SharedSchema::owned(unfilled));
        self.solver.solve(&constraints, None, 1).is_nothing()
    }

    /// Restates `refused`, a schema with one keyword of the target, as a schema for values before defaulting, and
    /// describes what changed. None if nothing changed.
    fn refused(
        &self,
        keyword: &str,
        refused: serde_json::Map<String, Value>,
        is_same: bool,
        structure: &'s Value,
        target: &'s Value,
    ) -> Option<Restated> {
        let refused = Value::Object(refused);
        let changed = || changed_words(keyword, structure, target);
        match filled::before_filling(self.solver, &refused, structure, target) {
            Some(before) if is_same => Some(Restated { refused: before, reason: with_filled(keyword), unfilled: None }),
            Some(before) => Some(Restated { refused: before, reason: changed(), unfilled: Some(refused) }),
            None if is_same => None,
            None => Some(Restated { refused, reason: changed(), unfilled: None }),
        }
    }

    pub(super) fn compare_combined(&mut self, node: ComparedNode<'_, 's>, differing: &[&str]) {
        let ComparedNode { source, structure, target, place } = node;
        for keyword in ["anyOf", "oneOf", "not"] {
            let Some(value) = kw::get(target, keyword) else { continue };
            let mut refused = kw::type_keywords(target);
            refused.insert(keyword.to_owned(), value.clone());
            let is_same = !differing.contains(&keyword);
            let Some(Restated { refused, reason, unfilled }) =
                self.refused(keyword, refused, is_same, structure, target)
            else {
                continue;
            };
            let at = self.walked.obligations.len();
            let is_proven = self.prove_accepted(source, SharedSchema::owned(refused), place, || reason);
            let is_own = !is_same && (is_proven || !self.holds_unfilled(source, unfilled));
            self.attribute(
                at,
                place,
                if is_own { changed_keywords(differing, &[keyword]) } else { ChangeOrigin::OtherNodes },
            );
        }
        let kept = kw::list(structure, "allOf");
        for branch in kw::list(target, "allOf") {
            let is_same = kept.iter().any(|known| kw::is_same_node(known, branch));
            let at = self.walked.obligations.len();
            let is_filled = match filled::before_filling(self.solver, branch, structure, target) {
                Some(before) => {
                    self.prove_accepted(source, SharedSchema::owned(before), place, || with_filled("allOf"));
                    is_same || self.holds_unfilled(source, Some(branch.clone()))
                }
                None if is_same => continue,
                None => {
                    let reason = || changed_words("allOf", structure, target);
                    self.prove_accepted(source, SharedSchema::Ref(branch), place, reason);
                    false
                }
            };
            self.attribute(
                at,
                place,
                if is_filled { ChangeOrigin::OtherNodes } else { changed_keywords(differing, &["allOf"]) },
            );
        }
    }
}

/// A schema with one keyword of the target, for values before defaulting.
struct Restated {
    refused: Value,
    reason: String,
    /// The same for values that nothing is filled into, if that is different.
    unfilled: Option<Value>,
}

/// Whether the target's `enum` contains every value of the source's.
fn has_options_of(source: &Value, target: &Value) -> bool {
    let (before, after) = (kw::list(source, "enum"), kw::list(target, "enum"));
    let is_small = before.len().saturating_mul(after.len()) <= MAX_OPTION_PAIRS;
    is_small && !before.is_empty() && before.iter().all(|value| after.iter().any(|other| kw::same_value(value, other)))
}

/// The reason for a keyword that did not change while the defaulted values that it validates did.
fn with_filled(keyword: &str) -> String {
    format!("{keyword}: sees new defaults")
}
