//! `CustomResourceValidation`: does the upgrade of a CRD harm existing objects, and would the server accept the custom
//! resources among the manifests?
//!
//! ```text
//! objects (list, validator, group) ─► diagnosis ─► findings
//! manifests ─► merge ─► findings
//! ```
//!
//! [`super::objects`] determines the effect on existing objects.

mod before_upgrade;
mod diagnosis;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use self::diagnosis::About;
use super::entry::{CheckEntry, Superseded};
use super::objects::manifests::{self, ManifestRefusal, Wrong};
use super::objects::survey::{IncompleteListReason, ObjectSelection, Surveyed, survey_objects};
use super::objects::{self, AT_ONCE, Upgrade, Wants};
use super::pair::UpgradedCrd;
use super::proofs::Proofs;
use super::{Check, CheckFuture, CheckLookup, CheckResult, Context, CouldNotCheck, FindLookups, Violation};
use gantry_cluster::selector::ParsedLabelSelector;
use gantry_core::crd::steps;
use gantry_core::finding::Coverage;
use gantry_core::parallel::{in_parallel, on_cpu_thread};
use gantry_deploy::config::ConfigReader;
use gantry_deploy::plan::{Change, Plan};

const NAME: &str = "CustomResourceValidation";

pub const ENTRY: CheckEntry = CheckEntry {
    configure: |reader| {
        options(reader);
    },
    supersedes: &[Superseded { check: "AdmissionDryRun", rule: "ObjectInvalid" }],
    refusals: rules::REFUSALS,
    ..CheckEntry::new(
        NAME,
        "existing objects must survive the upgrade of their CRD, and custom resources among the manifests must be \
        valid",
        rules::docs,
        |config| Box::new(CustomResourceValidation { options: options(&mut ConfigReader::new(NAME, config)) }),
    )
};

/// Whether findings of the rule are about objects at a version that is removed.
pub fn is_of_removed_version(rule: &str) -> bool {
    rule == rules::REMOVED_VERSION.name
}

/// The check's parsed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomResourceOptions {
    /// The namespaces whose objects are validated; empty means all.
    pub namespaces: Vec<String>,
    pub label_selector: Option<String>,
    /// The number of objects on one page of a list.
    pub page_size: u32,
    /// The number of objects that the human report shows for each finding.
    pub max_examples: usize,
}

#[derive(Debug, Clone)]
pub struct CustomResourceValidation {
    pub options: CustomResourceOptions,
}

/// Reads the check's own keys.
fn options(reader: &mut ConfigReader<'_>) -> CustomResourceOptions {
    let mut namespaces = reader.names(
        "namespaces",
        "Validate only the objects of these namespaces; an empty list means all. Cluster-scoped objects are always \
            validated.",
    );
    // Each namespace is listed once, even if it is given twice.
    let mut seen = BTreeSet::new();
    namespaces.retain(|name| seen.insert(name.clone()));
    let selector = "Validate only the objects with these labels, in Kubernetes' own syntax: app=web,tier in (a, b).";
    let label_selector =
        reader.parsed("labelSelector", selector, |text| Ok(ParsedLabelSelector::parse(text).map(drop)?));
    let page_size = reader.number(
        "pageSize",
        "The number of objects on one page of a list. Two pages are in memory at a time.",
        1..=10_000,
        u64::from(objects::PAGE_SIZE),
    );
    let max_examples = reader.number(
        "maxExamples",
        "The number of objects that the human report shows for each finding; -v and JSON show all of them.",
        0..=100_000,
        10,
    );
    CustomResourceOptions {
        namespaces,
        label_selector,
        page_size: u32::try_from(page_size).unwrap_or(u32::MAX),
        max_examples: usize::try_from(max_examples).unwrap_or(usize::MAX),
    }
}

impl CustomResourceValidation {
    fn selection(&self) -> ObjectSelection {
        let CustomResourceOptions { namespaces, label_selector, page_size, .. } = self.options.clone();
        ObjectSelection { namespaces, label_selector, page_size }
    }

    /// Determines what happens to the objects of one CRD.
    async fn examine(&self, upgrade: Upgrade, context: &Context<'_>) -> ValidationProgress {
        if upgrade.questions.is_empty() {
            return ValidationProgress {
                coverage: vec![(upgrade.change, 0, upgrade.proven)],
                ..ValidationProgress::default()
            };
        }
        let selection = self.selection();
        let surveyed = match selection.is_whole() {
            true => context.objects.survey_upgrade(&upgrade, context).await,
            false => {
                let wants = Wants { named: true, ..Wants::default() };
                Arc::new(survey_objects(&upgrade, &selection, wants, context).await)
            }
        };
        self.report(upgrade, &surveyed, context)
    }

    fn report(&self, upgrade: Upgrade, surveyed: &Surveyed, context: &Context<'_>) -> ValidationProgress {
        let mut found = ValidationProgress::default();
        if let Some(error) = &surveyed.error {
            found.unchecked.push(error.clone());
            return found;
        }
        found.violations.extend(surveyed.not_validated.iter().map(|version| not_validated(&upgrade, version)));
        for list in &surveyed.lists {
            match &list.read {
                Ok(_) => {
                    let about = About {
                        name: &upgrade.name,
                        live: &upgrade.live,
                        desired: &upgrade.desired,
                        validated: &list.validated,
                        examples: self.options.max_examples,
                    };
                    let (violations, unchecked) = diagnosis::violations(list.take_named(), upgrade.change, &about);
                    found.violations.extend(violations);
                    found.unchecked.extend(unchecked);
                }
                Err(IncompleteListReason::Webhook(error)) => {
                    found.violations.push(not_converted(&upgrade, &list.version, error, context));
                }
                Err(IncompleteListReason::Forbidden(error) | IncompleteListReason::NotConvertible(error))
                    if context.by_default =>
                {
                    context.notices.not_checked(NAME, error.clone());
                }
                Err(
                    IncompleteListReason::Forbidden(error)
                    | IncompleteListReason::NotConvertible(error)
                    | IncompleteListReason::Other(error),
                ) => {
                    found.unchecked.push(error.clone());
                }
            }
        }
        if let Some(read) = surveyed.count_objects() {
            if read > 0 {
                let stored = surveyed.perhaps_stored.iter();
                found.violations.extend(stored.map(|version| perhaps_stored(&upgrade, version)));
            }
            found.coverage.push((upgrade.change, read, upgrade.proven));
        }
        found
    }
}

impl Check for CustomResourceValidation {
    fn object_data(&self) -> Wants {
        match self.selection().is_whole() {
            true => Wants { named: true, page_size: Some(self.options.page_size), ..Wants::default() },
            false => Wants::default(),
        }
    }

    fn lookups(&self, plan: &Plan, proofs: &Arc<Proofs>) -> FindLookups {
        let of_manifests = manifests::lookups(&plan.changes, &|_| true);
        let (pairs, proofs) = (UpgradedCrd::all(&plan.changes), Arc::clone(proofs));
        let namespaces = self.options.namespaces.clone();
        Box::new(move || {
            let upgrades = in_parallel(&pairs, |pair| objects::compare(pair, &proofs)).into_iter().flatten().flatten();
            let listed = upgrades.flat_map(|upgrade| {
                let everywhere = !upgrade.live.is_namespaced() || namespaces.is_empty();
                let namespaces = match everywhere {
                    true => vec![None],
                    false => namespaces.iter().cloned().map(Some).collect(),
                };
                let list = upgrade.lookup();
                list.into_iter().flat_map(move |list| {
                    let of = |namespace: &Option<String>| CheckLookup { namespace: namespace.clone(), ..list.clone() };
                    namespaces.iter().map(of).collect::<Vec<_>>()
                })
            });
            listed.chain(of_manifests).collect()
        })
    }

    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let changes = &context.plan.changes;
            let (upgrades, unchecked) = upgrades(changes, Arc::clone(&context.proofs)).await?;
            let mut found = ValidationProgress { unchecked, ..ValidationProgress::default() };
            // The results keep the order of the plan, whichever list ends first.
            let mut surveys = stream::iter(upgrades).map(|upgrade| self.examine(upgrade, &context)).buffered(AT_ONCE);
            while let Some(surveyed) = surveys.next().await {
                found.extend(surveyed);
            }
            drop(surveys);
            let manifests::ManifestRefusals { faults, lost, unchecked, not_allowed } =
                manifests::check_manifests(&context, &|_| true).await;
            match context.by_default {
                true => not_allowed.into_iter().for_each(|error| context.notices.not_checked(NAME, error)),
                false => found.unchecked.extend(not_allowed),
            }
            found.violations.extend(faults.into_iter().map(of_manifest));
            found.violations.extend(lost.into_iter().map(|lost| lost.into_violation(&rules::MANIFEST_VALUE_LOST)));
            found.unchecked.extend(unchecked);
            let coverage = found.coverage.into_iter().map(|(change, read, proven)| Coverage {
                harm: None,
                object: (*changes[change].desired.object).clone(),
                read,
                proven: proven.iter().map(ToString::to_string).collect(),
            });
            let coverage = coverage.collect();
            let (violations, unchecked) = (found.violations, found.unchecked);
            Ok(CheckResult::Checked { violations, unchecked, coverage, suppressed: Vec::new() })
        })
    }
}

/// The upgrades that can affect objects, in the order of the plan.
async fn upgrades(
    changes: &[Change],
    proofs: Arc<Proofs>,
) -> Result<(Vec<Upgrade>, Vec<CouldNotCheck>), CouldNotCheck> {
    let pairs = UpgradedCrd::all(changes);
    let Some(compared) = on_cpu_thread(move || in_parallel(&pairs, |pair| objects::compare(pair, &proofs))).await
    else {
        return Err(CouldNotCheck { message: "interrupted while comparing CRDs".into(), help: None });
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

/// The violations found, and what could not be checked.
#[derive(Default)]
struct ValidationProgress {
    violations: Vec<Violation>,
    unchecked: Vec<CouldNotCheck>,
    /// The change in the plan, the number of objects read, and the proven versions.
    coverage: Vec<(usize, u64, Vec<Arc<str>>)>,
}

impl ValidationProgress {
    fn extend(&mut self, other: ValidationProgress) {
        self.violations.extend(other.violations);
        self.unchecked.extend(other.unchecked);
        self.coverage.extend(other.coverage);
    }
}

fn of_manifest(fault: ManifestRefusal) -> Violation {
    let rule = match fault.wrong {
        Wrong::Refused => &rules::MANIFEST_REFUSED,
        Wrong::UnknownField => &rules::MANIFEST_UNKNOWN_FIELD,
    };
    fault.into_violation(rule)
}

fn not_converted(upgrade: &Upgrade, version: &str, error: &str, context: &Context<'_>) -> Violation {
    let error = if context.redact {
        "the conversion webhook fails".to_owned()
    } else {
        gantry_core::text::cut(error, 400).into_owned()
    };
    let message = format!("objects cannot be read at {version}, so the effect on them is unknown: {error}");
    let help = "fix the conversion webhook, then run again".to_owned();
    Violation::new(&rules::NOT_CONVERTED, upgrade.change, Some(version.to_owned()), message, help, steps::conversion())
}

fn not_validated(upgrade: &Upgrade, version: &str) -> Violation {
    let message = format!("the result of the conversion to {version} is unknown before this deploy");
    let help = format!("first read and write some objects at {version} on a test cluster");
    let desired = upgrade.desired.version(version);
    let at = desired.map_or_else(steps::conversion, |version| steps::of_version(version.index, "name"));
    Violation::new(&rules::NOT_VALIDATED, upgrade.change, Some(version.to_owned()), message, help, at)
}

fn perhaps_stored(upgrade: &Upgrade, version: &str) -> Violation {
    let message = format!("some objects may be stored at {version}, which is removed: status.storedVersions names it");
    let help = format!(
        "write every object once, remove {version} from status.storedVersions, and only then remove it from the CRD; \
         the server does not report which objects are stored at it"
    );
    let at = steps::versions();
    Violation::new(&rules::REMOVED_VERSION, upgrade.change, Some(version.to_owned()), message, help, at)
}
