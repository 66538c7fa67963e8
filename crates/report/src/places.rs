//! The paths of files relative to the root of the repository, as code hosts need them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Report;
use gantry_core::finding::{Finding, Source};
use gantry_core::text;

/// Characters that are not escaped in the path of a URI (RFC 3986, unreserved).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The folder that paths are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportPaths {
    working_directory: PathBuf,
    root: PathBuf,
    /// For texts that are in no file of this name, by name.
    shown_at: BTreeMap<String, ShownPlace>,
}

/// The file that a text is shown at: what it was rendered from, or the file of the working tree that has the path of a
/// file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPlace {
    /// The file.
    pub path: PathBuf,
    /// Whether the lines of the text are those of the file.
    pub has_lines: bool,
}

/// A file and a place in it, as code hosts name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePosition {
    /// With `/` as separator; relative to the root if it is below that.
    pub path: String,
    /// From 1; `None` for the whole file.
    pub line: Option<usize>,
    /// From 1.
    pub column: Option<usize>,
}

impl ReportPaths {
    /// `root` is the root of the repository; without one, the working directory.
    pub fn new(working_directory: &Path, root: &Path) -> Self {
        ReportPaths {
            working_directory: working_directory.to_owned(),
            root: root.to_owned(),
            shown_at: BTreeMap::new(),
        }
    }

    /// Adds texts that are in no file of their name.
    pub fn shown_at(self, shown_at: BTreeMap<String, ShownPlace>) -> Self {
        ReportPaths { shown_at, ..self }
    }

    /// A place in a file. For a rendered text, it is the whole source that it was rendered from.
    pub fn position_of(&self, source: &Source) -> CodePosition {
        if self.shown_at.get(&*source.file).is_some_and(|place| !place.has_lines) {
            return CodePosition { path: self.path(&source.file), line: None, column: None };
        }
        let line = (source.line > 0).then_some(source.line);
        CodePosition { path: self.path(&source.file), line, column: source.column.filter(|_| line.is_some()) }
    }

    /// The place where a finding is shown: the nearest line of the change. Without a place of its own it is shown at
    /// the manifest of its object, or else at the first file of the report, because code hosts require a place.
    pub fn of_finding(&self, finding: &Finding, report: &Report) -> CodePosition {
        let manifest = || {
            let object = finding.object.as_ref()?;
            report.changes.iter().find(|change| *change.object == *object)?.source.as_ref()
        };
        match finding.change_source.as_ref().or(finding.source.as_ref()).or_else(manifest) {
            Some(source) => self.position_of(source),
            None => self.first_place(report),
        }
    }

    /// The first file that the report names.
    pub fn first_place(&self, report: &Report) -> CodePosition {
        let changes = report.changes.iter().filter_map(|change| change.source.as_ref());
        let findings = report.checks.iter().flat_map(|check| &check.findings).filter_map(|found| found.source.as_ref());
        let first = changes.chain(findings).next();
        CodePosition { path: self.path(first.map_or("-", |source| &source.file)), line: None, column: None }
    }

    fn path(&self, file: &str) -> String {
        if file == "-" {
            return "stdin".to_owned();
        }
        let file = self.shown_at.get(file).map_or(Path::new(file), |place| place.path.as_path());
        let whole = normal(&self.working_directory.join(file));
        let shown = whole.strip_prefix(&self.root).unwrap_or(&whole).to_string_lossy();
        let shown = if cfg!(windows) { shown.replace('\\', "/") } else { shown.into_owned() };
        text::sanitize(&shown).into_owned()
    }
}

impl CodePosition {
    /// The path as a URI reference, and whether it is relative to the root.
    pub fn uri(&self) -> (String, bool) {
        let escaped = utf8_percent_encode(&self.path, ESCAPED);
        match Path::new(&self.path).is_absolute() {
            true => (format!("file://{}{escaped}", if self.path.starts_with('/') { "" } else { "/" }), false),
            false => (escaped.to_string(), true),
        }
    }
}

/// The path without `.` and `..`. Links are not followed: the path is what the user sees.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            component => normal.push(component),
        }
    }
    normal
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn paths_are_counted_from_the_root() {
        let places = ReportPaths::new("/repo/deploy".as_ref(), "/repo".as_ref());
        let of = |file: &str| places.position_of(&samples::source(file, 3, 0));
        for (file, path, uri) in [
            ("crd.yaml", "deploy/crd.yaml", "deploy/crd.yaml"),
            ("./a/../crd.yaml", "deploy/crd.yaml", "deploy/crd.yaml"),
            ("../base/crd.yaml", "base/crd.yaml", "base/crd.yaml"),
            ("/repo/x.yaml", "x.yaml", "x.yaml"),
            ("/other/x y.yaml", "/other/x y.yaml", "file:///other/x%20y.yaml"),
            ("../../x.yaml", "/x.yaml", "file:///x.yaml"),
            ("-", "stdin", "stdin"),
            ("a:b 100%/日.yaml", "deploy/a:b 100%/日.yaml", "deploy/a%3Ab%20100%25/%E6%97%A5.yaml"),
            ("a\nb.yaml", "deploy/a\\nb.yaml", "deploy/a%5Cnb.yaml"),
        ] {
            let place = of(file);
            assert_eq!((place.path.as_str(), place.uri()), (path, (uri.to_owned(), !path.starts_with('/'))));
        }
        assert_eq!(of("x").line, Some(3));
        assert_eq!(
            places.position_of(&samples::source("x", 0, 4)),
            CodePosition { path: "deploy/x".into(), line: None, column: None }
        );
    }

    #[test]
    fn findings_in_rendered_manifests_are_shown_at_their_kustomization() {
        let place = |path: &str, has_lines| ShownPlace { path: path.into(), has_lines };
        let shown_at = BTreeMap::from([
            ("prod (rendered)".to_owned(), place("./prod/kustomization.yaml", false)),
            ("v1:prod/a.yaml".to_owned(), place("/repo/prod/a.yaml", true)),
        ]);
        let places = ReportPaths::new("/repo/deploy".as_ref(), "/repo".as_ref()).shown_at(shown_at);
        let committed = places.position_of(&samples::source("v1:prod/a.yaml", 3, 4));
        assert_eq!((committed.path.as_str(), committed.line), ("prod/a.yaml", Some(3)));
        let whole = CodePosition { path: "deploy/prod/kustomization.yaml".into(), line: None, column: None };
        assert_eq!(places.position_of(&samples::source("prod (rendered)", 3, 4)), whole);
        assert_eq!(places.position_of(&samples::source("prod", 3, 4)).line, Some(3));
    }

    #[test]
    fn findings_without_a_manifest_are_shown_at_the_first_manifest() {
        let places = ReportPaths::new("/r".as_ref(), "/r".as_ref());
        let mut report = samples::blocked();
        let mut finding = samples::removed_field("v1", 24);
        assert_eq!(places.of_finding(&finding, &report).line, Some(24));
        finding.source = None;
        let of_object = places.of_finding(&finding, &report);
        assert_eq!((of_object.path.as_str(), of_object.line), ("manifests/app.yaml", Some(1)));
        finding.object = None;
        assert_eq!(places.of_finding(&finding, &report).line, None);
        report.changes.clear();
        report.checks.clear();
        assert_eq!(places.of_finding(&finding, &report).path, "stdin");
    }
}
