//! Writes revisions: before a deploy its manifests, and after it the outcome.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzEncoder;
use serde_json::json;

use super::manifests::RevisionText;
use super::{
    ABOUT, DATA, END, MOST, MOST_PARTS, MOST_UNPACKED, NUMBER, OF, Revision, RevisionEnd, RevisionHead,
    RevisionOutcome, Revisions, base, delete, part_name, secret, secrets,
};
use crate::app::members;
use crate::app::not_recorded::NotRecorded;
use crate::app::{App, MANAGER, SUFFIX};
use gantry_cluster::patience::Patience;
use gantry_cluster::{Apply, FormerTools, ListError, Target, WritePrecondition};
use gantry_core::hash::fnv128;
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject};

/// The field manager of the outcome, which an apply of the whole head does not have to repeat.
const OUTCOME_MANAGER: &str = "gantry-outcome";

/// A revision that was written, until its deploy has ended.
#[derive(Debug)]
pub struct KeptRevision {
    /// Its number.
    pub number: u32,
    object: ObjectRef,
    live: LiveObject,
    /// All revisions, with this one as the last.
    all: Revisions,
}

/// Why a revision was not written.
#[derive(Debug)]
pub struct NotKept {
    /// Why.
    pub problem: Problem,
    /// The revisions, if they could be listed.
    pub all: Revisions,
}

/// Writes a revision with an unused number. `head` lacks the number of parts and the digest.
///
/// # Errors
/// It cannot be written. The deploy can continue without it.
pub async fn keep(
    app: &App,
    head: RevisionHead,
    text: &RevisionText,
    patience: Patience<'_>,
    target: &Target,
) -> Result<KeptRevision, NotKept> {
    let mut all = match Revisions::list(app, target).await {
        Ok(all) => all,
        Err(error) => return Err(NotKept { problem: not_listed(&error), all: Revisions::default() }),
    };
    match write(app, head, text, &all, patience, target).await {
        Ok((revision, object, live)) => {
            let number = revision.number;
            all.list.push(revision);
            Ok(KeptRevision { number, object, live, all })
        }
        Err(problem) => Err(NotKept { problem, all }),
    }
}

fn not_listed(error: &ListError) -> Problem {
    error.problem().cloned().unwrap_or_else(|| Problem::new("the list of revisions kept expiring"))
}

async fn write(
    app: &App,
    head: RevisionHead,
    text: &RevisionText,
    all: &Revisions,
    patience: Patience<'_>,
    target: &Target,
) -> Result<(Revision, ObjectRef, LiveObject), Problem> {
    let too_large = || {
        let what = format!("the manifests are larger than the {} MiB that a revision keeps", MOST_UNPACKED >> 20);
        Problem::new(what).help("deploy them as several apps, or without revisions: --history=0")
    };
    if text.text().len() as u64 > MOST_UNPACKED {
        return Err(too_large());
    }
    let parts = pack(text.text(), MOST);
    if parts.len() > MOST_PARTS {
        return Err(too_large());
    }
    let number = all.last.checked_add(1).ok_or_else(|| {
        Problem::new(format!("a Secret with the label {OF} has the largest number that a revision can have"))
            .help("delete it: kubectl get secrets -l gantry.dev/revision-of shows them")
    })?;
    let head = RevisionHead { parts: parts.len(), sum: text.sum(), ..head };
    // An app that was renamed leaves the names of its Secrets as they are, and its name can be used again.
    let unique = fnv128(format!("{} {number} {} {}", app.id(), head.time, std::process::id()).as_bytes());
    let name = format!("{}{SUFFIX}.r{number}.{:06x}", base(app), unique & 0xff_ffff);
    let about = serde_json::to_string(&head).map_err(|error| Problem::new(error.to_string()))?;
    let create = async |name: &str, data: &[u8], annotations: serde_json::Value| {
        let object = secret(app, name);
        let raw = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": app.namespace,
                "labels": {OF: app.id(), NUMBER: number.to_string()},
                "annotations": annotations,
            },
            "type": "gantry.dev/revision",
            "data": {DATA: STANDARD.encode(data)},
        });
        let raw = RawObject::from_value(&raw);
        let written = patience.apply(&apply(&object, &raw, &WritePrecondition::Absent, MANAGER), target).await;
        match written {
            Ok(live) => Ok((object, live)),
            Err(error) => {
                Err(NotRecorded::from_error(error, &format!("{object} cannot be written"), target).await.problem)
            }
        }
    };
    let mut secrets_of = Vec::new();
    let resource = std::sync::Arc::new(secrets());
    for (index, part) in parts.iter().enumerate().skip(1) {
        let (_, live) = create(&part_name(&name, index + 1), part, json!({})).await?;
        secrets_of.extend(members::read(&live.raw.json(), &resource));
    }
    let first = parts.first().map_or(&[][..], Vec::as_slice);
    let (object, live) = create(&name, first, json!({ ABOUT: about })).await?;
    secrets_of.splice(0..0, members::read(&live.raw.json(), &resource));
    Ok((Revision { number, head: Ok(head), end: None, secrets: secrets_of }, object, live))
}

/// The compressed text, in parts of at most this many bytes.
pub(super) fn pack(text: &str, most: usize) -> Vec<Vec<u8>> {
    let mut packed = Vec::new();
    // Reading from memory does not fail.
    let _ = GzEncoder::new(text.as_bytes(), Compression::default()).read_to_end(&mut packed);
    packed.chunks(most).map(<[u8]>::to_vec).collect()
}

fn apply<'a>(object: &'a ObjectRef, raw: &'a RawObject, pin: &'a WritePrecondition, manager: &'a str) -> Apply<'a> {
    static SECRETS: std::sync::OnceLock<gantry_core::resource::Resource> = std::sync::OnceLock::new();
    Apply {
        resource: SECRETS.get_or_init(secrets),
        object,
        raw,
        live: None,
        pin,
        field_manager: manager,
        force_conflicts: true,
        former_tools: FormerTools::Keep,
        helm: None,
    }
}

impl Revision {
    /// Writes how its deploy ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn end(&self, end: &RevisionEnd, patience: Patience<'_>, target: &Target) -> Result<(), Problem> {
        let facts = &self.secrets[0].facts;
        let pin = WritePrecondition::At { uid: facts.uid.clone(), resource_version: facts.resource_version.clone() };
        write_end(&self.secrets[0].object, &pin, end, patience, target).await
    }
}

async fn write_end(
    object: &ObjectRef,
    pin: &WritePrecondition,
    end: &RevisionEnd,
    patience: Patience<'_>,
    target: &Target,
) -> Result<(), Problem> {
    let text = serde_json::to_string(end).map_err(|error| Problem::new(error.to_string()))?;
    let metadata = json!({"name": object.name, "namespace": object.namespace, "annotations": {END: text}});
    let raw = RawObject::from_value(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
    match patience.apply(&apply(object, &raw, pin, OUTCOME_MANAGER), target).await {
        Ok(_) => Ok(()),
        Err(error) => {
            let what = format!("the outcome of the deploy cannot be written to {object}");
            Err(NotRecorded::from_error(error, &what, target).await.problem)
        }
    }
}

impl KeptRevision {
    /// Writes how the deploy ended, and deletes revisions that are more than `kept`. Returns the revision to go back
    /// to, and what could not be written.
    pub async fn end(
        mut self,
        end: RevisionEnd,
        kept: u32,
        patience: Patience<'_>,
        target: &Target,
    ) -> (Revisions, Vec<Problem>) {
        let LiveObject { uid, resource_version, .. } = &self.live;
        let pin = WritePrecondition::At { uid: uid.clone(), resource_version: resource_version.clone() };
        let mut problems: Vec<Problem> =
            write_end(&self.object, &pin, &end, patience, target).await.err().into_iter().collect();
        let is_deployed = end.outcome == RevisionOutcome::Deployed;
        if let (Some(own), true) = (self.all.list.last_mut(), problems.is_empty()) {
            own.end = Some(end);
        }
        // Without a right, each would fail in the same way.
        if problems.is_empty() || is_deployed {
            for secret in self.all.superseded(kept as usize) {
                if let Err(problem) = delete(secret, target).await {
                    problems.push(problem);
                    break;
                }
            }
        }
        (self.all, problems)
    }
}
