//! A version that is no longer served.

use crate::crd::{CrdPair, steps};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found};

pub fn judge(pair: &CrdPair) -> Vec<Found> {
    let served = pair.live.served_versions();
    served
        .filter_map(|live| {
            let name = &live.name;
            let desired = pair.desired.version(name).filter(|desired| !desired.served)?;
            let diagnosis = Diagnosis {
                message: format!("version {name} is no longer served").into(),
                documented: None,
                help: format!("make sure that no client uses {name} any more; served: true brings it back").into(),
                at: steps::of_version(desired.index, "served"),
                label: Some(format!("the live CRD serves {name}")),
                ..Diagnosis::default()
            };
            Some(Found { version: Some(name.to_string()), diagnosis })
        })
        .collect()
}
