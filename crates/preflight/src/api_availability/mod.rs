//! `APIAvailability`: does the target serve every kind of the manifests, in the right scope, and for how long? And does
//! anything still name an API that this deploy stops serving?
//!
//! ```text
//! plan.unplaced ─► unserved ─┐
//! plan.changes ──► scope     ├─► findings
//!                  deprecated│
//!                  leaving ──┘  (leaving: the removed APIs; named_by: what still names them)
//! ```
//!
//! A kind of an API that does not answer is "could not check": whether it is served is unknown.

mod deprecated;
mod leaving;
mod lifecycle;
mod named_by;
mod rules;
mod scope;
#[cfg(test)]
mod tests;
mod unserved;

use std::sync::Arc;

use super::entry::CheckEntry;
use super::proofs::Proofs;
use super::{Check, CheckFuture, Context, FindLookups, ViolationsFound};
use gantry_deploy::plan::Plan;

const NAME: &str = "APIAvailability";

pub const ENTRY: CheckEntry = CheckEntry {
    refusals: rules::REFUSALS,
    ..CheckEntry::new(
        NAME,
        "every kind of the manifests must be served, and the deploy must not remove an API that others use",
        rules::docs,
        |_| Box::new(ApiAvailability),
    )
};

/// The check. It has no configuration of its own.
#[derive(Debug, Clone, Copy)]
pub struct ApiAvailability;

impl Check for ApiAvailability {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let mut found = unserved::check(&context).await;
            found.violations.extend(scope::check(context.plan));
            found.extend(deprecated::check(&context).await);
            found.extend(named_by::check(&context).await);
            Ok(found.into())
        })
    }

    fn lookups(&self, plan: &Plan, _: &Arc<Proofs>) -> FindLookups {
        let lookups = named_by::lookups(&plan.changes);
        Box::new(move || lookups)
    }

    fn reports_unserved_kinds(&self) -> bool {
        true
    }
}
