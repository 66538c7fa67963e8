//! The schemas of two served versions are no longer compatible.

use crate::crd_upgrade_safety::rule::{Between, CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{Crd, CrdPair, CrdVersion, steps, versions};

/// The maximum number of places named in the message.
const NAMED: usize = 3;

pub fn judge(pair: &CrdPair, between: &Between) -> Vec<CrdRuleViolation> {
    if pair.desired.converts_by_webhook() {
        return Vec::new();
    }
    let known = versions::some_served_pairs(&pair.live);
    let mut found = Vec::new();
    for (lower, higher) in versions::some_served_pairs(&pair.desired) {
        let text = |crd: &Crd, name: &str| crd.version(name).and_then(CrdVersion::schema).map(str::to_owned);
        if known.contains(&(lower, higher))
            && [lower, higher].iter().all(|v| text(&pair.live, v) == text(&pair.desired, v))
        {
            continue;
        }
        let mut differences = between(&pair.desired, lower, higher);
        if known.contains(&(lower, higher)) {
            let had = between(&pair.live, lower, higher);
            differences.retain(|difference| !had.contains(difference));
        }
        if differences.is_empty() {
            continue;
        }
        let mut places: Vec<String> =
            differences.iter().take(NAMED).map(|(path, rule, _)| format!("{path} ({rule})")).collect();
        if differences.len() > NAMED {
            places.push(format!("{} more", differences.len() - NAMED));
        }
        let index = pair.desired.version(higher).map_or(0, |version| version.index);
        let diagnosis = ViolationText {
            message: format!(
                "the schemas of {lower} and {higher} are no longer compatible: {}",
                words::listed(&places)
            )
            .into(),
            help: format!(
                "make {lower} and {higher} the same there, convert with a webhook, or stop serving one of \
                them"
            )
            .into(),
            at: steps::schema(index),
            ..ViolationText::default()
        }
        .label(format!("differs from {lower}, unlike in the live CRD"));
        found.push(CrdRuleViolation { version: Some(format!("{lower} -> {higher}")), diagnosis });
    }
    found
}
