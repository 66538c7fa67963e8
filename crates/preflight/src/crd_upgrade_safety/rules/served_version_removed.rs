//! A version that is still served is removed in one step. If objects may be stored at it, `NoStoredVersionRemoved`
//! reports it instead.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let stored = pair.live.stored_versions();
    let removed = pair.live.versions.iter().filter(|version| {
        version.served && !stored.contains(&&*version.name) && pair.desired.version(&version.name).is_none()
    });
    removed
        .map(|version| {
            let name = &version.name;
            let diagnosis = ViolationText {
                message: format!("served version {name} is removed in one step").into(),
                help: format!(
                    "use two steps: keep {name} with served: false in this upgrade, check that no client misses it, \
                        and remove it in a later upgrade"
                )
                .into(),
                at: steps::versions(),
                ..ViolationText::default()
            }
            .label(format!("the live CRD serves {name}"));
            CrdRuleViolation { version: Some(name.to_string()), diagnosis }
        })
        .collect()
}
