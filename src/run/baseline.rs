//! Reads the report that `--baseline` names.

use std::collections::BTreeMap;
use std::path::Path;

use super::reports::{self, ReportFile};
use gantry_core::finding::Baseline;
use gantry_core::problem::{Error, Problem, Result};

const HELP: &str = "write one with -o json=FILE";

/// The findings of an earlier run: of one cluster, or of each cluster by its name.
#[derive(Default)]
pub struct Baselines {
    any: Option<Baseline>,
    by_cluster: BTreeMap<String, Baseline>,
    file: String,
}

impl Baselines {
    /// The findings that count as known on a cluster: none, if the earlier run did not include it.
    pub fn for_cluster(&self, cluster: &str) -> Baseline {
        let known = self.by_cluster.get(cluster).or(self.any.as_ref());
        known.cloned().unwrap_or_else(|| Baseline::new(self.file.clone(), Vec::new()))
    }

    /// The findings for a run with a single target.
    ///
    /// # Errors
    /// The earlier run had several clusters.
    pub fn of_one(self) -> Result<Baseline> {
        let file = self.file;
        self.any.ok_or_else(|| {
            let problem = Problem::new(format!("--baseline {file}: it has the reports of several clusters"));
            Error::usage(
                problem.help("use the report of one cluster: jq '.clusters[] | select(.name == \"NAME\").report'"),
            )
        })
    }
}

/// Reads the findings of an earlier report. `name` is the file as the user wrote it; `-` is refused, because standard
/// input may be the manifests.
///
/// # Errors
/// It cannot be read, or it is not a report of this version. These are usage errors.
pub fn read(name: &Path, working_directory: &Path) -> Result<Baselines> {
    let file = name.display().to_string();
    Ok(match reports::read("--baseline ", name, working_directory, HELP).map_err(Error::usage)? {
        ReportFile::One(report) => {
            Baselines { any: Some(Baseline::new(file.clone(), report.checks)), file, ..Baselines::default() }
        }
        ReportFile::Many(list) => {
            let of = |cluster: gantry_report::ClusterReport| {
                (cluster.name, Baseline::new(file.clone(), cluster.report.checks))
            };
            Baselines { by_cluster: list.clusters.into_iter().map(of).collect(), file: file.clone(), any: None }
        }
    })
}
