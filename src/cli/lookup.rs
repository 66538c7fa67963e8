//! Commands that only look things up: catalogs, rules, configuration.

use clap::{Args, Subcommand};

use super::common::{ConfigFlags, IdentityArgs, KubeconfigArgs};
use gantry_core::options::{CatalogFormat, ColorChoice, ListFormat, TargetSpec};

#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// A package; without it all packages are listed
    pub package: Option<String>,

    /// A channel of the package, or a bundle, or its version
    pub item: Option<String>,

    /// A catalog: a file, a folder or a URL with file-based catalogs; can be repeated, in addition to those of the
    /// configuration
    #[arg(long = "catalog", value_name = "NAME=PATH|URL")]
    pub catalogs: Vec<String>,

    /// Only bundles that OLM v1 supports: with AllNamespaces and without webhooks, one line each
    #[arg(long, conflicts_with_all = ["from", "item"])]
    pub supported: bool,

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

impl CatalogArgs {
    /// Whether a flag names a cluster.
    pub fn names_cluster(&self) -> bool {
        let IdentityArgs { user, groups } = &self.identity;
        let KubeconfigArgs { context, file } = &self.kubeconfig;
        self.target.is_some() || context.is_some() || file.is_some() || user.is_some() || !groups.is_empty()
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
