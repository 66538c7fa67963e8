//! What a CRD says about how its objects are stored.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::mark::{self, StoredSince};
use crate::proof::explain_list_error;
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{ApplyError, ListError, ListRequest, ObjectToRead};
use gantry_core::crd::lost_fields;
use gantry_core::crd::{Crd, CrdVersion};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, Resource};
use gantry_core::text;
use gantry_schema::scan;

/// How long an API server can still store objects at the former storage version after the CRD was written: each one
/// learns of the change from a watch.
const LAG: Duration = Duration::from_secs(5);
/// The number of objects on one page of a list that only counts them.
const PAGE: u32 = 100;

/// A live CRD, and how its objects are stored.
#[derive(Debug, Clone)]
pub struct StoredKind {
    /// The CRD as it was read.
    pub crd: Crd,
    live: LiveObject,
    metadata: KindMetadata,
    storage: Arc<str>,
    /// The version at which objects are read and written: the storage version if it is served.
    requested: Arc<str>,
    distrusts_status: bool,
}

/// Where the objects of a kind can be written as they are.
#[derive(Debug)]
pub(crate) struct RewritePlaces {
    /// At the storage version if it is served.
    pub first: Resource,
    /// At other served versions that have every field of the storage version, and no webhook converts.
    pub others: Vec<Resource>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KindMetadata {
    generation: i64,
    deletion_timestamp: Option<String>,
    managed_fields: Vec<SpecEntry>,
}

/// The parts of an entry in `managedFields` that say when the spec changed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecEntry {
    subresource: String,
    time: Option<Timestamp>,
}

impl StoredKind {
    /// Reads a live CRD.
    ///
    /// # Errors
    /// The CRD cannot be read, is being deleted, or serves no version.
    pub fn read(live: LiveObject) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct MetadataOfKind {
            #[serde(default)]
            metadata: KindMetadata,
        }
        let crd = Crd::read(&live.raw).map_err(|error| Problem::new(format!("a live CRD cannot be read: {error}")))?;
        let name = text::sanitize(&crd.name).into_owned();
        let metadata = serde_json::from_str::<MetadataOfKind>(&live.raw.json())
            .map_err(|error| Problem::new(format!("the metadata of the CRD {name} cannot be read: {error}")))?
            .metadata;
        if metadata.deletion_timestamp.is_some() {
            return Err(Problem::new(format!("the CRD {name} is being deleted, and its objects with it"))
                .help("its objects need no migration; run the command without this CRD"));
        }
        let Some(storage) = crd.storage().map(|version| Arc::clone(&version.name)) else {
            return Err(Problem::new(format!("the CRD {name} has no storage version")));
        };
        if let Some(missing) = crd.stored_versions().into_iter().find(|stored| crd.version(stored).is_none()) {
            let missing = text::sanitize(missing);
            return Err(Problem::new(format!(
                "status.storedVersions of the CRD {name} has {missing}, which spec.versions lacks: the server cannot \
                 read objects that are stored at {missing}"
            ))
            .help(format!("add {missing} to spec.versions again, with served: false, and run this command again")));
        }
        let served = crd.served(&storage).or_else(|| crd.served_versions().next());
        let Some(requested) = served.map(|version| Arc::clone(&version.name)) else {
            return Err(Problem::new(format!(
                "no version of the CRD {name} is served, so no request can reach its objects"
            ))
            .help(format!("set served: true for {storage} in spec.versions, and run this command again")));
        };
        Ok(Self { crd, live, metadata, storage, requested, distrusts_status: false })
    }

    /// Whether `status.storedVersions` of a live CRD names no other version than the storage version, or the CRD is being
    /// deleted: then there is nothing to migrate, whatever else is wrong with it.
    pub fn is_migrated_or_deleted(live: &LiveObject) -> bool {
        let Ok(crd) = Crd::read(&live.raw) else { return false };
        let storage = crd.storage().map(|version| &*version.name);
        let is_deleted = scan::member(&live.raw.json(), "metadata")
            .and_then(|metadata| serde_json::from_str::<KindMetadata>(metadata).ok())
            .is_some_and(|metadata| metadata.deletion_timestamp.is_some());
        is_deleted || crd.stored_versions().into_iter().all(|stored| Some(stored) == storage)
    }

    /// Supposes that objects may be stored at every version of the CRD: `status.storedVersions` can be changed by hand.
    pub fn distrusting_status(self) -> Self {
        Self { distrusts_status: true, ..self }
    }

    /// The name of the CRD.
    pub fn name(&self) -> &str {
        &self.crd.name
    }

    /// The version that the server stores objects at.
    pub fn storage_version(&self) -> &str {
        &self.storage
    }

    /// The number of objects that exist: as the server counts them, after a page of their metadata.
    ///
    /// # Errors
    /// They cannot be listed.
    pub async fn count_objects(&self, server: &KubeTarget) -> Result<u64, Problem> {
        let resource = self.resource();
        let request = ListRequest { metadata_only: true, ..ListRequest::new(&resource, PAGE) };
        let mut pages = server.list(&request);
        let mut counted = 0;
        loop {
            match pages.next().await {
                Ok(Some(page)) => match (page.len() as u64, page.remaining()) {
                    (here, Some(remaining)) => return Ok(counted + here + remaining),
                    (here, None) => counted += here,
                },
                Ok(None) => return Ok(counted),
                Err(ListError::Expired) => counted = 0,
                Err(error) => return Err(explain_list_error(&error)),
            }
        }
    }

    /// The versions, other than the storage version, that objects may be stored at.
    pub fn old_versions(&self) -> impl Iterator<Item = &CrdVersion> {
        let stored = self.crd.stored_versions();
        let may_be_stored = move |version: &&CrdVersion| {
            !version.storage && (self.distrusts_status || stored.contains(&&*version.name))
        };
        self.crd.versions.iter().filter(may_be_stored)
    }

    /// The schema that decides what is stored.
    pub(crate) fn storage(&self) -> Option<&CrdVersion> {
        self.crd.version(&self.storage)
    }

    /// The version at which objects are read and written.
    pub(crate) fn requested(&self) -> Option<&CrdVersion> {
        self.crd.version(&self.requested)
    }

    /// Where objects are read and written.
    pub(crate) fn resource(&self) -> Resource {
        self.crd.resource(&self.requested)
    }

    /// Where objects are written, and where else without losing anything of them.
    pub(crate) fn rewrite_places(&self) -> RewritePlaces {
        let is_complete = |version: &&CrdVersion| {
            let storage = self.storage().into_iter().chain(self.requested());
            storage.into_iter().all(|storage| lost_fields::lost_between(storage, version).is_empty())
        };
        let others = self.crd.served_versions().filter(|version| version.name != self.requested).filter(is_complete);
        let others = others.filter(|_| !self.crd.converts_by_webhook());
        RewritePlaces {
            first: self.resource(),
            others: others.map(|version| self.crd.resource(&version.name)).collect(),
        }
    }

    /// The fields that an object stored at this version can have, and that no write keeps.
    pub(crate) fn fields_lost_from(&self, old: &CrdVersion) -> Vec<String> {
        if self.crd.preserve_unknown_fields {
            return Vec::new();
        }
        let through = [self.requested(), self.storage()].into_iter().flatten().filter(|to| to.name != old.name);
        let mut lost: Vec<String> = through.flat_map(|to| lost_fields::lost_between(old, to)).collect();
        lost.sort();
        lost.dedup();
        lost
    }

    /// The mark of an earlier run, if it is about the CRD as it is now.
    pub(crate) fn mark(&self) -> Option<StoredSince> {
        StoredSince::of_crd(&self.crd, &self.live.uid, self.metadata.generation)
    }

    /// The mark for a migration whose first list has this resourceVersion.
    pub(crate) fn mark_since(&self, resource_version: u64) -> StoredSince {
        StoredSince {
            version: self.storage.to_string(),
            uid: self.live.uid.clone(),
            generation: self.metadata.generation,
            resource_version,
            complete: false,
        }
    }

    /// Waits until every API server stores at the storage version.
    pub(crate) async fn wait_until_in_force(&self) {
        let newest = self.metadata.managed_fields.iter().filter(|entry| entry.subresource.is_empty());
        let age = match newest.filter_map(|entry| entry.time).max() {
            // A clock that is behind the server's makes the age negative.
            Some(newest) => Duration::try_from(Timestamp::now().duration_since(newest)).unwrap_or_default(),
            None => Duration::ZERO,
        };
        if age < LAG {
            tokio::time::sleep(LAG - age).await;
        }
    }

    /// Reads the CRD again.
    ///
    /// # Errors
    /// It cannot be read, or it is another one, or its spec has changed.
    pub(crate) async fn read_again(&self, server: &KubeTarget) -> Result<Self, Problem> {
        let name = text::sanitize(self.name());
        let Some(live) = server.read_one(ObjectToRead::crd(self.name())).await? else {
            return Err(Problem::new(format!("the CRD {name} was deleted meanwhile")));
        };
        let now = Self { distrusts_status: self.distrusts_status, ..Self::read(live)? };
        match now.live.uid == self.live.uid && now.metadata.generation == self.metadata.generation {
            true => Ok(now),
            false => Err(Problem::new(format!("the CRD {name} was changed meanwhile, so nothing was trimmed"))
                .help("run the same command again")),
        }
    }

    /// Writes the mark. Returns the CRD with it.
    ///
    /// # Errors
    /// The CRD has changed, or the server refuses the write.
    pub(crate) async fn set_mark(
        self,
        server: &KubeTarget,
        mark: &StoredSince,
        manager: &str,
    ) -> Result<Self, Problem> {
        if self.mark().as_ref() == Some(mark) {
            return Ok(self);
        }
        self.change(server, async |kind: &Self| {
            server.annotate_crd(&kind.live, kind.name(), (mark::ANNOTATION, Some(&mark.to_string())), manager).await
        })
        .await
    }

    /// Leaves only the storage version in `status.storedVersions`, and removes the mark.
    ///
    /// # Errors
    /// The CRD has changed, or the server refuses the write.
    pub(crate) async fn trim(self, server: &KubeTarget, manager: &str) -> Result<Self, Problem> {
        let trimmed = self
            .change(server, async |kind: &Self| {
                server.set_stored_versions(&kind.live, kind.name(), &[&kind.storage], manager).await
            })
            .await?;
        if !trimmed.crd.annotations().contains_key(mark::ANNOTATION) {
            return Ok(trimmed);
        }
        let cleared = trimmed.change(server, async |kind: &Self| {
            server.annotate_crd(&kind.live, kind.name(), (mark::ANNOTATION, None), manager).await
        });
        cleared.await
    }

    /// Writes the CRD, and reads it again as often as only something else than its spec has changed.
    async fn change(
        self,
        server: &KubeTarget,
        write: impl AsyncFn(&Self) -> Result<LiveObject, ApplyError>,
    ) -> Result<Self, Problem> {
        const TRIES: u32 = 5;
        let mut kind = self;
        for _ in 0..TRIES {
            match write(&kind).await {
                Ok(live) => return Ok(Self { distrusts_status: kind.distrusts_status, ..Self::read(live)? }),
                Err(ApplyError::Changed | ApplyError::Unknown(_)) => kind = kind.read_again(server).await?,
                Err(ApplyError::Refused(problem) | ApplyError::NotYet(_, problem)) => return Err(problem),
                Err(error @ ApplyError::Conflict(_)) => return Err(Problem::new(error.to_string())),
            }
        }
        Err(Problem::new(format!("the CRD {} kept changing", text::sanitize(kind.name())))
            .help("run the same command again"))
    }
}
