//! Values are removed from an `enum`.

use std::collections::BTreeSet;

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::node::{NodePair, Transition};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoEnumValueRemoved",
        summary: "values are removed from an enum",
        reports: "A value that the live version lists in an `enum` and the desired one does not. Added values are not \
            reported, and neither is an `enum` that is removed entirely: all its values stay allowed.",
        why: "Stored objects may have the value, and the server refuses it from now on.",
        example: Example::Fields {
            live: "\
mode:
  type: string
  enum: [Fast, Legacy, Safe]
",
            desired: "\
mode:
  type: string
  enum: [Fast, Safe]
",
        },
        what_to_do: "Keep the value and say in the description that it is deprecated; remove it only in a new \
            version.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    // Removing the whole enum removes no value: the keyword is claimed, and nothing is reported.
    claims: &[Claim::on("enum", &[Transition::Changed, Transition::Removed])],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change("enum")?;
    let kept: BTreeSet<&Json> = change.desired.and_then(Json::list)?.iter().collect();
    let before: BTreeSet<&Json> = change.live.and_then(Json::list)?.iter().collect();
    let removed: Vec<String> = before.difference(&kept).map(|value| words::value(value)).collect();
    if removed.is_empty() {
        return None;
    }
    let (place, field) = (pair.place, pair.place.field());
    let values = words::listed(&removed);
    Some(
        Diagnosis::of_field(place, "enum", &format!("enum values removed: {}", words::bracketed(&removed)))
            .message(wording!("{values} may not be removed from the enum of {field} in ", VERSIONS))
            .label(format!("the live CRD also allows {values}"))
            .help(wording!(
                "keep {values} in ",
                VERSIONS,
                ", or remove it only in a new version that a webhook \
                converts, or after a migration"
            )),
    )
}
