//! Any change that no other rule is responsible for.

use crate::finding::Severity;
use crate::finding::wording::wording;
use crate::preflight::crd_upgrade_safety::keyword_change::{self, Effect};
use crate::preflight::crd_upgrade_safety::node::NodePair;
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, UNKNOWN_CHANGE, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECT: Effect = Effect {
    breaks: &[],
    verdict: None,
    so: "",
    help: "if you know that all objects that are valid today stay valid, set failMode: open for CRDUpgradeSafety; \
        otherwise keep the field as it is",
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: UNKNOWN_CHANGE,
        summary: "a keyword of a field changes, and no other rule covers the change",
        reports: "A change of a keyword that no other rule covers: a keyword that gantry does not know yet, a keyword \
            that the API server does not accept in any CRD (`$ref`, `uniqueItems`, `patternProperties`, …), or `items` \
            that is added or changes its form. With `failMode: open` it is reported and does not block.",
        why: "The change may or may not be harmless. A change that cannot be proven safe is blocked unless you allow \
            it.",
        example: Example::Fields {
            live: "\
hosts:
  type: array
  items:
    type: string
",
            desired: "\
hosts:
  type: array
  items:
    type: string
  uniqueItems: true
",
        },
        what_to_do: "Look at what changed. If every object that is valid today stays valid and keeps its meaning, \
            deploy with `failMode: open` for this check; otherwise make the change in a new version that a webhook \
            converts, or after a migration.",
        breaks: &[],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    // Keywords that the API server does not accept in any CRD. A keyword that no rule claims ends here as well.
    claims: &[
        Claim::all("$ref"),
        Claim::all("additionalItems"),
        Claim::all("definitions"),
        Claim::all("dependencies"),
        Claim::all("patternProperties"),
        Claim::all("uniqueItems"),
    ],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let first = pair.unclaimed.first()?;
    let changes: Vec<String> = pair.unclaimed.iter().map(|change| keyword_change::describe(change)).collect();
    let changes = changes.join("; ");
    let field = pair.place.field();
    let diagnosis = keyword_change::unknown(pair, first, &changes, &EFFECT);
    Some(diagnosis.message(wording!(
        "unable to determine if the change of {field} in ",
        VERSIONS,
        " is safe: {changes}"
    )))
}
