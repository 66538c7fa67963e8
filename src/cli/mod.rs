//! The command line: parsing only, no I/O. `gantry::run` turns these raw arguments into a run.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::options::{
    CatalogFormat, ColorChoice, DiffKind, ListFormat, OutputSpec, PruneFlag, PruneMax, TargetSpec, Wait,
};
use crate::plan::filter::Filter;

/// Deploy Kubernetes manifests with preflight checks that prove a CRD upgrade safe before anything is written.
#[derive(Debug, Parser)]
#[command(name = "gantry", version, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  deployed, nothing to do, or warnings only
  1  failed: unreadable manifests, no cluster, a check that could not complete, not confirmed
  2  usage or configuration error, found before any request
  3  blocked by a preflight check; nothing was written
  4  only with --detailed-exitcode: check and diff found changes to make, deploy made changes
  5  written, but something is not ready, or what was deleted is not gone, in time";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check the manifests against the live objects, then apply them
    Deploy(DeployArgs),
    /// Do the same as deploy, with the same exit code, but never write
    Check(CheckArgs),
    /// Delete an app: its objects first, its record last
    Delete(DeleteArgs),
    /// List the apps of a cluster
    Apps(AppsArgs),
    /// Show the members of an app, and how its last deploy ended
    Inspect(InspectArgs),
    /// Show what a deploy would change in each object; runs no check unless --preflight names it
    Diff(DiffArgs),
    /// Print the minimal RBAC that a deploy needs, as manifests ready to apply
    Permissions(PermissionsArgs),
    /// Write what is live to a folder, to check against it later or elsewhere: --target dir:DIR
    Snapshot(SnapshotArgs),
    /// Look into catalogs of operators: packages, channels, versions, and the ways between them
    Catalog(CatalogArgs),
    /// List the checks and their rules, or explain one
    Rules(RulesArgs),
    /// Show the merged configuration, or its JSON Schema
    Config(ConfigArgs),
    /// Print the script that completes this command line in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a folder
    Man {
        /// The folder, for example /usr/local/share/man/man1
        folder: PathBuf,
    },
    /// What may stand in place of the last word, in the format of kubectl's plugins
    #[command(hide = true)]
    CompleteWords {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// What every command that looks at a target has in common: what is read, and where it goes.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Manifests: a file, a directory (read recursively) or - for standard input; can be repeated
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub files: Vec<String>,

    #[command(flatten)]
    pub config: ConfigFlags,

    /// Run exactly these preflight checks, whatever the configuration enables; can be repeated
    #[arg(long, value_name = "CHECK,…")]
    pub preflight: Vec<String>,

    /// The target: a cluster, a folder of manifests that represents one, or, to compare with, the manifests of a commit
    #[arg(long, value_name = "kube|dir:PATH|git:REV[:PATH]")]
    pub target: Option<TargetSpec>,

    /// Make the manifests of each -f with a program, {dir} standing for the folder: 'kustomize build {dir}'
    ///
    /// With --target git:REV, the same program makes those of the commit, from all files of the commit.
    #[arg(long, value_name = "COMMAND")]
    pub render: Option<String>,

    /// The kubeconfig context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// The namespace for namespaced objects whose manifest has none
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// A catalog that ClusterExtensions are resolved from: a file, a folder or a URL with file-based catalogs; can be
    /// repeated, beside those of the configuration
    #[arg(long = "catalog", value_name = "NAME=PATH|URL")]
    pub catalogs: Vec<String>,
}

/// What `deploy` and `check` have in common.
#[derive(Debug, Args)]
pub struct FlowArgs {
    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    pub identity: IdentityArgs,

    /// Take ownership of fields that other field managers own
    #[arg(long)]
    pub force_conflicts: bool,

    /// Take over objects that another tool owns: all, or those that match KIND/NAME; can be repeated
    #[arg(
        long,
        value_name = "PATTERN,…",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "*",
        value_delimiter = ','
    )]
    pub take_ownership: Vec<String>,

    /// Services and PodDisruptionBudgets that kapp deployed no longer select by the label of its app
    #[arg(long)]
    pub drop_kapp_selector: bool,

    /// The field manager name under which the cluster records the applied fields [default: gantry]
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,

    #[command(flatten)]
    pub app: AppFlags,

    /// Wait until what a deploy writes is ready; exit code 5 where it is not [default: true with --app, else crds]
    #[arg(long, value_name = "true|crds|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub wait: Option<Wait>,

    /// When an object fails, go on with what does not depend on it
    #[arg(long)]
    pub keep_going: bool,

    /// How long to try again while a webhook does not answer, for example 30s [default: 2m]
    #[arg(long, value_name = "DURATION")]
    pub apply_timeout: Option<String>,

    /// How long to wait, for example 10m [default: 15m]
    #[arg(long, value_name = "DURATION")]
    pub wait_timeout: Option<String>,

    /// How long to wait for one object, for example 5m [default: as long as for all]
    #[arg(long, value_name = "DURATION")]
    pub wait_resource_timeout: Option<String>,

    /// Neither wait for APIServices nor stop because of those whose API does not answer
    #[arg(long)]
    pub ignore_failing_api_services: bool,

    /// Show what the container wrote last that keeps an awaited object from being ready
    #[arg(long)]
    pub logs: bool,

    /// Turn every finding into a warning ("could not check" stays an error)
    #[arg(long)]
    pub warn_only: bool,

    /// Findings that this JSON report of an earlier run has, too, are known and do not count, unless they got worse
    ///
    /// deploy then writes in spite of them. What could not be checked is never known.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// Show what changes in each object, line by line; with =full also the whole of each object that is created
    #[arg(long, value_name = "changes|full", num_args = 0..=1, require_equals = true, default_missing_value = "changes")]
    pub diff: Option<DiffKind>,

    /// Only objects that have all of this, kind=Deployment,ns=web,op=update: the others are neither shown nor checked nor
    /// written
    ///
    /// Keys are kind, name, ns, group and op (create, adopt, replace, update, unchanged, skip); * and ? are wildcards. Repeat the flag for
    /// objects that match either. Not together with --app.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub filter: Vec<Filter>,

    /// Exit with 4 instead of 0 where there are changes to make, or deploy made some
    #[arg(long)]
    pub detailed_exitcode: bool,

    /// The report's format (human, json, sarif, junit, markdown, github, gitlab, html), and a file to write it to; can be repeated [default: human]
    #[arg(short = 'o', long = "output", value_name = "FORMAT[=FILE]")]
    pub output: Vec<OutputSpec>,

    /// Colour on the terminal [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorChoice>,

    /// Show paths and types instead of the values of objects, in every output
    #[arg(long)]
    pub redact: bool,

    /// Print only findings and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print every finding and every object
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The app that a deploy is of.
#[derive(Debug, Args)]
pub struct AppFlags {
    /// The app that the objects belong to: what the manifests no longer have can be pruned
    #[arg(id = "app", short = 'a', long, value_name = "NAME")]
    pub name: Option<String>,

    /// The namespace that keeps the app's record [default: that of -n or the context]
    #[arg(id = "app-namespace", long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Delete members of the app that the manifests no longer have [default: ask on a terminal, else no]
    #[arg(long, value_name = "WHEN")]
    pub prune: Option<PruneFlag>,

    /// Delete at most so many members, or such a share of them [default: 10, or 30% if that is more]
    #[arg(long, value_name = "N|P%")]
    pub prune_max: Option<PruneMax>,

    /// Also delete members that were there before the app
    #[arg(long)]
    pub prune_adopted: bool,

    /// Take over the app of kapp of this name [default: that of --app] as a whole, and end it
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub from_kapp: Option<String>,

    /// Leave the record of the app of kapp, though its objects are no longer kapp's
    #[arg(long, requires = "from_kapp")]
    pub keep_kapp_record: bool,

    /// Take over the app's record from another tool that keeps it as its ApplySet; off a terminal only with --yes
    #[arg(long)]
    pub take_over_app: bool,

    /// Go on although another deploy of the app began less than 15 minutes ago and has not ended
    #[arg(long)]
    pub break_lock: bool,
}

/// Whom to impersonate.
#[derive(Debug, Clone, Args)]
pub struct IdentityArgs {
    /// Make every request as this user or service account (system:serviceaccount:NAMESPACE:NAME)
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,

    /// Make every request as a member of this group, together with --as; can be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    pub groups: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigFlags {
    /// A configuration file, which overrides the project's gantry.yaml; can be repeated, later ones win
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub config_files: Vec<PathBuf>,

    /// Run the programs that the project's gantry.yaml defines as checks; those of -c files need no flag
    #[arg(long)]
    pub allow_exec: bool,
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
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub flow: FlowArgs,
}

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
        DeployArgs { flow, yes: self.yes, dry_run: self.dry_run }
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

#[derive(Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    pub flow: FlowArgs,
}

#[derive(Debug, Args)]
pub struct PermissionsArgs {
    #[command(flatten)]
    pub input: InputArgs,

    /// The app that the objects belong to: to find, delete and keep on record what belongs to it takes more rights
    #[arg(short = 'a', long, value_name = "NAME")]
    pub app: Option<String>,

    /// Also what it takes to take over the app of kapp of this name [default: that of --app]
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", requires = "app")]
    pub from_kapp: Option<String>,

    /// Also what it takes to show the logs of Pods
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

    /// The name of the Roles, ClusterRoles and bindings
    #[arg(long, value_name = "NAME", default_value = "gantry-deploy")]
    pub name: String,
}

#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// The folder: a new one, an empty one, or an earlier snapshot, which is replaced
    #[arg(short = 'o', long = "output", value_name = "DIR", required = true)]
    pub output: PathBuf,

    /// Only the live objects that these manifests name, and the CRDs of their kinds; can be repeated [default: all CRDs]
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

/// Which target, for a command that may do without manifests.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// The target: a cluster, a folder of manifests that represents one, or the manifests of a commit
    #[arg(long, value_name = "kube|dir:PATH|git:REV[:PATH]")]
    pub target: Option<TargetSpec>,

    /// The kubeconfig context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// The namespace for namespaced objects whose manifest has none
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,
}

#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// A package; without it all packages are listed
    pub package: Option<String>,

    /// A channel of the package, or a bundle, or its version
    pub item: Option<String>,

    /// A catalog: a file, a folder or a URL with file-based catalogs; can be repeated, beside those of the configuration
    #[arg(long = "catalog", value_name = "NAME=PATH|URL")]
    pub catalogs: Vec<String>,

    /// Only bundles that OLM v1 supports: with AllNamespaces and without webhooks, one line each
    #[arg(long, conflicts_with_all = ["from", "item"])]
    pub supported: bool,

    /// Where one can go from this version or bundle of the package, over the edges of the channel that is named, or all
    #[arg(long, value_name = "VERSION", requires = "package")]
    pub from: Option<String>,

    /// The shortest way to this version or bundle
    #[arg(long, value_name = "VERSION", requires = "from")]
    pub to: Option<String>,

    /// The output format; json: the blobs of the catalog as they are, one on each line; mermaid, dot: the upgrade graph of
    /// a package or channel as a picture [default: human]
    #[arg(short = 'o', long = "output", value_name = "FORMAT")]
    pub output: Option<CatalogFormat>,

    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub identity: IdentityArgs,

    /// Look into the ClusterCatalogs of this cluster, too; without any catalog, into those of the current context
    #[arg(long, value_name = "kube|dir:PATH")]
    pub target: Option<TargetSpec>,

    /// The kubeconfig context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
}

impl CatalogArgs {
    /// Whether a flag says that a cluster is to be asked.
    pub fn names_cluster(&self) -> bool {
        let IdentityArgs { user, groups } = &self.identity;
        let names = [&self.context, user].iter().any(|flag| flag.is_some());
        names || self.target.is_some() || self.kubeconfig.is_some() || !groups.is_empty()
    }
}

#[derive(Debug, Args)]
pub struct RulesArgs {
    /// A check or a rule
    pub name: Option<String>,

    #[command(flatten)]
    pub config: ConfigFlags,

    /// Colour on the terminal [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorChoice>,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print each value with the layer and the line that it comes from
    Show {
        #[command(flatten)]
        config: ConfigFlags,
        /// Manifests whose Config documents are included; can be repeated
        #[arg(short = 'f', long = "file", value_name = "PATH")]
        files: Vec<String>,
        /// The output format [default: human]
        #[arg(short = 'o', long = "output", value_name = "human|json")]
        output: Option<ListFormat>,
    },
    /// Print the JSON Schema of configuration files
    Schema,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_read_and_where_it_goes_is_said_alike_to_every_command() {
        for command in ["deploy", "check", "diff", "permissions"] {
            let flags = "-f a -f b -c c.yaml --preflight A,B --target dir:x --context y --kubeconfig z -n n";
            let parsed = Cli::try_parse_from(["gantry", command].into_iter().chain(flags.split(' ')));
            let input = match parsed.expect(command).command {
                Command::Deploy(DeployArgs { flow, .. })
                | Command::Check(CheckArgs { flow })
                | Command::Diff(DiffArgs { flow }) => flow.input,
                Command::Permissions(PermissionsArgs { input, .. }) => input,
                other => panic!("{other:?}"),
            };
            assert_eq!((input.files.len(), input.preflight.len(), input.config.config_files.len()), (2, 1, 1));
            assert_eq!((input.context.as_deref(), input.namespace.as_deref()), (Some("y"), Some("n")));
            assert_eq!(input.target, Some(TargetSpec::Dir("x".into())));
            assert_eq!(input.kubeconfig, Some("z".into()));
        }
    }
}
