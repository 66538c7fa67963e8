//! Why the record of an app, or a part of its inventory, was not written.

use gantry_cluster::patience::help_with_webhook;
use gantry_cluster::{ApplyError, Lacking, Target};
use gantry_core::problem::Problem;

/// Why a record was not written.
#[derive(Debug)]
pub struct NotRecorded {
    /// Why, with the next step.
    pub problem: Problem,
    /// A webhook that is called for the record does not answer.
    pub lacks_webhook: bool,
}

impl From<Problem> for NotRecorded {
    fn from(problem: Problem) -> Self {
        NotRecorded { problem, lacks_webhook: false }
    }
}

impl NotRecorded {
    /// `what` says what could not be done.
    pub async fn from_error(error: ApplyError, what: &str, target: &Target) -> Self {
        let said = |problem: Problem| Problem { message: format!("{what}: {}", problem.message), ..problem };
        match error {
            ApplyError::NotYet(Lacking::Webhook, problem) => {
                let help = help_with_webhook(&problem, target).await;
                NotRecorded { problem: said(problem).help(help), lacks_webhook: true }
            }
            ApplyError::NotYet(_, problem) | ApplyError::Unknown(problem) | ApplyError::Refused(problem) => {
                said(problem).into()
            }
            ApplyError::Changed | ApplyError::Conflict(_) => Problem::new(format!("{what}: it has changed")).into(),
        }
    }
}
