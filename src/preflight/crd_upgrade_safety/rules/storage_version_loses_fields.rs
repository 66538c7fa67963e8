//! A new storage version lacks fields of another version.

use crate::crd::{CrdPair, Version, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::objects::lost_fields;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "StorageVersionLosesFields",
        summary: "the new storage version lacks fields that objects of another version have",
        reports: "A storage version that changes to one whose schema drops values of another version that is stored or \
            stays served, where no webhook converts: fields that it does not have, unknown fields that the other \
            version keeps, entries of maps, and nulls. Also a conversion webhook that is removed, if the storage \
            version drops such values. What the live storage version drops too is not reported.",
        why: "Without a webhook the server only changes the version's name when it stores an object, and drops the \
            fields that the schema of the storage version does not have. An object still reads as before until it is \
            next written; then the fields are gone.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1alpha1
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
              legacy:
                type: string
  - name: v1beta1
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
",
            desired: "\
spec:
  versions:
  - name: v1alpha1
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
              legacy:
                type: string
  - name: v1beta1
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
        },
        what_to_do: "Add every field of the other versions to the new storage version, or convert with a webhook, \
            before you change the storage version.",
        breaks: &[Breaks::Data, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

pub fn judge(pair: &CrdPair) -> Vec<Found> {
    let Some(now) = pair.desired.storage() else { return Vec::new() };
    let mut found = Vec::new();
    for version in &pair.live.versions {
        let fields = lost_by(pair, version);
        if fields.is_empty() {
            continue;
        }
        let listed = words::listed(&fields);
        let diagnosis = Diagnosis {
            message: format!("objects of {} lose {listed} once they are stored at {}", version.name, now.name).into(),
            help: format!(
                "add these fields to {}, or convert with a webhook, before you change the storage version",
                now.name
            )
            .into(),
            at: steps::of_version(now.index, "storage"),
            label: Some(format!("{} has {listed} in the live CRD; {} does not", version.name, now.name)),
            ..Diagnosis::default()
        };
        found.push(Found { version: Some(version.name.to_string()), diagnosis });
    }
    found
}

/// What objects of a live version lose because the storage version or the conversion changes.
pub fn lost_by(pair: &CrdPair, version: &Version) -> Vec<String> {
    let (Some(was), Some(now)) = (pair.live.storage(), pair.desired.storage()) else {
        return Vec::new();
    };
    // Without its webhook, the storage version prunes what the webhook converted until now.
    let is_storage_new = was.name != now.name || pair.live.converts_by_webhook();
    if !is_storage_new || pair.converts_by_webhook() || version.name == now.name {
        return Vec::new();
    }
    // Objects are written at a version as long as both CRDs serve it, and read from storage where they are stored.
    let is_served = version.served && pair.desired.served(&version.name).is_some();
    if !is_served && !pair.live.is_stored(&version.name) {
        return Vec::new();
    }
    let lost = lost_fields::lost_between(version, now);
    if lost.is_empty() || pair.live.converts_by_webhook() {
        return lost;
    }
    // What the live storage version lacks too is lost with the next write today already.
    lost_fields::without(lost, &lost_fields::lost_in_storage(&pair.live, version))
}
