//! A version that is no longer served.

use crate::crd_upgrade_safety::migration;
use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{Crd, CrdPair, CrdVersion, steps};
use gantry_core::finding::Severity;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let served = pair.live.served_versions();
    served
        .filter_map(|live| {
            let name = &live.name;
            let desired = pair.desired.version(name).filter(|desired| !desired.served)?;
            let diagnosis = ViolationText {
                message: format!("version {name} is no longer served").into(),
                help: next_step(&pair.live, live).into(),
                // The server has told every client at each request.
                semantic: live.deprecated.then_some(Severity::Warning),
                at: steps::of_version(desired.index, "served"),
                ..ViolationText::default()
            }
            .label(format!("the live CRD serves {name}"));
            Some(CrdRuleViolation { version: Some(name.to_string()), diagnosis })
        })
        .collect()
}

fn next_step(live: &Crd, version: &CrdVersion) -> String {
    let name = &version.name;
    let first = match version.deprecated {
        true => String::new(),
        false => format!("keep {name} served with deprecated: true first, so that the server warns its clients, and "),
    };
    let clients = format!("{first}make sure that no client uses {name} any more; served: true brings it back");
    if !live.converts_by_webhook() || !live.is_stored(name) {
        return clients;
    }
    let is_storage = live.storage().is_some_and(|storage| storage.name == *name);
    let first = if is_storage { "store at another version and " } else { "" };
    // Only a request at a version shows what the webhook makes of an object that is stored at it.
    format!(
        "{clients}. Before that, as long as {name} is served, {first}migrate the objects: afterwards nobody can \
         compare what the webhook makes of them: {}",
        migration::write_stored(live)
    )
}
