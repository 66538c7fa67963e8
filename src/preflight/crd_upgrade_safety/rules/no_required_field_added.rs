//! A name added to `required`.

use std::collections::BTreeSet;

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::node::NodePair;
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};
use gantry_schema::keywords;

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoRequiredFieldAdded",
        summary: "a field becomes required, or a new field is required from the start",
        reports: "A name in `required` of an object that exists in the live version, where the live CRD does not \
            require it. Required fields of an object that is itself new are fine.",
        why: "Objects without the field were valid until now. The server refuses existing ones at their next change, \
            and new ones immediately.",
        example: Example::Fields {
            live: "\
database:
  type: object
  properties:
    host:
      type: string
",
            desired: "\
database:
  type: object
  properties:
    host:
      type: string
  required: [host]
",
        },
        what_to_do: "Leave the field optional in this version and let the controller handle its absence as it does \
            today; require it in a new version that a webhook converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::all("required")],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change("required")?;
    let before: BTreeSet<&Json> = change.live.and_then(Json::list).unwrap_or_default().iter().collect();
    let after = change.desired.and_then(Json::list)?;
    let first = after.iter().position(|name| !before.contains(name))?;
    let mut added: Vec<&str> = after.iter().filter(|name| !before.contains(name)).filter_map(Json::text).collect();
    added.sort_unstable();
    added.dedup();
    let place = pair.place;
    let inside = if place.path == "^" { String::new() } else { format!(" in {}", place.field()) };
    let names = words::listed(&added);
    let known = after[first].text().is_some_and(|name| {
        keywords::get(pair.live, "properties").and_then(Json::map).is_some_and(|fields| fields.get(name).is_some())
    });
    let mut diagnosis =
        Diagnosis::of_field(place, "required", &format!("new required fields added: {}", words::bracketed(&added)))
            .message(wording!("{names} may not become required{inside} in ", VERSIONS))
            .fact(format!("now required: {names}"))
            .label(if known { "optional in the live CRD".into() } else { "not in the live CRD".into() })
            .help(wording!(
                "leave {names} optional in ",
                VERSIONS,
                ", or require it only in a new version that a \
                webhook converts, or after a migration"
            ));
    diagnosis.at.push(first.into());
    Some(diagnosis)
}
