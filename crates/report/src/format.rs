//! The formats for programs and browsers: what a run needs to know of each.

use std::io::{self, Write};

use super::{Report, ReportContext, ReportList, github, gitlab, html, json, junit, markdown, name, sarif, yaml};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::options::ReportFormat;

/// A format that is written as a whole, at the end of a run.
pub struct FormatWriter {
    /// Writes the report of one run.
    pub write: fn(&Report, ReportContext<'_>, &mut dyn Write) -> io::Result<()>,
    /// Writes the reports of many clusters.
    pub write_list: fn(&ReportList, ReportContext<'_>, &mut dyn Write) -> io::Result<()>,
    /// Its syntax, for escaping in it.
    pub syntax: OutputSyntax,
    /// Whether a file that starts with this text is a report of gantry in this format.
    pub is_start_of_report: fn(&str) -> bool,
}

/// The writer of a format. `None` for the human report, which is written in parts during the run.
pub fn writer_of(format: ReportFormat) -> Option<&'static FormatWriter> {
    match format {
        ReportFormat::Human => None,
        ReportFormat::Json => Some(&json::WRITER),
        ReportFormat::Yaml => Some(&yaml::WRITER),
        ReportFormat::Sarif => Some(&sarif::WRITER),
        ReportFormat::Junit => Some(&junit::WRITER),
        ReportFormat::Markdown => Some(&markdown::WRITER),
        ReportFormat::Github => Some(&github::WRITER),
        ReportFormat::Gitlab => Some(&gitlab::WRITER),
        ReportFormat::Html => Some(&html::WRITER),
        ReportFormat::Name => Some(&name::WRITER),
    }
}

#[cfg(test)]
mod tests {
    use gantry_core::options::ReportFormat;

    #[test]
    fn the_documentation_has_a_row_for_every_format() {
        let page = include_str!("../../../docs/formats.md");
        let table = page.lines().skip_while(|line| !line.starts_with("| format |")).skip(2);
        let rows = table.map_while(|line| line.strip_prefix("| `")?.split('`').next());
        assert_eq!(rows.collect::<Vec<_>>(), gantry_core::options::names_of::<ReportFormat>());
    }
}
