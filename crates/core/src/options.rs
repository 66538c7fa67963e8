//! Values with the same syntax in flags, the environment and configuration files.

mod fleet;
mod git;
mod helm_release;

use std::path::PathBuf;
use std::str::FromStr;

pub use clap::ColorChoice;
use clap::ValueEnum;

pub use fleet::{Shard, Waves};
pub use git::{GitRevision, GitSpec};
pub use helm_release::HelmReleaseSpec;

/// Why a text is not the value of an option. Displays the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidOption(String);

impl From<String> for InvalidOption {
    fn from(reason: String) -> Self {
        InvalidOption(reason)
    }
}

impl From<&str> for InvalidOption {
    fn from(reason: &str) -> Self {
        InvalidOption(reason.to_owned())
    }
}

impl From<InvalidOption> for String {
    fn from(error: InvalidOption) -> Self {
        error.0
    }
}

/// The target that `--target` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSpec {
    /// The API server that the kubeconfig names.
    Kube,
    /// `dir:PATH`: a folder that represents a cluster.
    Dir(PathBuf),
    /// `git:REVISION`: the files of a commit.
    Git(GitSpec),
    /// `git:REVISION,REVISION…`: each of these commits by itself; at least two.
    Commits(Vec<GitSpec>),
    /// `chart:CHART`: what Helm renders from a chart, which is named as for `-f`.
    Chart(String),
    /// `helm:RELEASE`: what Helm recorded with a release.
    HelmRelease(HelmReleaseSpec),
}

/// The formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[expect(missing_docs, reason = "the documentation of a value is shown by `--help`, and its name says all")]
pub enum ReportFormat {
    Human,
    Json,
    Yaml,
    Sarif,
    Junit,
    Markdown,
    Github,
    Gitlab,
    Html,
    Name,
}

/// The names of all values of a flag.
pub fn names_of<E: ValueEnum>() -> Vec<String> {
    let values = E::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}

/// Whose verdict about the upgrade of a CRD counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PresetFlag {
    /// The documented rules of kapp and OLM
    Documented,
    /// What provably breaks objects
    Semantic,
    /// What breaks the objects of this cluster
    Evidence,
    /// Exactly the verdict of kapp
    Kapp,
    /// Exactly the verdict of OLM v1
    OlmV1,
    /// The rules that classic OLM documents
    OlmClassic,
    /// Exactly the verdict of crdify
    Crdify,
}

/// Which findings block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[expect(missing_docs, reason = "the documentation of a value is shown by `--help`, and its name says all")]
pub enum FailOn {
    #[default]
    Error,
    Warning,
}

/// Whether the lines of kapp and OLM about a blocked CRD are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum KappLines {
    /// For scripts: if stderr is not a terminal, and with the preset of such a tool, but not with `-q`.
    #[default]
    Auto,
    /// Not at all.
    Never,
}

/// The output formats of commands without a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the documentation of a value is shown by `--help`, and its name says all")]
pub enum ListFormat {
    Human,
    Json,
}

/// The command whose permissions `gantry permissions` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PermissionPurpose {
    /// `gantry deploy`, and with it `check` and `diff`.
    Deploy,
    /// `gantry snapshot`.
    Snapshot,
    /// `gantry migrate`.
    Migrate,
}

/// Who writes the objects of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MigrationWriterFlag {
    /// gantry.
    Gantry,
    /// The controller of `StorageVersionMigration`.
    Server,
}

/// The output formats of `gantry catalog`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the documentation of a value is shown by `--help`, and its name says all")]
pub enum CatalogFormat {
    Human,
    Json,
    Mermaid,
    Dot,
}

/// The output formats of `gantry catalog diff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the documentation of a value is shown by `--help`, and its name says all")]
pub enum CatalogDiffFormat {
    Human,
    Json,
    Markdown,
}

/// The objects that a diff shows line by line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffKind {
    /// Only existing objects; each created object has one line.
    Changes,
    /// Also created objects.
    Full,
}

/// `FORMAT` or `FORMAT=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSpec {
    /// The format that is written.
    pub format: ReportFormat,
    /// `None` for standard output.
    pub file: Option<PathBuf>,
}

impl OutputSpec {
    /// What the usage of the flag calls its value.
    pub const VALUE_NAME: &str = "FORMAT[=FILE]";

    /// The names of the formats.
    pub fn formats() -> Vec<String> {
        names_of::<ReportFormat>()
    }

    /// The help of the flag.
    pub fn help() -> String {
        let formats = Self::formats().join(", ");
        format!("The report's format ({formats}), and a file to write it to; can be repeated [default: human]")
    }
}

impl FromStr for OutputSpec {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let (name, file) = match text.split_once('=') {
            Some((_, "")) => return Err("a file name is missing after =".into()),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = ReportFormat::from_str(name, false)
            .map_err(|_| format!("unknown format {name:?}; known: {}", names_of::<ReportFormat>().join(", ")))?;
        Ok(OutputSpec { format, file })
    }
}

impl TargetSpec {
    /// What `--target` accepts, for messages.
    const SYNTAX: &str = "kube, dir:PATH, git:REV,…[:PATH], chart:CHART, helm:[NAMESPACE/]RELEASE[:REVISION]";

    /// Whether nothing can be written there.
    pub fn is_read_only(&self) -> bool {
        match self {
            TargetSpec::Kube | TargetSpec::Dir(_) => false,
            TargetSpec::Git(_) | TargetSpec::Commits(_) | TargetSpec::Chart(_) | TargetSpec::HelmRelease(_) => true,
        }
    }

    fn of_commits(mut specs: Vec<GitSpec>) -> Self {
        match (specs.len(), specs.pop()) {
            (1, Some(spec)) => TargetSpec::Git(spec),
            (_, last) => TargetSpec::Commits(specs.into_iter().chain(last).collect()),
        }
    }

    /// The target that several values name together.
    ///
    /// # Errors
    /// There are several, and not all of them are commits.
    pub fn unite(targets: Vec<TargetSpec>) -> Result<TargetSpec, InvalidOption> {
        let several = targets.len() > 1;
        let mut specs: Vec<GitSpec> = Vec::new();
        for target in targets {
            let of_target = match target {
                TargetSpec::Git(spec) => vec![spec],
                TargetSpec::Commits(of_target) => of_target,
                _ if several => {
                    return Err("only commits can be several targets: git:REV".into());
                }
                target => return Ok(target),
            };
            for spec in of_target {
                if !specs.contains(&spec) {
                    specs.push(spec);
                }
            }
        }
        match specs.is_empty() {
            true => Err("no target is named".into()),
            false => Ok(TargetSpec::of_commits(specs)),
        }
    }

    /// The target as its flag names it: one text for each commit. `None` if a path is not UTF-8.
    pub fn texts(&self) -> Option<Vec<String>> {
        match self {
            TargetSpec::Kube => Some(vec!["kube".to_owned()]),
            TargetSpec::Dir(path) => path.to_str().map(|path| vec![format!("dir:{path}")]),
            TargetSpec::Git(spec) => Some(vec![spec.to_string()]),
            TargetSpec::Commits(specs) => Some(specs.iter().map(ToString::to_string).collect()),
            TargetSpec::Chart(chart) => Some(vec![format!("chart:{chart}")]),
            TargetSpec::HelmRelease(spec) => Some(vec![spec.to_string()]),
        }
    }
}

impl FromStr for TargetSpec {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        match text.split_once(':') {
            None if text == "kube" => Ok(TargetSpec::Kube),
            Some(("dir", "")) => Err("a path is missing after dir:".into()),
            Some(("dir", path)) => Ok(TargetSpec::Dir(PathBuf::from(path))),
            Some(("git", specs)) => Ok(TargetSpec::of_commits(GitSpec::parse_several(specs)?)),
            Some(("chart", "")) => Err("a chart is missing after chart:".into()),
            Some(("chart", chart)) => Ok(TargetSpec::Chart(chart.to_owned())),
            Some(("helm", release)) => Ok(TargetSpec::HelmRelease(release.parse()?)),
            _ => Err(format!("unknown target {text:?}; known: {}", TargetSpec::SYNTAX).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_targets_parse_or_are_refused_with_a_reason() {
        let json: OutputSpec = "json=report.json".parse().unwrap();
        assert_eq!(json, OutputSpec { format: ReportFormat::Json, file: Some("report.json".into()) });
        assert!("xml".parse::<OutputSpec>().unwrap_err().to_string().contains("known: human, json"));
        assert!("json=".parse::<OutputSpec>().is_err());
        assert_eq!("dir:a:b".parse(), Ok(TargetSpec::Dir("a:b".into())));
        assert!("git".parse::<TargetSpec>().is_err());
        let target = |text: &str| text.parse::<TargetSpec>().unwrap();
        assert!(matches!(target("git:a,a"), TargetSpec::Git(_)));
        let united = TargetSpec::unite(vec![target("git:a,b:x"), target("git:c"), target("git:c")]).unwrap();
        assert_eq!(united.texts().unwrap(), ["git:a:x", "git:b:x", "git:c"]);
        assert!(TargetSpec::unite(vec![target("kube"), target("git:c")]).is_err());
        assert!("dir:".parse::<TargetSpec>().is_err());
    }
}

/// What a deploy waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitPolicy {
    /// Until all objects that it wrote are ready
    True,
    /// Until the CRDs that it wrote are served
    Crds,
    /// Only until CRDs whose objects it writes are served
    False,
}

impl WaitPolicy {
    /// The value of the flag.
    pub fn name(self) -> &'static str {
        match self {
            WaitPolicy::True => "true",
            WaitPolicy::Crds => "crds",
            WaitPolicy::False => "false",
        }
    }
}

impl FromStr for WaitPolicy {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        match text {
            "true" | "1" => Ok(WaitPolicy::True),
            "crds" => Ok(WaitPolicy::Crds),
            "false" | "0" => Ok(WaitPolicy::False),
            _ => Err(format!("{text:?} is not true, crds or false").into()),
        }
    }
}

/// Whether to delete members of an app that are no longer in the manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Prune {
    /// Ask on a terminal, together with the question before writing.
    Ask,
    /// Without asking.
    Yes,
    /// Members that left the manifests stay.
    No,
}

/// The values of `--prune`: those of [`Prune`], and one for an app that is taken over from kapp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the documentation of a value is shown by `--help`, and its name says all")]
pub enum PruneFlag {
    /// Ask on a terminal, together with the question before writing
    Ask,
    Yes,
    No,
    /// Yes, and also delete objects of the app of --from-kapp that are not in the manifests
    Kapp,
}

impl From<PruneFlag> for Prune {
    fn from(flag: PruneFlag) -> Self {
        match flag {
            PruneFlag::Ask => Prune::Ask,
            PruneFlag::Yes | PruneFlag::Kapp => Prune::Yes,
            PruneFlag::No => Prune::No,
        }
    }
}

/// What the admission webhook does with a finding that is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum AdmissionMode {
    /// The change is allowed, and not looked at.
    Ignore,
    /// The change is allowed; the verdict is in the log and in the API server's audit log.
    Audit,
    /// The change is allowed, with warnings to the client.
    Warn,
    /// The change is refused.
    Deny,
}

impl AdmissionMode {
    /// Its word in configuration, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            AdmissionMode::Ignore => "ignore",
            AdmissionMode::Audit => "audit",
            AdmissionMode::Warn => "warn",
            AdmissionMode::Deny => "deny",
        }
    }
}

/// What the admission webhook does, where it denies, with a change that it could not judge in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnjudgedChange {
    /// The change is refused.
    Deny,
    /// The change is allowed, with a warning to the client.
    Warn,
}

/// The maximum number of members that one deploy deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneMax {
    /// This many members.
    Number(usize),
    /// In percent of the app's members.
    Share(u8),
}

impl PruneMax {
    /// Whether `deleted` of `members` members may be deleted.
    pub fn allows(self, deleted: usize, members: usize) -> bool {
        match self {
            PruneMax::Number(most) => deleted <= most,
            PruneMax::Share(share) => deleted.saturating_mul(100) <= members.saturating_mul(share.into()),
        }
    }
}

impl FromStr for PruneMax {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let wrong = || InvalidOption(format!("{text:?} is not a number or a share up to 100%"));
        match text.strip_suffix('%') {
            Some(share) => match share.parse() {
                Ok(share @ 0..=100) => Ok(PruneMax::Share(share)),
                _ => Err(wrong()),
            },
            None => text.parse().map(PruneMax::Number).map_err(|_| wrong()),
        }
    }
}

impl std::fmt::Display for PruneMax {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PruneMax::Number(most) => write!(f, "{most}"),
            PruneMax::Share(share) => write!(f, "{share}%"),
        }
    }
}
