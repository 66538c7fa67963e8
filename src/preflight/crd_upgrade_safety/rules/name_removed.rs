//! A short name or category is removed, or the singular or list kind changes.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NameRemoved",
        summary: "a short name, category, singular or list kind is removed or changed (warning)",
        reports: "`shortNames` and `categories` that the live CRD has and the desired one does not, and a changed \
            `singular` or `listKind`.",
        why: "People and scripts use these names: `kubectl get sm` and `kubectl get all` no longer find the objects. \
            Generated clients decode lists by their kind.",
        example: Example::Crd {
            live: "\
spec:
  names:
    shortNames: [sm, sample]
",
            desired: "\
spec:
  names:
    shortNames: [sm]
",
        },
        what_to_do: "Keep the name. It costs nothing.",
        breaks: &[Breaks::Readers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Warning },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
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
            ));
        }
    }
    let singles = [("singular", was.singular(), now.singular()), ("listKind", was.list_kind(), now.list_kind())];
    for (key, was, now) in
        singles.into_iter().filter(|(_, was, now)| was != now && pair.live.names.kind == pair.desired.names.kind)
    {
        found.push(found_at(key, format!("{key} changes from {was} to {now}"), format!("keep {key}: {was}"), &was));
    }
    found
}

fn found_at(key: &str, message: String, help: String, was: &str) -> Found {
    let diagnosis = Diagnosis {
        message: message.into(),
        help: help.into(),
        at: steps::name(key),
        label: Some(format!("the live CRD has {was}")),
        ..Diagnosis::default()
    };
    Found { version: None, diagnosis }
}
