//! The objects that exist under a CRD that changes: which questions the change raises, one pass over the objects, and
//! what the change does to each of them.
//!
//! ```text
//! question ─► pass ─► survey (list, judge on all cores) ─► group, tally
//!             which lists       object ─► judge ─► ratchet
//! ```
//!
//! An object is judged by the desired definition as the API server would judge it: [`gantry_schema`] does that. What
//! is so already today is not the upgrade's doing. Several checks look at the same objects: [`Objects`] lists them once.

pub mod cause;
mod coming;
pub mod compiled;
mod defaults;
pub mod definition;
pub mod group;
pub mod judge;
pub mod manifests;
pub mod object;
pub mod pass;
pub mod place;
pub mod question;
pub mod ratchet;
pub mod survey;
pub mod tally;
mod unproven;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, Semaphore};

use self::question::{Questions, VersionQuestion};
use self::survey::{Selection, Surveyed};
use super::pair::{Pair, could_not_compare};
use super::proofs::{Proofs, Question};
use super::{Context, CouldNotCheck, Lookup};
use crate::crd::{Crd, CrdPair, Version};
use crate::finding::Verdict;

/// CRDs whose objects are listed at the same time.
pub const AT_ONCE: usize = 4;

/// Objects on one page of a list, where no check says otherwise.
pub const PAGE_SIZE: u32 = 500;

/// A CRD that may harm the objects that are there.
pub struct Upgrade {
    /// Index into the plan.
    pub change: usize,
    /// `samples.test.example.com`
    pub name: String,
    pub live: Arc<Crd>,
    pub desired: Arc<Crd>,
    pub questions: Vec<VersionQuestion>,
    /// See [`question::Questions::proven`].
    pub proven: Vec<Arc<str>>,
}

impl Upgrade {
    /// The first list that is made; `None` where nothing is listed.
    pub fn lookup(&self) -> Option<Lookup> {
        if self.questions.is_empty() {
            return None;
        }
        let version = &pass::passes(self, false).ok()?.passes.first()?.version.clone();
        Some(Lookup::list(self.change, self.live.resource(version)))
    }
}

/// What a check wants of the objects. What none wants is not gathered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// Every object that something happens to, by name.
    pub named: bool,
    /// How many objects share which fate, and who writes them.
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

/// One pass over all objects of each CRD, shared by the checks of one run: whichever asks first lists them.
#[derive(Debug)]
pub struct Objects {
    wants: Wants,
    at_once: Semaphore,
    /// By index of the change in the plan.
    slots: Mutex<BTreeMap<usize, Arc<OnceCell<Arc<Surveyed>>>>>,
}

impl Objects {
    /// For checks that want this.
    pub fn new(wants: impl IntoIterator<Item = Wants>) -> Self {
        let wants = wants.into_iter().fold(Wants::default(), Wants::and);
        Objects { wants, at_once: Semaphore::new(AT_ONCE), slots: Mutex::default() }
    }

    /// What becomes of the objects of this CRD: of all of them, in every namespace.
    pub async fn of(&self, upgrade: &Upgrade, context: &Context<'_>) -> Arc<Surveyed> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(upgrade.change).or_default())
        };
        let survey = || async {
            // It is never closed; without a permit there would only be more lists at a time.
            let _permit = self.at_once.acquire().await.ok();
            let selection = Selection { page_size: self.wants.page_size.unwrap_or(PAGE_SIZE), ..Selection::default() };
            Arc::new(survey::survey(upgrade, &selection, self.wants, context).await)
        };
        Arc::clone(slot.get_or_init(survey).await)
    }
}

/// What may happen to the objects of a CRD; `None` where nothing changes that an object meets.
///
/// # Errors
/// A CRD that cannot be compared.
pub(in crate::preflight) fn compare(pair: &Pair, proofs: &Proofs) -> Result<Option<Upgrade>, CouldNotCheck> {
    let CrdPair { live, desired, .. } = pair.crds().map_err(|error| could_not_compare(&pair.name, &error))?;
    if let Some(error) = desired.lacks_schema(Some(&live)) {
        return Err(CouldNotCheck {
            message: format!("the manifest of CRD {} cannot be compared: {error}", pair.name),
            help: Some("the server refuses it: give each version a structural schema".to_owned()),
        });
    }
    let prove = |before: &Version, after: &Version| is_proven(&live, &desired, [before, after], pair.change, proofs);
    let Questions { questions, mut proven } = question::can_break(&live, &desired, &prove);
    // A definition that the server does not take proves nothing.
    if !proven.is_empty()
        && let Some(message) = definition::first(&pair.sides)
    {
        if questions.is_empty() {
            return Err(CouldNotCheck {
                message: format!("no object can be validated against the manifest of CRD {}: {message}", pair.name),
                help: Some("fix the CRD; then its objects can be validated".to_owned()),
            });
        }
        proven.clear();
    }
    let upgrade = Upgrade { change: pair.change, name: pair.name.clone(), live, desired, questions, proven };
    Ok((!upgrade.questions.is_empty() || !upgrade.proven.is_empty()).then_some(upgrade))
}

/// Whether the proof layer finds that `after` takes what `before` takes, keeps it and fills it in alike.
fn is_proven(live: &Crd, desired: &Crd, [before, after]: [&Version; 2], change: usize, proofs: &Proofs) -> bool {
    let (Some(live_schema), Some(desired_schema)) = (before.schema(), after.schema()) else { return false };
    let versions = desired.versions.iter().filter(|version| live.version(&version.name).is_some()).count();
    let scale = before.scale_paths().common(&after.scale_paths());
    let question = Question {
        group: &desired.group,
        kind: &desired.names.kind,
        version: &after.name,
        namespaced: desired.is_namespaced(),
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
