//! The commands that go back to an earlier deploy of an app.

use std::path::PathBuf;

use clap::Args;

use super::app::ClusterArgs;
use super::common::OutputArgs;
use super::flow::{AppFlags, DeployArgs, FlowArgs, InputArgs};
use gantry_core::options::{DiffKind, ListFormat, PresetFlag, PruneFlag, PruneMax};
use gantry_deploy::config::SettingFlags;

#[derive(Debug, Args)]
pub struct HistoryArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The app
    #[arg(short = 'a', long = "app", value_name = "NAME", required = true)]
    pub name: String,

    /// The output format [default: human]
    #[arg(short = 'o', long = "output", value_name = "human|json")]
    pub output: Option<ListFormat>,
}

#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// The revision, as gantry history shows it [default: the last one before the current one that was deployed]
    #[arg(value_name = "REVISION")]
    pub revision: Option<u32>,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The app
    #[arg(short = 'a', long = "app", value_name = "NAME", required = true)]
    pub name: String,

    /// Run exactly these preflight checks, whatever the configuration enables; can be repeated
    #[arg(long, value_name = "CHECK,…")]
    pub preflight: Vec<String>,

    /// Whose verdict about the upgrade of a CRD counts, whatever the configuration says [default: documented]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<PresetFlag>,

    #[command(flatten)]
    pub settings: SettingFlags,

    /// Delete members of the app that the revision does not have [default: ask on a terminal, else no]
    #[arg(long, value_name = "WHEN")]
    pub prune: Option<PruneFlag>,

    /// The most members to delete, as a number or a share [default: 10, or 30% if that is more]
    #[arg(long, value_name = "N|P%")]
    pub prune_max: Option<PruneMax>,

    /// Also delete members that existed before the app
    #[arg(long)]
    pub prune_adopted: bool,

    /// Continue although a deploy of the app began less than 15 minutes ago and has not ended
    #[arg(long)]
    pub break_lock: bool,

    /// Do not count findings that this JSON report of an earlier run already has, unless they got worse
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// Show what changes in each object, line by line; with =full also each created object as a whole
    #[arg(long, value_name = "changes|full", num_args = 0..=1, require_equals = true, default_missing_value = "changes")]
    pub diff: Option<DiffKind>,

    /// Exit with 4 instead of 0 if the rollback made changes, or with --dry-run if there are some to make
    #[arg(long)]
    pub detailed_exitcode: bool,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    pub yes: bool,

    /// Stop after the report and write nothing
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub output: OutputArgs,
}

impl RollbackArgs {
    /// The equivalent deploy, without its manifests.
    pub fn deploy(&self) -> DeployArgs {
        let app = AppFlags {
            name: Some(self.name.clone()),
            prune: self.prune,
            prune_max: self.prune_max,
            prune_adopted: self.prune_adopted,
            break_lock: self.break_lock,
            ..AppFlags::default()
        };
        let base = self.cluster.flow_of(app, &self.output);
        let flow = FlowArgs {
            input: InputArgs { preflight: self.preflight.clone(), preset: self.preset, ..base.input },
            settings: self.settings.clone(),
            baseline: self.baseline.clone(),
            diff: self.diff,
            detailed_exitcode: self.detailed_exitcode,
            ..base
        };
        DeployArgs { flow, yes: self.yes, dry_run: self.dry_run, migrate: false, waves: None }
    }
}
