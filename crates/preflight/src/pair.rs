//! The CRD upgrades of a plan: live CRDs with the desired ones that would replace them.

use std::sync::Arc;

use super::CouldNotCheck;
use gantry_core::crd::{CrdPair, CrdSide, CrdSides, MalformedCrd};
use gantry_deploy::plan::{Change, upgraded_crds};

/// A CRD that a deploy would change.
pub(super) struct UpgradedCrd {
    /// The index of the change in the plan.
    pub change: usize,
    pub name: String,
    pub sides: Arc<CrdSides>,
}

impl UpgradedCrd {
    /// The CRD upgrades among `changes`, in the order of the plan.
    pub fn all(changes: &[Change]) -> Vec<UpgradedCrd> {
        let pair = |(change, of, sides): (usize, &Change, &Arc<CrdSides>)| UpgradedCrd {
            change,
            name: of.desired.object.name.clone(),
            sides: Arc::clone(sides),
        };
        upgraded_crds(changes).map(pair).collect()
    }

    /// Both CRDs.
    ///
    /// # Errors
    /// One side cannot be parsed.
    pub fn crds(&self) -> Result<CrdPair, MalformedCrd> {
        self.sides.pair()
    }
}

/// The error for a pair of CRDs of which one side is malformed.
pub(super) fn could_not_compare(name: &str, MalformedCrd { side, error }: &MalformedCrd) -> CouldNotCheck {
    let (side, help) = match side {
        CrdSide::Live => ("the live CRD", format!("check the live CRD: kubectl get crd {name} -o yaml")),
        CrdSide::Desired => (
            "the manifest of CRD",
            "write the CRD as apiextensions.k8s.io/v1 with a structural schema for each version".to_owned(),
        ),
    };
    let message = format!("{side} {name} cannot be compared: {error}");
    CouldNotCheck { message, help: Some(help) }
}
