//! A column of `kubectl get` is removed or shows something else.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{CrdPair, PrinterColumn, steps};
use gantry_core::finding::wording::{Wording, wording};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let mut add = |message: Wording, help: Wording, label: String| {
            let at = steps::of_version(desired.index, "additionalPrinterColumns");
            let diagnosis = ViolationText { message, help, at, ..ViolationText::default() }.label(label);
            found.push(CrdRuleViolation { version: Some(live.name.to_string()), diagnosis });
        };
        let named = |name: &str| desired.printer_columns.iter().find(|column| column.name == name);
        let gone = live.printer_columns.iter().filter(|column| named(&column.name).is_none());
        let gone: Vec<&str> = gone.map(|column| column.name.as_str()).collect();
        if !gone.is_empty() {
            let columns = words::listed(&gone);
            add(
                wording!("kubectl get no longer shows {columns} of ", VERSIONS),
                wording!("keep {columns} in additionalPrinterColumns of ", VERSIONS, " if scripts read it"),
                format!("the live CRD has {columns}"),
            );
        }
        for was in live.printer_columns.iter().filter(|column| !desired.printer_columns.contains(column)) {
            let Some(now) = named(&was.name) else { continue };
            let (column, changes) = (words::listed(&[&was.name]), changes(was, now));
            add(
                wording!("kubectl get shows something else as {column} of ", VERSIONS, ": {changes}"),
                wording!("add a column with another name to ", VERSIONS, " instead if scripts read {column}"),
                format!("{column} has another {} in the live CRD", changed(was, now)),
            );
        }
    }
    found
}

/// What changes of a column.
fn changed(was: &PrinterColumn, now: &PrinterColumn) -> &'static str {
    if was.json_path == now.json_path { "type" } else { "jsonPath" }
}

fn changes(was: &PrinterColumn, now: &PrinterColumn) -> String {
    let fields = [("jsonPath", &was.json_path, &now.json_path), ("type", &was.value_type, &now.value_type)];
    let changes = fields.into_iter().filter(|(_, was, now)| was != now);
    let changes: Vec<String> = changes
        .map(|(key, was, now)| {
            let [was, now] = [was, now].map(|value| words::listed(&[value]));
            format!("{key} changes from {was} to {now}")
        })
        .collect();
    changes.join(", ")
}
