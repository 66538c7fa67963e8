//! The contents of the files that represent a cluster: every file that was read, and the location of each object.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::index::DirIndex;
use super::read::{CustomKind, DirFiles, FileContainer, FixedFile, FolderObjectKey, ReadFile, Stamp};
use super::{files, kinds, snapshot};
use crate::Gvk;
use gantry_core::manifest::{self, MAX_SOURCE_BYTES, Manifest, ManifestSource};
use gantry_core::parallel::in_parallel;
use gantry_core::problem::{Error, Location, Problem, Result};
use gantry_core::resource::Resource;
use gantry_k8s_cel::KubernetesRelease;

/// The minimum number of applies between two scans of the whole folder. See [`FolderState::refresh_for`].
const MIN_APPLIES_BETWEEN_SCANS: usize = 64;

/// Everything in the folder as of the last scan. A scan that fails changes nothing.
#[derive(Debug, Default)]
pub(crate) struct FolderState {
    holder: FileContainer,
    /// See [`FolderObjectKey::new`].
    pub namespace: Option<String>,
    files: DirFiles,
    index: DirIndex,
    pub leftovers: Vec<PathBuf>,
    /// The release of Kubernetes that the files stand for: the one that the user named, or that of their snapshot.
    pub release: Option<KubernetesRelease>,
    /// Links to folders, which are not followed.
    pub links: Vec<PathBuf>,
    /// The names of all entries directly in the folder, in lower case, because file systems differ in whether case
    /// matters.
    names: BTreeSet<String>,
    /// When the folder's own list of entries last changed, as of the last scan or our last write.
    changed: Option<SystemTime>,
    /// The number of applies left until the whole folder is scanned again.
    applies_until_scan: usize,
    /// How often the whole folder was scanned.
    #[cfg(test)]
    scans: usize,
}

impl FolderState {
    /// Builds the state from files that nobody changes. Objects whose manifest names no namespace are in this one.
    pub fn of_fixed(files: Vec<FixedFile>, holder: FileContainer, namespace: Option<&str>) -> Result<Self> {
        in_parallel(&files, |file| file.read().is_ok());
        let mut state = FolderState { holder, namespace: namespace.map(str::to_owned), ..FolderState::default() };
        let mut problems = Vec::new();
        for file in files {
            let (path, stamp) = (file.path.clone(), (file.source.text().len() as u64, None));
            match file.into_read() {
                Ok(file) => drop(state.files.insert(path, (stamp, Arc::new(file)))),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() {
            state.index = DirIndex::build(&state.files, holder, namespace).map_err(Error::Failed)?;
            return Ok(state);
        }
        problems.sort();
        Err(Error::Failed(problems))
    }

    /// The container of the files.
    pub fn holder(&self) -> FileContainer {
        self.holder
    }

    /// Reads a folder.
    pub fn open(root: &Path) -> Result<Self> {
        let mut state = FolderState::default();
        state.refresh(root, None)?;
        let has_object = |path: &Path| state.files.get(path).is_some_and(|(_, file)| !file.manifests.is_empty());
        let missing = snapshot::missing(root, has_object);
        if !missing.is_empty() {
            return Err(Error::Failed(missing));
        }
        // The first apply scans again: a person may have looked at the plan for an hour.
        state.applies_until_scan = 0;
        let folders: BTreeSet<&Path> = state.files.keys().filter_map(|path| path.parent()).chain([root]).collect();
        state.release = snapshot::recorded_release(folders);
        Ok(state)
    }

    /// Called before an object is written, to notice changes made by others. The file that contains the object is
    /// always read, and the whole folder is scanned if files were added to it or removed from it.
    ///
    /// A file that was changed in place, or one in a subfolder, is noticed at the next scan of the whole folder. A scan
    /// for each object would make a deploy quadratic, so there is one scan for as many applies as there are files. The
    /// total work is then proportional to the number of files plus the number of objects.
    pub fn refresh_for(&mut self, root: &Path, identity: &FolderObjectKey) -> Result<()> {
        let path = self.find(identity).map(|(path, ..)| path.to_owned());
        let unchanged = self.changed.is_some() && files::changed(root) == self.changed;
        if !unchanged || self.applies_until_scan == 0 {
            return self.refresh(root, path.as_deref());
        }
        self.applies_until_scan -= 1;
        match path {
            Some(path) if !path.exists() => self.refresh(root, None),
            Some(path) => self.read_one(&path, true),
            None => Ok(()),
        }
    }

    /// Scans the whole folder and reads what has changed on disk. The file `surely` is read regardless of its length
    /// and modification time.
    pub fn refresh(&mut self, root: &Path, surely: Option<&Path>) -> Result<()> {
        // Taken before the listing, so that a concurrent change is noticed next time.
        let changed = files::changed(root);
        let listing = files::list(root).map_err(Error::failed)?;
        let mut files = DirFiles::new();
        let mut fresh = Vec::new();
        let mut problems = Vec::new();
        for path in listing.manifests {
            let known = self.files.get(&path);
            match check_file(&path, known, surely == Some(path.as_path())) {
                Ok((stamp, FileFreshness::Known(file))) => drop(files.insert(path, (stamp, file))),
                Ok((stamp, FileFreshness::Fresh(source))) => fresh.push((path, stamp, source)),
                Err(problem) => problems.push(problem),
            }
        }
        let differs = !fresh.is_empty() || files.len() != self.files.len();
        let read = in_parallel(&fresh, |(_, _, source)| ReadFile::read(source, None));
        for ((path, stamp, _), read) in fresh.into_iter().zip(read) {
            match read {
                Ok(file) => drop(files.insert(path, (stamp, Arc::new(file)))),
                Err(more) => problems.extend(more),
            }
        }
        if !problems.is_empty() {
            problems.sort();
            return Err(Error::Failed(problems));
        }
        if differs {
            self.index = DirIndex::build(&files, self.holder, self.namespace.as_deref()).map_err(Error::Failed)?;
        }
        self.files = files;
        self.leftovers = listing.leftovers;
        self.links = listing.links;
        self.names = listing.names;
        self.changed = changed;
        self.applies_until_scan = self.files.len().max(MIN_APPLIES_BETWEEN_SCANS);
        #[cfg(test)]
        {
            self.scans += 1;
        }
        Ok(())
    }

    /// Updates the state after one file was written.
    pub fn update_written_file(&mut self, root: &Path, path: &Path) -> Result<()> {
        self.read_one(path, false)?;
        if let Some(name) = path.file_name().filter(|_| path.parent() == Some(root)) {
            self.names.insert(name.to_string_lossy().to_lowercase());
        }
        self.changed = files::changed(root);
        Ok(())
    }

    /// Reads one file again. If `known` is set, a file whose text is unchanged keeps its parsed content.
    fn read_one(&mut self, path: &Path, known: bool) -> Result<()> {
        let before = self.files.get(path);
        let (stamp, look) = check_file(path, before.filter(|_| known), true).map_err(Error::failed)?;
        let FileFreshness::Fresh(source) = look else { return Ok(()) };
        let file = Arc::new(ReadFile::read(&source, None).map_err(Error::Failed)?);
        let before = before.map(|(_, file)| file.clone());
        let updated = self.index.update(&self.files, path, before.as_deref(), &file).map_err(Error::Failed)?;
        let replaced = self.files.insert(path.to_owned(), (stamp, file));
        if !updated {
            match DirIndex::build(&self.files, self.holder, self.namespace.as_deref()) {
                Ok(index) => self.index = index,
                Err(problems) => {
                    match replaced {
                        Some(replaced) => self.files.insert(path.to_owned(), replaced),
                        None => self.files.remove(path),
                    };
                    return Err(Error::Failed(problems));
                }
            }
        }
        Ok(())
    }

    /// The release of Kubernetes whose kinds are served.
    fn release(&self) -> KubernetesRelease {
        self.release.unwrap_or_default()
    }

    /// Whether an entry directly in the folder has this name, ignoring case.
    pub fn is_taken(&self, name: &str) -> bool {
        self.names.contains(&name.to_lowercase())
    }

    pub fn custom(&self, group: &str, kind: &str) -> Option<&CustomKind> {
        self.index.custom(group, kind)
    }

    /// Where the kind is served, if it is.
    pub fn resource(&self, gvk: &Gvk) -> Option<Resource> {
        let custom = self.custom(&gvk.group, &gvk.kind);
        let (plural, namespaced, served) = match (kinds::built_in(&gvk.group, &gvk.kind), custom) {
            (None, Some(custom)) => {
                (custom.plural.as_str(), custom.namespaced, custom.served.contains_key(&gvk.version))
            }
            (known, _) => {
                let known = known.or_else(|| kinds::of_olm(&gvk.group, &gvk.kind))?;
                let is_served = known.versions_of(self.release()).contains(&gvk.version.as_str());
                (known.plural, known.namespaced, is_served)
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
            kind.versions_of(self.release()).into_iter().map(|version| Gvk {
                group: kind.group.into(),
                version: version.into(),
                kind: kind.kind.into(),
            })
        });
        let custom = self.index.custom_kinds().flat_map(|((group, kind), custom)| {
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

    /// The file that contains the object, and the object's index in it.
    pub fn find(&self, identity: &FolderObjectKey) -> Option<(&Path, &ReadFile, usize)> {
        let (path, number) = self.index.place(identity)?;
        let (_, file) = self.files.get(path)?;
        Some((path, file, number))
    }

    /// The objects of a kind, sorted by namespace and name, each at the version of its manifest.
    pub fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = (&FolderObjectKey, &Manifest)> {
        self.index
            .of_kind(group, kind)
            .filter_map(|(identity, path, number)| Some((identity, self.files.get(path)?.1.manifests.get(number)?)))
    }

    pub fn manifest(&self, identity: &FolderObjectKey) -> Option<&Manifest> {
        self.find(identity).and_then(|(_, file, index)| file.manifests.get(index))
    }
}

enum FileFreshness {
    Known(Arc<ReadFile>),
    Fresh(Arc<ManifestSource>),
}

/// Whether the file is unchanged, or its new text.
fn check_file(
    path: &Path,
    known: Option<&(Stamp, Arc<ReadFile>)>,
    surely: bool,
) -> std::result::Result<(Stamp, FileFreshness), Problem> {
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
        return Ok((stamp, FileFreshness::Known(file.clone())));
    }
    if metadata.len() > MAX_SOURCE_BYTES as u64 {
        return Err(Problem::new("too large to read").at(whole()).help("split it into several files"));
    }
    let text = manifest::text(&name, fs::read(path).map_err(cannot_read)?)?;
    match known {
        Some((_, file)) if file.source.text() == text => Ok((stamp, FileFreshness::Known(file.clone()))),
        _ => Ok((stamp, FileFreshness::Fresh(Arc::new(ManifestSource::new(name, text))))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_map(name: &str) -> (FolderObjectKey, String) {
        let identity = FolderObjectKey {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: Some("default".into()),
            name: name.into(),
        };
        (identity, format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}"))
    }

    #[test]
    fn creating_many_objects_lists_the_folder_a_few_times_only() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut state = FolderState::open(root).unwrap();
        for number in 0..1000 {
            let (identity, text) = config_map(&format!("m{number}"));
            state.refresh_for(root, &identity).unwrap();
            let path = root.join(format!("{number}.yaml"));
            fs::write(&path, text).unwrap();
            state.update_written_file(root, &path).unwrap();
            assert!(state.manifest(&identity).is_some());
        }
        // At the start, before the first write, and each time the number of files has doubled.
        assert!(state.scans <= 7, "{}", state.scans);
    }

    #[test]
    fn a_crd_that_sets_the_scope_of_objects_in_another_file_moves_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("x.yaml"), "{apiVersion: x.example.com/v1, kind: X, metadata: {name: x}}").unwrap();
        let mut state = FolderState::open(root).unwrap();
        let namespaces = |state: &FolderState| -> Vec<Option<String>> {
            state.of_kind("x.example.com", "X").map(|(identity, _)| identity.namespace.clone()).collect()
        };
        assert_eq!(namespaces(&state), [None]);
        let crd = root.join("crd.yaml");
        let text = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
                    metadata: {name: xs.x.example.com}, spec: {group: x.example.com, scope: Namespaced, \
                    names: {kind: X, plural: xs}, versions: [{name: v1, served: true, storage: true}]}}";
        fs::write(&crd, text).unwrap();
        state.update_written_file(root, &crd).unwrap();
        assert_eq!(namespaces(&state), [Some("default".to_owned())]);
        assert!(state.custom("x.example.com", "X").is_some());
    }

    #[test]
    fn a_file_that_makes_two_objects_one_is_an_error_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        // Two objects while the kind is unknown; the same object once a CRD says that the kind is cluster-scoped.
        let x = |more: &str| format!("{{apiVersion: x.example.com/v1, kind: X, metadata: {{name: x{more}}}}}");
        fs::write(root.join("one.yaml"), x("")).unwrap();
        fs::write(root.join("two.yaml"), x(", namespace: a")).unwrap();
        let mut state = FolderState::open(root).unwrap();
        let crd = root.join("crd.yaml");
        let text = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
                    metadata: {name: xs.x.example.com}, spec: {group: x.example.com, scope: Cluster, \
                    names: {kind: X, plural: xs}, versions: [{name: v1, served: true, storage: true}]}}";
        fs::write(&crd, text).unwrap();
        let error = state.update_written_file(root, &crd).unwrap_err().to_string();
        assert!(error.contains("is defined twice in this folder"), "{error}");
        assert_eq!(state.files.len(), 2);
        assert_eq!(state.of_kind("x.example.com", "X").count(), 2);
    }

    #[test]
    fn an_object_that_a_written_file_defines_a_second_time_is_an_error_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (identity, text) = config_map("a");
        fs::write(root.join("a.yaml"), &text).unwrap();
        let mut state = FolderState::open(root).unwrap();
        fs::write(root.join("b.yaml"), &text).unwrap();
        let error = state.update_written_file(root, &root.join("b.yaml")).unwrap_err().to_string();
        assert!(error.contains("configmap/a is defined twice in this folder"), "{error}");
        assert_eq!(state.find(&identity).map(|(path, ..)| path.to_owned()), Some(root.join("a.yaml")));
    }
}
