//! Renders manifests with a program: the user's own command (`--render 'kustomize build {dir}'`), `helm template` for a
//! chart, and `kustomize build` for `-k`.
//!
//! The command of `--render` belongs to the user: it comes from the command line, the environment, the user's own
//! configuration file or one of `-c`, never from files that come with the manifests. It is started directly, without a
//! shell.

mod chart;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::CommandWrap;
use tokio::io::AsyncWriteExt;

use crate::manifest::{self, ManifestSource, shown_text};
use crate::options::InvalidOption;
use crate::problem::Problem;
use crate::program::{self, ProgramError};
use crate::text;

pub use chart::{CHART_FILE, CHART_HELP, ChartOptions, HELM_BIN, UpgradedRelease, is_chart, is_package};

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

/// The prefix of an argument of `-f` that names a kustomization; `-k DIR` is short for it.
const KUSTOMIZATION: &str = "kustomize:";

/// The programs that render what `-f` names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renderers {
    /// The command of `--render`, for every argument but kustomizations.
    pub command: Option<Render>,
    /// How charts are rendered.
    pub charts: ChartOptions,
}

/// The program that renders one folder or chart.
#[derive(Debug, Clone, Copy)]
pub enum Renderer<'a> {
    /// The command of `--render`.
    Command(&'a Render),
    /// `helm template`.
    Chart(&'a ChartOptions),
    /// `kustomize build`, or `kubectl kustomize` if there is no kustomize.
    Kustomize,
}

/// What a renderer made.
#[derive(Debug)]
pub struct RenderedManifests {
    /// The text.
    pub source: ManifestSource,
    /// What to know about it.
    pub notice: Option<Problem>,
}

/// The argument of `-f` for a folder of `-k`.
pub fn kustomization_argument(folder: &str) -> String {
    format!("{KUSTOMIZATION}{folder}")
}

/// The folder of an argument that names a kustomization.
pub fn folder_of_kustomization(argument: &str) -> Option<&str> {
    argument.strip_prefix(KUSTOMIZATION)
}

impl Renderers {
    /// The program for an argument of `-f`; `None` for manifests that are read as they are.
    pub fn of_argument(&self, argument: &str, working_directory: &Path) -> Option<Renderer<'_>> {
        self.choose(
            folder_of_kustomization(argument).is_some(),
            self.command.is_none() && chart::is_chart(argument, working_directory),
        )
    }

    /// The program for a kustomization, a chart or neither.
    pub fn choose(&self, is_kustomization: bool, is_chart: bool) -> Option<Renderer<'_>> {
        match (&self.command, is_kustomization, is_chart) {
            (_, true, _) => Some(Renderer::Kustomize),
            (Some(command), ..) => Some(Renderer::Command(command)),
            (None, _, true) => Some(Renderer::Chart(&self.charts)),
            (None, _, false) => None,
        }
    }
}

impl Renderer<'_> {
    /// Renders a folder or a chart. `from` is the name of it (or of the commit and folder) that is shown to the user.
    pub async fn run(
        &self,
        folder: &OsStr,
        working_directory: &Path,
        from: &str,
    ) -> Result<RenderedManifests, Problem> {
        let words: Vec<OsString> = match self {
            Renderer::Command(render) => render.words.iter().map(|word| with_folder(word, folder)).collect(),
            Renderer::Chart(options) => options.command(folder, working_directory),
            Renderer::Kustomize => vec!["kustomize".into(), "build".into(), with_folder(DIR, folder)],
        };
        let input = match self {
            Renderer::Chart(options) => options.values_of_release(),
            Renderer::Command(_) | Renderer::Kustomize => None,
        };
        let (answer, said) = execute(&words, working_directory, input).await;
        let (words, answer, said) = match (self, answer) {
            (Renderer::Kustomize, Err(failure)) if is_not_installed(&failure) => {
                let words: Vec<OsString> = vec!["kubectl".into(), "kustomize".into(), with_folder(DIR, folder)];
                let (answer, said) = execute(&words, working_directory, None).await;
                (words, answer, said)
            }
            (_, answer) => (words, answer, said),
        };
        let answer = answer.map_err(|failure| self.failed(&failure, &words, &said, from))?;
        let name = format!("{from} (rendered)");
        let text = manifest::text(&name, answer)?;
        let (text, notice) = match self {
            Renderer::Chart(options) => {
                let notice = chart::notice_of_crds(&text, folder, from, options.version.as_deref());
                let leaves_crds = options.upgraded.as_ref().is_some_and(|release| release.leaves_crds);
                (if leaves_crds { chart::without_crds(&text) } else { text }, notice)
            }
            Renderer::Command(_) | Renderer::Kustomize => (text, None),
        };
        Ok(RenderedManifests { source: ManifestSource::rendered(name, text, entry(folder, working_directory)), notice })
    }

    fn failed(&self, failure: &ProgramError, words: &[OsString], said: &str, from: &str) -> Problem {
        if is_not_installed(failure) {
            let by_hand = |program: &str| format!("; or render it elsewhere: {program} | gantry check -f -");
            match self {
                Renderer::Command(_) => {}
                Renderer::Chart(_) => {
                    let helm = shown_text(&words[0].to_string_lossy());
                    return Problem::new(format!("{from} is a Helm chart, and {helm:?} is not installed")).help(
                        format!(
                            "install Helm 3 or 4 (https://helm.sh), or name it in {}{}",
                            chart::HELM_BIN,
                            by_hand("helm template CHART --include-crds")
                        ),
                    );
                }
                Renderer::Kustomize => {
                    let message = format!("{from} is a kustomization, and neither kustomize nor kubectl is installed");
                    return Problem::new(message)
                        .help(format!("install one of them{}", by_hand("kustomize build DIR")));
                }
            }
        }
        let name = words.first().map(|word| shown_text(&word.to_string_lossy())).unwrap_or_default();
        let program = format!("{name:?}, which renders {from},");
        // The reason for a failure is usually at the end.
        let start = said.char_indices().rev().nth(SHOWN - 1).map_or(0, |(start, _)| start);
        let lines: Vec<&str> = said[start..].lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let shown = text::sanitize(&lines.join(" | ")).into_owned();
        let colon = if shown.is_empty() { "" } else { ": " };
        let seconds = TIMEOUT.as_secs();
        let (message, help) = match failure {
            ProgramError::NotStarted(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ("is not installed".to_owned(), "install it, or name its path in --render".to_owned())
            }
            ProgramError::NotStarted(error) => {
                let flag = if matches!(self, Renderer::Chart(_)) { chart::HELM_BIN } else { "--render" };
                (format!("cannot be started: {error}"), format!("check the command of {flag}"))
            }
            ProgramError::TimedOut => {
                (format!("did not end within {seconds} s and was stopped{colon}{shown}"), "run it manually".to_owned())
            }
            ProgramError::TooLong => (
                format!("printed more than {} MiB and was stopped", MOST_BYTES >> 20),
                "it must print manifests: run it manually".to_owned(),
            ),
            ProgramError::Ended(status) => {
                let help = match self {
                    Renderer::Chart(_) => text::sanitize(&chart::help_for(said, words)).into_owned(),
                    Renderer::Command(_) | Renderer::Kustomize => "run it manually in that folder".to_owned(),
                };
                (format!("failed ({status}){colon}{shown}"), help)
            }
            ProgramError::Broken(error) => (format!("cannot be read: {error}"), "run it manually".to_owned()),
        };
        Problem::new(format!("{program} {message}")).help(help)
    }
}

fn is_not_installed(failure: &ProgramError) -> bool {
    matches!(failure, ProgramError::NotStarted(error) if error.kind() == std::io::ErrorKind::NotFound)
}

/// Runs a program with its arguments to its end, with limits on time and output. `input` is its standard input.
async fn execute(
    words: &[OsString],
    working_directory: &Path,
    input: Option<&str>,
) -> (Result<Vec<u8>, ProgramError>, String) {
    let (program, arguments) =
        words.split_first().map_or((OsString::new(), &[][..]), |(first, rest)| (first.clone(), rest));
    let mut command = CommandWrap::with_new(program, |command| {
        command.args(arguments).current_dir(working_directory);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    program::as_group(&mut command);
    let feed = input.map(|input| -> program::Feeder<'_> {
        Box::new(move |mut stdin| Box::pin(async move { stdin.write_all(input.as_bytes()).await }))
    });
    program::run(command, feed, TIMEOUT, MOST_BYTES).await
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
