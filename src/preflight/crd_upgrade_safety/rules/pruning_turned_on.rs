//! Unknown fields are pruned from now on, in every version.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity, Verdict};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "PruningTurnedOn",
        summary: "the server prunes unknown fields from now on",
        reports: "`spec.preserveUnknownFields` that changes from `true`, which a CRD of the old API may still have, to \
            `false`.",
        why: "Until now the API server kept every field of every object, whether a schema names it or not. From now on \
            it drops fields that the schemas do not name when an object is next written.",
        example: Example::Crd {
            live: "\
spec:
  preserveUnknownFields: true
",
            desired: "\
spec:
  preserveUnknownFields: false
",
        },
        what_to_do: "Name every field that is in use in the schema of each version, or keep unknown fields where they \
            are needed with `x-kubernetes-preserve-unknown-fields`.",
        breaks: &[Breaks::Data, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    if !pair.live.preserve_unknown_fields || pair.desired.preserve_unknown_fields {
        return Vec::new();
    }
    let text = "unable to determine if change is safe: preserveUnknownFields changed from true to false";
    let diagnosis = Diagnosis {
        message: "the server prunes unknown fields of every version from now on".into(),
        documented: Some(format!("\"ChangeValidator\" validation failed: {text}")),
        help: "name every field that is in use in the schemas, or keep unknown fields there with \
            x-kubernetes-preserve-unknown-fields"
            .into(),
        at: steps::spec("preserveUnknownFields"),
        label: Some("the live CRD keeps every field".into()),
        verdict: Some(Verdict::DataLoss),
        ..Diagnosis::default()
    };
    vec![Found { version: None, diagnosis }]
}
