//! Whatever changed and no other rule has the say on.

use super::{Claim, Judge, Rule, Said, is_claimed};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::keywords;
use crate::preflight::crd_upgrade_safety::model::{Change, NodePair, Transition};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};
use crate::report::Severity;

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: super::UNKNOWN_CHANGE,
        summary: "a keyword of a field changes in a way that no other rule judges",
        forbids: "A change of a keyword that no other rule has the say on (`pattern`, `format`, `nullable`, CEL rules, \
            list and map types, `anyOf`, …). With `failMode: open` it is reported and does not block.",
        why: "The change may be harmless and may be not. What nobody can tell to be safe is not let through unless you \
            say so.",
        example: Example::Fields {
            live: "\
host:
  type: string
",
            desired: "\
host:
  type: string
  pattern: ^[a-z.]+$
",
        },
        what_to_do: "Look at what changed. If every object that is valid today stays valid and keeps its meaning, \
            deploy with `failMode: open` for this check; else put the change into a new version.",
        breaks: &[],
        severity: Severity::Error,
    },
    // What the API has and the rules do not judge yet. A keyword that is in no list at all ends here as well.
    claims: &[
        Claim::all("$ref"),
        Claim::all("additionalItems"),
        Claim::all("allOf"),
        Claim::all("anyOf"),
        Claim::all("definitions"),
        Claim::all("dependencies"),
        Claim::all("exclusiveMaximum"),
        Claim::all("exclusiveMinimum"),
        Claim::all("format"),
        Claim::all("multipleOf"),
        Claim::all("not"),
        Claim::all("nullable"),
        Claim::all("oneOf"),
        Claim::all("pattern"),
        Claim::all("patternProperties"),
        Claim::all("uniqueItems"),
        Claim::all("x-kubernetes-embedded-resource"),
        Claim::all("x-kubernetes-int-or-string"),
        Claim::all("x-kubernetes-list-map-keys"),
        Claim::all("x-kubernetes-list-type"),
        Claim::all("x-kubernetes-map-type"),
        Claim::all("x-kubernetes-preserve-unknown-fields"),
        Claim::all("x-kubernetes-validations"),
    ],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Said> {
    let unknown: Vec<&Change> =
        pair.changes.iter().filter(|change| !is_claimed(change.keyword, change.transition())).collect();
    let first = unknown.first()?;
    let told: Vec<String> = unknown.iter().map(|change| tell(change)).collect();
    let (place, version) = (pair.place, &pair.place.version);
    let text = format!("unable to determine if change to existing field is safe: {}", told.join("; "));
    let label = match first.live {
        None => format!("no {} in the live CRD", first.keyword),
        Some(live) if first.transition() == Transition::Removed => {
            format!("the live CRD has {}: {}", first.keyword, words::value(live))
        }
        Some(live) => format!("was {} in the live CRD", words::value(live)),
    };
    Some(
        Said::of_field(place, first.keyword, &text)
            .message(format!(
                "unable to determine if the change of {} in {version} is safe: {}",
                place.field(),
                told.join("; ")
            ))
            .label(label)
            .help(
                "if you know that objects valid today stay valid, set failMode: open for CRDUpgradeSafety; else keep the field as it is"
                    .into(),
            ),
    )
}

/// What became of a keyword, in a few words.
fn tell(change: &Change) -> String {
    let keyword = change.keyword;
    match (change.live, change.desired) {
        (Some(Json::List(live)), Some(Json::List(desired))) if keyword == "x-kubernetes-validations" => {
            tell_rules(live, desired)
        }
        (Some(live), Some(desired)) => {
            format!("{keyword} changed from {} to {}", words::value(live), words::value(desired))
        }
        (None, Some(desired)) => format!("{keyword} added: {}", words::value(desired)),
        (Some(live), None) => format!("{keyword} removed: {}", words::value(live)),
        (None, None) => keyword.to_owned(),
    }
}

/// CEL rules come in lists, of which only the ones that differ are of interest.
fn tell_rules(live: &[Json], desired: &[Json]) -> String {
    let only = |here: &[Json], there: &[Json]| -> Vec<String> {
        let news = here.iter().filter(|rule| !there.iter().any(|other| keywords::same_rule(rule, other)));
        news.map(words::value).collect()
    };
    let (removed, added) = (only(live, desired), only(desired, live));
    let mut parts = Vec::new();
    if !removed.is_empty() {
        parts.push(format!("without {}", words::listed(&removed)));
    }
    if !added.is_empty() {
        parts.push(format!("with {}", words::listed(&added)));
    }
    format!("x-kubernetes-validations changed: {}", parts.join(", "))
}
