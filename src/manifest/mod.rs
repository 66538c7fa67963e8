//! Manifests: what `-f` names, as objects that know where they stand.
//!
//! A document is read once into compact JSON. Line and column of a value inside it are found only when a finding
//! needs them, by reading that one document again ([`Spans`]): findings are few and documents are many.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::problem::Location;
use crate::resource::{ObjectRef, RawObject, Step};

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

// ---- interim ----
use crate::problem::Problem;
#[derive(Debug, Clone)]
pub struct ConfigDocument {
    pub origin: Origin,
}
#[derive(Debug, Default)]
pub struct Loaded {
    pub manifests: Vec<Manifest>,
    pub configs: Vec<ConfigDocument>,
    pub notices: Vec<Problem>,
}
pub struct Located {
    pub location: Location,
    pub length: usize,
    pub depth: usize,
}
pub struct Spans {
    root: Option<crate::yaml::Node>,
    origin: Origin,
}
impl Spans {
    pub fn of(origin: &Origin) -> Spans {
        Spans {
            root: crate::yaml::parse(&origin.source.text[origin.bytes.clone()]).ok().flatten(),
            origin: origin.clone(),
        }
    }
    pub fn locate(&self, steps: &[Step]) -> Located {
        let base = self.origin.source.text[..self.origin.bytes.start].matches('\n').count();
        let mut at = (1, 1, 1);
        let mut node = self.root.as_ref();
        for step in steps {
            match (node.map(|n| &n.data), step) {
                (Some(crate::yaml::Data::Mapping(m)), Step::Key(k)) => match m.iter().find(|e| &e.key == k) {
                    Some(e) => {
                        at = (e.key_span.line, e.key_span.column, k.len());
                        node = Some(&e.value)
                    }
                    None => break,
                },
                (Some(crate::yaml::Data::Sequence(s)), Step::Index(i)) => match s.get(*i) {
                    Some(n) => {
                        at = (n.span.line, n.span.column, 1);
                        node = Some(n)
                    }
                    None => break,
                },
                _ => break,
            }
        }
        Located {
            location: Location { file: self.origin.source.name.clone(), line: base + at.0, column: at.1 },
            length: at.2,
            depth: 0,
        }
    }
}
pub fn load(inputs: &[String], _stdin: &mut Option<Box<dyn std::io::BufRead + Send>>) -> Result<Loaded, Vec<Problem>> {
    let mut out = Loaded::default();
    let mut files = vec![];
    for i in inputs {
        let p = std::path::Path::new(i);
        if p.is_dir() {
            let mut v: Vec<_> =
                std::fs::read_dir(p).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()).collect();
            v.sort();
            files.extend(v);
        } else {
            files.push(p.to_owned());
        }
    }
    for f in files {
        let text = std::fs::read_to_string(&f).map_err(|e| vec![Problem::new(format!("{}: {e}", f.display()))])?;
        let source = Arc::new(Source { name: f.display().to_string(), text });
        let mut start = 0;
        let mut docs = vec![];
        for (i, _) in source.text.match_indices("\n---") {
            docs.push(start..i + 1);
            start = i + 1;
        }
        docs.push(start..source.text.len());
        for (n, r) in docs.into_iter().enumerate() {
            let node = crate::yaml::parse(&source.text[r.clone()]).map_err(|e| vec![Problem::new(e.message)])?;
            let Some(node) = node else { continue };
            let v = node.to_value();
            let line = source.text[..r.start].matches('\n').count() + 1;
            let origin = Origin { source: source.clone(), document: n + 1, line, bytes: r, within: vec![] };
            if v["kind"] == "Config" {
                out.configs.push(ConfigDocument { origin });
                continue;
            }
            let s = |p: &str| v.pointer(p).and_then(|v| v.as_str()).map(str::to_owned);
            out.manifests.push(Manifest {
                object: ObjectRef {
                    api_version: s("/apiVersion").unwrap_or_default(),
                    kind: s("/kind").unwrap_or_default(),
                    namespace: s("/metadata/namespace"),
                    name: s("/metadata/name").unwrap_or_default(),
                },
                raw: RawObject::from_value(&v),
                origin,
            });
        }
    }
    Ok(out)
}
