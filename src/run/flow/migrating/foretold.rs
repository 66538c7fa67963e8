//! What is known, before a deploy writes anything, about the stored objects that it moves afterwards; and the entries of the
//! report about all objects that it moves.

use gantry_core::crd::{Crd, CrdVersion, lost_fields};
use gantry_core::problem::Problem;
use gantry_core::text::{self, sanitize};
use gantry_migration::{MigrationEnd, MigrationStop, StoredKind};
use gantry_report::{MigrationEntry, MigrationOutcome, MigrationResult, MigrationTime, Report};

use crate::run::migrate::Migration;

/// How many fields are named.
const FIELDS: usize = 5;

/// A CRD whose stored objects move when it is deployed.
pub struct LaterMigration {
    pub name: String,
    /// The storage version of the manifest.
    storage: String,
    /// `None` if they could not be counted.
    objects: Option<u64>,
    keeps: Keeps,
}

/// What the schemas say about the values of the objects.
enum Keeps {
    All,
    /// The new storage version lacks these fields.
    AllBut(Vec<String>),
    /// A webhook converts, so only its answers tell.
    Unknown,
}

impl LaterMigration {
    pub fn new(kind: &StoredKind, desired: &Crd, storage: &CrdVersion, objects: Option<u64>) -> Self {
        let stored = kind.crd.stored_versions().into_iter().filter(|version| **version != *storage.name);
        // The server reads what is stored with the schemas of the manifest.
        let versions = stored.filter_map(|version| desired.version(version));
        let keeps = if desired.converts_by_webhook() {
            Keeps::Unknown
        } else if desired.preserve_unknown_fields {
            Keeps::All
        } else {
            let mut lost: Vec<String> =
                versions.flat_map(|version| lost_fields::lost_between(version, storage)).collect();
            lost.sort();
            lost.dedup();
            if lost.is_empty() { Keeps::All } else { Keeps::AllBut(lost) }
        };
        Self { name: kind.name().to_owned(), storage: storage.name.to_string(), objects, keeps }
    }

    /// What will be done, as a line.
    pub fn plan(&self) -> Problem {
        let (name, storage) = (sanitize(&self.name), sanitize(&self.storage));
        let objects = self.objects.map(|objects| text::count(usize::try_from(objects).unwrap_or(usize::MAX), "object"));
        let objects = objects.unwrap_or_else(|| "its objects".to_owned());
        let keeps = match &self.keeps {
            Keeps::All => format!("{storage} has every field that they can have"),
            Keeps::AllBut(fields) => {
                let more = match fields.len().saturating_sub(FIELDS) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let fields: Vec<_> = fields.iter().take(FIELDS).map(|field| sanitize(field)).collect();
                format!(
                    "{storage} lacks {}{more}: if an object has a value there, none of them moves",
                    fields.join(", ")
                )
            }
            Keeps::Unknown => "what the conversion webhook makes of them is known then".to_owned(),
        };
        Problem::new(format!(
            "after the deploy: {name}: {objects}, to write at {storage}; {keeps}; each is proven before the first of them is \
             written"
        ))
    }

    pub fn entry(&self) -> MigrationEntry {
        MigrationEntry {
            crd: self.name.clone(),
            when: MigrationTime::AfterDeploy,
            storage_version: self.storage.clone(),
            objects: self.objects,
            to_write: None,
            result: None,
        }
    }
}

/// The entry about a proven migration, with its result if there is one.
pub fn entry_of(Migration { proof, end }: &Migration, when: MigrationTime) -> MigrationEntry {
    MigrationEntry {
        crd: proof.kind.name().to_owned(),
        when,
        storage_version: proof.kind.storage_version().to_owned(),
        objects: Some(proof.objects),
        to_write: Some(proof.to_write),
        result: end.as_ref().map(result_of),
    }
}

fn result_of(end: &MigrationEnd) -> MigrationResult {
    let outcome = match &end.stop {
        None => MigrationOutcome::Migrated,
        Some(MigrationStop::Interrupted) => MigrationOutcome::Interrupted,
        Some(MigrationStop::Failed | MigrationStop::Problem(_)) => MigrationOutcome::Failed,
    };
    let stored = end.kind.as_ref().map(|kind| kind.crd.stored_versions().into_iter().map(str::to_owned).collect());
    MigrationResult { outcome, written: end.written, stored_versions: stored }
}

/// Replaces what the report says of these CRDs.
pub fn note(report: &mut Report, entries: impl IntoIterator<Item = MigrationEntry>) {
    for entry in entries {
        match report.migrations.iter_mut().find(|known| known.crd == entry.crd && known.when == entry.when) {
            Some(known) => *known = entry,
            None => report.migrations.push(entry),
        }
    }
}

/// Nothing of these is written: values would be lost, or objects are refused.
pub fn note_blocked(report: &mut Report, crds: &[&str]) {
    for entry in report.migrations.iter_mut().filter(|entry| crds.contains(&entry.crd.as_str())) {
        let outcome = MigrationOutcome::Blocked;
        entry.result = Some(MigrationResult { outcome, written: 0, stored_versions: None });
    }
}
