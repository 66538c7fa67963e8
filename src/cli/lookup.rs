//! Commands that only look things up: catalogs, rules, configuration.

use clap::{Args, Subcommand};

use super::common::{ConfigFlags, IdentityArgs, KubeconfigArgs, TargetArgs};
use gantry_core::options::{CatalogDiffFormat, CatalogFormat, ColorChoice, ListFormat, TargetSpec};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct CatalogArgs {
    #[command(subcommand)]
    pub command: Option<CatalogCommand>,

    /// A package; without it all packages are listed
    pub package: Option<String>,

    /// A channel of the package, or a bundle, or its version
    pub item: Option<String>,

    /// A catalog: a file, a folder or a URL with file-based catalogs; can be repeated, in addition to those of the
    /// configuration
    #[arg(long = "catalog", value_name = "NAME=PATH|URL")]
    pub catalogs: Vec<String>,

    /// Only bundles that OLM v1 installs, one line each
    #[arg(long, conflicts_with_all = ["from", "item"])]
    pub supported: bool,

    /// The release of OLM v1 that --supported and --version are about, such as v1.10; 4.18 for OpenShift 4.18 [default:
    /// the newest]
    #[arg(long, value_name = "RELEASE")]
    pub olm: Option<String>,

    /// The packages with bundles that provide this API, which is a group and a kind, or only a group
    #[arg(long, value_name = "GROUP[/KIND]", conflicts_with_all = ["package", "supported", "requires"])]
    pub provides: Option<String>,

    /// The packages with bundles that require this package, or an API that it provides
    #[arg(long, value_name = "PACKAGE", conflicts_with_all = ["package", "supported"])]
    pub requires: Option<String>,

    /// What OLM v1 installs for this version or range of versions of the package, in the given channel or in all
    #[arg(long, value_name = "RANGE", requires = "package", conflicts_with_all = ["supported", "to"])]
    pub version: Option<String>,

    /// How to get the content of a bundle as a directory, for -f of other commands; the version is the item
    #[arg(long, requires = "item", conflicts_with_all = ["supported", "from", "version"])]
    pub bundle: bool,

    /// The possible upgrades from this version or bundle of the package, in the given channel or in all
    #[arg(long, value_name = "VERSION", requires = "package")]
    pub from: Option<String>,

    /// The shortest upgrade path to this version or bundle
    #[arg(long, value_name = "VERSION", requires = "from")]
    pub to: Option<String>,

    /// The output format; json: the blobs of the catalog as they are, one on each line; mermaid, dot: the upgrade graph
    /// of a package or channel as a picture [default: human]
    #[arg(short = 'o', long = "output", value_name = "FORMAT")]
    pub output: Option<CatalogFormat>,

    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub identity: IdentityArgs,

    /// Also read the ClusterCatalogs of this cluster; without any catalog, those of the current context are read
    #[arg(long, value_name = "kube|dir:PATH")]
    pub target: Option<TargetSpec>,

    #[command(flatten)]
    pub kubeconfig: KubeconfigArgs,
}

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Compare two releases of a catalog, and show which ClusterExtensions and Subscriptions that affects
    Diff(CatalogDiffArgs),
}

#[derive(Debug, Args)]
pub struct CatalogDiffArgs {
    /// The old catalog: a file, a folder or a URL with file-based catalogs, the name of a catalog of the configuration,
    /// or of a ClusterCatalog of the target
    pub old: String,

    /// The new catalog
    pub new: String,

    /// Only this package
    pub package: Option<String>,

    /// Manifests with the ClusterExtensions and Subscriptions to look at; can be repeated [default: those of the
    /// target, if a flag names one]
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub files: Vec<String>,

    /// The name of the catalog, for ClusterExtensions that select catalogs and for Subscriptions; if neither catalog
    /// has a name, all of them may use it
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Exit code 4 if the catalogs differ
    #[arg(long)]
    pub detailed_exitcode: bool,

    /// The output format [default: human]
    #[arg(short = 'o', long = "output", value_name = "FORMAT")]
    pub output: Option<CatalogDiffFormat>,

    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub identity: IdentityArgs,

    #[command(flatten)]
    pub target: TargetArgs,
}

impl CatalogDiffArgs {
    /// Whether a flag names a target.
    pub fn names_target(&self) -> bool {
        let IdentityArgs { user, groups } = &self.identity;
        let TargetArgs { target, kubeconfig, .. } = &self.target;
        !target.is_empty() || kubeconfig.is_given() || user.is_some() || !groups.is_empty()
    }
}

impl CatalogArgs {
    /// Whether a flag names a cluster.
    pub fn names_cluster(&self) -> bool {
        let IdentityArgs { user, groups } = &self.identity;
        self.target.is_some() || self.kubeconfig.is_given() || user.is_some() || !groups.is_empty()
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
