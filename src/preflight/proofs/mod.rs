//! What is proven of the CRD upgrades of one run: each version once, whichever check asks first.

mod known;
mod proven;
mod question;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use self::known::Known;
pub use self::proven::Proven;
pub use self::question::{Proof, Prover, Question, VersionProof};
use gantry_proof::Limits;

/// The answer to one question, once there is one.
type Slot = Arc<OnceLock<Option<Arc<VersionProof>>>>;

/// The proofs of one plan. Checks run side by side: who asks what another one is proving already waits for it.
#[derive(Debug)]
pub struct Proofs {
    prover: Box<dyn Prover>,
    crds: usize,
    /// What runs on other clusters have proven.
    known: Option<Arc<Known>>,
    /// By index of the change in the plan and name of the version.
    slots: Mutex<BTreeMap<(usize, String), Slot>>,
}

impl Proofs {
    /// For a plan in which so many CRDs change: they share what may be spent.
    pub fn new(prover: impl Prover + 'static, crds: usize) -> Self {
        Proofs { prover: Box::new(prover), crds, known: None, slots: Mutex::default() }
    }

    /// The same, of one of several clusters: what is proven in one of them is known in all.
    pub fn sharing(self, known: Option<Arc<Known>>) -> Self {
        Proofs { known, ..self }
    }

    /// Of which nothing is proven: for work that must not take the time.
    pub fn none() -> Self {
        Proofs::new(Unasked, 0)
    }

    /// What is known from other clusters, where there are any.
    pub fn known(&self) -> Option<&Known> {
        self.known.as_deref()
    }

    /// What is proven of one version of the CRD that change `change` of the plan upgrades. `None` where nothing can be
    /// said. The question has to be the same whenever the same version of the same change is asked about.
    ///
    /// May take a second of processor time.
    pub fn of(&self, change: usize, question: &Question<'_>) -> Option<Arc<VersionProof>> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry((change, question.version.to_owned())).or_default())
        };
        let limits = Limits::shared(self.crds, question.versions);
        let prove = || self.prover.prove(question, limits).map(Arc::new);
        let ask = || match &self.known {
            Some(known) => known.of(question, limits, prove),
            None => prove(),
        };
        slot.get_or_init(ask).clone()
    }
}

/// Says nothing.
#[derive(Debug)]
struct Unasked;

impl Prover for Unasked {
    fn prove(&self, _: &Question<'_>, _: Limits) -> Option<VersionProof> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::finding::Verdict;
    use gantry_schema::Scale;

    /// Says that everything is equal, and counts how often it was asked.
    #[derive(Debug)]
    struct Counting(Arc<AtomicUsize>);

    impl Prover for Counting {
        fn prove(&self, _: &Question<'_>, _: Limits) -> Option<VersionProof> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let whole = Proof { verdict: Verdict::Equal, reason: None, breaks: Vec::new(), witnesses: Vec::new() };
            Some(VersionProof { whole, nodes: BTreeMap::new(), of_all_below: BTreeSet::new(), is_complete: true })
        }
    }

    #[test]
    fn a_version_of_a_change_is_proven_once_however_many_ask() {
        let asked = Arc::new(AtomicUsize::new(0));
        let proofs = Proofs::new(Counting(Arc::clone(&asked)), 1);
        let scale = Scale::default();
        let question = |version| Question {
            group: "g",
            kind: "K",
            version,
            namespaced: true,
            live_schema: "{}",
            desired_schema: "{}",
            live_status: false,
            desired_status: false,
            scale: &scale,
            versions: 1,
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(proofs.of(0, &question("v1")).is_some()));
            }
        });
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        for (change, version) in [(1, "v1"), (0, "v2"), (0, "v1")] {
            assert!(proofs.of(change, &question(version)).is_some());
        }
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn equal_clusters_prove_once() {
        let (asked, known, scale) = (Arc::new(AtomicUsize::new(0)), Arc::new(Known::default()), Scale::default());
        let question = |live_schema, desired_schema| Question {
            group: "g",
            kind: "K",
            version: "v1",
            namespaced: true,
            live_schema,
            desired_schema,
            live_status: false,
            desired_status: false,
            scale: &scale,
            versions: 1,
        };
        // Where the CRD stands in the plan of a cluster does not matter, nor how many ask at the same time.
        let on_cluster = |change, crds, live, desired| {
            let proofs = Proofs::new(Counting(Arc::clone(&asked)), crds).sharing(Some(Arc::clone(&known)));
            assert!(proofs.of(change, &question(live, desired)).is_some());
        };
        thread::scope(|scope| (0..50).for_each(|change| drop(scope.spawn(move || on_cluster(change, 3, "{}", "{}")))));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        on_cluster(0, 3, "{\"type\":\"object\"}", "{}");
        on_cluster(0, 3, "{}", "{\"type\":\"object\"}");
        assert_eq!(asked.load(Ordering::SeqCst), 3, "another live schema, another desired one");
        on_cluster(0, 1000, "{}", "{}");
        assert_eq!(asked.load(Ordering::SeqCst), 4, "a run that may spend less on each may prove less");
    }
}
