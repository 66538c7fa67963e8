//! Objects can no longer be selected by a field.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::wording::wording;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let kept = &desired.selectable_fields;
        let gone = live.selectable_fields.iter().filter(|field| !kept.contains(field));
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        if gone.is_empty() {
            continue;
        }
        let fields = words::listed(&gone);
        let diagnosis = ViolationText {
            message: wording!("objects of ", VERSIONS, " can no longer be selected by {fields}"),
            help: wording!("keep {fields} in selectableFields of ", VERSIONS),
            at: steps::of_version(desired.index, "selectableFields"),
            ..ViolationText::default()
        }
        .label(format!("the live CRD has {fields}"));
        found.push(CrdRuleViolation { version: Some(live.name.to_string()), diagnosis });
    }
    found
}
