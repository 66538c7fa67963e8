//! Recognises reports of gantry by how they start.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gantry_core::options::ReportFormat;
use gantry_report::writer_of;

/// The first line of a file with human reports that the project file names.
pub const MARK: &str = "# Reports of gantry. Each run appends its own.";

/// The number of bytes that are looked at.
const HEAD: u64 = 4096;

/// Whether the file is a report in this format. A file that cannot be read is none.
pub fn is_report(format: ReportFormat, path: &Path) -> bool {
    let mut head = Vec::new();
    // A pipe could wait for a writer.
    let is_read = path.is_file() && File::open(path).is_ok_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok());
    let head = String::from_utf8_lossy(&head);
    is_read && writer_of(format).map_or_else(|| head.starts_with(MARK), |writer| (writer.is_start_of_report)(&head))
}
