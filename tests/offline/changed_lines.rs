//! Annotations are at changed lines: that of a removed field is next to where the field stood.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::formats::{gantry, repository};

/// A CRD of one version whose spec has 60 fields, and then nested ones.
fn crd() -> String {
    let mut text = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {plural: samples, singular: sample, kind: Sample, listKind: SampleList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
"
    .to_owned();
    for number in 0..60 {
        text.push_str(&format!("              field{number:02}:\n                type: string\n"));
    }
    text.push_str(
        "              last:
                type: object
                properties:
                  inner:
                    type: array
                    items:
                      type: string
",
    );
    text
}

/// The lines that a diff shows: those that are removed, with three lines of context, as line numbers of the new text.
fn shown_lines(removed: &str) -> (String, Vec<usize>) {
    let old = crd();
    let at = old.find(removed).expect("the lines are there");
    let new = old.replacen(removed, "", 1);
    let behind = old[..at].lines().count();
    (new, (behind.saturating_sub(2)..=behind + 3).collect())
}

fn annotations(repository: &TempDir) -> (String, Value, Value) {
    let arguments =
        ["check", "-f", "new", "--target", "dir:old", "-o", "github", "-o", "sarif=out.sarif", "-o", "gitlab=out.json"];
    let ran = gantry(repository, &arguments);
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let read = |name: &str| {
        let text = fs::read_to_string(repository.path().join("deploy").join(name)).expect("a report");
        serde_json::from_str(&text).expect("JSON")
    };
    (String::from_utf8(ran.stdout).expect("UTF-8"), read("out.sarif"), read("out.json"))
}

#[test]
fn a_removed_field_is_annotated_where_it_stood() {
    let parent = crd().lines().position(|line| line == "            properties:").expect("a line") + 1;
    for removed in [
        "              field41:\n                type: string\n",
        "              field00:\n                type: string\n",
        "              last:\n                type: object\n                properties:\n                  inner:\n                    type: array\n                    items:\n                      type: string\n",
    ] {
        let repository = repository();
        let (new, shown) = shown_lines(removed);
        for (folder, text) in [("old", &crd()), ("new", &new)] {
            let folder = repository.path().join("deploy").join(folder);
            fs::create_dir(&folder).expect("a folder");
            fs::write(folder.join("crd.yaml"), text).expect("a file");
        }
        let (github, sarif, gitlab) = annotations(&repository);
        let line = github.lines().find(|line| line.contains("NoExistingFieldRemoved")).expect("an annotation");
        let number = line.split("line=").nth(1).and_then(|rest| rest.split(',').next()).expect("a line");
        let number: usize = number.parse().expect("a number");
        assert!(shown.contains(&number), "{number} of {shown:?}: {line}");
        if number != parent {
            assert!(line.contains(&format!("(it was below new/crd.yaml:{parent}")), "{line}");
        }
        let result = &sarif["runs"][0]["results"][0];
        assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], number, "{result:#}");
        assert_eq!(gitlab[0]["location"]["lines"]["begin"], number, "{gitlab:#}");
    }
}
