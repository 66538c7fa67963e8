//! The scale subresource uses different fields.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::Severity;
use gantry_core::finding::wording::wording;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let (Some(was), Some(now)) = (&live.scale, &desired.scale) else { continue };
        for ((path, was), (_, now)) in
            was.paths().into_iter().zip(now.paths()).filter(|((_, was), (_, now))| was != now)
        {
            // Nothing read or wrote another field.
            let semantic = was.is_empty().then_some(Severity::Warning);
            let shown = |path: &str| if path.is_empty() { "none".to_owned() } else { path.to_owned() };
            let (was, now) = (shown(was), shown(now));
            let mut at = steps::subresource(desired.index, "scale");
            at.push(path.into());
            let diagnosis = ViolationText {
                message: wording!("{path} of ", VERSIONS, " changes from {was} to {now}"),
                help: wording!("keep {path}: {was} in ", VERSIONS),
                at,
                semantic,
                ..ViolationText::default()
            }
            .label(format!("was {was} in the live CRD"));
            found.push(CrdRuleViolation { version: Some(live.name.to_string()), diagnosis });
        }
    }
    found
}
