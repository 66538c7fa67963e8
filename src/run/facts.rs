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
    let fixed = fixed.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    let started = fixed.unwrap_or(host.started);
    let command = show_command(&host.arguments);
    RunFacts { started: Some(format_minute(started)), command: Some(command).filter(|command| !command.is_empty()) }
}

/// The command line as a shell reads it, without values of `--set`, without assignments in `--render`, without a token,
/// and without what URLs have beside their host and path.
fn show_command(arguments: &[String]) -> String {
    let mut shown: Vec<Cow<'_, str>> = Vec::with_capacity(arguments.len());
    let mut before = "";
    for argument in arguments {
        let hidden = match (before, argument.split_once('=')) {
            ("--set", _) => without_value(argument),
            ("--render", _) => without_assignments(argument),
            ("--token", _) => HIDDEN.to_owned(),
            (_, Some(("--set", value))) => format!("--set={}", without_value(value)),
            (_, Some(("--token", _))) => format!("--token={HIDDEN}"),
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
    // The value of an option can be a word of its own.
    let mut is_after_option = false;
    let mut word = |word: &str| {
        let is_value = std::mem::replace(&mut is_after_option, word.starts_with('-') && !word.contains('='));
        match word {
            "{dir}" => word.to_owned(),
            _ if is_value && !word.starts_with('-') => HIDDEN.to_owned(),
            _ if word.contains('=') => without_value(word),
            _ => without_url_secrets(word),
        }
    };
    command.split_whitespace().map(&mut word).collect::<Vec<_>>().join(" ")
}

/// The user, the password and the query of a URL can be secret.
fn without_url_secrets(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    // A digest stands behind the same sign.
    let digest = rest.rfind("@sha256:").filter(|at| !rest[at + 1..].contains('@'));
    let (rest, digest) = rest.split_at(digest.unwrap_or(rest.len()));
    // A password can have a question mark, too, so the query begins behind the first sign.
    let from = rest.find('@').unwrap_or(0);
    let end = rest[from..].find('?').map(|at| from + at);
    let (address, query) = end.map_or((rest, ""), |end| (&rest[..end], HIDDEN));
    let address = address.rfind('@').map_or_else(|| address.to_owned(), |at| format!("{HIDDEN}{}", &address[at..]));
    let sign = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{address}{digest}{sign}{query}")
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
            "https://me:hun?ter2hunter2@host/x",
            "oci://me:hunter2@host/chart@sha256:12",
        ] {
            let command = shown(&["gantry", "check", "--catalog", word]);
            assert!(!command.contains("hunter2") && command.contains("host/"), "{command}");
        }
        let digest = "oci://host/chart@sha256:12";
        assert_eq!(shown(&["gantry", "-f", digest]), format!("gantry -f {digest}"));
        let render = shown(&["gantry", "check", "--render", "env TOKEN=hunter2 kustomize build {dir}"]);
        assert_eq!(render, "gantry check --render 'env TOKEN=[hidden] kustomize build {dir}'");
        assert!(!shown(&["gantry", "--render=env TOKEN=hunter2 x"]).contains("hunter2"));
        assert_eq!(
            shown(&["gantry", "check", "--token", "hunter2", "-f", "a"]),
            "gantry check --token '[hidden]' -f a"
        );
        assert_eq!(shown(&["gantry", "--token=hunter2"]), "gantry '--token=[hidden]'");
        let render = shown(&["gantry", "--render", "tool --token hunter2 {dir}"]);
        assert_eq!(render, "gantry --render 'tool --token [hidden] {dir}'");
    }
}
