//! What is done with reports that are there already.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use crate::options::{ColorChoice, OutputSpec};

#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(subcommand)]
    pub command: ReportCommand,
}

#[derive(Debug, Subcommand)]
pub enum ReportCommand {
    /// Put the JSON reports of several clusters together, and exit as a run on all of them would
    Merge(MergeArgs),
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// JSON reports of one cluster or of many, or folders of such files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The format (human, json, sarif, junit, markdown, github, gitlab, html), and a file to write it to; can be repeated [default: human]
    #[arg(short = 'o', long = "output", value_name = "FORMAT[=FILE]")]
    pub output: Vec<OutputSpec>,

    /// Colour on the terminal [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorChoice>,

    /// Print only findings and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print every cluster, every finding and every object
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}
