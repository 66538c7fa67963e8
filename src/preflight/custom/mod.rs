//! Checks of a team's own, defined where they are configured: a program (`exec`) or an expression (`cel`).
//!
//! ```text
//! exec: plan ─► input ─► program ─► answer ─┬─► violations
//! cel:  plan ─► expression ─────────────────┘
//! ```
//!
//! To the rest of gantry they are checks like any other. What they find goes by the name of the check.

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

use super::{Check, CheckFuture, Context, CouldNotCheck, Subject, Violation};
use crate::config::{ConfigMap, ConfigReader, Definition, KnownKind, Withheld};
use crate::finding::Severity;
use crate::plan::Change;
use crate::problem::Location;
use crate::resource::Step;
use crate::secret;

/// Programs that run at the same time.
const AT_ONCE: usize = 4;

/// A kind of checks.
#[derive(Debug, Clone, Copy)]
pub struct KindEntry {
    /// The key of an entry of `preflightRules` that makes it such a check.
    pub key: &'static str,
    /// One line, for lists.
    pub summary: &'static str,
    pub runs_programs: bool,
    pub configure: fn(&mut ConfigReader<'_>),
    /// What a check of this kind does, in one line.
    pub describe: fn(&ConfigMap) -> String,
    /// Makes the check from a configuration that `configure` has found good.
    pub build: fn(Own, &ConfigMap, &Surroundings) -> Box<dyn Check>,
}

/// Every kind, sorted by key.
pub static KINDS: &[KindEntry] = &[cel::KIND, exec::KIND];

impl KindEntry {
    /// The kind as the configuration knows it.
    pub fn known(&self) -> KnownKind {
        KnownKind { key: self.key, about: self.summary, runs_programs: self.runs_programs, configure: self.configure }
    }
}

/// The page of the documentation.
pub const DOCS: &str = "docs/checks/own-checks.md";

/// What programs run in.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub working_directory: PathBuf,
    pub environment: BTreeMap<String, String>,
    /// One permit for each program that may run at the same time.
    permits: Arc<Semaphore>,
}

impl Surroundings {
    pub fn new(working_directory: PathBuf, environment: BTreeMap<String, String>) -> Self {
        Surroundings { working_directory, environment, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// The check that the configuration defines under `name`; `None` for one of gantry's.
pub fn build(
    name: &str,
    definition: &Definition,
    config: &ConfigMap,
    surroundings: &Surroundings,
) -> Option<Box<dyn Check>> {
    match definition {
        Definition::BuiltIn => None,
        Definition::NotRun { at, why } => Some(Box::new(NotRun { at: at.clone(), why: *why })),
        Definition::Own { kind, at } => {
            let kind = KINDS.iter().find(|known| known.key == *kind)?;
            Some((kind.build)(Own { name: name.to_owned(), at: at.clone() }, config, surroundings))
        }
    }
}

/// What a definition does, in one line.
pub fn describe(definition: &Definition, config: &ConfigMap) -> String {
    match definition {
        Definition::BuiltIn => String::new(),
        Definition::NotRun { why: Withheld::CameWithManifests, .. } => "not run: the manifests name it".to_owned(),
        Definition::NotRun { why: Withheld::NotAllowed, .. } => {
            "not run: programs of the project file need --allow-exec".to_owned()
        }
        Definition::Own { kind, .. } => {
            let kind = KINDS.iter().find(|known| known.key == *kind);
            kind.map(|kind| (kind.describe)(config)).unwrap_or_default()
        }
    }
}

/// A check by a program that must not run.
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

/// Which check it is and where it is defined.
#[derive(Debug, Clone)]
pub struct Own {
    pub name: String,
    pub at: Option<Location>,
}

impl Own {
    fn violation(&self, subject: Subject, severity: Severity, message: String, at: Vec<Step>) -> Violation {
        Violation {
            subject,
            rule: Cow::Owned(self.name.clone()),
            severity,
            version: None,
            path: None,
            message,
            fact: None,
            schema_changes: Vec::new(),
            complaint: None,
            documented: None,
            breaks: Vec::new(),
            verdict: None,
            semantic: None,
            witnesses: Vec::new(),
            affected: None,
            evidence: None,
            help: self.at.as_ref().map(|at| format!("the check is defined at {at}")).unwrap_or_default(),
            wording: None,
            explain: Some(Cow::Owned(self.name.clone())),
            at,
            label: None,
        }
    }
}

/// What may be shown of a text about an object: nothing of a Secret's values, and with `redact` of no object's.
fn shown(text: &str, change: &Change, redact: bool) -> String {
    if !redact && !change.desired.object.is_secret() {
        return text.to_owned();
    }
    let text = secret::without_values(text, &change.desired.raw.json());
    match &change.live {
        Some(live) => secret::without_values(&text, &live.raw.json()),
        None => text,
    }
}
