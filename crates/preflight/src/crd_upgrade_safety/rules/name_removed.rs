//! A short name or category is removed, or the singular or list kind changes.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::Severity;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let (was, now) = (&pair.live.names, &pair.desired.names);
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
            found.push(found_at(
                key,
                format!("{word} {gone} {is} removed"),
                format!("keep {gone} in spec.names.{key}"),
                &gone,
                None,
            ));
        }
    }
    let singles = [("singular", was.singular(), now.singular()), ("listKind", was.list_kind(), now.list_kind())];
    for (key, was, now) in
        singles.into_iter().filter(|(_, was, now)| was != now && pair.live.names.kind == pair.desired.names.kind)
    {
        // Typed clients do not know the other kind and cannot decode a list; the other names are for people.
        let semantic = (key == "listKind").then_some(Severity::Error);
        let message = format!("{key} changes from {was} to {now}");
        found.push(found_at(key, message, format!("keep {key}: {was}"), &was, semantic));
    }
    found
}

fn found_at(key: &str, message: String, help: String, was: &str, semantic: Option<Severity>) -> CrdRuleViolation {
    let (message, help, at) = (message.into(), help.into(), steps::name(key));
    let diagnosis = ViolationText { message, help, at, semantic, ..ViolationText::default() }
        .label(format!("the live CRD has {was}"));
    CrdRuleViolation { version: None, diagnosis }
}
