//! What `-f` names, read in two steps: first what may be configuration, then the rest.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use super::documents::{self, Piece};
use super::files::{self, Gathered};
use super::objects::{self, Reading};
use super::{Loaded, MAX_SOURCE_BYTES, Origin, Source, foresight, shown, twice};
use crate::parallel::in_parallel;
use crate::problem::Problem;

/// Less text than this is read before a request would be under way.
const LONG: usize = 1 << 20;

/// The texts that `-f` names. Only those documents have been read that may hold configuration.
pub struct Input {
    arguments: Vec<String>,
    gathered: Gathered,
    documents: Vec<Document>,
}

struct Document {
    source: Arc<Source>,
    piece: Piece,
    /// `None` until it is read.
    reading: Option<Reading>,
}

impl Input {
    /// Reads all files, directories and standard input (`-`) that `arguments` name. What goes wrong here is told by
    /// [`Input::read`], with all that goes wrong there.
    pub fn open(arguments: &[String], stdin: &mut Option<impl Read>) -> Input {
        let gathered = files::gather(arguments, stdin, MAX_SOURCE_BYTES);
        let cut = in_parallel(&gathered.sources, |source| {
            let pieces = documents::split(&source.text);
            // An object knows which document of its file it is. Empty ones do not count, so those before it are read.
            let last = pieces.iter().rposition(|piece| foresight::may_be_config(&source.text[piece.bytes.clone()]));
            (pieces, last.map_or(0, |last| last + 1))
        });
        let mut documents = Vec::new();
        let mut first = Vec::new();
        for (source, (pieces, to_read)) in gathered.sources.iter().zip(cut) {
            first.extend(documents.len()..documents.len() + to_read);
            documents.extend(pieces.into_iter().map(|piece| Document { source: source.clone(), piece, reading: None }));
        }
        let mut input = Input { arguments: arguments.to_vec(), gathered, documents };
        input.read_documents(&first);
        input
    }

    /// The texts themselves, for excerpts.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.gathered.sources
    }

    /// Where the Config documents stand: all of them.
    pub fn configs(&self) -> impl Iterator<Item = &Origin> {
        let readings = self.documents.iter().filter_map(|document| document.reading.as_ref());
        readings.flat_map(|reading| &reading.configs).map(|config| &config.origin)
    }

    /// The names of the CRDs that there seem to be, if there is so much to read that it pays to ask for the live ones
    /// meanwhile. A guess: some may be missing and some may turn out to be no CRDs.
    pub fn foreseen_crds(&self) -> BTreeSet<String> {
        let unread = || self.documents.iter().filter(|document| document.reading.is_none());
        if unread().map(|document| document.piece.bytes.len()).sum::<usize>() < LONG {
            return BTreeSet::new();
        }
        unread().filter_map(|document| foresight::crd_name(document.text())).map(str::to_owned).collect()
    }

    /// Reads all documents.
    ///
    /// # Errors
    /// Every problem of every file, sorted by place: who has ten files to mend wants to know them all.
    pub fn read(mut self) -> Result<Loaded, Vec<Problem>> {
        let arguments = std::mem::take(&mut self.arguments);
        let (loaded, mut problems) = self.read_all();
        problems.extend(twice(&loaded.manifests));
        if problems.is_empty() && loaded.manifests.is_empty() && loaded.configs.is_empty() {
            let names: Vec<String> = arguments.iter().map(|argument| shown(argument)).collect();
            let problem = Problem::new(format!("no objects found in {}", names.join(", ")));
            problems.push(problem.help("the files are empty or hold only comments"));
        }
        if problems.is_empty() {
            return Ok(loaded);
        }
        problems.sort();
        problems.dedup();
        Err(problems)
    }

    /// Each document by itself, and all that is wrong with them.
    pub(super) fn read_all(mut self) -> (Loaded, Vec<Problem>) {
        let rest: Vec<usize> =
            (0..self.documents.len()).filter(|&index| self.documents[index].reading.is_none()).collect();
        self.read_documents(&rest);
        let Gathered { mut problems, notices, .. } = self.gathered;
        let mut loaded = Loaded { notices, ..Loaded::default() };
        for reading in self.documents.into_iter().filter_map(|document| document.reading) {
            loaded.manifests.extend(reading.manifests);
            loaded.configs.extend(reading.configs);
            loaded.notices.extend(reading.notices);
            problems.extend(reading.problems);
        }
        loaded.notices.sort();
        (loaded, problems)
    }

    fn read_documents(&mut self, indices: &[usize]) {
        let documents = &self.documents;
        let readings = in_parallel(indices, |&index| objects::read(&documents[index].source, &documents[index].piece));
        for (&index, reading) in indices.iter().zip(readings) {
            self.documents[index].reading = Some(reading);
        }
        self.number();
    }

    /// Numbers the documents of each file, as far as all before them have been read.
    fn number(&mut self) {
        let mut previous: Option<Arc<Source>> = None;
        let mut number = Some(0);
        for document in &mut self.documents {
            if !previous.as_ref().is_some_and(|previous| Arc::ptr_eq(previous, &document.source)) {
                number = Some(0);
                previous = Some(document.source.clone());
            }
            number = match (&mut document.reading, number) {
                (Some(reading), Some(before)) => {
                    let number = before + usize::from(!reading.empty);
                    let manifests = reading.manifests.iter_mut().map(|manifest| &mut manifest.origin);
                    let configs = reading.configs.iter_mut().map(|config| &mut config.origin);
                    manifests.chain(configs).for_each(|origin| origin.document = number);
                    Some(number)
                }
                _ => None,
            };
        }
    }
}

impl From<Arc<Source>> for Input {
    /// One text that is in memory already.
    fn from(source: Arc<Source>) -> Input {
        let pieces = documents::split(&source.text).into_iter();
        let documents = pieces.map(|piece| Document { source: source.clone(), piece, reading: None }).collect();
        Input { arguments: Vec::new(), gathered: Gathered::of(source), documents }
    }
}

impl Document {
    fn text(&self) -> &str {
        &self.source.text[self.piece.bytes.clone()]
    }
}
