//! `scope` changed.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoScopeChange",
        summary: "the scope changes between Namespaced and Cluster",
        reports: "A `scope` that changes from `Namespaced` to `Cluster` or back.",
        why: "The scope is part of the path at which every object is stored and served. Objects of the old scope could \
            no longer be read, so the API server refuses the change.",
        example: Example::Crd {
            live: "\
spec:
  scope: Namespaced
",
            desired: "\
spec:
  scope: Cluster
",
        },
        what_to_do: "Keep the scope. If you need another one, define a new kind with another name, move the objects to \
            it, then delete the old CRD.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let (was, now) = (&pair.live.scope, &pair.desired.scope);
    if was == now {
        return Vec::new();
    }
    let diagnosis = Diagnosis {
        message: format!("scope may not be changed from {was} to {now}").into(),
        documented: Some(format!("\"NoScopeChange\" validation failed: scope changed from \"{was}\" to \"{now}\"")),
        help: format!("keep scope: {was}, or define a new kind with scope {now} and move the objects").into(),
        at: steps::spec("scope"),
        label: Some(format!("was {was} in the live CRD")),
        ..Diagnosis::default()
    };
    vec![Found { version: None, diagnosis }]
}
