//! Reads the report that `--baseline` names.

use std::path::Path;

use gantry_yaml::explain_json;
use serde::Deserialize;

use crate::bounded;
use crate::finding::Baseline;
use crate::problem::{Error, Location, Problem, Result};
use crate::report::{API_VERSION, KIND, Report};

/// Findings in many thousand objects take some ten million bytes.
const MOST_BYTES: u64 = 256 << 20;

const HELP: &str = "write one with -o json=FILE";

/// What says that it is a report, and of which version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    api_version: Option<String>,
    kind: Option<String>,
}

/// The findings of an earlier report. `name` is the file as it was given; standard input may be the manifests.
///
/// # Errors
/// It cannot be read, or it is not a report of this version: a usage error.
pub fn read(name: &Path, working_directory: &Path) -> Result<Baseline> {
    let shown = name.display().to_string();
    let cannot = |why: String| Error::usage(Problem::new(format!("--baseline {shown}: {why}")).help(HELP));
    if name == Path::new("-") {
        let why = "it is read from a file, not from standard input".to_owned();
        return Err(cannot(why));
    }
    let bytes = bounded::read_up_to(&working_directory.join(name), MOST_BYTES);
    let bytes = bytes.map_err(|error| cannot(format!("cannot be read: {error}")))?;
    let wrong = |error: serde_json::Error| {
        let at = Location { file: shown.clone(), line: error.line(), column: error.column() };
        let message = format!("--baseline is not a JSON report: {}", explain_json(&error));
        Error::usage(Problem::new(message).at(at).help(HELP))
    };
    // Some shells write one when a report is sent to a file.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let head: Head = serde_json::from_slice(bytes).map_err(wrong)?;
    match (head.api_version.as_deref(), head.kind.as_deref()) {
        (Some(API_VERSION), Some(KIND)) => {}
        (Some(version), Some(KIND)) => {
            return Err(cannot(format!("it has apiVersion {version:?}, and this gantry reads {API_VERSION:?}")));
        }
        _ => return Err(cannot(format!("it is not a report: it lacks kind: {KIND}"))),
    }
    let report: Report = serde_json::from_slice(bytes).map_err(wrong)?;
    Ok(Baseline::new(shown, report.checks))
}
