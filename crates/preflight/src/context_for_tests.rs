//! The input of a check, for tests.

use std::sync::Arc;

use super::objects::{ObjectSurvey, Wants};
use super::olm::OlmState;
use super::proofs::{Proofs, Prover};
use super::{Context, Notices, OlmReleaseOfRun};
use gantry_cluster::Target;
use gantry_core::date::Date;
use gantry_core::ui::progress::{ProgressDisplay, ProgressStage};
use gantry_deploy::plan::Plan;
use gantry_olm::content::Catalogs;

/// What a [`Context`] borrows: everything that a run of the checks makes, with nothing configured.
pub struct ContextForTests<'a> {
    plan: &'a Plan,
    target: &'a Target,
    proofs: Arc<Proofs>,
    objects: Arc<ObjectSurvey>,
    olm: OlmState<'a>,
    olm_release: OlmReleaseOfRun<'a>,
    stage: ProgressStage,
    notices: Notices,
}

impl<'a> ContextForTests<'a> {
    pub fn new(plan: &'a Plan, target: &'a Target, prover: impl Prover + 'static) -> Self {
        ContextForTests {
            plan,
            target,
            proofs: Arc::new(Proofs::new(prover, 1)),
            objects: Arc::new(ObjectSurvey::new([])),
            olm: OlmState::new(plan, target, &[], false, None),
            olm_release: OlmReleaseOfRun::new(target, None),
            stage: ProgressDisplay::Hidden.stage("checking", None),
            notices: Notices::default(),
        }
    }

    /// For a check that needs this data about objects.
    pub fn surveying(self, data: Wants) -> Self {
        ContextForTests { objects: Arc::new(ObjectSurvey::new([data])), ..self }
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            plan: self.plan,
            target: self.target,
            lookups: &Vec::new,
            live_lookups: &Vec::new,
            deletion_lookups: &Vec::new,
            redact: false,
            proofs: Arc::clone(&self.proofs),
            objects: Arc::clone(&self.objects),
            catalogs: Catalogs::none(),
            olm: &self.olm,
            olm_release: &self.olm_release,
            today: Date::from(std::time::SystemTime::UNIX_EPOCH),
            by_default: false,
            stage: &self.stage,
            notices: &self.notices,
        }
    }
}
