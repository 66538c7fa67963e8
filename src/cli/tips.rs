//! Tips for arguments that do not exist: what replaces a flag or a command of kapp.
//!
//! By itself clap suggests whatever is spelled alike, which can be a flag that deletes (`--prune-adopted` for
//! `--prev-app`).

use std::ffi::OsString;
use std::path::Path;

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
const FLAGS: [(&[&str], &str); 45] = [
    (&["allow-all-ns", "allow-cluster", "allow-ns"], "a Role limits where a deploy may write: see gantry permissions"),
    (&["allow-check"], "choose the checks with --preflight, or in the configuration"),
    (&["app-changes-max-to-keep"], "it is --history: how many deploys of an app gantry rollback can go back to"),
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
        "objects of another tool are taken over one by one or as an app of kapp: see docs/taking-over.md, Coming from kapp",
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
        "use --filter, for example --filter kind=Deployment,ns=web,label=app=front",
    ),
    (&["into-ns", "map-ns"], "write the namespace in the manifests; -n sets it only for objects that name none"),
    (&["kube-api-burst", "kube-api-qps"], "the number of requests at the same time is fixed"),
    (&["kubeconfig-context"], "use --context"),
    (&["kubeconfig-yaml"], "write the kubeconfig to a file: --kubeconfig FILE"),
    (&["labels"], "set additionalLabels in the configuration, or labels in the manifests"),
    (&["prev-app"], "rename the app first: gantry apps rename -a OLD --to NEW"),
    (&["A"], "the manifests and -n determine the namespaces"),
    (
        &["atomic", "rollback-on-failure", "cleanup-on-fail"],
        "the checks run before the first write; a deploy that fails all the same names the gantry rollback to use",
    ),
    (&["auto-approve", "approve"], "off a terminal nothing is asked; on a terminal use -y"),
    (&["cascade", "grace-period", "now"], "objects are deleted in the background, with their own grace period"),
    (&["chart"], "name the chart with -f: a folder, a .tgz file or oci://REGISTRY/CHART"),
    (&["repo"], "name the chart with -f oci://REGISTRY/CHART, or fetch it with helm pull, then -f CHART.tgz"),
    (&["reuse-values", "reset-values"], "write the values to a file: helm get values NAME > FILE, then --values FILE"),
    (&["create-namespace"], "put the Namespace among the manifests"),
    (&["filename", "manifests", "path"], "use --file, or -f"),
    (&["force", "replace"], "an object is replaced only if its annotation kapp.k14s.io/update-strategy says so"),
    (&["recursive", "R"], "folders are always read recursively"),
    (&["selector", "l"], "use --filter label=KEY=VALUE"),
    (&["field-selector"], "use --filter, for example --filter kind=Deployment,ns=web"),
    (&["s"], "use --server"),
    (&["server-side", "apply"], "every deploy is a server-side apply"),
    (
        &["insecure-skip-tls-verify", "certificate-authority", "client-certificate", "client-key", "tls-server-name"],
        "write it to a kubeconfig: --kubeconfig FILE",
    ),
    (&["timeout"], "use --wait-timeout"),
    (
        &["set-string", "set-file", "set-json", "value"],
        "for a chart of -f, gantry check, diff and deploy have --set KEY=VALUE and --values FILE",
    ),
    (&["warnings"], "warnings of the API server are always shown; --quiet hides the other output of a success"),
];

/// Commands of kubectl, helm, kapp and other tools, and what gantry has instead.
const COMMANDS: &[(&[&str], &str)] = &[
    #[cfg(not(feature = "olm"))]
    (&["catalog"], "this gantry was built without Operator Lifecycle Manager: use a build with the feature olm"),
    (&["version"], "use gantry --version"),
    (&["ls", "list"], "use gantry apps"),
    (&["rename"], "use gantry apps rename -a OLD --to NEW"),
    (&["logs"], "use kubectl logs, or gantry deploy --logs"),
    (&["app-change", "ac", "status"], "use gantry inspect -a NAME, which shows how the last deploy ended"),
    (&["app-group", "ag"], "deploy each app by itself: gantry deploy -a NAME -f DIR"),
    (&["apply", "create", "replace", "upgrade", "install", "up", "sync", "run"], "use gantry deploy"),
    (&["plan", "preview", "dry-run", "whatif"], "use gantry check, or gantry diff for what changes in each object"),
    (
        &["template", "render", "kustomize"],
        "gantry renders what it reads: -f CHART, -k DIR, or any other program with --render",
    ),
    (
        &["destroy", "uninstall", "undeploy", "remove", "rm", "down", "del", "un", "teardown"],
        "use gantry delete -a NAME to delete an app",
    ),
    (&["prune"], "use gantry deploy -a NAME -f DIR --prune=yes"),
    (&["validate", "lint", "verify", "test", "vet", "kubeval"], "use gantry check, which never writes"),
    (&["explain", "rule"], "use gantry rules NAME"),
    (&["checks"], "use gantry rules, which lists the checks, too"),
    (&["get", "describe", "show"], "use kubectl for single objects, and gantry inspect -a NAME for an app"),
    (&["auth", "can-i", "rbac"], "use gantry permissions, or gantry check --preflight PermissionValidation"),
    (&["rollout", "wait"], "gantry deploy --wait waits until the objects are ready"),
    (&["undo"], "go back to an earlier deploy of an app: gantry rollback -a APP"),
    (&["edit", "patch", "set", "scale", "label", "annotate"], "change the manifests and use gantry deploy"),
    (&["export", "dump", "backup", "pull"], "use gantry snapshot"),
    (&["completion", "complete"], "use gantry completions SHELL"),
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
            (COMMANDS, invalid(&error, ContextKind::InvalidSubcommand), ContextKind::SuggestedSubcommand)
        }
        _ => return error,
    };
    let known = table.iter().find(|(names, _)| names.contains(&&*name));
    if known.is_none() && is_path(&error) {
        let tip = format!("name manifests with -f: -f {}", name);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
        return error;
    }
    let is_fit = |suggested: &str| {
        let suggested = suggested.trim_start_matches('-');
        let is_hidden = root.find_subcommand(suggested).is_some_and(Command::is_hide_set);
        !is_hidden && !NEVER.contains(&suggested) && is_slip(&name, suggested)
    };
    let fit: Vec<String> = match error.get(similar) {
        Some(ContextValue::String(suggested)) => vec![suggested.clone()],
        Some(ContextValue::Strings(suggested)) => suggested.clone(),
        _ => Vec::new(),
    };
    let all = fit.len();
    let fit: Vec<String> = fit.into_iter().filter(|suggested| is_fit(suggested)).collect();
    if known.is_none() && fit.len() == all {
        return error;
    }
    if known.is_none() && !fit.is_empty() {
        error.insert(similar, ContextValue::Strings(fit));
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

/// Whether the argument is a path where only flags are expected: `gantry check manifests/`.
fn is_path(error: &Error) -> bool {
    let Some(ContextValue::String(text)) = error.get(ContextKind::InvalidArg) else { return false };
    error.kind() == ErrorKind::UnknownArgument
        && !text.starts_with('-')
        && !text.contains(char::is_control)
        && (text.contains('/')
            || [".yaml", ".yml", ".json", ".tgz"].iter().any(|end| text.ends_with(end))
            || Path::new(text).exists())
}

/// Whether a word is a slip of the keyboard for another: at most one edit in a short word and two in a longer one. A
/// word that negates the other (`undeploy`, `--no-wait`) is never one.
fn is_slip(word: &str, other: &str) -> bool {
    let negated = ["no-", "no", "non-", "un", "dis", "de"].iter().any(|not| word.strip_prefix(not) == Some(other));
    let most = if word.chars().count() <= 5 { 1 } else { 2 };
    !negated && strsim::osa_distance(word, other) <= most
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
    use clap::{Arg, CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    /// The tips of the error about these arguments.
    fn tips(arguments: &str) -> String {
        let arguments: Vec<OsString> =
            std::iter::once("gantry").chain(arguments.split(' ')).map(OsString::from).collect();
        let error = Cli::try_parse_from(&arguments).expect_err("not accepted");
        let text = correct(error, Cli::command(), arguments).to_string();
        text.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_misspelt_word_is_answered_with_the_intended_one() {
        for (arguments, near) in [
            ("chek -f a", "'check'"),
            ("dploy -f a", "'deploy'"),
            ("app", "'apps'"),
            ("permision -f a", "'permissions'"),
            ("check -f a --namspace x", "'--namespace'"),
            ("check -f a --preflights A", "'--preflight'"),
            ("check -f a --pre-set kapp", "'--preset'"),
        ] {
            assert!(tips(arguments).contains(near), "{arguments}: {}", tips(arguments));
        }
    }

    #[test]
    fn commands_and_flags_of_other_tools_are_answered_with_those_of_gantry() {
        for (arguments, instead) in [
            ("destroy -a shop", "gantry delete -a NAME"),
            ("uninstall shop", "gantry delete -a NAME"),
            ("undeploy -a shop", "gantry delete -a NAME"),
            ("apply -f a", "gantry deploy"),
            ("upgrade shop", "gantry deploy"),
            ("install shop", "gantry deploy"),
            ("plan -f a", "gantry check"),
            ("template a", "--render"),
            ("check manifests/", "-f manifests/"),
            ("deploy crd.yaml", "-f crd.yaml"),
            // The folder of these sources.
            ("check src", "-f src"),
            ("check -f a -l app=b", "--filter label="),
            ("deploy -f a --set-string b=c", "--set KEY=VALUE"),
            ("deploy -f a --repo b", "helm pull"),
            ("deploy -f a --server-side", "server-side apply"),
            ("deploy -f a -R", "recursively"),
            ("deploy --filename a", "--file"),
        ] {
            let tips = tips(arguments);
            assert!(tips.contains(instead) && !tips.contains("similar"), "{arguments}: {tips}");
        }
    }

    #[test]
    fn words_that_are_dissimilar_opposite_hidden_or_dangerous_are_not_suggested() {
        for arguments in [
            "complete-word",
            "mann",
            "deploy -f a --nowait",
            "deploy -f a --prune-adopt",
            "deploy -f a --yess",
            "planner",
        ] {
            assert!(!tips(arguments).contains("complete-words"), "{arguments}");
            for bad in ["prune-adopted", "--wait", "--yes", "plan"] {
                assert!(!tips(arguments).contains(bad), "{arguments}: {}", tips(arguments));
            }
        }
        assert_eq!(tips("redestroy"), "");
        assert!(!is_slip("destroy", "deploy") && !is_slip("plan", "man") && !is_slip("values", "waves"));
    }

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
