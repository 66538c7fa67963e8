//! A served version has fields that the storage version lacks, or lacks fields that the storage version has.

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
        summary: "a served version and the storage version do not have the same fields (warning)",
        reports: "A served version, other than the storage version, that keeps values which the storage version drops, \
            or drops values which the storage version keeps, where no webhook converts: fields that one of them does \
            not have, unknown fields, entries of maps, and nulls. Only what this upgrade causes: a field that is added \
            to one version only, a new or newly served version, another storage version, and a CRD that is created so. \
            What the live CRD loses too is not reported.",
        why: "The server stores every object at the storage version. Without a webhook it only changes the version's \
            name and drops the fields that the schema of the version does not have. So it accepts a value that is \
            written at a version with more fields, reports success, and the value is gone. And it reads an object at \
            the version of the request before it changes it: any write at a version with fewer fields, even a patch of \
            a label, drops all other fields of the object.",
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
        what_to_do: "Add the fields to both versions, convert with a webhook that keeps them, or stop serving the \
            version. `CustomResourceValidation` reports the manifests and objects that have such values as errors \
            (`ManifestValueLost`, `ExistingDataPruned`).",
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
    let not_stored = |version: &Version| {
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
    let live = (!pair.live.converts_by_webhook()).then_some(&*pair.live);
    let dropped = |version: &Version| lost_fields::newly_lost_by_writers(live, &pair.desired, version);
    found(&pair.desired, not_stored, dropped)
}

/// The violations of a CRD that is created.
pub fn judge_new(crd: &Crd) -> Vec<Found> {
    if crd.converts_by_webhook() {
        return Vec::new();
    }
    let not_stored = |version: &Version| lost_fields::lost_in_storage(crd, version);
    found(crd, not_stored, |version| lost_fields::lost_by_writers(crd, version))
}

/// `not_stored` is what the storage version drops of a version, `dropped` what a write at the version drops.
fn found(
    desired: &Crd,
    not_stored: impl Fn(&Version) -> Vec<String>,
    dropped: impl Fn(&Version) -> Vec<String>,
) -> Vec<Found> {
    let Some(storage) = desired.storage() else { return Vec::new() };
    let stored_at = &storage.name;
    let mut found = Vec::new();
    for version in desired.served_versions() {
        let name = &version.name;
        let mut add = |message: String, help: String, label: String| {
            let at = steps::schema(version.index);
            let (message, help, label) = (message.into(), help.into(), Some(label));
            let diagnosis = Diagnosis { message, help, at, label, ..Diagnosis::default() };
            found.push(Found { version: Some(name.to_string()), diagnosis });
        };
        let lost = not_stored(version);
        if !lost.is_empty() {
            let (listed, them) = (words::listed(&lost), them(&lost));
            add(
                format!("what is written at {name} loses {listed}: the storage version {stored_at} lacks {them}"),
                format!("add {listed} to {stored_at} as well, or convert with a webhook"),
                format!("{stored_at}, at which every object is stored, lacks {listed}"),
            );
        }
        let lost = dropped(version);
        if !lost.is_empty() {
            let (listed, them) = (words::listed(&lost), them(&lost));
            add(
                format!(
                    "every write at {name}, even of a label, drops {listed} from the object: {name} lacks {them}, and the \
                     storage version {stored_at} has {them}"
                ),
                format!(
                    "add {listed} to {name} as well, convert with a webhook, or stop serving {name} once no client uses it"
                ),
                format!("lacks {listed}, unlike {stored_at}, at which every object is stored"),
            );
        }
    }
    found
}

fn them(fields: &[String]) -> &'static str {
    if fields.len() == 1 { "it" } else { "them" }
}
