//! Manifests: the objects that `-f` names, with their origin.
//!
//! A document is parsed once into compact JSON. The line and column of a value in it are found only when a finding
//! needs them, by parsing that document again ([`Spans`]): findings are few and documents are many.

mod bundles;
mod documents;
mod files;
mod foresight;
mod hints;
mod input;
mod objects;
mod source;
mod spans;

#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use crate::problem::{Location, Problem};
use crate::resource::{ObjectRef, RawObject, Step};
use crate::text::count;
use gantry_catalog::render::RenamedField;
use gantry_schema::scan;

pub use bundles::{ANNOTATIONS, MANIFESTS, ManifestBundle, says_bundle};
pub use files::{MAX_SOURCE_BYTES, is_manifest_file, text_of as text};
pub use input::{Input, ManifestInputError, PreparedSources};
pub use source::{CommittedFile, ManifestSource};
pub use spans::{Spans, ValueLocation};

/// The starts of escape sequences with which YAML and JSON can write a plain character.
pub const ESCAPES: [&str; 5] = ["\\u", "\\U", "\\x", "\\\n", "\\\r"];

/// The place of an object in its source.
#[derive(Debug, Clone)]
pub struct ManifestOrigin {
    /// The file.
    pub source: Arc<ManifestSource>,
    /// The number of the document in the file, from 1.
    pub document: usize,
    /// The line on which the object starts, from 1.
    pub line: usize,
    /// The bytes of the document in the source's text.
    pub bytes: Range<usize>,
    /// The steps from the document's root to the object: empty, or `items`, N for a member of a List. For an object that
    /// is rendered from a ClusterServiceVersion, the steps to the part that it is made from.
    pub within: Vec<Step>,
    /// The fields of a rendered object that have another name there.
    pub renamed: &'static [RenamedField],
}

impl ManifestOrigin {
    /// The first line of the object, without a column.
    pub fn location(&self) -> Location {
        Location { file: self.source.name.to_string(), line: self.line, column: 0 }
    }
}

/// An object to deploy.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Shared with the plan and the report, because there may be very many objects.
    pub object: Arc<ObjectRef>,
    /// The object as JSON, with the fields of the manifest only.
    pub raw: RawObject,
    /// Where the object is written.
    pub origin: ManifestOrigin,
    /// The index in [`LoadedManifests::bundles`] of the bundle that the object is part of. OLM writes such an object; a deploy
    /// does not.
    pub bundle: Option<usize>,
}

impl Manifest {
    /// Whether this is the same object at the same version with the same content.
    pub fn is_repetition_of(&self, other: &Manifest) -> bool {
        self.object == other.object && self.raw.value() == other.raw.value()
    }

    /// Whether the object is rendered from a ClusterServiceVersion.
    pub fn is_rendered(&self) -> bool {
        self.bundle.is_some() && matches!(self.origin.within.first(), Some(Step::Key(key)) if &**key == "spec")
    }

    /// Like [`Manifest::may_contain`], for words in the labels and annotations. It reads no further than the metadata.
    pub fn metadata_may_contain(&self, words: &[&str]) -> bool {
        let Some(json) = self.raw.text_in_memory() else { return self.may_contain(words) };
        has_any(scan::member(json, "metadata").unwrap_or_default(), words)
    }

    /// Whether one of these words may be in the object, as a key or in a value. This is fast: it builds no JSON and no
    /// tree. The words must consist of plain letters, digits, dots and dashes.
    pub fn may_contain(&self, words: &[&str]) -> bool {
        match self.raw.text_in_memory() {
            Some(json) => has_any(json, words),
            None => {
                let text = &self.origin.source.text()[self.origin.bytes.clone()];
                let escapes = if text.contains('\\') { &ESCAPES[..] } else { &[] };
                has_any(text, words) || has_any(text, escapes)
            }
        }
    }
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| memmem::find(text.as_bytes(), word.as_bytes()).is_some())
}

/// A `kind: Config` document among the manifests. It is configuration and never applied.
#[derive(Debug, Clone)]
pub struct ConfigDocument {
    /// Where the document is.
    pub origin: ManifestOrigin,
}

/// Everything that `-f` names. A clone shares the texts.
#[derive(Debug, Clone, Default)]
pub struct LoadedManifests {
    /// In the order of the arguments, the files, and the documents in a file. No object occurs twice.
    pub manifests: Vec<Manifest>,
    /// The bundles. Their objects are not in `manifests`.
    pub bundles: Vec<ManifestBundle>,
    /// The documents that configure gantry. They are never applied.
    pub configs: Vec<ConfigDocument>,
    /// Warnings that do not stop the run.
    pub notices: Vec<Problem>,
}

impl LoadedManifests {
    /// Every object, including those of bundles.
    pub fn all(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.iter().chain(self.bundles.iter().flat_map(|bundle| &bundle.manifests))
    }

    /// Keeps one of several equal manifests of an object, with a notice: kubectl and kapp accept such repetitions,
    /// which are common where one file of a release contains another, and so does OLM within a bundle. Returns a problem for each object that occurs
    /// more than once, at any version, with different content.
    fn unite(&mut self) -> Vec<Problem> {
        let mut first = BTreeMap::new();
        let mut repeated = BTreeSet::new();
        let (mut notice, mut problems) = (None, Vec::new());
        for (number, manifest) in self.all().enumerate() {
            let known: &Manifest = match first.entry(manifest.object.identity()) {
                Entry::Vacant(entry) => {
                    entry.insert(manifest);
                    continue;
                }
                Entry::Occupied(entry) => entry.into_mut(),
            };
            let object = shown_text(&manifest.object.to_string());
            let (here, there) = (Spans::parse(&manifest.origin).locate(&[]).location, known.origin.location());
            if manifest.bundle == known.bundle && manifest.is_repetition_of(known) {
                notice.get_or_insert((object, here, there));
                repeated.insert(number);
            } else {
                let help = format!("remove one of them; the first is at {there}");
                problems.push(Problem::new(format!("{object} is defined twice")).at(here).help(help));
            }
        }
        if let Some((object, here, there)) = notice {
            let subject = match repeated.len() - 1 {
                0 => format!("{object} is"),
                more => format!("{object} and {} are", count(more, "other object")),
            };
            let message = format!("{subject} defined more than once, with the same content");
            self.notices.push(Problem::new(message).at(here).help(format!("{object} is also at {there}; remove one")));
            self.notices.sort();
            // In the order of `all`.
            let mut number = 0..;
            let mut is_kept = |_: &Manifest| number.next().is_none_or(|number| !repeated.contains(&number));
            self.manifests.retain(&mut is_kept);
            self.bundles.iter_mut().for_each(|bundle| bundle.manifests.retain(&mut is_kept));
        }
        problems
    }

    /// Whether there is neither an object nor configuration.
    fn is_empty(&self) -> bool {
        self.manifests.is_empty() && self.bundles.is_empty() && self.configs.is_empty()
    }
}

/// Reads all files, directories and standard input (`-`) that `arguments` name: both steps of [`Input`] at once.
///
/// Standard input is taken out of `stdin` only if it is named. Otherwise it can still be used for questions.
///
/// # Errors
/// As [`Input::read`].
pub fn load(arguments: &[String], stdin: &mut Option<impl Read>) -> Result<LoadedManifests, Vec<Problem>> {
    Input::open(arguments, stdin).read().map_err(|unreadable| unreadable.problems)
}

/// Parses the documents of one text that is already in memory. Unlike in [`load`], the text can have no objects, or the
/// same object twice.
pub fn read(source: &Arc<ManifestSource>) -> Result<LoadedManifests, Vec<Problem>> {
    let (loaded, mut problems) = Input::from(source.clone()).read_all();
    problems.sort();
    if problems.is_empty() { Ok(loaded) } else { Err(problems) }
}

/// Text from a manifest as part of a message: safe for a terminal, on one line, and not too long.
pub fn shown_text(text: &str) -> String {
    crate::text::sanitize(&crate::text::cut(text, 120)).into_owned()
}
