//! What gantry says about annotations of kapp and other deploy tools that it does not honour, or by which it does not
//! write an object.
//!
//! An unsupported annotation blocks the deploy if it would write something that the author did not intend, and is a
//! notice otherwise.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::Value;

use super::deploy_strategy::DeployStrategy;
use super::directives::{self, FoundDirective, Meaning, Phase};
use super::strategy::{
    self, CREATE_STRATEGY, DELETE_STRATEGY, MINIMUM, ON_CREATED, OWN_MINIMUM, PREFIX, UPDATE_STRATEGY, is_one_of,
    may_ask, name_of,
};
use super::{Action, Change, DeployPolicy, Plan};
use crate::readiness;
use gantry_core::manifest::{Manifest, Spans};
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Step};

/// Problems with unsupported annotations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NotHonoured {
    /// Problems that block the deploy.
    pub blocks: Vec<Problem>,
    /// Problems that do not: what gantry does instead.
    pub notices: Vec<Problem>,
}

/// Checks for unsupported annotations of kapp and other deploy tools.
pub fn find_not_honoured(plan: &Plan) -> NotHonoured {
    let policy = &plan.policy;
    let mut found = NotHonoured::default();
    let mut subjects = BTreeSet::new();
    let writes = plan.is_written();
    let problems = |change| problems_of_change(change, &policy.field_manager, writes);
    for annotation in plan.changes.iter().flat_map(problems) {
        if annotation.blocks {
            found.blocks.push(annotation.problem);
        } else if annotation.subject.is_none_or(|subject| subjects.insert(subject)) {
            found.notices.push(annotation.problem);
        }
    }
    let mut reported = BTreeSet::new();
    for change in plan.changes.iter().filter(|change| may_ask(&change.desired)) {
        let manifest = change.desired.raw.value();
        let spans = OnceCell::new();
        for (key, value) in manifest["metadata"]["annotations"].as_object().into_iter().flatten() {
            let object = &change.desired.object;
            let unsupported = name_of(key).and_then(|name| unsupported_annotation(name, value, object, policy));
            let Some(UnsupportedAnnotation { blocks, instead, help }) = unsupported else { continue };
            let spans = spans.get_or_init(|| Spans::parse(&change.desired.origin));
            let at = spans.locate(&[Step::from("metadata"), "annotations".into(), key.as_str().into()]).location;
            let problem = Problem::new(format!("{object}: {key}: {instead}")).at(at).help(help);
            if blocks {
                found.blocks.push(problem);
            } else if reported.insert(instead) {
                // If very many objects have the same annotation, only the first is reported.
                found.notices.push(problem);
            }
        }
        found.notices.extend(missing_object(change).filter(|_| !policy.waits));
    }
    found
}

/// An annotation that gantry does not honour, or a value of it.
struct UnsupportedAnnotation {
    blocks: bool,
    /// What gantry does instead.
    instead: &'static str,
    help: &'static str,
}

fn unsupported_annotation(
    name: &str,
    value: &Value,
    object: &ObjectRef,
    policy: &DeployPolicy,
) -> Option<UnsupportedAnnotation> {
    let is_deployment = || object.kind == "Deployment" && object.group() == "apps";
    let (blocks, instead, help) = match name {
        MINIMUM | OWN_MINIMUM if is_deployment() && !value.as_str().is_some_and(readiness::is_minimum) => {
            (policy.waits, "the value is not a number of replicas or a percentage", "write it like \"2\" or \"60%\"")
        }
        "versioned" if !policy.has_app => (
            true,
            "the record of an app defines its version, and no app is given",
            "deploy the manifests as an app: --app NAME",
        ),
        UPDATE_STRATEGY if !is_one_of(value, &["", "skip", "always-replace", "fallback-on-replace"]) => (
            true,
            "the strategy is unknown",
            "known: skip, always-replace, fallback-on-replace; without the annotation the object is updated",
        ),
        CREATE_STRATEGY if value != "" && !is_one_of(value, &ON_CREATED) => (
            true,
            "the strategy is unknown",
            "known: fallback-on-update, fallback-on-update-or-noop; without the annotation, an object that is created \
             after the checks is not written",
        ),
        DELETE_STRATEGY if !is_one_of(value, &["", "orphan"]) => (
            true,
            "the strategy is unknown",
            "known: orphan; without the annotation, the object is deleted when it leaves the app",
        ),
        "deploy-logs" | "deploy-logs-container-names" => {
            (false, "logs are not followed", "those of Pods that do not become ready are shown with --logs")
        }
        "renew-duration" => (
            false,
            "the object is not written again when that time has passed",
            "with an empty kapp.k14s.io/nonce, every deploy writes it",
        ),
        "original" | "disable-original" => {
            (false, "it has no effect: gantry keeps no copy of the manifest in the object", "remove the annotation")
        }
        _ => return None,
    };
    Some(UnsupportedAnnotation { blocks, instead, help })
}

/// The problem for an object that has to exist and does not.
fn missing_object(change: &Change) -> Option<Problem> {
    strategy::is_missing(change).then(|| {
        Problem::new(format!("{} does not exist yet, and this deploy does not wait for it", change.desired.object))
            .at(change.desired.origin.location())
            .help(format!("{PREFIX}exists means that something else creates it; to wait for it, use --wait"))
    })
}

/// A notice about an annotation, or what blocks the deploy because of it.
#[derive(Debug)]
struct AnnotationProblem {
    blocks: bool,
    problem: Problem,
    /// Of notices with the same subject, only the first is shown; `None` for those that are about one object.
    subject: Option<String>,
}

/// The notice that a manifest is not written; `None` if it is written.
pub fn notice_if_left_out(manifest: &Manifest) -> Option<Problem> {
    let found = directives::of_manifest(manifest);
    let (found, why, help) = found.iter().find_map(|found| match found.meaning {
        Meaning::LeftOut { why, help } => Some((found, why, help)),
        Meaning::Local => Some((found, "it is for tools that render manifests", "")),
        Meaning::LeaveAlone => Some((found, "gantry leaves it alone", "")),
        _ => None,
    })?;
    let problem = not_written(manifest, found, why);
    Some(if help.is_empty() { problem } else { problem.help(help) })
}

fn not_written(manifest: &Manifest, found: &FoundDirective, why: &str) -> Problem {
    let message =
        format!("{} is not written ({}: {}): {why}", manifest.object, found.directive.key, found.shown_value());
    located(manifest, found, message)
}

fn located(manifest: &Manifest, found: &FoundDirective, message: String) -> Problem {
    let map = if found.is_label { "labels" } else { "annotations" };
    let path = [Step::from("metadata"), map.into(), found.directive.key.into()];
    Problem::new(message).at(Spans::parse(&manifest.origin).locate(&path).location)
}

/// The problems with annotations of other deploy tools. `writes`: the deploy writes something.
fn problems_of_change(change: &Change, field_manager: &str, writes: bool) -> Vec<AnnotationProblem> {
    let manifest = &change.desired;
    if manifest.bundle.is_some() {
        return Vec::new();
    }
    let all = directives::of_manifest(manifest);
    // An object may be a hook of several events.
    let is_repeated = |index: usize| {
        let is_left_out = |found: &FoundDirective| matches!(found.meaning, Meaning::LeftOut { .. });
        is_left_out(&all[index]) && all[..index].iter().any(is_left_out)
    };
    let found = all.iter().enumerate().filter(|(index, _)| !is_repeated(*index));
    let mut problems: Vec<AnnotationProblem> =
        found.filter_map(|(_, found)| problem_of_annotation(change, found, &all)).collect();
    problems.extend(hook_notice(change, &all, writes));
    problems.extend(exclusion_notice(change, field_manager));
    problems
}

fn problem_of_annotation(change: &Change, found: &FoundDirective, all: &[FoundDirective]) -> Option<AnnotationProblem> {
    let manifest = &change.desired;
    let has = |meaning: Meaning| all.iter().any(|found| found.meaning == meaning);
    let is_hook = all.iter().any(|found| matches!(found.meaning, Meaning::Hook(_)));
    let is_delete_policy = found.directive.key.ends_with("hook-delete-policy");
    let (blocks, message, help) = match found.meaning {
        Meaning::LeftOut { why, help } => {
            let problem = not_written(manifest, found, why).help(help);
            return Some(AnnotationProblem { blocks: false, problem, subject: None });
        }
        Meaning::Note { .. } if is_delete_policy && !(is_hook && change.is_written()) => return None,
        Meaning::Note { instead, help } => (false, instead, help),
        Meaning::Blocks { instead, help } if change.action != Action::Skip => (true, instead, help),
        Meaning::ReplaceOption if change.action.changes_live() && !has(Meaning::ReplaceRefused) => (
            false,
            "the object is updated with server-side apply, and fields of other managers stay",
            "to delete it and create it again at each change: kapp.k14s.io/update-strategy: always-replace",
        ),
        Meaning::Drift if change.action.changes_live() => (
            false,
            "the object is written although it may only differ by what was changed in the cluster",
            "if it shall never be updated: kapp.k14s.io/update-strategy: skip",
        ),
        Meaning::Unknown { help } => (false, "the value is unknown, and has no effect", help),
        Meaning::UnknownKeep { help } => {
            (false, "the value is unknown; to be safe, the object stays when it leaves the app", help)
        }
        Meaning::UnknownCreateOnly { help } => {
            (false, "the value is unknown; to be safe, the object is not changed if it exists", help)
        }
        _ => return None,
    };
    let annotation = format!("{}: {}: {message}", found.directive.key, found.shown_value());
    let problem = located(manifest, found, format!("{}: {annotation}", manifest.object));
    let subject = Some(annotation);
    Some(AnnotationProblem { blocks, problem: problem.help(help), subject })
}

/// Hooks that are written at other times than their tool would run them.
fn hook_notice(change: &Change, all: &[FoundDirective], writes: bool) -> Option<AnnotationProblem> {
    let manifest = &change.desired;
    let is_hook = |found: &&FoundDirective| matches!(found.meaning, Meaning::Hook(_));
    let hook = all.iter().find(is_hook)?;
    let phases: BTreeSet<Phase> = all.iter().filter_map(FoundDirective::phase).collect();
    let (message, help) = if phases.len() > 1 {
        ("the object is written once, in the first of these phases", "to run it twice, write two objects")
    } else if writes && change.action == Action::Unchanged && ["Job", "Pod"].contains(&manifest.object.kind.as_str()) {
        (
            "the object is unchanged, so this deploy does not run it again",
            "to run it in each deploy, add the annotation kapp.k14s.io/nonce: \"\"",
        )
    } else {
        return None;
    };
    let message = format!("{}: {}: {message}", manifest.object, hook.directive.key);
    Some(AnnotationProblem { blocks: false, problem: located(manifest, hook, message).help(help), subject: None })
}

/// The notice that an object is not changed because of an annotation that only the live object has.
fn exclusion_notice(change: &Change, field_manager: &str) -> Option<AnnotationProblem> {
    let live = change.live.as_ref().filter(|_| change.action == Action::Skip)?;
    // What the manifest says as well needs no notice.
    if matches!(strategy::read_strategy(&change.desired), Some(DeployStrategy::LeaveAlone | DeployStrategy::CreateOnly))
    {
        return None;
    }
    let found = directives::live_exclusion(&live.raw, field_manager)?;
    let object = &change.desired.object;
    let (what, verb) = if found.is_label { ("label", "label") } else { ("annotation", "annotate") };
    let key = found.directive.key;
    let message = format!("{object} is not changed: the live object has the {what} {key}: {}", found.shown_value());
    let help = format!("to have it written again: kubectl {verb} {} {key}-", object.to_write());
    let problem = Problem::new(message).at(change.desired.origin.location()).help(help);
    Some(AnnotationProblem { blocks: false, problem, subject: None })
}
