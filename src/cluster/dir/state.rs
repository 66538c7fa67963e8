//! What the files hold that stand in for a cluster: every file that was read, and where each object is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::index::Index;
use super::read::{CommitFile, CustomKind, Files, Holder, Identity, ReadFile, Stamp};
use super::{files, kinds};
use crate::cluster::Gvk;
use crate::manifest::{self, MAX_SOURCE_BYTES, Manifest, Source};
use crate::parallel::in_parallel;
use crate::problem::{Error, Location, Problem, Result};
use crate::resource::Resource;

/// Applies for which a folder is looked through only once, at least. See [`State::look_again`].
const FEWEST_BETWEEN_LOOKS: usize = 64;

/// Everything in the folder, as it was when it was last looked at. A look that fails changes nothing.
#[derive(Debug, Default)]
pub(in crate::cluster) struct State {
    holder: Holder,
    files: Files,
    index: Index,
    pub leftovers: Vec<PathBuf>,
    /// Links to folders, of which nothing is read.
    pub links: Vec<PathBuf>,
    /// The names of everything directly in the folder, in lower case: file systems differ in whether case matters.
    names: BTreeSet<String>,
    /// When the folder's own list of names last changed, as of the last look or our last write.
    changed: Option<SystemTime>,
    /// Applies left until the whole folder is looked through again.
    until_look: usize,
    /// How often the whole folder was looked through.
    #[cfg(test)]
    looks: usize,
}

impl State {
    /// The files of a commit, by their paths.
    pub fn of_commit(files: Vec<CommitFile>) -> Result<Self> {
        in_parallel(&files, |file| file.read().is_ok());
        let mut state = State { holder: Holder::Commit, ..State::default() };
        let mut problems = Vec::new();
        for file in files {
            let (path, stamp) = (file.path.clone(), (file.source.text.len() as u64, None));
            match file.into_read() {
                Ok(file) => drop(state.files.insert(path, (stamp, Arc::new(file)))),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() {
            state.index = Index::of(&state.files, state.holder).map_err(Error::Failed)?;
            return Ok(state);
        }
        problems.sort();
        Err(Error::Failed(problems))
    }

    /// Where the files are.
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// Reads a folder.
    pub fn open(root: &Path) -> Result<Self> {
        let mut state = State::default();
        state.refresh(root, None)?;
        // The first apply looks again: a person may have thought about the plan for an hour.
        state.until_look = 0;
        Ok(state)
    }

    /// Looks again before an object is written, so that a change by somebody else is seen: the file that holds the
    /// object is always read, and the whole folder is looked through when files were added to it or taken out of it.
    ///
    /// A file that was changed in place, or one in a folder below, is found at the next look through the whole. Doing
    /// that for each object would make a deploy quadratic, so it is done once for as many objects as there are files:
    /// then the work of all looks grows with the files plus the objects.
    pub fn look_again(&mut self, root: &Path, identity: &Identity) -> Result<()> {
        let path = self.find(identity).map(|(path, ..)| path.to_owned());
        let unchanged = self.changed.is_some() && files::changed(root) == self.changed;
        if !unchanged || self.until_look == 0 {
            return self.refresh(root, path.as_deref());
        }
        self.until_look -= 1;
        match path {
            Some(path) if !path.exists() => self.refresh(root, None),
            Some(path) => self.read_one(&path, true),
            None => Ok(()),
        }
    }

    /// Looks through the whole folder and reads what has changed on the disk. `surely` is read whatever its length and
    /// time say.
    pub fn refresh(&mut self, root: &Path, surely: Option<&Path>) -> Result<()> {
        // Before the listing: a change while it is made is seen the next time.
        let changed = files::changed(root);
        let listing = files::list(root).map_err(Error::failed)?;
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
            self.index = Index::of(&files, self.holder).map_err(Error::Failed)?;
        }
        self.files = files;
        self.leftovers = listing.leftovers;
        self.links = listing.links;
        self.names = listing.names;
        self.changed = changed;
        self.until_look = self.files.len().max(FEWEST_BETWEEN_LOOKS);
        #[cfg(test)]
        {
            self.looks += 1;
        }
        Ok(())
    }

    /// Takes in one file that was just written.
    pub fn written(&mut self, root: &Path, path: &Path) -> Result<()> {
        self.read_one(path, false)?;
        if let Some(name) = path.file_name().filter(|_| path.parent() == Some(root)) {
            self.names.insert(name.to_string_lossy().to_lowercase());
        }
        self.changed = files::changed(root);
        Ok(())
    }

    /// Reads one file again, unless `known` allows that it is the one that was read and it is.
    fn read_one(&mut self, path: &Path, known: bool) -> Result<()> {
        let before = self.files.get(path);
        let (stamp, look) = look(path, before.filter(|_| known), true).map_err(Error::failed)?;
        let Look::Fresh(source) = look else { return Ok(()) };
        let file = Arc::new(ReadFile::read(&source, None).map_err(Error::Failed)?);
        let before = before.map(|(_, file)| file.clone());
        let updated = self.index.update(&self.files, path, before.as_deref(), &file).map_err(Error::Failed)?;
        let replaced = self.files.insert(path.to_owned(), (stamp, file));
        if !updated {
            match Index::of(&self.files, self.holder) {
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

    /// Whether something directly in the folder has this name, in whatever case.
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
                (known.plural, known.namespaced, known.versions.contains(&gvk.version.as_str()))
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

    /// The file that holds the object, and which of its objects it is.
    pub fn find(&self, identity: &Identity) -> Option<(&Path, &ReadFile, usize)> {
        let (path, number) = self.index.place(identity)?;
        let (_, file) = self.files.get(path)?;
        Some((path, file, number))
    }

    /// The objects of a kind by namespace and name, at whatever version each is written.
    pub fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = (&Identity, &Manifest)> {
        self.index
            .of_kind(group, kind)
            .filter_map(|(identity, path, number)| Some((identity, self.files.get(path)?.1.manifests.get(number)?)))
    }

    pub fn manifest(&self, identity: &Identity) -> Option<&Manifest> {
        self.find(identity).and_then(|(_, file, index)| file.manifests.get(index))
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
        return Err(Problem::new("too large to read").at(whole()).help("split it into several files"));
    }
    let text = manifest::text(&name, fs::read(path).map_err(cannot_read)?)?;
    match known {
        Some((_, file)) if file.source.text == text => Ok((stamp, Look::Known(file.clone()))),
        _ => Ok((stamp, Look::Fresh(Arc::new(Source::new(name, text))))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_map(name: &str) -> (Identity, String) {
        let identity = Identity {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: Some("default".into()),
            name: name.into(),
        };
        (identity, format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}"))
    }

    #[test]
    fn creating_many_objects_looks_through_the_folder_a_few_times() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut state = State::open(root).unwrap();
        for number in 0..1000 {
            let (identity, text) = config_map(&format!("m{number}"));
            state.look_again(root, &identity).unwrap();
            let path = root.join(format!("{number}.yaml"));
            fs::write(&path, text).unwrap();
            state.written(root, &path).unwrap();
            assert!(state.manifest(&identity).is_some());
        }
        // At the start, before the first write, and each time the number of files has doubled.
        assert!(state.looks <= 7, "{}", state.looks);
    }

    #[test]
    fn a_crd_that_gives_objects_of_another_file_a_scope_moves_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("x.yaml"), "{apiVersion: x.example.com/v1, kind: X, metadata: {name: x}}").unwrap();
        let mut state = State::open(root).unwrap();
        let namespaces = |state: &State| -> Vec<Option<String>> {
            state.of_kind("x.example.com", "X").map(|(identity, _)| identity.namespace.clone()).collect()
        };
        assert_eq!(namespaces(&state), [None]);
        let crd = root.join("crd.yaml");
        let text = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
                    metadata: {name: xs.x.example.com}, spec: {group: x.example.com, scope: Namespaced, \
                    names: {kind: X, plural: xs}, versions: [{name: v1, served: true, storage: true}]}}";
        fs::write(&crd, text).unwrap();
        state.written(root, &crd).unwrap();
        assert_eq!(namespaces(&state), [Some("default".to_owned())]);
        assert!(state.custom("x.example.com", "X").is_some());
    }

    #[test]
    fn a_file_that_makes_two_objects_one_is_an_error_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        // Two objects while nobody knows the kind, one once a CRD says that it has no namespaces.
        let x = |more: &str| format!("{{apiVersion: x.example.com/v1, kind: X, metadata: {{name: x{more}}}}}");
        fs::write(root.join("one.yaml"), x("")).unwrap();
        fs::write(root.join("two.yaml"), x(", namespace: a")).unwrap();
        let mut state = State::open(root).unwrap();
        let crd = root.join("crd.yaml");
        let text = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
                    metadata: {name: xs.x.example.com}, spec: {group: x.example.com, scope: Cluster, \
                    names: {kind: X, plural: xs}, versions: [{name: v1, served: true, storage: true}]}}";
        fs::write(&crd, text).unwrap();
        let error = state.written(root, &crd).unwrap_err().to_string();
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
        let mut state = State::open(root).unwrap();
        fs::write(root.join("b.yaml"), &text).unwrap();
        let error = state.written(root, &root.join("b.yaml")).unwrap_err().to_string();
        assert!(error.contains("configmap/a is defined twice in this folder"), "{error}");
        assert_eq!(state.find(&identity).map(|(path, ..)| path.to_owned()), Some(root.join("a.yaml")));
    }
}
