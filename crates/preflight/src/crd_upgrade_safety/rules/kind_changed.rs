//! The kind or the plural of a CRD changes.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let (was, now) = (&pair.live.names, &pair.desired.names);
    [("kind", &was.kind, &now.kind), ("plural", &was.plural, &now.plural)]
        .into_iter()
        .filter(|(_, was, now)| was != now)
        .map(|(name, was, now)| {
            let diagnosis = ViolationText {
                message: format!("{name} may not be changed from {was} to {now}; the API server refuses it").into(),
                help: format!("keep {name}: {was}, or define a new kind in its own CRD and move the objects").into(),
                at: steps::name(name),
                ..ViolationText::default()
            }
            .label(format!("was {was} in the live CRD"));
            CrdRuleViolation { version: None, diagnosis }
        })
        .collect()
}
