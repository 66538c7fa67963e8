//! Finds objects at deprecated versions: of built-in kinds by the lifecycle table, of custom kinds by their CRD.

use std::collections::BTreeMap;

use super::lifecycle::Lifecycle;
use super::{NAME, ViolationsFound, rules};
use crate::{Context, CouldNotCheck, Violation};
use gantry_cluster::ObjectToRead;
use gantry_core::crd::Crd;
use gantry_core::problem::Problem;
use gantry_core::resource::Step;
use gantry_deploy::plan::{Change, is_built_in};

pub async fn check(context: &Context<'_>) -> ViolationsFound {
    let mut found = ViolationsFound { violations: of_kubernetes(context).await, ..ViolationsFound::default() };
    found.extend(of_crds(context).await);
    found
}

async fn of_kubernetes(context: &Context<'_>) -> Vec<Violation> {
    let changes = context.plan.changes.iter().enumerate();
    let ending: Vec<(usize, Lifecycle)> = changes
        .filter(|(_, change)| !change.desired.object.is_crd())
        .filter_map(|(index, change)| {
            Some((index, Lifecycle::find(&change.desired.object.api_version, &change.resource.kind)?))
        })
        .collect();
    if ending.is_empty() {
        return Vec::new();
    }
    let release = context.target.release().await.unwrap_or_default();
    let ending = ending.into_iter().filter(|(_, entry)| entry.is_deprecated_in(release));
    ending.map(|(index, entry)| deprecated(index, &entry)).collect()
}

fn deprecated(index: usize, entry: &Lifecycle) -> Violation {
    let since = entry.deprecated.map_or_else(String::new, |release| format!(" since Kubernetes {release}"));
    let removal = match entry.removed {
        Some(release) => format!("removed in {release}"),
        None => "no removal release is announced".to_owned(),
    };
    let message = format!("{} of {} is deprecated{since}; {removal}", entry.kind, entry.api_version);
    let instead = entry.replacement();
    let help = instead
        .as_ref()
        .map_or_else(|| "find a replacement before then".to_owned(), |instead| format!("use {instead}"));
    let violation = Violation::new(&rules::DEPRECATED, index, None, message, help, vec![Step::from("apiVersion")]);
    violation.label(instead.map(|instead| format!("use {instead}")))
}

/// Custom resources at versions that their CRD marks as deprecated after the deploy.
async fn of_crds(context: &Context<'_>) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    let changes = &context.plan.changes;
    let mut objects: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        if !change.desired.object.is_crd() && !is_built_in(&change.resource.group) {
            objects.entry(format!("{}.{}", change.resource.plural, change.resource.group)).or_default().push(index);
        }
    }
    let mut judge = |crd: &Crd, indices: Vec<usize>| {
        let of = |index: usize| {
            let version = crd.version(&changes[index].resource.version).filter(|version| version.deprecated)?;
            Some(custom(index, &changes[index], &version.deprecation_warning))
        };
        found.violations.extend(indices.into_iter().filter_map(of));
    };
    for (change, sides) in changes.iter().filter_map(|change| Some((change, change.crd()?))) {
        if let (Some(indices), Some(crd)) = (objects.remove(&change.desired.object.name), sides.defined()) {
            judge(crd, indices);
        }
    }
    let wanted: Vec<ObjectToRead> = objects.keys().map(|name| ObjectToRead::crd(name)).collect();
    match context.target.read_each(&wanted, &|_, _| ()).await {
        Ok(live) => {
            let mut unread: Vec<Problem> = Vec::new();
            for (indices, live) in objects.into_values().zip(live) {
                match live {
                    Ok(Some(live)) => {
                        if let Ok(crd) = Crd::read(&live.raw) {
                            judge(&crd, indices);
                        }
                    }
                    // Without a CRD, an aggregated API serves the kind.
                    Ok(None) => {}
                    Err(problem) => unread.push(problem),
                }
            }
            // No reason to stop the deploy: the server's answers also warn of deprecated versions.
            if let Some(first) = unread.first() {
                context.notices.add(format!(
                    "{NAME}: only the API server's own warnings show which custom resources use deprecated versions: {}",
                    first.message
                ));
            }
        }
        Err(error) => found.unchecked.extend(error.problems().iter().map(|problem| CouldNotCheck {
            message: format!("which versions of custom resources are deprecated: {}", problem.message),
            help: problem.help.clone(),
        })),
    }
    found
}

fn custom(index: usize, change: &Change, said: &str) -> Violation {
    let object = &change.desired.object;
    let colon = if said.is_empty() { "" } else { ": " };
    let message = format!("{} of {} is deprecated by its CRD{colon}{said}", object.kind, object.api_version);
    let help = "use a version that its CRD does not deprecate".to_owned();
    Violation::new(&rules::DEPRECATED, index, None, message, help, vec![Step::from("apiVersion")])
}
