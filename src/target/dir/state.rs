//! What the folder holds: every file that was read, and which object stands where.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use super::{crd, files, kinds};
use crate::manifest::{self, MAX_SOURCE_BYTES, Manifest, Source};
use crate::parallel::in_parallel;
use crate::problem::{Error, Location, Problem, Result};
use crate::resource::{ObjectRef, Resource};
use crate::target::Gvk;

/// What makes it the same object, its namespace filled in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub group: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
}

impl Identity {
    /// An object with no namespace, of a kind that lives in one, is in `default`; a cluster-scoped one is in none.
    pub fn of(object: &ObjectRef, namespaced: bool) -> Self {
        let (group, kind, namespace, name) = object.identity();
        Identity {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespaced.then(|| namespace.unwrap_or("default").to_owned()),
            name: name.to_owned(),
        }
    }
}

/// A kind that a CRD in the folder defines.
#[derive(Debug, Clone)]
pub(super) struct CustomKind {
    pub plural: String,
    pub namespaced: bool,
    /// Served versions, and of each whether `status` is a subresource.
    pub served: BTreeMap<String, bool>,
    /// Whether versions differ in `apiVersion` alone.
    pub converts_by_name: bool,
}

impl CustomKind {
    fn read(crd: &Value) -> Option<((String, String), Self)> {
        let served = crd::versions(crd)
            .iter()
            .filter(|version| version.get("served") == Some(&Value::Bool(true)))
            .map(|version| (crd::text(version, "/name").to_owned(), version.pointer("/subresources/status").is_some()))
            .collect();
        let kind = crd::text(crd, "/spec/names/kind");
        (!kind.is_empty()).then(|| {
            let custom = CustomKind {
                plural: crd::plural(crd).to_owned(),
                namespaced: crd::text(crd, "/spec/scope") != "Cluster",
                served,
                converts_by_name: matches!(crd::text(crd, "/spec/conversion/strategy"), "" | "None"),
            };
            ((crd::group(crd).to_owned(), kind.to_owned()), custom)
        })
    }
}

/// A live CRD that no server could hold and in which no version would be found. A check would compare the desired one
/// with nothing and find nothing, which must not look like a pass.
fn unreadable_crd(manifest: &Manifest, crd: &Value) -> Option<Problem> {
    let problem = if manifest.object.version() != "v1" {
        Problem::new(format!("{} is written at {}", manifest.object, manifest.object.api_version))
            .help("write it at apiextensions.k8s.io/v1, the only version that API servers have served since 1.22")
    } else if crd::versions(crd).is_empty() {
        Problem::new(format!("{} has no spec.versions", manifest.object))
            .help("a CRD on a cluster has at least one version")
    } else {
        return None;
    };
    Some(problem.at(manifest.origin.location()))
}

/// One file of the folder, as it was read.
#[derive(Debug)]
pub(super) struct ReadFile {
    source: Arc<Source>,
    pub manifests: Vec<Manifest>,
    /// What its CRDs define, found once: a big folder is indexed again after each write.
    custom: Vec<((String, String), CustomKind)>,
}

impl ReadFile {
    fn read(source: &Arc<Source>) -> std::result::Result<Self, Vec<Problem>> {
        let manifests = manifest::read(source)?.manifests;
        let mut custom = Vec::new();
        let mut problems = Vec::new();
        for manifest in manifests.iter().filter(|manifest| manifest.object.is_crd()) {
            let crd = manifest.raw.value();
            problems.extend(unreadable_crd(manifest, &crd));
            custom.extend(CustomKind::read(&crd));
        }
        if problems.is_empty() { Ok(ReadFile { source: source.clone(), manifests, custom }) } else { Err(problems) }
    }
}

/// Length and time of the last change, to see without reading that a file is still the same.
type Stamp = (u64, Option<SystemTime>);

type Files = BTreeMap<PathBuf, (Stamp, Arc<ReadFile>)>;

/// Which object stands where, and what the CRDs define.
#[derive(Debug, Default)]
struct Index {
    custom: BTreeMap<(String, String), CustomKind>,
    places: BTreeMap<Identity, (PathBuf, usize)>,
}

/// Everything in the folder, as it was when it was last looked at. A look that fails changes nothing.
#[derive(Debug, Default)]
pub(super) struct State {
    files: Files,
    index: Index,
    pub leftovers: Vec<PathBuf>,
}

impl State {
    pub fn read(root: &Path) -> Result<Self> {
        let mut state = State::default();
        state.refresh(root, None)?;
        Ok(state)
    }

    /// Reads again what has changed on the disk. `surely` is read whatever its length and time say.
    pub fn refresh(&mut self, root: &Path, surely: Option<&Path>) -> Result<()> {
        let listing = files::list(root).map_err(Error::failed)?;
        self.leftovers = listing.leftovers;
        let mut files = Files::new();
        let mut fresh = Vec::new();
        let mut problems = Vec::new();
        for path in listing.manifests {
            let known = self.files.get(&path);
            match look(&path, known, surely == Some(path.as_path())) {
                Ok((stamp, Look::Known(file))) => drop(files.insert(path, (stamp, file))),
                Ok((stamp, Look::Fresh(source))) => fresh.push((path, stamp, source)),
                Err(problem) => problems.push(problem),
            }
        }
        self.take(files, fresh, problems)
    }

    /// Reads one file again that has just been written.
    pub fn reread(&mut self, path: &Path) -> Result<()> {
        let (stamp, look) = look(path, None, true).map_err(Error::failed)?;
        match look {
            Look::Fresh(source) => self.take(self.files.clone(), vec![(path.to_owned(), stamp, source)], Vec::new()),
            Look::Known(_) => Ok(()),
        }
    }

    /// Makes `files` and what the `fresh` texts hold the new state, unless there are problems.
    fn take(
        &mut self,
        mut files: Files,
        fresh: Vec<(PathBuf, Stamp, Arc<Source>)>,
        mut problems: Vec<Problem>,
    ) -> Result<()> {
        let changed = !fresh.is_empty() || files.len() != self.files.len();
        let read = in_parallel(&fresh, |(_, _, source)| ReadFile::read(source));
        for ((path, stamp, _), read) in fresh.into_iter().zip(read) {
            match read {
                Ok(file) => drop(files.insert(path, (stamp, Arc::new(file)))),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() && changed {
            self.index = Index::of(&files).map_err(Error::Failed)?;
        }
        if !problems.is_empty() {
            problems.sort();
            return Err(Error::Failed(problems));
        }
        self.files = files;
        Ok(())
    }

    pub fn custom(&self, group: &str, kind: &str) -> Option<&CustomKind> {
        self.index.custom(group, kind)
    }

    /// Where the kind is served, if it is.
    pub fn resource(&self, gvk: &Gvk) -> Option<Resource> {
        let (plural, namespaced, served) = match kinds::built_in(&gvk.group, &gvk.kind) {
            Some(known) => (known.plural, known.namespaced, known.versions.contains(&gvk.version.as_str())),
            None => {
                let custom = self.custom(&gvk.group, &gvk.kind)?;
                (custom.plural.as_str(), custom.namespaced, custom.served.contains_key(&gvk.version))
            }
        };
        served.then(|| Resource {
            group: gvk.group.clone(),
            version: gvk.version.clone(),
            kind: gvk.kind.clone(),
            plural: plural.to_owned(),
            namespaced,
        })
    }

    /// Every kind, built-in or custom, at each of its versions, sorted.
    pub fn resources(&self) -> Vec<Resource> {
        let built_in = kinds::all().flat_map(|kind| {
            kind.versions.iter().map(|version| Gvk {
                group: kind.group.into(),
                version: (*version).into(),
                kind: kind.kind.into(),
            })
        });
        let custom = self.index.custom.iter().flat_map(|((group, kind), custom)| {
            custom.served.keys().map(|version| Gvk {
                group: group.clone(),
                version: version.clone(),
                kind: kind.clone(),
            })
        });
        let mut resources: Vec<Resource> = built_in.chain(custom).filter_map(|gvk| self.resource(&gvk)).collect();
        resources.sort();
        resources
    }

    /// The file that holds the object, and which of its objects it is.
    pub fn find(&self, identity: &Identity) -> Option<(&Path, &ReadFile, usize)> {
        let (path, index) = self.index.places.get(identity)?;
        let (_, file) = self.files.get(path)?;
        Some((path, file, *index))
    }

    /// The objects of a kind by namespace and name, at whatever version each is written.
    pub fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = (&Identity, &Manifest)> {
        let first = Identity { group: group.into(), kind: kind.into(), namespace: None, name: String::new() };
        let range = self.index.places.range(&first..);
        range
            .take_while(move |(identity, _)| (&identity.group, &identity.kind) == (&first.group, &first.kind))
            .filter_map(|(identity, (path, index))| Some((identity, self.files.get(path)?.1.manifests.get(*index)?)))
    }

    pub fn manifest(&self, identity: &Identity) -> Option<&Manifest> {
        self.find(identity).and_then(|(_, file, index)| file.manifests.get(index))
    }
}

impl Index {
    fn of(files: &Files) -> std::result::Result<Self, Vec<Problem>> {
        let custom = files.values().flat_map(|(_, file)| file.custom.iter().cloned()).collect();
        let mut index = Index { custom, places: BTreeMap::new() };
        let mut first: BTreeMap<Identity, &Manifest> = BTreeMap::new();
        let mut problems = Vec::new();
        for (path, (_, file)) in files {
            for (number, manifest) in file.manifests.iter().enumerate() {
                let identity = Identity::of(&manifest.object, index.is_namespaced(&manifest.object));
                if let Some(first) = first.get(&identity) {
                    let message = format!("{} is in the folder for the second time", manifest.object);
                    let help = format!("a cluster holds an object once: the first is at {}", first.origin.location());
                    problems.push(Problem::new(message).at(manifest.origin.location()).help(help));
                } else {
                    first.insert(identity.clone(), manifest);
                    index.places.insert(identity, (path.clone(), number));
                }
            }
        }
        if problems.is_empty() { Ok(index) } else { Err(problems) }
    }

    fn custom(&self, group: &str, kind: &str) -> Option<&CustomKind> {
        self.custom.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Unknown kinds are taken as they are written.
    fn is_namespaced(&self, object: &ObjectRef) -> bool {
        if let Some(known) = kinds::built_in(object.group(), &object.kind) {
            return known.namespaced;
        }
        self.custom(object.group(), &object.kind).map_or(object.namespace.is_some(), |custom| custom.namespaced)
    }
}

enum Look {
    Known(Arc<ReadFile>),
    Fresh(Arc<Source>),
}

/// Whether the file is still the one that is known, or what it says now.
fn look(
    path: &Path,
    known: Option<&(Stamp, Arc<ReadFile>)>,
    surely: bool,
) -> std::result::Result<(Stamp, Look), Problem> {
    let name = path.display().to_string();
    let whole = || Location { file: name.clone(), line: 0, column: 0 };
    let cannot_read = |error: std::io::Error| Problem::new(format!("cannot be read: {error}")).at(whole());
    let metadata = fs::metadata(path).map_err(cannot_read)?;
    let stamp = (metadata.len(), metadata.modified().ok());
    if let Some((before, file)) = known
        && !surely
        && *before == stamp
        && stamp.1.is_some()
    {
        return Ok((stamp, Look::Known(file.clone())));
    }
    if metadata.len() > MAX_SOURCE_BYTES as u64 {
        return Err(Problem::new("too large to be read").at(whole()).help("split it into several files"));
    }
    let mut text = String::from_utf8(fs::read(path).map_err(cannot_read)?).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Problem::new("the file is not UTF-8").at(Location { line, ..whole() }).help("save it as UTF-8")
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    match known {
        Some((_, file)) if file.source.text == text => Ok((stamp, Look::Known(file.clone()))),
        _ => Ok((stamp, Look::Fresh(Arc::new(Source { name, text })))),
    }
}
