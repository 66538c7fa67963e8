//! A column of `kubectl get`, or a field by which objects can be selected, is removed.

use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{CrdPair, CrdVersion, steps};
use gantry_core::finding::wording::{Wording, wording};

pub fn column_removed(pair: &CrdPair) -> Vec<ViolationText> {
    removed(
        pair,
        "additionalPrinterColumns",
        |version| &version.printer_columns,
        |columns| {
            let message = wording!("kubectl get no longer shows {columns} of ", VERSIONS);
            (message, wording!("keep {columns} in additionalPrinterColumns of ", VERSIONS, " if scripts read it"))
        },
    )
}

pub fn selectable_field_removed(pair: &CrdPair) -> Vec<ViolationText> {
    removed(
        pair,
        "selectableFields",
        |version| &version.selectable_fields,
        |fields| {
            let message = wording!("objects of ", VERSIONS, " can no longer be selected by {fields}");
            (message, wording!("keep {fields} in selectableFields of ", VERSIONS))
        },
    )
}

/// What a version no longer lists at `key`, with the message and the help about it.
fn removed(
    pair: &CrdPair,
    key: &str,
    of_version: fn(&CrdVersion) -> &[String],
    words: impl Fn(&str) -> (Wording, Wording),
) -> Vec<ViolationText> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let gone = of_version(live).iter().filter(|name| !of_version(desired).contains(name));
        let gone: Vec<&String> = gone.collect();
        if gone.is_empty() {
            continue;
        }
        let gone = words::listed(&gone);
        let (message, help) = words(&gone);
        let text = ViolationText::at(steps::of_version(desired.index, key)).in_version(&live.name);
        found.push(text.message(message).help(help).label(format!("the live CRD has {gone}")));
    }
    found
}
