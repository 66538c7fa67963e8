//! The shell commands in a text for people. Printers never break one, so that it can be pasted.

use std::ops::Range;

/// The programs whose commands texts name, each with the words that can follow its name.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("argocd", &["app", "appset", "login", "proj", "repo", "version"]),
    (
        "flux",
        &["build", "check", "create", "delete", "diff", "events", "export", "get", "reconcile", "resume", "suspend"],
    ),
    ("gantry", GANTRY),
    ("git", &["fetch", "clone", "checkout", "log", "show", "config", "remote", "pull", "rev-parse"]),
    ("helm", &["template", "get", "list", "history", "install", "upgrade", "uninstall", "rollback"]),
    ("kapp", &["deploy", "delete", "inspect", "list"]),
    ("kubectl", KUBECTL),
    ("kustomize", &["build"]),
    ("ytt", &["-f"]),
];

/// The first words of gantry's own commands.
pub const GANTRY: &[&str] = &[
    "admission",
    "apps",
    "catalog",
    "check",
    "completions",
    "config",
    "delete",
    "deploy",
    "diff",
    "history",
    "inspect",
    "man",
    "migrate",
    "permissions",
    "report",
    "rollback",
    "rules",
    "snapshot",
];

const KUBECTL: &[&str] = &[
    "annotate",
    "api-resources",
    "api-versions",
    "apply",
    "auth",
    "config",
    "create",
    "delete",
    "describe",
    "diff",
    "edit",
    "exec",
    "explain",
    "gantry",
    "get",
    "kustomize",
    "label",
    "logs",
    "patch",
    "port-forward",
    "replace",
    "rollout",
    "run",
    "scale",
    "set",
    "version",
    "wait",
];

/// Words of a sentence, which no argument of these commands is.
const PROSE: &[&str] = &["and", "or", "then", "which", "shows", "show", "prints", "print", "lists", "list"];

/// The byte ranges of the commands in one line, in order.
pub fn commands(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = next_start(line, from) {
        let is_quoted = line[..start].ends_with('`');
        let end = match line[start..].find('`').filter(|_| is_quoted) {
            Some(length) => start + length,
            None => start + length(&line[start..]),
        };
        found.push(start..end);
        from = end;
    }
    found
}

/// Where the first command at or after `from` begins.
fn next_start(line: &str, from: usize) -> Option<usize> {
    let of_program = |(program, words): &(&str, &[&str])| {
        let starts = line[from..].match_indices(program).map(|(at, _)| from + at);
        let mut starts =
            starts.filter(|at| line[..*at].chars().next_back().is_none_or(|c| matches!(c, ' ' | '(' | '`' | '\t')));
        starts.find(|at| {
            let rest = line[at + program.len()..].strip_prefix(' ');
            let word = rest.and_then(|rest| rest.split(|c: char| c.is_whitespace() || ";,.:)`".contains(c)).next());
            word.is_some_and(|word| words.contains(&word) || *program == "kubectl" && word.starts_with('-'))
        })
    };
    PROGRAMS.iter().filter_map(of_program).min()
}

/// The length of the command at the start of `text`: until a sentence goes on, outside of quotes.
fn length(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let rest = &text[at + c.len_utf8()..];
        let is_last = rest.is_empty() || rest.starts_with(' ');
        match c {
            '\'' | '"' => {
                // Without a second one it is an apostrophe.
                if let Some(close) = rest.find(c) {
                    let behind = at + c.len_utf8() + close + 1;
                    while chars.as_str().len() > text.len() - behind {
                        chars.next();
                    }
                }
            }
            '(' => depth += 1,
            ')' if depth == 0 => return at,
            ')' => depth -= 1,
            ';' | ',' | ':' | '.' if is_last && depth == 0 && !(c == '.' && text[..at].ends_with(' ')) => return at,
            ' ' if rest.starts_with(['#', '(', ' ', '→', '—']) => return at,
            ' ' => {
                let word = rest.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
                let is_word =
                    rest[word.len()..].is_empty() || rest[word.len()..].starts_with([' ', ',', ';', '.', ':']);
                if is_word && PROSE.contains(&word) {
                    return at;
                }
            }
            _ => {}
        }
    }
    text.trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<&str> {
        commands(line).into_iter().map(|range| &line[range]).collect()
    }

    #[test]
    fn a_command_ends_where_its_sentence_continues() {
        for (line, expected) in [
            ("to see it: kubectl get crd a.b -o yaml; run again", &["kubectl get crd a.b -o yaml"][..]),
            ("gantry never deletes it", &[]),
            ("gantry reads git and kubectl shows it", &[]),
            ("gantry catalog PACKAGE lists its contents", &["gantry catalog PACKAGE"]),
            (
                "use gantry check, gantry diff or gantry deploy --dry-run.",
                &["gantry check", "gantry diff", "gantry deploy --dry-run"],
            ),
            ("(kubectl get pods -n a) and more", &["kubectl get pods -n a"]),
            ("run `kubectl get pods and more`, then", &["kubectl get pods and more"]),
            (
                "12. kubectl get a -o json | jq '(.items[]; .b | c: d) # x' | kubectl replace -f -",
                &["kubectl get a -o json | jq '(.items[]; .b | c: d) # x' | kubectl replace -f -"],
            ),
            ("kubectl -n a port-forward svc/b 8443:443", &["kubectl -n a port-forward svc/b 8443:443"]),
            ("kubectl get endpointslices,pods -n x   # a comment", &["kubectl get endpointslices,pods -n x"]),
            ("kubectl patch a b -p '{\"x\": [\"a, b\"]}'", &["kubectl patch a b -p '{\"x\": [\"a, b\"]}'"]),
            ("kubectl create -f . on it", &["kubectl create -f . on it"]),
            ("my-kubectl get pods", &[]),
            (
                "flux resume kustomization a -n b, or argocd app sync a --prune; flux owns it",
                &["flux resume kustomization a -n b", "argocd app sync a --prune"],
            ),
            ("render it first: helm template CHART | gantry check -f -", &["helm template CHART | gantry check -f -"]),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }
}
