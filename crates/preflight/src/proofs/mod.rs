//! The proofs about the CRD upgrades of one run. Each version is proven once for all checks.

mod frozen_defaults;
mod imposed;
mod kept_nulls;
mod known;
mod nodes;
mod other_versions;
mod proven;
mod question;
mod trials;
mod unseen;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use self::known::ProofCache;
pub(crate) use self::proven::Proven;
pub(crate) use self::question::{ChangePartProof, ChangeProof, Prover, StoredAt, VersionPairQuestion, VersionProof};
pub(crate) use self::unseen::{FROZEN, NULL_IS_KEPT, depends_on_storage};
use gantry_k8s_cel::KubernetesRelease;
use gantry_proof::Limits;

/// The answer to one question, when it is known.
type Slot = Arc<OnceLock<Option<Arc<VersionProof>>>>;

/// The proofs about one plan. Checks run concurrently: a check that needs a proof in progress waits for it.
#[derive(Debug)]
pub struct Proofs {
    prover: Box<dyn Prover>,
    crds: usize,
    /// The results shared with the other clusters of this run.
    known: Option<Arc<ProofCache>>,
    /// The answers by the index of the change in the plan and the name of the version.
    slots: Mutex<BTreeMap<(usize, String), Slot>>,
}

impl Proofs {
    /// Proofs for a plan that changes this number of CRDs, which share the limits.
    pub fn new(prover: impl Prover + 'static, crds: usize) -> Self {
        Proofs { prover: Box::new(prover), crds, known: None, slots: Mutex::default() }
    }

    /// The same proofs, shared with the other clusters of the run.
    pub fn sharing(self, known: Option<Arc<ProofCache>>) -> Self {
        Proofs { known, ..self }
    }

    /// Proves nothing, for work that must be fast.
    pub fn none() -> Self {
        Proofs::new(NoProver, 0)
    }

    /// The release of the server that the proofs are about.
    pub fn release(&self) -> KubernetesRelease {
        self.prover.release()
    }

    /// The results shared with other clusters, if any.
    pub fn known(&self) -> Option<&ProofCache> {
        self.known.as_deref()
    }

    /// The proof about one version of the CRD that change `change` of the plan upgrades. `None` if nothing can be
    /// proven. The question must be the same in every call for the same version and change.
    ///
    /// Can take a second of processor time.
    pub fn prove(&self, change: usize, question: &VersionPairQuestion<'_>) -> Option<Arc<VersionProof>> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry((change, question.version.to_owned())).or_default())
        };
        let limits = Limits::shared(self.crds, question.versions);
        let prove = || self.prover.prove(question, limits).map(Arc::new);
        let ask = || match &self.known {
            Some(known) => known.answer_or(question, limits, self.release(), prove),
            None => prove(),
        };
        slot.get_or_init(ask).clone()
    }
}

/// A prover that proves nothing.
#[derive(Debug)]
struct NoProver;

impl Prover for NoProver {
    fn prove(&self, _: &VersionPairQuestion<'_>, _: Limits) -> Option<VersionProof> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use gantry_core::finding::Verdict;
    use gantry_schema::ScalePaths;

    /// A prover that finds everything equal and counts its calls.
    #[derive(Debug)]
    struct Counting(Arc<AtomicUsize>);

    impl Prover for Counting {
        fn prove(&self, _: &VersionPairQuestion<'_>, _: Limits) -> Option<VersionProof> {
            self.0.fetch_add(1, Ordering::SeqCst);
            let whole =
                ChangeProof { verdict: Verdict::Equal, reason: None, breaks: Vec::new(), witnesses: Vec::new() };
            Some(VersionProof { whole, ..VersionProof::harmless() })
        }
    }

    #[test]
    fn a_version_of_a_change_is_proven_once_however_many_ask() {
        let asked = Arc::new(AtomicUsize::new(0));
        let proofs = Proofs::new(Counting(Arc::clone(&asked)), 1);
        let scale = ScalePaths::default();
        let question = |version| VersionPairQuestion {
            group: "g",
            kind: "K",
            version,
            namespaced: true,
            served: true,
            live_schema: "{}",
            desired_schema: "{}",
            live_status: false,
            desired_status: false,
            scale: [&scale; 2],
            versions: 1,
            stored: [None; 2],
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(proofs.prove(0, &question("v1")).is_some()));
            }
        });
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        for (change, version) in [(1, "v1"), (0, "v2"), (0, "v1")] {
            assert!(proofs.prove(change, &question(version)).is_some());
        }
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn equal_clusters_prove_once() {
        let (asked, known, scale) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(ProofCache::default()), ScalePaths::default());
        let question = |live_schema, desired_schema| VersionPairQuestion {
            group: "g",
            kind: "K",
            version: "v1",
            namespaced: true,
            served: true,
            live_schema,
            desired_schema,
            live_status: false,
            desired_status: false,
            scale: [&scale; 2],
            versions: 1,
            stored: [None; 2],
        };
        // Neither the position of the CRD in a cluster's plan nor the number of concurrent callers matters.
        let on_cluster = |change, crds, live, desired| {
            let proofs = Proofs::new(Counting(Arc::clone(&asked)), crds).sharing(Some(Arc::clone(&known)));
            assert!(proofs.prove(change, &question(live, desired)).is_some());
        };
        thread::scope(|scope| (0..50).for_each(|change| drop(scope.spawn(move || on_cluster(change, 3, "{}", "{}")))));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        on_cluster(0, 3, "{\"type\":\"object\"}", "{}");
        on_cluster(0, 3, "{}", "{\"type\":\"object\"}");
        assert_eq!(asked.load(Ordering::SeqCst), 3, "a different live schema, a different desired schema");
        on_cluster(0, 1000, "{}", "{}");
        assert_eq!(asked.load(Ordering::SeqCst), 4, "a run with tighter limits can prove less");
    }
}
