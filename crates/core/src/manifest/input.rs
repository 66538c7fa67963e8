//! Reads what `-f` names in two steps: first the documents that may be configuration, then the rest.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use super::documents::{self, Piece};
use super::files::{self, GatheredSources};
use super::objects::{self, ManifestReading};
use super::{LoadedManifests, MAX_SOURCE_BYTES, Manifest, ManifestOrigin, ManifestSource, foresight, shown_text};
use crate::parallel::in_parallel;
use crate::problem::{Error, Location, Problem};

/// Less text than this, in bytes, is parsed before a prefetch request could be sent.
const LONG: usize = 1 << 20;

/// The maximum number of documents in one source. etcd is not designed for a cluster with so many objects.
const MAX_DOCUMENTS: usize = 250_000;

/// The number of documents that are parsed as one batch.
const TOGETHER: usize = 4096;

/// After this many problems, no further document is parsed.
const MAX_PROBLEMS: usize = 10_000;

/// The texts that `-f` names. Only documents that may be configuration are parsed yet.
pub struct Input {
    arguments: Vec<String>,
    gathered: GatheredSources,
    documents: Vec<InputDocument>,
}

struct InputDocument {
    source: Arc<ManifestSource>,
    /// The text of the source. It is dropped after the document is parsed, unless something else needs it.
    whole: Arc<String>,
    /// The bundle that its file is part of, by index.
    bundle: Option<usize>,
    piece: Piece,
    /// `None` until the document is parsed.
    reading: Option<Box<ManifestReading>>,
}

/// Why there are no manifests.
#[derive(Debug)]
pub struct ManifestInputError {
    /// Sorted by place; never empty.
    pub problems: Vec<Problem>,
    /// Everything was read, and there is no object in it.
    pub is_empty: bool,
}

impl From<ManifestInputError> for Error {
    fn from(unreadable: ManifestInputError) -> Self {
        Error::Failed(unreadable.problems)
    }
}

/// Texts that were read or rendered before the files are read.
#[derive(Debug, Default)]
pub struct PreparedSources {
    /// The texts.
    pub sources: Vec<Arc<ManifestSource>>,
    /// What to know about how they were read.
    pub notices: Vec<Problem>,
}

impl PreparedSources {
    /// Adds these behind the others.
    pub fn append(&mut self, more: PreparedSources) {
        self.sources.extend(more.sources);
        self.notices.extend(more.notices);
    }
}

impl Input {
    /// Reads all files, directories and standard input (`-`) that `arguments` name. [`Input::read`] returns the
    /// problems together with its own.
    pub fn open(arguments: &[String], stdin: &mut Option<impl Read>) -> Input {
        Self::from_sources(arguments, files::gather(arguments, stdin, MAX_SOURCE_BYTES))
    }

    /// Texts that are in memory.
    pub fn rendered(arguments: &[String], sources: Vec<Arc<ManifestSource>>) -> Input {
        Self::from_sources(arguments, GatheredSources::from_sources(sources))
    }

    /// The same as [`Input::open`] for the `files` among the arguments. The others are `prepared`.
    pub fn open_with(
        arguments: &[String],
        files: &[String],
        stdin: &mut Option<impl Read>,
        prepared: PreparedSources,
    ) -> Input {
        let mut gathered = files::gather(files, stdin, MAX_SOURCE_BYTES);
        gathered.texts.extend(prepared.sources.iter().map(|source| source.shared_text().clone()));
        gathered.sources.extend(prepared.sources);
        gathered.notices.extend(prepared.notices);
        Self::from_sources(arguments, gathered)
    }

    fn from_sources(arguments: &[String], mut gathered: GatheredSources) -> Input {
        let texts = std::mem::take(&mut gathered.texts);
        let cut = in_parallel(&texts, |text| {
            let pieces = documents::split(text, MAX_DOCUMENTS)?;
            // An object has the number of its document in the file. Empty documents are not counted, so all documents
            // before it must be parsed too.
            let last = pieces.iter().rposition(|piece| foresight::may_be_config(&text[piece.bytes.clone()]));
            Some((pieces, last.map_or(0, |last| last + 1)))
        });
        let mut documents = Vec::new();
        let mut first = Vec::new();
        for ((source, whole), cut) in gathered.sources.iter().zip(texts).zip(cut) {
            let Some((pieces, to_read)) = cut else {
                gathered.problems.push(too_many(source));
                continue;
            };
            first.extend(documents.len()..documents.len() + to_read);
            let bundle = gathered.bundle_of.get(&*source.name).copied();
            let document =
                |piece| InputDocument { source: source.clone(), whole: whole.clone(), bundle, piece, reading: None };
            documents.extend(pieces.into_iter().map(document));
        }
        let mut input = Input { arguments: arguments.to_vec(), gathered, documents };
        input.read_documents(&first);
        input
    }

    /// The arguments of `-f`, unchanged.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// The sources of the documents, for excerpts.
    pub fn sources(&self) -> &[Arc<ManifestSource>] {
        &self.gathered.sources
    }

    /// The origins of all Config documents.
    pub fn configs(&self) -> impl Iterator<Item = &ManifestOrigin> {
        let readings = self.documents.iter().filter_map(|document| document.reading.as_ref());
        readings.flat_map(|reading| &reading.configs).map(|config| &config.origin)
    }

    /// The names of the CRDs that the texts seem to contain, for prefetching the live CRDs; empty if there is too
    /// little text for that. This is a guess: CRDs may be missing, and some names may not be those of CRDs.
    pub fn foreseen_crds(&self) -> BTreeSet<String> {
        let unread = || self.documents.iter().filter(|document| document.reading.is_none());
        if unread().map(|document| document.piece.bytes.len()).sum::<usize>() < LONG {
            return BTreeSet::new();
        }
        unread().filter_map(|document| foresight::crd_name(document.text())).map(str::to_owned).collect()
    }

    /// A checksum of the texts that does not depend on the order of files and documents. It tells whether the texts are
    /// likely the same as in an earlier run. For a document that may be a Secret, only the length is included, so the
    /// checksum cannot be used to guess values.
    pub fn sum(&self) -> String {
        let sum = |text: &str| {
            let mut hash = crc32fast::Hasher::new();
            hash.update(&text.len().to_le_bytes());
            if !text.contains("Secret") {
                hash.update(text.as_bytes());
            }
            u64::from(hash.finalize())
        };
        let sums =
            in_parallel(&self.documents, |document| sum(document.text().trim().trim_start_matches("---").trim_start()));
        format!("{:x}-{}", sums.iter().fold(0, |all: u64, one| all.wrapping_add(*one)), sums.len())
    }

    /// Parses all documents.
    ///
    /// # Errors
    /// All problems of all files, sorted by place, so a user can fix all of them in one go.
    pub fn read(mut self) -> Result<LoadedManifests, ManifestInputError> {
        let arguments = std::mem::take(&mut self.arguments);
        let empty = std::mem::take(&mut self.gathered.empty);
        let (mut loaded, mut problems) = self.read_all();
        problems.extend(loaded.unite());
        let is_empty = problems.is_empty() && loaded.is_empty();
        problems.extend(empty);
        if problems.is_empty() && is_empty {
            let names: Vec<String> = arguments.iter().map(|argument| shown_text(argument)).collect();
            let problem = Problem::new(format!("no objects found in {}", names.join(", ")));
            problems.push(problem.help("the files are empty or contain only comments"));
        }
        if problems.is_empty() {
            return Ok(loaded);
        }
        problems.sort();
        problems.dedup();
        Err(ManifestInputError { problems, is_empty })
    }

    /// Parses each document separately. Returns all problems, or only the first ones if there are very many.
    pub(super) fn read_all(self) -> (LoadedManifests, Vec<Problem>) {
        let GatheredSources { mut problems, notices, bundles, .. } = self.gathered;
        let mut of_bundles: Vec<Vec<Manifest>> = vec![Vec::new(); bundles.len()];
        let mut loaded = LoadedManifests { notices, ..LoadedManifests::default() };
        // Most documents are one object. Without this, the list could take up to three times its size while it grows.
        loaded.manifests.reserve_exact(self.documents.len());
        let mut numbers = DocumentNumbering::default();
        let mut documents = self.documents.into_iter().peekable();
        while documents.peek().is_some() {
            if problems.len() >= MAX_PROBLEMS {
                let problem = Problem::new(format!(
                    "more than {MAX_PROBLEMS} problems; gantry did not read the \
                    remaining documents"
                ));
                problems.push(problem.help("fix these first"));
                break;
            }
            let together: Vec<InputDocument> = documents.by_ref().take(TOGETHER).collect();
            let read = in_parallel(&together, |document| document.reading.is_none().then(|| document.read()));
            for (document, read) in together.into_iter().zip(read) {
                let Some(mut reading) = read.or(document.reading.map(|reading| *reading)) else { continue };
                numbers.number(&document.source, &mut reading);
                match document.bundle {
                    None => loaded.manifests.append(&mut reading.manifests),
                    Some(index) => {
                        reading.manifests.iter_mut().for_each(|manifest| manifest.bundle = Some(index));
                        of_bundles[index].append(&mut reading.manifests);
                    }
                }
                loaded.configs.append(&mut reading.configs);
                loaded.notices.append(&mut reading.notices);
                problems.append(&mut reading.problems);
            }
        }
        for (folder, manifests) in bundles.into_iter().zip(of_bundles) {
            match folder.bundle(manifests) {
                Ok(bundle) => loaded.bundles.push(bundle),
                Err(problem) => problems.push(problem),
            }
        }
        loaded.notices.sort();
        (loaded, problems)
    }

    /// Parses these documents ahead of the others. They include all documents before them in the same file.
    fn read_documents(&mut self, indices: &[usize]) {
        let documents = &self.documents;
        let readings = in_parallel(indices, |&index| documents[index].read());
        let mut numbers = DocumentNumbering::default();
        for (&index, mut reading) in indices.iter().zip(readings) {
            let document = &mut self.documents[index];
            numbers.number(&document.source, &mut reading);
            document.reading = Some(Box::new(reading));
        }
    }
}

/// Numbers the non-empty documents of each file from 1.
#[derive(Default)]
struct DocumentNumbering {
    source: Option<Arc<ManifestSource>>,
    number: usize,
}

impl DocumentNumbering {
    /// Called for each document of a file, in order.
    fn number(&mut self, source: &Arc<ManifestSource>, reading: &mut ManifestReading) {
        if !self.source.as_ref().is_some_and(|previous| Arc::ptr_eq(previous, source)) {
            *self = DocumentNumbering { source: Some(source.clone()), number: 0 };
        }
        self.number += usize::from(!reading.empty);
        let manifests = reading.manifests.iter_mut().map(|manifest| &mut manifest.origin);
        let configs = reading.configs.iter_mut().map(|config| &mut config.origin);
        manifests.chain(configs).for_each(|origin| origin.document = self.number);
    }
}

fn too_many(source: &ManifestSource) -> Problem {
    Problem::new(format!("more than the limit of {MAX_DOCUMENTS} documents per source"))
        .at(Location { file: source.name.to_string(), line: 0, column: 0 })
        .help("split it into several files and deploy them separately")
}

impl From<Arc<ManifestSource>> for Input {
    /// An input of one text that is already in memory.
    fn from(source: Arc<ManifestSource>) -> Input {
        let mut gathered = GatheredSources::from_sources(vec![source.clone()]);
        let whole = source.shared_text();
        let pieces = documents::split(whole, MAX_DOCUMENTS);
        if pieces.is_none() {
            gathered.problems.push(too_many(&source));
        }
        let documents = pieces.unwrap_or_default().into_iter();
        let document =
            |piece| InputDocument { source: source.clone(), whole: whole.clone(), bundle: None, piece, reading: None };
        let documents = documents.map(document).collect();
        Input { arguments: Vec::new(), gathered, documents }
    }
}

impl InputDocument {
    fn text(&self) -> &str {
        &self.whole[self.piece.bytes.clone()]
    }

    fn read(&self) -> ManifestReading {
        objects::read(&self.source, &self.whole, &self.piece)
    }
}
