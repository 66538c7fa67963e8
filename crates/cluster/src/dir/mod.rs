//! A folder of manifests that represents a cluster.
//!
//! Reading it returns what an API server that holds these objects would return. Applying to it writes what the server
//! would store, one object at a time. Each file is replaced atomically, so every file stays intact even if the process
//! is killed. CustomResourceDefinitions get the server's defaults, `status.storedVersions` and refusals ([`crd`]), and
//! every object is merged as in server-side apply ([`merge`]). What only a running server can do is not emulated:
//! custom resources are not validated or pruned, namespaces need not exist, and no controller runs.
//!
//! Documents of `kind: Config` in the folder are not objects and are left alone.

mod answers;
mod crd;
mod document;
mod files;
mod index;
mod kinds;
mod list;
mod merge;
mod names;
mod read;
pub mod snapshot;
mod state;
mod uid;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use self::answers::live;
use self::files::Readers;
pub use self::list::DirPages;
use self::read::FolderObjectKey;
pub(super) use self::read::{FileContainer, FixedFile};
pub(super) use self::state::FolderState;
use super::{Apply, ApplyError, Gvk, ListRequest, ObjectToRead, Unmark, WritePrecondition};
use gantry_core::problem::{Error, Location, Problem, Result};
use gantry_core::resource::{LiveObject, ObjectRef, Resource};
use gantry_k8s_cel::KubernetesRelease;

/// An opened folder. It can be shared between threads; writes are serialized.
pub struct DirTarget {
    root: PathBuf,
    state: Mutex<FolderState>,
    notices: Vec<Problem>,
}

impl DirTarget {
    /// Reads the whole folder. An empty folder is an empty cluster. A missing folder is an error, because it is more
    /// likely a typo than an empty cluster.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let metadata = fs::metadata(path).map_err(|error| {
            Error::failed(match error.kind() {
                io::ErrorKind::NotFound => Problem::new(format!("the folder {shown} does not exist"))
                    .help(format!("check the path, or create an empty cluster: mkdir {shown}")),
                _ => Problem::new(format!("cannot read the folder {shown}: {error}")),
            })
        })?;
        if !metadata.is_dir() {
            return Err(Error::failed(
                Problem::new(format!("{shown} is not a folder"))
                    .help("a dir target is a folder of manifests that represents a cluster"),
            ));
        }
        let state = FolderState::open(path)?;
        let notice = |link: &PathBuf| unfollowed(gantry_core::manifest::shown_text(&link.to_string_lossy()));
        let notices = state.links.iter().map(notice).collect();
        Ok(DirTarget { root: path.to_owned(), state: Mutex::new(state), notices })
    }

    /// The release of Kubernetes that the folder stands for.
    pub fn release(&self) -> Option<KubernetesRelease> {
        self.state().release
    }

    /// Stands for this release.
    pub(crate) fn set_release(&mut self, release: KubernetesRelease) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).release = Some(release);
    }

    /// Notices about how the folder was read.
    pub fn notices(&self) -> &[Problem] {
        &self.notices
    }

    /// The target for people: `dir: state`.
    pub fn describe(&self) -> String {
        format!("dir: {}", self.root.display())
    }

    /// See [`FolderState::discover`].
    pub fn discover(&self, kinds: &BTreeSet<Gvk>) -> BTreeMap<Gvk, Resource> {
        self.state().discover(kinds)
    }

    /// The kinds that a server of these objects would serve, at each version, sorted.
    pub fn served(&self) -> Vec<Resource> {
        self.state().resources()
    }

    /// Reads from the folder as it was when it was opened or last written to.
    pub fn read(&self, wanted: &[ObjectToRead]) -> Vec<Option<LiveObject>> {
        self.state().read(wanted)
    }

    /// Lists from the folder as it was when it was opened or last written to.
    pub fn list(&self, request: &ListRequest<'_>) -> DirPages {
        self.state().list(request)
    }

    /// Checks the folder for changes, checks the pin against the current object, then merges and writes.
    pub fn apply(&self, apply: &Apply<'_>) -> std::result::Result<LiveObject, ApplyError> {
        self.change(apply.resource, apply.object, apply.pin, |state, before, identity| {
            stored(state, apply, before, identity)
        })
    }

    /// Removes labels and annotations from an object.
    pub fn unmark(&self, unmark: &Unmark<'_>) -> std::result::Result<LiveObject, ApplyError> {
        let Unmark { resource, object, live, .. } = unmark;
        let pin = WritePrecondition::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() };
        self.change(resource, object, &pin, |_, before, identity| {
            let Some(before) = before else { return Err(ApplyError::Changed) };
            let old = before.raw.value();
            let mut object = old.clone();
            for (name, keys) in [("labels", unmark.labels), ("annotations", unmark.annotations)] {
                let Some(texts) = object["metadata"].get_mut(name).and_then(Value::as_object_mut) else { continue };
                keys.iter().for_each(|key| drop(texts.shift_remove(*key)));
            }
            set_server_metadata(&mut object, Some(&old), Some(before), identity);
            Ok(object)
        })
    }

    /// Checks the folder for changes, checks the pin against the current object, and writes what `make` returns.
    fn change(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        pin: &WritePrecondition,
        make: impl FnOnce(&FolderState, Option<&LiveObject>, &FolderObjectKey) -> std::result::Result<Value, ApplyError>,
    ) -> std::result::Result<LiveObject, ApplyError> {
        let mut state = self.state();
        let _lock = files::lock(&self.root);
        let identity = FolderObjectKey::new(object, resource.namespaced, None);
        state.refresh_for(&self.root, &identity).map_err(first_refusal)?;
        remove_leftovers(&mut state);

        let before = state.manifest(&identity).map(live);
        match (pin, &before) {
            (WritePrecondition::Absent, None) => {}
            (WritePrecondition::At { uid, resource_version }, Some(live))
                if *uid == live.uid && *resource_version == live.resource_version => {}
            _ => return Err(ApplyError::Changed),
        }

        let new = make(&state, before.as_ref(), &identity)?;
        if let Some(before) = before
            && before.raw.value() == new
        {
            return Ok(before);
        }
        let path = self.write(&mut state, &identity, object, &new)?;
        state.update_written_file(&self.root, &path).map_err(first_refusal)?;
        match state.manifest(&identity) {
            Some(manifest) => Ok(live(manifest)),
            // Removed after the write.
            None => Err(ApplyError::Changed),
        }
    }

    /// Removes the temporary files of a run that was killed while it wrote, because they can contain values of Secrets.
    /// Files that cannot be removed stay; they are never read.
    pub fn remove_leftovers(&self) {
        let mut state = self.state();
        // Without the lock, a file that looks left over could be one that another process is writing.
        if let Some(_lock) = files::lock(&self.root) {
            remove_leftovers(&mut state);
        }
    }

    /// Writes the object to its file, or to a new file, and returns the path.
    fn write(
        &self,
        state: &mut FolderState,
        identity: &FolderObjectKey,
        object: &ObjectRef,
        value: &Value,
    ) -> std::result::Result<PathBuf, ApplyError> {
        let refused = |path: &Path, error: &io::Error| {
            ApplyError::Refused(
                Problem::new(format!("cannot write {}: {error}", path.display()))
                    .help(format!("make sure that {} is writable, then run again", self.root.display())),
            )
        };
        if let Some((path, file, index)) = state.find(identity) {
            let text = document::replaced(&file.manifests, index, value).map_err(ApplyError::Refused)?;
            files::replace(&self.root, path, &text).map_err(|error| refused(path, &error))?;
            return Ok(path.to_owned());
        }
        let object = ObjectRef { namespace: identity.namespace.clone(), ..object.clone() };
        let readers = if object.is_secret() { Readers::Owner } else { Readers::Usual };
        loop {
            let path = self.root.join(free_name(state, &names::file_name(&object)));
            let text = document::render_new_file(&path.display().to_string(), value).map_err(ApplyError::Refused)?;
            match files::create(&path, &text, readers) {
                Ok(()) => return Ok(path),
                // Another process has created that file since the last scan. It may even contain this object.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    state.refresh(&self.root, None).map_err(first_refusal)?;
                    if state.find(identity).is_some() {
                        return Err(ApplyError::Changed);
                    }
                    if free_name(state, &names::file_name(&object))
                        == path.file_name().unwrap_or_default().to_string_lossy()
                    {
                        return Err(refused(&path, &error));
                    }
                }
                Err(error) => return Err(refused(&path, &error)),
            }
        }
    }

    /// A panic elsewhere leaves the state unchanged or one refresh behind, so it is still usable.
    fn state(&self) -> MutexGuard<'_, FolderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name for a new file, numbered if it is taken (ignoring case).
fn free_name(state: &FolderState, name: &str) -> String {
    let stem = name.strip_suffix(".yaml").unwrap_or(name);
    let numbered = (2..).map(|number| format!("{stem}~{number}.yaml"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| !state.is_taken(name))
        .unwrap_or_else(|| name.to_owned())
}

/// The notice for a link to a directory. It is not followed, because it can form a cycle.
pub(super) fn unfollowed(link: String) -> Problem {
    let problem = Problem::new("a link to a directory is not followed; nothing in it counts as live");
    problem.at(Location { file: link, line: 0, column: 0 })
}

fn remove_leftovers(state: &mut FolderState) {
    for leftover in std::mem::take(&mut state.leftovers) {
        let _ = fs::remove_file(leftover);
    }
}

fn first_refusal(error: Error) -> ApplyError {
    let problem = error.problems().first().cloned();
    ApplyError::Refused(problem.unwrap_or_else(|| Problem::new("the folder cannot be read")))
}

/// What is stored after the manifest is applied.
fn stored(
    state: &FolderState,
    apply: &Apply<'_>,
    before: Option<&LiveObject>,
    identity: &FolderObjectKey,
) -> std::result::Result<Value, ApplyError> {
    let desired = apply.raw.value();
    if desired.pointer("/metadata/managedFields").is_some_and(|managed| !managed.is_null()) {
        return Err(ApplyError::Refused(
            Problem::new("metadata.managedFields must be nil")
                .help("remove metadata.managedFields from the manifest; the server maintains it"),
        ));
    }
    let status_is_subresource = match state.custom(apply.object.group(), &apply.object.kind) {
        Some(custom) => custom.served.get(apply.object.version()).copied().unwrap_or(false),
        None => {
            let (group, kind) = (apply.object.group(), apply.object.kind.as_str());
            kinds::built_in(group, kind).or_else(|| kinds::of_olm(group, kind)).is_some()
        }
    };
    let intent = gantry_core::merge::intent(desired, status_is_subresource);
    let old = before.map(|live| live.raw.value());
    let empty = Value::Object(serde_json::Map::new());
    let mut object = merge::apply(old.as_ref().unwrap_or(&empty), &intent, apply).map_err(ApplyError::Conflict)?;
    if apply.object.is_crd() {
        crd::admit_crd(old.as_ref(), &mut object, state.release.unwrap_or_default())
            .map_err(|errors| ApplyError::Refused(crd::refusal(&apply.object.name, &errors)))?;
    }
    if apply.object.is_secret() {
        gantry_core::secret::fold_string_data(&mut object);
    }
    set_server_metadata(&mut object, old.as_ref(), before, identity);
    Ok(object)
}

/// Sets the server's metadata of an object that is written: a uid that never changes, a generation that counts changes
/// of `spec`, and a resourceVersion that counts all changes.
fn set_server_metadata(
    object: &mut Value,
    old: Option<&Value>,
    before: Option<&LiveObject>,
    identity: &FolderObjectKey,
) {
    if old == Some(&*object) {
        return;
    }
    let spec_changed = old.and_then(|old| old.get("spec")) != object.get("spec");
    let has_spec = object.get("spec").is_some();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(namespace) = &identity.namespace {
        metadata.insert("namespace".into(), namespace.as_str().into());
    }
    let uid = before
        .map(|live| live.uid.clone())
        .unwrap_or_else(|| uid::uid((&identity.group, &identity.kind, identity.namespace.as_deref(), &identity.name)));
    metadata.insert("uid".into(), uid.into());
    let counted =
        metadata.get("resourceVersion").and_then(Value::as_str).and_then(|version| version.parse::<u64>().ok());
    metadata.insert("resourceVersion".into(), counted.unwrap_or(0).saturating_add(1).to_string().into());
    if has_spec && spec_changed {
        let known = metadata.get("generation").and_then(Value::as_u64).unwrap_or(u64::from(old.is_some()));
        metadata.insert("generation".into(), known.saturating_add(1).into());
    }
}
