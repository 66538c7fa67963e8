//! The report for a person: what broke, where, who breaks, what to do.
//!
//! It looks like rustc's output and uses kubectl's words: errors before warnings, the first of each kind in full and a
//! line for each other one, an overview of the checks, and the verdict as the last line. [`write_review`] shows what a
//! deploy would do and what the checks found, before the confirmation; [`write_outcome`] shows how it ended. Both are
//! functions of the report; [`Excerpts`] provides lines of files. All text of the report is untrusted and goes through
//! [`gantry_core::text`].

mod checks;
mod diffs;
mod finding;
mod findings;
pub mod list;
mod outcome;
mod pen;
mod plan;
mod problems;
mod sources;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use super::Report;
use super::view::causes::ObjectCauses;
use super::view::{Excerpts, ReportPurpose};
pub use problems::write_problems;
pub use sources::Sources;

use pen::Pen;

/// The options of the human report.
#[derive(Debug, Clone, Copy)]
pub struct HumanOptions {
    /// Whether to write styles.
    pub color: bool,
    /// Terminal columns; longer notes are wrapped.
    pub width: usize,
    /// Whether the first line of a finding is wrapped, too: on a terminal. Elsewhere it stays one line, for grep.
    pub wraps_titles: bool,
    /// Every object of the plan and every finding, infos and waived ones too.
    pub verbose: bool,
    /// Only findings that are errors, checks that did not pass, and an end that is not a success.
    pub quiet: bool,
    /// Shows no lines of manifests except CRDs, because they contain values.
    pub redact: bool,
    /// Whether the run may use another cluster than kubectl does by default.
    pub is_other_cluster: bool,
    /// The command that the report is of.
    pub purpose: ReportPurpose,
}

impl Default for HumanOptions {
    fn default() -> Self {
        HumanOptions {
            color: false,
            width: gantry_core::ui::PIPED_WIDTH,
            wraps_titles: false,
            verbose: false,
            quiet: false,
            redact: false,
            is_other_cluster: false,
            purpose: ReportPurpose::Deploy,
        }
    }
}

/// The whole report: the review, then the outcome.
#[cfg(test)]
pub fn write(report: &Report, options: &HumanOptions, excerpts: &dyn Excerpts, out: &mut dyn Write) -> io::Result<()> {
    write_review(report, options, excerpts, out)?;
    write_outcome(report, options, excerpts, out)
}

/// The target, the plan, the findings, and a line for each check: everything that is known before anything is written.
pub fn write_review(
    report: &Report,
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut pen = Pen::new(options, out);
    let causes = ObjectCauses::group_findings(report);
    if diffs::has_diffs(report) {
        plan::target(report, options, &mut pen)?;
        diffs::write(report, options, &mut pen)?;
        plan::summary(report, options, &mut pen)?;
    } else {
        plan::write(report, options, &mut pen)?;
    }
    plan::harm(report, &mut pen)?;
    findings::write(report, &causes, options, excerpts, &mut pen)?;
    checks::write(report, &causes, options, &mut pen)
}

/// The result of each object of a deploy, and a last line with the outcome.
pub fn write_results_and_outcome(report: &Report, options: &HumanOptions, out: &mut dyn Write) -> io::Result<()> {
    outcome::write_results_and_outcome(report, options, &mut Pen::new(options, out))
}

/// The errors, the result of each object unless it is obvious, and a last line with the outcome.
pub fn write_outcome(
    report: &Report,
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    out: &mut dyn Write,
) -> io::Result<()> {
    outcome::write(report, options, excerpts, &mut Pen::new(options, out))
}
