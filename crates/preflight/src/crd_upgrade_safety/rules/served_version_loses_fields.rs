//! A served version has fields that the storage version lacks, or lacks fields that the storage version has.

use super::storage_version_loses_fields;
use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::lost_fields;
use gantry_core::crd::{Crd, CrdPair, CrdVersion, steps};
use gantry_core::finding::Severity;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    if pair.converts_by_webhook() {
        return Vec::new();
    }
    let not_stored = |version: &CrdVersion| {
        let mut lost = lost_fields::lost_in_storage(&pair.desired, version);
        if lost.is_empty() {
            return lost;
        }
        if let Some(live) = pair.live.served(&version.name) {
            if !pair.live.converts_by_webhook() {
                lost = lost_fields::without_known(lost, &lost_fields::lost_in_storage(&pair.live, live));
            }
            // That the storage version changes is reported by itself.
            lost = lost_fields::without_known(lost, &storage_version_loses_fields::lost_by(pair, live));
        }
        lost
    };
    let live = (!pair.live.converts_by_webhook()).then_some(&*pair.live);
    let dropped = |version: &CrdVersion| lost_fields::newly_lost_by_writers(live, &pair.desired, version);
    let has_values = |version: &CrdVersion, lost: &[String]| {
        let existing = pair.live.storage().map(|storage| lost_fields::lost_between(storage, version));
        let others = existing.map(|existing| lost_fields::without_known(lost.to_vec(), &existing));
        others.is_some_and(|others| others.len() < lost.len())
    };
    find_losses(&pair.desired, not_stored, dropped, has_values)
}

/// The violations of a CRD that is created.
pub fn judge_new(crd: &Crd) -> Vec<CrdRuleViolation> {
    if crd.converts_by_webhook() {
        return Vec::new();
    }
    let not_stored = |version: &CrdVersion| lost_fields::lost_in_storage(crd, version);
    find_losses(crd, not_stored, |version| lost_fields::lost_by_writers(crd, version), |_, _| false)
}

/// `not_stored` is what the storage version drops of a version, `dropped` what a write at the version drops, and
/// `has_values` says whether existing objects may have values that it drops.
fn find_losses(
    desired: &Crd,
    not_stored: impl Fn(&CrdVersion) -> Vec<String>,
    dropped: impl Fn(&CrdVersion) -> Vec<String>,
    has_values: impl Fn(&CrdVersion, &[String]) -> bool,
) -> Vec<CrdRuleViolation> {
    let Some(storage) = desired.storage() else { return Vec::new() };
    let stored_at = &storage.name;
    let mut found = Vec::new();
    for version in desired.served_versions() {
        let name = &version.name;
        let mut add = |message: String, help: String, label: String, semantic: Option<Severity>| {
            let at = steps::schema(version.index);
            let (message, help) = (message.into(), help.into());
            let diagnosis = ViolationText { message, help, at, semantic, ..ViolationText::default() }.label(label);
            found.push(CrdRuleViolation { version: Some(name.to_string()), diagnosis });
        };
        let lost = not_stored(version);
        if !lost.is_empty() {
            let (listed, them) = (words::listed(&lost), pronoun(&lost));
            add(
                format!("what is written at {name} loses {listed}: the storage version {stored_at} lacks {them}"),
                format!("add {listed} to {stored_at} as well, or convert with a webhook"),
                format!("{stored_at}, at which every object is stored, lacks {listed}"),
                // What clients send there is dropped today already.
                None,
            );
        }
        let lost = dropped(version);
        if !lost.is_empty() {
            let (listed, them) = (words::listed(&lost), pronoun(&lost));
            add(
                format!(
                    "every write at {name}, even of a label, drops {listed} from the object: {name} lacks {them}, and the \
                     storage version {stored_at} has {them}"
                ),
                format!(
                    "add {listed} to {name} as well, convert with a webhook, or stop serving {name} once no client uses it"
                ),
                format!("lacks {listed}, unlike {stored_at}, at which every object is stored"),
                has_values(version, &lost).then_some(Severity::Error),
            );
        }
    }
    found
}

fn pronoun(fields: &[String]) -> &'static str {
    if fields.len() == 1 { "it" } else { "them" }
}
