//! `CRDUpgradeSafety`: is it safe to replace a live CRD by the desired one?
//!
//! [`compare`] pairs the two and asks the [`rules`]; this file runs it over a plan. Each pair is parsed when its turn
//! comes and dropped after it, so that memory does not grow with the number of CRDs.

mod bounds;
pub mod compare;
pub mod documented;
pub mod json;
pub mod keywords;
pub mod model;
pub mod presets;
pub mod rules;
mod versions;
mod words;

use std::panic;

use self::compare::RuleViolation;
use self::model::{Malformed, Side};
use super::registry::CheckEntry;
use super::rule::RuleDoc;
use super::{Answer, Check, CheckFuture, Context, CouldNotCheck, Violation};
use crate::config::ConfigReader;
use crate::plan::{Change, in_parallel};
use crate::report::Severity;
use crate::resource::RawObject;

const NAME: &str = "CRDUpgradeSafety";

pub const ENTRY: CheckEntry = CheckEntry {
    name: NAME,
    summary: "an upgrade of a CRD must not break the objects, clients and data that are there",
    docs: "docs/checks/CRDUpgradeSafety.md",
    rules: rule_docs,
    configure: |reader| {
        options(reader);
    },
    build: |config| Box::new(CrdUpgradeSafety { options: options(&mut ConfigReader::new(NAME, config)) }),
};

/// What becomes of a change that no rule judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailMode {
    /// It is reported and blocks nothing.
    Open,
    /// It blocks.
    #[default]
    Closed,
}

/// The check's configuration, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    pub fail_mode: FailMode,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct CrdUpgradeSafety {
    pub options: Options,
}

fn rule_docs() -> Vec<&'static RuleDoc> {
    rules::RULES.iter().map(|rule| &rule.doc).collect()
}

/// Reads the check's own keys.
fn options(reader: &mut ConfigReader<'_>) -> Options {
    let about = "Whether a change that no rule judges blocks (closed) or is only reported (open).";
    let choices = [("closed", FailMode::Closed), ("open", FailMode::Open)];
    Options { fail_mode: reader.choice("failMode", about, &choices, FailMode::default()) }
}

impl Check for CrdUpgradeSafety {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let pairs: Vec<Pair> = context.plan.changes.iter().enumerate().filter_map(Pair::of).collect();
            // Comparing is work for processors. It must not hold up the threads that wait for the network.
            let options = self.options;
            match tokio::task::spawn_blocking(move || compare_all(&pairs, options)).await {
                Ok(answer) => Ok(answer),
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(_) => Err(CouldNotCheck { message: "interrupted while comparing CRDs".into(), help: None }),
            }
        })
    }
}

/// A CRD of the plan that is live already.
struct Pair {
    /// Index into the plan.
    change: usize,
    name: String,
    live: RawObject,
    desired: RawObject,
}

impl Pair {
    fn of((index, change): (usize, &Change)) -> Option<Self> {
        let live = change.live.as_ref().filter(|_| change.desired.object.is_crd())?;
        Some(Pair {
            change: index,
            name: change.desired.object.name.clone(),
            live: live.raw.clone(),
            desired: change.desired.raw.clone(),
        })
    }
}

fn compare_all(pairs: &[Pair], options: Options) -> Answer {
    let mut violations = Vec::new();
    let mut unchecked = Vec::new();
    // A worker parses one pair, compares it and drops it before it takes the next.
    let compared = in_parallel(pairs, |pair| compare::crd(pair.live.json(), pair.desired.json()));
    for (pair, compared) in pairs.iter().zip(compared) {
        match compared {
            Ok(found) => violations.extend(found.into_iter().map(|v| place(v, pair.change, options))),
            Err(error) => unchecked.push(could_not_check(pair, &error)),
        }
    }
    Answer::Checked { violations, unchecked }
}

fn place(violation: RuleViolation, change: usize, options: Options) -> Violation {
    let doc = &violation.rule.doc;
    let open = options.fail_mode == FailMode::Open && doc.name == rules::UNKNOWN_CHANGE;
    Violation {
        change,
        rule: doc.name,
        severity: if open { Severity::Info } else { doc.severity },
        version: violation.version,
        path: violation.path,
        message: violation.said.message,
        documented: violation.said.documented,
        breaks: doc.breaks.to_vec(),
        verdict: None,
        witnesses: Vec::new(),
        help: format!("{}: gantry rules {}", violation.said.help, doc.name),
        at: violation.said.at,
        label: violation.said.label,
    }
}

fn could_not_check(pair: &Pair, error: &Malformed) -> CouldNotCheck {
    let (side, help) = match error.side {
        Side::Live => ("the live CRD", format!("look at what is live: kubectl get crd {} -o yaml", pair.name)),
        Side::Desired => (
            "the manifest of CRD",
            "write the CRD as apiextensions.k8s.io/v1 with a structural schema for each version".to_owned(),
        ),
    };
    let message = format!("{side} {} cannot be compared: {}", pair.name, error.reason);
    CouldNotCheck { message, help: Some(help) }
}

#[cfg(test)]
mod tests;
