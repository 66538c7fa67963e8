//! An `enum` is added.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::node::{NodePair, Transition};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoEnumAdded",
        summary: "a field that accepted any value is restricted to an enum",
        reports: "An `enum` that is added to a field of an existing version.",
        why: "Values that the enum does not list were valid until now. Stored objects may have them, and the server \
            refuses them from now on.",
        example: Example::Fields {
            live: "\
mode:
  type: string
",
            desired: "\
mode:
  type: string
  enum: [Fast, Safe]
",
        },
        what_to_do: "Leave the field unrestricted in this version and let the controller report values that it does \
            not know; add the enum in a new version that a webhook converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::on("enum", &[Transition::Added])],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change("enum").filter(|change| change.transition() == Transition::Added)?;
    let (place, field) = (pair.place, pair.place.field());
    let values: Vec<String> = change.desired.and_then(Json::list)?.iter().map(words::value).collect();
    let values = words::listed(&values);
    Some(
        Diagnosis::of_field(place, "enum", "enums added when there were no enum restrictions previously")
            .message(wording!("{field} may not be restricted to an enum in ", VERSIONS, ": {values}"))
            .fact(format!("enum added: {values}"))
            .label("the live CRD allows any value".into())
            .help(wording!(
                "leave the enum out of ",
                VERSIONS,
                ", or add it only in a new version that a webhook \
                converts, or after a migration"
            )),
    )
}
