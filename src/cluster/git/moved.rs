//! Objects of a path that the commit does not have, where the commit has them in other files.
//!
//! A change that moves a folder would otherwise be compared with nothing, and pass whatever else it does. An object has moved
//! where the file that had it has it no longer; where it still does, as with an overlay that is a copy of another, the new
//! one is a new object.

use std::collections::BTreeMap;
use std::io::Empty;
use std::sync::Arc;

use super::blobs::{Ask, Blobs, Content};
use super::command;
use super::tree::{Depth, Entry, Gathering, Mode, list};
use crate::cluster::dir::CommitFile;
use crate::manifest::{self, Manifest, Source, is_manifest_file, shown};
use crate::problem::Problem;
use crate::program::Failure;
use crate::resource::ObjectRef;

/// Files that a notice names.
const NAMED: usize = 3;

/// Group, kind, namespace and name.
type Identity = (String, String, Option<String>, String);

/// A path that the commit does not have, with the objects that are below it on disk.
struct Absent {
    path: Vec<u8>,
    objects: BTreeMap<Identity, Arc<ObjectRef>>,
}

fn identity(object: &ObjectRef) -> Identity {
    let (group, kind, namespace, name) = object.identity();
    (group.to_owned(), kind.to_owned(), namespace.map(str::to_owned), name.to_owned())
}

/// Where the commit has an object.
struct Found {
    path: Vec<u8>,
    source: Arc<Source>,
    /// The file on disk still has it.
    stays: bool,
}

impl Gathering<'_> {
    /// Finds the objects of the absent paths elsewhere in the commit, and has those that moved compared with what they were.
    pub(super) async fn follow_moved(&mut self, blobs: &mut Blobs) -> Result<(), Failure> {
        let mut absent: Vec<Absent> = Vec::new();
        for path in std::mem::take(&mut self.absent) {
            let objects = self.on_disk(&path).into_iter().map(|object| (identity(&object), object)).collect();
            absent.push(Absent { path, objects });
        }
        if absent.is_empty() {
            return Ok(());
        }
        // What the other paths have is live already.
        for manifest in self.files.iter().flat_map(|file| objects_of(&file.source)) {
            absent.iter_mut().for_each(|absent| drop(absent.objects.remove(&identity(&manifest.object))));
        }
        let found = self.elsewhere(&absent, blobs).await?;
        for absent in &absent {
            self.adopt(absent, &found);
        }
        Ok(())
    }

    /// The objects below a path on disk. What is wrong there is reported where the manifests are read.
    fn on_disk(&self, path: &[u8]) -> Vec<Arc<ObjectRef>> {
        let Some(root) = &self.repository.work_tree else { return Vec::new() };
        let path = root.join(command::os(path)).to_string_lossy().into_owned();
        let loaded = manifest::load(&[path], &mut None::<Empty>).unwrap_or_default();
        loaded.all().map(|manifest| manifest.object.clone()).collect()
    }

    /// The files of the commit that have some of the objects, apart from those that were read.
    async fn elsewhere(
        &mut self,
        absent: &[Absent],
        blobs: &mut Blobs,
    ) -> Result<BTreeMap<Identity, Vec<Found>>, Failure> {
        let mut found: BTreeMap<Identity, Vec<Found>> = BTreeMap::new();
        if absent.iter().all(|absent| absent.objects.is_empty()) {
            return Ok(found);
        }
        let entries = match list(&self.commit.hash, &[], Depth::Files, b"").await {
            Ok(entries) => entries,
            Err(problem) => {
                self.problems.push(problem);
                return Ok(found);
            }
        };
        let is_unread = |entry: &Entry| {
            let path = std::path::PathBuf::from(command::os(&entry.path));
            entry.mode == Mode::File && is_manifest_file(&path) && self.files.iter().all(|file| file.path != path)
        };
        let entries: Vec<Entry> = entries.into_iter().filter(is_unread).collect();
        let asks: Vec<Ask> = entries.iter().map(|entry| Ask::Hash(entry.hash.clone())).collect();
        let take = |index: usize, content| {
            let path = &entries[index].path;
            let (Content::File(bytes), name) = (content, self.name(path)) else { return };
            // Templates and other files that are no manifests are passed over.
            let Ok(text) = manifest::text(&name, bytes) else { return };
            let source = Arc::new(Source::new(name, text));
            let mut left: Option<Vec<Identity>> = None;
            for manifest in objects_of(&source) {
                let identity = identity(&manifest.object);
                if !absent.iter().any(|absent| absent.objects.contains_key(&identity)) {
                    continue;
                }
                let left = left
                    .get_or_insert_with(|| self.on_disk(path).iter().map(|object| self::identity(object)).collect());
                let stays = left.contains(&identity);
                found.entry(identity).or_default().push(Found { path: path.clone(), source: source.clone(), stays });
            }
        };
        blobs.read(&asks, take).await?;
        Ok(found)
    }

    /// Has the objects of a path compared with what they were.
    fn adopt(&mut self, Absent { path, objects }: &Absent, found: &BTreeMap<Identity, Vec<Found>>) {
        let target = |path: &[u8]| format!("--target git:{}:{}", self.commit.name, text_of(path));
        let mut moved: BTreeMap<&[u8], Vec<Arc<ObjectRef>>> = BTreeMap::new();
        let mut copied: Option<(&ObjectRef, &[u8])> = None;
        for (identity, object) in objects {
            let places = found.get(identity).map(Vec::as_slice).unwrap_or_default();
            let gone: Vec<&Found> = places.iter().filter(|place| !place.stays).collect();
            match gone.as_slice() {
                [] => copied = copied.or(places.first().map(|place| (&**object, place.path.as_slice()))),
                [one] => moved.entry(&one.path).or_default().push(object.clone()),
                [first, others @ ..] => {
                    let others: Vec<String> = others.iter().map(|place| text_of(&place.path)).collect();
                    let message = format!(
                        "does not exist at this commit, which has {} in {} and in {}",
                        shown(&object.to_string()),
                        text_of(&first.path),
                        others.join(" and in ")
                    );
                    let help = format!("name the one to compare with: {}", target(&first.path));
                    self.problems.push(Problem::new(message).at(self.at(path)).help(help));
                }
            }
        }
        if moved.is_empty() {
            let notice = self.not_there(path);
            self.notices.push(match copied {
                None => notice,
                Some((object, from)) => notice.help(format!(
                    "{} is also in {}, which still has it; to compare with that: {}",
                    shown(&object.to_string()),
                    text_of(from),
                    target(from)
                )),
            });
            return;
        }
        let number = moved.values().map(Vec::len).sum::<usize>();
        let number = crate::text::count(number, "object");
        let named: Vec<String> = moved.keys().take(NAMED).map(|path| text_of(path)).collect();
        let more = moved.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {}", crate::text::count(more, "more file")) } else { String::new() };
        let message = format!("does not exist at this commit: {number} compared with {}{more}", named.join(", "));
        self.notices.push(Problem::new(message).at(self.at(path)).help("they were there, and no longer are"));
        for (path, only) in moved {
            let source = only.first().and_then(|object| {
                let places = found.get(&identity(object))?;
                Some(places.iter().find(|place| place.path == path)?.source.clone())
            });
            let Some(source) = source else { continue };
            let path = std::path::PathBuf::from(command::os(path));
            match self.files.iter_mut().find(|file| file.path == path) {
                Some(CommitFile { only: Some(known), .. }) => known.extend(only),
                _ => self.files.push(CommitFile { path, source, only: Some(only) }),
            }
        }
    }
}

/// The objects of a text; none where it cannot be read.
fn objects_of(source: &Arc<Source>) -> Vec<Manifest> {
    manifest::read(source).map(|loaded| loaded.manifests).unwrap_or_default()
}

/// A path as messages show it.
fn text_of(path: &[u8]) -> String {
    shown(&String::from_utf8_lossy(path))
}
