//! The effect of a CRD change on existing objects: the questions that the change raises, one pass over the objects, and
//! the effect on each of them.
//!
//! ```text
//! question ─► pass ─► survey (list, validate on all cores) ─► group, tally
//!             which lists       object ─► validator ─► today
//! ```
//!
//! [`gantry_schema`] validates each object against the desired CRD as the API server would. Existing problems are left
//! out, because the upgrade does not cause them. Several checks examine the same objects: [`ObjectSurvey`] lists them once.

pub mod cause;
mod coming;
pub mod compiled;
mod defaults;
pub mod definition;
pub mod effect;
pub mod group;
mod leaving;
pub mod manifests;
pub mod object;
pub mod pass;
pub mod place;
pub mod question;
mod refused;
pub mod survey;
pub mod tally;
mod today;
mod unproven;
pub mod validator;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, Semaphore};

use self::question::{Questions, VersionQuestion};
use self::survey::{ObjectSelection, Surveyed};
use super::pair::{UpgradedCrd, could_not_compare};
use super::proofs::{Proofs, StoredAt, VersionPairQuestion};
use super::{CheckLookup, Context, CouldNotCheck};
use gantry_core::crd::{Crd, CrdPair, CrdVersion};
use gantry_core::finding::Verdict;
use gantry_k8s_cel::KubernetesRelease;

/// The number of CRDs whose objects are listed at the same time.
pub const AT_ONCE: usize = 8;

/// The default number of objects on one page of a list.
pub const PAGE_SIZE: u32 = 500;

/// The upgrade of a CRD that can affect existing objects.
pub struct Upgrade {
    /// The index of the change in the plan.
    pub change: usize,
    /// `samples.test.example.com`
    pub name: String,
    pub live: Arc<Crd>,
    pub desired: Arc<Crd>,
    pub questions: Vec<VersionQuestion>,
    /// See [`question::Questions::proven`].
    pub proven: Vec<Arc<str>>,
    /// The release of the server.
    pub release: KubernetesRelease,
}

impl Upgrade {
    /// The first list request; `None` if nothing is listed.
    pub fn lookup(&self) -> Option<CheckLookup> {
        if self.questions.is_empty() {
            return None;
        }
        let version = &pass::passes(self, false).ok()?.passes.first()?.version.clone();
        Some(CheckLookup::list(self.change, self.live.resource(version)))
    }
}

/// The data about objects that a check needs. Data that no check needs is not collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// The names of all affected objects.
    pub named: bool,
    /// The number of objects for each combination of causes, and their managers.
    pub tallied: bool,
    pub page_size: Option<u32>,
}

impl Wants {
    fn and(self, other: Wants) -> Wants {
        Wants {
            named: self.named || other.named,
            tallied: self.tallied || other.tallied,
            page_size: self.page_size.or(other.page_size),
        }
    }
}

/// One pass over all objects of each CRD, shared by the checks of one run.
#[derive(Debug)]
pub struct ObjectSurvey {
    wants: Wants,
    at_once: Semaphore,
    /// The results by the index of the change in the plan.
    slots: Mutex<BTreeMap<usize, Arc<OnceCell<Arc<Surveyed>>>>>,
}

impl ObjectSurvey {
    /// A pass that collects what these checks need.
    pub fn new(wants: impl IntoIterator<Item = Wants>) -> Self {
        let wants = wants.into_iter().fold(Wants::default(), Wants::and);
        ObjectSurvey { wants, at_once: Semaphore::new(AT_ONCE), slots: Mutex::default() }
    }

    /// The effect on all objects of this CRD, in every namespace. The first caller lists them.
    pub async fn survey_upgrade(&self, upgrade: &Upgrade, context: &Context<'_>) -> Arc<Surveyed> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(upgrade.change).or_default())
        };
        let survey = || async {
            // The semaphore is never closed. Without a permit there would only be more lists at a time.
            let _permit = self.at_once.acquire().await.ok();
            let selection =
                ObjectSelection { page_size: self.wants.page_size.unwrap_or(PAGE_SIZE), ..ObjectSelection::default() };
            Arc::new(survey::survey_objects(upgrade, &selection, self.wants, context).await)
        };
        Arc::clone(slot.get_or_init(survey).await)
    }
}

/// Compares two CRDs; `None` if nothing changes that can affect objects.
///
/// # Errors
/// The CRDs cannot be compared.
pub(crate) fn compare(pair: &UpgradedCrd, proofs: &Proofs) -> Result<Option<Upgrade>, CouldNotCheck> {
    let CrdPair { live, desired, .. } = pair.crds().map_err(|error| could_not_compare(&pair.name, &error))?;
    if let Some(error) = desired.lacks_schema(Some(&live)) {
        return Err(CouldNotCheck {
            message: format!("the manifest of CRD {} cannot be compared: {error}", pair.name),
            help: Some("the server refuses it: give each version a structural schema".to_owned()),
        });
    }
    let prove =
        |before: &CrdVersion, after: &CrdVersion| is_proven(&live, &desired, [before, after], pair.change, proofs);
    let Questions { questions, mut proven } = question::can_break(&live, &desired, &prove);
    // A CRD that the server refuses proves nothing.
    if !proven.is_empty()
        && let Some(message) = definition::first_refusal(&pair.sides, proofs.release())
    {
        if questions.is_empty() {
            return Err(CouldNotCheck {
                message: format!("no object can be validated against the manifest of CRD {}: {message}", pair.name),
                help: Some("fix the CRD; then its objects can be validated".to_owned()),
            });
        }
        proven.clear();
    }
    let (change, name, release) = (pair.change, pair.name.clone(), proofs.release());
    let upgrade = Upgrade { change, name, live, desired, questions, proven, release };
    Ok((!upgrade.questions.is_empty() || !upgrade.proven.is_empty()).then_some(upgrade))
}

/// Whether it is proven that `after` accepts everything that `before` accepts, keeps it and fills in the same defaults.
fn is_proven(live: &Crd, desired: &Crd, [before, after]: [&CrdVersion; 2], change: usize, proofs: &Proofs) -> bool {
    let (Some(live_schema), Some(desired_schema)) = (before.schema(), after.schema()) else { return false };
    let versions = desired.versions.iter().filter(|version| live.version(&version.name).is_some()).count();
    let scale = [before.scale_paths(), after.scale_paths()];
    let question = VersionPairQuestion {
        group: &desired.group,
        kind: &desired.names.kind,
        version: &after.name,
        namespaced: desired.is_namespaced(),
        served: after.served,
        live_schema,
        desired_schema,
        live_status: before.status_subresource,
        desired_status: after.status_subresource,
        scale: scale.each_ref(),
        versions,
        stored: StoredAt::of_sides(live, desired, &after.name),
    };
    let proof = proofs.prove(change, &question);
    proof.is_some_and(|proof| matches!(proof.whole.verdict, Verdict::Equal | Verdict::Widening))
}
