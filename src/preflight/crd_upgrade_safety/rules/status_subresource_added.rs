//! The status subresource is added.

use crate::crd::{CrdPair, steps};
use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "StatusSubresourceAdded",
        summary: "the status subresource is added to a version (warning)",
        reports: "`subresources.status` that is added to a version of the live CRD.",
        why: "From now on the API server silently ignores `status` in every write of the object itself. A controller \
            that writes its status that way gets no error, and its status is lost.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
",
            desired: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
",
        },
        what_to_do: "First change the controller to write `/status`; it can do so as soon as the subresource exists.",
        breaks: &[Breaks::Writers, Breaks::Data],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Warning },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    pair.common_versions()
        .filter(|(live, desired)| !live.status_subresource && desired.status_subresource)
        .map(|(live, desired)| {
            let diagnosis = Diagnosis {
                message: wording!(
                    "status becomes a subresource of ",
                    VERSIONS,
                    ": writes of the object itself no longer change it"
                ),
                help: "make sure that every client that reports a status writes it through /status".into(),
                at: steps::subresource(desired.index, "status"),
                label: Some("no status subresource in the live CRD".into()),
                ..Diagnosis::default()
            };
            Found { version: Some(live.name.to_string()), diagnosis }
        })
        .collect()
}
