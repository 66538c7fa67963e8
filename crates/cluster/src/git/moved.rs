//! Finds objects that are not at the given paths of the commit, but in other files of it.
//!
//! Without this, a change that moves files would have nothing to be compared with, and would pass whatever else it
//! does. An object has moved if the file that had it no longer has it. If that file still has it, for example in an
//! overlay that is a copy of another, the object is new.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Empty;
use std::path::PathBuf;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

use super::blobs::{BlobRequest, Blobs, GitObjectContent};
use super::command;
use super::paths::{self, RepositoryPath};
use super::tree::{Depth, Gathering, GitFileMode, GitTreeEntry, is_within, list, too_much};
use crate::dir::FixedFile;
use gantry_core::manifest::{self, ESCAPES, LoadedManifests, Manifest, ManifestSource, is_manifest_file, shown_text};
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::program::ProgramError;
use gantry_core::resource::ObjectRef;

/// The maximum number of files that a notice names.
const MAX_NAMED: usize = 3;
/// The maximum number of files that are searched.
const MAX_FILES: usize = 20_000;

/// Group, kind, namespace and name.
type CommitObjectKey = (String, String, String, String);

/// The objects to look for on behalf of one path.
struct Sought {
    path: Vec<u8>,
    lacks: Lacks,
    objects: BTreeMap<CommitObjectKey, Arc<ObjectRef>>,
}

/// Why the commit does not have the objects at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacks {
    /// The path does not exist at the commit: these are the objects below it on disk.
    All,
    /// The path exists and has other objects.
    Some,
    /// The user named the path, so only its objects count as live.
    Named,
}

/// In a folder, an object without a namespace is in `default`. For a cluster-scoped object it makes no difference.
fn identity(object: &ObjectRef) -> CommitObjectKey {
    let (group, kind, namespace, name) = object.identity();
    (group.to_owned(), kind.to_owned(), namespace.unwrap_or("default").to_owned(), name.to_owned())
}

/// A place where the commit has an object.
struct MovedObject {
    path: Vec<u8>,
    source: Arc<ManifestSource>,
    /// The reference as written there.
    object: Arc<ObjectRef>,
    /// Whether the file on disk still has it.
    stays: bool,
}

impl Gathering<'_> {
    /// Finds the objects that are missing at the paths elsewhere in the commit, and uses those that have moved as live.
    pub(super) async fn follow_moved(
        &mut self,
        wanted: &[RepositoryPath],
        loaded: Option<&LoadedManifests>,
        blobs: &mut Blobs,
    ) -> Result<(), ProgramError> {
        let mut sought: Vec<Sought> = Vec::new();
        for path in std::mem::take(&mut self.absent) {
            let objects = self.desired_below(&path, loaded);
            let objects = objects.into_iter().map(|object| (identity(&object), object)).collect();
            sought.push(Sought { path, lacks: Lacks::All, objects });
        }
        if sought.is_empty() && loaded.is_none() {
            return Ok(());
        }
        // Objects at the other paths are live already.
        in_parallel(&self.files, |file| file.read().is_ok());
        let manifests = self.files.iter().filter_map(|file| file.read().as_ref().ok()).flat_map(|read| &read.manifests);
        let live: BTreeSet<CommitObjectKey> = manifests.map(|manifest| identity(&manifest.object)).collect();
        for sought in &mut sought {
            sought.objects.retain(|identity, _| !live.contains(identity));
        }
        self.add_missing(wanted, loaded, &live, &mut sought);
        let found = self.find_in_other_files(&sought, commit_of(loaded), blobs).await?;
        for sought in &sought {
            self.use_as_live(sought, &found);
        }
        Ok(())
    }

    /// Adds the manifests that are at none of the paths of the commit.
    fn add_missing(
        &self,
        wanted: &[RepositoryPath],
        loaded: Option<&LoadedManifests>,
        live: &BTreeSet<CommitObjectKey>,
        sought: &mut Vec<Sought>,
    ) {
        let Some(first) = wanted.first() else { return };
        // Many objects can be in one file.
        let mut paths: BTreeMap<&str, &RepositoryPath> = BTreeMap::new();
        for manifest in loaded.iter().flat_map(|loaded| loaded.all()) {
            let identity = identity(&manifest.object);
            if live.contains(&identity) || sought.iter().any(|sought| sought.objects.contains_key(&identity)) {
                continue;
            }
            let source = &manifest.origin.source;
            if source.rendered_from.is_some() {
                continue;
            }
            let wanted = *paths.entry(&*source.name).or_insert_with(|| {
                let path = match &source.committed {
                    Some(file) => file.path.clone(),
                    None => paths::path_in_repository(&source.name, self.repository.work_tree.as_deref())
                        .unwrap_or_default(),
                };
                let path = command::bytes(path.as_os_str());
                wanted.iter().find(|wanted| is_within(&path, &wanted.path)).unwrap_or(first)
            });
            let lacks = if wanted.is_written_out { Lacks::Named } else { Lacks::Some };
            let known = sought.iter_mut().find(|sought| sought.path == wanted.path && sought.lacks == lacks);
            match known {
                Some(known) => drop(known.objects.insert(identity, manifest.object.clone())),
                None => {
                    let objects = BTreeMap::from([(identity, manifest.object.clone())]);
                    sought.push(Sought { path: wanted.path.clone(), lacks, objects });
                }
            }
        }
    }

    /// The objects of the desired side below a path: on disk, or of the manifests if these are of a commit.
    fn desired_below(&self, path: &[u8], loaded: Option<&LoadedManifests>) -> Vec<Arc<ObjectRef>> {
        if commit_of(loaded).is_none() {
            return self.on_disk(path);
        }
        let is_below = |manifest: &&Manifest| {
            let file = manifest.origin.source.committed.as_ref();
            file.is_some_and(|file| is_within(&command::bytes(file.path.as_os_str()), path))
        };
        let below = loaded.into_iter().flat_map(LoadedManifests::all).filter(is_below);
        below.map(|manifest| manifest.object.clone()).collect()
    }

    /// The objects below a path on disk. Errors in these files are reported when the manifests are loaded.
    fn on_disk(&self, path: &[u8]) -> Vec<Arc<ObjectRef>> {
        let Some(root) = &self.repository.work_tree else { return Vec::new() };
        let path = root.join(command::os(path)).to_string_lossy().into_owned();
        let loaded = manifest::load(&[path], &mut None::<Empty>).unwrap_or_default();
        loaded.all().map(|manifest| manifest.object.clone()).collect()
    }

    /// The files of the commit that have some of the objects, except files that were already read.
    async fn find_in_other_files(
        &mut self,
        sought: &[Sought],
        desired_commit: Option<&str>,
        blobs: &mut Blobs,
    ) -> Result<BTreeMap<CommitObjectKey, Vec<MovedObject>>, ProgramError> {
        let mut found: BTreeMap<CommitObjectKey, Vec<MovedObject>> = BTreeMap::new();
        let Some(words) = Words::from_objects(sought.iter().flat_map(|sought| sought.objects.keys())) else {
            return Ok(found);
        };
        let entries = match list(&self.commit.hash, &[], Depth::Files, b"").await {
            Ok(entries) => entries,
            Err(problem) => {
                self.problems.push(problem);
                return Ok(found);
            }
        };
        let read: BTreeSet<&PathBuf> = self.files.iter().map(|file| &file.path).collect();
        let is_unread = |entry: &GitTreeEntry| {
            let path = PathBuf::from(command::os(&entry.path));
            entry.mode == GitFileMode::File && is_manifest_file(&path) && !read.contains(&path)
        };
        let mut entries: Vec<GitTreeEntry> = entries.into_iter().filter(is_unread).collect();
        if entries.len() > MAX_FILES {
            let message = format!(
                "{} has {} other manifest files; only the first {MAX_FILES} were searched for moved objects",
                self.commit.name,
                entries.len()
            );
            let help =
                format!("name the folder that contains all the manifests: --target git:{}:PATH", self.commit.name);
            self.notices.push(Problem::new(message).help(help));
            entries.truncate(MAX_FILES);
        }
        let requests: Vec<BlobRequest> = entries.iter().map(|entry| BlobRequest::Hash(entry.hash.clone())).collect();
        let mut is_too_much = false;
        let take = |index: usize, content| {
            let path = &entries[index].path;
            is_too_much |= content == GitObjectContent::TooMuch;
            let (GitObjectContent::File(bytes), name) = (content, self.name(path)) else { return };
            if !words.may_be_in(&bytes) {
                return;
            }
            // Templates and other files that are not manifests are skipped.
            let Ok(text) = manifest::text(&name, bytes) else { return };
            let source = Arc::new(ManifestSource::new(name, text));
            let mut left: Option<Vec<CommitObjectKey>> = None;
            for manifest in objects_of(&source) {
                let identity = identity(&manifest.object);
                if !sought.iter().any(|sought| sought.objects.contains_key(&identity)) {
                    continue;
                }
                let left = left.get_or_insert_with(|| match desired_commit {
                    // Looked up below.
                    Some(_) => Vec::new(),
                    None => self.on_disk(path).iter().map(|object| self::identity(object)).collect(),
                });
                let stays = left.contains(&identity);
                let (path, source, object) = (path.clone(), source.clone(), manifest.object);
                found.entry(identity).or_default().push(MovedObject { path, source, object, stays });
            }
        };
        blobs.read(&requests, take).await?;
        if is_too_much {
            self.problems.push(too_much());
        }
        if let Some(commit) = desired_commit {
            mark_what_stays(&mut found, commit, blobs).await?;
        }
        Ok(found)
    }

    /// Uses the objects found for a path as live.
    fn use_as_live(
        &mut self,
        Sought { path, lacks, objects }: &Sought,
        found: &BTreeMap<CommitObjectKey, Vec<MovedObject>>,
    ) {
        let target = |path: &[u8]| format!("--target git:{}:{}", self.commit.name, text_of(path));
        let mut moved: BTreeMap<&[u8], Vec<&MovedObject>> = BTreeMap::new();
        let mut new: Vec<(&ObjectRef, &[u8])> = Vec::new();
        for (identity, object) in objects {
            let places = found.get(identity).map(Vec::as_slice).unwrap_or_default();
            let gone: Vec<&MovedObject> =
                places.iter().filter(|place| !place.stays && *lacks != Lacks::Named).collect();
            match gone.as_slice() {
                [] => new.extend(places.first().map(|place| (&**object, place.path.as_slice()))),
                [one] => moved.entry(&one.path).or_default().push(one),
                [first, others @ ..] => {
                    let others: Vec<String> = others.iter().map(|place| text_of(&place.path)).collect();
                    let (object, first, others) =
                        (shown_text(&object.to_string()), &first.path, others.join(" and in "));
                    let message = match lacks {
                        Lacks::All => {
                            format!("does not exist at this commit; {object} is in {} and in {others}", text_of(first))
                        }
                        _ => format!(
                            "does not define {object} at this commit; it is in {} and in {others}",
                            text_of(first)
                        ),
                    };
                    let help = match lacks {
                        Lacks::All => format!("name the one to compare with: {}", target(first)),
                        _ => format!("check its file alone, and name the one to compare with: {}", target(first)),
                    };
                    self.problems.push(Problem::new(message).at(self.at(path)).help(help));
                }
            }
        }
        let new = new.first().map(|(object, from)| {
            let more = if new.len() > 1 { format!(" and {} more", new.len() - 1) } else { String::new() };
            (shown_text(&object.to_string()), more, *from)
        });
        match (lacks, new) {
            (Lacks::All, new) if moved.is_empty() => {
                let notice = self.not_there(path);
                self.notices.push(match new {
                    None => notice,
                    Some((object, _, from)) => notice.help(format!(
                        "{object} is also in {}, which still has it; to compare with that file: {}",
                        text_of(from),
                        target(from)
                    )),
                });
            }
            (Lacks::Some | Lacks::Named, Some((object, more, from))) => {
                let elsewhere = match lacks {
                    Lacks::Named => "at this commit in",
                    _ => "also in a file that still has it,",
                };
                let message = format!("{object}{more} counted as new: {elsewhere} {}", text_of(from));
                let help = format!("to compare with that file: {}", target(from));
                self.notices.push(Problem::new(message).at(self.at(path)).help(help));
            }
            _ => {}
        }
        if moved.is_empty() {
            return;
        }
        let number = moved.values().map(Vec::len).sum::<usize>();
        let number = gantry_core::text::count(number, "object");
        let named: Vec<String> = moved.keys().take(MAX_NAMED).map(|path| text_of(path)).collect();
        let more = moved.len().saturating_sub(MAX_NAMED);
        let more =
            if more > 0 { format!(" and {}", gantry_core::text::count(more, "more file")) } else { String::new() };
        let named = named.join(", ");
        let message = match lacks {
            Lacks::All => format!("does not exist at this commit: {number} compared with {named}{more}"),
            _ => format!("does not define {number} at this commit: compared with {named}{more}"),
        };
        self.notices
            .push(Problem::new(message).at(self.at(path)).help("these files had the objects and no longer have them"));
        for (path, places) in moved {
            let path = PathBuf::from(command::os(path));
            let only = places.iter().map(|place| place.object.clone());
            match self.files.iter_mut().find(|file| file.path == path) {
                Some(FixedFile { only: Some(known), .. }) => known.extend(only),
                _ => {
                    let source = places.first().map(|place| place.source.clone());
                    self.files.extend(source.map(|source| FixedFile::new(path, source, Some(only.collect()))));
                }
            }
        }
    }
}

/// The commit that the manifests are from, if they are from one.
fn commit_of(loaded: Option<&LoadedManifests>) -> Option<&str> {
    let mut files = loaded?.all().filter_map(|manifest| manifest.origin.source.committed.as_ref());
    files.next().map(|file| file.commit.as_str())
}

/// Marks the objects that are still in the same file at the commit of the desired side.
async fn mark_what_stays(
    found: &mut BTreeMap<CommitObjectKey, Vec<MovedObject>>,
    commit: &str,
    blobs: &mut Blobs,
) -> Result<(), ProgramError> {
    let paths: BTreeSet<Vec<u8>> = found.values().flatten().map(|object| object.path.clone()).collect();
    let paths: Vec<Vec<u8>> = paths.into_iter().filter(|path| !path.contains(&b'\n')).collect();
    let request = |path: &Vec<u8>| BlobRequest::Path { commit: commit.to_owned(), path: path.clone() };
    let requests: Vec<BlobRequest> = paths.iter().map(request).collect();
    let mut left: BTreeSet<(Vec<u8>, CommitObjectKey)> = BTreeSet::new();
    let take = |index: usize, content| {
        let GitObjectContent::File(bytes) = content else { return };
        let Ok(text) = manifest::text("", bytes) else { return };
        let objects = objects_of(&Arc::new(ManifestSource::new("", text)));
        left.extend(objects.iter().map(|manifest| (paths[index].clone(), identity(&manifest.object))));
    };
    blobs.read(&requests, take).await?;
    for (identity, objects) in found {
        for object in objects {
            object.stays = left.contains(&(object.path.clone(), identity.clone()));
        }
    }
    Ok(())
}

/// The words that a file must contain to define one of the objects. This avoids parsing most files as YAML.
struct Words {
    all: AhoCorasick,
    /// For each object, the indexes of its kind and its name.
    objects: BTreeSet<(usize, usize)>,
}

impl Words {
    /// `None` if there is nothing to look for.
    fn from_objects<'a>(objects: impl Iterator<Item = &'a CommitObjectKey>) -> Option<Self> {
        let mut words: Vec<&str> = ESCAPES.to_vec();
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut number = |word: &'a str| {
            *numbers.entry(word).or_insert_with(|| {
                words.push(word);
                words.len() - 1
            })
        };
        let objects: BTreeSet<_> = objects.map(|(_, kind, _, name)| (number(kind), number(name))).collect();
        if objects.is_empty() {
            return None;
        }
        // This fails only with billions of words.
        Some(Words { all: AhoCorasick::new(&words).ok()?, objects })
    }

    fn may_be_in(&self, text: &[u8]) -> bool {
        let mut has = vec![false; self.all.patterns_len()];
        for found in self.all.find_overlapping_iter(text) {
            has[found.pattern().as_usize()] = true;
        }
        // A name can be written with escapes.
        has.iter().take(ESCAPES.len()).any(|has| *has)
            || self.objects.iter().any(|(kind, name)| has[*kind] && has[*name])
    }
}

/// The objects of a text; none if it cannot be parsed.
fn objects_of(source: &Arc<ManifestSource>) -> Vec<Manifest> {
    manifest::read(source).map(|loaded| loaded.manifests).unwrap_or_default()
}

/// A path for messages.
fn text_of(path: &[u8]) -> String {
    shown_text(&String::from_utf8_lossy(path))
}
