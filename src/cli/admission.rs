//! `gantry admission`: the webhook.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::{ConfigFlags, KubeconfigArgs, TargetArgs};
use super::flow::ChartArgs;
use gantry_core::options::{AdmissionMode, ListFormat, PresetFlag};

#[derive(Debug, Args)]
pub struct AdmissionArgs {
    #[command(subcommand)]
    pub command: AdmissionCommand,
}

#[derive(Debug, Subcommand)]
pub enum AdmissionCommand {
    /// Serve the webhook that judges changes of CRDs
    Serve(AdmissionServeArgs),
    /// Show what the webhook would answer to an apply of these CRDs; exit code 3 if it would deny one
    Test(AdmissionTestArgs),
    /// Print everything to install the webhook, as manifests ready to apply
    Manifests(AdmissionManifestsArgs),
    /// Print a ValidatingAdmissionPolicy that denies the worst changes of CRDs without a server
    Policy {
        /// What happens to a change that it finds
        #[arg(long, value_name = "deny|warn|audit", default_value = "deny", hide_possible_values = true)]
        mode: AdmissionMode,
    },
}

#[derive(Debug, Args)]
pub struct AdmissionServeArgs {
    /// The address and port to serve HTTPS on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:9443")]
    pub listen: SocketAddr,

    /// The certificate chain, as PEM; it is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", required_unless_present = "self_signed")]
    pub tls_cert: Option<PathBuf>,

    /// The private key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Make and rotate the certificate, keep it in the Secret gantry-admission-tls, and let the API server trust it
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"])]
    pub self_signed: bool,

    /// Another name or address of the server for --self-signed; can be repeated
    #[arg(long, value_name = "NAME", requires = "self_signed")]
    pub tls_name: Vec<String>,

    /// The namespace of the webhook, for --self-signed [default: that of the kubeconfig or Pod]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,

    #[command(flatten)]
    pub kubeconfig: KubeconfigArgs,

    #[command(flatten)]
    pub config: ConfigFlags,
}

#[derive(Debug, Args)]
pub struct AdmissionTestArgs {
    /// Manifests: a file, a directory (read recursively) or - for standard input; can be repeated
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub files: Vec<String>,

    #[command(flatten)]
    pub chart: ChartArgs,

    /// Whose verdict about the upgrade of a CRD counts, whatever the configuration says [default: evidence]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<PresetFlag>,

    #[command(flatten)]
    pub config: ConfigFlags,

    #[command(flatten)]
    pub target: TargetArgs,

    /// The output format [default: human]
    #[arg(short = 'o', long = "output", value_name = "human|json")]
    pub output: Option<ListFormat>,
}

#[derive(Debug, Args)]
pub struct AdmissionManifestsArgs {
    /// What happens to a change that is not safe
    #[arg(long, value_name = "deny|warn|audit", default_value = "warn", hide_possible_values = true)]
    pub mode: AdmissionMode,

    /// Of a server outside of the cluster, such as https://10.0.0.1:9443/validate: only what the cluster needs for it
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// The namespace of the webhook
    #[arg(short = 'n', long, value_name = "NAME", default_value = "gantry-admission")]
    pub namespace: String,

    /// The container image
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,

    /// The webhook makes its own certificate; this is the default without --url
    #[arg(long)]
    pub self_signed: bool,

    /// cert-manager makes the certificate
    #[arg(long, conflicts_with = "self_signed")]
    pub cert_manager: bool,
}
