//! The commands on apps, which read no manifests.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use super::flow::{AppFlags, ConfigFlags, DeployArgs, FlowArgs, IdentityArgs, InputArgs, ManyArgs};
use crate::options::{ColorChoice, ListFormat, OutputSpec, PruneFlag, PruneMax};

/// Where a command goes that reads no manifests.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub identity: IdentityArgs,

    /// The kubeconfig context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// The namespace that keeps the app's record [default: that of the context]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The app
    #[arg(short = 'a', long = "app", value_name = "NAME", required = true)]
    pub name: String,

    /// Also delete members that were there before the app
    #[arg(long)]
    pub prune_adopted: bool,

    /// Go on although a deploy of the app began less than 15 minutes ago and has not ended
    #[arg(long)]
    pub break_lock: bool,

    /// Turn every finding into a warning ("could not check" stays an error)
    #[arg(long)]
    pub warn_only: bool,

    /// Do not ask for confirmation; needed off a terminal
    #[arg(short = 'y', long)]
    pub yes: bool,

    /// Stop after the report and delete nothing
    #[arg(long)]
    pub dry_run: bool,

    /// The report's format (human, json, sarif, junit, markdown, github, gitlab, html), and a file to write it to; can be repeated [default: human]
    #[arg(short = 'o', long = "output", value_name = "FORMAT[=FILE]")]
    pub output: Vec<OutputSpec>,

    /// Colour on the terminal [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorChoice>,

    /// Print only findings and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print every finding and every object
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl DeleteArgs {
    /// The same as a deploy of no manifests.
    pub fn deploy(&self) -> DeployArgs {
        let ClusterArgs { config, identity, context, kubeconfig, namespace } = self.cluster.clone();
        let input = InputArgs {
            files: Vec::new(),
            config,
            preflight: Vec::new(),
            target: None,
            render: None,
            context,
            kubeconfig,
            namespace: namespace.clone(),
            catalogs: Vec::new(),
        };
        let app = AppFlags {
            name: Some(self.name.clone()),
            // Here the flag names the namespace of the record, whatever the configuration says.
            namespace,
            prune: Some(PruneFlag::Yes),
            prune_max: Some(PruneMax::Share(100)),
            prune_adopted: self.prune_adopted,
            from_kapp: None,
            keep_kapp_record: false,
            take_over_app: false,
            break_lock: self.break_lock,
        };
        let flow = FlowArgs {
            input,
            many: ManyArgs::default(),
            identity,
            force_conflicts: false,
            take_ownership: Vec::new(),
            drop_kapp_selector: false,
            field_manager: None,
            app,
            wait: None,
            ignore_failing_api_services: false,
            logs: false,
            keep_going: false,
            apply_timeout: None,
            wait_timeout: None,
            wait_resource_timeout: None,
            warn_only: self.warn_only,
            baseline: None,
            diff: None,
            filter: Vec::new(),
            detailed_exitcode: false,
            output: self.output.clone(),
            color: self.color,
            redact: false,
            quiet: self.quiet,
            verbose: self.verbose,
        };
        DeployArgs { flow, yes: self.yes, dry_run: self.dry_run, waves: None }
    }
}

#[derive(Debug, Args)]
pub struct AppsArgs {
    #[command(subcommand)]
    pub command: Option<AppsCommand>,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The output format [default: human]
    #[arg(short = 'o', long = "output", value_name = "human|json")]
    pub output: Option<ListFormat>,
}

#[derive(Debug, Subcommand)]
pub enum AppsCommand {
    /// Remove the app's record and the label of its members; the members stay
    Forget {
        #[command(flatten)]
        cluster: ClusterArgs,
        /// The app
        #[arg(short = 'a', long = "app", value_name = "NAME", required = true)]
        name: String,
        /// Do not ask for confirmation; needed off a terminal
        #[arg(short = 'y', long)]
        yes: bool,
    },
    /// Give the app another name: its record and the label of its members
    Rename {
        #[command(flatten)]
        cluster: ClusterArgs,
        /// The app
        #[arg(short = 'a', long = "app", value_name = "NAME", required = true)]
        name: String,
        /// Its new name
        #[arg(long, value_name = "NAME")]
        to: String,
        /// Do not ask for confirmation; needed off a terminal
        #[arg(short = 'y', long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The app
    #[arg(short = 'a', long = "app", value_name = "NAME", required = true)]
    pub name: String,

    /// Also show what the workloads of the app own: ReplicaSets, Jobs, Pods
    #[arg(long)]
    pub tree: bool,

    /// The output format [default: human]
    #[arg(short = 'o', long = "output", value_name = "human|json")]
    pub output: Option<ListFormat>,
}
