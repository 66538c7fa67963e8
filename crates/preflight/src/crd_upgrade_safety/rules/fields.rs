//! A field is removed, becomes required, or gets a schema.

use std::collections::BTreeSet;

use crate::crd_upgrade_safety::json::{Json, JsonMap};
use crate::crd_upgrade_safety::node::{AddedNode, NodePair, RemovedNode};
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;
use gantry_schema::keywords;

pub fn removed(node: &RemovedNode) -> ViolationText {
    let place = node.place;
    let (field, version) = (place.field(), &place.version);
    let help = wording!("keep {field} in ", VERSIONS, " and mark it as deprecated");
    ViolationText::at(place.steps.clone())
        .message(wording!("field {field} may not be removed from ", VERSIONS))
        .help(words::or_later(help, "remove it"))
        .fact("removed".into())
        .documented(format!(
            "\"NoExistingFieldRemoved\" validation failed: crd/{} version/{version} field/{} may not be removed",
            place.crd, place.path
        ))
        .label(format!("the live CRD has {} here{}", last_name(field), type_of(node.live)))
}

/// A field that the server kept as an unknown field gets a schema.
pub fn described(node: &AddedNode) -> ViolationText {
    let (field, kind) = (node.place.field(), type_of(node.desired));
    ViolationText::at(node.place.steps.clone())
        .message(wording!("field {field} gets a schema{kind} in ", VERSIONS, ", which kept any value there until now"))
        .help(wording!(
            "describe {field} only in a new version that a webhook converts, or after a migration, and leave it out of \
             the schema of ",
            VERSIONS
        ))
        .fact(format!("described{kind}"))
        .label(format!("the live CRD keeps {} as an unknown field", last_name(field)))
}

fn last_name(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

/// ` (string)`; empty if the schema names no type.
fn type_of(schema: &JsonMap) -> String {
    let kind = keywords::get(schema, "type").and_then(Json::text);
    kind.map(|kind| format!(" ({kind})")).unwrap_or_default()
}

pub fn required(pair: &NodePair) -> Option<ViolationText> {
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
            .label(if known { "optional in the live CRD" } else { "not in the live CRD" })
            .help(words::or_later(wording!("leave {names} optional in ", VERSIONS), "require it"));
    diagnosis.at.push(first.into());
    Some(diagnosis)
}
