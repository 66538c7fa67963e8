//! Reads the objects of a file. A stand-in that knows only plain `---` lines, until the manifest loader is there.
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::manifest::{Manifest, Origin, Source};
use crate::problem::{Location, Problem};
use crate::resource::{ObjectRef, RawObject, Step};

fn parse(text: &str) -> Result<Value, String> {
    serde_yaml::from_str(text).map_err(|e| e.to_string())
}

pub(super) fn manifests(source: &Arc<Source>) -> Result<Vec<Manifest>, Vec<Problem>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut ranges = Vec::new();
    let mut pos = 0;
    for line in source.text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            ranges.push(start..pos);
            start = pos + line.len();
        }
        pos += line.len();
    }
    ranges.push(start..pos);
    for (i, r) in ranges.into_iter().enumerate() {
        let line = source.text[..r.start].lines().count() + 1;
        let value = parse(&source.text[r.clone()])
            .map_err(|e| vec![Problem::new(e).at(Location { file: source.name.clone(), line, column: 1 })])?;
        if value.is_null() {
            continue;
        }
        let mut push = |value: &Value, within: Vec<Step>| {
            let t = |p: &str| value.pointer(p).and_then(Value::as_str).map(str::to_owned);
            out.push(Manifest {
                object: ObjectRef {
                    api_version: t("/apiVersion").unwrap_or_default(),
                    kind: t("/kind").unwrap_or_default(),
                    namespace: t("/metadata/namespace"),
                    name: t("/metadata/name").unwrap_or_default(),
                },
                raw: RawObject::from_value(value),
                origin: Origin { source: source.clone(), document: i + 1, line, bytes: r.clone(), within },
            });
        };
        if value["kind"] == "List" {
            for (j, item) in value["items"].as_array().unwrap().iter().enumerate() {
                push(item, vec!["items".into(), j.into()]);
            }
        } else {
            push(&value, vec![]);
        }
    }
    Ok(out)
}

pub(super) fn value(source: &Source, bytes: Range<usize>) -> Result<Value, Problem> {
    parse(&source.text[bytes]).map_err(Problem::new)
}
