//! What the folder holds: every file that was read, and which object stands where.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use super::{crd, files, kinds, load};
use crate::manifest::{Manifest, Source};
use crate::problem::{Error, Problem, Result};
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

#[derive(Debug)]
pub(super) struct ReadFile {
    /// Length and time of the last change, to see without reading that the file is still the same.
    stamp: (u64, Option<SystemTime>),
    pub source: Arc<Source>,
    pub manifests: Vec<Manifest>,
    /// What its CRDs define, found once: a big folder is indexed again after each write.
    custom: Vec<((String, String), CustomKind)>,
}

/// Everything in the folder, as it was when it was last looked at.
#[derive(Debug, Default)]
pub(super) struct State {
    pub files: BTreeMap<PathBuf, ReadFile>,
    custom: BTreeMap<(String, String), CustomKind>,
    places: BTreeMap<Identity, (PathBuf, usize)>,
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
        let before = self.files.len();
        self.files.retain(|path, _| listing.manifests.binary_search(path).is_ok());
        let mut changed = self.files.len() != before;
        let mut problems = Vec::new();
        for path in listing.manifests {
            match self.refresh_file(&path, surely == Some(path.as_path())) {
                Ok(read_anew) => changed |= read_anew,
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() && changed {
            self.index(&mut problems);
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::Failed(problems)) }
    }

    fn refresh_file(&mut self, path: &Path, surely: bool) -> std::result::Result<bool, Vec<Problem>> {
        let name = path.display().to_string();
        let cannot_read = |error: std::io::Error| vec![Problem::new(format!("cannot read {name}: {error}"))];
        let metadata = fs::metadata(path).map_err(cannot_read)?;
        let stamp = (metadata.len(), metadata.modified().ok());
        if !surely && self.files.get(path).is_some_and(|file| file.stamp == stamp && stamp.1.is_some()) {
            return Ok(false);
        }
        let source = Arc::new(Source { text: fs::read_to_string(path).map_err(cannot_read)?, name });
        if let Some(file) = self.files.get_mut(path)
            && file.source.text == source.text
        {
            file.stamp = stamp;
            return Ok(false);
        }
        // Forgotten first: a file that can no longer be read must not live on as it was.
        self.files.remove(path);
        let manifests = load::manifests(&source)?;
        let mut custom = Vec::new();
        let mut problems = Vec::new();
        for manifest in manifests.iter().filter(|manifest| manifest.object.is_crd()) {
            let crd = manifest.raw.value();
            problems.extend(unreadable_crd(manifest, &crd));
            custom.extend(CustomKind::read(&crd));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.files.insert(path.to_owned(), ReadFile { stamp, source, manifests, custom });
        Ok(true)
    }

    /// Reads one file again that has just been written.
    pub fn reread(&mut self, path: &Path) -> Result<()> {
        // Two writes may fall into one tick of the clock.
        self.files.remove(path);
        let mut problems = Vec::new();
        match self.refresh_file(path, true) {
            Ok(_) => self.index(&mut problems),
            Err(more) => problems.extend(more),
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::Failed(problems)) }
    }

    fn index(&mut self, problems: &mut Vec<Problem>) {
        self.custom = self.files.values().flat_map(|file| file.custom.iter().cloned()).collect();
        let mut places: BTreeMap<Identity, (PathBuf, usize)> = BTreeMap::new();
        for (path, file) in &self.files {
            for (index, manifest) in file.manifests.iter().enumerate() {
                let identity = Identity::of(&manifest.object, self.is_namespaced(&manifest.object));
                if let Some((first, at)) = places.get(&identity) {
                    let first = self.files[first].manifests[*at].origin.location();
                    problems.push(
                        Problem::new(format!("{} is in the folder twice, first at {first}", manifest.object))
                            .at(manifest.origin.location())
                            .help("a cluster holds an object once: remove one of the two"),
                    );
                } else {
                    places.insert(identity, (path.clone(), index));
                }
            }
        }
        self.places = places;
    }

    /// Unknown kinds are taken as they are written.
    fn is_namespaced(&self, object: &ObjectRef) -> bool {
        if let Some(known) = kinds::built_in(object.group(), &object.kind) {
            return known.namespaced;
        }
        self.custom(object.group(), &object.kind).map_or(object.namespace.is_some(), |custom| custom.namespaced)
    }

    pub fn custom(&self, group: &str, kind: &str) -> Option<&CustomKind> {
        self.custom.get(&(group.to_owned(), kind.to_owned()))
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

    /// The file that holds the object and which of its objects it is.
    pub fn find(&self, identity: &Identity) -> Option<(&Path, usize)> {
        self.places.get(identity).map(|(path, index)| (path.as_path(), *index))
    }

    pub fn manifest(&self, identity: &Identity) -> Option<&Manifest> {
        let (path, index) = self.find(identity)?;
        self.files.get(path)?.manifests.get(index)
    }
}
