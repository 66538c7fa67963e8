//! What a format for programs or browsers needs in addition to the report.

use super::places::ReportPaths;
use super::view::{Excerpts, ReportPurpose, verdict};
use super::{Report, ReportList};
use gantry_core::finding::Severity;

/// Data that is not part of the report.
#[derive(Clone, Copy)]
pub struct ReportContext<'a> {
    /// The words of the rules, for formats that explain them.
    pub rules: &'a dyn RuleTexts,
    /// The paths of the manifests in the repository.
    pub places: &'a ReportPaths,
    /// The lines of the manifests, for formats that show them.
    pub excerpts: &'a dyn Excerpts,
    /// The command that the report is of.
    pub purpose: ReportPurpose,
    /// Shows no lines of manifests except CRDs.
    pub redact: bool,
    /// The clusters of a combined report.
    pub list: Option<&'a ReportList>,
    /// When and how the report was made, for formats that say it.
    pub run: &'a RunFacts,
}

/// When and how a report was made. It is not part of the report: the report of the same input is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// When the run started, for example `2026-11-28 22:05 UTC`.
    pub started: Option<String>,
    /// The command line, without what may be secret.
    pub command: Option<String>,
}

impl ReportContext<'_> {
    /// The last line of the human report: the outcome.
    pub fn verdict(&self, report: &Report) -> String {
        match self.list {
            Some(list) => verdict::verdict_of_list(list, self.purpose),
            None => verdict::verdict(report, self.purpose),
        }
    }
}

/// The documentation of rules.
pub trait RuleTexts {
    /// The rule of this name. `None` for rules of custom checks.
    fn rule(&self, name: &str) -> Option<RuleText>;
}

/// The documentation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// One line.
    pub summary: String,
    /// What is reported, exactly.
    pub reports: String,
    /// The default severity.
    pub severity: Severity,
    /// The output of `gantry rules` for it.
    pub text: String,
    /// The same as Markdown, without links.
    pub markdown: String,
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Every file exists, and each line contains its number.
    pub struct Numbered;

    const LINES: [&str; 4] = ["    line: 0", "    line: 1", "    line: 2", "    line: 3"];

    impl Excerpts for Numbered {
        fn line(&self, _: &str, line: usize) -> Option<&str> {
            LINES.get(line % 4).copied()
        }
    }

    /// One rule is known.
    pub struct One;

    impl RuleTexts for One {
        fn rule(&self, name: &str) -> Option<RuleText> {
            (name == "NoExistingFieldRemoved").then(|| RuleText {
                summary: "A field is removed".into(),
                reports: "Fields that are gone.".into(),
                severity: Severity::Error,
                text: "NoExistingFieldRemoved: A field is removed".into(),
                markdown: "# NoExistingFieldRemoved".into(),
            })
        }
    }

    type Write<R> = fn(&R, ReportContext<'_>, &mut dyn std::io::Write) -> std::io::Result<()>;

    /// Writes a report in a format as text.
    pub fn write_to_text(report: &crate::Report, write: Write<crate::Report>) -> String {
        write_with_sources(report, &Numbered, write)
    }

    /// The same, with the lines of files.
    pub fn write_with_sources(report: &crate::Report, excerpts: &dyn Excerpts, write: Write<crate::Report>) -> String {
        write_with(report, None, excerpts, write)
    }

    /// Writes the report of many clusters as text.
    pub fn write_list_to_text(list: &ReportList, write: Write<ReportList>) -> String {
        write_with(list, Some(list), &Numbered, write)
    }

    fn write_with<R>(report: &R, list: Option<&ReportList>, excerpts: &dyn Excerpts, write: Write<R>) -> String {
        let places = ReportPaths::new("/repo/deploy".as_ref(), "/repo".as_ref());
        let run = RunFacts {
            started: Some("2026-11-28 22:05 UTC".into()),
            command: Some("gantry check -f manifests".into()),
        };
        let around = ReportContext {
            rules: &One,
            places: &places,
            excerpts,
            purpose: ReportPurpose::Check,
            redact: false,
            list,
            run: &run,
        };
        let mut out = Vec::new();
        write(report, around, &mut out).expect("in memory");
        String::from_utf8(out).expect("text")
    }
}
