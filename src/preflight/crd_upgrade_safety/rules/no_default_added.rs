//! A `default` is added.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::node::{NodePair, Transition};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoDefaultAdded",
        summary: "a default is added to a field",
        reports: "A `default` that is added to a field of an existing version.",
        why: "Until now the controller decided what the absence of the field means. From now on the API server fills \
            in the value, even when it reads objects that were stored without it, so objects change although no one \
            has written them.",
        example: Example::Fields {
            live: "\
replicas:
  type: integer
",
            desired: "\
replicas:
  type: integer
  default: 1
",
        },
        what_to_do: "Let the controller treat absence as this value, without a default in the schema, or add the \
            default only in a new version that a webhook converts, or after a migration.",
        breaks: &[Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::on("default", &[Transition::Added])],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Added)?;
    let (place, field) = (pair.place, pair.place.field());
    let now = words::value(change.desired?);
    let text = format!("new value added as default when previously no default value existed: {now}");
    Some(
        Diagnosis::of_field(place, "default", &text)
            .message(wording!("default of {field} may not be added to ", VERSIONS, ": {now}"))
            .fact(format!("default added: {now}"))
            .label("no default in the live CRD".into())
            .help(wording!(
                "leave the default out of ",
                VERSIONS,
                ", or add it only in a new version that a webhook \
                converts, or after a migration"
            )),
    )
}
