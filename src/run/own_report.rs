//! Recognises reports of gantry by how they start.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::options::ReportFormat;
use crate::report::API_VERSION;

/// The first line of a file with human reports that the project file names.
pub const MARK: &str = "# Reports of gantry. Each run appends its own.";

/// The number of bytes that are looked at.
const HEAD: u64 = 4096;

/// Whether the file is a report in this format. A file that cannot be read is none.
pub fn is_report(format: ReportFormat, path: &Path) -> bool {
    let mut head = Vec::new();
    // A pipe could wait for a writer.
    let is_read = path.is_file() && File::open(path).is_ok_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok());
    is_read && is_head(format, &String::from_utf8_lossy(&head))
}

fn is_head(format: ReportFormat, head: &str) -> bool {
    match format {
        ReportFormat::Human => head.starts_with(MARK),
        ReportFormat::Json => head.starts_with(&format!("{{\n  \"apiVersion\": \"{API_VERSION}\"")),
        ReportFormat::Sarif => head.starts_with("{\n  \"$schema\"") && head.contains("\"name\": \"gantry\""),
        ReportFormat::Junit => head.contains("<testsuites name=\"gantry\""),
        ReportFormat::Markdown => head.starts_with("### gantry: "),
        ReportFormat::Github => head.starts_with("::") && head.contains(" title="),
        // Without findings it is an empty list.
        ReportFormat::Gitlab => head == "[]\n" || head.starts_with('[') && head.contains("\"check_name\""),
        ReportFormat::Html => head.starts_with("<!DOCTYPE html>") && head.contains("<title>gantry"),
    }
}
