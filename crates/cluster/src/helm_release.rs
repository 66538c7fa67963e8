//! Releases that Helm has deployed, as it records them in the cluster: the manifests, the values and the chart.
//!
//! Each revision is a Secret of the type `helm.sh/release.v1`, or a ConfigMap if Helm runs with `HELM_DRIVER=configmap`.
//! It holds JSON, compressed with gzip and encoded in base64. Helm 3 and 4 write the same
//! (<https://helm.sh/docs/topics/advanced/#storage-backends>).

mod of_extension;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::kube::KubeTarget;
use super::pages::{PageSource, Pages};
use super::{ListRequest, ObjectToRead};
use gantry_core::manifest::{self, ManifestSource, PreparedSources};
use gantry_core::options::HelmReleaseSpec;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{ObjectRef, Resource};
use gantry_core::text;
pub use of_extension::OLM_NAMESPACES;

/// The most objects of a page. Helm keeps ten revisions by default.
const PAGE: u32 = 500;
/// The most bytes of a record. A Secret holds 1 MiB, and manifests are compressed to a tenth or so.
const MOST_BYTES: usize = 32 << 20;
/// The first bytes of what is compressed. Very old revisions are not.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];
/// The folder of a chart whose CRDs Helm installs with the first release only.
const CRDS: &str = "crds/";

/// A revision of a release.
#[derive(Debug)]
pub struct HelmRelease {
    /// Where it is installed.
    pub namespace: String,
    name: String,
    revision: u32,
    record: ReleaseRecord,
    notices: Vec<Problem>,
}

/// The record of a revision, as far as it is used (`release.v1` of Helm).
#[derive(Debug, Deserialize)]
struct ReleaseRecord {
    /// Every record has it.
    #[serde(rename = "name")]
    _name: String,
    /// Where it is installed.
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    hooks: Option<Vec<ReleaseHook>>,
    #[serde(default)]
    chart: RecordedChart,
    /// The values that the user gave.
    #[serde(default)]
    config: Option<Box<RawValue>>,
    /// How Helm 4 wrote the objects: `ssa` or `csa`.
    #[serde(default)]
    apply_method: String,
}

#[derive(Debug, Deserialize)]
struct ReleaseHook {
    #[serde(default)]
    manifest: String,
}

#[derive(Debug, Default, Deserialize)]
struct RecordedChart {
    #[serde(default)]
    metadata: ChartMetadata,
    /// All files but the templates. Those of the charts that it contains are not recorded.
    #[serde(default)]
    files: Option<Vec<ChartFile>>,
}

#[derive(Debug, Default, Deserialize)]
struct ChartMetadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    dependencies: Option<Vec<serde::de::IgnoredAny>>,
}

#[derive(Debug, Deserialize)]
struct ChartFile {
    name: String,
    /// In base64.
    #[serde(default)]
    data: Option<String>,
}

/// A revision in a list.
#[derive(Debug, Clone)]
struct ListedRevision {
    revision: u32,
    status: String,
    object: String,
}

impl HelmRelease {
    /// Reads a release. Without a revision it is the one that `helm upgrade` compares with: the newest that is deployed,
    /// and if none is, the newest. `namespace` is the one of the run.
    ///
    /// # Errors
    /// There is no such release, it cannot be read, or the names of two namespaces contradict each other.
    pub async fn read(spec: &HelmReleaseSpec, namespace: Option<&str>, server: &KubeTarget) -> Result<Self> {
        let namespace = Self::choose_namespace(spec, namespace, server)?;
        let mut found = None;
        for resource in [("Secret", "secrets"), ("ConfigMap", "configmaps")] {
            let resource = Resource::built_in("", resource.0, resource.1, true);
            let selector = format!("owner=helm,name={}", spec.name);
            let listed = ReleaseRevisions { namespace, resource: &resource, selector: &selector };
            let revisions = list_revisions(&listed, server).await.map_err(Error::failed)?;
            if !revisions.is_empty() {
                found = Some((resource, revisions));
                break;
            }
        }
        let Some((resource, revisions)) = found else {
            let problem = Problem::new(format!("Helm has no release {} in the namespace {namespace}", spec.name));
            return Err(Error::failed(
                problem.help("helm list --all-namespaces shows the releases; -n names the namespace"),
            ));
        };
        let (chosen, notices) = choose(spec, &revisions, namespace).map_err(Error::failed)?;
        let record = read_record(&chosen, namespace, resource, server).await.map_err(|why| {
            let message = format!("revision {} of the Helm release {} {why}", chosen.revision, spec.name);
            let help = format!("to see whether Helm can read it: helm get manifest {} -n {namespace}", spec.name);
            Error::failed(Problem::new(message).help(help))
        })?;
        let (namespace, name) = (namespace.to_owned(), spec.name.clone());
        Ok(HelmRelease { namespace, name, revision: chosen.revision, record, notices })
    }

    /// The namespace of a release: its own, that of the run, or that of the context.
    ///
    /// # Errors
    /// The first two contradict each other.
    pub fn choose_namespace<'n>(
        spec: &'n HelmReleaseSpec,
        of_run: Option<&'n str>,
        server: &'n KubeTarget,
    ) -> Result<&'n str> {
        match (&spec.namespace, of_run) {
            (Some(of_release), Some(of_run)) if of_release != of_run => {
                let problem = Problem::new(format!(
                    "{spec} is in the namespace {of_release}, but the namespace of the run is {of_run}"
                ));
                Err(Error::usage(problem.help("leave out -n; all releases of a run are in one namespace")))
            }
            (Some(namespace), _) => Ok(namespace),
            (None, Some(namespace)) => Ok(namespace),
            (None, None) => Ok(server.default_namespace()),
        }
    }

    /// `helm: prod/shop revision 3 (web 1.0.0)`
    pub fn describe(&self) -> String {
        let ChartMetadata { name, version, .. } = &self.record.chart.metadata;
        let chart = text::sanitize(&format!("{name} {version}")).into_owned();
        format!("helm: {}/{} revision {} ({})", self.namespace, self.name, self.revision, chart.trim())
    }

    /// What to know about how the revision was chosen.
    pub fn notices(&self) -> &[Problem] {
        &self.notices
    }

    /// The name of the release.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether Helm writes the objects with server-side apply.
    pub fn is_applied_on_server(&self) -> bool {
        self.record.apply_method == "ssa"
    }

    /// The name of the revision in messages: `shop revision 3`.
    pub fn short_name(&self) -> String {
        format!("{} revision {}", self.name, self.revision)
    }

    /// The values that the user gave, as JSON; `None` if there are none.
    pub fn values(&self) -> Option<&str> {
        let text = self.record.config.as_ref()?.get();
        (!matches!(text, "null" | "{}")).then_some(text)
    }

    /// What a rollback to this revision applies: its manifests, with a notice if the chart has CRDs in `crds/`, which
    /// Helm does not touch.
    ///
    /// # Errors
    /// A text is too long.
    pub fn to_apply(&self) -> std::result::Result<PreparedSources, Problem> {
        let number = self.crd_files().count();
        let mut notices = self.notices.clone();
        if number > 0 {
            let files = if number == 1 { "a file" } else { "files" };
            let message = format!(
                "{} has {files} in crds/, which Helm leaves as they are in the cluster; they are not compared",
                self.describe()
            );
            notices.push(Problem::new(message));
        }
        Ok(PreparedSources { sources: vec![Arc::new(self.manifests()?)], notices })
    }

    /// The manifests that Helm manages: without hooks, and without the CRDs in `crds/`.
    ///
    /// # Errors
    /// The text is too long.
    pub fn applied(&self) -> std::result::Result<ManifestSource, Problem> {
        self.source(self.record.manifest.clone())
    }

    /// What the release has installed: its manifests, and the CRDs in `crds/` of its chart.
    ///
    /// # Errors
    /// A text is too long or is not UTF-8.
    pub fn installed(&self) -> std::result::Result<PreparedSources, Problem> {
        let mut sources = vec![Arc::new(self.manifests()?)];
        for file in self.crd_files() {
            let name = format!("{}:{}", self.source_name(), text::sanitize(&file.name));
            let bytes = STANDARD.decode(file.data.as_deref().unwrap_or_default().as_bytes());
            let bytes = bytes.map_err(|error| Problem::new(format!("{name}: the record cannot be read: {error}")))?;
            sources.push(Arc::new(ManifestSource::new(name.clone(), manifest::text(&name, bytes)?)));
        }
        let mut notices = self.notices.clone();
        if self.record.chart.metadata.dependencies.as_ref().is_some_and(|charts| !charts.is_empty()) {
            let message =
                format!("the chart of the release {} contains charts, whose crds/ Helm does not record", self.name);
            let help = "compare CRDs that are missing here with those of the cluster: leave out --target";
            notices.push(Problem::new(message).help(help));
        }
        Ok(PreparedSources { sources, notices })
    }

    fn manifests(&self) -> std::result::Result<ManifestSource, Problem> {
        let mut whole = self.record.manifest.clone();
        for hook in self.record.hooks.iter().flatten() {
            whole.push_str("\n---\n");
            whole.push_str(&hook.manifest);
        }
        self.source(whole)
    }

    fn source(&self, text: String) -> std::result::Result<ManifestSource, Problem> {
        let name = self.source_name();
        let text = manifest::text(&name, text.into_bytes())?;
        Ok(ManifestSource::new(name, text))
    }

    /// The name in places: `helm:prod/shop:3`.
    fn source_name(&self) -> String {
        let HelmRelease { namespace, name, revision, .. } = self;
        let spec =
            HelmReleaseSpec { namespace: Some(namespace.clone()), name: name.clone(), revision: Some(*revision) };
        spec.to_string()
    }

    fn crd_files(&self) -> impl Iterator<Item = &ChartFile> {
        let is_manifest = |name: &str| [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        let files = self.record.chart.files.iter().flatten();
        files.filter(move |file| file.name.starts_with(CRDS) && is_manifest(&file.name))
    }
}

/// Where the revisions of a release are recorded.
struct ReleaseRevisions<'a> {
    namespace: &'a str,
    resource: &'a Resource,
    selector: &'a str,
}

/// The revisions of a release, in their order.
async fn list_revisions(
    listed: &ReleaseRevisions<'_>,
    server: &KubeTarget,
) -> std::result::Result<Vec<ListedRevision>, Problem> {
    let ReleaseRevisions { namespace, resource, selector } = *listed;
    let request = ListRequest {
        namespace: Some(namespace),
        label_selector: Some(selector),
        metadata_only: true,
        ..ListRequest::new(resource, PAGE)
    };
    let look = |revisions: &mut Vec<ListedRevision>, object: &str| {
        #[derive(Deserialize)]
        struct ListedRecord {
            metadata: RecordMetadata,
        }
        #[derive(Deserialize)]
        struct RecordMetadata {
            name: String,
            #[serde(default)]
            labels: BTreeMap<String, String>,
        }
        let Ok(ListedRecord { metadata: RecordMetadata { name, mut labels } }) = serde_json::from_str(object) else {
            return;
        };
        if let Some(revision) = labels.get("version").and_then(|version| version.parse().ok()) {
            let status = labels.remove("status").unwrap_or_default();
            revisions.push(ListedRevision { revision, status, object: name });
        }
    };
    let mut revisions = Pages(PageSource::Kube(server.list(&request))).gather(look).await.map_err(|error| {
        let expired = || Problem::new("the list of the release's revisions expired repeatedly");
        error.problem().cloned().unwrap_or_else(expired)
    })?;
    revisions.sort_by_key(|revision| revision.revision);
    Ok(revisions)
}

/// The revision that is meant, as Helm decides it.
fn choose(
    spec: &HelmReleaseSpec,
    revisions: &[ListedRevision],
    namespace: &str,
) -> std::result::Result<(ListedRevision, Vec<Problem>), Problem> {
    let history = format!("helm history {} -n {namespace}", spec.name);
    if let Some(wanted) = spec.revision {
        return match revisions.iter().find(|known| known.revision == wanted) {
            Some(found) => Ok((found.clone(), Vec::new())),
            None => {
                let numbers: Vec<String> = revisions.iter().map(|known| known.revision.to_string()).collect();
                let message = format!("the Helm release {} has no revision {wanted}", spec.name);
                Err(Problem::new(message).help(format!("it has {}: {history}", numbers.join(", "))))
            }
        };
    }
    let deployed = revisions.iter().rev().find(|known| known.status == "deployed");
    if let Some(deployed) = deployed {
        return Ok((deployed.clone(), Vec::new()));
    }
    let Some(newest) = revisions.last() else { return Err(Problem::new("the release has no revision")) };
    let status = text::sanitize(&newest.status).into_owned();
    let message = format!(
        "no revision of the Helm release {} is deployed; revision {} is {status} and counts",
        spec.name, newest.revision
    );
    Ok((newest.clone(), vec![Problem::new(message).help(format!("to name another one, see {history}"))]))
}

/// Reads one record. The error says what is wrong with it.
async fn read_record(
    chosen: &ListedRevision,
    namespace: &str,
    resource: Resource,
    server: &KubeTarget,
) -> std::result::Result<ReleaseRecord, String> {
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: resource.kind.clone(),
        namespace: Some(namespace.to_owned()),
        name: chosen.object.clone(),
    };
    let is_secret = object.is_secret();
    let wanted = ObjectToRead { resource: resource.into(), object: object.into() };
    let live = server.read_one(wanted).await.map_err(|problem| format!("cannot be read: {}", problem.message))?;
    let live = live.ok_or("was deleted meanwhile")?;
    let value = live.raw.value();
    let data = value["data"]["release"].as_str().ok_or("has no data")?;
    let encoded = match is_secret {
        true => STANDARD.decode(data).map_err(|error| format!("is not in base64: {error}"))?,
        false => data.as_bytes().to_vec(),
    };
    read_release(&encoded)
}

/// Decodes the record of a revision.
fn read_release(encoded: &[u8]) -> std::result::Result<ReleaseRecord, String> {
    decode(STANDARD.decode(encoded).map_err(|error| format!("is not in base64: {error}"))?)
}

/// The same without base64.
fn decode(bytes: Vec<u8>) -> std::result::Result<ReleaseRecord, String> {
    let json = match bytes.starts_with(&GZIP) {
        false => bytes,
        true => {
            let mut json = Vec::new();
            let mut limited = GzDecoder::new(&*bytes).take(MOST_BYTES as u64 + 1);
            limited.read_to_end(&mut json).map_err(|error| format!("cannot be decompressed: {error}"))?;
            json
        }
    };
    if json.len() > MOST_BYTES {
        return Err(format!("is larger than {} MiB", MOST_BYTES >> 20));
    }
    serde_json::from_slice(&json).map_err(|error| format!("is not a release record of Helm: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn revisions(of: &[(u32, &str)]) -> Vec<ListedRevision> {
        let revision = |&(revision, status): &(u32, &str)| ListedRevision {
            revision,
            status: status.to_owned(),
            object: format!("sh.helm.release.v1.shop.v{revision}"),
        };
        of.iter().map(revision).collect()
    }

    #[test]
    fn the_deployed_revision_counts_unless_one_is_named() {
        let choose = |text: &str, of: &[(u32, &str)]| {
            choose(&text.parse().unwrap(), &revisions(of), "prod")
                .map(|(chosen, notices)| (chosen.revision, notices.len()))
                .map_err(|problem| problem.to_string())
        };
        let all = [(1, "superseded"), (2, "deployed"), (3, "failed")];
        assert_eq!(choose("shop", &all), Ok((2, 0)));
        assert_eq!(choose("shop:1", &all), Ok((1, 0)));
        assert_eq!(choose("shop", &[(1, "failed"), (2, "pending-upgrade")]), Ok((2, 1)), "said with a notice");
        assert_eq!(choose("shop:9", &all).unwrap_err(), "the Helm release shop has no revision 9");
    }

    #[test]
    fn a_record_is_compressed_and_limited() {
        let compressed = |json: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(json).unwrap();
            STANDARD.encode(encoder.finish().unwrap()).into_bytes()
        };
        let record =
            read_release(&compressed(br#"{"name":"shop","manifest":"a: 1\n","config":{"x":1.50},"version":3}"#))
                .unwrap();
        assert_eq!((&*record.manifest, record.config.unwrap().get()), ("a: 1\n", r#"{"x":1.50}"#));
        assert!(read_release(STANDARD.encode(r#"{"name":"shop"}"#).as_bytes()).is_ok(), "not compressed");
        let bomb = compressed(&vec![b' '; MOST_BYTES + 10]);
        assert!(bomb.len() < 1 << 20, "{}", bomb.len());
        let error = |encoded: &[u8]| read_release(encoded).unwrap_err();
        assert!(error(&bomb).starts_with("is larger than"), "{}", error(&bomb));
        assert!(error(b"%").starts_with("is not in base64"));
        for other in [&b"[]"[..], b"{}", b"1", b""] {
            assert!(error(&compressed(other)).starts_with("is not a release record of Helm"));
        }
        let cut = compressed(b"{}");
        assert!(error(&cut[..16]).starts_with("cannot be decompressed"), "{}", error(&cut[..16]));
    }
}
