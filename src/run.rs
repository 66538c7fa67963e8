//! The flow, from parsed arguments to an exit code.

mod admission;
mod again;
mod app;
mod apps;
mod as_helm;
mod baseline;
mod before;
#[cfg(feature = "olm")]
mod catalog;
mod completion;
mod diffs;
mod facts;
mod file;
mod fleet;
mod flow;
mod from_kapp;
mod history;
mod host;
mod interrupt;
mod manual_pages;
mod mcp;
mod merge;
mod migrate;
mod next_command;
mod output;
mod own_report;
mod permissions;
mod plan_and_check;
mod prepare;
mod rename;
mod reports;
mod snapshot;
mod verdict;
mod wait_log;
mod write;

use std::io::Write;

use self::apps::Consent;
use self::prepare::loader;
use crate::cli::{AppsCommand, Cli, Command, ConfigCommand, ConfigFlags, ReportCommand, RulesArgs};
pub use completion::{VARIABLE as COMPLETION_VARIABLE, answer_shell};
use gantry_core::manifest;
use gantry_core::options::ListFormat;
use gantry_core::problem::{Error, Result};
use gantry_deploy::config;
use gantry_preflight::{explain, registry};
use gantry_report::{ErrorEntry, json};
pub use host::{Exit, Host, WriteProgress};

/// Runs one command to its end.
pub async fn run(cli: Cli, host: &mut Host) -> Exit {
    host.guard_stderr();
    let answer = match &cli.command {
        Command::Deploy(args) => return Box::pin(flow::run(&args.flow, flow::Goal::Deploy(args), host)).await,
        Command::Check(args) if args.as_admission => return Box::pin(admission::check(&args.flow, host)).await,
        Command::Check(args) => {
            let goal = flow::Goal::Check(flow::Actor::named(args.as_helm));
            return match args.watch {
                true => Box::pin(again::check_on_change(&args.flow, goal, host)).await,
                false => Box::pin(flow::run(&args.flow, goal, host)).await,
            };
        }
        Command::Diff(args) => {
            return Box::pin(flow::run(&args.flow, flow::Goal::Diff(args.to, flow::Actor::named(args.as_helm)), host))
                .await;
        }
        Command::Delete(args) => return Box::pin(flow::delete(args, host)).await,
        Command::Apps(args) => match &args.command {
            None => Box::pin(apps::list(args, host)).await,
            Some(AppsCommand::Forget { cluster, name, break_lock, yes }) => {
                let consent = Consent { breaks_lock: *break_lock, confirmed: *yes };
                Box::pin(apps::forget_app(cluster, name, consent, host)).await
            }
            Some(AppsCommand::Rename { cluster, name, to, break_lock, yes }) => {
                let consent = Consent { breaks_lock: *break_lock, confirmed: *yes };
                Box::pin(rename::rename(cluster, name, to, consent, host)).await
            }
        },
        Command::Inspect(args) => Box::pin(apps::inspect(args, host)).await,
        Command::History(args) => Box::pin(history::list(args, host)).await,
        Command::Rollback(args) => return Box::pin(flow::rollback(args, host)).await,
        Command::Permissions(args) => Box::pin(permissions::run(args, host)).await,
        Command::Snapshot(args) => Box::pin(snapshot::run(args, host)).await,
        Command::Migrate(args) => return Box::pin(migrate::run(args, host)).await,
        Command::Admission(args) => return Box::pin(admission::run(args, host)).await,
        #[cfg(feature = "olm")]
        Command::Catalog(args) => return Box::pin(catalog::run(args, host)).await,
        Command::Report(args) => match &args.command {
            ReportCommand::Merge(args) => return merge::run(args, host),
        },
        Command::Completions { shell } => Ok(completion::script(*shell)),
        Command::Man { folder } => manual_pages::man(folder, host),
        Command::CompleteWords { words } => Ok(Box::pin(completion::words(words, host)).await),
        Command::Mcp => mcp::serve(host).await,
        Command::Rules(args) => rules(args, host),
        Command::Config(args) => match &args.command {
            ConfigCommand::Schema => Ok(pretty(&config::schema(&registry::known()))),
            ConfigCommand::Show { config, files, output } => show(config, files, *output, host),
        },
    };
    match answer {
        Ok(text) => host.say(&text),
        Err(error) => {
            if prints_json(&cli.command) {
                let errors: Vec<ErrorEntry> = error.problems().iter().map(ErrorEntry::from).collect();
                let said = host.say(&pretty(&serde_json::json!({"errors": errors})));
                if said != Exit::Success {
                    return said;
                }
            }
            host.complain(&error)
        }
    }
}

/// Whether the command, which has no report, prints JSON: then its errors are a document, too. The list of apps has those
/// of single apps.
fn prints_json(command: &Command) -> bool {
    let output = match command {
        Command::Inspect(args) => args.output,
        Command::History(args) => args.output,
        _ => None,
    };
    output == Some(ListFormat::Json)
}

/// All checks and rules, including those that the configuration defines; or one of them.
fn rules(args: &RulesArgs, host: &mut Host) -> Result<String> {
    let of_gantry = args.name.as_deref().and_then(explain::explain);
    if let Some(text) = of_gantry {
        return Ok(text);
    }
    let loaded = loader(&args.config, host).load([], &registry::known());
    let own = match (loaded, &args.name) {
        (Ok(loaded), _) => loaded.settings.custom_checks,
        // The built-in checks can be listed even if the project's file has errors.
        (Err(_), None) if args.config.config_files.is_empty() => {
            let _ = writeln!(
                host.stderr,
                "notice: your own checks are not listed, because the configuration has errors: see gantry config show"
            );
            Vec::new()
        }
        (Err(error), _) => return Err(error),
    };
    match &args.name {
        None => Ok(explain::list(&own)),
        Some(name) => explain::explain_own(name, &own),
    }
}

/// The merged configuration with the origin of each value.
fn show(flags: &ConfigFlags, files: &[String], output: Option<ListFormat>, host: &mut Host) -> Result<String> {
    let loader = loader(flags, host);
    let manifests = match files {
        [] => manifest::LoadedManifests::default(),
        files => manifest::load(files, &mut host.stdin).map_err(Error::Failed)?,
    };
    let origins = manifests.configs.iter().map(|document| &document.origin);
    let loaded = loader.load(origins, &registry::known())?;
    host.print_notices(&loaded.notices);
    Ok(match output.unwrap_or(ListFormat::Human) {
        ListFormat::Human => loaded.settings.show(),
        ListFormat::Json => pretty(&serde_json::json!(loaded.settings.list())),
    })
}

fn pretty(value: &serde_json::Value) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail, and JSON is UTF-8.
    let _ = json::write_value(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
