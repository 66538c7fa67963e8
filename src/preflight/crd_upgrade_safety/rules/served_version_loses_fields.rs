//! A served version has fields that the storage version lacks.

use super::storage_version_loses_fields;
use crate::crd::{Crd, CrdPair, Version, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::objects::lost_fields;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ServedVersionLosesFields",
        summary: "a served version has fields that the storage version lacks (warning)",
        reports: "A served version, other than the storage version, that keeps values which the storage version drops, \
            where no webhook converts: fields that the storage version does not have, unknown fields, entries of maps, \
            and nulls. Only what this upgrade causes: a field that is added to one served version, a new or newly \
            served version, and a CRD that is created so. What the live CRD loses too is not reported.",
        why: "The server stores every object at the storage version. Without a webhook it only changes the version's \
            name and drops the fields that the schema of the storage version does not have. So it accepts a value that \
            is written at the other version, reports success, and the value is gone.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              host:
                type: string
",
            desired: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              host:
                type: string
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              host:
                type: string
              port:
                type: string
",
        },
        what_to_do: "Add the fields to the storage version as well, or convert with a webhook that keeps them.",
        breaks: &[Breaks::Data, Breaks::Writers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Warning },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    if pair.converts_by_webhook() {
        return Vec::new();
    }
    let lost = |version: &Version| {
        let mut lost = lost_fields::lost_in_storage(&pair.desired, version);
        if lost.is_empty() {
            return lost;
        }
        if let Some(live) = pair.live.served(&version.name) {
            if !pair.live.converts_by_webhook() {
                lost = lost_fields::without(lost, &lost_fields::lost_in_storage(&pair.live, live));
            }
            // That the storage version changes is reported by itself.
            lost = lost_fields::without(lost, &storage_version_loses_fields::lost_by(pair, live));
        }
        lost
    };
    found(&pair.desired, lost)
}

/// The violations of a CRD that is created.
pub fn judge_new(crd: &Crd) -> Vec<Found> {
    if crd.converts_by_webhook() {
        return Vec::new();
    }
    found(crd, |version| lost_fields::lost_in_storage(crd, version))
}

fn found(desired: &Crd, lost: impl Fn(&Version) -> Vec<String>) -> Vec<Found> {
    let Some(storage) = desired.storage() else { return Vec::new() };
    let of_version = |version: &Version| {
        let lost = lost(version);
        if lost.is_empty() {
            return None;
        }
        let (name, storage, listed) = (&version.name, &storage.name, words::listed(&lost));
        let diagnosis = Diagnosis {
            message: format!("what is written at {name} loses {listed}: the storage version {storage} lacks it").into(),
            help: format!("add {listed} to {storage} as well, or convert with a webhook").into(),
            at: steps::schema(version.index),
            label: Some(format!("{storage}, at which every object is stored, lacks {listed}")),
            ..Diagnosis::default()
        };
        Some(Found { version: Some(name.to_string()), diagnosis })
    };
    desired.served_versions().filter_map(of_version).collect()
}
