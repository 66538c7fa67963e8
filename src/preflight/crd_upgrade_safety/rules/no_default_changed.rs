//! A `default` changes.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::node::{NodePair, Transition};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoDefaultChanged",
        summary: "the default of a field changes",
        reports: "A changed `default` on a field of an existing version.",
        why: "The same manifest now means something else, and so do objects that were stored before the field had a \
            default: the API server fills in the default when it reads them.",
        example: Example::Fields {
            live: "\
replicas:
  type: integer
  default: 1
",
            desired: "\
replicas:
  type: integer
  default: 3
",
        },
        what_to_do: "Keep the default of the live CRD in this version and use the new one only in a new version that \
            a webhook converts, or after a migration.",
        breaks: &[Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::on("default", &[Transition::Changed])],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Changed)?;
    let (place, field) = (pair.place, pair.place.field());
    let (was, now) = (words::value(change.live?), words::value(change.desired?));
    Some(
        Diagnosis::of_field(place, "default", &format!("default value has been changed from {was} to {now}"))
            .message(wording!("default of {field} may not be changed from {was} to {now} in ", VERSIONS))
            .fact(format!("default changed from {was} to {now}"))
            .label(format!("was {was} in the live CRD"))
            .help(wording!(
                "keep the default {was} in ",
                VERSIONS,
                ", or change it only in a new version that a \
                webhook converts, or after a migration"
            )),
    )
}
