//! `type` changed.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::node::NodePair;
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoTypeChange",
        summary: "the type of a field changes",
        reports: "A changed `type` on a field of an existing version. Other changes of that field and below it follow \
            from it and are not reported. An integer or a string that becomes int-or-string is reported by \
            IntOrStringChange.",
        why: "The server refuses values of the old type from now on, in stored objects and in manifests, and clients \
            get values that they cannot decode.",
        example: Example::Fields {
            live: "\
timeout:
  type: integer
",
            desired: "\
timeout:
  type: string
",
        },
        what_to_do: "Add a field with another name and the new type and keep the old one, or change the type in a new \
            version with a conversion between the two.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::all("type")],
    hides_others: true,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change("type")?;
    let was = change.live.and_then(Json::text).unwrap_or_default();
    let now = change.desired.and_then(Json::text).unwrap_or_default();
    // Such a field still accepts every integer or every string, unless its other keywords, which have rules of their
    // own, narrow it.
    let int_or_string = pair.desired("x-kubernetes-int-or-string").is_some();
    if now.is_empty() && int_or_string && matches!(was, "integer" | "string") {
        return None;
    }
    let (place, field) = (pair.place, pair.place.field());
    let name = |kind: &str| if kind.is_empty() { "any".to_owned() } else { kind.to_owned() };
    let (from, to) = (name(was), name(now));
    Some(
        Diagnosis::of_field(place, "type", &format!("type changed from \"{was}\" to \"{now}\""))
            .message(wording!("type of {field} may not be changed from {from} to {to} in ", VERSIONS))
            .label(format!("was {from} in the live CRD"))
            .help(wording!(
                "keep {field} as it is in ",
                VERSIONS,
                " and add a field with another name, or change it in a new version that a webhook converts, or after \
                    a migration"
            )),
    )
}
