//! Rewrites the text of one object inside a file. Every other document keeps its bytes.
//!
//! Comments above the object stay. Comments inside it are lost, because the object is written from its data. The new
//! text is parsed again before it is written to disk, because YAML has many ways to turn a string into something else.

use std::sync::Arc;

use serde_json::Value;

use gantry_core::manifest::{self, Manifest, ManifestSource};
use gantry_core::problem::Problem;
use gantry_core::resource::Step;
use gantry_yaml::{self as yaml, write};

/// The text of the file after `object` has replaced the object at index `old`.
pub(super) fn replaced(file: &[Manifest], old: usize, object: &Value) -> Result<String, Problem> {
    let manifest = &file[old];
    let origin = &manifest.origin;
    let text = origin.source.text();
    let document = &text[origin.bytes.clone()];

    let whole = match origin.within.as_slice() {
        [] => object.clone(),
        steps => {
            let mut whole = yaml::parse(document).ok().flatten().map(|node| node.to_value()).unwrap_or_default();
            let member = at(&mut whole, steps);
            *member.ok_or_else(|| Problem::new("the list cannot be parsed again").at(origin.location()))? =
                object.clone();
            whole
        }
    };

    let (head, tail) = surroundings(document);
    // `--- {…}`: the document marker is on the same line as the content that is replaced.
    let content = &document[head.len()..];
    let marked = content.starts_with("--- ");
    let as_json = content.trim_start_matches("---").trim_start().starts_with('{');
    let rest = &text[origin.bytes.end..];
    let expected: Vec<Value> = file
        .iter()
        .enumerate()
        .map(|(index, manifest)| if index == old { object.clone() } else { manifest.raw.value() })
        .collect();
    first_that_reads_back(&origin.source.name, &whole, as_json, &expected, |body| {
        let mut new = String::with_capacity(text.len() + body.len());
        new.push_str(&text[..origin.bytes.start]);
        new.push_str(head);
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        if marked {
            new.push_str("---\n");
        }
        let ends_its_line = tail.is_empty() && rest.starts_with(['\n', '\r']);
        new.push_str(if ends_its_line { body.trim_end_matches('\n') } else { body });
        new.push_str(tail);
        new.push_str(rest);
        new
    })
}

/// The text of a new file that contains only this object.
pub(super) fn render_new_file(name: &str, object: &Value) -> Result<String, Problem> {
    first_that_reads_back(name, object, false, std::slice::from_ref(object), str::to_owned)
}

/// The object as YAML, or as JSON (which is valid YAML) if the YAML does not parse back to the same object.
fn first_that_reads_back(
    name: &str,
    document: &Value,
    as_json: bool,
    expected: &[Value],
    file_with: impl Fn(&str) -> String,
) -> Result<String, Problem> {
    let yaml = (!as_json).then(|| write::to_block_style(document));
    let json = Some(write::to_json_style(document));
    for body in [yaml, json].into_iter().flatten() {
        let text = file_with(&body);
        let source = Arc::new(ManifestSource::new(name, text));
        let reads_back = manifest::read(&source).is_ok_and(|manifest::LoadedManifests { manifests: read, .. }| {
            read.len() == expected.len()
                && read.iter().zip(expected).all(|(read, expected)| read.raw.value() == *expected)
        });
        if reads_back {
            return Ok(source.text().to_owned());
        }
    }
    Err(Problem::new(format!("cannot write {name}: the object would not parse back unchanged"))
        .help("move the object to its own file and try again"))
}

fn at<'a>(value: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}

/// The lines before and after a document's content: comments, blank lines, markers.
fn surroundings(document: &str) -> (&str, &str) {
    let is_around = |line: &&str| {
        let line = line.trim_end();
        line.is_empty() || line.starts_with(['#', '%']) || matches!(line, "---" | "...") || line.starts_with("--- #")
    };
    let head: usize = document.split_inclusive('\n').take_while(is_around).map(str::len).sum();
    let rest = &document[head..];
    let tail: usize = rest.split_inclusive('\n').rev().take_while(is_around).map(str::len).sum();
    (&document[..head], &rest[rest.len() - tail..])
}
