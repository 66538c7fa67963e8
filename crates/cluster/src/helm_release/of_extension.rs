//! The release of a ClusterExtension: OLM v1 installs bundles with Helm, and records the releases in another way.
//!
//! Each revision is a Secret of the type `operatorframework.io/index.v1` in the namespace of operator-controller. It has
//! the start of the record, and the names of Secrets with the rest, as Secrets hold at most 1 MiB. The record is the JSON
//! of Helm, compressed with gzip.
//!
//! Sources: `pkg/storage/chunked.go` of `github.com/operator-framework/helm-operator-plugins`;
//! `internal/operator-controller/action/storagedriver.go` of operator-controller

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Deserializer, Value};

use super::{HelmRelease, ReleaseRecord, ReleaseRevisions, choose, decode, list_revisions};
use crate::ObjectToRead;
use crate::kube::KubeTarget;
use gantry_core::manifest;
use gantry_core::options::HelmReleaseSpec;
use gantry_core::problem::{Error, Problem};
use gantry_core::resource::{ObjectRef, Resource};

/// The namespaces of operator-controller: upstream's, and that of OpenShift.
pub const OLM_NAMESPACES: [&str; 2] = ["olmv1-system", "openshift-operator-controller"];
/// The most Secrets of a record: operator-controller reads no more.
const MOST_CHUNKS: usize = 11;

impl HelmRelease {
    /// Reads the release of a ClusterExtension: the revision that the next upgrade compares with. `None` if there is
    /// none.
    ///
    /// # Errors
    /// Its Secrets cannot be read.
    pub async fn of_extension(extension: &str, server: &KubeTarget) -> Result<Option<Self>, Problem> {
        let mut unread = None;
        for namespace in OLM_NAMESPACES {
            let secrets = Resource::built_in("", "Secret", "secrets", true);
            let selector = format!("owner=operator-controller,type=index,name={extension}");
            let listed = ReleaseRevisions { namespace, resource: &secrets, selector: &selector };
            let revisions = match list_revisions(&listed, server).await {
                Ok(revisions) => revisions,
                Err(problem) => {
                    unread.get_or_insert(problem);
                    continue;
                }
            };
            if revisions.is_empty() {
                continue;
            }
            let spec =
                HelmReleaseSpec { namespace: Some(namespace.to_owned()), name: extension.to_owned(), revision: None };
            let (chosen, notices) = choose(&spec, &revisions, namespace)?;
            let record = read_chunks(&chosen.object, namespace, server).await.map_err(|why| {
                Problem::new(format!("revision {} of the Helm release {extension} {why}", chosen.revision))
            })?;
            let namespace = record.namespace.clone();
            let (name, revision) = (extension.to_owned(), chosen.revision);
            return Ok(Some(HelmRelease { namespace, name, revision, record, notices }));
        }
        unread.map_or(Ok(None), Err)
    }

    /// The objects of the release, without hooks.
    ///
    /// # Errors
    /// The manifests cannot be read.
    pub fn objects(&self) -> Result<Vec<Value>, Problem> {
        let text = self.record.manifest.trim_start();
        // OLM writes one JSON text after the other.
        if text.starts_with('{') {
            let objects: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
            let unreadable =
                |error| Problem::new(format!("the manifests of {} cannot be read: {error}", self.describe()));
            return objects.map_err(unreadable);
        }
        let read = manifest::read(&self.applied()?.into());
        let first = |problems| Error::Failed(problems).first_problem();
        Ok(read.map_err(first)?.manifests.iter().map(|manifest| manifest.raw.value()).collect())
    }
}

/// Reads the record of a revision. The error says what is wrong with it.
async fn read_chunks(index: &str, namespace: &str, server: &KubeTarget) -> Result<ReleaseRecord, String> {
    let index = read_secret(index, namespace, server).await?;
    let names = bytes_of(&index, "extraChunks")?;
    let names: Vec<String> =
        serde_json::from_slice(&names).map_err(|error| format!("does not name its parts: {error}"))?;
    if names.len() >= MOST_CHUNKS {
        return Err(format!("has {} parts, and operator-controller reads {MOST_CHUNKS}", names.len() + 1));
    }
    let mut bytes = bytes_of(&index, "chunk")?;
    for name in names {
        bytes.extend(bytes_of(&read_secret(&name, namespace, server).await?, "chunk")?);
    }
    decode(bytes)
}

async fn read_secret(name: &str, namespace: &str, server: &KubeTarget) -> Result<Value, String> {
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    };
    let resource = Resource::built_in("", "Secret", "secrets", true);
    let wanted = ObjectToRead { resource: resource.into(), object: object.into() };
    let live = server.read_one(wanted).await.map_err(|problem| format!("cannot be read: {}", problem.message))?;
    Ok(live.ok_or("was deleted meanwhile")?.raw.value())
}

fn bytes_of(secret: &Value, key: &str) -> Result<Vec<u8>, String> {
    let data = secret["data"][key].as_str().ok_or_else(|| format!("has no {key}"))?;
    STANDARD.decode(data).map_err(|error| format!("is not in base64: {error}"))
}
