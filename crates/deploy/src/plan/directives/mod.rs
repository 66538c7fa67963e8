//! Annotations by which other deploy tools keep, order, replace or leave alone single objects, or run them as hooks.
//!
//! Each is honoured, or a notice says that it is not. Those of kapp, and gantry's own that mean the same, are read by
//! [`super::strategy`] and [`super::graph`].

mod live;
mod table;

use serde_json::Value;

pub use live::live_exclusion;
#[cfg(test)]
pub use table::DirectiveValue;
pub use table::HELM_HOOK;
use table::{ARGO_HOOK, ARGO_OPTIONS, DirectiveSyntax, HELM_DELETE_POLICY};
pub use table::{ARGO_WAVE, DIRECTIVES, Directive, HELM_WEIGHT};

use super::deploy_strategy::DeployStrategy;
use crate::app::members::LiveMetadata;
use gantry_core::manifest::Manifest;
use gantry_core::text;

/// What a value of an annotation asks of a deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The object stays in the cluster when it leaves the app.
    Keep,
    /// The object is neither written nor deleted.
    LeaveAlone,
    /// The object is created if it is missing, and never changed.
    CreateOnly,
    /// The same; also if only the live object has the annotation.
    CreateOnlyOrLive,
    /// The object is deleted and created again if the server refuses the update.
    ReplaceRefused,
    /// Argo CD's `Replace=true`: with `Force=true`, the object is deleted and created again at any change.
    ReplaceOption,
    /// Fields that another deploy tool has set stay.
    KeepFields,
    /// The object is a hook of a deploy.
    Hook(Phase),
    /// A hook that changes is deleted and created again.
    HookReplaced,
    /// The object is a hook of something else than a deploy, and is not written.
    LeftOut { why: &'static str, help: &'static str },
    /// The object is only for tools that render manifests, and is not written.
    Local,
    /// A number by which objects are ordered.
    Order,
    /// Differences from the manifest are not corrected.
    Drift,
    /// A notice says what gantry does instead.
    Note { instead: &'static str, help: &'static str },
    /// It cannot be honoured, and the object would be wrong without it.
    Blocks { instead: &'static str, help: &'static str },
    /// gantry does so anyway, or it is not about what a deploy writes.
    Nothing,
    /// The value is unknown, and gantry ignores it with a notice.
    Unknown { help: &'static str },
    /// The value is unknown. It may keep the object, so the object stays.
    UnknownKeep { help: &'static str },
    /// The value is unknown. It may protect the object, so the object is not changed.
    UnknownCreateOnly { help: &'static str },
}

/// When a hook is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    BeforeAll,
    WithOthers,
    AfterAll,
}

/// A value of an annotation of another deploy tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDirective {
    pub directive: &'static Directive,
    /// It is a label.
    pub is_label: bool,
    /// The value; of a list, one of its values.
    pub value: String,
    pub meaning: Meaning,
}

impl FoundDirective {
    /// The value for a message.
    pub fn shown_value(&self) -> String {
        text::cut(&text::sanitize(&self.value), 60).into_owned()
    }

    /// The phase of a hook of a deploy.
    pub fn phase(&self) -> Option<Phase> {
        match self.meaning {
            Meaning::Hook(phase) => Some(phase),
            _ => None,
        }
    }

    /// The number of an annotation that orders objects.
    pub fn number(&self) -> Option<i64> {
        (self.meaning == Meaning::Order).then(|| self.value.parse::<i32>().ok().map(i64::from)).flatten()
    }
}

/// Each annotation of the table contains one of these; few other texts do.
const MARKS: [&str; 10] = [
    "argocd.argoproj.io",
    "toolkit.fluxcd.io",
    "helm.sh/hook",
    "helm.sh/resource-",
    "helm.sh/depends-on",
    "cli-utils.sigs.k8s.io",
    "client.lifecycle.config.k8s.io",
    "configmanagement.gke.io",
    "config.kubernetes.io",
    "gantry.dev/prune",
];

/// The annotations of the table among those that `annotation` and `label` return for a key.
pub fn find<'a>(
    annotation: impl Fn(&str) -> Option<&'a str>,
    label: impl Fn(&str) -> Option<&'a str>,
) -> Vec<FoundDirective> {
    let mut found = Vec::new();
    for directive in DIRECTIVES {
        if let Some(value) = annotation(directive.key) {
            directive.read(value, false, &mut found);
        }
        if let Some(value) = label(directive.key).filter(|_| directive.syntax == DirectiveSyntax::AnyCaseOrLabel) {
            directive.read(value, true, &mut found);
        }
    }
    // As Argo CD does: its own hooks replace those of Helm.
    if found.iter().any(|found| found.directive.key == ARGO_HOOK) {
        found.retain(|found| ![HELM_HOOK, HELM_DELETE_POLICY].contains(&found.directive.key));
    }
    // An object that is a hook of a deploy, too, is written.
    if found.iter().any(|found| matches!(found.meaning, Meaning::Hook(_))) {
        let also = |meaning| match meaning {
            Meaning::LeftOut { help, .. } => Meaning::Note {
                instead: "gantry writes the object at a deploy, and does not run it for this hook",
                help,
            },
            meaning => meaning,
        };
        found.iter_mut().for_each(|found| found.meaning = also(found.meaning));
    }
    found
}

/// The annotations of the table in a manifest. Objects of bundles have none: OLM does not know them.
pub fn of_manifest(manifest: &Manifest) -> Vec<FoundDirective> {
    if manifest.bundle.is_some() || !manifest.metadata_may_contain(&MARKS) {
        return Vec::new();
    }
    of_object(&manifest.raw.value())
}

/// The annotations of the table in an object.
pub fn of_object(object: &Value) -> Vec<FoundDirective> {
    let metadata = &object["metadata"];
    find(|key| metadata["annotations"][key].as_str(), |key| metadata["labels"][key].as_str())
}

/// The annotations of the table in the metadata of a live object.
pub fn of_facts(facts: &LiveMetadata) -> Vec<FoundDirective> {
    find(|key| facts.annotations.get(key).map(String::as_str), |key| facts.labels.get(key).map(String::as_str))
}

/// The annotation by which an object stays in the cluster.
pub fn find_keeping(found: &[FoundDirective]) -> Option<&FoundDirective> {
    let keeps = |found: &&FoundDirective| {
        matches!(found.meaning, Meaning::Keep | Meaning::LeaveAlone | Meaning::UnknownKeep { .. })
    };
    found.iter().find(keeps)
}

/// Why a live object stays in the cluster.
pub fn why_kept(facts: &LiveMetadata) -> Option<String> {
    let found = of_facts(facts);
    let found = find_keeping(&found)?;
    let (key, value) = (found.directive.key, found.shown_value());
    let what = if found.is_label { "label" } else { "annotation" };
    Some(match found.meaning {
        Meaning::Keep | Meaning::LeaveAlone => format!("its {what} says {key}: {value}"),
        _ => format!("its {what} {key} has a value that gantry does not know, {value:?}"),
    })
}

/// Whether fields that another deploy tool has set stay.
pub fn keeps_fields(manifest: &Manifest) -> bool {
    of_manifest(manifest).iter().any(|found| found.meaning == Meaning::KeepFields)
}

/// The annotation by which an object is not written at all.
pub fn leaving_alone(found: &[FoundDirective]) -> Option<&FoundDirective> {
    let leaves = |found: &&FoundDirective| {
        matches!(found.meaning, Meaning::LeaveAlone | Meaning::LeftOut { .. } | Meaning::Local)
    };
    found.iter().find(leaves)
}

/// The strategy that the annotations select.
pub fn strategy(found: &[FoundDirective], kind: &str) -> Option<DeployStrategy> {
    let is_replaced = found.iter().any(|found| found.meaning == Meaning::ReplaceOption);
    let is_hook = found.iter().any(|found| matches!(found.meaning, Meaning::Hook(_)));
    let of = |found: &FoundDirective| match found.meaning {
        Meaning::LeaveAlone | Meaning::LeftOut { .. } | Meaning::Local => Some(DeployStrategy::LeaveAlone),
        Meaning::CreateOnly | Meaning::CreateOnlyOrLive | Meaning::UnknownCreateOnly { .. } => {
            Some(DeployStrategy::CreateOnly)
        }
        Meaning::ReplaceRefused if found.directive.key == ARGO_OPTIONS && is_replaced => Some(DeployStrategy::Replace),
        Meaning::ReplaceRefused => Some(DeployStrategy::ReplaceRefused),
        Meaning::HookReplaced if is_hook => Some(DeployStrategy::Replace),
        // A changed hook is to run again, and a Job or a Pod does so only as a new object. Argo CD and Helm replace
        // every hook; for other kinds, an update does the same.
        Meaning::Hook(_) if matches!(kind, "Job" | "Pod") => Some(DeployStrategy::Replace),
        Meaning::Hook(_) => Some(DeployStrategy::ReplaceRefused),
        _ => None,
    };
    found.iter().filter_map(of).min()
}

impl Directive {
    fn read(&'static self, text: &str, is_label: bool, found: &mut Vec<FoundDirective>) {
        let values = match self.syntax {
            DirectiveSyntax::List | DirectiveSyntax::AnyCaseList => text.split(',').map(str::trim).collect(),
            _ => vec![text.trim()],
        };
        for value in values {
            // A hook without a phase is none of a deploy.
            if value.is_empty() && self.key != ARGO_HOOK {
                continue;
            }
            found.push(FoundDirective {
                directive: self,
                is_label,
                value: value.to_owned(),
                meaning: self.meaning(value),
            });
        }
    }

    fn meaning(&self, value: &str) -> Meaning {
        let is_any = match self.syntax {
            DirectiveSyntax::Any => true,
            // As Argo CD and Helm read it.
            DirectiveSyntax::Integer => value.parse::<i32>().is_ok(),
            _ => false,
        };
        let is_any_case = matches!(self.syntax, DirectiveSyntax::AnyCaseOrLabel | DirectiveSyntax::AnyCaseList);
        let is_same = |known: &str| match known.strip_suffix('=') {
            Some(name) => value.split_once('=').is_some_and(|(given, _)| given == name),
            None if is_any_case => value.eq_ignore_ascii_case(known),
            None => value == known,
        };
        let known = self.values.iter().find(|known| is_any || known.values.iter().any(|known| is_same(known)));
        let value = value.to_ascii_lowercase();
        match (known, self.unknown) {
            (Some(known), _) => known.meaning,
            // A misspelt `Prune=false` must not delete anything.
            (None, Meaning::Unknown { help }) if value.starts_with("prune=") || value.starts_with("delete=") => {
                Meaning::UnknownKeep { help }
            }
            (None, unknown) => unknown,
        }
    }
}

#[cfg(test)]
mod tests;
