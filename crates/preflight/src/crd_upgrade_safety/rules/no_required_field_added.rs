//! A name added to `required`.

use std::collections::BTreeSet;

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;
use gantry_schema::keywords;

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
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
        ViolationText::of_field(place, "required", &format!("new required fields added: {}", words::bracketed(&added)))
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
