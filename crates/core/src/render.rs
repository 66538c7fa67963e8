//! Renders manifests from a folder with a program (`--render`): `kustomize build {dir}`, `helm template {dir}`.
//!
//! The command belongs to the user: it comes from the command line, the environment, the user's own configuration file
//! or one of `-c`, never from files that come with the manifests. It is started directly, without a shell.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::CommandWrap;

use crate::manifest::{self, ManifestSource, shown_text};
use crate::options::InvalidOption;
use crate::problem::Problem;
use crate::program::{self, ProgramError};
use crate::text;

/// The placeholder for the folder.
const DIR: &str = "{dir}";
/// The time limit. A renderer may download its bases.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum length of the output in bytes.
const MOST_BYTES: usize = 256 << 20;
/// The number of characters that are shown from the end of standard error.
const SHOWN: usize = 1000;

/// A program that renders folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Render {
    words: Vec<String>,
}

impl std::str::FromStr for Render {
    type Err = InvalidOption;

    /// Splits the command like a POSIX shell, without any other processing of a shell.
    fn from_str(command: &str) -> Result<Self, InvalidOption> {
        let words = shlex::split(command).ok_or_else(|| format!("{command:?} has an unclosed quote"))?;
        match words.first() {
            None => Err("the command is empty".into()),
            Some(program) if program.contains(DIR) => Err(format!("{command:?} names no program before {DIR}").into()),
            _ if !words.iter().any(|word| word.contains(DIR)) => {
                Err(format!("{command:?} has no placeholder for the folder: add {DIR}").into())
            }
            _ => Ok(Render { words }),
        }
    }
}

impl Render {
    /// Renders a folder. `from` is the name of the folder (or of the commit and folder) that is shown to the user.
    pub async fn run(&self, folder: &OsStr, working_directory: &Path, from: &str) -> Result<ManifestSource, Problem> {
        let mut words = self.words.iter().map(|word| with_folder(word, folder));
        let program = words.next().unwrap_or_default();
        let mut command = CommandWrap::with_new(program, |command| {
            command.args(words).current_dir(working_directory);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        program::as_group(&mut command);
        let (answer, said) = program::run(command, None, TIMEOUT, MOST_BYTES).await;
        let answer = answer.map_err(|failure| self.failed(&failure, &said, from))?;
        let name = format!("{from} (rendered)");
        let text = manifest::text(&name, answer)?;
        Ok(ManifestSource::rendered(name, text, entry(folder, working_directory)))
    }

    fn failed(&self, failure: &ProgramError, said: &str, from: &str) -> Problem {
        let program = format!("{:?}, which renders {from},", shown_text(self.words.first().map_or("", String::as_str)));
        // The reason for a failure is usually at the end.
        let start = said.char_indices().rev().nth(SHOWN - 1).map_or(0, |(start, _)| start);
        let lines: Vec<&str> = said[start..].lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let said = text::sanitize(&lines.join(" | ")).into_owned();
        let colon = if said.is_empty() { "" } else { ": " };
        let seconds = TIMEOUT.as_secs();
        let (message, help) = match failure {
            ProgramError::NotStarted(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ("is not installed".to_owned(), "install it, or name its path in --render")
            }
            ProgramError::NotStarted(error) => (format!("cannot be started: {error}"), "check the command of --render"),
            ProgramError::TimedOut => {
                (format!("did not end within {seconds} s and was stopped{colon}{said}"), "run it manually")
            }
            ProgramError::TooLong => (
                format!("printed more than {} MiB and was stopped", MOST_BYTES >> 20),
                "it must print manifests: run it manually",
            ),
            ProgramError::Ended(status) => {
                (format!("failed ({status}){colon}{said}"), "run it manually in that folder")
            }
            ProgramError::Broken(error) => (format!("cannot be read: {error}"), "run it manually"),
        };
        Problem::new(format!("{program} {message}")).help(help)
    }
}

/// The main file of a rendered folder, or the folder itself if it has none. Findings point to the file, because a code
/// host can show a finding next to a file, but not next to a folder.
fn entry(folder: &OsStr, working_directory: &Path) -> PathBuf {
    let folder = Path::new(folder);
    let known = ["kustomization.yaml", "kustomization.yml", "Kustomization", "Chart.yaml", "helmfile.yaml"];
    let files = known.map(|name| folder.join(name));
    files.into_iter().find(|file| working_directory.join(file).is_file()).unwrap_or_else(|| folder.to_owned())
}

/// Replaces the placeholder in a word with the folder. The name of the folder is not interpreted: it stays one
/// argument.
fn with_folder(word: &str, folder: &OsStr) -> OsString {
    let mut parts = word.split(DIR);
    let mut whole = OsString::from(parts.next().unwrap_or_default());
    for part in parts {
        // A folder named `-x` must not become an option.
        if whole.is_empty() && folder.to_string_lossy().starts_with('-') {
            whole.push("./");
        }
        whole.push(folder);
        whole.push(part);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_placeholder_for_the_folder() {
        let render: Render = "sh -c 'cat \"$1\"/*.yaml' render {dir}".parse().unwrap();
        assert_eq!(render.words, ["sh", "-c", "cat \"$1\"/*.yaml", "render", "{dir}"]);
        for wrong in ["", " ", "kustomize build", "{dir}", "a 'b {dir}"] {
            assert!(wrong.parse::<Render>().is_err(), "{wrong}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(entry(OsStr::new("."), folder.path()), Path::new("."));
        std::fs::write(folder.path().join("Chart.yaml"), "").unwrap();
        assert_eq!(entry(OsStr::new("."), folder.path()), Path::new("./Chart.yaml"));
        let folder = OsStr::new("a b; $(x)");
        assert_eq!(with_folder("--in={dir}/{dir}", folder), "--in=a b; $(x)/a b; $(x)");
        assert_eq!(with_folder("{dir}", OsStr::new("-x")), "./-x");
    }
}
