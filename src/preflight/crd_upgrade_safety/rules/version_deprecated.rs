//! A version is marked as deprecated.

use crate::crd::{CrdPair, steps};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found};

pub fn judge(pair: &CrdPair) -> Vec<Found> {
    pair.common_versions()
        .filter(|(live, desired)| !live.deprecated && desired.deprecated)
        .map(|(live, desired)| {
            let diagnosis = Diagnosis {
                message: format!("version {} is deprecated from now on", live.name).into(),
                help: format!("nothing breaks; the server warns clients that use {}", live.name).into(),
                at: steps::of_version(desired.index, "deprecated"),
                label: Some("not deprecated in the live CRD".into()),
                ..Diagnosis::default()
            };
            Found { version: Some(live.name.to_string()), diagnosis }
        })
        .collect()
}
