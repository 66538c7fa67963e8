//! `CustomResourceValidation`: does the upgrade of a CRD harm the objects that exist, and would the server take the
//! custom resources among the manifests?
//!
//! ```text
//! question ─► pass ─► survey (list, judge on all cores) ─► group ─► findings
//!             which lists       object ─► judge ─► ratchet
//! manifests ─► merge ─► findings
//! ```
//!
//! An object is held against the desired definition as the API server would hold it: [`crate::validation`] does that.
//! What is so already today is not the upgrade's doing and is not reported.

mod beyond;
mod cause;
mod crd;
mod defaults;
mod group;
mod judge;
pub(in crate::preflight) mod manifests;
mod merge;
mod object;
mod pass;
pub(in crate::preflight) mod place;
mod question;
mod ratchet;
pub(in crate::preflight) mod rules;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use self::crd::{Crd, Version};
use self::question::Questions;
use self::survey::{Found, Upgrade};
use super::crd_upgrade_safety::prover::Question;
use super::crd_upgrade_safety::server;
use super::pair::Pair;
use super::proofs::Proofs;
use super::registry::CheckEntry;
use super::{Answer, Check, CheckFuture, Context, CouldNotCheck, Lookup};
use crate::config::ConfigReader;
use crate::parallel::in_parallel;
use crate::plan::{Change, Plan};
use crate::report::{Coverage, Verdict};
use crate::resource::RawObject;
use crate::target::selector::Selector;

const NAME: &str = "CustomResourceValidation";

/// CRDs whose objects are listed at the same time.
const AT_ONCE: usize = 4;

pub const ENTRY: CheckEntry = CheckEntry {
    name: NAME,
    summary: "objects that exist must survive the upgrade of their CRD, and those among the manifests must be valid",
    docs: "docs/checks/CustomResourceValidation.md",
    rules: rules::docs,
    names: || rules::docs().into_iter().map(|rule| rule.name).collect(),
    configure: |reader| {
        options(reader);
    },
    build: |config| Box::new(CustomResourceValidation { options: options(&mut ConfigReader::new(NAME, config)) }),
};

/// The check's configuration, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The namespaces whose objects are judged; none for all.
    pub namespaces: Vec<String>,
    pub label_selector: Option<String>,
    /// Objects on one page of a list.
    pub page_size: u32,
    /// Objects that the output for people shows of each finding.
    pub max_examples: usize,
}

#[derive(Debug, Clone)]
pub struct CustomResourceValidation {
    pub options: Options,
}

/// Reads the check's own keys.
fn options(reader: &mut ConfigReader<'_>) -> Options {
    let mut namespaces = reader.names(
        "namespaces",
        "Only the objects of these namespaces are judged; all, if the list is empty. Cluster-scoped objects always are.",
    );
    // An object is looked at once, however often its namespace is named.
    let mut seen = BTreeSet::new();
    namespaces.retain(|name| seen.insert(name.clone()));
    let selector = "Only the objects with these labels are judged, in Kubernetes' own syntax: app=web,tier in (a, b).";
    let label_selector = reader.parsed("labelSelector", selector, |text| Selector::parse(text).map(drop));
    let page_size =
        reader.number("pageSize", "Objects on one page of a list. Two pages are in memory at a time.", 1..=10_000, 500);
    let max_examples = reader.number(
        "maxExamples",
        "Objects that the output for people shows of each finding; -v and JSON have all of them.",
        0..=100_000,
        10,
    );
    Options {
        namespaces,
        label_selector,
        page_size: u32::try_from(page_size).unwrap_or(u32::MAX),
        max_examples: usize::try_from(max_examples).unwrap_or(usize::MAX),
    }
}

impl Check for CustomResourceValidation {
    fn lookups(&self, plan: &Plan, proofs: &Proofs) -> Vec<Lookup> {
        let upgrades =
            in_parallel(&Pair::all(&plan.changes), |pair| compare(pair, proofs)).into_iter().flatten().flatten();
        let listed = upgrades.filter_map(|upgrade| {
            if upgrade.questions.is_empty() {
                return None;
            }
            let passes = pass::passes(&upgrade, false).ok()?.passes;
            let resource = upgrade.live.resource(&passes.first()?.version);
            let everywhere = !resource.namespaced || self.options.namespaces.is_empty();
            let namespaces = match everywhere {
                true => vec![None],
                false => self.options.namespaces.iter().cloned().map(Some).collect(),
            };
            let list = Lookup::list(upgrade.change, resource);
            Some(namespaces.into_iter().map(move |namespace| Lookup { namespace, ..list.clone() }))
        });
        listed.flatten().chain(manifests::lookups(&plan.changes, &|_| true)).collect()
    }

    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let changes = &context.plan.changes;
            let (upgrades, unchecked) = upgrades(changes, Arc::clone(&context.proofs)).await?;
            let mut found = Found { unchecked, ..Found::default() };
            // In order, whatever list comes to its end first.
            let mut surveys = stream::iter(upgrades)
                .map(|upgrade| survey::survey(upgrade, &self.options, &context))
                .buffered(AT_ONCE);
            while let Some(surveyed) = surveys.next().await {
                found.extend(surveyed);
            }
            drop(surveys);
            found.extend(manifests::check(&context, &|_| true).await);
            let coverage = found.coverage.into_iter().map(|(change, read, proven)| Coverage {
                object: changes[change].desired.object.clone(),
                read,
                proven: proven.iter().map(ToString::to_string).collect(),
            });
            let coverage = coverage.collect();
            let (violations, unchecked) = (found.violations, found.unchecked);
            Ok(Answer::Checked { violations, unchecked, coverage, suppressed: Vec::new() })
        })
    }
}

/// The CRDs in which something changes that objects meet, in the order of the plan. Of all others nothing is said.
async fn upgrades(
    changes: &[Change],
    proofs: Arc<Proofs>,
) -> Result<(Vec<Upgrade>, Vec<CouldNotCheck>), CouldNotCheck> {
    let pairs = Pair::all(changes);
    // Comparing is work for processors. It must not hold up the threads that wait for the network.
    let compared = tokio::task::spawn_blocking(move || in_parallel(&pairs, |pair| compare(pair, &proofs))).await;
    let compared = match compared {
        Ok(compared) => compared,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => return Err(CouldNotCheck { message: "interrupted while comparing CRDs".into(), help: None }),
    };
    let mut upgrades = Vec::new();
    let mut unchecked = Vec::new();
    for compared in compared {
        match compared {
            Ok(upgrade) => upgrades.extend(upgrade),
            Err(error) => unchecked.push(error),
        }
    }
    Ok((upgrades, unchecked))
}

fn compare(pair: &Pair, proofs: &Proofs) -> Result<Option<Upgrade>, CouldNotCheck> {
    let read = |raw: &RawObject, whose: &str, help: String| {
        Crd::parse(raw).map_err(|reason| CouldNotCheck {
            message: format!("{whose} {} cannot be compared: {reason}", pair.name),
            help: Some(help),
        })
    };
    let live =
        read(&pair.live, "the live CRD", format!("look at what is live: kubectl get crd {} -o yaml", pair.name))?;
    let desired = read(
        &pair.desired,
        "the manifest of CRD",
        "write the CRD as apiextensions.k8s.io/v1 with a structural schema for each version".to_owned(),
    )?;
    if let Some(version) = desired.lacks_schema(Some(&live)) {
        return Err(CouldNotCheck {
            message: format!("the manifest of CRD {} cannot be compared: version {version} has no schema", pair.name),
            help: Some(format!("the server refuses it: give {version} a structural schema")),
        });
    }
    let prove = |before: &Version, after: &Version| is_proven(&live, &desired, [before, after], pair.change, proofs);
    let Questions { questions, mut proven } = question::can_break(&live, &desired, &prove);
    // A definition that the server does not take proves nothing.
    if !proven.is_empty()
        && let Some(message) = server::refusal(&pair.live, &pair.desired)
    {
        if questions.is_empty() {
            return Err(CouldNotCheck {
                message: format!("no object can be judged by the manifest of CRD {}: {message}", pair.name),
                help: Some("fix the CRD; what it says of objects counts once the server takes it".to_owned()),
            });
        }
        proven.clear();
    }
    let upgrade = Upgrade { change: pair.change, name: pair.name.clone(), live, desired, questions, proven };
    Ok((!upgrade.questions.is_empty() || !upgrade.proven.is_empty()).then_some(upgrade))
}

/// Whether the proof layer finds that `after` takes what `before` takes, keeps it and fills it in alike.
fn is_proven(live: &Crd, desired: &Crd, [before, after]: [&Version; 2], change: usize, proofs: &Proofs) -> bool {
    let (Some(live_schema), Some(desired_schema)) = (&before.schema, &after.schema) else { return false };
    let versions = desired.versions.iter().filter(|version| live.version(&version.name).is_some()).count();
    let scale = before.scale.common(&after.scale);
    let question = Question {
        group: &desired.group,
        kind: &desired.kind,
        version: &after.name,
        namespaced: desired.namespaced,
        live_schema,
        desired_schema,
        live_status: before.status_subresource,
        desired_status: after.status_subresource,
        scale: &scale,
        versions,
    };
    let proof = proofs.of(change, &question);
    proof.is_some_and(|proof| matches!(proof.whole.verdict, Verdict::Equal | Verdict::Widening))
}
