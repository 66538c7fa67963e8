//! Reads every object before anything is written: which values a migration loses, and which writes the server refuses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};

use crate::examine::{LossForecast, MigrationLoss, WriteForecast, show_value};
use crate::kind::StoredKind;
use crate::metadata::{ListedMetadata, PAGE_OF_METADATA};
use crate::proof::{MigrationProof, OnObjects, explain_list_error};
use crate::write::MigrationWriter;
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::storage::StorageRewriteError;
use gantry_cluster::{ListError, ListPage, ListRequest, RewriteError};
use gantry_core::crd::CrdVersion;
use gantry_core::crd::conversion_loss::{self, ConversionLoss};
use gantry_core::parallel::{in_parallel, on_cpu_thread};
use gantry_core::problem::Problem;
use gantry_core::resource::{RawObject, Resource};
use gantry_core::text;
use gantry_k8s_cel::KubernetesRelease;

/// The number of objects on one page of a list.
const PAGE: u32 = 500;
/// How many objects are tried by a dry run even if nothing speaks against their write: a webhook or a policy may.
const SAMPLE: usize = 24;

/// An object that a migration will write.
struct ObjectToWrite {
    object: ListedMetadata,
    /// The object itself, if its write is tried by a dry run.
    whole: Option<RawObject>,
    /// Whether the server may refuse the write.
    is_doubtful: bool,
}

/// Proves migrations on one server.
#[derive(Clone, Copy)]
pub struct MigrationProver<'a> {
    /// The server.
    pub server: &'a KubeTarget,
    /// The name that the later writes will have.
    pub field_manager: &'a str,
    /// The maximum number of dry runs at a time.
    pub parallel: usize,
}

impl MigrationProver<'_> {
    /// Reads the objects of the CRD, and dry-runs those writes that the server may refuse. Writes nothing.
    ///
    /// # Errors
    /// The objects cannot be listed or converted.
    pub async fn prove(&self, kind: StoredKind, on_objects: OnObjects<'_>) -> Result<MigrationProof, Problem> {
        let old: Vec<Arc<str>> = kind.old_versions().map(|version| Arc::clone(&version.name)).collect();
        let release = self.server.release().await.unwrap_or_default();
        let mark = kind.mark();
        if !old.is_empty() && mark.is_none() {
            kind.wait_until_in_force().await;
        }
        let since = mark.as_ref().map(|mark| mark.resource_version);
        let mut proof = MigrationProof {
            is_continued: since.is_some(),
            since: kind.mark_since(since.unwrap_or_default()),
            kind,
            old,
            objects: 0,
            to_write: 0,
            to_move: 0,
            pace: None,
            losses: Vec::new(),
            loss_count: 0,
            unproven: Vec::new(),
            refused: Vec::new(),
            refused_count: 0,
            digest: 0,
        };
        self.read_all(&mut proof, release, since, on_objects).await?;
        if proof.to_write > 0 && !proof.old.is_empty() {
            self.compare_versions(&mut proof, on_objects).await?;
        }
        Ok(proof)
    }

    /// Counts the objects to write, and finds those that the server refuses.
    async fn read_all(
        &self,
        proof: &mut MigrationProof,
        release: KubernetesRelease,
        since: Option<u64>,
        on_objects: OnObjects<'_>,
    ) -> Result<(), Problem> {
        let resource = proof.kind.resource();
        let forecast = match (proof.kind.requested(), proof.old.is_empty()) {
            (Some(version), false) => Some(Arc::new(WriteForecast::new(version, release)?)),
            _ => None,
        };
        let page_size = if forecast.is_some() { PAGE } else { PAGE_OF_METADATA };
        let request = ListRequest { metadata_only: forecast.is_none(), ..ListRequest::new(&resource, page_size) };
        let mut pages = self.server.list(&request);
        let mut since = since;
        let mut sample: Vec<(ListedMetadata, RawObject)> = Vec::new();
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(ListError::Expired) => {
                    // The server begins again.
                    (proof.objects, proof.to_write, proof.to_move, proof.refused_count) = (0, 0, 0, 0);
                    proof.refused.clear();
                    sample.clear();
                    continue;
                }
                Err(error) => return Err(explain_list_error(&error)),
            };
            let since = match since {
                Some(since) => since,
                None => {
                    let first = page.resource_version().parse().map_err(|_| unnumbered(&resource))?;
                    proof.since = proof.kind.mark_since(first);
                    *since.insert(first)
                }
            };
            proof.objects += page.len() as u64;
            on_objects(proof.objects, page.remaining().map(|remaining| remaining + proof.objects));
            let sampled = SAMPLE.saturating_sub(sample.len());
            let to_write = self.read_page(page, proof, forecast.clone(), since, sampled).await?;
            proof.to_write += to_write.len() as u64;
            proof.to_move += to_write.iter().filter(|to_write| to_write.object.moves_entries()).count() as u64;
            let mut doubtful = Vec::new();
            for ObjectToWrite { object, whole, is_doubtful } in to_write {
                let Some(whole) = whole else { continue };
                if is_doubtful { &mut doubtful } else { &mut sample }.push((object, whole));
            }
            let answered = self.try_writes(proof, doubtful).await?;
            proof.pace = quickest_pace(&answered, self.parallel).or(proof.pace);
        }
        // Last: a server whose CRD has just changed answers slowly at first, because it still loads the objects, and the
        // pace of the sample foretells how long the migration takes.
        let answered = self.try_writes(proof, sample).await?;
        proof.pace = quickest_pace(&answered, self.parallel).or(proof.pace);
        Ok(())
    }

    /// Dry-runs the writes of `objects`, and adds to the proof what the server refuses or removes. Returns the times of
    /// the answers.
    async fn try_writes(
        &self,
        proof: &mut MigrationProof,
        objects: Vec<(ListedMetadata, RawObject)>,
    ) -> Result<Vec<Instant>, Problem> {
        let writer =
            MigrationWriter { server: self.server, field_manager: self.field_manager, parallel: self.parallel };
        let places = proof.kind.rewrite_places();
        let mut answered = Vec::with_capacity(objects.len());
        let tries = stream::iter(objects).map(|(object, before)| {
            let (writer, places) = (&writer, &places);
            async move { (object.place(), before, writer.rewrite(&object, places, true).await) }
        });
        let mut tries = tries.buffered(self.parallel);
        while let Some((place, before, answer)) = tries.next().await {
            answered.push(Instant::now());
            match answer {
                Ok(after) => add_removed(proof, &place, &before, &after.json),
                Err(StorageRewriteError::Changed) => {}
                Err(StorageRewriteError::Refused(problem)) if problem.needs_right => return Err(problem),
                Err(StorageRewriteError::Refused(problem)) => proof.add_refusal(place, problem.message),
                Err(StorageRewriteError::Unanswered(problem)) => return Err(problem),
            }
        }
        Ok(answered)
    }

    /// The objects of a page that are to be written. Those of which the server may refuse that, and the first `sampled`
    /// others, are whole.
    async fn read_page(
        &self,
        page: ListPage,
        proof: &MigrationProof,
        forecast: Option<Arc<WriteForecast>>,
        since: u64,
        mut sampled: usize,
    ) -> Result<Vec<ObjectToWrite>, Problem> {
        let resource = proof.kind.resource();
        let crd = proof.kind.crd.clone();
        let read = on_cpu_thread(move || {
            let items: Vec<&str> = page.items().collect();
            let examine = |item: &&str| {
                let object = ListedMetadata::read(item, &crd, &resource).ok_or_else(|| unnamed(&resource))?;
                let revision = object.revision().ok_or_else(|| unnumbered(&resource))?;
                let is_old = forecast.is_some() && revision <= since;
                if !is_old && !object.moves_entries() {
                    return Ok(None);
                }
                let is_doubtful = object.moves_entries()
                    || forecast
                        .as_ref()
                        .is_some_and(|forecast| forecast.may_be_refused(&RawObject::new(*item).value()));
                Ok(Some((object, is_doubtful)))
            };
            let read = in_parallel(&items, examine).into_iter().zip(&items);
            let mut to_write = Vec::new();
            for (read, item) in read {
                let Some((object, is_doubtful)) = read? else { continue };
                let is_sampled = !is_doubtful && sampled > 0;
                sampled -= usize::from(is_sampled);
                let whole = (is_doubtful || is_sampled).then(|| RawObject::new(*item));
                to_write.push(ObjectToWrite { object, whole, is_doubtful });
            }
            Ok(to_write)
        });
        read.await.unwrap_or_else(|| Err(Problem::new("interrupted while reading objects; nothing was written")))
    }

    /// Finds the values that an old version shows and that the migration loses.
    async fn compare_versions(&self, proof: &mut MigrationProof, on_objects: OnObjects<'_>) -> Result<(), Problem> {
        let old: Vec<CrdVersion> = proof.kind.old_versions().cloned().collect();
        let by_webhook = proof.kind.crd.converts_by_webhook();
        for version in &old {
            let fields = if by_webhook { Vec::new() } else { proof.kind.fields_lost_from(version) };
            if !by_webhook && fields.is_empty() {
                // The storage version has every field of this one.
                continue;
            }
            if !version.served {
                let problem = unproven(&proof.kind, version, &fields);
                proof.count_into_digest(&problem.message);
                proof.unproven.push(problem);
            } else if by_webhook {
                self.convert_all(proof, version, on_objects).await?;
            } else {
                self.find_pruned(proof, version, on_objects).await?;
            }
        }
        Ok(())
    }

    /// The values of objects as read at an old version that the schemas on the way to the store prune.
    async fn find_pruned(
        &self,
        proof: &mut MigrationProof,
        version: &CrdVersion,
        on_objects: OnObjects<'_>,
    ) -> Result<(), Problem> {
        let kind = &proof.kind;
        let through = [kind.requested(), kind.storage()].into_iter().flatten();
        let mut through: Vec<&CrdVersion> = through.filter(|to| to.name != version.name).collect();
        through.dedup_by(|a, b| a.name == b.name);
        let forecast = Arc::new(LossForecast::new(&kind.crd, version, through)?);
        let resource = kind.crd.resource(&version.name);
        let since = proof.since.resource_version;
        let mut pages = self.server.list(&ListRequest::new(&resource, PAGE));
        let mut read = 0;
        while let Some(page) = next_page(&mut pages, proof.objects, &mut read, on_objects).await? {
            let (forecast, crd, resource) = (Arc::clone(&forecast), proof.kind.crd.clone(), resource.clone());
            let compared = on_cpu_thread(move || {
                let items: Vec<&str> = page.items().collect();
                let examine = |item: &&str| {
                    let object = ListedMetadata::read(item, &crd, &resource)?;
                    let place = object.place();
                    (object.revision()? <= since).then(|| {
                        let lost = forecast.find_losses(&mut RawObject::new(*item).value(), &place);
                        (place, lost)
                    })
                };
                in_parallel(&items, examine).into_iter().flatten().collect::<Vec<_>>()
            });
            for (place, lost) in compared.await.unwrap_or_default() {
                match lost {
                    Ok(lost) => lost.into_iter().for_each(|lost| proof.add_loss(lost)),
                    Err(message) => proof.add_refusal(place, message),
                }
            }
        }
        Ok(())
    }

    /// The values that a webhook loses or changes: the server converts each object to the storage version and back.
    async fn convert_all(
        &self,
        proof: &mut MigrationProof,
        version: &CrdVersion,
        on_objects: OnObjects<'_>,
    ) -> Result<(), Problem> {
        let resource = proof.kind.crd.resource(&version.name);
        let requested = proof.kind.resource();
        let since = proof.since.resource_version;
        let mut pages = self.server.list(&ListRequest::new(&resource, PAGE));
        let mut read = 0;
        while let Some(page) = next_page(&mut pages, proof.objects, &mut read, on_objects).await? {
            let objects: Vec<(ListedMetadata, RawObject)> = page
                .items()
                .filter_map(|item| {
                    Some((ListedMetadata::read(item, &proof.kind.crd, &resource)?, RawObject::new(item)))
                })
                .filter(|(object, _)| object.revision().is_some_and(|revision| revision <= since))
                .collect();
            let trips = stream::iter(objects).map(|(object, before)| {
                let (resource, requested) = (&resource, &requested);
                async move { (object.place(), self.convert(&object, &before, resource, requested).await) }
            });
            let mut trips = trips.buffered(self.parallel);
            while let Some((place, lost)) = trips.next().await {
                match lost {
                    Ok(lost) => lost.iter().for_each(|lost| proof.add_loss(loss_of(&place, &version.name, lost))),
                    Err(RewriteError::Gone | RewriteError::NotHere) => {}
                    Err(RewriteError::Conversion(said)) => proof.add_refusal(place, said),
                    Err(RewriteError::Other(problem)) => proof.add_refusal(place, problem.message),
                }
            }
        }
        Ok(())
    }

    async fn convert(
        &self,
        object: &ListedMetadata,
        before: &RawObject,
        resource: &Resource,
        requested: &Resource,
    ) -> Result<Vec<ConversionLoss>, RewriteError> {
        let before = before.value();
        let back = self.server.rewritten(resource, &object.reference(resource), self.field_manager).await?;
        let mut lost = conversion_loss::differences(&before, &back.value());
        if lost.is_empty() {
            return Ok(lost);
        }
        // Admission webhooks may set fields whenever an object is written; the conversion loses nothing then.
        let reference = object.reference(requested);
        let live = self.server.rewritten(requested, &reference, self.field_manager).await?.value();
        let again = self.server.rewritten(requested, &reference, self.field_manager).await?.value();
        let by_admission = conversion_loss::differences(&live, &again);
        lost.retain(|lost| !by_admission.iter().any(|other| lost.is_same_change(other)));
        Ok(lost)
    }
}

/// The next page of a list that is compared. A list that begins again is compared from its beginning: what was found so
/// far stays.
async fn next_page(
    pages: &mut gantry_cluster::kube::KubePages,
    total: u64,
    read: &mut u64,
    on_objects: OnObjects<'_>,
) -> Result<Option<ListPage>, Problem> {
    match pages.next().await {
        Ok(Some(page)) => {
            *read += page.len() as u64;
            on_objects(*read, Some(total.max(*read)));
            Ok(Some(page))
        }
        Ok(None) => Ok(None),
        Err(ListError::Expired) => Err(Problem::new("the server dropped the list while gantry read it")
            .help("run the same command again when the server is less busy")),
        Err(error) => Err(explain_list_error(&error)),
    }
}

/// Adds what an object has and lacks after the dry run of its write, which should change nothing.
fn add_removed(proof: &mut MigrationProof, place: &str, before: &RawObject, after: &str) {
    let removed = conversion_loss::differences(&before.value(), &RawObject::new(after).value());
    for lost in removed.iter().filter(|lost| lost.now.is_none()) {
        proof.add_loss(loss_of(place, proof.kind.storage_version(), lost));
    }
}

/// What an object at `place` loses of this version.
fn loss_of(place: &str, version: &str, ConversionLoss { path, value, now }: &ConversionLoss) -> MigrationLoss {
    MigrationLoss {
        object: place.to_owned(),
        version: version.to_owned(),
        path: text::sanitize(&conversion_loss::show_path(path)).into_owned(),
        value: show_value(value),
        becomes: now.as_ref().map(show_value),
    }
}

fn unproven(kind: &StoredKind, version: &CrdVersion, fields: &[String]) -> Problem {
    let (name, old, storage) = (text::sanitize(kind.name()), &version.name, kind.storage_version());
    let what = match fields {
        [] => format!("what the conversion webhook makes of objects that are stored at {old} cannot be compared"),
        fields => {
            let shown: Vec<&str> = fields.iter().take(10).map(String::as_str).collect();
            let more = fields.len().saturating_sub(shown.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(
                "objects of {name} that are stored at {old} can have values of {}{more}, which {storage} lacks",
                text::sanitize(&shown.join(", "))
            )
        }
    };
    Problem::new(format!("{what}: {old} is not served, so gantry cannot read them"))
        .help(format!("deploy the CRD with served: true for {old}, and run the same command again"))
}

fn unnumbered(resource: &Resource) -> Problem {
    Problem::new(format!("the server gives the objects of {} no numbers as resourceVersion", resource.plural))
        .help("only custom resources that the API server itself stores can be migrated")
}

fn unnamed(resource: &Resource) -> Problem {
    Problem::new(format!("the list of {} has an object without name, uid or resourceVersion", resource.plural))
}

/// The time for one write in the quickest stretch of as many answers as are awaited at a time; `None` if there are too
/// few. The first answers are no measure: the server has no connections yet, and after a change of the CRD no schema in
/// memory.
fn quickest_pace(answered: &[Instant], parallel: usize) -> Option<Duration> {
    let stretches = answered.iter().zip(answered.get(parallel..)?);
    let quickest = stretches.map(|(first, last)| last.duration_since(*first)).min()?;
    Some(quickest / u32::try_from(parallel).ok().filter(|parallel| *parallel > 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_quickest_stretch() {
        let begun = Instant::now();
        let answered = |millis: &[u64]| -> Vec<Instant> {
            millis.iter().map(|after| begun + Duration::from_millis(*after)).collect()
        };
        let slow_at_first = answered(&[900, 901, 1200, 1201, 1210, 1211, 1220]);
        assert_eq!(quickest_pace(&slow_at_first, 2), Some(Duration::from_millis(5)));
        assert_eq!(quickest_pace(&answered(&[1, 2]), 2), None);
        assert_eq!(quickest_pace(&answered(&[1, 2]), 8), None);
    }
}
