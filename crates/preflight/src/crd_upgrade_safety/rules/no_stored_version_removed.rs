//! A version that may still hold stored objects is removed.

use crate::crd_upgrade_safety::migration;
use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let removed = pair.live.stored_versions().into_iter().filter(|name| pair.desired.version(name).is_none());
    removed
        .map(|name| {
            let diagnosis = ViolationText {
                message: format!("stored version {name} may not be removed").into(),
                help: format!(
                    "objects may be stored at {name}, and the server does not report which, so migrate all of them \
                        first"
                )
                .into(),
                steps: migration::plan(pair),
                at: steps::versions(),
                ..ViolationText::default()
            }
            .documented(format!("\"NoStoredVersionRemoved\" validation failed: stored version \"{name}\" removed"))
            .label(format!("the cluster may have objects that are stored at {name}"));
            CrdRuleViolation { version: Some(name.to_owned()), diagnosis }
        })
        .collect()
}
