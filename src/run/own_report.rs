//! Recognises reports of gantry by how they start.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::options::Format;
use crate::report::API_VERSION;

/// The first line of a file with human reports that the project file names.
pub const MARK: &str = "# Reports of gantry. Each run appends its own.";

/// The number of bytes that are looked at.
const HEAD: u64 = 4096;

/// Whether the file is a report in this format. A file that cannot be read is none.
pub fn is_report(format: Format, path: &Path) -> bool {
    let mut head = Vec::new();
    // A pipe could wait for a writer.
    let is_read = path.is_file() && File::open(path).is_ok_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok());
    is_read && is_head(format, &String::from_utf8_lossy(&head))
}

fn is_head(format: Format, head: &str) -> bool {
    match format {
        Format::Human => head.starts_with(MARK),
        Format::Json => head.starts_with(&format!("{{\n  \"apiVersion\": \"{API_VERSION}\"")),
        Format::Sarif => head.starts_with("{\n  \"$schema\"") && head.contains("\"name\": \"gantry\""),
        Format::Junit => head.contains("<testsuites name=\"gantry\""),
        Format::Markdown => head.starts_with("### gantry: "),
        Format::Github => head.starts_with("::") && head.contains(" title="),
        // Without findings it is an empty list.
        Format::Gitlab => head == "[]\n" || head.starts_with('[') && head.contains("\"check_name\""),
        Format::Html => head.starts_with("<!DOCTYPE html>") && head.contains("<title>gantry"),
    }
}
