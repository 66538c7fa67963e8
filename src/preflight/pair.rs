//! The CRDs that an upgrade is judged by: what is live beside what is desired, for work that outlives a borrow of the plan.

use crate::plan::{Change, upgraded_crds};
use crate::resource::{Live, RawObject};

/// A CRD of the plan that is live already and that a deploy would change.
pub(super) struct Pair {
    /// Index into the plan.
    pub change: usize,
    pub name: String,
    pub live: RawObject,
    pub desired: RawObject,
}

impl Pair {
    /// Those among `changes`, in the order of the plan.
    pub fn all(changes: &[Change]) -> Vec<Pair> {
        let pair = |(index, change, live): (usize, &Change, &Live)| Pair {
            change: index,
            name: change.desired.object.name.clone(),
            live: live.raw.clone(),
            desired: change.desired.raw.clone(),
        };
        upgraded_crds(changes).map(pair).collect()
    }
}
