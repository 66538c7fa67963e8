//! The command line: only parsing, no I/O. `gantry::run` turns these arguments into a run.

mod admission;
mod app;
mod common;
mod flow;
mod lookup;
mod migrate;
mod report;
mod tips;
mod undo;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use self::admission::*;
pub use self::app::*;
pub use self::common::*;
pub use self::flow::*;
pub use self::lookup::*;
pub use self::migrate::*;
pub use self::report::*;
pub use self::tips::correct;
pub use self::undo::*;

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
  3  blocked by a check, a field conflict, or a refusal known in advance; nothing was written
  4  only with --detailed-exitcode: check and diff found changes to make, deploy made changes
  5  written, but an object was not ready, or a deleted object was not gone, in time";

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
    /// Show the revisions of an app: when, by whom, how each deploy ended, and what it changed
    History(HistoryArgs),
    /// Deploy an earlier revision of an app, with all checks
    Rollback(RollbackArgs),
    /// Print the minimal RBAC that a deploy needs, as manifests ready to apply
    Permissions(PermissionsArgs),
    /// Write what is live to a folder, to check against it later or elsewhere: --target dir:DIR
    Snapshot(SnapshotArgs),
    /// Move stored objects to the storage version of their CRD, after proving that nothing is lost
    Migrate(MigrateArgs),
    /// Judge changes of CRDs at the API server: serve the webhook, install it, test it
    Admission(AdmissionArgs),
    /// Show catalogs of operators: packages, channels, versions, and upgrade paths
    #[cfg(feature = "olm")]
    Catalog(CatalogArgs),
    /// Work with JSON reports of earlier runs
    Report(ReportArgs),
    /// List the checks and their rules, or explain one
    Rules(RulesArgs),
    /// Show the merged configuration, or its JSON Schema
    Config(ConfigArgs),
    /// Serve the commands that only read as tools of the Model Context Protocol, for editors and agents
    Mcp,
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
    /// Complete the last word, in the format of kubectl's plugins
    #[command(hide = true)]
    CompleteWords {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use gantry_core::options::TargetSpec;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_with_manifests_has_the_same_flags_for_input_and_target() {
        for command in ["deploy", "check", "diff", "permissions"] {
            let flags = "-f a -f b -c c.yaml --preflight A,B --target dir:x --context y --kubeconfig z -n n";
            let parsed = Cli::try_parse_from(["gantry", command].into_iter().chain(flags.split(' ')));
            let input = match parsed.expect(command).command {
                Command::Deploy(DeployArgs { flow, .. })
                | Command::Check(CheckArgs { flow, .. })
                | Command::Diff(DiffArgs { flow, .. }) => flow.input,
                Command::Permissions(PermissionsArgs { input, .. }) => input,
                other => panic!("{other:?}"),
            };
            assert_eq!((input.files.len(), input.preflight.len(), input.config.config_files.len()), (2, 1, 1));
            let TargetArgs { target, kubeconfig, namespace } = input.target;
            assert_eq!((kubeconfig.context.as_deref(), namespace.as_deref()), (Some("y"), Some("n")));
            assert_eq!(target, [TargetSpec::Dir("x".into())]);
            assert_eq!(kubeconfig.file, Some("z".into()));
        }
    }

    /// The Markdown files of the repository's documentation.
    fn pages(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                pages(&entry, found);
            } else if entry.extension().is_some_and(|extension| extension == "md") {
                found.push(entry);
            }
        }
    }

    /// The gantry commands in the `sh` and `console` blocks of a page, as words. A comment, and what follows a pipe, a
    /// redirection or `&&`, belongs to the shell.
    fn commands(page: &str) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        let mut block = None;
        let mut unfinished = String::new();
        for (at, line) in page.lines().enumerate() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                block = block.is_none().then(|| language.to_owned());
                continue;
            }
            if !matches!(block.as_deref(), Some("sh" | "console" | "")) {
                continue;
            }
            let line = line.trim_start();
            if unfinished.is_empty() && !line.trim_start_matches("$ ").starts_with("gantry ") {
                continue;
            }
            unfinished.push_str(line.trim_start_matches("$ "));
            if unfinished.ends_with('\\') {
                unfinished.pop();
                continue;
            }
            let words = shlex::split(&std::mem::take(&mut unfinished)).expect("quotes that are closed");
            let ends = |word: &String| word.starts_with(['|', '>', ';', '&', '#']) || word.starts_with("2>");
            let end = words.iter().position(ends).unwrap_or(words.len());
            found.push((at + 1, words[..end].to_vec()));
        }
        found
    }

    #[test]
    fn every_command_in_the_documentation_is_accepted() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
        pages(&root.join("docs"), &mut files);
        pages(&root.join("config-examples"), &mut files);
        let mut checked = 0;
        let mut wrong = Vec::new();
        for file in files {
            let page = std::fs::read_to_string(&file).expect("a page");
            // Reflowing a page joins the commands of a block: the next one is then in a comment.
            let joined = |line: &&str| {
                line.starts_with("gantry ") && line.split_once(" # ").is_some_and(|(_, rest)| rest.contains("gantry "))
            };
            wrong.extend(page.lines().filter(joined).map(|line| format!("{}: joined: {line}", file.display())));
            for (line, words) in commands(&page) {
                checked += 1;
                if let Err(error) = Cli::try_parse_from(&words)
                    && !matches!(
                        error.kind(),
                        clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
                    )
                {
                    wrong.push(format!("{}:{line}: {}\n{error}", file.display(), words.join(" ")));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(checked > 40, "{checked} commands");
    }
}
