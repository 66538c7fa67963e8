//! Manifests: what `-f` names, as objects that know where they stand.
//!
//! A document is read once into compact JSON. Line and column of a value inside it are found only when a finding
//! needs them, by reading that one document again ([`Spans`]): findings are few and documents are many.

mod documents;
mod files;
mod hints;
mod objects;
mod spans;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use crate::plan::in_parallel;
use crate::problem::{Location, Problem};
use crate::resource::{ObjectRef, RawObject, Step};
use documents::Piece;

pub use files::MAX_SOURCE_BYTES;
pub use spans::{Located, Spans};

/// A file (or standard input) that was read, kept for excerpts.
pub struct Source {
    /// The path as the user gave it, or as it was found below a directory that the user gave; `-` for standard input.
    pub name: String,
    pub text: String,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}, {} bytes)", self.name, self.text.len())
    }
}

/// Where an object was written.
#[derive(Debug, Clone)]
pub struct Origin {
    pub source: Arc<Source>,
    /// Counts from 1 within the file.
    pub document: usize,
    /// The line on which the object starts, from 1.
    pub line: usize,
    /// The bytes of the document in `source.text`.
    pub bytes: Range<usize>,
    /// The steps from the document's root to the object: empty, or `items`, N for a member of a List.
    pub within: Vec<Step>,
}

impl Origin {
    pub fn location(&self) -> Location {
        Location { file: self.source.name.clone(), line: self.line, column: 0 }
    }
}

/// An object that is to be deployed.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub object: ObjectRef,
    pub raw: RawObject,
    pub origin: Origin,
}

/// A `kind: Config` document that stood among the manifests. It is configuration and never applied.
#[derive(Debug, Clone)]
pub struct ConfigDocument {
    pub origin: Origin,
}

/// Everything that `-f` names.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order of the arguments, the files, and the documents in a file. No object is in it twice.
    pub manifests: Vec<Manifest>,
    pub configs: Vec<ConfigDocument>,
    /// What does not stop the run but is worth a warning.
    pub notices: Vec<Problem>,
}

/// Reads all files, directories and standard input (`-`) that `inputs` name.
///
/// Standard input is taken only if it is named, so that what is left in `stdin` can still be asked questions.
/// Every problem of every file is in the answer, sorted by place: who has ten files to mend wants to know them all.
pub fn load(inputs: &[String], stdin: &mut Option<impl Read>) -> Result<Loaded, Vec<Problem>> {
    let gathered = files::gather(inputs, stdin, MAX_SOURCE_BYTES);
    let (mut loaded, mut problems) = read_all(&gathered.sources);
    problems.extend(gathered.problems);
    problems.extend(twice(&loaded.manifests));
    if problems.is_empty() && loaded.manifests.is_empty() && loaded.configs.is_empty() {
        let names: Vec<String> = inputs.iter().map(|input| shown(input)).collect();
        let problem = Problem::new(format!("no objects found in {}", names.join(", ")));
        problems.push(problem.help("the files are empty or hold only comments"));
    }
    if problems.is_empty() {
        loaded.notices.extend(gathered.notices);
        loaded.notices.sort();
        return Ok(loaded);
    }
    problems.sort();
    problems.dedup();
    Err(problems)
}

/// Reads the documents of one text that is in memory already.
pub fn read(source: &Arc<Source>) -> Result<Loaded, Vec<Problem>> {
    let (loaded, mut problems) = read_all(std::slice::from_ref(source));
    problems.sort();
    if problems.is_empty() { Ok(loaded) } else { Err(problems) }
}

fn read_all(sources: &[Arc<Source>]) -> (Loaded, Vec<Problem>) {
    let pieces: Vec<(&Arc<Source>, Piece)> = sources
        .iter()
        .flat_map(|source| documents::split(&source.text).into_iter().map(move |piece| (source, piece)))
        .collect();
    let readings = in_parallel(&pieces, |(source, piece)| objects::read(source, piece));

    let mut loaded = Loaded::default();
    let mut problems = Vec::new();
    let mut number = 0;
    let mut previous: Option<&Arc<Source>> = None;
    for ((source, _), reading) in pieces.iter().zip(readings) {
        if previous.is_none_or(|previous| !Arc::ptr_eq(previous, source)) {
            number = 0;
        }
        previous = Some(source);
        number += usize::from(!reading.empty);
        let numbered = |origin: Origin| Origin { document: number, ..origin };
        let manifests = reading.manifests.into_iter();
        loaded.manifests.extend(manifests.map(|manifest| Manifest { origin: numbered(manifest.origin), ..manifest }));
        loaded
            .configs
            .extend(reading.configs.into_iter().map(|config| ConfigDocument { origin: numbered(config.origin) }));
        loaded.notices.extend(reading.notices);
        problems.extend(reading.problems);
    }
    (loaded, problems)
}

/// Text from a manifest as part of a message: harmless on a terminal, on one line, and not too long.
fn shown(text: &str) -> String {
    crate::text::sanitize(&crate::text::cut(text, 120)).into_owned()
}

/// The objects that occur more than once, whatever version each is written at.
fn twice(manifests: &[Manifest]) -> Vec<Problem> {
    let mut first = BTreeMap::new();
    let mut problems = Vec::new();
    for manifest in manifests {
        match first.entry(manifest.object.identity()) {
            Entry::Vacant(entry) => drop(entry.insert(manifest)),
            Entry::Occupied(entry) => {
                let message = format!("{} is here for the second time", shown(&manifest.object.to_string()));
                let help = format!("remove one of them; the first is at {}", entry.get().origin.location());
                problems.push(Problem::new(message).at(Spans::of(&manifest.origin).locate(&[]).location).help(help));
            }
        }
    }
    problems
}
