//! `gantry report merge`: the reports of several clusters as one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::fleet::worst_exit;
use super::host::{Exit, Host};
use super::output::Output;
use super::reports::{self, ReportFile};
use crate::cli::MergeArgs;
use gantry_core::finding::ApplyResult;
use gantry_core::options::{ColorChoice, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_report::ReportPurpose;
use gantry_report::{ClusterReport, Outcome, Report, ReportList, WaitState};

const HELP: &str = "merge what gantry wrote with -o json";

pub fn run(args: &MergeArgs, host: &mut Host) -> Exit {
    let mut output = Output::new(&args.output, ReportPurpose::Check);
    let merged = merge(args, host, &mut output).and_then(|(list, exit)| {
        output.finish_list(host, &list, None)?;
        Ok(exit)
    });
    merged.unwrap_or_else(|error| {
        output.print_problems(host, error.problems());
        Exit::from(&error)
    })
}

/// The reports of all files, and the exit code of a run on all of their clusters.
fn merge(args: &MergeArgs, host: &Host, output: &mut Output) -> Result<(ReportList, Exit)> {
    output.configure(&args.output.specs, args.output.color.unwrap_or(ColorChoice::Auto), false, host)?;
    let (files, mut problems) = files(&args.files, &host.working_directory);
    let read: Vec<PathBuf> = files.iter().map(|file| host.working_directory.join(file)).collect();
    output.refuse_to_overwrite(&read, &TargetSpec::Kube, host)?;
    let (mut clusters, mut errors) = (Vec::new(), Vec::new());
    let mut origin_of: BTreeMap<String, &Path> = BTreeMap::new();
    for file in &files {
        let found = match reports::read("", file, &host.working_directory, HELP) {
            Ok(ReportFile::One(report)) => vec![of_one(*report, file)],
            Ok(ReportFile::Many(list)) => {
                errors.extend(list.errors);
                list.clusters
            }
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        for cluster in found {
            match origin_of.get(&cluster.name) {
                Some(first) => {
                    let name = gantry_core::manifest::shown_text(&cluster.name);
                    let message = format!("{}: the cluster {name:?} is in {}, too", file.display(), first.display());
                    problems.push(Problem::new(message).help("merge one report of each cluster"));
                }
                None => {
                    origin_of.insert(cluster.name.clone(), file);
                    clusters.push(cluster);
                }
            }
        }
    }
    if !problems.is_empty() {
        return Err(Error::Usage(problems));
    }
    let exit = worst_exit(clusters.iter().map(|cluster| exit_of(&cluster.report)));
    let mut list = ReportList::new(clusters);
    let exit = if errors.is_empty() { exit } else { worst_exit([exit, Exit::Failed].into_iter()) };
    list.stop(errors);
    Ok((list, exit))
}

/// The files, and those in folders, sorted by name.
fn files(named: &[PathBuf], working_directory: &Path) -> (Vec<PathBuf>, Vec<Problem>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for name in named {
        let whole = working_directory.join(name);
        if !whole.is_dir() {
            files.push(name.clone());
            continue;
        }
        let shown = name.display();
        match fs::read_dir(&whole).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            Err(error) => problems.push(Problem::new(format!("{shown}: cannot be read: {error}")).help(HELP)),
            Ok(entries) => {
                let mut found: Vec<PathBuf> = entries.iter().map(|entry| name.join(entry.file_name())).collect();
                found.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
                found.sort();
                if found.is_empty() {
                    let problem = Problem::new(format!("{shown}: there is no .json file in this folder"));
                    problems.push(problem.help(HELP));
                }
                files.extend(found);
            }
        }
    }
    (files, problems)
}

/// The cluster of a single report, named after the context, or after the file if there is none.
fn of_one(report: Report, file: &Path) -> ClusterReport {
    let (name, server) = match report.target.strip_prefix("kube: ").and_then(|rest| rest.split_once(" (")) {
        Some((name, rest)) => (name.to_owned(), rest.split_once(')').map(|(server, _)| server.to_owned())),
        None if !report.target.is_empty() => (report.target.clone(), None),
        None => (file.display().to_string(), None),
    };
    ClusterReport { name, server, wave: None, not_reached: false, live_crds: None, report }
}

/// The exit code of the run that wrote the report.
fn exit_of(report: &Report) -> Exit {
    let is_unready = report.waits.iter().any(|wait| wait.state != WaitState::Ready)
        || report.changes.iter().any(|change| change.result == Some(ApplyResult::Deleting));
    let is_failed = report
        .changes
        .iter()
        .any(|change| matches!(change.result, Some(ApplyResult::Failed | ApplyResult::NotReached)));
    match report.outcome {
        Outcome::Deployed | Outcome::Unchanged | Outcome::Planned => Exit::Success,
        Outcome::Blocked => Exit::Blocked,
        Outcome::Failed if is_unready && !is_failed => Exit::NotReady,
        Outcome::Failed => Exit::Failed,
    }
}
