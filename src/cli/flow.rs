//! The flags of `deploy`, `check`, `diff`, and of other commands that read manifests or a target.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;

use super::common::{ConfigFlags, IdentityArgs, OutputArgs, TargetArgs};
use gantry_core::options::{
    DiffKind, MigrationWriterFlag, PermissionPurpose, PresetFlag, PruneFlag, PruneMax, Shard, Waves,
};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render;
use gantry_deploy::config::SettingFlags;
use gantry_deploy::plan::filter::Filter;

const CONTEXTS: &str = "The kubeconfig context, or several: a,b,c or a pattern like 'prod-*'";

/// The input and target of every command that reads manifests.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Manifests: a file, a directory (read recursively), - for standard input, git:REV[:PATH] for those of a commit, a
    /// Helm chart (a folder, a .tgz file or oci://REGISTRY/CHART[:VERSION]), or helm:[NAMESPACE/]RELEASE[:REVISION] for
    /// those that Helm has recorded; can be repeated
    #[arg(short = 'f', long = "file", value_name = "PATH", required_unless_present = "kustomizations")]
    pub files: Vec<String>,

    /// A folder with a kustomization, which kustomize build renders, or kubectl kustomize; can be repeated
    #[arg(id = "kustomizations", short = 'k', long = "kustomize", value_name = "DIR")]
    pub kustomizations: Vec<String>,

    #[command(flatten)]
    pub config: ConfigFlags,

    /// Run exactly these preflight checks, whatever the configuration enables; can be repeated
    #[arg(long, value_name = "CHECK,…")]
    pub preflight: Vec<String>,

    /// Whose verdict about the upgrade of a CRD counts, whatever the configuration says [default: documented]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<PresetFlag>,

    /// Render the manifests of each -f with a program, {dir} being the folder: 'kustomize build {dir}'
    ///
    /// With --target git:REV, the same program renders those of the commit, from all files of the commit.
    #[arg(long, value_name = "COMMAND")]
    pub render: Option<String>,

    #[command(flatten)]
    pub chart: ChartArgs,

    #[command(flatten)]
    pub target: TargetArgs,

    /// A catalog that ClusterExtensions are resolved from: a file, a folder or a URL with file-based catalogs; can be
    /// repeated, in addition to those of the configuration
    #[arg(long = "catalog", value_name = "NAME=PATH|URL")]
    pub catalogs: Vec<String>,

    /// The release of OLM v1 that installs ClusterExtensions, such as v1.10; 4.18 for OpenShift 4.18 [default: that of
    /// the cluster, else the newest]
    #[arg(long, value_name = "RELEASE")]
    pub olm: Option<String>,
}

impl InputArgs {
    /// What `-f` and `-k` name.
    pub fn arguments(&self) -> Vec<String> {
        let kustomizations = self.kustomizations.iter().map(|folder| render::kustomization_argument(folder));
        self.files.iter().cloned().chain(kustomizations).collect()
    }
}

/// How the Helm charts of `-f` are rendered.
#[derive(Debug, Clone, Default, Args)]
pub struct ChartArgs {
    /// A file with values for the Helm charts of -f, as in helm template; can be repeated, later ones win
    #[arg(long, value_name = "FILE")]
    pub values: Vec<String>,

    /// A value for the Helm charts of -f, as in helm template; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// The name of the release that the charts are rendered as [default: the name of the chart]
    #[arg(long, value_name = "NAME")]
    pub release: Option<String>,

    /// The version of a chart of oci:// [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub chart_version: Option<String>,
}

impl ChartArgs {
    /// The first of the flags that was given.
    pub fn first_flag(&self) -> Option<&'static str> {
        let given = [
            ("--values", !self.values.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--release", self.release.is_some()),
            ("--chart-version", self.chart_version.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}

/// The flags that `deploy`, `check` and `diff` share.
#[derive(Debug, Args)]
#[command(mut_arg("context", |arg| arg.help(CONTEXTS)))]
pub struct FlowArgs {
    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    pub many: ManyArgs,

    #[command(flatten)]
    pub identity: IdentityArgs,

    #[command(flatten)]
    pub settings: SettingFlags,

    /// Remove the label of kapp's app from the selectors of Services and PodDisruptionBudgets that kapp deployed
    #[arg(long)]
    pub drop_kapp_selector: bool,

    #[command(flatten)]
    pub app: AppFlags,

    /// Block if the configuration or the baseline lets more pass than at the commit of --target git:REV
    #[arg(long)]
    pub fail_on_weaker_gate: bool,

    /// Do not count findings that this JSON report of an earlier run already has, unless they got worse
    ///
    /// They do not block a deploy then. What could not be checked always counts.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// Show what changes in each object, line by line; with =full also each created object as a whole
    #[arg(long, value_name = "changes|full", num_args = 0..=1, require_equals = true, default_missing_value = "changes")]
    pub diff: Option<DiffKind>,

    /// Only objects that match all of kind=Deployment,ns=web,op=update: the others are not shown, checked or written
    ///
    /// Keys are kind, name, ns, group, label (label=app=front) and op (create, adopt, replace, update, unchanged, skip); * and ? are wildcards.
    /// Repeat the flag for objects that match either. Not together with --app.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub filter: Vec<Filter>,

    /// Exit with 4 instead of 0 if there are changes to make, or deploy made some
    #[arg(long)]
    pub detailed_exitcode: bool,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// The flags for many clusters in one run.
#[derive(Debug, Default, Args)]
pub struct ManyArgs {
    /// Run on the contexts in this file: one name or pattern on each line, # for comments
    #[arg(long, value_name = "FILE", conflicts_with = "context")]
    pub contexts_file: Option<PathBuf>,

    /// The most contexts at the same time [default: 8]
    #[arg(long, value_name = "N")]
    pub parallel: Option<NonZero<usize>>,

    /// Of several contexts, every Nth, beginning with index I, which counts from 0 as in Indexed Jobs
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
}

/// The flags for an app.
#[derive(Debug, Default, Args)]
pub struct AppFlags {
    /// The app that the objects belong to; members that the manifests no longer have can be pruned
    #[arg(id = "app", short = 'a', long, value_name = "NAME")]
    pub name: Option<String>,

    /// The namespace that keeps the app's record [default: that of -n or the context]
    #[arg(id = "app-namespace", long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Delete members of the app that the manifests no longer have [default: ask on a terminal, else no]
    #[arg(long, value_name = "WHEN")]
    pub prune: Option<PruneFlag>,

    /// The most members to delete, as a number or a share [default: 10, or 30% if that is more]
    #[arg(long, value_name = "N|P%")]
    pub prune_max: Option<PruneMax>,

    /// Also delete members that existed before the app
    #[arg(long)]
    pub prune_adopted: bool,

    /// Take over the kapp app of this name [default: that of --app] as a whole, and delete its record
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub from_kapp: Option<String>,

    /// Keep the record of the kapp app, although its objects no longer belong to kapp
    #[arg(long, requires = "from_kapp")]
    pub keep_kapp_record: bool,

    /// Take over the app's record from another tool that keeps it as its ApplySet; requires --yes without a terminal
    #[arg(long)]
    pub take_over_app: bool,

    /// Continue although another deploy of the app began less than 15 minutes ago and has not ended
    #[arg(long)]
    pub break_lock: bool,
}

impl AppFlags {
    /// Checks flags that mean nothing without an app, if there is none.
    ///
    /// # Errors
    /// One of them is given.
    pub fn need_none(&self) -> Result<()> {
        if self.from_kapp.is_some() {
            let problem = Problem::new("--from-kapp needs the app that takes over the objects, and none is named");
            return Err(Error::usage(problem.help("name the app: --app=NAME")));
        }
        let deletes = matches!(self.prune, Some(PruneFlag::Yes | PruneFlag::Kapp));
        let given = [
            ("--prune", deletes),
            ("--prune-max", self.prune_max.is_some()),
            ("--prune-adopted", self.prune_adopted),
            ("--take-over-app", self.take_over_app),
            ("--break-lock", self.break_lock),
            ("--app-namespace", self.namespace.is_some()),
        ];
        let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        let problem = Problem::new(format!("{flag} means nothing without an app, and none is named"));
        Err(Error::usage(problem.help(format!("name the app: --app=NAME; or leave out {flag}"))))
    }
}

#[derive(Debug, Args)]
pub struct DeployArgs {
    #[command(flatten)]
    pub flow: FlowArgs,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    pub yes: bool,

    /// Stop after the report and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Also move stored objects of the CRDs: before a version that is not served is removed, and after the storage version
    /// moves
    ///
    /// As gantry migrate does, with its proof and its question; it also removes the versions that are left behind from
    /// status.storedVersions.
    #[arg(long)]
    pub migrate: bool,

    /// Deploy to several contexts in waves: how many of them each wave completes, for example 1,10%,100%
    ///
    /// A wave begins when every cluster of the previous one is deployed (and ready, with --wait).
    #[arg(long, value_name = "N|P%,…")]
    pub waves: Option<Waves>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub flow: FlowArgs,

    /// Foretell what helm upgrade would do with the chart, or helm rollback with -f helm:RELEASE:REVISION, instead of a
    /// deploy; --release names the release
    #[arg(long, conflicts_with = "as_admission")]
    pub as_helm: bool,

    /// Show instead what the admission webhook would answer about the CRDs; exit code 3 if it would deny one
    #[arg(long)]
    pub as_admission: bool,

    /// Check again whenever the manifests or the configuration change, until Ctrl-C
    #[arg(long, conflicts_with_all = ["as_admission", "baseline"])]
    pub watch: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("files", |arg| arg.required(false).required_unless_present_any(["revision", "kustomizations"])))]
pub struct DiffArgs {
    #[command(flatten)]
    pub flow: FlowArgs,

    /// Instead of -f: what a rollback of the app to this revision would change; gantry history lists the revisions
    #[arg(id = "revision", long = "to", value_name = "REVISION", conflicts_with_all = ["files", "kustomizations", "contexts_file", "shard"])]
    pub to: Option<u32>,

    /// Foretell what helm upgrade would do with the chart, or helm rollback with -f helm:RELEASE:REVISION, instead of a
    /// deploy; --release names the release
    #[arg(long, conflicts_with = "revision")]
    pub as_helm: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("files", |arg| arg.required(false).required_unless_present_any(["purpose", "kustomizations"])))]
pub struct PermissionsArgs {
    #[command(flatten)]
    pub input: InputArgs,

    /// What the rights are for; for a snapshot or a migration -f is optional, as it is there [default: deploy]
    #[arg(long = "for", value_name = "deploy|snapshot|migrate")]
    pub purpose: Option<PermissionPurpose>,

    /// For a snapshot with --objects
    #[arg(long, requires = "purpose")]
    pub objects: bool,

    /// Also the rights of deploy --migrate, which moves the stored objects of the CRDs among the manifests
    #[arg(long)]
    pub migrate: bool,

    /// For a migration with --using server, by the server's own migrator
    #[arg(long, value_name = "gantry|server", requires = "purpose")]
    pub using: Option<MigrationWriterFlag>,

    /// The app that the objects belong to; finding, deleting and recording its members requires more rights
    #[arg(short = 'a', long, value_name = "NAME")]
    pub app: Option<String>,

    /// Also the rights to take over the kapp app of this name [default: that of --app]
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", requires = "app")]
    pub from_kapp: Option<String>,

    /// Also the rights to show the logs of Pods
    #[arg(long)]
    pub logs: bool,

    /// For this user or service account (system:serviceaccount:NAMESPACE:NAME) [default: your own identity]
    ///
    /// This command itself makes its requests with your own identity.
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,

    /// For this group, if --as is not given; can be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    pub groups: Vec<String>,

    /// The name of the Roles, ClusterRoles and bindings [default: gantry-deploy, gantry-snapshot or gantry-migrate]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// The folder: a new one, an empty one, or an earlier snapshot, which is replaced
    #[arg(short = 'o', long = "output", value_name = "DIR", required = true)]
    pub output: PathBuf,

    /// Only the live objects that these manifests name, and the CRDs of their kinds; can be repeated [default: all
    /// CRDs]
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub files: Vec<String>,

    /// Also all custom resources of these CRDs
    #[arg(long)]
    pub objects: bool,

    /// Leave out what cannot be read; without this flag nothing is written then
    #[arg(long)]
    pub skip_unreadable: bool,

    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub identity: IdentityArgs,

    #[command(flatten)]
    pub target: TargetArgs,
}
