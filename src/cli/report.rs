//! Commands for existing reports.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::OutputArgs;

#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(subcommand)]
    pub command: ReportCommand,
}

#[derive(Debug, Subcommand)]
pub enum ReportCommand {
    /// Merge the JSON reports of several clusters, and exit like a run on all of them
    Merge(MergeArgs),
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// JSON reports of one cluster or of many, or folders of such files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub output: OutputArgs,
}
