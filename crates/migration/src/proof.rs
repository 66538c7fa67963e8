//! What a migration would do.

use std::sync::Arc;
use std::time::Duration;

use crate::examine::MigrationLoss;
use crate::kind::StoredKind;
use crate::mark::StoredSince;
use crate::metadata::PAGE_OF_METADATA;
use gantry_cluster::ListError;
use gantry_core::hash::fnv128;
use gantry_core::problem::Problem;

/// How many lost values and refused objects are kept. All are counted, and all are part of the digest.
const KEPT: usize = 10_000;

/// An object that the server would not write, or that cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectProblem {
    /// `team-a/batch`, or `batch` for a cluster-scoped object.
    pub object: String,
    /// The server's words.
    pub message: String,
}

/// What a migration would do, as of one state of the objects.
#[derive(Debug)]
pub struct MigrationProof {
    /// The CRD.
    pub kind: StoredKind,
    /// The versions, other than the storage version, that objects may be stored at.
    pub old: Vec<Arc<str>>,
    /// The objects with a higher resourceVersion are at the storage version.
    pub(crate) since: StoredSince,
    /// Whether an earlier run has migrated some objects.
    pub is_continued: bool,
    /// The number of objects that exist.
    pub objects: u64,
    /// How many of them are to be written.
    pub to_write: u64,
    /// How many of these have entries in `managedFields` at a version that is not served.
    pub to_move: u64,
    /// The first lost values, in the order of the objects.
    pub losses: Vec<MigrationLoss>,
    /// The number of lost values.
    pub loss_count: u64,
    /// How long one write takes if as many as allowed are sent at a time, measured by dry runs. `None` if there were too
    /// few.
    pub pace: Option<Duration>,
    /// What cannot be known: an old version that is not served, and has fields that the storage version lacks.
    pub unproven: Vec<Problem>,
    /// The first objects that the server refuses to write, with its words.
    pub refused: Vec<ObjectProblem>,
    /// The number of such objects.
    pub refused_count: u64,
    pub(crate) digest: u128,
}

impl MigrationProof {
    /// Whether there is nothing to write and nothing to trim.
    pub fn is_needless(&self) -> bool {
        self.old.is_empty() && self.to_write == 0
    }

    /// How many requests the migration sends to the server at least: the writes, the pages of the list that verifies
    /// them, and the write that trims the stored versions.
    pub fn requests(&self) -> u64 {
        if self.is_needless() { 0 } else { self.to_write + self.objects.div_ceil(u64::from(PAGE_OF_METADATA)) + 1 }
    }

    /// The digest of everything that is lost or not known to survive. `None` if all of it survives.
    pub fn digest(&self) -> Option<String> {
        (self.loss_count > 0 || !self.unproven.is_empty()).then(|| format!("{:032x}", self.digest))
    }

    pub(crate) fn count_into_digest(&mut self, line: &str) {
        let mut text = self.digest.to_be_bytes().to_vec();
        text.extend(line.as_bytes());
        self.digest = fnv128(&text);
    }

    pub(crate) fn add_loss(&mut self, lost: MigrationLoss) {
        let MigrationLoss { object, version, path, value, becomes } = &lost;
        self.count_into_digest(&format!("{object}\n{version}\n{path}\n{value}\n{becomes:?}"));
        self.loss_count += 1;
        if self.losses.len() < KEPT {
            self.losses.push(lost);
        }
    }

    pub(crate) fn add_refusal(&mut self, object: String, message: String) {
        self.refused_count += 1;
        if self.refused.len() < KEPT {
            self.refused.push(ObjectProblem { object, message });
        }
    }
}

/// Called with the number of objects read so far, and with the total if it is known.
pub type OnObjects<'a> = &'a (dyn Fn(u64, Option<u64>) + Sync);

/// Why the objects of a CRD cannot be listed.
pub(crate) fn explain_list_error(error: &ListError) -> Problem {
    let problem = error.problem().cloned().unwrap_or_else(|| Problem::new(error.to_string()));
    match error {
        ListError::Conversion { .. } => problem
            .help("nothing of this CRD was written; when the webhook converts all objects, run the same command again"),
        _ => problem,
    }
}
