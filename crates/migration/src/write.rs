//! Writes the objects of a proven migration, verifies that none is left, and trims the stored versions.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use serde_json::Value;
use tokio::sync::watch;

use crate::kind::{RewritePlaces, StoredKind};
use crate::mark::StoredSince;
use crate::metadata::{ListedMetadata, PAGE_OF_METADATA, StoredMethod, name_without_fields};
use crate::proof::{MigrationProof, ObjectProblem, OnObjects, explain_list_error};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::storage::{RewriteMethod, RewrittenObject, StorageRewrite, StorageRewriteError};
use gantry_cluster::{ListError, ListRequest};
use gantry_core::crd::Crd;
use gantry_core::problem::Problem;
use gantry_core::resource::Resource;
use gantry_core::text;

/// How often a request without a response is sent again, after these pauses. A pinned write can be repeated.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// After this many objects that could not be written, the rest is not tried.
const MAX_FAILURES: usize = 100;
/// How many passes may find objects that are left.
const PASSES: u32 = 5;

/// Writes the objects of migrations on one server.
#[derive(Clone, Copy)]
pub struct MigrationWriter<'a> {
    /// The server.
    pub server: &'a KubeTarget,
    /// The name that the writes have.
    pub field_manager: &'a str,
    /// The maximum number of writes at a time.
    pub parallel: usize,
}

/// The result of the writes.
#[derive(Debug)]
pub struct MigrationEnd {
    /// The CRD afterwards.
    pub kind: Option<StoredKind>,
    /// The number of writes that the server carried out, including those that changed nothing.
    pub written: u64,
    /// How many of them found that the object was at the storage version already.
    pub already_stored: u64,
    /// The number of objects that others wrote or deleted meanwhile; a write stores at the storage version.
    pub written_by_others: u64,
    /// Objects that were not written, with the reason.
    pub failed: Vec<ObjectProblem>,
    /// Why the migration is not complete.
    pub stop: Option<MigrationStop>,
    /// Whether `status.storedVersions` has only the storage version now.
    pub is_trimmed: bool,
    /// What could not be done besides; the migration is complete nevertheless.
    pub notices: Vec<Problem>,
}

impl MigrationEnd {
    /// Without a write, for this reason.
    pub fn stopped_by(stop: MigrationStop) -> Self {
        Self { stop: Some(stop), ..Self::nothing_written() }
    }

    fn nothing_written() -> Self {
        Self {
            kind: None,
            written: 0,
            already_stored: 0,
            written_by_others: 0,
            failed: Vec::new(),
            stop: None,
            is_trimmed: false,
            notices: Vec::new(),
        }
    }
}

/// Why a migration is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationStop {
    /// The user interrupted it.
    Interrupted,
    /// Some objects could not be written.
    Failed,
    /// Anything else.
    Problem(Problem),
}

/// The state of a pass over all objects.
struct RewritePass<'a> {
    crd: &'a Crd,
    places: RewritePlaces,
    since: Option<u64>,
    end: MigrationEnd,
    /// The objects that a write left at their resourceVersion, as hashes.
    unchanged: HashSet<u64>,
    hasher: RandomState,
}

impl RewritePass<'_> {
    fn hash(&self, object: &ListedMetadata, resource_version: &str) -> u64 {
        self.hasher.hash_one((&object.uid, resource_version))
    }

    /// Whether the object is, or may be, stored at another version, or has entries to move.
    fn is_left(&self, object: &ListedMetadata) -> bool {
        let is_old = match (self.since, object.revision()) {
            (Some(since), Some(revision)) => revision <= since,
            (Some(_), None) => true,
            (None, _) => false,
        };
        object.moves_entries() || is_old && !self.unchanged.contains(&self.hash(object, &object.resource_version))
    }
}

impl MigrationWriter<'_> {
    /// Writes every object that is left, until a pass over all objects finds none, and then trims the stored versions if
    /// `trims`. A run that is stopped or fails has lost nothing; another one continues.
    pub async fn write(
        &self,
        proof: &MigrationProof,
        trims: bool,
        stop: &watch::Receiver<bool>,
        on_objects: OnObjects<'_>,
    ) -> MigrationEnd {
        let MigrationProof { kind, old, since, to_write, .. } = proof;
        let (mut kind, to_write) = (kind.clone(), *to_write);
        let is_stored_elsewhere = !old.is_empty();
        let mut notices = Vec::new();
        let crd = kind.crd.clone();
        let mut pass = RewritePass {
            crd: &crd,
            places: kind.rewrite_places(),
            since: is_stored_elsewhere.then_some(since.resource_version),
            end: MigrationEnd::nothing_written(),
            unchanged: HashSet::new(),
            hasher: RandomState::new(),
        };
        if is_stored_elsewhere && to_write > 0 {
            kind = match kind.read_again(self.server).await {
                Ok(kind) => kind,
                Err(problem) => return pass.stopped(MigrationStop::Problem(problem)),
            };
            let marked = kind.clone().set_mark(self.server, since, self.field_manager).await;
            match marked {
                Ok(marked) => kind = marked,
                Err(problem) => notices.push(Problem {
                    message: format!(
                        "the CRD cannot be annotated, so another run will write all objects again: {}",
                        problem.message
                    ),
                    ..problem
                }),
            }
        }
        pass.end.notices = notices;
        let mut passes = 0;
        loop {
            let left = match self.pass(&mut pass, to_write, stop, on_objects).await {
                Ok(left) => left,
                Err(problem) => return pass.stopped(MigrationStop::Problem(problem)),
            };
            if *stop.borrow() {
                return pass.stopped(MigrationStop::Interrupted);
            }
            if !pass.end.failed.is_empty() {
                return pass.stopped(MigrationStop::Failed);
            }
            if left == 0 {
                break;
            }
            passes += 1;
            if passes >= PASSES {
                let problem = Problem::new(format!("{} kept changing", text::count(left as usize, "object")));
                return pass.stopped(MigrationStop::Problem(problem.help("run the same command again")));
            }
        }
        let complete = StoredSince { complete: true, ..since.clone() };
        self.finish(pass, kind, (is_stored_elsewhere && trims).then_some(complete)).await
    }

    /// Checks that the CRD is still the same, and trims its stored versions.
    async fn finish(&self, pass: RewritePass<'_>, kind: StoredKind, trims: Option<StoredSince>) -> MigrationEnd {
        let kind = match kind.read_again(self.server).await {
            Ok(kind) => kind,
            Err(problem) => return pass.stopped(MigrationStop::Problem(problem)),
        };
        let Some(complete) = trims else { return MigrationEnd { kind: Some(kind), ..pass.end } };
        // An admission webhook or policy that guards the list can see that nothing is left.
        let kind = kind.clone().set_mark(self.server, &complete, self.field_manager).await.unwrap_or(kind);
        match kind.trim(self.server, self.field_manager).await {
            Ok(kind) => MigrationEnd { kind: Some(kind), is_trimmed: true, ..pass.end },
            Err(problem) => {
                let message =
                    format!("all objects are migrated, but status.storedVersions was not trimmed: {}", problem.message);
                let help = problem.help.clone().unwrap_or_else(|| "run the same command again".to_owned());
                pass.stopped(MigrationStop::Problem(Problem { message, help: Some(help), ..problem }))
            }
        }
    }

    /// Lists all objects, and writes those that are left. Returns how many there were.
    async fn pass(
        &self,
        pass: &mut RewritePass<'_>,
        to_write: u64,
        stop: &watch::Receiver<bool>,
        on_objects: OnObjects<'_>,
    ) -> Result<u64, Problem> {
        let resource = pass.places.first.clone();
        let request = ListRequest { metadata_only: true, ..ListRequest::new(&resource, PAGE_OF_METADATA) };
        let mut pages = self.server.list(&request);
        let mut found = 0;
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(found),
                // What was written is no longer left.
                Err(ListError::Expired) => continue,
                Err(error) => return Err(explain_list_error(&error)),
            };
            let mut left = Vec::new();
            for item in page.items() {
                let object = ListedMetadata::read(item, pass.crd, &resource)
                    .ok_or_else(|| Problem::new("the list has an object without name, uid or resourceVersion"))?;
                if pass.is_left(&object) {
                    left.push(object);
                }
            }
            drop(page);
            found += left.len() as u64;
            let writes = stream::iter(left).map(|object| {
                let places = &pass.places;
                async move {
                    // The requests in flight are awaited, and no other one begins.
                    let answer = if *stop.borrow() { None } else { Some(self.rewrite(&object, places, false).await) };
                    (object, answer)
                }
            });
            let mut writes = writes.buffer_unordered(self.parallel);
            while let Some((object, answer)) = writes.next().await {
                match answer {
                    None => {}
                    Some(Ok(RewrittenObject { resource_version, .. })) => {
                        pass.end.written += 1;
                        if resource_version == object.resource_version {
                            pass.end.already_stored += 1;
                            let hash = pass.hash(&object, &resource_version);
                            pass.unchanged.insert(hash);
                        }
                    }
                    Some(Err(StorageRewriteError::Changed)) => pass.end.written_by_others += 1,
                    Some(Err(StorageRewriteError::Refused(problem) | StorageRewriteError::Unanswered(problem))) => {
                        pass.end.failed.push(ObjectProblem { object: object.place(), message: problem.message });
                    }
                }
                let done = pass.end.written + pass.end.written_by_others;
                on_objects(done, Some(to_write.max(done)));
            }
            if *stop.borrow() || pass.end.failed.len() >= MAX_FAILURES {
                return Ok(found);
            }
        }
    }

    /// Writes one object as it is.
    ///
    /// Server-side apply cannot parse some objects that other requests can write. But an update can make the server drop
    /// `managedFields`, so that the next apply of an owner would not remove what it no longer has. An update at another
    /// version may keep them.
    pub(crate) async fn rewrite(
        &self,
        object: &ListedMetadata,
        places: &RewritePlaces,
        is_dry_run: bool,
    ) -> Result<RewrittenObject, StorageRewriteError> {
        let answer = self.send(object, &places.first, object.method.borrow(), is_dry_run).await;
        let Err(StorageRewriteError::Refused(problem)) = &answer else { return answer };
        if problem.needs_right || !matches!(object.method, StoredMethod::EmptyApply) {
            return answer;
        }
        for resource in [&places.first].into_iter().chain(&places.others) {
            match self.send(object, resource, RewriteMethod::EmptyPatch, true).await {
                Ok(tried) if has_managed_fields(&tried.json, &object.managed_fields) => {
                    return match is_dry_run {
                        true => Ok(tried),
                        false => self.send(object, resource, RewriteMethod::EmptyPatch, false).await,
                    };
                }
                _ => {}
            }
        }
        answer
    }

    /// Sends one request, again if there is no response.
    async fn send(
        &self,
        object: &ListedMetadata,
        resource: &Resource,
        method: RewriteMethod<'_>,
        is_dry_run: bool,
    ) -> Result<RewrittenObject, StorageRewriteError> {
        let reference = object.reference(resource);
        let field_manager = name_without_fields(&object.managed_fields, self.field_manager);
        let rewrite = StorageRewrite {
            resource,
            object: &reference,
            uid: &object.uid,
            resource_version: &object.resource_version,
            method,
            field_manager: &field_manager,
        };
        for pause in PAUSES {
            match self.server.rewrite_stored(&rewrite, is_dry_run).await {
                Err(StorageRewriteError::Unanswered(_)) => tokio::time::sleep(pause).await,
                answer => return answer,
            }
        }
        self.server.rewrite_stored(&rewrite, is_dry_run).await
    }
}

impl RewritePass<'_> {
    fn stopped(self, stop: MigrationStop) -> MigrationEnd {
        MigrationEnd { stop: Some(stop), ..self.end }
    }
}

/// Whether an object has these `managedFields`.
fn has_managed_fields(object: &str, fields: &str) -> bool {
    let fields = serde_json::from_str::<Value>(fields);
    let object = serde_json::from_str::<Value>(object);
    fields.is_ok_and(|fields| object.is_ok_and(|object| object["metadata"]["managedFields"] == fields))
}
