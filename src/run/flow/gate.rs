//! Whether a change weakens the gate that it has to pass: with a commit as target, the configuration and the baseline
//! are compared with those of the commit.

use std::collections::BTreeMap;
use std::path::Path;

use super::configured::ConfiguredRun;
use gantry_cluster::Target;
use gantry_cluster::git::commit_files::CommitFiles;
use gantry_core::manifest::LoadedManifests;
use gantry_core::problem::{Location, Problem};
use gantry_deploy::config::{Loader, weaker};
use gantry_preflight::registry;

/// What the configuration and the baseline let pass, and those of the commit did not.
pub async fn find_weakenings(run: &ConfiguredRun<'_>, loaded: &LoadedManifests, target: &Target) -> Vec<Problem> {
    let Some(commit) = target.as_commit() else { return Vec::new() };
    let found = match of_configuration(run, loaded, commit).await {
        Ok(found) => found.into_iter().chain(of_baseline(run, commit).await).collect(),
        Err(problem) => vec![problem],
    };
    let name = target.read_only_name().unwrap_or_default();
    let help = match run.args.fail_on_weaker_gate {
        true => "a maintainer who confirms it runs this without --fail-on-weaker-gate",
        false => "a maintainer should confirm it; --fail-on-weaker-gate makes it an error",
    };
    let with_context = |problem: Problem| Problem {
        message: format!("this change weakens the gate of {name}: {}", problem.message),
        help: Some(help.to_owned()),
        ..problem
    };
    found.into_iter().map(with_context).collect()
}

async fn of_configuration(
    run: &ConfiguredRun<'_>,
    loaded: &LoadedManifests,
    commit: &CommitFiles,
) -> Result<Vec<Problem>, Problem> {
    let mut replaced = BTreeMap::new();
    let mut differs = false;
    for path in run.loader.files_of_project() {
        let Some(text) = commit.text_of(&path).await? else { continue };
        differs |= std::fs::read_to_string(&path).ok() != text;
        replaced.insert(path, text);
    }
    // Documents among the manifests can let more pass where the files have no entry. Only those that the commit has
    // count.
    let mut documents = Vec::new();
    for origin in loaded.configs.iter().map(|document| &document.origin) {
        let path = run.loader.working_directory.join(&*origin.source.name);
        let is_known = match (commit.text_of(&path).await?, std::fs::read_to_string(&path)) {
            (Some(Some(before)), Ok(now)) => before == now,
            // Not in the work tree, such as standard input: no change of it can be seen.
            (None, _) => true,
            _ => false,
        };
        if is_known {
            documents.push(origin);
        } else {
            differs = true;
        }
    }
    if !differs {
        return Ok(Vec::new());
    }
    let loader = Loader { replaced, ..run.loader.clone() };
    match loader.load(documents, &registry::known()) {
        Ok(before) => Ok(weaker(&before.settings, &run.settings)),
        Err(error) => {
            let why = error.problems().first().map(ToString::to_string).unwrap_or_default();
            Err(Problem::new(format!("the configuration at the commit cannot be read, and was not compared ({why})")))
        }
    }
}

async fn of_baseline(run: &ConfiguredRun<'_>, commit: &CommitFiles) -> Option<Problem> {
    let name = run.args.baseline.as_deref()?;
    let path = run.loader.working_directory.join(name);
    let problem = match commit.text_of(&path).await {
        Ok(None) => return None,
        Ok(Some(None)) => Problem::new("the baseline is new"),
        Ok(Some(Some(text))) if std::fs::read_to_string(&path).is_ok_and(|now| now == text) => return None,
        Ok(Some(Some(_))) => Problem::new("the baseline is different"),
        Err(problem) => return Some(problem),
    };
    Some(problem.at(Location { file: display_path(name), line: 1, column: 1 }))
}

fn display_path(path: &Path) -> String {
    path.display().to_string()
}
