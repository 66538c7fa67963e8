//! Flags that several commands share.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use gantry_core::options::{ColorChoice, OutputSpec, TargetSpec};

/// The target of a command.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// The target: a cluster, a folder of manifests that represents one, or the manifests of a commit, a Helm chart or a
    /// Helm release (read-only)
    ///
    /// check and diff compare with several commits in one run: git:REV,REV[:PATH], or the flag repeated.
    #[arg(long, value_name = "kube|dir:PATH|git:REV[:PATH]|chart:CHART|helm:RELEASE")]
    pub target: Vec<TargetSpec>,

    #[command(flatten)]
    pub kubeconfig: KubeconfigArgs,

    /// The namespace for namespaced objects whose manifest has none
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,
}

/// The cluster, as kubectl names it.
#[derive(Debug, Clone, Default, Args)]
pub struct KubeconfigArgs {
    /// The kubeconfig context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)
    #[arg(id = "kubeconfig", long = "kubeconfig", value_name = "PATH")]
    pub file: Option<PathBuf>,

    /// The cluster of the kubeconfig, instead of the context's own
    #[arg(id = "cluster_name", long = "cluster", value_name = "NAME")]
    pub cluster: Option<String>,

    /// The user of the kubeconfig, instead of the context's own
    #[arg(id = "user_name", long = "user", value_name = "NAME")]
    pub user: Option<String>,

    /// The address of the API server, instead of the one in the kubeconfig
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,

    /// A bearer token, instead of the credentials in the kubeconfig
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
}

impl KubeconfigArgs {
    /// Whether a flag names a cluster or a user.
    pub fn is_given(&self) -> bool {
        let KubeconfigArgs { context, file, cluster, user, server, token } = self;
        file.is_some() || [context, cluster, user, server, token].into_iter().any(Option::is_some)
    }
}

/// Where a report is written, and how much of it is printed.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    #[arg(id = "output", short = 'o', long = "output", value_name = OutputSpec::VALUE_NAME, help = OutputSpec::help())]
    pub specs: Vec<OutputSpec>,

    /// Colour on the terminal [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorChoice>,

    /// Print only findings and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print every finding, every object and every cluster
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The user and groups to impersonate.
#[derive(Debug, Clone, Default, Args)]
pub struct IdentityArgs {
    /// Make every request as this user or service account (system:serviceaccount:NAMESPACE:NAME)
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,

    /// Make every request as a member of this group, together with --as; can be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    pub groups: Vec<String>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ConfigFlags {
    /// A configuration file, which overrides the project's gantry.yaml; can be repeated, later ones win
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub config_files: Vec<PathBuf>,

    /// Run the programs that the project's gantry.yaml defines as checks; those of -c files need no flag
    #[arg(long)]
    pub allow_exec: bool,
}
