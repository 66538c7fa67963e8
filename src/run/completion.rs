//! Completes the command line: commands, flags, and values, which include what the kubeconfig and the cluster have.
//!
//! The script of a shell runs gantry for each completion, with its own name in [`VARIABLE`]. kubectl runs the hidden
//! command `complete-words` of the plugin. Whatever cannot be read (no cluster, no permission, a broken configuration)
//! is left out: a completion shows no errors.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};
use clap_complete::env::{CompleteEnv, Shells};
use serde_json::Value;

use super::apps;
use super::host::Host;
use super::prepare::{loader, open_target};
use crate::cli::{Cli, ClusterArgs, ConfigFlags, IdentityArgs, KubeconfigArgs};
use gantry_cluster::{Connection, ListRequest, Target, kube};
use gantry_core::options::OutputSpec;
use gantry_core::resource::Resource;
use gantry_preflight::{explain, registry};

/// The variable in which the script of a shell names it.
pub const VARIABLE: &str = "_GANTRY_COMPLETE";

/// How long the cluster may take. Afterwards the user has typed the rest.
const PATIENCE: Duration = Duration::from_secs(3);

const PAGE: u32 = 500;

/// The command whose argument is a check or a rule.
const RULES: &str = "rules";

/// The script that makes a shell ask gantry.
pub fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // A `Vec` accepts everything.
        let _ = completer.write_registration(VARIABLE, "gantry", "gantry", "gantry", &mut script);
    }
    String::from_utf8_lossy(&script).into_owned()
}

/// Answers the script of a shell, on standard output.
pub async fn answer_shell(arguments: Vec<OsString>, host: &mut Host) -> io::Result<()> {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let words = words.iter().position(|word| word == "--").map_or(&[][..], |at| &words[at + 1..]);
    let index = host.environment.get("_CLAP_COMPLETE_INDEX").and_then(|index| index.parse().ok());
    let end = index.unwrap_or(words.len().saturating_sub(1));
    let command = with_values(words.get(..=end).unwrap_or(words), host).await;
    let environment = CompleteEnv::with_factory(|| command.clone()).var(VARIABLE);
    environment.try_complete(arguments, Some(&host.working_directory)).map(drop).map_err(io::Error::other)
}

/// The completions of the last word, one on each line, then a directive for the shell: with `:0` it completes file
/// names, too, with `:4` it does not. <https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/>
pub async fn words(words: &[String], host: &mut Host) -> String {
    let mut command = with_values(words, host).await;
    let arguments: Vec<OsString> =
        std::iter::once("gantry").chain(words.iter().map(String::as_str)).map(Into::into).collect();
    let index = arguments.len() - 1;
    // Without a folder, it leaves the names of files to the shell.
    let found = complete(&mut command, arguments, index, None).unwrap_or_default();
    let mut lines: Vec<String> = found.iter().map(|found| found.get_value().to_string_lossy().into_owned()).collect();
    lines.sort();
    lines.dedup();
    let directive = if lines.is_empty() { ":0" } else { ":4" };
    lines.into_iter().chain([directive.to_owned()]).map(|line| line + "\n").collect()
}

/// Values, each with what a shell shows beside it.
type DescribedValues = Vec<(String, String)>;

/// The values of arguments that the command line does not list itself.
#[derive(Default)]
struct KnownValues {
    checks: DescribedValues,
    checks_and_rules: DescribedValues,
    contexts: DescribedValues,
    namespaces: DescribedValues,
    apps: DescribedValues,
}

/// The command with the values that the last word can have.
async fn with_values(words: &[String], host: &mut Host) -> Command {
    let mut values = KnownValues::default();
    match named_flag(words) {
        Some("preflight") => values.checks = checks(host),
        Some("context") => values.contexts = contexts(words).await,
        Some("namespace" | "app-namespace") => values.namespaces = of_cluster(words, host, Wanted::Namespaces).await,
        Some("app") => values.apps = of_cluster(words, host, Wanted::Apps).await,
        _ if words.iter().any(|word| word == RULES) => {
            values.checks_and_rules = checks(host).into_iter().chain(explain::rules()).collect();
        }
        _ => {}
    }
    completing(Cli::command(), &values)
}

/// All checks, with those of the project.
fn checks(host: &Host) -> DescribedValues {
    let own = loader(&ConfigFlags::default(), host).load([], &registry::known());
    explain::checks(&own.map(|loaded| loaded.settings.custom_checks).unwrap_or_default())
}

/// The flag whose value the last word is.
fn named_flag(words: &[String]) -> Option<&str> {
    let (last, before) = words.split_last()?;
    if let Some((flag, _)) = last.strip_prefix("--").and_then(|flag| flag.split_once('=')) {
        return Some(flag);
    }
    match before.last()?.as_str() {
        "-n" => Some("namespace"),
        "-a" => Some("app"),
        flag => flag.strip_prefix("--"),
    }
}

/// Adds the values to the arguments of a command and its subcommands.
fn completing(command: Command, values: &KnownValues) -> Command {
    let of_rules = command.get_name() == RULES;
    let add = |arg: Arg| {
        let found = match arg.get_long() {
            Some("preflight") => values.checks.clone(),
            Some("context") => values.contexts.clone(),
            Some("namespace" | "app-namespace") => values.namespaces.clone(),
            Some("app") => values.apps.clone(),
            None if of_rules && arg.is_positional() => values.checks_and_rules.clone(),
            Some(_) if arg.get_possible_values().is_empty() => choices(&arg),
            _ => return arg,
        };
        if found.is_empty() {
            return arg;
        }
        arg.add(ArgValueCompleter::new(move |current: &OsStr| starting_with(current, &found)))
    };
    command.mut_args(add).mut_subcommands(|subcommand| completing(subcommand, values))
}

/// The values that a flag without a list of its own names in its usage: `error|warning`, `kube|dir:PATH`.
fn choices(arg: &Arg) -> DescribedValues {
    let [name] = arg.get_value_names().unwrap_or_default() else { return Vec::new() };
    if name.as_str() == OutputSpec::VALUE_NAME {
        return OutputSpec::formats().into_iter().map(|format| (format, String::new())).collect();
    }
    if !name.contains('|') {
        return Vec::new();
    }
    let choice = |choice: &str| choice.split_inclusive(':').next().unwrap_or_default().to_owned();
    let is_word = |choice: &String| choice.starts_with(|first: char| first.is_ascii_lowercase());
    name.split('|').map(choice).filter(is_word).map(|choice| (choice, String::new())).collect()
}

/// The values that continue the last item of a list with commas.
fn starting_with(current: &OsStr, values: &[(String, String)]) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let (before, item) =
        current.rsplit_once(',').map_or(("", current), |(before, item)| (&current[..=before.len()], item));
    let candidate = |(value, about): &(String, String)| {
        let about = (!about.is_empty()).then(|| StyledStr::from(about));
        CompletionCandidate::new(format!("{before}{value}")).help(about)
    };
    values.iter().filter(|(value, _)| value.starts_with(item)).map(candidate).collect()
}

/// The value of a flag among the words.
fn value_of(words: &[String], flag: &str, short: Option<&str>) -> Option<String> {
    let at = |word: &String| word == flag || Some(word.as_str()) == short;
    let apart = words.iter().position(at).and_then(|at| words.get(at + 1)).cloned();
    apart.or_else(|| words.iter().find_map(|word| Some(word.strip_prefix(flag)?.strip_prefix('=')?.to_owned())))
}

async fn contexts(words: &[String]) -> DescribedValues {
    let kubeconfig = value_of(words, "--kubeconfig", None).map(PathBuf::from);
    let connection = Connection { kubeconfig, ..Connection::default() };
    let Ok(read) = kube::kubeconfig(&connection).await else { return Vec::new() };
    named(read.contexts().map(str::to_owned))
}

/// What to ask the cluster for.
#[derive(Clone, Copy)]
enum Wanted {
    Namespaces,
    Apps,
}

async fn of_cluster(words: &[String], host: &mut Host, wanted: Wanted) -> DescribedValues {
    // The last word is not complete.
    let before = &words[..words.len() - 1];
    let args = ClusterArgs {
        config: ConfigFlags::default(),
        identity: IdentityArgs::default(),
        kubeconfig: KubeconfigArgs {
            file: value_of(before, "--kubeconfig", None).map(PathBuf::from),
            context: value_of(before, "--context", None),
            cluster: value_of(before, "--cluster", None),
            user: value_of(before, "--user", None),
            server: value_of(before, "--server", None),
            token: value_of(before, "--token", None),
        },
        namespace: value_of(before, "--namespace", Some("-n")),
        app_namespace: value_of(before, "--app-namespace", None),
    };
    let asking = async {
        let settings = apps::load(&args, host).ok()?.settings;
        let target = open_target(&settings).await.ok()?;
        let names = match wanted {
            Wanted::Namespaces => namespaces(&target).await?,
            Wanted::Apps => {
                let apps = apps::list_apps(&target, args.of_record().or(settings.namespace.as_deref())).await.ok()?;
                apps.into_iter().map(|(app, _)| app.name).collect()
            }
        };
        Some(named(names))
    };
    tokio::time::timeout(PATIENCE, asking).await.ok().flatten().unwrap_or_default()
}

async fn namespaces(target: &Target) -> Option<Vec<String>> {
    let namespaces = Resource::built_in("", "Namespace", "namespaces", false);
    let request = ListRequest { metadata_only: true, ..ListRequest::new(&namespaces, PAGE) };
    let read = |found: &mut Vec<String>, json: &str| {
        let object: Value = serde_json::from_str(json).unwrap_or_default();
        found.extend(object["metadata"]["name"].as_str().map(str::to_owned));
    };
    target.list(&request).gather(read).await.ok()
}

/// Values that are safe to print: a name in a kubeconfig can be anything.
fn named(names: impl IntoIterator<Item = String>) -> DescribedValues {
    let is_printable = |name: &String| !name.contains(char::is_control);
    names.into_iter().filter(is_printable).map(|name| (name, String::new())).collect()
}
