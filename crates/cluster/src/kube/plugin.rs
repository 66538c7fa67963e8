//! A credential plugin: a program named in the kubeconfig that prints the user's credentials.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::config::{AuthInfo, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use process_wrap::tokio::CommandWrap;
use serde::Deserialize;
use serde_json::json;

use super::errors::{io_words, words, words_without_secrets};
use super::kubeconfig::ProcessEnvironment;
use gantry_core::problem::Problem;
use gantry_core::program::{self, ProgramError};

/// The maximum size of the output. It contains a token, or a certificate with its key.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of characters shown of standard error, counted from its end.
const MAX_STDERR_CHARS: usize = 300;
/// The limit for a plugin that does not prompt, unless `Connection` sets another.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The limit for a plugin that can prompt the user, who can also interrupt it.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// A plugin, ready to run.
#[derive(Debug)]
pub struct Plugin {
    exec: ExecConfig,
    /// Whether it can prompt the user on the terminal.
    is_interactive: bool,
    /// The information about the cluster that it receives.
    information: String,
    timeout: Duration,
    /// The kubeconfig's name for the user.
    user: Option<String>,
}

/// The output of a plugin.
#[derive(Debug, Default)]
pub struct Credential {
    pub token: Option<String>,
    pub expires: Option<Timestamp>,
    /// A certificate and its key, as PEM.
    pub certificate: Option<(String, String)>,
}

#[derive(Deserialize)]
struct ExecCredential {
    status: ExecCredentialStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredentialStatus {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

const LOG_IN: &str = "log in again, and run the plugin manually";

impl Plugin {
    /// Prepares a plugin for the current environment: a plugin that could prompt would read gantry's standard input,
    /// manifests included.
    pub fn prepare(
        auth_info: &AuthInfo,
        cluster: &ExecAuthCluster,
        user: Option<&str>,
        surroundings: &ProcessEnvironment,
        timeout: Option<Duration>,
    ) -> Result<Option<Self>, Problem> {
        let Some(exec) = auth_info.exec.clone() else { return Ok(None) };
        let of = user.map_or_else(String::new, |user| format!(" of user {:?}", words(user)));
        let Some(command) = &exec.command else {
            let message = format!("the kubeconfig sets no command for the credential plugin{of}");
            return Err(Problem::new(message).help("set exec.command of that user"));
        };
        if !surroundings.has_terminal && exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            let message = format!("the credential plugin {:?}{of} needs a terminal", words(command));
            return Err(Problem::new(message).help("run it once on a terminal, or use credentials that need no input"));
        }
        let is_interactive = surroundings.has_terminal && exec.interactive_mode != Some(ExecInteractiveMode::Never);
        let mut spec = json!({"interactive": is_interactive});
        if exec.provide_cluster_info {
            spec["cluster"] = json!(cluster);
        }
        let information = json!({"kind": "ExecCredential", "apiVersion": exec.api_version, "spec": spec}).to_string();
        let timeout = if is_interactive { LOGIN_TIMEOUT } else { timeout.unwrap_or(TIMEOUT) };
        Ok(Some(Plugin { exec, is_interactive, information, timeout, user: user.map(str::to_owned) }))
    }

    /// Runs the plugin and returns its credentials.
    pub async fn ask(&self) -> Result<Credential, Problem> {
        let (answer, said) = program::run(self.command(), None, self.timeout, MAX_BYTES).await;
        let answer = answer.map_err(|failure| self.failed(&failure, &said))?;
        read(&answer)
            .ok_or_else(|| Problem::new(format!("{} did not print a valid ExecCredential", self.name())).help(LOG_IN))
    }

    fn command(&self) -> CommandWrap {
        let program = OsString::from(self.exec.command.as_deref().unwrap_or_default());
        let mut command = CommandWrap::with_new(program, |command| {
            command.args(self.exec.args.iter().flatten());
            let variables = self.exec.env.iter().flatten();
            command.envs(variables.filter_map(|entry| Some((entry.get("name")?, entry.get("value")?))));
            command.env("KUBERNETES_EXEC_INFO", &self.information).stdout(Stdio::piped());
            match self.is_interactive {
                true => command.stdin(Stdio::inherit()).stderr(Stdio::inherit()),
                false => command.stdin(Stdio::null()).stderr(Stdio::piped()),
            };
        });
        // A process in another process group cannot read from the terminal.
        if !self.is_interactive {
            program::as_group(&mut command);
        }
        command
    }

    /// `the credential plugin "aws" of user "dev"`
    fn name(&self) -> String {
        let of = self.user.as_ref().map_or_else(String::new, |user| format!(" of user {:?}", words(user)));
        format!("the credential plugin {:?}{of}", words(self.exec.command.as_deref().unwrap_or_default()))
    }

    /// The problem if the plugin returned no token when one was to be renewed.
    pub fn gave_no_new_token(&self) -> Problem {
        Problem::new(format!("{} returned no new token when the old one expired", self.name())).help(LOG_IN)
    }

    fn failed(&self, failure: &ProgramError, said: &str) -> Problem {
        let name = self.name();
        match failure {
            ProgramError::NotStarted(error) if error.kind() == io::ErrorKind::NotFound => {
                let hint = self.exec.install_hint.as_deref().map(words);
                Problem::new(format!("{name} is not installed"))
                    .help(hint.unwrap_or_else(|| "install it, or add it to PATH".to_owned()))
            }
            ProgramError::NotStarted(error) => Problem::new(format!("{name} cannot be started: {}", io_words(error)))
                .help("check the command in the kubeconfig, and run it manually"),
            ProgramError::TimedOut => {
                let seconds = self.timeout.as_secs_f32();
                Problem::new(format!("{name} did not finish within {seconds} s and was stopped"))
                    .help("run it manually, or raise timeouts.credentials")
            }
            ProgramError::TooLong => {
                let mebibytes = MAX_BYTES >> 20;
                Problem::new(format!("{name} printed more than {mebibytes} MiB and was stopped"))
                    .help("run it manually: it must print one ExecCredential")
            }
            ProgramError::Ended(status) => {
                // The reason for the failure comes last.
                let start = said.char_indices().rev().nth(MAX_STDERR_CHARS - 1).map_or(0, |(start, _)| start);
                let said = words_without_secrets(&said[start..]);
                let colon = if said.is_empty() { "" } else { ": " };
                Problem::new(format!("{name} failed ({status}){colon}{said}")).help(LOG_IN)
            }
            ProgramError::Broken(error) => {
                Problem::new(format!("cannot read the output of {name}: {}", io_words(error)))
                    .help("run the command again")
            }
        }
    }
}

/// Parses the output as YAML, which includes JSON, like client-go.
fn read(answer: &[u8]) -> Option<Credential> {
    let ExecCredential { status } = serde_yaml::from_slice(answer).ok()?;
    let expires = match status.expiration_timestamp {
        Some(text) => Some(text.parse().ok()?),
        None => None,
    };
    let certificate = status.client_certificate_data.zip(status.client_key_data);
    Some(Credential { token: status.token.filter(|token| !token.is_empty()), expires, certificate })
}
