//! Manifests: no text makes the reader panic, and the reader of the block style gives the same result as libyaml.

use std::sync::Arc;

use gantry_core::manifest::{self, ManifestSource};
use gantry_yaml::{self as yaml, Data, YamlNode};

/// A directive, which the reader of the block style leaves to libyaml.
const DIRECTIVE: &str = "%YAML 1.1\n---\n";
const DIRECTIVE_LINES: usize = 2;

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    reads_alike(&text);
    let source = Arc::new(ManifestSource::new("fuzz.yaml", text));
    match manifest::read(&source) {
        Ok(loaded) => {
            for manifest in &loaded.manifests {
                let origin = &manifest.origin;
                let document = &source.text()[origin.bytes.clone()];
                assert!(origin.line >= 1 && origin.line <= lines(source.text()), "{origin:?}");
                if origin.within.is_empty() {
                    let json = yaml::to_json(document).expect("it was read").expect("it is an object");
                    assert_eq!(json.text, manifest.raw.json());
                }
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                let place = problem.at.as_ref().map(|location| location.line);
                assert!(place.is_none_or(|line| line <= lines(source.text()) + 1), "{problem:?}");
            }
        }
    }
}

fn lines(text: &str) -> usize {
    // Line breaks of YAML 1.1.
    1 + text.chars().filter(|c| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')).count()
}

/// Reads the document with the reader that gantry chooses for it, and with libyaml, and compares the results.
fn reads_alike(text: &str) {
    let tree = yaml::parse(text);
    if let (Ok(Some(node)), Ok(Some(json))) = (&tree, yaml::to_json(text)) {
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json.text).expect("JSON"), node.to_value());
    }
    // After a directive, a text with its own document start or directives has a different meaning.
    if text.starts_with(['%', '\u{feff}']) || text.contains("---") || text.contains("...") {
        return;
    }
    let by_libyaml = yaml::parse(&format!("{DIRECTIVE}{text}"));
    match (tree, by_libyaml) {
        (Ok(Some(ours)), Ok(Some(theirs))) => same(&ours, &theirs),
        (Ok(None), Ok(None)) | (Err(_), Err(_)) => {}
        // After a directive and a document start there is always a document, even if it is empty.
        (Ok(None), Ok(Some(theirs))) if theirs.to_value().is_null() => {}
        // JSON that is not YAML is read as JSON.
        (Ok(Some(ours)), Err(_)) if is_json(text, &ours) => {}
        (ours, theirs) => panic!("{ours:?}\nlibyaml: {theirs:?}"),
    }
}

fn is_json(text: &str, read: &YamlNode) -> bool {
    yaml::json_only(text)
        .and_then(|json| serde_json::from_str::<serde_json::Value>(&json.text).ok())
        .is_some_and(|value| value == read.to_value())
}

fn same(ours: &YamlNode, theirs: &YamlNode) {
    let there = |span: &yaml::Span| (span.line - DIRECTIVE_LINES, span.column, span.bytes.start - DIRECTIVE.len());
    let here = |span: &yaml::Span| (span.line, span.column, span.bytes.start);
    assert_eq!(here(&ours.span), there(&theirs.span));
    match (&ours.data, &theirs.data) {
        (Data::Scalar(ours), Data::Scalar(theirs)) => assert_eq!(ours, theirs),
        (Data::Sequence(ours), Data::Sequence(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            ours.iter().zip(theirs).for_each(|(ours, theirs)| same(ours, theirs));
        }
        (Data::Mapping(ours), Data::Mapping(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_eq!((&ours.key, here(&ours.key_span)), (&theirs.key, there(&theirs.key_span)));
                same(&ours.value, &theirs.value);
            }
        }
        (ours, theirs) => panic!("{ours:?}\nlibyaml: {theirs:?}"),
    }
}
