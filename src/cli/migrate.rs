//! `gantry migrate`.

use std::num::NonZero;

use clap::Args;

use super::common::{ConfigFlags, IdentityArgs, KubeconfigArgs};
use gantry_core::options::{ListFormat, MigrationWriterFlag};

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true).args(["crds", "all", "files"]))]
pub struct MigrateArgs {
    /// The CRDs, such as backups.example.com
    #[arg(value_name = "CRD")]
    pub crds: Vec<String>,

    /// Every CRD that has objects stored at another version than its storage version
    #[arg(long, conflicts_with_all = ["crds", "files"])]
    pub all: bool,

    /// The CRDs of these manifests: a file, a directory (read recursively) or - for standard input; can be repeated
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub files: Vec<String>,

    /// Also objects that status.storedVersions says are stored at the storage version: it can be changed by hand
    #[arg(long, conflicts_with = "all")]
    pub every_object: bool,

    /// Only if this is the storage version
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,

    /// Afterwards leave only the storage version in status.storedVersions, so that other versions can be removed
    #[arg(long)]
    pub prune_stored_versions: bool,

    /// Migrate although values are lost: exactly those that have this digest, which the refusal prints; can be repeated
    #[arg(long, value_name = "DIGEST")]
    pub accept_loss: Vec<String>,

    /// Who writes the objects: gantry, or the server's own migrator (StorageVersionMigration) [default: gantry]
    #[arg(long, value_name = "gantry|server")]
    pub using: Option<MigrationWriterFlag>,

    /// The most writes at the same time [default: 8]
    #[arg(long, value_name = "N")]
    pub parallel: Option<NonZero<usize>>,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask for confirmation; required without a terminal
    #[arg(short = 'y', long)]
    pub yes: bool,

    /// The output format [default: human]
    #[arg(short = 'o', long = "output", value_name = "human|json")]
    pub output: Option<ListFormat>,

    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub identity: IdentityArgs,

    #[command(flatten)]
    pub kubeconfig: KubeconfigArgs,
}
