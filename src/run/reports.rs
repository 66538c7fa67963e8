//! Reads JSON reports of earlier runs: of one cluster, or of many.

use std::path::Path;

use gantry_yaml::explain_json;
use serde::Deserialize;

use gantry_core::bounded;
use gantry_core::problem::{Location, Problem};
use gantry_report::{API_VERSION, KIND, LIST_KIND, Report, ReportList};

/// The largest report, in bytes. Findings in many thousands of objects take tens of megabytes.
pub const MOST_BYTES: u64 = 256 << 20;

/// The content of a file.
pub enum ReportFile {
    One(Box<Report>),
    Many(Box<ReportList>),
}

/// The fields that identify a report and its version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportHead {
    api_version: Option<String>,
    kind: Option<String>,
}

/// Reads a report. `what` names it in messages, `name` is its path as given; `help` says how to write one.
///
/// # Errors
/// It cannot be read, or it is not a report of this version.
pub fn read(what: &str, name: &Path, working_directory: &Path, help: &str) -> Result<ReportFile, Problem> {
    let shown = name.display().to_string();
    let cannot = |why: String| Problem::new(format!("{what}{shown}: {why}")).help(help);
    if name == Path::new("-") {
        return Err(cannot("it is read from a file, not from standard input".to_owned()));
    }
    let bytes = bounded::read_up_to(&working_directory.join(name), MOST_BYTES);
    let bytes = bytes.map_err(|error| cannot(format!("cannot be read: {error}")))?;
    let wrong = |error: serde_json::Error| {
        let at = Location { file: shown.clone(), line: error.line(), column: error.column() };
        let what = if what.is_empty() { "this" } else { what.trim_end() };
        Problem::new(format!("{what} is not a JSON report: {}", explain_json(&error))).at(at).help(help)
    };
    // A byte order mark, which some shells write when output is redirected to a file.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let head: ReportHead = serde_json::from_slice(bytes).map_err(wrong)?;
    match (head.api_version.as_deref(), head.kind.as_deref()) {
        (Some(API_VERSION), Some(KIND)) => {
            serde_json::from_slice(bytes).map(|report| ReportFile::One(Box::new(report)))
        }
        (Some(API_VERSION), Some(LIST_KIND)) => {
            serde_json::from_slice(bytes).map(|list| ReportFile::Many(Box::new(list)))
        }
        (Some(version), Some(KIND | LIST_KIND)) => {
            return Err(cannot(format!("it has apiVersion {version:?}, and this gantry reads {API_VERSION:?}")));
        }
        _ => return Err(cannot(format!("it is not a report: it lacks kind: {KIND}"))),
    }
    .map_err(wrong)
}
