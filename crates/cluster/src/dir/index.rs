//! The index of which object is in which file, and of the kinds that the files' CRDs define.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::kinds;
use super::read::{CustomKind, DirFiles, FileContainer, FolderObjectKey, KindKey, ReadFile};
use gantry_core::manifest::Manifest;
use gantry_core::problem::Problem;

#[derive(Debug, Default)]
pub(super) struct DirIndex {
    holder: FileContainer,
    /// See [`FolderObjectKey::new`].
    namespace: Option<String>,
    custom: BTreeMap<KindKey, CustomKind>,
    places: BTreeMap<FolderObjectKey, (PathBuf, usize)>,
}

impl DirIndex {
    /// Builds the index of all files. Fails if two documents define the same object.
    pub fn build(files: &DirFiles, holder: FileContainer, namespace: Option<&str>) -> Result<Self, Vec<Problem>> {
        let custom = files.values().flat_map(|(_, file)| file.custom.iter().cloned()).collect();
        let mut index = DirIndex { holder, namespace: namespace.map(str::to_owned), custom, places: BTreeMap::new() };
        let mut first: BTreeMap<FolderObjectKey, &Manifest> = BTreeMap::new();
        let mut problems = Vec::new();
        for (path, (_, file)) in files {
            for (number, manifest) in file.manifests.iter().enumerate() {
                let identity = identity(manifest, namespace, |key| index.custom.get(key));
                match first.get(&identity) {
                    // In a folder, the next write would leave one of them as it is.
                    Some(first) if holder != FileContainer::Folder && manifest.is_repetition_of(first) => {}
                    Some(first) => problems.push(defined_twice(manifest, first, holder)),
                    None => {
                        first.insert(identity.clone(), manifest);
                        index.places.insert(identity, (path.clone(), number));
                    }
                }
            }
        }
        if problems.is_empty() { Ok(index) } else { Err(problems) }
    }

    /// Updates the index after the file at `path` changed from `before` to `after`; `files` still holds the old state.
    /// On error (another document defines the object, too), nothing changes.
    ///
    /// Returns false if only [`DirIndex::build`] can decide: the CRDs in the file can change the scope of a kind, and with it
    /// the identity of objects in other files.
    pub fn update(
        &mut self,
        files: &DirFiles,
        path: &Path,
        before: Option<&ReadFile>,
        after: &ReadFile,
    ) -> Result<bool, Vec<Problem>> {
        let defined = before.map_or(&[][..], |before| &before.custom);
        let stays = |(key, _): &(KindKey, CustomKind)| after.custom.iter().any(|(defines, _)| defines == key);
        let moves_nothing = |(key, custom): &(KindKey, CustomKind)| match self.custom.get(key) {
            Some(known) => defined.iter().any(|(defines, _)| defines == key) && known.namespaced == custom.namespaced,
            None => self.of_kind(&key.0, &key.1).next().is_none(),
        };
        if !defined.iter().all(stays) || !after.custom.iter().all(moves_nothing) {
            return Ok(false);
        }
        let mut places: BTreeMap<FolderObjectKey, (PathBuf, usize)> = BTreeMap::new();
        let mut problems = Vec::new();
        for (number, manifest) in after.manifests.iter().enumerate() {
            let kind = |key: &KindKey| after.kind(key).or_else(|| self.custom.get(key));
            let identity = identity(manifest, self.namespace.as_deref(), kind);
            let first = match (places.get(&identity), self.places.get(&identity)) {
                (Some((_, first)), _) => after.manifests.get(*first),
                (None, Some((other, first))) if other != path => {
                    files.get(other).and_then(|(_, file)| file.manifests.get(*first))
                }
                (None, _) => None,
            };
            match first {
                Some(first) => problems.push(defined_twice(manifest, first, self.holder)),
                None => drop(places.insert(identity, (path.to_owned(), number))),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        for manifest in before.map_or(&[][..], |before| &before.manifests) {
            let identity = identity(manifest, self.namespace.as_deref(), |key| self.custom.get(key));
            self.places.remove(&identity);
        }
        self.places.append(&mut places);
        self.custom.extend(after.custom.iter().cloned());
        Ok(true)
    }

    /// The file that contains the object, and the object's index in it.
    pub fn place(&self, identity: &FolderObjectKey) -> Option<(&Path, usize)> {
        self.places.get(identity).map(|(path, number)| (path.as_path(), *number))
    }

    /// The objects of a kind, sorted by namespace and name.
    pub fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = (&FolderObjectKey, &Path, usize)> {
        let first = FolderObjectKey { group: group.into(), kind: kind.into(), namespace: None, name: String::new() };
        self.places
            .range(&first..)
            .take_while(move |(identity, _)| (&identity.group, &identity.kind) == (&first.group, &first.kind))
            .map(|(identity, (path, number))| (identity, path.as_path(), *number))
    }

    /// The kinds that the CRDs define.
    pub fn custom_kinds(&self) -> impl Iterator<Item = (&KindKey, &CustomKind)> {
        self.custom.iter()
    }

    pub fn custom(&self, group: &str, kind: &str) -> Option<&CustomKind> {
        self.custom.get(&(group.to_owned(), kind.to_owned()))
    }
}

fn defined_twice(manifest: &Manifest, first: &Manifest, holder: FileContainer) -> Problem {
    Problem::new(format!("{} is defined twice in this {holder}", manifest.object))
        .at(manifest.origin.location())
        .help(format!("a cluster has each object only once; first defined at {}", first.origin.location()))
}

/// The object's identity. `custom` gives the scope of a kind that is not built in. The scope of an unknown kind is
/// inferred from whether the manifest sets a namespace.
fn identity<'a>(
    manifest: &Manifest,
    of_run: Option<&str>,
    custom: impl Fn(&KindKey) -> Option<&'a CustomKind>,
) -> FolderObjectKey {
    let object = &manifest.object;
    let namespaced = match kinds::built_in(object.group(), &object.kind) {
        Some(known) => known.namespaced,
        None => match custom(&(object.group().to_owned(), object.kind.clone())) {
            Some(custom) => custom.namespaced,
            None => {
                kinds::of_olm(object.group(), &object.kind).map_or(object.namespace.is_some(), |known| known.namespaced)
            }
        },
    };
    FolderObjectKey::new(object, namespaced, of_run)
}
