//! `AdmissionDryRun`: would the server accept what this deploy sends? gantry asks the server itself, with a dry run of
//! the same requests.
//!
//! ```text
//! depend ─► which objects the server can validate before anything is written
//!    ├─► ask ─────► refusal ─► findings     (the server)
//!    ├─► quota ───► findings                (objects that fit alone, but not together)
//!    └─► offline ─► findings, marked so     (gantry's own validator)
//! ```

mod ask;
mod depend;
mod metadata;
mod offline;
mod quota;
mod refusal;
mod resolved;
pub(crate) mod rules;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::ask::DryRunAnswers;
use super::entry::CheckEntry;
use super::proofs::Proofs;
use super::{Check, CheckFuture, CheckResult, Context, FindLookups, ViolationsFound};
use gantry_core::finding::redact;
use gantry_deploy::plan::Plan;
use gantry_deploy::plan::refusals::ReportedRefusals;

const NAME: &str = "AdmissionDryRun";

pub const ENTRY: CheckEntry = CheckEntry {
    refusals: rules::REFUSALS,
    field_conflicts: Some(rules::CONFLICT.name),
    ..CheckEntry::new(
        NAME,
        "the server itself must accept every object of this deploy in a dry run",
        rules::docs,
        |_| Box::new(AdmissionDryRun),
    )
};

/// The check. It has no configuration of its own.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionDryRun;

impl Check for AdmissionDryRun {
    fn reported_refusals(&self) -> ReportedRefusals {
        ReportedRefusals { dry_runs: true, ..ReportedRefusals::default() }
    }

    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let Some(server) = context.target.as_server() else {
                return Ok(CheckResult::Skipped("only a running API server can do a dry run".to_owned()));
            };
            let dependence = depend::dependence(context.plan);
            let (asked, limited) =
                tokio::join!(ask::request_dry_runs(&context, server, &dependence), quota::read_quotas(&context));
            let DryRunAnswers { mut found, admitted } = asked;
            found.extend(quota::judge_quotas(&context, limited, &admitted));
            found.extend(offline::check_offline(&context, &dependence).await);
            // In the order of the plan, whichever part found them.
            found.violations.sort_by(|a, b| a.subject.cmp(&b.subject));
            if context.redact {
                for violation in &mut found.violations {
                    violation.body.message = redact::without_values(&violation.body.message);
                    violation.body.label = None;
                }
            }
            Ok(found.into())
        })
    }

    fn lookups(&self, plan: &Plan, _: &Arc<Proofs>) -> FindLookups {
        let lookups = offline::lookups(plan);
        Box::new(move || lookups)
    }
}
