//! A column of `kubectl get` is removed.

use crate::crd::{CrdPair, steps};
use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "PrinterColumnRemoved",
        summary: "kubectl get no longer shows a column (note)",
        reports: "An `additionalPrinterColumns` entry that a version of the live CRD has and the same version of the \
            desired one does not.",
        why: "People miss the column, and scripts that split the output of `kubectl get` into columns read the wrong \
            one.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - name: Color
      type: string
      jsonPath: .spec.color
",
            desired: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
",
        },
        what_to_do: "Nothing, or keep the column. Scripts should read `-o json`.",
        breaks: &[Breaks::Readers],
        severity: Severity::Info,
    },
    weight: Weight::Beyond { semantic: Severity::Info },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let kept = &desired.printer_columns;
        let gone = live.printer_columns.iter().filter(|name| !kept.contains(name));
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        if gone.is_empty() {
            continue;
        }
        let columns = words::listed(&gone);
        let diagnosis = Diagnosis {
            message: wording!("kubectl get no longer shows {columns} of ", VERSIONS),
            help: wording!("keep {columns} in additionalPrinterColumns of ", VERSIONS, " if scripts read it"),
            at: steps::of_version(desired.index, "additionalPrinterColumns"),
            label: Some(format!("the live CRD has {columns}")),
            ..Diagnosis::default()
        };
        found.push(Found { version: Some(live.name.to_string()), diagnosis });
    }
    found
}
