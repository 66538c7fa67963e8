//! A `default` is removed.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::node::{NodePair, Transition};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoDefaultRemoved",
        summary: "the default of a field is removed",
        reports: "A `default` that is removed from a field of an existing version.",
        why: "Readers expect the field to be set. New objects no longer have it, and neither do stored objects in \
            which it was never written. If the field is required, the server refuses manifests that leave it out.",
        example: Example::Fields {
            live: "\
replicas:
  type: integer
  default: 1
",
            desired: "\
replicas:
  type: integer
",
        },
        what_to_do: "Keep the default in this version and remove it only in a new version that a webhook converts, or \
            after a migration.",
        breaks: &[Breaks::Writers, Breaks::Readers, Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::on("default", &[Transition::Removed])],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Removed)?;
    let (place, field) = (pair.place, pair.place.field());
    let was = words::value(change.live?);
    let text = format!("default value has been removed when previously a default value existed: {was}");
    Some(
        Diagnosis::of_field(place, "default", &text)
            .message(wording!("default of {field} may not be removed from ", VERSIONS, ": {was}"))
            .fact(format!("default removed: {was}"))
            .label(format!("the live CRD has default {was} here"))
            .help(wording!(
                "keep the default {was} in ",
                VERSIONS,
                ", or remove it only in a new version that a \
                webhook converts, or after a migration"
            )),
    )
}
