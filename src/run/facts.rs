//! When and how a report was made, for formats that say it.
//!
//! Reports are kept and published, so words of the command line that may be secret are hidden. A build that wants the
//! same bytes from the same input sets `SOURCE_DATE_EPOCH`: <https://reproducible-builds.org/specs/source-date-epoch/>.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use super::host::Host;
use gantry_core::date::format_minute;
use gantry_core::text;
use gantry_report::RunFacts;

const EPOCH: &str = "SOURCE_DATE_EPOCH";
const HIDDEN: &str = "[hidden]";

/// What is known of the run.
pub fn describe_run(host: &Host) -> RunFacts {
    let fixed = host.environment.get(EPOCH).and_then(|seconds| seconds.trim().parse().ok());
    let started = fixed.map_or(host.started, |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let command = show_command(&host.arguments);
    RunFacts { started: Some(format_minute(started)), command: Some(command).filter(|command| !command.is_empty()) }
}

/// The command line as a shell reads it, without values of `--set`, without assignments in `--render`, and without what
/// URLs have beside their host and path.
fn show_command(arguments: &[String]) -> String {
    let mut shown: Vec<Cow<'_, str>> = Vec::with_capacity(arguments.len());
    let mut before = "";
    for argument in arguments {
        let hidden = match (before, argument.split_once('=')) {
            ("--set", _) => without_value(argument),
            ("--render", _) => without_assignments(argument),
            (_, Some(("--set", value))) => format!("--set={}", without_value(value)),
            (_, Some(("--render", value))) => format!("--render={}", without_assignments(value)),
            _ => without_url_secrets(argument),
        };
        shown.push(text::shell_word(&hidden).into_owned().into());
        before = argument;
    }
    shown.join(" ")
}

/// `KEY=[hidden]`
fn without_value(assignment: &str) -> String {
    let key = assignment.split('=').next().unwrap_or_default();
    format!("{key}={HIDDEN}")
}

fn without_assignments(command: &str) -> String {
    let word = |word: &str| if word.contains('=') { without_value(word) } else { without_url_secrets(word) };
    command.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// The user, the password and the query of a URL can be secret.
fn without_url_secrets(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let (address, query) = rest.split_once('?').map_or((rest, ""), |(address, _)| (address, HIDDEN));
    // A digest stands behind the same sign.
    let user = address.rfind('@').filter(|at| !address[*at..].starts_with("@sha256:"));
    let address = user.map_or_else(|| address.to_owned(), |at| format!("{HIDDEN}{}", &address[at..]));
    let sign = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{address}{sign}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &[&str]) -> String {
        show_command(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_can_be_run_again() {
        let words = ["gantry", "check", "-f", "my files", "--target", "git:main:deploy", "--context", "prod-*"];
        assert_eq!(shown(&words), "gantry check -f 'my files' --target git:main:deploy --context 'prod-*'");
    }

    #[test]
    fn what_may_be_secret_is_hidden() {
        let words =
            ["gantry", "check", "--set", "a=hunter2,b=hunter2", "--set=c=hunter2", "--set", "hunter2=", "-f", "x"];
        assert_eq!(shown(&words), "gantry check --set 'a=[hidden]' '--set=c=[hidden]' --set 'hunter2=[hidden]' -f x");
        for word in [
            "oci://me:hunter2@host/chart:1",
            "https://me:hun/hunter2@host/x",
            "c=https://hunter2@host/x?a=1",
            "https://host/x?token=hunter2",
            "https://me:hunter2@host/x?a=b@c",
        ] {
            let command = shown(&["gantry", "check", "--catalog", word]);
            assert!(!command.contains("hunter2") && command.contains("host/"), "{command}");
        }
        let digest = "oci://host/chart@sha256:12";
        assert_eq!(shown(&["gantry", "-f", digest]), format!("gantry -f {digest}"));
        let render = shown(&["gantry", "check", "--render", "env TOKEN=hunter2 kustomize build {dir}"]);
        assert_eq!(render, "gantry check --render 'env TOKEN=[hidden] kustomize build {dir}'");
        assert!(!shown(&["gantry", "--render=env TOKEN=hunter2 x"]).contains("hunter2"));
    }
}
