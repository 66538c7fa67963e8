//! A column of `kubectl get` is removed.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::wording::wording;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let kept = &desired.printer_columns;
        let gone = live.printer_columns.iter().filter(|name| !kept.contains(name));
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        if gone.is_empty() {
            continue;
        }
        let columns = words::listed(&gone);
        let diagnosis = ViolationText {
            message: wording!("kubectl get no longer shows {columns} of ", VERSIONS),
            help: wording!("keep {columns} in additionalPrinterColumns of ", VERSIONS, " if scripts read it"),
            at: steps::of_version(desired.index, "additionalPrinterColumns"),
            ..ViolationText::default()
        }
        .label(format!("the live CRD has {columns}"));
        found.push(CrdRuleViolation { version: Some(live.name.to_string()), diagnosis });
    }
    found
}
