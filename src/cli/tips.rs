//! Tips for arguments that do not exist: what replaces a flag or a command of kapp.
//!
//! By itself clap suggests whatever is spelled alike, which can be a flag that deletes (`--prune-adopted` for `--prev-app`).

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Flags that write more, delete, or turn a check off. None of them is suggested because it is spelled alike.
const NEVER: [&str; 17] = [
    "allow-exec",
    "baseline",
    "break-lock",
    "drop-kapp-selector",
    "force-conflicts",
    "from-kapp",
    "ignore-failing-api-services",
    "keep-going",
    "keep-kapp-record",
    "prune",
    "prune-adopted",
    "prune-max",
    "skip-unreadable",
    "take-over-app",
    "take-ownership",
    "warn-only",
    "yes",
];

/// Flags of kapp by name, and what gantry has instead.
const FLAGS: [(&[&str], &str); 27] = [
    (&["allow-all-ns", "allow-cluster", "allow-ns"], "a Role limits where a deploy may write: see gantry permissions"),
    (&["allow-check"], "choose the checks with --preflight, or in the configuration"),
    (&["app-changes-max-to-keep"], "gantry keeps no history of an app: only its last deploy is recorded"),
    (
        &["app-metadata-file-output", "metadata-file-output"],
        "use -o json=FILE for a report, and gantry inspect -o json for the app",
    ),
    (&["apply-check-interval", "wait-check-interval"], "gantry watches objects, so there is no interval"),
    (&["apply-concurrency", "wait-concurrency"], "the number of requests at the same time is fixed"),
    (&["apply-default-update-strategy"], "annotate the objects: kapp.k14s.io/update-strategy"),
    (&["apply-exit-status", "diff-exit-status"], "use --detailed-exitcode: exit code 4 means that there are changes"),
    (&["apply-ignored"], "objects that do not belong to the app are left alone"),
    (&["column", "summary"], "use -o json and select columns with jq"),
    (&["dangerous-allow-empty-list-of-resources"], "to delete all objects of an app: gantry delete -a NAME"),
    (
        &["dangerous-ignore-failing-api-services", "resource-types-ignore-failing-api-services"],
        "an API that does not answer stops only what uses it; for the other cases: --ignore-failing-api-services",
    ),
    (
        &["dangerous-override-ownership-of-existing-resources", "ownership-override-allowed-apps"],
        "objects of another tool are taken over one by one or as an app of kapp: see docs/deploying.md, Coming from kapp",
    ),
    (&["dangerous-scope-to-fallback-allowed-namespaces"], "gantry lists only the kinds and namespaces of the app"),
    (&["patch"], "a deploy adds and updates; what has left the manifests is deleted only on request"),
    (
        &["diff-changes", "diff-changes-yaml", "diff-context", "diff-against-last-applied", "diff-summary"],
        "use --diff, or gantry diff",
    ),
    (&["diff-mask"], "values of Secrets are always masked; --redact masks all values"),
    (&["diff-run"], "use gantry check or --dry-run"),
    (
        &["exit-early-on-apply-error", "exit-early-on-wait-error"],
        "a deploy stops at the first failure unless the flag --keep-going is given",
    ),
    (
        &[
            "filter-age",
            "filter-kind",
            "filter-kind-name",
            "filter-kind-ns",
            "filter-labels",
            "filter-name",
            "filter-ns",
        ],
        "use --filter, for example --filter kind=Deployment,ns=web",
    ),
    (&["into-ns", "map-ns"], "write the namespace in the manifests; -n sets it only for objects that name none"),
    (&["kube-api-burst", "kube-api-qps"], "the number of requests at the same time is fixed"),
    (&["kubeconfig-context"], "use --context"),
    (&["kubeconfig-yaml"], "write the kubeconfig to a file: --kubeconfig FILE"),
    (&["labels"], "set additionalLabels in the configuration, or labels in the manifests"),
    (&["prev-app"], "rename the app first: gantry apps rename -a OLD --to NEW"),
    (&["warnings"], "warnings of the API server are always shown; --quiet hides the other output of a success"),
];

/// Commands of kapp and of other tools, and what gantry has instead.
const COMMANDS: [(&[&str], &str); 7] = [
    (&["version"], "use gantry --version"),
    (&["ls", "list"], "use gantry apps"),
    (&["rename"], "use gantry apps rename -a OLD --to NEW"),
    (&["logs"], "use kubectl logs, or gantry deploy --logs"),
    (&["app-change", "ac", "status"], "use gantry inspect -a NAME, which shows how the last deploy ended"),
    (&["app-group", "ag"], "deploy each app by itself: gantry deploy -a NAME -f DIR"),
    (&["apply", "template"], "use gantry deploy, or gantry diff to only look"),
];

/// Replaces the tips of an error about an argument that does not exist.
pub fn correct(mut error: Error, mut root: Command, arguments: impl IntoIterator<Item = OsString>) -> Error {
    let invalid = |error: &Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => {
            text.trim_start_matches('-').split('=').next().unwrap_or_default().to_owned()
        }
        _ => String::new(),
    };
    let (table, name, similar) = match error.kind() {
        ErrorKind::UnknownArgument => (&FLAGS[..], invalid(&error, ContextKind::InvalidArg), ContextKind::SuggestedArg),
        ErrorKind::InvalidSubcommand => {
            (&COMMANDS[..], invalid(&error, ContextKind::InvalidSubcommand), ContextKind::SuggestedSubcommand)
        }
        _ => return error,
    };
    let known = table.iter().find(|(names, _)| names.contains(&&*name));
    let is_never = match error.get(similar) {
        Some(ContextValue::String(similar)) => NEVER.contains(&similar.trim_start_matches('-')),
        _ => false,
    };
    if known.is_none() && !is_never {
        return error;
    }
    error.remove(similar);
    error.remove(ContextKind::Suggested);
    if error.kind() == ErrorKind::UnknownArgument {
        // The usage shows the flag that clap suggests.
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage(&mut root, arguments)));
    }
    if let Some((_, tip)) = known {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(*tip)]));
    }
    error
}

/// The usage of the command that the arguments name.
fn usage(root: &mut Command, arguments: impl IntoIterator<Item = OsString>) -> StyledStr {
    root.build();
    let mut command: &Command = root;
    for argument in arguments.into_iter().skip(1) {
        command = argument.to_str().and_then(|name| command.find_subcommand(name)).unwrap_or(command);
    }
    command.clone().render_usage()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn tables_name_only_flags_that_exist_or_that_gantry_lacks() {
        let mut root = Cli::command();
        root.build();
        let commands: Vec<&Command> =
            root.get_subcommands().flat_map(|command| command.get_subcommands().chain([command])).collect();
        let has = |name: &str| {
            commands
                .iter()
                .flat_map(|command| command.get_arguments())
                .filter_map(Arg::get_long)
                .any(|long| long == name)
        };
        assert!(NEVER.iter().all(|name| has(name)), "{NEVER:?}");
        for (names, tip) in FLAGS {
            assert!(names.iter().all(|name| !has(name)), "{names:?}");
            for word in tip.split([' ', ',', ':', ';']).filter_map(|word| word.strip_prefix("--")) {
                assert!(has(word), "{tip}");
            }
        }
        for (names, _) in COMMANDS {
            assert!(names.iter().all(|name| root.find_subcommand(name).is_none()), "{names:?}");
        }
    }
}
