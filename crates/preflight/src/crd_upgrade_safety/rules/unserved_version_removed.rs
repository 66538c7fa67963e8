//! A version that is not served and at which no object is stored is removed.

use crate::crd_upgrade_safety::migration;
use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};
use gantry_deploy::plan::managed;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let CrdPair { live, desired, .. } = pair;
    let removed = live.versions.iter().filter(|version| {
        !version.served && !live.is_stored(&version.name) && desired.version(&version.name).is_none()
    });
    removed
        .map(|version| {
            let name = &version.name;
            let first = format!(
                "make sure that every object was written since {name} was last the storage version: CustomResourceValidation \
                 reports objects whose managedFields name it"
            );
            let command = managed::has_common_version(live, desired).then(|| migration::write_all(live));
            let help =
                if command.is_some() { format!("{first}; this command proves that nothing is lost, and writes all of them again:") } else { first };
            let diagnosis = ViolationText {
                message: format!(
                    "version {name} is removed: one object that is still stored at it makes this kind unreadable, and an \
                        object whose managedFields name it can no longer be written by server-side apply"
                )
                .into(),
                help: help.into(),
                steps: command.into_iter().collect(),
                at: steps::versions(),
                ..ViolationText::default()
            }.label(format!("the live CRD has {name}"));
            CrdRuleViolation { version: Some(name.to_string()), diagnosis }
        })
        .collect()
}
