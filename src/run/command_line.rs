//! Output that is generated from the command line's definition: completion scripts, manual pages, completions for
//! kubectl.

use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use super::host::Host;
use crate::cli::Cli;
use gantry_core::problem::{Error, Problem, Result};

/// The script that completes `gantry` in a shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gantry", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Writes the manual pages of all commands.
pub fn man(folder: &Path, host: &Host) -> Result<String> {
    let path = host.working_directory.join(folder);
    let written = fs::create_dir_all(&path).and_then(|()| clap_mangen::generate_to(Cli::command(), &path));
    let shown = folder.display();
    written.map_err(|error| {
        Error::failed(Problem::new(format!("cannot write to {shown}: {error}")).help("name another folder"))
    })?;
    Ok(String::new())
}

/// The completions of the last word, one on each line, then a directive for the shell: with `:0` it completes file
/// names, too, with `:4` it does not. <https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/>
pub fn words(words: &[String]) -> String {
    let mut root = Cli::command();
    root.build();
    let (current, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let command = before.iter().fold(&root, |command, word| command.find_subcommand(word).unwrap_or(command));
    let candidates = candidates(command, before.last().map(String::as_str), current);
    let directive = if candidates.is_empty() { ":0" } else { ":4" };
    candidates.into_iter().chain([directive.to_owned()]).map(|line| line + "\n").collect()
}

fn candidates(command: &Command, previous: Option<&str>, current: &str) -> Vec<String> {
    let values = |arg: &Arg| -> Vec<String> {
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
    };
    let is_named = |arg: &&Arg, word: &str| {
        arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long))
            || arg.get_short().is_some_and(|short| word == format!("-{short}"))
    };
    let takes_value = |arg: &&Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    let flag = previous.and_then(|word| command.get_arguments().find(|arg| is_named(arg, word)));
    let mut all: Vec<String> = match flag.filter(takes_value) {
        Some(arg) => values(arg),
        None if current.starts_with('-') => {
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            shown.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect()
        }
        None => {
            let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
            let names = subcommands.map(|command| command.get_name().to_owned());
            names.chain(command.get_positionals().flat_map(values)).collect()
        }
    };
    all.retain(|word| word.starts_with(current));
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Vec<String> {
        words(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_plugin_of_kubectl_completes_words() {
        assert_eq!(completed("che"), ["check", ":4"]);
        assert_eq!(completed("check --targ"), ["--target", ":4"]);
        assert_eq!(completed("check -f x --color "), ["always", "auto", "never", ":4"]);
        assert_eq!(completed("config s"), ["schema", "show", ":4"]);
        assert_eq!(completed("completions z"), ["zsh", ":4"]);
        assert_eq!(completed("check -f ma"), [":0"]);
        assert!(!completed("").contains(&"complete-words".to_owned()));
    }
}
