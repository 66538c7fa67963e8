//! Checks that users define in the configuration: a program (`exec`) or an expression (`cel`).
//!
//! ```text
//! exec: plan ─► input ─► program ─► answer ─┬─► violations
//! cel:  plan ─► expression ─────────────────┘
//! ```
//!
//! The rest of gantry treats them like built-in checks. The rule of their findings is the name of the check.

mod answer;
mod cel;
mod exec;
mod field;
mod input;
#[cfg(test)]
mod schema;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{Check, CheckFuture, Context, CouldNotCheck, Violation, ViolationSubject};
use gantry_core::finding::{FindingBody, Severity};
use gantry_core::problem::Location;
use gantry_core::resource::Step;
use gantry_core::secret;
use gantry_deploy::config::{CheckConfig, CheckDefinition, ConfigReader, KnownKind, Withheld};
use gantry_deploy::plan::Change;

/// How many programs run at the same time.
const AT_ONCE: usize = 4;

/// A kind of custom check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KindEntry {
    /// The key in an entry of `preflightRules` that defines such a check.
    pub key: &'static str,
    /// One line, for lists.
    pub summary: &'static str,
    pub runs_programs: bool,
    pub configure: fn(&mut ConfigReader<'_>),
    /// A one-line description of a check of this kind.
    pub describe: fn(&CheckConfig) -> String,
    /// Builds the check from a configuration that `configure` has accepted.
    pub build: fn(CustomCheckIdentity, &CheckConfig, &ProgramEnvironment) -> Box<dyn Check>,
}

/// Every kind, sorted by key.
pub(crate) static KINDS: &[KindEntry] = &[cel::KIND, exec::KIND];

impl KindEntry {
    /// The kind as the configuration reader needs it.
    pub fn known(&self) -> KnownKind {
        KnownKind { key: self.key, about: self.summary, runs_programs: self.runs_programs, configure: self.configure }
    }
}

/// The path of the documentation page.
pub(crate) const DOCS: &str = "docs/checks/own-checks.md";

/// The environment in which programs run.
#[derive(Debug, Clone)]
pub struct ProgramEnvironment {
    /// The folder that the programs are started in.
    pub working_directory: PathBuf,
    /// All variables that they get.
    pub environment: BTreeMap<String, String>,
    /// One permit for each program that may run at the same time.
    permits: Arc<Semaphore>,
}

impl ProgramEnvironment {
    /// Programs started in this folder with these variables; a few run at the same time.
    pub fn new(working_directory: PathBuf, environment: BTreeMap<String, String>) -> Self {
        ProgramEnvironment { working_directory, environment, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// The check that the configuration defines under `name`; `None` for a built-in check.
pub fn build(
    name: &str,
    definition: &CheckDefinition,
    config: &CheckConfig,
    surroundings: &ProgramEnvironment,
) -> Option<Box<dyn Check>> {
    match definition {
        CheckDefinition::BuiltIn => None,
        CheckDefinition::NotRun { at, why } => Some(Box::new(NotRun { at: at.clone(), why: *why })),
        CheckDefinition::Own { kind, at } => {
            let kind = KINDS.iter().find(|known| known.key == *kind)?;
            Some((kind.build)(CustomCheckIdentity { name: name.to_owned(), at: at.clone() }, config, surroundings))
        }
    }
}

/// A one-line description of a definition.
pub(crate) fn describe(definition: &CheckDefinition, config: &CheckConfig) -> String {
    match definition {
        CheckDefinition::BuiltIn => String::new(),
        CheckDefinition::NotRun { why: Withheld::CameWithManifests, .. } => "not run: the manifests name it".to_owned(),
        CheckDefinition::NotRun { why: Withheld::NotAllowed, .. } => {
            "not run: programs of the project file need --allow-exec".to_owned()
        }
        CheckDefinition::Own { kind, .. } => {
            let kind = KINDS.iter().find(|known| known.key == *kind);
            kind.map(|kind| (kind.describe)(config)).unwrap_or_default()
        }
    }
}

/// A check whose program must not run.
struct NotRun {
    at: Option<Location>,
    why: Withheld,
}

impl Check for NotRun {
    fn run<'a>(&'a self, _: Context<'a>) -> CheckFuture<'a> {
        let at = self.at.as_ref().map(|at| format!(" ({at})")).unwrap_or_default();
        let (message, help) = match self.why {
            Withheld::CameWithManifests => (
                format!("the manifests name this program{at}, and gantry does not run programs from manifests"),
                "define the check in a config file (-c FILE), or disable it there: enabled: false",
            ),
            Withheld::NotAllowed => (
                format!("the project file names this program{at}, and you have not allowed it to run"),
                "if you trust the file, use --allow-exec (or GANTRY_ALLOW_EXEC=1), pass the file with -c, or set \
                 allowExec: true in your user config file",
            ),
        };
        Box::pin(async move { Err(CouldNotCheck { message, help: Some(help.to_owned()) }) })
    }

    fn needs_live_objects(&self) -> bool {
        false
    }
}

/// The name of a custom check and the place of its definition.
#[derive(Debug, Clone)]
pub(crate) struct CustomCheckIdentity {
    pub name: String,
    pub at: Option<Location>,
}

impl CustomCheckIdentity {
    fn violation(&self, subject: ViolationSubject, severity: Severity, message: String, at: Vec<Step>) -> Violation {
        Violation {
            subject,
            rule: Cow::Owned(self.name.clone()),
            severity,
            may_be_accepted: false,
            at,
            body: FindingBody {
                message,
                help: self.at.as_ref().map(origin_text).unwrap_or_default(),
                explain: Some(Cow::Owned(self.name.clone())),
                ..FindingBody::default()
            },
        }
    }
}

/// `from gantry.yaml:10`
fn origin_text(at: &Location) -> String {
    format!("from {}", Location { column: 0, ..at.clone() })
}

/// Hides values in a text about an object: those of Secrets, and with `redact` those of any object.
fn shown_text(text: &str, change: &Change, redact: bool) -> String {
    if !redact && !change.desired.object.is_secret() {
        return text.to_owned();
    }
    let text = secret::without_values(text, &change.desired.raw.json());
    match &change.live {
        Some(live) => secret::without_values(&text, &live.raw.json()),
        None => text,
    }
}
