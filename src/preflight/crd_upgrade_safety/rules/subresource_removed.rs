//! The status or scale subresource is removed.

use crate::crd::{CrdPair, steps};
use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "SubresourceRemoved",
        summary: "the status or scale subresource is removed (warning)",
        reports: "`subresources.status` or `subresources.scale` that a version of the live CRD has and the same \
            version of the desired one does not.",
        why: "Clients that write `/status` or `/scale` get a 404 from now on: controllers that report status, \
            autoscalers, `kubectl scale`. Without the status subresource, everyone who may write the object may write \
            its status.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
",
            desired: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
",
        },
        what_to_do: "Keep the subresource, or remove it only in a new version.",
        breaks: &[Breaks::Writers, Breaks::Readers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let gone = [
            ("status", live.status_subresource && !desired.status_subresource),
            ("scale", live.scale.is_some() && desired.scale.is_none()),
        ];
        for (name, _) in gone.into_iter().filter(|(_, gone)| *gone) {
            let diagnosis = Diagnosis {
                message: wording!("the {name} subresource is removed from ", VERSIONS),
                help: wording!("keep subresources.{name} in ", VERSIONS),
                at: steps::subresource(desired.index, name),
                label: Some(format!("the live CRD has the {name} subresource")),
                ..Diagnosis::default()
            };
            found.push(Found { version: Some(live.name.to_string()), diagnosis });
        }
    }
    found
}
