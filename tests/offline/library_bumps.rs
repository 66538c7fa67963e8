//! What a bump of k8s.io/api changes in the types that CRDs embed is one part of the report, and nothing else is in it.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::git::{Ended, check_in};
use gantry_core::crd::builder::crd_yaml;

/// The schema of a type of Kubernetes' Go modules in a release, as controller-gen writes it, from the table of types.
struct Types {
    lines: Vec<&'static str>,
    release: f64,
}

impl Types {
    fn of_release(release: f64) -> Self {
        let table = include_str!("../../crates/preflight/src/crd_upgrade_safety/library/types.txt");
        Types { lines: table.lines().collect(), release }
    }

    /// Whether a range of the table, such as `29-31`, `30+-` or `-30.0`, has the release. A half is a patch version.
    fn has(&self, range: &str) -> bool {
        let (from, to) = range.split_once('-').expect("a range");
        let from =
            from.trim_end_matches('+').parse::<f64>().map_or(0.0, |at| if from.ends_with('+') { at + 0.5 } else { at });
        let to =
            to.trim_end_matches(".0").parse().map_or(99.0, |at: f64| if to.ends_with(".0") { at } else { at + 0.5 });
        (from..=to).contains(&self.release)
    }

    fn schema(&self, id: &str) -> Value {
        let start = self.lines.iter().position(|line| *line == id).unwrap_or_else(|| panic!("no type {id}")) + 1;
        let package = id.split('.').next().expect("a package");
        let (mut schema, mut properties, mut required) = (Map::new(), Map::new(), Vec::new());
        for line in self.lines[start..].iter().map_while(|line| line.strip_prefix("  ")) {
            let mut words: Vec<&str> = line.split(' ').collect();
            let is_range = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            if words.get(1).is_some_and(is_range) && !self.has(words.remove(1)) {
                continue;
            }
            let (name, rest) = (words[0], &words[1..]);
            let keywords = rest.iter().filter_map(|word| word.split_once('='));
            let keywords = keywords.map(|(keyword, value)| (keyword.to_owned(), serde_json::from_str(value).unwrap()));
            if name == "=" {
                schema.extend(keywords);
                continue;
            }
            let mut field = self.shape(rest[0], package);
            field.as_object_mut().unwrap().extend(keywords);
            properties.insert(name.trim_end_matches('?').to_owned(), field);
            required.extend((!name.ends_with('?')).then_some(name));
        }
        schema.extend([("type".to_owned(), json!("object")), ("properties".to_owned(), properties.into())]);
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.into()
    }

    fn shape(&self, shape: &str, package: &str) -> Value {
        match (shape.split_at(1), shape) {
            (("[", inner), _) => json!({"type": "array", "items": self.shape(inner, package)}),
            (("{", inner), _) => json!({"type": "object", "additionalProperties": self.shape(inner, package)}),
            (_, "s") => json!({"type": "string"}),
            (_, "b") => json!({"type": "boolean"}),
            (_, "i") => json!({"type": "integer", "format": "int32"}),
            (_, "l") => json!({"type": "integer", "format": "int64"}),
            (_, "t") => json!({"type": "string", "format": "date-time"}),
            (_, "y") => json!({"type": "string", "format": "byte"}),
            (_, "o") => json!({"type": "object"}),
            (_, "q" | "x") => {
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
            }
            (_, name) if name.contains('/') => self.schema(name),
            (_, name) => self.schema(&format!("{package}.{name}")),
        }
    }
}

const TEMPLATE: &str = "core/v1.PodTemplateSpec";

fn template(release: f64) -> Value {
    Types::of_release(release).schema(TEMPLATE)
}

/// A CRD whose objects have a `spec` with these fields.
fn crd(kind: &str, fields: &Value) -> String {
    let spec = json!({"type": "object", "properties": fields});
    crd_yaml("test.example.com", kind, &format!("spec: {spec}"))
}

/// A folder whose `live` and `new` have these CRDs.
fn upgrade(live: &[String], new: &[String]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, crds) in [("live", live), ("new", new)] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("crds.yaml"), crds.join("---\n")).unwrap();
    }
    folder
}

fn check(folder: &Path, arguments: &[&str]) -> Ended {
    check_in(folder, &[&["-f", "new", "--target", "dir:live"], arguments].concat())
}

/// The findings as JSON has them.
fn findings(folder: &Path) -> Vec<Value> {
    let ended = check(folder, &["-o", "json"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
    report["checks"][0]["findings"].as_array().expect("findings").clone()
}

/// The titles of the findings, and what is said of a bump.
fn headlines(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_bump = false;
    for line in text.lines().take_while(|line| !line.starts_with("For details")) {
        is_bump = if is_bump { !line.is_empty() } else { line.contains(" are the embedded ") };
        if is_bump || line.starts_with("error[") {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

#[test]
fn a_bump_of_the_api_is_one_part_of_the_report() {
    let live = crd("Widget", &json!({"template": template(28.5), "mode": {"type": "string"}}));
    let new = crd("Widget", &json!({"template": template(31.5), "mode": {"type": "string", "enum": ["a"]}}));
    let folder = upgrade(&[live], &[new]);
    let ended = check(folder.path(), &[]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    insta::assert_snapshot!(headlines(&ended.stdout), @r#"
    error[NoEnumAdded]: spec.mode may not be restricted to an enum in v1: "a"
    50 of 51 errors are the embedded core/v1 PodTemplateSpec: k8s.io/api 0.28 → 0.31 (in
      widgets.test.example.com: 32 NoDefaultAdded, 15 ListTypeChange, 2 NoExistingFieldRemoved, 1
      NoRequiredFieldAdded); the worst:
    error[NoExistingFieldRemoved]: field spec.template.spec.resourceClaims.items.source may not be removed from v1
    "#);
    assert!(ended.stdout.contains("= proof   accepted today, loses values"), "{}", ended.stdout);
    // Everything is in the data, and counts.
    let all = findings(folder.path());
    let explained: Vec<&Value> = all.iter().filter(|finding| !finding["libraryChange"].is_null()).collect();
    assert_eq!(all.len() - explained.len(), 1, "{all:#?}");
    insta::assert_snapshot!(explained[0]["libraryChange"], @r#"{"module":"k8s.io/api","type":"core/v1 PodTemplateSpec","path":"^.spec.template","from":["0.28"],"to":["0.31"]}"#);
    let errors = all.iter().filter(|finding| finding["severity"] == "error").count();
    assert!(ended.stdout.contains(&format!("Would be blocked: {errors} errors.")), "{}", ended.stdout);
    // The other formats for people say the same; in full there is each.
    for format in ["markdown", "html"] {
        let shown = check(folder.path(), &["-o", format]).stdout;
        let sentence = "errors are the embedded core/v1 PodTemplateSpec: k8s.io/api 0.28 → 0.31";
        assert!(shown.contains(sentence), "{format}: {shown}");
    }
    let whole = check(folder.path(), &["-v"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_shown = |finding: &&Value| whole.contains(finding["path"].as_str().unwrap());
    assert!(all.iter().all(|finding| is_shown(&finding)) && !whole.contains("the worst:"), "{whole}");
}

#[test]
fn what_an_author_adds_to_an_embedded_type_is_listed() {
    let mut new = template(31.5);
    let pod = &mut new["properties"]["spec"];
    pod["properties"]["restartPolicy"]["enum"] = json!(["Always"]);
    pod["properties"]["hostAliases"]["items"]["required"] = json!(["ip", "hostnames"]);
    pod["properties"]["containers"]["items"]["properties"]["image"]["minLength"] = json!(1);
    let [live, new] = [template(28.5), new].map(|template| crd("Widget", &json!({"template": template})));
    let folder = upgrade(&[live], &[new]);
    insta::assert_snapshot!(headlines(&check(folder.path(), &[]).stdout), @r#"
    error[NoMinLengthTightened]: minLength of spec.template.spec.containers.items.image may not be added to v1: 1
    error[NoRequiredFieldAdded]: hostnames, ip may not become required in spec.template.spec.hostAliases.items in v1
    error[NoEnumAdded]: spec.template.spec.restartPolicy may not be restricted to an enum in v1: "Always"
    49 of 52 errors are the embedded core/v1 PodTemplateSpec: k8s.io/api 0.28 → 0.31 (in
      widgets.test.example.com: 32 NoDefaultAdded, 15 ListTypeChange, 2 NoExistingFieldRemoved); the
      worst:
    error[NoExistingFieldRemoved]: field spec.template.spec.resourceClaims.items.source may not be removed from v1
    "#);
    let listed = findings(folder.path());
    let listed = listed.iter().filter(|finding| finding["libraryChange"].is_null());
    let listed: Vec<&str> = listed.map(|finding| finding["path"].as_str().unwrap()).collect();
    insta::assert_snapshot!(listed.join("\n"), @r"
    ^.spec.template.spec.containers.items.image
    ^.spec.template.spec.hostAliases.items
    ^.spec.template.spec.restartPolicy
    ");
}

#[test]
fn a_type_that_only_looks_like_the_api_is_listed() {
    // A text is a number on both sides, so neither is a PodSpec.
    let [live, new] = [28.5, 31.5].map(|release| {
        let mut template = template(release);
        template["properties"]["spec"]["properties"]["hostname"] = json!({"type": "integer"});
        crd("Widget", &json!({"template": template}))
    });
    let folder = upgrade(&[live], &[new]);
    let all = findings(folder.path());
    let of_pod = |finding: &&Value| {
        let path = finding["path"].as_str().unwrap();
        path.strip_prefix("^.spec.template.spec.").is_some_and(|field| !field.contains('.'))
    };
    let of_pod: Vec<&Value> = all.iter().filter(of_pod).collect();
    assert!(of_pod.len() > 3 && of_pod.iter().all(|finding| finding["libraryChange"].is_null()), "{of_pod:#?}");
    // The types in it are still those of the API.
    let types: std::collections::BTreeSet<&str> =
        all.iter().filter_map(|finding| finding["libraryChange"]["type"].as_str()).collect();
    assert!(types.contains("core/v1 Container") && !types.contains("core/v1 PodSpec"), "{types:?}");
}

#[test]
fn the_same_release_on_both_sides_explains_nothing() {
    // A generator that was raised writes defaults that the library has had for long.
    let mut live = template(31.5);
    let container = &mut live["properties"]["spec"]["properties"]["containers"]["items"];
    let grpc = &mut container["properties"]["livenessProbe"]["properties"]["grpc"]["properties"]["service"];
    assert!(grpc.as_object_mut().unwrap().remove("default").is_some());
    let [live, new] = [live, template(31.5)].map(|template| crd("Widget", &json!({"template": template})));
    let folder = upgrade(&[live], &[new]);
    let all = findings(folder.path());
    assert!(all.len() == 1 && all[0]["libraryChange"].is_null(), "{all:#?}");
}

#[test]
fn the_same_change_of_an_equal_type_is_shown_once_wherever_it_is() {
    let storage = |size: &Value| json!({"type": "object", "properties": {"class": {"type": "string"}, "size": size}});
    let crds = |size: &Value| {
        let list = json!({"type": "array", "items": storage(size)});
        let other = json!({"type": "object", "properties": {"size": size}});
        [
            crd("Shop", &json!({"data": storage(size), "logs": storage(size)})),
            crd("Store", &json!({"disks": list, "other": other})),
        ]
    };
    let folder = upgrade(&crds(&json!({"type": "integer"})), &crds(&json!({"type": "integer", "minimum": 1})));
    let ended = check(folder.path(), &[]);
    let start = ended.stdout.find("error[").unwrap();
    let end = ended.stdout.find("For details").unwrap();
    insta::assert_snapshot!(ended.stdout[start..end].trim_end(), @r#"
    error[NoMinimumTightened]: minimum of spec.data.size may not be added to v1: 1
      --> new/crds.yaml:15:148
    15 | ...,"size":{"type":"integer","minimum":1}}},"logs":{"type":"object","properties":{"class":{"...
       |                              ^^^^^^^^^ no minimum in the live CRD
       = in      shops.test.example.com, v1, ^.spec.data.size
       = also    ^.spec.logs.size (crds.yaml:15)
                 stores.test.example.com, ^.spec.disks.items.size (crds.yaml:31)
       = breaks  writers: the server refuses or drops what they send today
       = proof   accepted today, refused with this change: spec.data.size: Invalid value: 0:
                 spec.data.size in body should be greater than or equal to 1
                   {apiVersion: test.example.com/v1, kind: Shop, metadata: {name: x}, spec: {data:
                   {size: 0}}}
       = next    leave minimum out of v1, or add it only in a new version that a webhook converts, or
                 after a migration
                 if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:
                   waivers: [{rule: NoMinimumTightened, object: shops.test.example.com, path:
                   "^.spec.data.size", reason: "why this is fine here"}]
    error[NoMinimumTightened]: 1 more
      crds.yaml:31  stores.test.example.com, v1, ^.spec.other.size: minimum added: 1
    "#);
    assert_eq!(findings(folder.path()).len(), 4);
}
