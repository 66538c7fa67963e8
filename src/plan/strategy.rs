//! What annotations of kapp ask of a deploy: objects that it leaves alone, and what gantry cannot do.
//!
//! Source: "Apply" in kapp's documentation. An annotation that is not honoured blocks where the deploy would write another
//! object than its author meant, and is a notice otherwise.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::Value;

use super::{Action, Change, Plan};
use crate::manifest::{Manifest, Spans};
use crate::problem::Problem;
use crate::resource::Step;

const PREFIX: &str = "kapp.k14s.io/";

/// What an annotation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// `noop`, `exists`: somebody else writes the object.
    LeaveAlone,
    /// `update-strategy: skip`: it is created where it is missing, and never updated.
    CreateOnly,
}

/// Whether a manifest may have annotations of kapp. Most have none.
fn may_ask(manifest: &Manifest) -> bool {
    manifest.may_contain(&[PREFIX.trim_end_matches('/')])
}

/// What the annotations of a manifest ask for; `None` for the usual.
pub fn of(manifest: &Manifest) -> Option<Strategy> {
    if !may_ask(manifest) {
        return None;
    }
    let manifest = manifest.raw.value();
    let annotations = annotations(&manifest);
    if annotations.iter().any(|(key, _)| matches!(*key, "noop" | "exists")) {
        return Some(Strategy::LeaveAlone);
    }
    annotations.contains(&("update-strategy", &Value::from("skip"))).then_some(Strategy::CreateOnly)
}

impl Strategy {
    /// What becomes of what the deploy would do by itself.
    pub fn apply(self, action: Action) -> Action {
        match (self, action) {
            (_, Action::Unchanged | Action::Unknown) | (Strategy::CreateOnly, Action::Create) => action,
            _ => Action::Skip,
        }
    }
}

/// kapp's annotations by their names without the prefix.
fn annotations(manifest: &Value) -> Vec<(&str, &Value)> {
    let annotations = manifest["metadata"]["annotations"].as_object().into_iter().flatten();
    annotations.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value))).collect()
}

/// What the annotations of the manifests ask for and a deploy does not do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NotHonoured {
    /// Why nothing can be written.
    pub blocks: Vec<Problem>,
    pub notices: Vec<Problem>,
}

/// What of kapp's annotations is not honoured, each with its line.
pub fn not_honoured(plan: &Plan) -> NotHonoured {
    let mut found = NotHonoured::default();
    let mut said_already = BTreeSet::new();
    for change in plan.changes.iter().filter(|change| may_ask(&change.desired)) {
        let manifest = change.desired.raw.value();
        let spans = OnceCell::new();
        for (name, value) in annotations(&manifest) {
            let Some((blocks, message, help)) = said(name, value) else { continue };
            let spans = spans.get_or_init(|| Spans::of(&change.desired.origin));
            let key = format!("{PREFIX}{name}");
            let at = spans.locate(&[Step::from("metadata"), "annotations".into(), key.as_str().into()]).location;
            let problem = Problem::new(format!("{}: {key}: {message}", change.desired.object)).at(at).help(help);
            if blocks {
                found.blocks.push(problem);
            } else if said_already.insert(message) {
                // What is so for very many objects is said of the first.
                found.notices.push(problem);
            }
        }
        found.notices.extend(absent(change, &manifest));
    }
    found
}

/// Whether it blocks, what gantry does instead, and what to do about it.
fn said(name: &str, value: &Value) -> Option<(bool, &'static str, &'static str)> {
    Some(match name {
        "versioned" | "versioned-keep-original" => (
            true,
            "gantry does not add versions to names, and would write this object under its plain name",
            "remove the annotation, or deploy this object with kapp",
        ),
        "update-strategy" if value == "always-replace" || value == "fallback-on-replace" => (
            false,
            "gantry updates the object and never deletes and creates it again",
            "where the update is refused, delete the object and run the same command again",
        ),
        "nonce" => (false, "gantry writes the value as it is", "change the value where the object has to change"),
        _ => return None,
    })
}

/// An object that has to exist already, and does not.
fn absent(change: &Change, manifest: &Value) -> Option<Problem> {
    let is_awaited = annotations(manifest).iter().any(|(name, _)| *name == "exists");
    let is_absent = change.live.is_none() && change.unread.is_none();
    (is_awaited && is_absent).then(|| {
        Problem::new(format!("{} does not exist yet, and this deploy does not wait for it", change.desired.object))
            .at(change.desired.origin.location())
            .help(format!("{PREFIX}exists says that somebody else creates it: make sure that it is there first"))
    })
}
