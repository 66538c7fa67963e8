//! One of the files that represent a cluster: its objects, and the kinds that its CRDs define.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use gantry_core::crd::{Crd, CrdReadError, CrdReadErrorKind};
use gantry_core::manifest::{self, Manifest, ManifestSource};
use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;

/// Group and kind.
pub(crate) type KindKey = (String, String);

/// The container of the files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FileContainer {
    #[default]
    Folder,
    /// A git commit, whose files never change.
    Commit,
    /// What Helm renders from a chart.
    Chart,
    /// What Helm recorded with a release.
    HelmRelease,
}

impl FileContainer {
    /// Its word in messages.
    pub fn noun(self) -> &'static str {
        match self {
            FileContainer::Folder => "folder",
            FileContainer::Commit => "commit",
            FileContainer::Chart => "chart",
            FileContainer::HelmRelease => "release",
        }
    }
}

impl fmt::Display for FileContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.noun())
    }
}

/// The identity of an object, with its namespace filled in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FolderObjectKey {
    pub group: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
}

impl FolderObjectKey {
    /// An object of a namespaced kind without a namespace is in the one of the run, or in `default`; a cluster-scoped one
    /// has no namespace.
    pub fn new(object: &ObjectRef, namespaced: bool, of_run: Option<&str>) -> Self {
        let (group, kind, namespace, name) = object.identity();
        FolderObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespaced.then(|| namespace.or(of_run).unwrap_or("default").to_owned()),
            name: name.to_owned(),
        }
    }
}

/// A kind that a CRD in the folder defines.
#[derive(Debug, Clone)]
pub(crate) struct CustomKind {
    pub plural: String,
    pub namespaced: bool,
    /// The served versions, and for each whether `status` is a subresource.
    pub served: BTreeMap<String, bool>,
    /// Whether versions differ only in `apiVersion`.
    pub converts_by_name: bool,
}

impl CustomKind {
    fn from_crd(crd: &Crd) -> (KindKey, Self) {
        let served = crd.served_versions().map(|version| (version.name.to_string(), version.status_subresource));
        let custom = CustomKind {
            plural: crd.names.plural.clone(),
            namespaced: crd.is_namespaced(),
            served: served.collect(),
            converts_by_name: !crd.converts_by_webhook(),
        };
        ((crd.group.clone(), crd.names.kind.clone()), custom)
    }
}

/// A live CRD that no server could store. A check would have nothing to compare the desired CRD with and find nothing,
/// which must not look like a pass.
fn unreadable_crd(manifest: &Manifest, error: &CrdReadError) -> Problem {
    let object = &manifest.object;
    let problem = match &error.fault {
        CrdReadErrorKind::ApiVersion(version) => Problem::new(format!("{object} uses apiVersion {version}"))
            .help("change it to apiextensions.k8s.io/v1, the only version that API servers serve since 1.22"),
        _ => Problem::new(format!("{object} cannot be read: {error}"))
            .help("an API server would refuse this CRD; fix it"),
    };
    problem.at(manifest.origin.location())
}

/// One file of the folder, as it was read.
#[derive(Debug)]
pub(crate) struct ReadFile {
    pub source: Arc<ManifestSource>,
    pub manifests: Vec<Manifest>,
    /// The kinds that its CRDs define.
    pub custom: Vec<(KindKey, CustomKind)>,
}

impl ReadFile {
    /// Reads the objects of a text: all of them, or only those listed in `only`.
    pub fn read(
        source: &Arc<ManifestSource>,
        only: Option<&[Arc<ObjectRef>]>,
    ) -> std::result::Result<Self, Vec<Problem>> {
        let mut manifests = manifest::read(source)?.manifests;
        if let Some(only) = only {
            manifests.retain(|manifest| only.iter().any(|object| object.identity() == manifest.object.identity()));
        }
        let mut custom = Vec::new();
        let mut problems = Vec::new();
        for manifest in manifests.iter().filter(|manifest| manifest.object.is_crd()) {
            match Crd::read(&manifest.raw) {
                Ok(crd) => custom.push(CustomKind::from_crd(&crd)),
                Err(error) => problems.push(unreadable_crd(manifest, &error)),
            }
        }
        if problems.is_empty() { Ok(ReadFile { source: source.clone(), manifests, custom }) } else { Err(problems) }
    }

    /// The kind as the file's CRDs define it.
    pub fn kind(&self, key: &KindKey) -> Option<&CustomKind> {
        self.custom.iter().find(|(defines, _)| defines == key).map(|(_, custom)| custom)
    }
}

/// A file that nobody changes: of a commit, or made by Helm.
#[derive(Debug)]
pub(crate) struct FixedFile {
    pub path: PathBuf,
    pub source: Arc<ManifestSource>,
    /// The objects of it that count as live, if not all do. This does not change once the file is read.
    pub only: Option<Vec<Arc<ObjectRef>>>,
    read: OnceLock<std::result::Result<ReadFile, Vec<Problem>>>,
}

impl FixedFile {
    pub fn new(path: PathBuf, source: Arc<ManifestSource>, only: Option<Vec<Arc<ObjectRef>>>) -> Self {
        FixedFile { path, source, only, read: OnceLock::new() }
    }

    /// The content of the file, parsed at the first call.
    pub fn read(&self) -> &std::result::Result<ReadFile, Vec<Problem>> {
        self.read.get_or_init(|| ReadFile::read(&self.source, self.only.as_deref()))
    }

    /// Like [`FixedFile::read`], but consumes the file.
    pub fn into_read(self) -> std::result::Result<ReadFile, Vec<Problem>> {
        self.read.into_inner().unwrap_or_else(|| ReadFile::read(&self.source, self.only.as_deref()))
    }
}

/// Length and modification time, to detect that a file is unchanged without reading it.
pub(super) type Stamp = (u64, Option<SystemTime>);

pub(crate) type DirFiles = BTreeMap<PathBuf, (Stamp, Arc<ReadFile>)>;
