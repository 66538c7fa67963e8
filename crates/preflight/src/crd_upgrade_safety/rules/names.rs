//! A name of a CRD changes or is removed, or its scope changes.

use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{CrdPair, steps};

pub fn kind_changed(pair: &CrdPair) -> Vec<ViolationText> {
    let (was, now) = (&pair.live.names, &pair.desired.names);
    [("kind", &was.kind, &now.kind), ("plural", &was.plural, &now.plural)]
        .into_iter()
        .filter(|(_, was, now)| was != now)
        .map(|(name, was, now)| {
            ViolationText::at(steps::name(name))
                .message(format!("{name} may not be changed from {was} to {now}; the API server refuses it"))
                .help(format!("keep {name}: {was}, or define a new kind in its own CRD and move the objects"))
                .label(format!("was {was} in the live CRD"))
        })
        .collect()
}

pub fn scope_changed(pair: &CrdPair) -> Vec<ViolationText> {
    let (was, now) = (&pair.live.scope, &pair.desired.scope);
    if was == now {
        return Vec::new();
    }
    let changed = ViolationText::at(steps::spec("scope"))
        .message(format!("scope may not be changed from {was} to {now}"))
        .help(format!("keep scope: {was}, or define a new kind with scope {now} and move the objects"))
        .documented(format!("\"NoScopeChange\" validation failed: scope changed from \"{was}\" to \"{now}\""))
        .label(format!("was {was} in the live CRD"));
    vec![changed]
}

/// A short name or category is removed, or the singular or list kind changes.
pub fn removed(pair: &CrdPair) -> Vec<ViolationText> {
    let (was, now) = (&pair.live.names, &pair.desired.names);
    let found_at = |key: &str, message: String, help: String, was: &str| {
        ViolationText::at(steps::name(key)).message(message).help(help).label(format!("the live CRD has {was}"))
    };
    let mut found = Vec::new();
    let lists = [
        ("shortNames", ["short name", "short names"], &was.short_names, &now.short_names),
        ("categories", ["category", "categories"], &was.categories, &now.categories),
    ];
    for (key, [one, many], was, now) in lists {
        let gone: Vec<&str> = was.iter().filter(|name| !now.contains(name)).map(String::as_str).collect();
        if !gone.is_empty() {
            let (word, is) = if gone.len() == 1 { (one, "is") } else { (many, "are") };
            let gone = words::listed(&gone);
            let help = format!("keep {gone} in spec.names.{key}");
            found.push(found_at(key, format!("{word} {gone} {is} removed"), help, &gone));
        }
    }
    let singles = [("singular", was.singular(), now.singular()), ("listKind", was.list_kind(), now.list_kind())];
    for (key, was, now) in singles.into_iter().filter(|(_, one, other)| one != other && was.kind == now.kind) {
        found.push(found_at(key, format!("{key} changes from {was} to {now}"), format!("keep {key}: {was}"), &was));
    }
    found
}
