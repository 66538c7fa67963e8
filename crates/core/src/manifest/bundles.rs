//! Bundles among the manifests: folders in the registry+v1 format. OLM installs them; a deploy does not write them.
//!
//! Their objects are kept separate from all others, because OLM does not apply what the configuration or an annotation
//! makes a deploy do to manifests (labels, versions, an order, a strategy).

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gantry_catalog::bundle::{self, BundleReadError, BundleTexts, MEDIA_TYPE};

use super::{Manifest, shown_text};
use crate::problem::{Location, Problem};

/// The folder of a bundle that holds its objects.
pub const MANIFESTS: &str = "manifests";
/// The file that marks a folder as a bundle.
pub const ANNOTATIONS: &str = "metadata/annotations.yaml";
const METADATA: &str = "metadata";
/// The maximum size of a file in the folder `metadata`, in bytes. Real files have a few KB.
const MOST_BYTES: u64 = 4 << 20;

/// A bundle among the manifests.
#[derive(Debug, Clone, Default)]
pub struct ManifestBundle {
    /// The folder, as the user gave it or as it was found below one that the user gave.
    pub directory: String,
    /// The parsed content.
    pub content: bundle::Bundle,
    /// The ClusterServiceVersion, for the places of findings about it.
    pub csv: Option<Manifest>,
    /// The objects that OLM would write, in the order of the files: all but the ClusterServiceVersion.
    pub manifests: Vec<Manifest>,
}

impl ManifestBundle {
    /// The name of its package; empty if the bundle does not name one.
    pub fn package(&self) -> &str {
        &self.content.annotations.package
    }

    /// Its version; empty if it has none.
    pub fn version(&self) -> &str {
        self.content.csv.as_ref().map_or("", |(csv, _)| &csv.version)
    }
}

/// A folder that was found to be a bundle.
pub(super) struct Folder {
    pub path: PathBuf,
    annotations: String,
}

impl Folder {
    /// Returns the bundle in a directory, if the directory is one.
    ///
    /// # Errors
    /// The directory is a bundle, but its annotations cannot be parsed.
    pub fn read(directory: &Path) -> Result<Option<Folder>, Problem> {
        let file = directory.join(METADATA).join("annotations.yaml");
        let Ok(Some(annotations)) = text(&file) else { return Ok(None) };
        // Any other file of this name is read as a manifest.
        if !annotations.contains(MEDIA_TYPE) {
            return Ok(None);
        }
        let read = bundle::Annotations::read(&annotations).map_err(|unreadable| problem(directory, unreadable))?;
        let is_bundle = read.is_registry_v1() && directory.join(MANIFESTS).is_dir();
        Ok(is_bundle.then(|| Folder { path: directory.to_owned(), annotations }))
    }

    /// The files that contain its objects. OLM reads all of them, whatever their extension.
    ///
    /// # Errors
    /// There is a folder among them, which OLM refuses, or a file that is not a regular file.
    pub fn files(&self) -> Result<Vec<PathBuf>, Problem> {
        let manifests = self.path.join(MANIFESTS);
        let unreadable = |error: &io::Error| Problem::new(format!("cannot be read: {error}")).at(place(&manifests, 0));
        let entries = fs::read_dir(&manifests).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let mut files: Vec<PathBuf> =
            entries.map_err(|error| unreadable(&error))?.iter().map(fs::DirEntry::path).collect();
        files.sort();
        if let Some(folder) = files.iter().find(|path| path.is_dir()) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let message = format!(
                "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: found \
                 {:?}",
                format!("{MANIFESTS}/{}", shown_text(&name))
            );
            return Err(Problem::new(message).at(place(folder, 0)).help("move its files up into manifests/"));
        }
        // A broken link is reported when it is read.
        let is_other = |path: &&PathBuf| fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        if let Some(other) = files.iter().find(is_other) {
            return Err(Problem::new("not a regular file").at(place(other, 0)).help("remove it from the bundle"));
        }
        Ok(files)
    }

    /// The names of files next to the two folders that look like manifests.
    pub fn other_manifests(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let is_manifest = |path: &PathBuf| super::is_manifest_file(path) && path.is_file();
        let mut names: Vec<String> = entries
            .map(|entry| entry.path())
            .filter(is_manifest)
            .map(|path| shown_text(&path.file_name().unwrap_or_default().to_string_lossy()))
            .collect();
        names.sort();
        names
    }

    /// Builds the bundle from its objects.
    ///
    /// # Errors
    /// A part of the bundle is invalid; OLM cannot read it either.
    pub fn bundle(&self, mut manifests: Vec<Manifest>) -> Result<ManifestBundle, Problem> {
        let metadata = |name: &str| {
            let file = self.path.join(METADATA).join(name);
            text(&file).map_err(|error| Problem::new(format!("cannot be read: {error}")).at(place(&file, 0)))
        };
        let (dependencies, properties) = (metadata("dependencies.yaml")?, metadata("properties.yaml")?);
        let objects: Vec<(&str, String)> = manifests
            .iter()
            .map(|manifest| (&*manifest.origin.source.name, manifest.raw.json().into_owned()))
            .collect();
        let objects: Vec<(&str, &str)> = objects.iter().map(|(file, json)| (*file, json.as_str())).collect();
        let texts = BundleTexts {
            annotations: &self.annotations,
            dependencies: dependencies.as_deref(),
            properties: properties.as_deref(),
            objects: &objects,
            subdirectories: &[],
        };
        let content = bundle::Bundle::read(texts).map_err(|unreadable| {
            // Only the ClusterServiceVersion is parsed into a typed object.
            let csv =
                manifests.iter().find(|manifest| is_csv(manifest) && *manifest.origin.source.name == *unreadable.file);
            match csv {
                Some(csv) => Problem::new(format!("{}: {}", csv.object, shown_text(&unreadable.message)))
                    .at(csv.origin.location())
                    .help("OLM cannot read it either: fix the type of the field"),
                None => problem(&self.path, unreadable),
            }
        })?;
        // If there are several, OLM uses the last one.
        let csv = manifests.extract_if(.., |manifest| is_csv(manifest)).last();
        Ok(ManifestBundle { directory: shown_text(&self.path.to_string_lossy()), content, csv, manifests })
    }
}

/// Whether the text of a file `metadata/annotations.yaml` marks the folder above as a bundle.
pub fn says_bundle(annotations: &str) -> bool {
    annotations.contains(MEDIA_TYPE)
        && bundle::Annotations::read(annotations).is_ok_and(|annotations| annotations.is_registry_v1())
}

fn is_csv(manifest: &Manifest) -> bool {
    manifest.object.kind == "ClusterServiceVersion"
}

/// The text of a file in the folder `metadata`; `None` if there is no regular file. Opening a pipe could block.
fn text(file: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(None);
    }
    match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        // One byte more than allowed, so the parser can detect a file that is too large.
        Ok(file) => file.take(MOST_BYTES + 1).read_to_string(&mut text)?,
    };
    Ok(Some(text))
}

fn problem(directory: &Path, BundleReadError { file, line, message, .. }: BundleReadError) -> Problem {
    Problem::new(shown_text(&message)).at(place(&directory.join(file), line)).help("OLM cannot read it either")
}

fn place(path: &Path, line: usize) -> Location {
    Location { file: shown_text(&path.to_string_lossy()), line, column: 0 }
}
