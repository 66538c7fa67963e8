//! The verdict of crdify, and of OLM v1, which runs crdify with its own settings.

use super::flatten::{Flat, Naming, flatten};
use super::options::{ConversionPolicy, CrdifyOptions, UNHANDLED};
use super::validations::{self, FailedValidation};
use super::{Flagged, SchemasByVersion};
use crate::crd_upgrade_safety::json::JsonMap;
use gantry_core::crd::{CrdPair, steps, versions};
use gantry_k8s_cel::gotext;

pub const SCOPE: &str = "scope";
pub const STORED_VERSION_REMOVAL: &str = "storedVersionRemoval";
pub const EXISTING_FIELD_REMOVAL: &str = "existingFieldRemoval";

/// All findings of crdify; those that its settings switch off are marked.
pub fn judge(pair: &CrdPair, schemas: &SchemasByVersion, options: &CrdifyOptions) -> Vec<Flagged> {
    let mut found = of_crd(pair);
    for (live_version, desired_version) in pair.common_versions() {
        let live = flatten(schemas.live(&live_version.name), Naming::Crdify);
        let desired = flatten(schemas.desired(&desired_version.name), Naming::Crdify);
        let place = CrdifyVersionPlace { version: live_version.name.to_string(), index: desired_version.index };
        removed(&live, &desired, &place, &mut found);
        for (path, failure) in of_schemas(&live, &desired, options) {
            found.push(place.flagged(&desired, path, failure));
        }
    }
    if options.conversion == ConversionPolicy::None || !pair.desired.converts_by_webhook() {
        served_versions(pair, schemas, options, &mut found);
    }
    for flagged in &mut found {
        match options.enforcement(flagged.validation) {
            Some(severity) => flagged.severity = severity,
            None => flagged.off = true,
        }
    }
    found
}

fn of_crd(pair: &CrdPair) -> Vec<Flagged> {
    let mut found = Vec::new();
    let mut flag = |validation: &'static str, text: String, step: &str| {
        let text_of_line = format!("{validation}: {text}");
        found.push(Flagged {
            documented: text_of_line,
            at: steps::spec(step),
            ..Flagged::new(validation, None, None, text)
        });
    };
    let (was, now) = (&pair.live.scope, &pair.desired.scope);
    if was != now {
        flag(SCOPE, format!("scope changed : {} -> {}", gotext::quote(was), gotext::quote(now)), "scope");
    }
    let stored = &pair.live.status_stored_versions;
    let removed: Vec<&str> =
        stored.iter().map(String::as_str).filter(|name| pair.desired.version(name).is_none()).collect();
    if !removed.is_empty() {
        flag(STORED_VERSION_REMOVAL, format!("stored versions removed : [{}]", removed.join(" ")), "versions");
    }
    found
}

/// The place of the findings of one version, or of a pair of versions.
struct CrdifyVersionPlace {
    version: String,
    /// The index of the version in the desired CRD to point at.
    index: usize,
}

impl CrdifyVersionPlace {
    fn flagged(&self, desired: &Flat, path: String, failure: FailedValidation) -> Flagged {
        let mut at = nearest(desired, &path).steps(self.index);
        if failure.validation != UNHANDLED {
            at.push(failure.validation.into());
        }
        let documented = format!("{}: {path}: {}: {}", self.version, failure.validation, failure.text);
        Flagged {
            documented,
            at,
            ..Flagged::new(failure.validation, Some(self.version.clone()), Some(path), failure.text)
        }
    }
}

/// The node at `path`, or its nearest ancestor. Every table has the root.
fn nearest<'f, 'n, 'a>(flat: &'f Flat<'n, 'a>, path: &str) -> &'f super::flatten::FlatNode<'n, 'a> {
    let mut path = path;
    loop {
        if let Some(node) = flat.get(path) {
            return node;
        }
        path = path.rfind('.').map_or("^", |at| &path[..at]);
    }
}

/// Reports each live path that desired lacks, whether it is a field or a node of an alternative.
fn removed(live: &Flat, desired: &Flat, place: &CrdifyVersionPlace, found: &mut Vec<Flagged>) {
    for path in live.keys().filter(|path| !desired.contains_key(*path)) {
        let text = format!("removed field : {}.{path}", place.version);
        found.push(Flagged {
            documented: format!("{EXISTING_FIELD_REMOVAL}: {text}"),
            at: nearest(desired, path).steps(place.index),
            ..Flagged::new(EXISTING_FIELD_REMOVAL, Some(place.version.clone()), Some(path.clone()), text)
        });
    }
}

/// Compares every live node with the desired node at the same path.
fn of_schemas(live: &Flat, desired: &Flat, options: &CrdifyOptions) -> Vec<(String, FailedValidation)> {
    let empty = JsonMap::default();
    let mut failures = Vec::new();
    for (path, node) in live {
        let other = desired.get(path).map_or(&empty, |node| node.schema);
        failures.extend(validations::of_node(node.schema, other, options).into_iter().map(|f| (path.clone(), f)));
    }
    failures
}

/// Compares the pairs of served versions within each CRD. A difference that the live pair has too is not a finding.
fn served_versions(pair: &CrdPair, schemas: &SchemasByVersion, options: &CrdifyOptions, found: &mut Vec<Flagged>) {
    let known = versions::served_pairs(&pair.live);
    for (lower, higher) in versions::served_pairs(&pair.desired) {
        let name = format!("{lower} -> {higher}");
        let one = flatten(schemas.desired(lower), Naming::Crdify);
        let other = flatten(schemas.desired(higher), Naming::Crdify);
        let mut failures = of_schemas(&one, &other, options);
        if known.contains(&(lower, higher)) {
            let before = flatten(schemas.live(lower), Naming::Crdify);
            let after = flatten(schemas.live(higher), Naming::Crdify);
            let had = of_schemas(&before, &after, options);
            let same = |(path, failure): &(String, FailedValidation), (p, f): &(String, FailedValidation)| {
                path == p && failure.validation == f.validation && failure.whole == f.whole
            };
            // Both lists are sorted by path, so only the failures with the same path are searched.
            failures.retain(|failure| {
                let from = had.partition_point(|(path, _)| *path < failure.0);
                !had[from..].iter().take_while(|(path, _)| *path == failure.0).any(|other| same(failure, other))
            });
        }
        let index = pair.desired.version(higher).map_or(0, |version| version.index);
        let place = CrdifyVersionPlace { version: name, index };
        found.extend(failures.into_iter().map(|(path, failure)| place.flagged(&other, path, failure)));
    }
}
