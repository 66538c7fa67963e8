//! The commands for apps, which read no manifests.

use clap::{Args, Subcommand};

use super::common::{ConfigFlags, IdentityArgs, KubeconfigArgs, OutputArgs, TargetArgs};
use super::flow::{AppFlags, ChartArgs, DeployArgs, FlowArgs, InputArgs, ManyArgs};
use gantry_core::options::{ListFormat, PruneFlag, PruneMax};
use gantry_deploy::config::{SettingFlags, key};

/// The cluster of a command that reads no manifests.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub identity: IdentityArgs,

    #[command(flatten)]
    pub kubeconfig: KubeconfigArgs,

    /// The namespace that keeps the app's record [default: that of the context]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// The same, as in the deploy that created the app [default: that of -n]
    #[arg(long, value_name = "NAME")]
    pub app_namespace: Option<String>,
}

impl ClusterArgs {
    /// The namespace of the app's record, if a flag names it: then the configuration does not count.
    pub fn of_record(&self) -> Option<&str> {
        self.app_namespace.as_deref().or(self.namespace.as_deref())
    }

    /// The flow of a deploy of this app without manifests, with no other flags.
    pub fn flow_of(&self, app: AppFlags, output: &OutputArgs) -> FlowArgs {
        let ClusterArgs { config, identity, kubeconfig, namespace, .. } = self.clone();
        FlowArgs {
            input: InputArgs {
                files: Vec::new(),
                kustomizations: Vec::new(),
                chart: ChartArgs::default(),
                config,
                preflight: Vec::new(),
                preset: None,
                render: None,
                target: TargetArgs { target: Vec::new(), kubeconfig, namespace },
                catalogs: Vec::new(),
                olm: None,
            },
            many: ManyArgs::default(),
            identity,
            settings: SettingFlags::default(),
            drop_kapp_selector: false,
            app: AppFlags { namespace: self.of_record().map(str::to_owned), ..app },
            fail_on_weaker_gate: false,
            baseline: None,
            diff: None,
            filter: Vec::new(),
            detailed_exitcode: false,
            output: output.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The app
    #[arg(short = 'a', long = "app", value_name = "NAME", required = true)]
    pub name: String,

    /// Also delete members that existed before the app
    #[arg(long)]
    pub prune_adopted: bool,

    /// Continue although a deploy of the app began less than 15 minutes ago and has not ended
    #[arg(long)]
    pub break_lock: bool,

    /// Delete also what cannot be checked because of an APIService whose API does not answer
    #[arg(long)]
    pub ignore_failing_api_services: bool,

    /// Turn every finding into a warning ("could not check" stays an error)
    #[arg(long)]
    pub warn_only: bool,

    /// Do not ask for confirmation; required without a terminal
    #[arg(short = 'y', long)]
    pub yes: bool,

    /// Stop after the report and delete nothing
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub output: OutputArgs,
}

impl DeleteArgs {
    /// The equivalent deploy without manifests.
    pub fn deploy(&self) -> DeployArgs {
        let app = AppFlags {
            name: Some(self.name.clone()),
            prune: Some(PruneFlag::Yes),
            prune_max: Some(PruneMax::Share(100)),
            prune_adopted: self.prune_adopted,
            break_lock: self.break_lock,
            ..AppFlags::default()
        };
        let settings = SettingFlags::default()
            .with(&key::IGNORE_FAILING_API_SERVICES, self.ignore_failing_api_services)
            .with(&key::WARN_ONLY, self.warn_only);
        let flow = FlowArgs { settings, ..self.cluster.flow_of(app, &self.output) };
        DeployArgs { flow, yes: self.yes, dry_run: self.dry_run, migrate: false, waves: None }
    }
}

#[derive(Debug, Args)]
pub struct AppsArgs {
    #[command(subcommand)]
    pub command: Option<AppsCommand>,

    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// The apps of all namespaces, also if the configuration names one
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "app_namespace"])]
    pub all_namespaces: bool,

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
        /// Continue although a deploy of the app began less than 15 minutes ago and has not ended
        #[arg(long)]
        break_lock: bool,
        /// Do not ask for confirmation; required without a terminal
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
        /// Continue although a deploy of either name began less than 15 minutes ago and has not ended
        #[arg(long)]
        break_lock: bool,
        /// Do not ask for confirmation; required without a terminal
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
